# make install into a separate root, and how other projects use the result.

load helper

build() {
	# make allows spaces only in the part of a path before the sources
	make -s -C "$ROOT" -o all BUILD="${BUILD#"$ROOT"/}" DESTDIR="${TO:-$PWD/installed}" PREFIX=/usr "$@"
}

@test "BUILD is one folder, whether it is said with or without its path" {
	# under another name, objects would be built without the dependencies of other builds
	for b in of/it "$ROOT/of/it" ./of/it; do
		make -C "$ROOT" -nB BUILD="$b" of/it/lib/base/err.o |
		    grep -qe '-o of/it/lib/base/err.o '
	done
}

@test "a folder with blanks, a umask that shuts others out: installed there, for all" {
	export TO="$PWD/a root  with 'blanks'"
	(umask 077 && build install)
	[ "$(ls)" = "a root  with 'blanks'" ]
	"$TO/usr/bin/ace-expand" --help >/dev/null
	mkshards >in.aceg
	ln -s "$TO" to
	# shellcheck disable=SC2046 # word splitting is intended
	sanitized || ${CC:-cc} -o scale "$ROOT/examples/scale.c" -I to/usr/include \
	    to/usr/lib/libaceg.a $(pkg-config --libs liblz4 libxxhash) -lm
	# everybody may read all of it, whatever the umask
	[ -z "$(find "$TO/usr" ! -type l ! -perm -a+r)" ]
	[ -z "$(find "$TO/usr" -type d ! -perm -a+x)" ]
	build uninstall
	[ -z "$(find "$TO" ! -type d)" ]
}

@test "no name of a file is libACE's, also where file names ignore case" {
	build install
	# the files of Debian's libace-dev in shared directories
	printf '%s\n' bin/ace_gperf include/ace lib/ace lib/libace.a lib/libace.so \
	    lib/libace_etcl.so lib/pkgconfig/ace.pc lib/pkgconfig/ace_etcl.pc \
	    share/ace share/man/man1/ace_gperf.1 | sort >theirs
	(cd installed/usr && find . ! -type d) | sed 's|^\./||' | tr 'A-Z' 'a-z' | sort >ours
	comm -12 theirs ours | diff /dev/null -
	# on file systems that ignore case, -lACE and pkg-config ACE do not find our files
	! find installed/usr -iname 'libace.*' -o -iname ace.pc -o -iname ace.h | grep . || false
	readelf -dW installed/usr/lib/libaceg.so.0 | grep -q 'SONAME.*\[libaceg.so.0\]'
}

@test "the names of the library have a version, and there are those that it promises" {
	sanitized && skip "the library of a sanitized build"
	# lib/aceg.h declares the symbols, debian/libaceg0.symbols promises them, and there are no others
	nm -D --defined-only "$BUILD/libaceg.so.0" | awk '$2 == "T" { print $3 }' |
	    sed 's/@@/@/' | sort >there
	sed -n 's/^ \(ace_.*\) 0.*/\1/p' "$ROOT/.packaging/debian/libaceg0.symbols" | sort | diff - there
	tr '\n' ' ' <"$ROOT/lib/aceg.h" | grep -oE 'ACE_API [^;]*;' | grep -oE '\bace_[a-z_]+\(' |
	    tr -d '(' | sort -u | sed 's/$/@ACE_1/' | diff - there
}

@test "install, use, uninstall" {
	sanitized && skip "the library of a sanitized build"
	root=$PWD/installed
	build install
	for f in bin/ace-expand include/aceg.h lib/libaceg.a lib/libaceg.so.0 \
	    lib/pkgconfig/libaceg.pc share/man/man5/ace-stream.5 \
	    share/man/man7/ace.7 share/ace/ace.magic share/ace/plot.gnuplot share/ace/scale.c \
	    share/mime/packages/ace.xml bin/ace \
	    share/man/man7/ace-operations.7 share/ace/hosts/tls.sh lib/systemd/user/ace-edge@.service share/ace/trainers/train_c.c \
	    share/ace/pytorch/ace_shards/__init__.py share/man/man7/ace-pytorch.7 \
	    share/bash-completion/completions/ace; do
		[ -s "installed/usr/$f" ] || { echo "$f"; false; }
	done
	[ "$(readlink installed/usr/lib/libaceg.so)" = libaceg.so.0 ]
	for p in installed/usr/bin/*; do
		"$p" --help >/dev/null
	done
	[ -z "$(grep -rl "$ROOT" installed/usr/lib/pkgconfig installed/usr/include || :)" ]

	export PKG_CONFIG_PATH=$root/usr/lib/pkgconfig
	export PKG_CONFIG_SYSROOT_DIR=$root
	[ "$(pkg-config --modversion libaceg)" = \
	    "$(sed -n 's/.*VERSION "\(.*\)"/\1/p' "$ROOT/lib/base/version.h")" ]
	mkshards -k ramp >in.aceg
	# shellcheck disable=SC2046 # word splitting is intended
	${CC:-cc} -o shared "$ROOT/examples/scale.c" \
	    $(pkg-config --cflags --libs libaceg)
	makes shared.aceg env LD_LIBRARY_PATH="$root/usr/lib" ./shared 2 <in.aceg
	# shellcheck disable=SC2046 # word splitting is intended
	${CC:-cc} -o static "$ROOT/examples/scale.c" -I "$root/usr/include" \
	    "$root/usr/lib/libaceg.a" $(pkg-config --libs liblz4 libxxhash) -lm
	exits 0 ./static 2 <in.aceg
	same out shared.aceg
	exits 0 installed/usr/bin/ace-expand shared.aceg

	# byte code that python wrote beside the modules is removed as well
	for f in patches/server pytorch/digits pytorch/ace_shards/__init__; do
		mkdir -p "installed/usr/share/ace/${f%/*}/__pycache__"
		: >"installed/usr/share/ace/${f%/*}/__pycache__/${f##*/}.cpython-311.pyc"
	done
	build uninstall
	# directories that a system has anyway stay
	[ "$(cd installed/usr && find . | sort | tr '\n' ' ')" = \
	    ". ./bin ./include ./lib ./share ./share/man " ] ||
	    { find root; false; }
}

# completes SHELL CMD...: run CMD in a shell that finds only the installed completions
completes() {
	command -v "$1" >/dev/null || skip "no $1"
	HOME=$PWD XDG_DATA_DIRS=$PWD/installed/usr/share \
	    PATH=$PWD/installed/usr/bin:$PATH exits 0 timeout "$HANG" "$@"
}

# values: print lines of typed text and the word that a tab completes, without what a shell
# may append
values() {
	cat <<-'E'
	ace-score --form m|moment
	ace-recv --reply a|aggregate
	ace-aggregate --rule med|median
	ace-aggregate --rule cl|clip:
	ace-compress -c zz|
	ace-compress -c ec|ecq
	ace-select --levels f32,f1|f32,f16
	ace-import -f sa|safetensors
	ace-export -f gg|
	ace-import -k d|delta
	ace-compress --error-feedback ca|cache
	ace-ack --sync n|none
	ace-ack --sandbox r|require
	ace-inspect stats --kind gra|gradient
	ace-inspect --kind gra|gradient
	ace step --form p|paper
	E
}

@test "each value that completes is one that the option takes" {
	"$ROOT/tests/mkcompletions" --values >all
	[ "$(cut -f2 all | sort -u | wc -l)" -ge 11 ]
	: >FILE
	while IFS=$'\t' read -r call option value; do
		# this value needs a number after it
		[[ $value != *: ]] || continue
		$call "$option" "$value" </dev/null >out 2>err || true
		# a codec in such a value needs its own argument
		! grep -F "'$value': " err | grep -v 'codec' &&
		    ! grep "codec '.*' is unknown" err || { echo "$call $option"; false; }
	done <all
}

@test "bash and its completion package load the completions" {
	sanitized && skip "the same as without"
	pkg=/usr/share/bash-completion/bash_completion
	[ -f $pkg ] || skip "no bash-completion"
	build install
	for p in installed/usr/bin/ace-*; do
		p=${p##*/}
		completes bash --norc -c ". $pkg
		    _completion_loader $p; complete -p $p
		    COMP_WORDS=($p --he) COMP_CWORD=1 && _ace $p
		    echo \"\${COMPREPLY[*]}\""
		[ "$(cat out)" = "complete -o filenames -F _ace $p
--help" ] || { echo "$p:"; cat out err; false; }
	done
	while IFS='|' read -r typed want; do
		# words as bash splits them after --form=l, and unsplit
		for cut in "$typed" "${typed% *} = ${typed##* }"; do
			[[ $cut != *\ -?\ =* ]] || continue
			completes bash --norc -c '. "$1"; shift
			    COMP_WORDS=("$@") COMP_CWORD=$(($# - 1))
			    _ace "$1"; echo "${COMPREPLY[*]}"' - \
			    installed/usr/share/bash-completion/completions/ace $cut
			[ "$(cat out)" = "$want" ] || { echo "$cut:"; cat out err; false; }
		done
	done < <(values)
}

@test "where fish would not look, make install says so" {
	needs fish
	local make=(env -u MAKEFLAGS -u MAKELEVEL -u XDG_DATA_DIRS make -C "$ROOT" -o all BUILD="$BUILD"
	    DEPS=no install PREFIX="$PWD/here")
	exits 0 "${make[@]}"
	grep -qx "fish completes them where XDG_DATA_DIRS has $PWD/here/share in it" out
	exits 0 "${make[@]}" XDG_DATA_DIRS="/usr/share:$PWD/here/share"
	! grep '^fish' out || false
}

@test "fish loads the completions" {
	sanitized && skip "the same as without"
	build install
	for p in installed/usr/bin/ace-*; do
		p=${p##*/}
		completes fish -c "complete -C '$p --verb'
		    complete -C '$p --verb'"
		[ "$(cut -f1 out | paste -sd' ')" = "--verbose --verbose" ] ||
		    { echo "$p:"; cat out err; false; }
	done
	while IFS='|' read -r typed want; do
		completes fish -c "complete -C '$typed'"
		[ "$(cut -f1 out)" = "$want" ] || { echo "$typed:"; cat out err; false; }
	done < <(values)
}

@test "zsh loads the completions" {
	sanitized && skip "the same as without"
	build install
	# on a terminal: type a tab, and a key that writes the resulting line to a file
	cat >rc <<-'E'
	fpath=($PWD/installed/usr/share/zsh/site-functions $fpath)
	autoload -Uz compinit
	compinit -D -u
	show() { print -r -- $BUFFER >>got; BUFFER=; }
	zle -N show
	bindkey '^X' show
	E
	cat >z <<-'E'
	zmodload zsh/zpty
	zpty z env PS1= TERM=dumb zsh -f -i
	zpty -w z '. ./rc; : >got'
	until [[ -e got ]]; do sleep 0.05; done
	for p in installed/usr/bin/ace-*; do
		zpty -w -n z "${p:t} --verb"$'\t\x18'
		until grep -q "^${p:t} " got; do
			zpty -r -t z text
			sleep 0.05
		done
	done
	while IFS='|' read -r typed want; do
		before=$(wc -l <got)
		zpty -w -n z "$typed"$'\t\x18'
		until (($(wc -l <got) > before)); do
			zpty -r -t z text
			sleep 0.05
		done
		[[ -n $want ]] || want=${typed##* }
		# a blank may follow, or a comma where more values may
		grep -qE "^${typed% *} ${want}[, ]?\$" <(tail -n 1 got) ||
		    { print -ru2 -- "$typed: $(tail -n 1 got)"; exit 1; }
	done <values
	E
	values >values
	completes zsh -f z
	for p in installed/usr/bin/ace-*; do
		grep -qx "${p##*/} --verbose *" got || { cat got; false; }
	done
}

@test "a header alone is enough for C++" {
	sanitized && skip "the library of a sanitized build"
	command -v "${CXX:-c++}" || skip "no C++ compiler"
	echo '#include <aceg.h>
	    int main() { return ace_version() == nullptr; }' >t.cc
	"${CXX:-c++}" -std=c++11 -Wall -Werror -I "$ROOT/lib" -o t t.cc \
	    "$BUILD/libaceg.a" -llz4 -lxxhash -lm
	./t
}
