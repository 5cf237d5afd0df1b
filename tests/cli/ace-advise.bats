load helper

t() { printf '%b' "$1" >in; }

@test "each command has its own options; options of other commands are refused" {
	exits 0 ace-advise --help
	for c in ratio dynacomm deco cluster; do
		grep -qE "^  $c  +[A-Z]" out
	done
	[ "$(grep -cE '^  [a-z]+  +[A-Z]' out)" -eq 4 ]
	declare -A own=(
	    [ratio]="ratio 2"
	    [dynacomm]="cuts 1s"
	)
	for c in "${!own[@]}"; do
		shows "^usage: ace-advise $c " ace-advise $c --help
		mv out help
		while read -r option value; do
			grep -qE -- "--$option [A-Z]" help
			for d in "${!own[@]}"; do
				[ $d != $c ] || continue
				exits 2 ace-advise $d "--$option" $value </dev/null
				says "^ace-advise: option '--$option' is unknown"
				says "^Try 'ace-advise $d --help'"
				[ ! -s out ]
			done
		done < <(tr , '\n' <<<"${own[$c]}")
	done
	for d in deco cluster; do
		exits 2 ace-advise $d --bandwidth 1Mbit </dev/null
	done
	exits 2 ace-advise cluster --cluster 3 </dev/null
}

@test "a missing or unknown command is refused" {
	refuses 2 "^ace-advise: expected a command as the first word" ace-advise
	exits 2 ace-advise -v
	refuses 2 "^ace-advise: command 'clusters' is unknown" ace-advise clusters
	exits 2 ace-advise -- ratio
	refuses 2 "ratio takes no FILE" ace-advise ratio in
	# options that moved here from ace-policy
	exits 4 ace-policy ratio
	exits 2 ace-policy --cluster 3
}

@test "equation (5): c_max without bandwidth, half way at B_half, then c_min" {
	while read -r rate c; do
		exits 0 ace-advise ratio --ratio 2,300,5Mbit --bandwidth $rate
		[ "$(awk 'NR == 2 { print $2 }' out)" = "$c" ]
	done <<-'END'
		0bit 300
		5Mbit 151
		1Gbit 2
	END
	exits 0 ace-advise ratio --ratio 2,300,5Mbit --bandwidth 5Mbit
	grep -qx ' *5000000 *151 *0.211921' out
}

@test "columns are aligned" {
	exits 0 ace-advise ratio --ratio 2,300,5Mbit
	[ "$(awk '{ print length }' out | sort -u | wc -l)" -eq 1 ]
	# a long list of cuts is printed in full
	(echo 'pt fc' && seq 1000 | sed 's/.*/1us 2us/') >in
	exits 0 ace-advise dynacomm --cuts 10us in
	grep -qE '^forward +sequential +0\.003010000 +0\.00 +1  1000$' out
	[ "$(awk '$2 == "optimal" { print $NF }' out | tr , '\n' | wc -l)" -gt 10 ]
}

@test "a table of ratio has one row per octave, and its ratios fall" {
	exits 0 ace-advise ratio
	[ "$(wc -l <out)" -eq 12 ]
	[ "$(head -n 1 out | xargs)" = "bandwidth ratio bits" ]
	[ "$(awk 'NR > 1 { print $1 }' out | paste -sd ' ')" = "156250 312500 625000 1250000 \
2500000 5000000 10000000 20000000 40000000 80000000 160000000" ]
	grep -qx ' *10000000 *151 *0.211921' out
	awk 'NR > 1 { print $2 }' out | sort -g -r -c
}

@test "ratio --bandwidth prints one point instead of the curve" {
	exits 0 ace-advise ratio --bandwidth 0bit --ratio 9,9
	[ "$(tail -n +2 out | xargs)" = "0 9 3.55556" ]
}

# layers: print five layers, in seconds; each pass takes 26 s at best
layers() {
	cat <<-'END'
	# one row per layer
	layer	pt	fc	gt	bc
	a	3s	2	3	2
	b	1000ms	7	1	7
	c	4	1	4	1
	d	1	8	1	8	# a comment after a row
	e	5	2	5	2
	END
}

@test "dynacomm: the cuts, forward and backward" {
	layers >in
	exits 0 ace-advise dynacomm --cuts 2s in
	grep -qx 'forward *sequential *36.000000000 *0.00 *1 *5' out
	grep -qx 'forward *layers *27.000000000 *25.00 *5 *all' out
	grep -qx 'forward *optimal *26.000000000 *27.78 *3 *2,4,5' out
	grep -qx 'backward *optimal *26.000000000 *27.78 *3 *5,3,1' out
	grep -qx 'both *optimal *52.000000000 *27.78 *- *-' out
}

@test "dynacomm: bytes over a bandwidth, one pass, one layer" {
	t 'fc bytes\n9s 875000\n'
	exits 0 ace-advise dynacomm --cuts 2s --bandwidth 1Mbit in
	[ "$(tail -n 1 out | xargs)" = 'forward optimal 18.000000000 0.00 1 1' ]
	refuses 2 "needs --bandwidth" ace-advise dynacomm --cuts 2s in
	exits 2 ace-advise dynacomm --cuts 2s --bandwidth 0bit in
	t 'fc pt\n9s 1s\n'
	exits 2 ace-advise dynacomm --cuts 2s --bandwidth 1Mbit in
	says "bandwidth needs a column 'bytes'"
}

@test "deco: every column, by the formulas of the page" {
	t 'compute bandwidth latency values\n500ms 50Mbit 100ms 350e6
1s 1Gbit 20ms 1e6\n0.25 200Mbit 300ms 3.5e8\n'
	exits 0 ace-advise deco in
	[ "$(head -n 1 out | xargs)" = "compute bandwidth latency rule delay ratio \
step speedup phi steps faster" ]
	[ "$(awk 'NR > 1 { print $4 }' out | sort | uniq -c | tr -s ' \n' ' ')" = \
	    " 3 additive 3 paper 3 s2 3 sync 3 tta " ]
	awk -v kc=0.005 -v kd=0.3 'function max(a, b) { return a > b ? a : b }
	    function off(a, b) { return a > b * 1.001 + 1e-9 || a < b * 0.999 - 1e-9 }
	    FNR > 1 { T = $1; a = $2; b = $3; n = $5; d = 1 / $6
		S = T == 1 ? 32e6 : 11.2e9; x = d * S / a
		step = max(max(T, x), (T + b + x) / (n + 1))
		sync = T + b + S / a
		N = 1 + kc * (1 - d) / d + kd * n
		phi = $9
		if ($4 == "additive") phi = N - 1
		if ($4 == "s2") phi = 1 / (d * (1 - d) ^ (n - 1))
		if ($4 == "paper") phi = (1 - d) / (d * (1 - d / 2) ^ n)
		if (off($7, step) || off($8, sync / step) || off($10, N) ||
		    off($11, sync / (N * step)) || ($9 != "-" && off($9, phi)) ||
		    ($9 == "-") != ($4 == "tta" || $4 == "sync")) {
			print; bad = 1 } }
	    END { exit bad }' out
}

@test "deco: the delay is at most 64 steps, and the ratio at most 1e5" {
	# rule NAME: print the delay and the ratio of the rule
	rule() { awk -v r="$1" '$4 == r { print $5, $6 }' out; }
	t 'compute bandwidth latency values\n1ms 1Mbit 63.5ms 1e3\n'
	exits 0 ace-advise deco in
	[ "$(rule paper)" = "64 64" ]
	[ "$(rule tta)" != "64 64" ]
	# with one more step of delay, the rules paper and tta agree
	t 'compute bandwidth latency values\n1ms 1Mbit 64.5ms 1e3\n'
	exits 0 ace-advise deco in
	[ "$(rule paper)" = "$(rule tta)" ]
	# 2 steps cover the latency of 1 s; 321 bit/s give a ratio just below the limit of 1e5
	t 'compute bandwidth latency values\n1s 321bit 1s 1e6\n'
	exits 0 ace-advise deco in
	[ "$(rule paper)" = "2 99688.5" ]
	t 'compute bandwidth latency values\n1s 319bit 1s 1e6\n'
	exits 0 ace-advise deco in
	[ "$(rule paper)" = "2 100000" ]
}

@test "cluster: the number of tiers, and the time of a round in each" {
	# a second tier pays if, without it, the devices wait longer in all than the mean of their
	# times: 2.8 and 1.47 s with 2.4, 1.4 and 1.23 s with 1.7, but 1 and 1.17 s with 1.5
	for k in 2.4:2 1.7:2 1.5:1; do
		t "device time\na 1s\nb 1s\nc ${k%:*}s\n"
		shows "^# ${k#*:} tier" ace-advise cluster in
	done
	awk 'BEGIN { print "device time"; for (l = 1; l <= 20; l++)
	    for (i = 0; i < 40; i++) print l "." i, l }' >in
	exits 0 ace-advise cluster in
	grep -qx '# 16 tiers, idle 160.000000000 s' out
	grep -qx '# tier 1: 40 devices, a round of 1.000000000 s' out
	# the number of tiers does not depend on the unit of the times
	for k in '1e7 9e6' '1e4 9e3'; do
		t "device time\na ${k% *}\nb ${k#* }\n"
		shows '^# 1 tier' ace-advise cluster in
	done
	# without names, devices are numbered
	t 'time x\n1 1\n2 2\n3 3\n'
	exits 0 ace-advise cluster in
	grep -qx '# 1 tier, idle 3.000000000 s' out
	grep -qx '# tier 1: 3 devices, a round of 3.000000000 s' out
	[ "$(awk '!/#/ { print $3 }' out | paste -sd ' ')" = "device 1 2 3" ]
	# control characters in names are printed as ?
	t 'device time\na\033b\177 1\nb 1\n'
	shows '^ *1 *1.000000000  a?b?$' ace-advise cluster in
}

@test "cluster: devices are put into tiers" {
	cat >in <<-'END'
	device compute bandwidth rtt bytes jitter
	slow1 3 1Mbit 100ms 1e6 1
	fast1 1 8Mbit 10ms 1e6 1
	fast2 1 8Mbit 10ms 1e6 9
	slow2 3 1Mbit 0 1e6 1
	END
	exits 0 ace-advise cluster in
	grep -qx "# 2 tiers, idle 0.100000000 s" out
	[ "$(grep -v '#' out | xargs)" = "tier time device \
2 11.100000000 slow1 1 2.010000000 fast1 1 2.010000000 fast2 \
2 11.000000000 slow2" ]
}

@test "bad tables are refused with the line" {
	# columns: command, expected message, table
	while IFS='|' read -r command what table; do
		printf '%b' "$table" >in
		refuses 3 "$what" ace-advise $command in
		[[ $command != dynacomm* || ! -s out ]]
	done <<-'END'
	dynacomm --cuts 1s|line 3 has 1 cell, but the table has 2 columns|pt fc\n1 1\n1\n
	dynacomm --cuts 1s|line 2: fc 'x' is not a time|pt fc\n1 x\n
	dynacomm --cuts 1s --bandwidth 1bit|limit: line 2: sending 'bytes' would take 8e\+14 s|bytes fc\n1e14 1\n
	dynacomm --cuts 1s|line 2: fc '0': expected|pt fc\n1 0\n
	dynacomm --cuts 1s|line 4: pt '-1': expected|# c\npt fc\n1 1\n-1 1\n
	dynacomm --cuts 1s|line 2: pt 'nan' is not a time|pt fc\nnan 1\n
	dynacomm --cuts 1s|column 'pt' is missing|fc\n1\n
	dynacomm --cuts 1s|expected a column 'fc' or 'bc'|pt\n1\n
	dynacomm --cuts 1s|columns 'bytes' and 'pt' exclude each other|pt fc bytes\n1 1 1\n
	dynacomm --cuts 1s|column 'fc' twice|fc fc\n1 1\n
	dynacomm --cuts 1s|no row after the column names in line 1|pt fc\n
	dynacomm --cuts 1s|no line of column names|
	dynacomm --cuts 1s|add up to more than|pt fc\n1e9 1e9\n1e9 1e9\n
	cluster|line 2: time '1e9': expected 1e-09 to 1e\+07 s|time\n1e9\n
	cluster|limit: line 2: a round would take 20000000 s, expected at most 10000000 s: check its times, bandwidth and bytes|compute bandwidth rtt bytes\n1e7 1bit 1e7 0\n
	deco|line 2: values '3.2e13': expected 1 to 3.125e\+13|compute bandwidth latency values\n1 1 1 3.2e13\n
	deco|line 2: bandwidth '0': expected|compute bandwidth latency values\n1 0 1 9\n
	deco|line 3: compute '-' is not a time|compute bandwidth latency values\n1 1 1 9\n- 1 1 9\n
	deco|line 2: compute '0s': expected|compute bandwidth latency values\n0s 1 1 9\n
	deco|line 2: values '0': expected|compute bandwidth latency values\n1s 1 1 0\n
	deco|column 'bandwidth' is missing|compute\n1\n
	deco|column 'values' is missing|compute bandwidth latency\n1 1 1\n
	cluster|line 2: bandwidth '0Mbit': expected|compute bandwidth rtt bytes\n1 0Mbit 0 1\n
	cluster|without a column 'time', column 'bytes' is needed|compute bandwidth rtt\n1 1 1\n
	cluster|line 2: time '0': expected|time\n0\n
	END
	exits 4 ace-advise cluster nosuchfile
	t 'pt fc\n1 1\n'
	refuses 2 "the time of a cut is missing: add --cuts" ace-advise dynacomm in
}

@test "options that exclude each other, and invalid numbers, are refused" {
	while read -r options; do
		exits 2 ace-advise $options </dev/null
	done <<-'END'
		ratio --ratio 2,300,0bit
		ratio --bandwidth nan
		ratio --bandwidth 1e400bit
		ratio --bandwidth 1e300Gbit
		ratio --bandwidth -1bit
		dynacomm --cuts -1ms
		dynacomm --cuts 1e30
	END
	# at the limits of the options no result overflows
	for options in "ratio --bandwidth 0bit" "ratio --ratio 2,300,1e300bit" \
	    "ratio --ratio 2,300,1e-300bit --bandwidth 1bit"; do
		exits 0 ace-advise $options
		! grep -qiE 'nan|inf' out || { cat out; false; }
	done
}
