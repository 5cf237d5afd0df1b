# Sixty-four devices at one aggregator, from files, from pipes and from a spool: at most
# 64 MiB, plus 2 MiB per device.
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

# bounded CMD...: CMD stays within that memory
bounded() {
	exits 0 peak kib timeout "$HANG" "$@"
	echo "# $(cat kib) KiB" >&3
	sanitized || [ "$(cat kib)" -le $(((64 + 2 * edges) * 1024)) ]
}

# through CMD...: run CMD with each file in `all' through its own pipe
through() {
	local i
	for i in $(seq $edges); do
		[ -p "p$i" ] || mkfifo "p$i"
		cat "e$i" >"p$i" 3>&- &
	done
	"$@" "${all[@]/#e/p}"
}

@test "files, pipes and a spool give the same bytes, in bounded memory" {
	agg=(ace-aggregate --omit provenance)
	bounded "${agg[@]}" "${all[@]}"
	mv out want
	[ "$(field n want)" = $edges ]
	through bounded "${agg[@]}"
	same out want
	for i in $(seq $edges); do
		ace-recv --spool spool --sync none "e$i" >/dev/null
	done
	bounded "${agg[@]}" --spool spool --sync none --devices $edges --rounds 1
	same out want
}

# bats test_tags=long
@test "rules, too" {
	bounded ace-aggregate --omit provenance --rule median "${all[@]}"
	mv out want
	through bounded ace-aggregate --omit provenance --rule median
	same out want
}
