# ace COMMAND is ace-COMMAND.

load helper

@test "ace COMMAND has the bytes, messages and status of its program" {
	mkshards >in
	makes front ace compress -c q8 in
	exits 0 ace-compress -c q8 in
	same out front
	head -c 100 in >part
	refuses 3 '^ace-inspect: truncated: ' ace inspect part
	refuses 2 "^Try 'ace-inspect --help'" ace inspect --nonsense
}

@test "a program beside ace is preferred to those in PATH" {
	sanitized && skip "the sanitizer's libraries are looked for by path"
	mkdir a b
	cp "$BUILD/ace" a/
	for d in a b; do
		printf '#!/bin/sh\necho from %s: "$@"\n' $d >$d/ace-mine
		chmod +x $d/ace-mine
	done
	PATH=$PWD/b:$PATH exits 0 a/ace mine 'one two' three
	[ "$(cat out)" = "from a: one two three" ]
	rm a/ace-mine
	PATH=$PWD/b:$PATH exits 0 a/ace mine
	[ "$(cat out)" = "from b:" ]
	PATH=$PWD/b:$PATH exits 0 ace mine
	[ "$(cat out)" = "from b:" ]
}

@test "help lists exactly the programs that exist" {
	makes help ace help
	exits 0 ace --help
	same out help
	exits 2 ace
	sed -nE 's/^  ([a-z]+)  +[A-Z].*/\1/p' help | grep -vx help | sort >listed
	for c in "$ROOT"/cmd/ace-*.c; do
		c=${c##*/ace-}
		echo "${c%.c}"
	done | { cat; echo add example relay remove watch | tr ' ' '\n'; } | sort | diff - listed
	while read -r c; do
		makes front ace help "$c"
		case $c in
		# commands of ace-cloud
		add | example | relay | remove | watch) exits 0 ace-cloud "$c" --help ;;
		*) exits 0 "ace-$c" --help ;;
		esac
		same out front
		exits 0 ace help "ace-$c"
		same out front
	done <listed
	exits 0 ace help ace
	same out help
}

@test "an unknown command: status 2, and the name of the missing program" {
	exits 2 ace nonsense
	says "^ace: no program 'ace-nonsense' beside ace or in PATH: install it, or see 'ace --help'"
	refuses 2 "no program 'ace-nonsense' beside ace" ace help nonsense
	refuses 2 "no program 'ace-nonsense' beside ace" ace help ace-nonsense
	refuses 2 "'' is not a valid name of a command" ace help ace-
	refuses 2 "is not a valid name of a command" ace ../ace-inspect
	refuses 2 "'' is not a valid name of a command" ace ''
	refuses 2 "option '--nonsense' is unknown" ace --nonsense
	mkdir ace-folder
	PATH=$PWD:$PATH exits 4 ace folder
	says "^ace: 'ace-folder': "
}
