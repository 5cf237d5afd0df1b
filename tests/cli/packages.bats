# make in a path with blanks and other characters that a shell interprets: every target must
# work, and no file of the user may change.  Compilers and Debian's tools are stand-ins;
# .packaging/check uses real ones.
# bats file_tags=plain
load helper

# tool NAME: make program NAME in bin, from standard input
tool() {
	mkdir -p bin
	cat >"bin/$1"
	chmod +x "bin/$1"
}

# tree FOLDER: copy the sources to FOLDER/ace, and write user files at each path that FOLDER
# gives when a shell splits it at blanks
tree() {
	local w
	mkdir -p "$1/ace" bin
	tar -C "$ROOT" --exclude=./build --exclude=./.git -cf - . | tar -C "$1/ace" -xf -
	for w in . $1; do
		mkdir -p "$w/src" "$w/libs" "$w/build/musl/src" "$w/lists"
		for f in thesis.txt src/thesis.txt libs/thesis.txt build/thesis.txt \
		    build/musl/src/thesis.txt ar cc strip new.deb new.whl; do
			echo years >"$w/$f"
		done
	done
	theirs "$1" >bin/theirs
	xargs -d '\n' sha256sum <bin/theirs >bin/sums
}

# theirs FOLDER: list the user files: all but the sources and the test's own files
theirs() {
	find . -type f | grep -vF -e "./$1/ace/" -e ./bin/ -e ./root/ | grep -vxE '\./(out|err)' |
	    LC_ALL=C sort
}

# untouched FOLDER: check that the user's files are unchanged and that there are no new ones
untouched() {
	sha256sum --quiet -c bin/sums
	theirs "$1" | diff bin/theirs -
}

# stand_ins: make stand-ins that check their arguments and write their output files
stand_ins() {
	tool stand-in <<-'E'
	#!/usr/bin/perl
	my @from;
	while (defined($_ = shift)) {
		if ($_ eq '-o') { $to = shift }
		elsif (/^-dM$/) { print "#define __FLT_EVAL_METHOD__ 0\n"; exit }
		elsif (/^-dumpmachine$/) { print "none\n"; exit }
		elsif (/^(qcs|rcs)$/) { $to = shift }
		elsif (!/^-/ && m{^[a-z/-].*\.([coa]|so)$}) { push @from, $_ }
		# any other argument is an error
		elsif (!/^-/ && $_ ne 'c' && $_ ne '/dev/null') { print STDERR "what is '$_'?\n"; exit 1 }
		elsif (/^-ffile-prefix-map=(.*)=\.$/ && ! -e "$1/lib/aceg.h") { print STDERR "no $1\n"; exit 1 }
		elsif (/^-[IL](.+)/ && ! -d $1) { print STDERR "no folder $1\n"; exit 1 }
	}
	for (@from) { -s || do { print STDERR "$_ is not there\n"; exit 1 } }
	exit if !defined $to || $to eq '/dev/null';
	open(F, '>', $to) or die "$to: $!\n";
	print F join(' ', @from, "\n");
	E
	tool objcopy </dev/null
	tool strip <<-'E'
	#!/bin/sh
	cp -- "$3" "$2"
	E
	tool mandoc <<<$'#!/bin/sh\nexec cat -- "$5"'
	tool dpkg-parsechangelog <<-'E'
	#!/bin/sh
	sed -n '1s/.*(\(.*\)).*/\1/p' debian/changelog
	E
	tool dpkg-buildpackage <<-'E'
	#!/bin/sh
	for f in a.deb b.dsc c.debian.tar.xz d.changes; do echo made >"../$f"; done
	E
	# other programs are the system's, without lintian, which make deb does not need
	local s
	s=$(system)
	rm -f "$s/lintian"
	# pretend that all packages are installed
	tool dpkg-query <<<$'#!/bin/sh\necho "install ok installed"'
	tool apt-get <<-'E'
	#!/bin/sh
	printf '%s\n' "$@" >>"$ASKED/asked"
	cat parts/* >>"$ASKED/sources"
	exit 100
	E
	for f in git musl-gcc aarch64-linux-gnu-gcc; do tool "$f" </dev/null; done
	printf '%s\n' 'Name: x' 'Description: x' 'Version: 3' 'Libs: -L${pcfiledir}/.. -lx' \
	    'Cflags: -I${pcfiledir}/../../include' >bin/x.pc
	export PATH=$PWD/bin:$s ASKED=$PWD
}

# here TARGET...: run make in directory $at/ace
here() {
	env -u MAKEFLAGS -u MFLAGS -u MAKELEVEL -u BUILD -u CFLAGS make -s -C "$at/ace" "$@" </dev/null
}

# a path with blanks and all characters that a shell or make interprets
odd=$'work 2026/it\'s "100%" of $HOME & #1 [a] (b); f\303\274r  all'

@test "in such a path every kind of package is made, and user files stay" {
	local libs="$odd/ace/build/musl/libs" to opt
	at=$odd
	stand_ins
	tree "$odd"
	# write the files of the slow part of .packaging/musl
	mkdir -p "$libs/lib/pkgconfig" "$libs/include"
	for f in libarchive liblz4 libxxhash jansson libsodium; do
		cp bin/x.pc "$libs/lib/pkgconfig/$f.pc"
	done
	cp bin/stand-in "$libs/cc"
	cp bin/stand-in "$libs/ar"
	cp bin/strip "$libs/strip"
	echo free >"$libs/licenses"
	cp "$ROOT/.packaging/musl" "$libs/complete"
	exits 0 here wheel
	exits 0 here html dist sdist deb
	for f in packages/ace_shards-*.whl packages/ace_shards-*.tar.gz packages/ace-0*.tar.gz packages/a.deb html/ace.7.html html/index.html; do
		[ -s "$odd/ace/build/"$f ] || { echo "$f"; return 1; }
	done
	# make takes $$ for a dollar
	to="DESTDIR=$PWD/root/${odd//\$/\$\$}" opt='PREFIX=/opt/a|b & c'
	exits 0 here install CC="$PWD/bin/stand-in" AR="$PWD/bin/stand-in" LD="$PWD/bin/stand-in" \
	    PKG_CFLAGS= PKG_LIBS= ACE_LIBS= "$to" "$opt" DEPS=no
	grep -qx 'prefix=/opt/a|b & c' "root/$odd/opt/a|b & c/lib/pkgconfig/libaceg.pc"
	exits 0 here uninstall "$to" "$opt" DEPS=no
	[ -z "$(find root ! -type d)" ]
	exits 0 here clean
	[ ! -e "$odd/ace/build" ]
	untouched "$odd"
}

@test "in such a path a real compiler works, and so do dependencies on headers" {
	at=$odd
	tree "$at"
	exits 0 here build/lib/base/err.o DEPS=no CC="${CC:-cc}"
	[ -s "$at/ace/build/lib/base/err.o" ]
	! grep -aF 'HOME' "$at/ace/build/lib/base/err.o" || false
	# a file is made again only if one of its headers changes
	exits 0 here --no-silent build/lib/base/err.o DEPS=no CC="${CC:-cc}"
	! grep ' CC ' out || false
	touch -d '+1 hour' "$at/ace/lib/base/err.h"
	exits 0 here --no-silent build/lib/base/err.o DEPS=no CC="${CC:-cc}"
	grep ' CC .*base/err.o' out
	# scripts that look for files and programs
	ln -s "$BUILD" "$at/ace/build/programs"
	BUILD="$PWD/$at/ace/build/programs" exits 0 "$at/ace/tests/mkcompletions" --check
	BUILD="$PWD/$at/ace/build/programs" "$at/ace/tests/mkcompletions" --values | grep -q '^ace-score'
	BUILD="$PWD/$at/ace/build/programs" exits 0 "$at/ace/tests/options"
	untouched "$at"
}

@test "a BUILD folder with special characters is refused before the build begins" {
	for b in 'a folder' "$PWD/a folder/b" 'a:b' 'a%b' "it's" 'a"b' 'a;b' 'a[1]' '~b' 'a\b'; do
		exits 2 make -C "$ROOT" -n BUILD="$b" all clean
		says "BUILD=.*: make cannot build into a folder with a blank or a special character"
	done
	exits 0 make -s -C "$ROOT" -n BUILD="$PWD/b,c=d+e@f_g-h.i" help
}

@test ".packaging/musl uses the machine's own package archive, and removes no user file" {
	stand_ins
	mkdir -p etc/parts m
	echo 'deb http://archive.ubuntu.example/ubuntu noble main universe' >etc/list
	printf 'Types: deb\nURIs: http://archive.ubuntu.example/ubuntu\nSuites: noble-updates\n%s\n' \
	    'Components: main' >etc/parts/ubuntu.sources
	printf '%s\n' "Dir::Etc::sourcelist \"$PWD/etc/list\";" \
	    "Dir::Etc::sourceparts \"$PWD/etc/parts\";" >apt.conf
	command -v apt-config >/dev/null || skip "no apt-config here"
	# directories of another origin are not removed
	mkdir m/libs m/src
	echo years >m/libs/thesis.txt
	echo years >m/src/thesis.txt
	exits 5 "$ROOT/.packaging/musl" m "$(uname -m)"
	says "'.*/m/libs' was not made by this script"
	[ ! -e asked ]
	mv m/libs m/own
	APT_CONFIG=$PWD/apt.conf exits 100 "$ROOT/.packaging/musl" m "$(uname -m)"
	diff - sources <<-'E'
	deb-src http://archive.ubuntu.example/ubuntu noble main universe
	Types: deb-src
	URIs: http://archive.ubuntu.example/ubuntu
	Suites: noble-updates
	Components: main
	E
	[ "$(find m -type f | sort | tr '\n' ' ')" = 'm/own/thesis.txt m/src/thesis.txt ' ]
}

@test "each kind of package requires its own tools only" {
	s=$(system)
	(cd "$s" && rm -f musl-gcc lintian nix* ruby dh* dpkg-* *-linux-gnu-* qemu* abidiff mandoc \
	    dnf apk brew apt-get && ln -s true apt-get)
	needed() { PATH=$s exits 2 "$ROOT/.ci/deps" -n "$1"; }
	for m in deb musl musl-aarch64 packages html; do
		needed $m
		sed 's/^missing: //; s/ (.*//' err | tr ' ' '\n' | sort -u >"$m"
	done
	# dpkg-buildpackage checks these packages, which debian/control names
	for p in build-essential dpkg-dev debhelper dh-python libarchive-dev bats mandoc; do
		grep -qx "$p" deb || { cat deb; false; }
	done
	! grep -E 'nix|ruby|aarch64|arm64|musl|qemu|lintian|abigail|yaml' deb || false
	grep -qx musl-tools musl
	! grep -vx 'musl-tools' musl || false
	! grep -vxE 'gcc-aarch64-linux-gnu|libc6-dev-arm64-cross' musl-aarch64 || false
	[ "$(cat html)" = mandoc ]
	for p in nix-bin ruby lintian; do
		grep -qx "$p" packages
	done
}
