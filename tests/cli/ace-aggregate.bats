load helper
load values

# edges N OPTION...: write e1 ... eN, the same step of N devices
edges() {
	local i
	for i in $(seq "$1"); do
		mkshards -d "edge$i" -x "$i" "${@:2}" >"e$i"
	done
}

@test "weighted mean and sum" {
	mkshards -d a -k ramp -w 1 >a
	mkshards -d b -k ramp -w 2 -c f16 >b
	mkshards -d c -k ramp -w 0.25 -s 0 >c
	for f in a b c; do raw $f >$f.f32; done
	exits 0 ace-aggregate a b c
	[ ! -s err ]
	raw out >m.f32
	each '$v[3] == f(($v[0] + 2 * $v[1] + 0.25 * $v[2]) / 3.25)' \
	    a.f32 b.f32 c.f32 m.f32
	[ "$(shards out)" = "contributors=a,b,c device=aggregate run=test step=0 base=0 weight=3.25 samples=96 kind=3 flags=0 n=3 records=3 nonzero=335 dropped=0 status=0" ]
	exits 0 ace-aggregate --rule sum -d cloud a b c
	raw out >s.f32
	each '$v[3] == $v[0] + 2 * $v[1] + 0.25 * $v[2]' \
	    a.f32 b.f32 c.f32 s.f32
	[ "$(field kind out)" -eq 2 ]
	[ "$(field device out)" = cloud ]
}

@test "the base version is the oldest of the contributions', in any order" {
	mkshards -s 9 -d a -H base=4 >a
	mkshards -s 9 -d b -H base=2 >b
	mkshards -s 9 -d c -H base=7 >c
	for order in "a b c" "b c a" "c a b"; do
		exits 0 ace-aggregate $order
		[ "$(field base out)" -eq 2 ]
	done
}

@test "the weights are those that the shards state" {
	flat 1 4 -d a -w 5 -s 1 >a
	flat 5 4 -d b -w 1 -s 1 >b
	exits 0 ace-aggregate a b
	[ "$(field step out)" -eq 1 ]
	raw out >m
	each '$v[0] == f(10 / 6)' m
}

@test "files, pipes or one stream, in any order: the same bytes" {
	edges 4 -n 70000 -c topk:0.2
	mkshards -d edge5 -x 5 -n 70000 -w 0.3 >e5
	makes want ace-aggregate e1 e2 e3 e4 e5
	for order in "e5 e4 e3 e2 e1" "e3 e1 e5 e2 e4" "e2 e5 e1 e4 e3"; do
		exits 0 ace-aggregate $order
		same out want
		cat $order >all
		exits 0 ace-aggregate all
		same out want
		exits 0 ace-aggregate <all
		same out want
	done
	exits 0 ace-aggregate <(cat e1) <(cat e4) e5 <(cat e2) e3
	same out want
}

@test "several steps, from files and from one stream" {
	for i in 1 2 3; do
		mkshards -d "edge$i" -x "$i" -s 7 -N 4 >"e$i"
	done
	exits 0 ace-aggregate e1 e2 e3
	[ "$(field step out | tr '\n' ' ')" = "7 8 9 10 " ]
	mv out want
	# one step after the other in a stream, as a server receives them
	for s in 7 8 9 10; do
		for i in 2 3 1; do mkshards -d "edge$i" -x "$i" -s "$s"; done
	done >all
	exits 0 ace-aggregate all
	same out want
	makes expected ace-aggregate --omit provenance --devices 3 all
	exits 0 ace-aggregate --omit provenance all
	same out expected
}

@test "an aggregate of aggregates is the aggregate of all" {
	for i in 1 2 3 4 5; do
		mkshards -d "edge$i" -x "$i" -w "0.$i" >"e$i"
	done
	exits 0 ace-aggregate -o flat e1 e2 e3 e4 e5
	exits 0 ace-aggregate -d west -o w e1 e2
	exits 0 ace-aggregate -d east -o e e3 e4 e5
	exits 0 ace-aggregate -o deep e w
	for f in flat deep; do raw $f >$f.f32; done
	# each stage rounds once to f32
	each 'abs($v[0] - $v[1]) <= 2 ** -22 * (abs($v[0]) + 1)' \
	    flat.f32 deep.f32
	[ "$(field weight deep)" = 1.5 ]
	[ "$(field samples deep)" = 160 ]
	[ "$(field n deep)" = 5 ]
	[ "$(field contributors deep)" = "edge1,edge2,edge3,edge4,edge5" ]
	# a sum contains its weights, so it is exact here
	for i in 1 2 3; do mkshards -d "edge$i" -k ramp -w "$i" >"e$i"; done
	exits 0 ace-aggregate --rule sum -d west -o w e1 e2
	exits 0 ace-aggregate --rule sum -o deep e3 w
	exits 0 ace-aggregate --rule sum -o flat e1 e2 e3
	for f in flat deep; do raw $f >$f.f32; done
	same flat.f32 deep.f32
	# the mean of a sum and a device's shard is right, too
	exits 0 ace-aggregate -o deep e3 w
	exits 0 ace-aggregate -o flat e1 e2 e3
	for f in flat deep; do raw $f >$f.f32; done
	same flat.f32 deep.f32
}

@test "a group that a device did not send counts as zero; one that nobody sent stays absent" {
	mkshards -d a -n 256 -g 64 -L f32,none,none,f32 | ace-compress >a
	mkshards -d b -n 256 -g 64 -L f32,none,f32,none | ace-compress >b
	exits 0 ace-aggregate --rule sum a b
	[ "$(field records out)" -eq 3 ]
	for f in a b out; do raw $f >$f.f32; done
	each '$v[2] == f($v[0] + $v[1])' a.f32 b.f32 out.f32
}

@test "dense and coded shards in any mix" {
	edges 6
	raw e1 >e1.f32
	n=1
	for c in f16 q8 topk:0.3 exact qsgd:15; do
		n=$((n + 1))
		mkshards -d "edge$n" -x "$n" -c "$c" >"e$n"
		raw "e$n" >"e$n.f32"
	done
	exits 0 ace-aggregate --rule sum e1 e2 e3 e4 e5 e6
	raw out >s.f32
	each 'my $s = 0; $s += $_ for @v[0 .. 5];
	    abs($s - $v[6]) <= 2 ** -23 * abs($v[6])' e?.f32 s.f32
	# dense shards of the same values give the same sum
	for i in 1 2 3 4 5 6; do ace-expand "e$i" >"d$i"; done
	mv out want
	exits 0 ace-aggregate --rule sum d1 e2 d3 e4 d5 d6
	same out want
}

@test "--devices N expects exactly N contributions" {
	edges 3
	refuses 5 '3 inputs, expected 4' ace-aggregate --devices 4 e1 e2 e3
	refuses 5 '3 inputs, expected 2' ace-aggregate --devices 2 e1 e2 e3
	cat e1 e2 e3 >all
	refuses 5 'contributions to step 0: found 3, expected 4' ace-aggregate --devices 4 all
	exits 3 ace-expand out
	exits 5 ace-aggregate --devices 2 all
	says "'edge3' is one contribution too many for step 0, expected 2"
	exits 0 ace-aggregate --devices 3 all
	# each device twice does not start a second aggregate of the step
	cat e1 e2 e1 e2 >twice
	exits 5 ace-aggregate --devices 2 twice
	says "'edge1' is one contribution too many for step 0, expected 2"
	exits 3 ace-expand out
	# the same step of another run has its own aggregate
	for i in 1 2; do mkshards -d "edge$i" -r other; done | cat e1 e2 - >runs
	exits 0 ace-aggregate --devices 2 runs
	# a stream that lacks one device, with and without --devices
	cat e1 e2 >short
	exits 0 ace-aggregate short
	exits 5 ace-aggregate --devices 3 short
}

@test "shards of different runs, steps or models: a mismatch, with both devices' names" {
	mkshards -d a >a
	mkshards -d b -r other >b
	exits 3 ace-aggregate a b
	says "^ace-aggregate: mismatch: the shards are of different runs: '(test|other)' of '[ab]' and '(test|other)' of '[ab]'"
	mkshards -d b -s 1 >b
	exits 3 ace-aggregate a b
	says "^ace-aggregate: mismatch: the shards are of different steps: [01] of '[ab]' and [01] of '[ab]', in '[ab]' and '[ab]': give inputs with the same steps"
	mkshards -d b -t embed:24,8 -t layer.bias:16 -t layer.weight:8,16 >b
	exits 3 ace-aggregate a b
	says "^ace-aggregate: mismatch: shards '[ab]/0' and '[ab]/0' have different tensors: tensor 1 differs in name: 'layer"
	mkshards -d b -t embed:8,24 -t layer.weight:8,16 -t layer.bias:16 >b
	exits 3 ace-aggregate a b
	says "^ace-aggregate: mismatch: .*tensor 'embed' differs in shape"
	mkshards -d b -g 64 >b
	refuses 3 "^ace-aggregate: mismatch: .*group size" ace-aggregate a b
	mkshards -d b -t embed:24,8 -t layer.weight:8,16 >b
	exits 3 ace-aggregate a b
	says "^ace-aggregate: mismatch: .* (2 and 3|3 and 2) tensors"
}

@test "a truncated or corrupt input is named, and nothing of its step is written" {
	for i in 1 2 3; do mkshards -d "edge$i" -n 600k -x "$i" >"e$i"; done
	for at in 100 500 1000000 2400000; do
		head -c "$at" e2 >part
		refuses 3 "truncated: .*'part'" ace-aggregate e1 part e3
		[ ! -s out ]
	done
	# a stream without its end has whole shards
	head -c -64 e2 >part
	refuses 3 "truncated: .*'part'" ace-aggregate e1 part e3
	mv out broken
	refuses 3 'truncated: the program that wrote the stream aborted it' ace-expand broken
	cp e2 part
	flip part 1200000
	refuses 3 "corrupt: the payload's checksum does not match .*'part'" ace-aggregate e1 part e3
	cat e1 part e3 >all
	refuses 3 "corrupt: .*shard 1 'edge2/0', at byte" ace-aggregate all
}

@test "an input that ends early is refused" {
	mkshards -d a -N 3 >a
	mkshards -d b -N 2 >b
	refuses 5 "'b' has fewer shards than others: found 2, inputs with more: 1 of 2" ace-aggregate b a
	refuses 5 "'b' has fewer shards than others: found 2, inputs with more: 1 of 2" ace-aggregate a b
	exits 3 ace-expand out
}

@test "values that are not finite are refused, in an input and in the sum" {
	edges 2
	mkshards -d edge3 -k inf -i 200 >e3
	exits 5 ace-aggregate e1 e2 e3
	says "non-finite value in tensor 'layer.weight' at index 8 from 'edge3': inf "
	exits 3 ace-expand out
	flat 3e38 4 --name w -d a >a
	flat 2e38 4 --name w -d b >b
	exits 3 ace-aggregate --rule sum a b
	says "^ace-aggregate: limit: step 0: the sum of tensor 'w' exceeds the range of f32"
	exits 0 ace-aggregate a b
	raw out >m
	each '$v[0] == f(2.5e38) || abs($v[0] - 2.5e38) < 1e32' m
}

# piece FILE N: print shard N of FILE (from 0), with the head before the first shard and
# the tail after the last
piece() {
	frames "$1" | awk -v n="$2" -v size="$(wc -c <"$1")" '
	    /SEND/ { end[k++] = $1 + 144 }
	    END { from = n ? end[n - 1] : 0
		to = n == k - 1 ? size : end[n]
		print from, to - from }' | {
		read -r from len
		tail -c +$((from + 1)) "$1" | head -c "$len"
	}
}

@test "long-lived pipes: a step is written before the next one is read" {
	mkfifo p1 p2
	mkshards -d edge1 -x 1 -N 3 >e1
	mkshards -d edge2 -x 2 -N 3 -c q8 >e2
	cat <(piece e2 0) <(piece e2 1) <(piece e2 2) | cmp - e2
	ace-aggregate p1 p2 >out 2>err 3>&- &
	pid=$!
	exec 8>p1 9>p2
	for s in 0 1 2; do
		piece e2 "$s" >&9
		piece e1 "$s" >&8
		wait_for sent out $((s + 1))
	done
	exec 8>&- 9>&-
	wait "$pid"
	mv out long
	exits 0 ace-aggregate e1 e2
	same out long
}

# blocks A B: copy A to p1 and B to p2 by turns, in blocks larger than a pipe
blocks() {
	local i n
	n=$(wc -c <"$1")
	for ((i = 0; i * 2000000 < n; i++)); do
		dd if="$1" bs=2000000 skip="$i" count=1 status=none >&8
		dd if="$2" bs=2000000 skip="$i" count=1 status=none >&9
	done 8>p1 9>p2
}

@test "pipes are read at the same time: their writers wait for each other" {
	mkfifo p1 p2 q1 q2
	mkshards -d edge1 -n 1500k -x 1 >e1
	mkshards -d edge2 -n 1500k -x 2 >e2
	makes files ace-aggregate --omit provenance e1 e2
	timeout "$HANG" bash -c "$(declare -f blocks); blocks e1 e2" 3>&- &
	exits 0 timeout "$HANG" ace-aggregate --omit provenance p1 p2
	wait $!
	same out files
	# two readers of both inputs, in opposite order
	timeout "$HANG" tee p1 <e1 >q1 3>&- &
	timeout "$HANG" tee p2 <e2 >q2 3>&- &
	timeout "$HANG" ace-aggregate --omit provenance q2 q1 >other 3>&- &
	exits 0 timeout "$HANG" ace-aggregate --omit provenance p1 p2
	wait
	same out files
	same other files
}

@test "of several damaged pipes the first operand is reported" {
	mkshards -d edge1 -n 1500k >e1
	mkshards -d edge2 -n 1500k >e2
	head -c 3000000 e1 >s1
	head -c 300 e2 >s2
	damaged() { ace-aggregate <(cat "$1") <(cat "$2") <(cat "$3"); }
	refuses 3 "truncated: .*'edge1/0'" damaged s1 s2 e2
	refuses 3 "truncated: .*'edge1/0'" damaged e2 s1 s2
	refuses 5 "found two shards of 'edge1'" damaged e1 e2 e1
}

@test "one long-lived pipe with --devices" {
	mkfifo p
	ace-aggregate --devices 2 p >out 2>err 3>&- &
	pid=$!
	exec 9>p
	for s in 0 1 2; do
		for i in 2 1; do mkshards -d "edge$i" -s "$s"; done >&9
		wait_for sent out $((s + 1))
	done
	exec 9>&-
	wait "$pid"
	[ "$(field step out | tr '\n' ' ')" = "0 1 2 " ]
}

@test "temporary copies of shards are removed" {
	mkdir tmp
	edges 3
	cat e1 e2 e3 >all
	TMPDIR=$PWD/tmp exits 0 ace-aggregate <all
	[ -z "$(ls tmp)" ]
	TMPDIR=$PWD/nowhere exits 4 ace-aggregate <all
	says "no file can be made in '$PWD/nowhere'"
	# files need no copies
	TMPDIR=$PWD/nowhere exits 0 ace-aggregate all
	TMPDIR=$PWD/nowhere exits 0 ace-aggregate --rule median e1 e2 e3
}

# delay_of FILE: print the delay in the policy of FILE
delay_of() { ace-inspect -v "$1" | grep -o 'delay=[0-9]*'; }

@test "the aggregate carries the largest delay that devices ask for" {
	edges 3
	exits 0 ace-aggregate e1 e2 e3
	exits 1 delay_of out
	mkshards -d edge1 -P delay=4 >e1
	mkshards -d edge2 -P delay=4 -x 2 >e2
	mkshards -d edge3 -P delay=11 -x 3 >e3
	makes mean ace-aggregate --omit provenance e1 e2 e3
	[ "$(delay_of mean)" = delay=11 ]
	# the same from one input, which is copied first, and with rules
	cat e3 e1 e2 >all
	exits 0 ace-aggregate --omit provenance --devices 3 all
	same out mean
	exits 0 ace-aggregate --rule trim:1 e1 e2 e3
	[ "$(delay_of out)" = delay=11 ]
	# the delay survives coding and another aggregate; the cloud may set its own
	exits 0 ace-compress -c q8 -o c3 e3
	exits 0 ace-aggregate c3 e1
	[ "$(delay_of out)" = delay=11 ]
	exits 0 ace-aggregate mean
	[ "$(delay_of out)" = delay=11 ]
	exits 0 ace-aggregate --delay 3 mean
	[ "$(delay_of out)" = delay=3 ]
	# the policy of a device that is left out does not count
	mkshards -d edge3 -P delay=11 -k nan >e3
	exits 0 ace-aggregate --rule finite e1 e2 e3
	[ "$(delay_of out)" = delay=4 ]
	mkshards -d edge1 -P delay=1001 >e1
	exits 3 ace-aggregate e1 e2
	says "^ace-aggregate: corrupt: key delay: '1001' is not .*, shard 1 'edge1/0', at byte [0-9]+"
	exits 2 ace-aggregate --delay 1001 e2
	exits 2 ace-aggregate --delay -1 e2
}

@test "a device that diverges shortens the interval; several force an average" {
	# two of four models have moved far
	for k in 1 2 3 4; do
		mkshards -d edge$k -x $k | ace-policy \
		    --target-divergence 0.01 --interval 8,1,16 \
		    --model-norm $((k % 2 == 0 ? 100 : 400000)) >e$k
	done
	asked() {
		ace-inspect -v "$1" | grep -oE '(interval|force)=[0-9]+' |
		    tail -n 2 | sort | tr '\n' ' '
	}
	for k in 1 2 3; do asked e$k; echo; done >each
	printf '%s\n' 'force=0 interval=16 ' 'force=1 interval=1 ' \
	    'force=0 interval=16 ' | cmp - each
	exits 0 ace-aggregate e1 e3
	[ "$(asked out)" = 'force=0 interval=16 ' ]
	# one device alone changes the interval of the others by at most a factor of four
	exits 0 ace-aggregate e1 e2 e3
	[ "$(asked out)" = 'force=0 interval=4 ' ]
	exits 0 ace-aggregate e1 e2 e4
	[ "$(asked out)" = 'force=1 interval=1 ' ]
	mv out mean
	# neither the cloud's rule nor a device's interval overrides the other
	cloud='ace-policy --target-divergence 0.01 --model-norm 400000'
	exits 0 $cloud --interval 8,1,16 mean
	[ "$(asked out)" = 'force=1 interval=1 ' ]
	exits 0 $cloud --interval 8,3,16 mean
	[ "$(asked out)" = 'force=1 interval=3 ' ]
	exits 0 sh -c "ace-aggregate e1 e3 | $cloud --interval 3"
	[ "$(asked out)" = 'force=0 interval=6 ' ]
}

# bats test_tags=plain
@test "--interval own: each device gets its own interval, from 1/4 to 4 times the median" {
	local k n=0
	# own OPTIONS...: print each device's own interval in the aggregate
	own() {
		exits 0 ace-aggregate "$@" e?
		ace-inspect -v out | grep -oE 'interval[^ =]*=[0-9]+' | paste -sd ' '
	}
	for k in 1 20 24 900 30; do
		mkshards -d edge$((n += 1)) -P interval=$k >e$n
	done
	# the median is 24, so own intervals lie in 6 to 96; a device without one gets the least
	[ "$(own)" = "interval=6" ]
	[ "$(own --interval own)" = \
	    "interval=6 interval.edge2=20 interval.edge3=24 interval.edge4=96 interval.edge5=30" ]
	# own intervals need requests from half of the devices
	rm e2 e3 e5
	mkshards -d edge2 >e2
	mkshards -d edge3 >e3
	mkshards -d edge5 >e5
	[ -z "$(own --interval own)" ]
	# device names that are not valid in a key, and keys about other devices
	rm e?
	mkshards -d Edge1 -P interval=4 >e1
	mkshards -d edge2 -P 'interval=8
interval.edge3=900' >e2
	mkshards -d "$(printf 'x%.0s' $(seq 55))" -P interval=5 >e3
	mkshards -d "$(printf 'y%.0s' $(seq 56))" -P interval=6 >e4
	[ "$(own --interval own)" = \
	    "interval=4 interval.edge2=8 interval.$(printf 'x%.0s' $(seq 55))=5" ]
	mv out mean
	# after the cloud's own decision, all devices have the same interval
	exits 0 ace-policy --target-divergence 0.01 --model-norm 400000 --interval 8 mean
	! ace-inspect -v out | grep -q 'interval[.]' || false
	ace-inspect -v out | grep -q 'interval=[0-9]'
	# too many for an annotation: one interval for all
	rm e?
	for k in $(seq 700); do
		mkshards -d "$(printf 'a%.0s' $(seq 45)).$k" -n 1 \
		    -P "interval=$((k == 1 ? 1 : 2))"
	done >e1
	[ "$(own --interval own)" = "interval=1" ]
}

@test "delay, interval, force and model.norm of an aggregate, for given requests" {
	local want got one p
	while read -r want p; do
		rm -f e*
		for one in $p; do
			k=$((${k:-0} + 1))
			case $one in
			-) mkshards -d edge$k ;;
			model.norm=*) mkshards -d edge$k -K $one ;;
			*) mkshards -d edge$k -P $one ;;
			esac >e$k
		done
		exits 0 ace-aggregate e*
		got=$(ace-inspect -v out | grep -oE \
		    "(delay|interval|force|model.norm)=[0-9.]+" | tail -n 1 || true)
		[ "$got" = "${want#none}" ] || { echo "$p: $got, not $want"; return 1; }
	done <<-'E'
	delay=8 delay=2 delay=100
	delay=8 delay=2 delay=2 delay=1000 delay=1000
	interval=8 interval=8 interval=8 interval=1000000 interval=1000000
	none delay=1000 -
	none interval=1000000 interval=1000000 - -
	delay=8 delay=2 delay=2 delay=100
	delay=12 delay=1 delay=3 delay=3 delay=100
	delay=4 delay=0 delay=0 delay=100
	delay=7 delay=7 delay=7 -
	none delay=7 - -
	interval=1 interval=1 interval=100
	interval=25 interval=3 interval=100 interval=100
	interval=40 interval=40 interval=100 interval=100
	interval=3 interval=2 interval=10 interval=10
	force=1 force=1 force=0
	force=0 force=1 force=0 force=0
	none force=1 -
	model.norm=25 model.norm=10 model.norm=1000
	model.norm=20 model.norm=10 model.norm=10 model.norm=1000
	model.norm=10 model.norm=10 model.norm=10 -
	none model.norm=10 - -
	E
}

@test "a spool that is absent is refused; --create makes it" {
	exits 4 timeout "$HANG" ace-aggregate --spool typo
	says "^ace-aggregate: spool 'typo' is absent: check its name, or make it with ace-recv --create$"
	[ ! -e typo ]
	ace-aggregate --spool made --create --rounds 1 >out1 3>&- &
	wait_for test -d made
	mkshards | ace-recv --spool made >/dev/null
	wait $!
	ace-inspect verify out1
}

# bats test_tags=long
@test "it says what it waits for: after a while, and at each signal USR1" {
	mkshards -d 'ed ge' -s 5 >in
	mkdir spool
	ace-aggregate --spool spool --devices 2 --rounds 1 --publish 2>said 3>&- >got &
	pid=$!
	# asked TEXT: send the signal, and check that ace-aggregate prints TEXT
	asked() { kill -USR1 $pid && sleep 0.2 && grep -qxF "ace-aggregate: $1" said; }
	wait_for hears $pid
	wait_for asked "waiting for a first shard in 'spool' (ace-recv --spool)"
	ace-recv --spool spool in >/dev/null
	wait_for asked "waiting for step 5: 1 of 2 shards are there: ed ge"
	: >said
	mkshards -d edge2 -s 5 >in2
	ace-recv --spool spool in2 >/dev/null
	wait_for sent got 1
	# without a signal ace-aggregate prints it after a while
	wait_for grep -qF "waiting for the average of step 5 in the spool" said
	ace-aggregate in in2 | ace-recv --spool spool --publish
	wait $pid
	[ "$(grep -c 'average of step 5' said)" -eq 1 ]
}

@test "--publish: the reader publishes the average and ends while ace-aggregate is stopped" {
	mkshards >in
	ace-recv --spool spool in >/dev/null
	ace-aggregate --omit provenance in >mean
	mkfifo pipe
	ace-aggregate --spool spool --devices 1 --rounds 1 --publish --omit provenance \
	    3>&- >pipe &
	pid=$!
	exec 4<pipe
	head -c $(($(wc -c <mean) - 112)) <&4 >all	# all but TAIL
	kill -STOP $pid
	ace-recv --spool spool --publish mean 4<&-
	exec 4<&-
	kill -CONT $pid
	wait $pid || :			# the TAIL that it writes has no reader
	[ -e spool/done/0 ]
}

@test "too few shards for the rule: all wait for the next average" {
	for i in 1 2 3; do mkshards -d "edge$i"; done |
	    ace-recv --spool spool --sync none >receipts
	# options that no shard of the run suits leave the step as it is
	mkshards -t other:7 >other
	for o in '--max-elements 335' '--schema other'; do
		exits 3 ace-aggregate --spool spool --rounds 1 --sync none $o
	done
	exits 0 ace-aggregate --spool spool --devices 3 --rounds 1 --sync none --rule trim:2
	says "3 of 3 shards wait for the next average: trim:2 needs at least 5 contributions, found 3: use trim:1 or less"
	says "^ace-aggregate: step [0-9]+ has no average: each of its shards is excluded or waits for the next average$"
	[ "$(wc -l <err)" -eq 2 ]
	frames out >shown
	! grep SHRD shown || false
}

# leaves CMD...: check that CMD ends soon after the reader of its output, although its
# input p stays open and silent
leaves() {
	local got
	rm -f p status
	mkfifo p
	exec 8<>p
	{
		got=0
		timeout "$HANG" "$@" 3>&- || got=$?
		echo "$got" >status
	} | true
	exec 8>&-
	cat status
	[ "$(cat status)" -eq 141 ]
}

@test "it ends with the reader of its output, although its input is still open" {
	mkshards -d edge1 >e1
	mkshards -d edge2 >e2
	leaves ace-aggregate p
	leaves ace-aggregate e1 p
	leaves ace-aggregate --rule median e1 p e2
	leaves ace-aggregate <(cat e1) p
	leaves ace-aggregate p <(cat e1)
}
