# examples/deco.sh: its emulated network, and its results.
# bats file_tags=plain
load helper

@test "the emulated network has the times of the policy's model" {
	while read -r rate ms delay share; do
		bits=$(awk "BEGIN { print $share * 32 * 252384 }")
		exits 0 emulate pace "$rate $ms" 0.1 "$bits" "$delay" 1000
		# max(T, x, (T + b + x) / (n + 1)) of T computing, x sending, b latency, n delay
		awk -v x="$(awk "BEGIN { print $bits / $rate / 1e6 }")" \
		    -v b="$ms" -v n="$delay" '{ b /= 1000; t = 0.1 > x ? 0.1 : x
		    s = (0.1 + b + x) / (n + 1); t = s > t ? s : t
		    d = $1 / t - 1; exit !(d > -0.01 && d < 0.01) }' out
	done <<-'END'
		5 300 0 1
		5 300 3 0.05
		5 300 9 0.01
		50 100 1 0.3
		200 10 0 0.1
		200 10 4 1
	END
	exits 2 emulate pace "5" 0.1 1 0 10
	exits 2 emulate pace "0 300" 0.1 1 0 10
}

@test "deco is at least five times faster than synchronous training on the slowest link" {
	exits 0 emulate fixed 1 0 0.6 11
	emulate time "5 300" <out >sync
	set -- emulate deco "5 300" 11 0 0.6 1 0.6 2 0.4 3 0.4 4 0.3
	makes deco "$@"
	exits 0 "$@"
	same out deco
	awk -v sync="$(awk '{ print $NF }' sync)" \
	    '{ exit !($1 > 0 && sync / $1 >= 5.07) }' deco
}

# seconds WAY DELAY RATE: print the time of dense gradients over $link
seconds() {
	emulate "$1" 1 "$2" "$3" 11 | emulate time "$link" | awk '{ print $NF }'
}

# bats test_tags=long
@test "deco is faster than its fixed plans, also if devices apply their own gradients immediately" {
	link='200 300'
	# fixed plans with the same delays and no compression, which deco could have chosen
	exits 0 emulate deco "$link" 11 0 0.6 1 0.6 2 0.4 3 0.4 4 0.3
	for plan in '2 0.4' '3 0.4' '4 0.3'; do
		awk -v t="$(seconds fixed $plan)" '{ exit !($1 > 0 && $1 < t) }' out
	done
	# the same if devices apply their own gradients immediately, as in DGA
	exits 0 emulate deco-ahead "$link" 11 0 0.6 1 0.6 2 0.6 3 0.4 4 0.4
	for plan in '2 0.6' '3 0.4' '4 0.4'; do
		awk -v t="$(seconds ahead $plan)" '{ exit !($1 > 0 && $1 < t) }' out
	done
}

@test "without a delay, devices that apply their own gradients immediately have no advantage" {
	makes want emulate fixed 1 0 0.6 11
	exits 0 emulate ahead 1 0 0.6 11
	# equal except for rounding
	awk 'NR == FNR { t = $5; next } { d = $5 / t - 1
	    exit !(d > -0.01 && d < 0.01) }' want out
	exits 2 emulate dga 1 0.6 11
	exits 2 emulate pace "5 300 8 200" 0.1 1 0 10	# the trace is too short
}
