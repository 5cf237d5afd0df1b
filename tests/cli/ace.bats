# ace COMMAND is ace-COMMAND.

load helper

@test "a command is its program: same bytes, same words, same status" {
	mkshards >in
	exits 0 ace compress -c q4 in
	mv out front
	exits 0 ace-compress -c q4 in
	same out front
	head -c 100 in >part
	exits 3 ace inspect part
	says '^ace-inspect: truncated: '
	exits 2 ace inspect --nonsense
	says "^Try 'ace-inspect --help'"
}

@test "the program beside it comes before those in PATH" {
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

@test "help lists every program, and no other" {
	exits 0 ace help
	mv out help
	exits 0 ace --help
	same out help
	exits 2 ace
	sed -nE 's/^  ([a-z]+)  +[A-Z].*/\1/p' help | grep -vx help | sort >listed
	for c in "$ROOT"/cmd/ace-*.c; do
		c=${c##*/ace-}
		echo "${c%.c}"
	done | { cat; echo add example relay remove watch | tr ' ' '\n'; } | sort | diff - listed
	while read -r c; do
		exits 0 ace help "$c"
		mv out front
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

@test "no such command: status 2, and what was looked for" {
	exits 2 ace nonsense
	says "^ace: command 'nonsense' is unknown: program ace-nonsense is not installed"
	exits 2 ace help nonsense
	says "program ace-nonsense is not installed"
	exits 2 ace help ace-nonsense
	says "program ace-nonsense is not installed"
	exits 2 ace help ace-
	says "program ace- is not installed"
	exits 2 ace ../ace-inspect
	says "is not a valid name of a command"
	exits 2 ace ''
	exits 2 ace --nonsense
	says "option '--nonsense' is unknown"
	mkdir ace-folder
	PATH=$PWD:$PATH exits 4 ace folder
	says "^ace: 'ace-folder': "
}
