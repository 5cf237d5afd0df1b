# examples/deco.sh: the network that it computes, and what it shows.
load helper

@test "the network keeps the time that the policy reckons with" {
	while read -r rate ms delay share; do
		bits=$(awk "BEGIN { print $share * 32 * 252384 }")
		exits 0 emulate pace "$rate $ms" 0.1 "$bits" "$delay" 1000
		# max(T, x, (T + b + x) / (n + 1)); the first steps wait for nothing
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

@test "on the slowest link five times faster than synchronous, at least; the same again" {
	exits 0 emulate fixed 1 0 0.6 11
	emulate time "5 300" <out >sync
	set -- emulate deco "5 300" 11 0 0.6 1 0.6 2 0.4 3 0.4 4 0.3
	exits 0 "$@"
	mv out deco
	exits 0 "$@"
	same out deco
	awk -v sync="$(awk '{ print $NF }' sync)" \
	    '{ exit !($1 > 0 && sync / $1 >= 5.07) }' deco
}
