load helper

# policy FILE: the lines of its pOLi frames, which are short enough not to be
# packed.
policy() {
	frames "$1" | awk '$2 == "pOLi" { print $1 + 64 }' | while read -r at; do
		tail -c +"$((at + 1))" "$1" | head -c 400 | tr -d '\0' |
		    grep -aE '^[a-z_.]+=[^ ]*$'
	done
}

has() {
	policy out | grep -qx "$1" && return
	policy out
	return 1
}

@test "equation (5): c_max without bandwidth, half way at B_half, then c_min" {
	exits 0 ace-policy ratio --cmin 2 --cmax 300 --half 5Mbit --bandwidth 0bit
	[ "$(tail -n 1 out | cut -f 2)" = 300 ]
	exits 0 ace-policy ratio --cmin 2 --cmax 300 --half 5Mbit --bandwidth 5Mbit
	[ "$(tail -n 1 out | cut -f 2)" = 151 ]
	exits 0 ace-policy ratio --cmin 2 --cmax 300 --half 5Mbit --bandwidth 1Gbit
	[ "$(tail -n 1 out | cut -f 2)" = 2 ]
	# beta = ln 2 / B_half is the same
	exits 0 ace-policy ratio --beta 1.3862943611198906e-7 --bandwidth 5Mbit --values 1000000
	[ "$(tail -n 1 out)" = "$(printf '5000000\t151\t0.211921\t26490')" ]
}

@test "the curve falls" {
	exits 0 ace-policy ratio
	[ "$(wc -l <out)" -eq 12 ]
	tail -n +2 out | cut -f 2 | sort -g -r -c
}

@test "today's point, behind the curve" {
	mkdir -m 700 st
	exits 0 ace-policy ratio -S st
	[ "$(tail -n 2 out)" = "$(printf '%s\n0\t300\t0.106667' \
	    "# today's link, never measured")" ]
	mkshards -n 100k | ace-meter -S st -L 10Mbit >/dev/null
	exits 0 ace-policy ratio -S st --values 1000
	[ "$(wc -l <out)" -eq 14 ]
	[ "$(tail -n 2 out)" = "$(printf '%s\n10000000\t151\t0.211921\t26' \
	    "# today's link")" ]
	flip st/link 400
	exits 3 ace-policy ratio -S st
}

@test "the next interval" {
	exits 0 ace-policy interval --divergence 0.01 --interval 10
	grep -qx interval=10 out
	exits 0 ace-policy interval --divergence 0.0225 --interval 10
	grep -qx interval=7 out
	grep -qx force=0 out
	exits 0 ace-policy interval --divergence 0.04 --interval 10
	grep -qx interval=5 out
	grep -qx force=0 out
	# above four times the target: at once
	exits 0 ace-policy interval --divergence 0.05 --interval 10
	grep -qx interval=1 out
	grep -qx force=1 out
	exits 0 ace-policy interval --divergence 0 --interval 10 --max-interval 12
	grep -qx interval=12 out
	exits 2 ace-policy interval
	says "divergence is missing"
}

@test "in the stream: before the data, the values unchanged" {
	mkshards >in
	exits 0 ace-policy --no-provenance --half 5Mbit --bandwidth 5Mbit in
	has ratio=151
	has bandwidth=5000000
	has "budget_bytes=[1-9][0-9]*"
	mv out policed
	[ "$(frames policed | awk '$2 ~ /pOLi|DATA/ { print $2; exit }')" = pOLi ]
	exits 0 ace-export -f raw policed
	mv out back
	exits 0 ace-export -f raw in
	same out back
}

@test "an unknown link is a slow one; a measured one is believed" {
	mkshards >in
	exits 0 ace-policy -v --cmax 77 in
	has ratio=77
	says "link unknown"
	exits 0 ace-policy -S st in
	has ratio=300
	[ ! -e st/policy ]
}

@test "asked twice, the second answer stands; other keys stay" {
	mkshards >in
	exits 0 ace-policy --bandwidth 1Mbit --target-divergence 0.01 --model-norm 100 in
	mv out first
	exits 0 ace-policy --bandwidth 2Mbit first
	[ "$(policy out | grep -c '^ratio=')" -eq 1 ]
	has bandwidth=2000000
	has "interval=[0-9]*"
}

@test "equation (9): the interval follows the drift, in memory as in the state" {
	# || shard || is about 1000 for a million gaussian values
	mkshards -n 1M -N 3 >in
	exits 0 ace-policy --target-divergence 0.01 --model-norm 400000 --interval 8 in
	# r = 0.0026 of 0.01: sqrt gives 1.98
	[ "$(policy out | grep ^interval= | tr '\n' ' ')" = \
	    "interval=16 interval=32 interval=63 " ] || { policy out; false; }
	mv out long
	for s in 0 1 2; do
		mkshards -n 1M -s $s >shard
		exits 0 ace-policy -S st --target-divergence 0.01 \
		    --model-norm 400000 --interval 8 shard
		policy out | grep ^interval= >>steps
	done
	policy long | grep ^interval= >want
	same want steps
	flip st/policy 700
	exits 3 ace-policy -S st shard
	says "corrupt: .*st/policy"
}

@test "what is missing or wrong is said" {
	mkshards >in
	exits 2 ace-policy --target-divergence 0.01 in
	says "needs --model-norm"
	exits 2 ace-policy --cmin 10 --cmax 5 in
	exits 2 ace-policy --half 0bit in
	exits 2 ace-policy --bandwidth fast in
	exits 2 ace-policy --interval 0 in
	exits 2 ace-policy --min-interval 5 --max-interval 4 in
	exits 2 ace-policy ratio in
	exits 2 ace-policy interval in
	exits 2 ace-policy clusters
	says "'clusters' is neither a file nor known"
}

@test "64 MiB are enough for a large stream" {
	sanitized && skip "the sanitizer's own memory"
	mkshards -n 64M -k fast | peak rss ace-policy >/dev/null
	[ "$(cat rss)" -gt 0 ] && [ "$(cat rss)" -lt 65536 ]
}

# layers: five of them, in seconds; the optimum of each pass is 26.
layers() {
	cat <<-'END'
	# one row a layer
	layer	pt	fc	gt	bc
	a	3s	2	3	2
	b	1000ms	7	1	7
	c	4	1	4	1
	d	1	8	1	8	# behind a row
	e	5	2	5	2
	END
}

@test "dynacomm: the cuts, forward and backward, by each method" {
	layers >in
	exits 0 ace-policy dynacomm --dt 2s in
	grep -qx "$(printf 'forward\tsequential\t36.000000000\t0.00\t1\t5')" out
	grep -qx "$(printf 'forward\tlayers\t27.000000000\t25.00\t5\tall')" out
	grep -qx "$(printf 'forward\toptimal\t26.000000000\t27.78\t3\t2,4,5')" out
	grep -qx "$(printf 'backward\toptimal\t26.000000000\t27.78\t3\t5,3,1')" out
	grep -qx "$(printf 'both\toptimal\t52.000000000\t27.78\t-\t-')" out
	mv out dp
	for m in greedy dp3; do
		exits 0 ace-policy dynacomm --dt 2s --method "$m" - <in
		same out dp
	done
}

@test "dynacomm: bytes over a bandwidth, one pass, one layer" {
	printf 'fc bytes\n9s 875000\n' >in
	exits 0 ace-policy dynacomm --dt 2s --bandwidth 1Mbit in
	[ "$(tail -n 1 out)" = "$(printf 'forward\toptimal\t18.000000000\t0.00\t1\t1')" ]
	exits 2 ace-policy dynacomm --dt 2s in
	says "needs --bandwidth"
	exits 2 ace-policy dynacomm --dt 2s --bandwidth 0bit in
}

@test "dynacomm: a million layers" {
	awk 'BEGIN { print "pt fc"; for (i = 0; i < 1000000; i++)
	    print (i * 7919 % 1000) "us", (1 + i * 104729 % 1000) "us" }' >in
	exits 0 ace-policy dynacomm --dt 5ms in
	cut -f 1-5 out | grep optimal >a
	exits 0 ace-policy dynacomm --dt 5ms --method greedy in
	cut -f 1-5 out | grep optimal >b
	same a b
	exits 2 ace-policy dynacomm --dt 5ms --method dp3 in
	says "at most 2048"
}

@test "deco: the plans of known links; from options or a table" {
	exits 0 ace-policy deco --compute 500ms --bandwidth 50Mbit \
	    --latency 100ms --values 350000000 --phi paper
	[ "$(cut -f 4-7 out | tail -n 2 | tr '\n\t' '  ')" = \
	    "sync 0 1.000000 224.6 paper 2 0.002232 0.5 " ]
	printf '%s\n' 'compute bandwidth latency' '0.5 200Mbit 10ms' \
	    '0.25 200Mbit 300ms' '2 1Gbit 100ms' >in
	exits 0 ace-policy deco --values 350000000 --phi tta --kc 0.02 --kd 0.2 in
	[ "$(grep -w tta out | cut -f 5-7 | tr '\n\t' '  ')" = \
	    "1 0.009107 0.51 2 0.004911 0.275 1 0.169643 2 " ]
	exits 0 ace-policy deco --values 350000000 in
	[ "$(wc -l <out)" -eq 16 ]
	! grep -qi nan out
}

@test "deco: a bandwidth of 0 or none, contradictions" {
	exits 2 ace-policy deco --compute 1s --bandwidth 0bit --latency 0 --values 9
	says "bandwidth"
	exits 2 ace-policy deco --compute 1s --latency 0 --values 9
	says "neither a column 'bandwidth' nor --bandwidth"
	exits 2 ace-policy deco --bandwidth 1bit --latency 0 --values 9
	exits 2 ace-policy deco --compute 1s --bandwidth 1Mbit --values 9
	exits 2 ace-policy deco --compute 1s --bandwidth 1Mbit --latency 0
	exits 2 ace-policy deco --compute 0s --bandwidth 1Mbit --latency 0 --values 9
	exits 2 ace-policy deco --phi exact
	exits 2 ace-policy deco --min-ratio 0
	exits 2 ace-policy cluster --tiers 2 --lambda 1s
	exits 2 ace-policy cluster --groups 2 --theta 1
	exits 2 ace-policy cluster --cosine
	printf 'time\n1\n' >in
	exits 2 ace-policy cluster --lambda 1e300 in
	printf 'pt fc\n1 1\n' >in
	exits 3 ace-policy dynacomm --dt 1e300 in
	says "limit: layer 1"
}

@test "cluster: tiers, then groups in them" {
	cat >in <<-'END'
	device compute bandwidth rtt bytes jitter
	slow1 3 1Mbit 100ms 1e6 1
	fast1 1 8Mbit 10ms 1e6 1
	fast2 1 8Mbit 10ms 1e6 9
	slow2 3 1Mbit 0 1e6 1
	END
	exits 0 ace-policy cluster in
	grep -qx "# 2 tiers, idle 0.100000000 s" out
	[ "$(grep -v '#' out | cut -f 1-4 | tr '\n\t' '  ')" = "device time tier group \
slow1 11.100000000 2 1 fast1 2.010000000 1 1 fast2 2.010000000 1 1 \
slow2 11.000000000 2 1 " ]
	exits 0 ace-policy cluster --groups 2 in
	[ "$(grep -v '#' out | cut -f 3-4 | tail -n 4 | tr '\n\t' '  ')" = \
	    "2 1 1 1 1 2 2 2 " ]
	exits 0 ace-policy cluster --lambda 1h in
	grep -q "^# 1 tier," out
	exits 0 ace-policy cluster --tiers 3 in
	grep -qx "# 3 tiers, idle 0.000000000 s" out
	printf '%s\n' 'device time s1 s2' 'a 1 1 0' 'b 1 9 1' 'c 1 0 2' >in
	exits 0 ace-policy cluster --tiers 1 --cosine --theta 0.7 in
	[ "$(tail -n 3 out | cut -f 4 | tr -d '\n')" = 112 ]
}

@test "bad tables are refused with the line" {
	# COMMAND, what is said, the table
	while IFS='|' read -r command what table; do
		printf '%b' "$table" >in
		exits 3 ace-policy $command in
		says "$what"
	done <<-'END'
	dynacomm --dt 1s|line 3: 1 cell under 2 names|pt fc\n1 1\n1\n
	dynacomm --dt 1s|line 2: fc 'x' is not a time|pt fc\n1 x\n
	dynacomm --dt 1s|line 2: fc '0' is not from|pt fc\n1 0\n
	dynacomm --dt 1s|line 4: pt '-1' is not from|# c\npt fc\n1 1\n-1 1\n
	dynacomm --dt 1s|line 2: pt 'nan' is not a time|pt fc\nnan 1\n
	dynacomm --dt 1s|no column 'pt'|fc\n1\n
	dynacomm --dt 1s|neither a column 'fc' nor 'bc'|pt\n1\n
	dynacomm --dt 1s|both bytes and pt|pt fc bytes\n1 1 1\n
	dynacomm --dt 1s|column 'fc' twice|fc fc\n1 1\n
	dynacomm --dt 1s|no row after line 1|pt fc\n
	dynacomm --dt 1s|without names|
	dynacomm --dt 1s|add up to more than|pt fc\n1e9 1e9\n1e9 1e9\n
	deco --values 9|line 2: bandwidth '0' is not from|compute bandwidth latency\n1 0 1\n
	deco --values 9|line 3: compute '-' is not a time|compute bandwidth latency\n1 1 1\n- 1 1\n
	cluster|line 2: bandwidth '0Mbit' is not from|compute bandwidth rtt bytes\n1 0Mbit 0 1\n
	cluster|neither a column 'time' nor 'bytes'|compute bandwidth rtt\n1 1 1\n
	cluster|line 2: time '0' is not from|time\n0\n
	cluster --groups 2|line 2: os 'linux' is not a number|time os\n1 linux\n
	cluster --theta 1 --cosine|no column to compare devices by|device time\na 1\n
	END
	exits 4 ace-policy cluster nosuchfile
	exits 2 ace-policy dynacomm in
	says "dt is missing"
}

# ---- --deco ----

# asked FILE: what the policy in it says, one key a line
asked() { ace-inspect -v "$1" | sed -n 's/^pOLi *//p'; }

@test "deco in the stream: the budget and the delay of six links" {
	mkshards -n 350000000 -c none >in
	while read -r compute rate latency rule delay share; do
		exits 0 ace-policy --deco --compute "$compute" \
		    --bandwidth "${rate}Mbit" --latency "${latency}ms" \
		    --phi "$rule" --kc 0.02 --kd 0.2 in
		asked out >keys
		[ "$(sed -n 's/delay=//p' keys)" = "$delay" ]
		awk -F = -v share="$share" '$1 == "budget_bytes" {
		    d = $2 / 1.4e9 - share; bad = d > 6e-7 || d < -6e-7; n++ }
		    END { exit bad || n != 1 }' keys
	done <<-'END'
		0.5   5    300 paper 2 0.000223
		0.5   50   100 paper 2 0.002232
		0.5   200  10  paper 2 0.008929
		1     100  200 tta   2 0.008929
		0.5   200  10  tta   1 0.009107
		0.25  200  300 tta   2 0.004911
		0.25  200  300 all   2 0.004911
	END
}

@test "deco: what is not known yet is said, and equation (5) stands in" {
	mkshards >in
	exits 0 ace-policy -v --deco --latency 1ms --compute 1s in
	says 'deco: bandwidth not known yet'
	asked out >keys
	! grep -q delay keys || false
	exits 0 ace-policy --no-provenance in
	asked out | cmp - keys
	exits 0 ace-policy -v --deco --latency 1ms --bandwidth 1Mbit in
	says 'deco: computation not known yet'
	exits 0 ace-policy -v --deco --compute 1s --bandwidth 1Mbit in
	says 'deco: latency not known yet'
	exits 0 ace-policy -v --deco --compute 1s --bandwidth 0bit --latency 0ms in
	says 'deco: bandwidth not known yet'
}

@test "deco: an older policy's delay is replaced, or kept without --deco" {
	mkshards -P delay=9 >in
	exits 0 ace-policy --bandwidth 1Mbit in
	asked out | grep -qx delay=9
	exits 0 ace-policy --deco --bandwidth 1kbit --compute 1s --latency 5s in
	[ "$(asked out | grep -c delay=)" -eq 1 ]
	! asked out | grep -qx delay=9 || false
}

@test "deco: measured contraction sets the price; the state goes on" {
	mkshards -n 100k -N 3 >in
	for s in 0 1 2; do mkshards -n 100k -s $s >"in$s"; done
	set -- --deco --bandwidth 1Mbit --compute 100ms --latency 50ms
	ace-policy "$@" in0 >out
	asked out | grep -qx kc=0.005
	ace-select -b 2k in0 | ace-compress -S st --sync none >/dev/null
	ace-inspect -v st/code | grep -oE '(contraction|share)=.*' >code
	awk -F = '{ v[$1] = $2 } END { a = v["contraction"]; d = v["share"];
	    if (!(a > d && a < 1 && d > 0.003 && d < 0.006)) exit 1
	    printf("kc=%.5g\n", 0.05 * (1 - a) / a * d / (1 - d)) }' code >price
	ace-policy -S st "$@" in0 >o0
	asked o0 | awk -F = '$1 == "kc" { printf("kc=%.5g\n", $2) }' | cmp - price
	# three runs decide as one does
	cp -R st st2
	for s in 1 2; do ace-policy --no-provenance -S st "$@" in$s >o$s; done
	asked o2 >three
	rm st2/policy
	ace-policy --no-provenance -S st2 "$@" in >o
	asked o | tail -n "$(wc -l <three)" | cmp - three
	cmp st/policy st2/policy
}

@test "deco: computation as the shard says, link as the state says; what is corrupt" {
	mkdir -m 700 st
	mkshards -d edge1 >in
	ace-meter -S st -L 8Mbit in >/dev/null
	exits 0 ace-policy -v -S st --deco --latency 20ms --compute 3ms in
	asked out | grep -qx bandwidth=8000000
	exits 2 ace-policy --deco --phi none in
	exits 2 ace-policy --deco --min-ratio 0 in
	# one shard after another of a state that is not one
	perl -pi -e 's/deco/dec0/' st/policy
	exits 3 ace-policy -S st --deco --latency 20ms --compute 3ms in
	says 'corrupt'
}

# budgets: of the last output's shards
budgets() { policy out | sed -n 's/^budget_bytes=//p' | tr '\n' ' '; }

@test "a link that falls is believed at once, one that rises by and by" {
	link() {
		mkshards -s "$2" >shard
		exits 0 ace-policy -S state --bandwidth "$1" --cmin 2 --cmax 200 \
		    shard
		budgets
	}
	# 200 Mbit/s, then 5: the very next shard has the small budget
	fast=$(link 200Mbit 0)
	slow=$(link 5Mbit 1)
	exits 0 ace-policy --bandwidth 5Mbit --cmin 2 --cmax 200 shard
	[ "$slow" = "$(budgets)" ]
	[ "${slow% }" -lt $((${fast% } / 3)) ]
	[ "$(link 5Mbit 2)" = "$slow" ]
	# within the hysteresis nothing moves, beyond it by half of what is new
	[ "$(link 5.2Mbit 3)" = "$slow" ]
	up=$(link 25Mbit 4)
	exits 0 ace-policy --bandwidth 15Mbit --cmin 2 --cmax 200 shard
	[ "$up" = "$(budgets)" ]
	link 25Mbit 5
	exits 0 ace-policy --bandwidth 20Mbit --cmin 2 --cmax 200 shard
	want=$(budgets)
	ace-policy -S state --bandwidth 25Mbit --rise 1 --hysteresis 0 \
	    --cmin 2 --cmax 200 shard >out
	[ "${want% }" -lt "$(budgets)" ]
}

@test "warm-up: the share that is sent falls exponentially" {
	mkshards -n 1M -N 6 >in
	exits 0 ace-policy --bandwidth 0bit --cmax 256 --warmup 4 in
	# 256^(1/4) = 4: factors 4, 16, 64, 256, 256, 256
	[ "$(budgets)" = "1048576 262144 65536 16384 16384 16384 " ]
	exits 0 ace-policy --bandwidth 0bit --cmax 256 in
	[ "$(budgets)" = "16384 16384 16384 16384 16384 16384 " ]
}

@test "accordion: less compression after a window whose norm changed" {
	for s in 0 1 2 3 4 5 6 7; do
		k=gauss
		[ $s -lt 6 ] || k=ramp	# of a much larger norm
		mkshards -n 64k -k $k -s $s -x $s
	done >in
	exits 0 ace-policy -S state --bandwidth 0bit --cmax 128 --accordion 2 in
	# windows of two: the first is critical, and so is the second, since
	# there is none before the first; the norms stay, then they change
	[ "$(policy out | sed -n 's/^critical=//p' | tr -d '\n')" = 11110000 ]
	[ "$(budgets)" = \
	    "4096 4096 4096 4096 2048 2048 2048 2048 " ]
	# the state goes on where the stream ended
	mkshards -n 64k -k ramp -s 8 >next
	exits 0 ace-policy -S state --bandwidth 0bit --cmax 128 --accordion 2 \
	    --ease 4 next
	[ "$(budgets)" = "8192 " ]
	exits 2 ace-policy --deco --accordion 2 in
	exits 2 ace-policy --deco --warmup 2 in
	exits 2 ace-policy --accordion 0 in
}

@test "--explain: the numbers, and the equations they went through" {
	mkshards >in
	exits 0 ace-policy --explain --bandwidth 5Mbit --cmin 2 --cmax 200 \
	    --half 5Mbit --warmup 2 --accordion 3 --target-divergence 0.01 \
	    --model-norm 1000 --interval 4 in
	says 'link: 5e\+06 bit/s, as the option says'
	says 'factor: 2 \+ \(200 - 2\) exp\(.* \* 5e\+06\) = 101, equation \(5\)'
	says 'accordion: critical'
	says 'warm-up: step 0 of 2, so the power 0.5 of it'
	# 101 / 2 to the power of a half is 7.106, of 4 * 336 bytes
	says 'budget: 4 bytes \* 336 values / 7.106 = 189 bytes'
	has budget_bytes=189
	says 'drift: .* = 18.82 / 1000 = 0.01882, equation \(9\); aimed at 0.01'
	says 'interval: 4 \* sqrt\(0.01 / 0.01882\)'
	has interval=3
	mv out explained
	exits 0 ace-policy -q --explain --bandwidth 5Mbit in
	[ ! -s err ]
	exits 0 ace-policy --explain -S st in
	says 'link: never measured'
}

# said FILE: the policy of its shards
said() { ace-inspect -v "$1" | grep -a '^pOLi '; }

@test "--replay: the same decisions, byte for byte" {
	mkshards -n 64k -N 6 -P other=kept >in
	decide='ace-policy --no-provenance -S st --warmup 3 --accordion 2
	    --target-divergence 0.01 --model-norm 9000'
	# a link that changes under way, in three parts
	for k in 1 2 3; do
		mkshards -n 64k -N 2 -s $((2 * k - 2)) -P other=kept |
		    $decide --bandwidth $((k * k))Mbit >part$k
	done
	for k in 1 2 3; do cat part$k; done >recorded
	said recorded >want
	[ "$(sort -u want | grep -c budget_bytes)" -ge 4 ]
	exits 0 ace-policy --no-provenance --replay recorded in
	said out | cmp - want
	# what it wrote, replayed: the same bytes again
	mv out once
	exits 0 ace-policy --no-provenance --replay once in
	same out once
	# from what was coded and delivered, too
	ace-score recorded | ace-select --policy | ace-compress >coded
	exits 0 ace-policy --no-provenance --replay coded in
	said out | cmp - want
	# of several devices', the right one's; of another, none
	mkshards -d other -N 6 -P budget_bytes=1 >foreign
	cat foreign recorded >both
	exits 0 ace-policy --no-provenance --replay both in
	said out | cmp - want
	exits 3 ace-policy --replay foreign in
	says "^ace-policy: mismatch: the recording has no shard 'edge1/0' here"
	exits 3 ace-policy --replay part2 in
	head -c 3000 recorded >short
	exits 3 ace-policy --replay short in
	exits 2 ace-policy --replay recorded -S st in
	exits 2 ace-policy --replay recorded --deco in
	exits 4 ace-policy --replay nowhere in
}

@test "a deadline: no more than the link carries in it, 3 shards after it fell" {
	mkshards -n 1M >shard
	# so little that the limit is all that is measured
	mkshards -n 4k >small
	mkdir -m 700 st
	# what ace-meter leaves in the state, as the link falls
	link() { ace-meter -S st -L "$1" small >/dev/null; }
	link 200Mbit
	ace-policy -S st --cmin 2 --cmax 20 --deadline 100ms shard >out
	fast=$(budgets)
	[ "${fast% }" -gt 500000 ]
	link 5Mbit
	for s in 1 2 3; do
		mkshards -n 1M -s $s >shard
		exits 0 ace-policy -S st --cmin 2 --cmax 20 --deadline 100ms \
		    --explain shard
		says "no more in the 0.1 s that a shard may take"
		got=$(budgets)
		mv out policed
		# 5 Mbit/s carry 62500 bytes in a tenth of a second
		[ "$got" = "62500 " ]
		ace-select --policy policed | ace-compress >coded
		[ "$(wc -c <coded)" -le 63500 ]
	done
	exits 2 ace-policy --deco --deadline 1s shard
}

@test "one layer, and a million" {
	printf 'pt fc\n1ms 2ms\n' >in
	for m in dp greedy dp3; do
		exits 0 ace-policy dynacomm --dt 1ms --method $m in
		[ "$(grep optimal out | cut -f 3,5 | tr '\t' ' ')" = "0.004000000 1" ]
	done
	(echo 'pt fc' && seq 1000000 | sed 's/.*/1us 2us/') >in
	exits 0 cpu 20 ace-policy dynacomm --dt 1ms in
	# the last of 1000 segments arrives at 1000 dt + 1 s, and computes 2 ms
	[ "$(grep optimal out | cut -f 3,5 | tr '\t' ' ')" = "2.002000000 1000" ]
	exits 0 cpu 20 ace-policy dynacomm --dt 1ms --method greedy in
	[ "$(grep optimal out | cut -f 3,5 | tr '\t' ' ')" = "2.002000000 1000" ]
	exits 2 ace-policy dynacomm --dt 1ms --method dp3 in
	says "at most 2048"
	echo '1us nan' >>in
	exits 3 cpu 20 ace-policy dynacomm --dt 1ms in
	says "line 1000002: fc 'nan' is not a time"
}

@test "a shard that is no number synchronises at once, and leaves none behind" {
	for k in nan inf; do
		mkshards -k $k >in
		exits 0 ace-policy -S st$k --bandwidth 1Mbit --accordion 1 \
		    --target-divergence 0.01 --model-norm 100 --interval 50 in
		has interval=1
		has force=1
		! policy out | grep -iE 'nan|inf$' || false
		# and the state can go on
		mkshards -s 1 >next
		exits 0 ace-policy -S st$k --bandwidth 1Mbit --accordion 1 \
		    --target-divergence 0.01 --model-norm 100000 next
		has critical=1
		has interval=2
	done
}

@test "contradictions, and numbers that are none" {
	while read -r options; do
		exits 2 ace-policy $options </dev/null
	done <<-'END'
		ratio --beta 1 --half 5Mbit
		ratio --cmin 5 --cmax 2
		ratio --half 0bit
		ratio --bandwidth nan
		ratio --bandwidth 1e400bit
		ratio --bandwidth -1bit
		interval --divergence nan
		interval --divergence inf
		interval --divergence 1 --min-interval 5 --max-interval 2
		cluster --tiers 2 --lambda 1
		cluster --groups 2 --theta 1
		dynacomm --dt -1ms
		deco --compute 0s --bandwidth 1Mbit --latency 0 --values 9
		--target-divergence 0
		--target-divergence 0.01 --model-norm 0
		--target-divergence 0.01 --model-norm nan
		--deco --warmup 3
		--deadline -1s
	END
	# the ends of what is allowed: no number is lost
	for options in "ratio --bandwidth 0bit --values 0" "ratio --beta 0" \
	    "ratio --beta 1e300 --bandwidth 1bit" "interval --divergence 0" \
	    "interval --divergence 1e300"; do
		exits 0 ace-policy $options
		! grep -qiE 'nan|inf' out || { cat out; false; }
	done
	mkshards -t w:0 >in
	for options in "--deadline 0s --bandwidth 1Mbit" "--bandwidth 0bit" \
	    "--target-divergence 1e-300 --model-norm 1e300 --bandwidth 1bit" \
	    "--deco --compute 1s --bandwidth 1bit --latency 0s"; do
		mkshards -k zeros -t w:9 >zeros
		for f in in zeros; do
			exits 0 ace-policy $options $f
			! policy out | grep -iE 'nan|inf$' || false
		done
	done
}
