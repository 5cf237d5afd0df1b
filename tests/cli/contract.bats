# Every program answers the same questions the same way (contract.bash).

load helper

# program arguments, by what flows in and out; see contract.bash
table() {
	cat <<-'EOT'
	filter ace-expand
	filter ace-score
	filter ace-select -p 0.5
	filter ace-compress -c q8
	filter ace-sign -k key.pem
	filter ace-step -c q8
	filter ace-aggregate
	filter ace-policy
	sink   ace-export -f raw
	source ace-import -f safetensors
	report ace-inspect
	table  ace-advise cluster
	filter ace-cut
	pipe   ace-meter
	answer ace-recv --spool spool
	filter ace-ack -S state
	look   ace-status
	look   ace-archive
	EOT
}

# ask QUESTION [KINDS]: of every program of one of these kinds.
ask() {
	local failed=0 asked=0 kind call dir
	while read -r kind call; do
		[[ " ${2:-filter sink source report answer table} " = *" $kind "* ]] || continue
		[ -x "$BUILD/${call%% *}" ] || continue
		dir=${call%% *}
		asked=1
		mkdir "$dir"
		inputs "$kind" "$dir" "$1"
		# shellcheck disable=SC2086 # the call is words
		if ! (cd "$dir" && bash -eux -c '. "$ROOT/tests/cli/helper.bash"
		    . "$ROOT/tests/cli/contract.bash"; "$@"' contract "contract_$1" \
		    "$kind" $call >answer 2>trace); then
			echo "$call: contract_$1"
			cat "$dir/answer"
			tail -n 4 "$dir/trace"
			failed=1
		fi
	done < <(table)
	[ "$asked" -eq 1 ] && return "$failed"
}

# inputs KIND DIR QUESTION: `big' where the question says so
inputs() {
	local big=
	if sed -n "/^contract_$3()/,/^}/p" "$ROOT/tests/cli/contract.bash" |
	    grep '\<big\>' >/dev/null; then
		big=$2/big
	fi
	if [ "$2" = ace-sign ]; then
		openssl genpkey -algorithm ed25519 -out "$2/key.pem"
		chmod 600 "$2/key.pem"
	fi
	if [ "$1" = source ]; then
		safetensors >"$2/in"
		[ -z "$big" ] || safetensors 1000000 >"$big"
	elif [ "$1" = table ]; then
		printf 'device time\na 1\nb 3\n' >"$2/in"
		[ -z "$big" ] || (echo device time && seq 20000 | sed 's/.*/& 1s/') >"$big"
	else
		mkshards -a -p >"$2/in"
		mkshards -s 1 >"$2/next"
		[ -z "$big" ] || mkshards -n 1M -k layered >"$big"
	fi
}

@test "every program is in the table" {
	for c in "$ROOT"/cmd/ace-*.c; do
		name=${c##*/}
		table | grep -qE " ${name%.c}( |$)" || { echo "$name"; false; }
	done
}

@test "good input: status 0, output, nothing on standard error" {
	ask good
}

@test "a file, standard input and - are the same" {
	ask file
}

@test "empty input is truncated: status 3" {
	ask empty
}

@test "cut at and inside every frame: status 3, truncated" {
	ask cut "filter sink report answer"
}

@test "one byte flipped in every frame: status 3" {
	ask flip "filter sink report answer"
}

@test "garbage after the end: status 3" {
	ask garbage
}

@test "damage by a terminal has a message of its own" {
	ask terminal_damage "filter sink report answer"
}

@test "streams one after another are a stream" {
	ask two "filter sink report answer"
}

@test "no space left: status 4" {
	needs_full
	ask full
}

@test "standard output closed: status 4" {
	ask closed
}

@test "the reader is gone: SIGPIPE, or status 4 without a word" {
	ask reader_gone
}

@test "--help and --version: standard output, status 0" {
	ask help "filter sink source report answer table pipe look"
}

@test "a wrong option: standard error, status 2" {
	ask usage "filter sink source report answer table pipe look"
}

@test "binary is not written to a terminal" {
	ask to_terminal
}

@test "binary is not read from a terminal" {
	ask from_terminal
}

@test "a missing file, a directory: status 4" {
	ask missing
}

@test "short reads and writes, O_NONBLOCK: the same bytes" {
	ask transfer
}

# bats test_tags=long
@test "the same input gives the same bytes, with every kernel" {
	# a table of advice goes through no kernel
	ask same "filter sink source report answer"
}

# bats test_tags=long,asan
@test "an allocation fails: status 4, whichever it is" {
	ask alloc
}

# bats test_tags=long
@test "a reader that leaves at any frame: no word" {
	ask leaves
}

@test "-o FILE: whole or not at all" {
	ask output
}

@test "of several stages where one fails only that one speaks" {
	mkshards -N 3 >in
	flip in 5000
	st=0
	{ ace-score in | ace-select -p 0.5 | ace-compress -c q8 | ace-expand |
	    ace-inspect; } >out 2>err || st=$?
	[ "$st" -eq 3 ]
	cat err
	[ "$(wc -l <err)" -eq 1 ]
	grep -q '^ace-score: corrupt: ' err
}
