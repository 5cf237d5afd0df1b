# The Makefile: parallel builds, messages about missing programs and libraries, flags.
# tests/fresh tests the messages on a minimal machine.
# bats file_tags=plain
load helper

# built TARGET [VARIABLE=VALUE]...: run make with CI=true, so that it installs missing packages
built() {
	env -u MAKEFLAGS -u MFLAGS -u MAKELEVEL -u DEPS -u JOBS CI=true "${@:2}" \
	    make -C "$ROOT" BUILD="$PWD/b" "$1"
}

# jobs WANT ARGS...: check that make ARGS gives its recipes the flag WANT, without a warning
jobs() {
	local want=$1
	shift
	exits 0 env -u MFLAGS -u MAKELEVEL -u DEPS MAKEFLAGS="${FLAGS:-}" \
	    make -n -C "$ROOT" -f "$PWD/mk" BUILD="$PWD/b" JOBS=7 PROGS= LIBS= "$@"
	[ ! -s err ] || { cat err; return 1; }
	[ "$(sed -n 's/^flags:.* \(-j[0-9]*\).*/\1/p' out)" = "$want" ] ||
	    { grep '^flags:' out; return 1; }
}

@test "it builds with all processors, or as many as -j says" {
	cat >mk <<-'E'
	include Makefile
	.RECIPEPREFIX = >
	all deps lint: flags
	flags:
	>+@echo 'flags: $(MAKEFLAGS) '
	again:
	>+@$(AGAIN) -f $(firstword $(MAKEFILE_LIST)) flags
	E
	jobs -j7
	jobs -j7 CC=gcc
	jobs -j7 -k deps install
	jobs -j1 -j1
	jobs -j3 -j3
	jobs -j3 -kj3 CC=gcc
	FLAGS=-j3 jobs -j3
	# targets that test run one after the other, each with a parallel build
	jobs '' deps lint
	jobs -j7 again
	jobs -j1 -j1 again
	jobs -j3 -j3 again
}

# without PROGRAM...: make a PATH that lacks these programs
without() {
	local s
	s=$(system)
	(cd "$s" && rm -f "$@")
	PATH=$s
}

@test "a missing compiler and missing libraries are named in one line before the build begins" {
	without cc gcc pkg-config pkgconf
	for t in all check demo; do
		exits 2 built $t DEPS=no
		[ "$(grep -vc '^make' err)" -eq 1 ]
		says '^missing: gcc .*pkg.*libarchive.* \(make deps installs them\)$'
		[ ! -e b ]
	done
	says openblas
}

@test "the same for bats; a user who is not root gets the command for root" {
	without bats id
	exits 2 built check DEPS=no
	[ "$(grep -vc '^make' err)" -eq 1 ]
	says '^missing: bats[-a-z]* \(make deps installs them\)$'
	printf '#!/bin/sh\necho 1000\n' >"$PATH/id"
	chmod +x "$PATH/id"
	exits 2 built check
	[ "$(grep -vc '^make' err)" -eq 1 ]
	says '^missing: bats[-a-z]*( .*)? \(as root: [a-z-]+ (add|install).* bats'
	[ ! -e b ]
}

@test "builds of packages, and builds without a terminal, install nothing" {
	local v
	without bats id
	printf '#!/bin/sh\necho 1000\n' >"$PATH/id"
	chmod +x "$PATH/id"
	for v in DEB_BUILD_ARCH=amd64 RPM_BUILD_ROOT=/r NIX_BUILD_TOP=/build CONDA_BUILD=1 \
	    HOMEBREW_CC=clang CI=; do
		exits 2 built check "$v"
		says '^missing: bats[-a-z]* \(make deps installs them\)$'
	done
	# variables that brew always sets do not count as a build of a package
	exits 2 built check HOMEBREW_PREFIX=/opt HOMEBREW_CELLAR=/c HOMEBREW_REPOSITORY=/r
	says '\(as root: '
	# DEPS=yes and `make deps' do install
	refuses 2 '\(as root: ' built check NIX_BUILD_TOP=/build DEPS=yes
	refuses 2 '\(as root: ' built deps CI=
	refuses 2 '\(as root: ' built deps DEB_BUILD_ARCH=amd64
	# on a terminal make would install them, as with DEPS=yes
	exits 2 env -u CI -u MAKEFLAGS -u MFLAGS -u MAKELEVEL -u DEPS "$BUILD/tests/pty" \
	    sh -c 'exec make -C "$1" BUILD="$PWD/b" check 2>&1' - "$ROOT"
	grep -q '(as root: ' out
	[ ! -e b ]
}

@test "a library that is too old is named, with the required version, before the build begins" {
	mkdir pc
	for p in 'libsodium 1.0.13' 'libxxhash 0.7.4'; do
		printf 'Name: x\nDescription: x\nVersion: %s\nLibs:\n' "${p#* }" >"pc/${p% *}.pc"
		exits 2 built all PKG_CONFIG_PATH="$PWD/pc"
		[ "$(grep -vc '^make' err)" -eq 1 ]
		says "^missing: ${p% *}.*; ${p% *} ${p#* } is older than "
		[ ! -e b ]
		rm "pc/${p% *}.pc"
	done
}

# user CMD...: run CMD as an ordinary user, with the PATH of one
user() {
	local who=(env)
	[ "$(id -u)" -ne 0 ] || who=(setpriv --reuid 65534 --regid 65534 --clear-groups env)
	"${who[@]}" -u CI -u MAKEFLAGS -u MFLAGS -u MAKELEVEL -u DEPS HOME="$PWD" \
	    PATH=/usr/local/bin:/usr/bin:/bin "$@"
}

@test "programs in sbin are found although a user's PATH lacks it" {
	local p
	for p in ip ss tc sshd; do
		[ ! -x /usr/sbin/$p ] && [ ! -x /sbin/$p ] || break
	done
	[ -x /usr/sbin/$p ] || [ -x /sbin/$p ] || skip "nothing in /usr/sbin here"
	user "$ROOT/.ci/deps" check >out 2>err || [ $? -eq 2 ]
	if command -v ip && command -v ss && command -v tc; then
		! grep iproute err || false
	fi
	user ROOT="$ROOT" bash -ec '. "$ROOT/tests/cli/helper.bash"; command -v '$p
}

teardown() { [ -z "$theirs" ] || rm -r "$theirs"; }

@test "a build directory of another user: the message has the owner, and what to do" {
	[ "$(id -u)" -eq 0 ] || skip "needs root"
	theirs=$(mktemp -d)
	chmod 755 "$theirs"
	user test -r "$ROOT/Makefile" -a -x "$theirs" || skip "another user may not read here"
	mkdir "$theirs"/{b,b2}
	: >"$theirs/b/flags"
	for t in programs demo; do
		exits 2 user make -C "$ROOT" DEPS=no BUILD="$theirs/b" $t
		says "^$theirs/b belongs to root: build elsewhere \\(make BUILD=DIR\\), or own it"
		! grep 'another make builds' out || false
	done
	# root has built in the tree of another user
	chown 65534 "$theirs"/{b,b2}
	exits 2 user make -C "$ROOT" DEPS=no BUILD="$theirs/b" programs
	says "^$theirs/b/flags belongs to root: build elsewhere"
	exits 2 user make -C "$ROOT" DEPS=no BUILD="$theirs/none" programs
	says "none.*: build elsewhere"
	exits 0 user make -C "$ROOT" DEPS=no BUILD="$theirs/b2" "$theirs/b2/lib/base/err.o"
}

# flags FILE [VARIABLE=VALUE]...: print the call with which make compiles or links FILE
flags() {
	env -u MAKEFLAGS -u MFLAGS -u MAKELEVEL -u CFLAGS -u CPPFLAGS -u LDFLAGS make -n -C "$ROOT" \
	    V=1 BUILD="$PWD/b" CC=gcc DEPS=no "${@:2}" "$PWD/b/$1" | grep -e "-o $PWD/b/$1 "
}

# has N PATTERN: check that the last flags have PATTERN N times
has() { [ "$(grep -oEe "$2" <<<"$line" | wc -l)" -eq "$1" ] || { echo "$2: $line"; return 1; }; }

@test "flags for hardening are added only if neither the user nor the compiler sets them" {
	local line
	command -v gcc >/dev/null || skip "no gcc to ask"
	# a gcc without defaults of its own, as Debian's
	line=$(flags lib/base/err.o CFLAGS=-O2)
	has 1 '-D_FORTIFY_SOURCE=2'
	has 1 '-fstack-protector-strong'
	has 0 '-U_FORTIFY_SOURCE'
	for v in CPPFLAGS=-D_FORTIFY_SOURCE=3 'CFLAGS=-O2 -D_FORTIFY_SOURCE=3' \
	    'CFLAGS=-O2 -Wp,-U_FORTIFY_SOURCE,-D_FORTIFY_SOURCE=3'; do
		line=$(flags lib/base/err.o "$v")
		has 1 'D_FORTIFY_SOURCE=[0-9]'
		has 1 'D_FORTIFY_SOURCE=3'
		has 1 'stack-protector'
	done
	line=$(flags lib/base/err.o 'CFLAGS=-O2 -U_FORTIFY_SOURCE -fno-stack-protector')
	has 0 'D_FORTIFY_SOURCE'
	has 1 'stack-protector'
	# no hardening without optimization, nor with sanitizers
	for v in CFLAGS=-g 'CFLAGS=-O1 -fsanitize=address'; do
		line=$(flags lib/base/err.o "$v")
		has 0 'FORTIFY|stack-protector'
	done
	# a compiler with its own defaults
	printf '#!/bin/sh\nexec gcc -fstack-protector-all -D_FORTIFY_SOURCE=3 "$@"\n' >hardened
	chmod +x hardened
	line=$(flags lib/base/err.o CFLAGS=-O2 CC="$PWD/hardened")
	has 0 'FORTIFY|stack-protector'
	# no warning about a macro that is defined twice
	exits 0 built "$PWD/b/lib/base/err.o" CC="$PWD/hardened" CFLAGS='-O2 -Werror' DEPS=no
	[ ! -s err ] || { cat err; false; }
	line=$(flags ace CFLAGS=-O2)
	has 1 'relro'
	has 1 'z,now'
	line=$(flags ace LDFLAGS=-Wl,-z,relro)
	has 1 'relro'
	has 1 'z,now'
	line=$(flags ace LDFLAGS=-Wl,-z,norelro,-z,lazy)
	has 1 'relro'
	has 0 'z,now'
}

@test "it builds without the header of Landlock, and with xxhash.h in a place of pkg-config's" {
	mkdir -p none/linux pc elsewhere
	echo '#error no such file' >none/linux/landlock.h
	exits 0 built "$PWD/b/lib/base/sandbox.o" CPPFLAGS="-I$PWD/none" DEPS=no
	[ -s b/lib/base/sandbox.o ]
	! grep -q landlock b/lib/base/sandbox.d || false
	# pkg-config's xxhash.h is used, not the system's
	printf '#define ACE_FROM_ELSEWHERE\n#include_next <xxhash.h>\n' >elsewhere/xxhash.h
	printf 'Name: x\nDescription: x\nVersion: 0.8.1\nLibs: -lxxhash\nCflags: -I%s\n' \
	    "$PWD/elsewhere" >pc/libxxhash.pc
	exits 0 built "$PWD/b/lib/base/hash.o" PKG_CONFIG_PATH="$PWD/pc" DEPS=no
	grep -q elsewhere/xxhash.h b/lib/base/hash.d
}

# bats test_tags=long
@test "twenty parallel builds from scratch: no file is made before the files that it needs" {
	# stand in for compiler, linker and archiver: check that the files in the arguments exist,
	# wait for a random moment, and write the output
	cat >stand-in <<-'E'
	#!/usr/bin/perl
	my @from;
	while (defined($_ = shift)) {
		if ($_ eq '-o') { $to = shift }
		elsif (/^-dM$/) { print "#define __FLT_EVAL_METHOD__ 0\n"; exit }
		elsif (/^-dumpmachine$/) { print "none\n"; exit }
		elsif (/^(qcs|rcs)$/) { $to = shift }
		elsif (!/^-/ && /\.([coa]|so)$/) { push @from, $_ }
	}
	for (@from) { -s || do { print STDERR "$_ is not there\n"; exit 1 } }
	exit if !defined $to || $to eq '/dev/null';
	select(undef, undef, undef, rand(0.004));
	open(F, '>', $to) or die "$to: $!\n";
	print F join(' ', @from, "\n");
	E
	chmod +x stand-in
	printf '#!/bin/sh\n[ -s "$2" ]\n' >objcopy
	chmod +x objcopy
	for _ in {1..20}; do
		rm -rf b
		exits 0 env -u MAKEFLAGS -u MFLAGS -u MAKELEVEL PATH="$PWD:$PATH" make -j16 -s -C "$ROOT" \
		    BUILD="$PWD/b" CC="$PWD/stand-in" AR="$PWD/stand-in" LD="$PWD/stand-in" DEPS=no \
		    build-all
		for f in ace-step libaceg.a libaceg.so.0 examples/scale examples/train tests/damage; do
			[ -s "b/$f" ] || { echo "$f"; return 1; }
		done
	done
	# the stand-in notices a missing file
	exits 1 ./stand-in -c -o x.o nowhere.c
}
