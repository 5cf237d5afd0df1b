# make install, into a root of its own, and what a third party does with it.

load helper

build() {
	make -s -C "$ROOT" BUILD="$BUILD" DESTDIR="$PWD/root" PREFIX=/usr "$@"
}

@test "install, use, uninstall" {
	sanitized && skip "the library of a sanitized build"
	root=$PWD/root
	build install
	for f in bin/ace-expand include/ace.h lib/libace.a lib/libace.so.0 \
	    lib/pkgconfig/libace.pc share/man/man5/ace-stream.5 \
	    share/man/man7/ace.7 share/ace/ace.magic \
	    share/man/man7/ace-deploy.7 share/ace/hosts/ssh-step.sh \
	    share/bash-completion/completions/ace; do
		[ -s "root/usr/$f" ] || { echo "$f"; false; }
	done
	[ "$(readlink root/usr/lib/libace.so)" = libace.so.0 ]
	for p in root/usr/bin/*; do
		"$p" --help >/dev/null
	done
	[ -z "$(grep -rl "$ROOT" root/usr/lib/pkgconfig root/usr/include || :)" ]

	export PKG_CONFIG_PATH=$root/usr/lib/pkgconfig
	export PKG_CONFIG_SYSROOT_DIR=$root
	[ "$(pkg-config --modversion libace)" = \
	    "$(sed -n 's/.*VERSION "\(.*\)"/\1/p' "$ROOT/lib/base/version.h")" ]
	mkshards -k ramp >in.aceg
	# shellcheck disable=SC2046 # words
	${CC:-cc} -o shared "$ROOT/examples/scale.c" \
	    $(pkg-config --cflags --libs libace)
	exits 0 env LD_LIBRARY_PATH="$root/usr/lib" ./shared 2 <in.aceg
	mv out shared.aceg
	# shellcheck disable=SC2046 # words
	${CC:-cc} -o static "$ROOT/examples/scale.c" -I "$root/usr/include" \
	    "$root/usr/lib/libace.a" $(pkg-config --libs liblz4 libxxhash) -lm
	exits 0 ./static 2 <in.aceg
	same out shared.aceg
	exits 0 root/usr/bin/ace-expand shared.aceg

	build uninstall
	[ -z "$(find root ! -type d)" ] || { find root ! -type d; false; }
}

@test "a header alone is enough for C++" {
	sanitized && skip "the library of a sanitized build"
	command -v "${CXX:-c++}" || skip "no C++ compiler"
	echo '#include <ace.h>
	    int main() { return ace_version() == nullptr; }' >t.cc
	"${CXX:-c++}" -std=c++11 -Wall -Werror -I "$ROOT/lib" -o t t.cc \
	    "$BUILD/libace.a" -llz4 -lxxhash -lm
	./t
}
