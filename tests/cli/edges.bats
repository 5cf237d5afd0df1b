# Sixty-four devices at one aggregator: from files, from pipes and from a
# spool, at most 64 MiB and 2 MiB for each; and one that is slow.
# bats file_tags=plain
load helper
load values

edges=64
setup() {
	cd "$BATS_TEST_TMPDIR" || return
	for i in $(seq $edges); do
		mkshards -d "edge$i" -x "$i" -k fast -n 150k -c q8 >"e$i"
	done
	all=()
	for i in $(seq $edges); do all+=("e$i"); done
}

# bounded CMD...: within the memory that was promised
bounded() {
	exits 0 peak kib timeout "$HANG" "$@"
	echo "# $(cat kib) KiB" >&3
	sanitized || [ "$(cat kib)" -le $(((64 + 2 * edges) * 1024)) ]
}

# through CMD...: every file in all through a pipe of its own; when it is rid of
# it, it says so in a file
through() {
	local i
	for i in $(seq $edges); do
		[ -p "p$i" ] || mkfifo "p$i"
		[ "$i" = "${without:-}" ] ||
		    { cat "e$i" >"p$i" && : >"rid$i"; } 3>&- &
	done
	"$@" "${all[@]/#e/p}"
}

@test "files, pipes and a spool give the same bytes, in bounded memory" {
	agg=(ace-aggregate --no-provenance)
	bounded "${agg[@]}" "${all[@]}"
	mv out want
	[ "$(field n want)" = $edges ]
	through bounded "${agg[@]}"
	same out want
	bounded "${agg[@]}" --deadline 1h "${all[@]}"
	same out want
	through bounded "${agg[@]}" --quorum 63 --deadline 1h
	same out want
	for i in $(seq $edges); do
		ace-recv --spool spool --sync none "e$i" >/dev/null
	done
	bounded "${agg[@]}" --spool spool --sync none --expect $edges --steps 1
	same out want
}

# bats test_tags=long
@test "rules, too" {
	bounded ace-aggregate --no-provenance --rule median "${all[@]}"
	mv out want
	through bounded ace-aggregate --no-provenance --rule median --deadline 1h
	same out want
}

@test "a slow one costs the others nothing before the deadline" {
	mkfifo p64
	without=64
	through timeout "$HANG" ace-aggregate --no-provenance --deadline 1h \
	    -o got 3>&- &
	pid=$!
	# the others are rid of theirs while nothing is over
	exec 9>p64
	head -c 100 e64 >&9
	rid() { [ "$(find . -name 'rid*' | wc -l)" -eq 63 ]; }
	wait_for rid
	kill -0 "$pid"
	[ ! -e got ]
	tail -c +101 e64 >&9
	exec 9>&-
	wait "$pid"
	ace-aggregate --no-provenance "${all[@]}" >want
	same got want
}

# at_deadline DEADLINE: with a part of the last; those before that are still on their way
# are ended
at_deadline() {
	local got=0
	# shellcheck disable=SC2046 # numbers
	! [ -e p1 ] || kill -9 $(jobs -p) 2>/dev/null
	rm -f p*
	mkfifo p64
	exec 9<>p64
	head -c 5000 e64 >&9
	without=64 through exits 0 timeout "$HANG" ace-aggregate \
	    --no-provenance --quorum 63 --deadline "$1" || got=$?
	exec 9>&-
	[ "$got" -eq 0 ] && same out want
}

# bats test_tags=long
@test "nor at it" {
	exits 0 ace-aggregate --no-provenance "${all[@]:0:63}"
	mv out want
	in_time at_deadline
}
