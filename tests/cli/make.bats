# The Makefile as somebody finds it: with how many processors it builds, and what it
# says where something is missing.  tests/fresh asks the same on a bare machine.
# bats file_tags=plain
load helper

# built TARGET [VARIABLE=VALUE]...: make, as from a shell
built() {
	env -u MAKEFLAGS -u MFLAGS -u MAKELEVEL -u DEPS -u JOBS "${@:2}" \
	    make -C "$ROOT" BUILD="$PWD/b" "$1"
}

# jobs WANT ARGS...: with that, make hands on this number of jobs, and warns of nothing
jobs() {
	local want=$1
	shift
	exits 0 env -u MFLAGS -u MAKELEVEL -u DEPS MAKEFLAGS="${FLAGS:-}" \
	    make -n -C "$ROOT" -f "$PWD/mk" BUILD="$PWD/b" JOBS=7 PROGS= LIBS= "$@"
	[ ! -s err ] || { cat err; return 1; }
	[ "$(sed -n 's/^flags:.* \(-j[0-9]*\).*/\1/p' out)" = "$want" ] ||
	    { grep '^flags:' out; return 1; }
}

@test "it builds with all processors, unless -j says with how many" {
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
	# what runs something comes one after the other, and builds with all
	jobs '' deps lint
	jobs -j7 again
	jobs -j1 -j1 again
	jobs -j3 -j3 again
}

# without PROGRAM...: PATH has none of them
without() {
	local s
	s=$(system)
	(cd "$s" && rm -f "$@")
	PATH=$s
}

@test "without compiler and libraries: they are named, in one line, and nothing is begun" {
	without cc gcc pkg-config pkgconf
	for t in all check demo; do
		exits 2 built $t DEPS=no
		[ "$(grep -vc '^make' err)" -eq 1 ]
		says '^missing: gcc .*pkg.*libarchive.* \(make deps installs them\)$'
		[ ! -e b ]
	done
	says openblas
}

@test "without bats: the same, and who is not root reads what root has to type" {
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
