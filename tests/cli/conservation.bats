# ace-inspect audit: every input is delivered or kept.

load helper
load values

# deliver STEP CODEC [ARGS...]: make an input, code it, send it, and record the receipt
deliver() {
	mkshards -s "$1" "${@:3}" >"in$1"
	ace-compress -S state -c "$2" --window 4 --sync none "in$1" |
	    ace-recv --spool spool --sync none | ace-ack -S state --sync none >rest
}

balance() { ace-inspect audit -S state --spool spool "$@"; }

@test "with exact codecs the balance is exact, whether shards were accepted or not" {
	local s
	for s in 0 1 2 3; do
		deliver $s topk:0.1 -k ramp
	done
	mkshards -s 4 -k ramp >in4
	ace-compress -S state -c topk:0.1 --window 4 in4 >sent
	exits 0 balance in*
	[ "$(cat out)" = "edge1: exact, 5 inputs up to step 4, 4 accepted, 1 pending" ]
	# the shard was accepted, but the state has no receipt yet
	ace-recv --spool spool sent >receipt
	exits 0 balance in*
	[ "$(cat out)" = "edge1: exact, 5 inputs up to step 4, 5 accepted, 0 pending" ]
	# inputs that the device has not absorbed are ignored
	mkshards -s 5 -k ramp >in5
	mkshards -s 3 -d edge2 >in6
	exits 0 balance in*
	exits 0 balance -q in*
	[ ! -s out ]
}

@test "a rejected shard returns to the residual; the balance is exact before and after" {
	deliver 0 topk:0.1 -k ramp
	mkshards -s 1 -d edge2 | ace-recv --spool spool >/dev/null
	mkshards -s 1 -k ramp >in1
	ace-compress -S state -c topk:0.1 --window 4 in1 >sent
	cat sent >late
	ace-aggregate --spool spool --rounds 2 >/dev/null
	ace-recv --spool spool late | ace-ack -S state -v 2>err >rest
	says "step 1: late"
	shows "exact, 2 inputs up to step 1, 1 accepted, 1 pending" balance in0 in1
	deliver 2 topk:0.1 -k ramp
	shows "exact, 3 inputs up to step 2, 2 accepted, 0 pending" balance in0 in1 in2
}

@test "an invalid step that is coded again has each value once, also if a group was not sent" {
	mkshards -n 512 -g 256 -k ramp -l f32,none >in0
	mkdir spool && echo shard 150 >spool/limits
	ace-compress -S state --window 4 in0 | ace-recv --spool spool >receipt
	exits 5 ace-ack -S state receipt
	rm spool/limits
	deliver 0 f32 -n 512 -g 256 -k ramp
	shows "exact, 1 inputs up to step 0, 1 accepted, 0 pending" balance in0
}

# sent DEVICE STEP VALUE: send four values, which are accepted
sent() {
	flat "$3" 4 -d "$1" -r test -s "$2" >"in.$1.$2"
	ace-compress -S "state.$1" -c f32 --window 4 --allow-gap "in.$1.$2" >"sent.$1.$2"
	ace-recv --spool spool --sync none -v "sent.$1.$2" 2>err |
	    ace-ack -S "state.$1" >rest
	says "step $2: accepted"
}

# summed VALUE CONTRIBUTORS OPTION...: sum the next step, and check its values and contributors
summed() {
	exits 0 timeout "$HANG" ace-aggregate --rule sum --spool spool --rounds 1 \
	    --sync none "${@:3}"
	[ "$(ace-export -f raw out | perl -0777 -ne 'print join " ", unpack "f<*"')" = \
	    "$1 $1 $1 $1" ]
	ace-inspect out >shown
	grep -q "^ *contributors *$2$" shown
}

# counted DEVICE N: check that the device's N inputs are delivered or kept, and that a
# shard sent again is still accepted
counted() {
	local i
	exits 0 ace-inspect audit -S "state.$1" --spool spool in."$1".*
	grep -q "^$1: exact, $2 inputs up to step [0-9]*, $2 accepted, 0 pending" out
	for i in sent."$1".*; do
		notes "step [0-9]*: (accepted|duplicate)$" ace-recv --spool spool -v "$i"
	done
}

@test "accepted shards of a step without a quorum are in the next average" {
	sent edge1 0 1
	sent edge1 2 10
	sent edge2 2 100
	sent edge1 3 1000
	sent edge2 5 1e4
	sent edge3 5 1e5
	summed 111 2 --quorum 2 --deadline 1ms
	counted edge1 3
	summed 111000 3 --quorum 2 --deadline 1ms
	says "fewer than 2 devices sent step 3: the next average is of step 5, with the accepted shards of the skipped steps"
	counted edge1 3
	counted edge2 2
	# --keep removes the shards, but their receipts are still known
	sent edge1 7 1
	sent edge2 8 2
	sent edge3 8 4
	summed 7 3 --quorum 2 --keep 1
	[ ! -e spool/3 ]
	for i in 0 2 3 7; do
		notes "step $i: accepted$" ace-recv --spool spool -v "sent.edge1.$i"
	done
}

@test "accepted shards of a device that leaves, or comes after a deadline, are in an average" {
	local i
	for i in 1 2 3; do sent edge$i 0 1; done
	for i in 1 2 3; do
		ace-recv --spool spool --device edge$i --join
	done
	summed 3 3
	sent edge3 1 10
	ace-recv --spool spool --device edge3 --leave
	sent edge1 2 100
	sent edge2 2 100
	summed 210 3 --quorum 2 --deadline 1h
	counted edge3 2
}

@test "shards too few for the quorum or the rule are in the next average" {
	local i
	# a quorum counts the two shards of edge1 as one device
	sent edge1 0 5
	for i in 1 2 3; do sent edge$i 1 1; done
	# an invalid shard replaces one that was accepted
	mkshards -t data:4 -d edge3 -r test -s 1 -H flags=16 >spool/1/edge3.aceg
	exits 0 timeout "$HANG" ace-aggregate --rule sum --spool spool --rounds 1 \
	    --sync none --quorum 3 --keep 1
	says "1 of 4 shards is excluded: mismatch"
	says "step [0-9]+ has no average"
	sent edge1 2 10
	exits 0 timeout "$HANG" ace-aggregate --spool spool --rounds 1 \
	    --sync none --tolerate 1 --keep 1
	says "4 of 4 shards wait for the next average: center:1 .from --rule or --tolerate. needs 3"
	sent edge1 3 100
	sent edge2 3 100
	summed 217 2
	# a closed step without an average, as after a kill, gives the same sum
	rm spool/done/3
	summed 217 2 --keep 1
	# edge2 has missed step 2, although a shard of it waited then
	shows '^edge2 \+3 .* 2 \+1 \+0$' ace-status spool
	for i in edge1.0 edge1.1 edge1.2 edge1.3 edge2.1 edge2.3; do
		exits 0 ace-recv --spool spool -v "sent.$i"
		says "step [0-3]: (accepted|duplicate)$"
	done
	# the audit reports edge3's shard, which is in no sum
	exits 3 ace-inspect audit -S state.edge3 --spool spool in.edge3.1
	says "0 is delivered .shards: 0. or kept"
}

@test "an input that was lost: status 3, and the first wrong value is named" {
	deliver 0 f32 -k ramp
	deliver 1 f32 -k ramp
	rm -r spool/1
	exits 3 balance in*
	says "mismatch: tensor 'embed' at index 0: the [0-9]+ inputs of 'edge1' up to step 1 add up to 1, but 0 is delivered .shards: [0-9]+. or kept; elements that differ: 336: give all inputs"
	exits 3 balance --format json in*
	grep -q '"ok":false,.*"violated":336' out
}

@test "a shard that was counted twice: status 3" {
	deliver 0 f32 -k ramp
	deliver 1 f32 -k ramp
	cp spool/1/edge1.aceg spool/1/edge1.1.aceg
	refuses 3 "at index 0: the [0-9]+ inputs of 'edge1' up to step 1 add up to 1, but 2 is delivered .shards: [0-9]+. or kept" balance in*
}

@test "a shard that was sent before its state was committed is detected" {
	deliver 0 topk:0.1 -k ramp
	cp -r state before
	deliver 1 topk:0.1 -k ramp
	rm -r state
	mv before state
	refuses 3 "mismatch: tensor" balance in*
}

@test "the balance is exact for sums that f64 cannot hold" {
	local s
	set -- 1e17 1e-30 -1e17 1e-42
	for s in 0 1 2 3; do
		flat "${*:s+1:1}" 8 -d edge1 -r test -s $s >"in$s"
		ace-compress -S state -c f32 --window 4 "in$s" |
		    ace-recv --spool spool | ace-ack -S state >rest
	done
	shows "edge1: exact, 4 inputs" balance in*
	shows "within the bound, .*, off by at most 1e-42" balance in0 in1 in2
}

@test "a model larger than one pass of the audit" {
	deliver 0 topk:0.01 -n 2200k -k ramp
	deliver 1 topk:0.01 -n 2200k -k ramp
	shows "exact, 2 inputs" balance in0 in1
	exits 2 balance <(cat in0) in1
	says "is read several times"
	mkshards -n 2200k -s 1 -k gauss >in1
	refuses 3 "tensor 'w' at index 0: .*; elements that differ: 2252[0-9]*" balance in0 in1
}

@test "an audit with wrong inputs, or without its state or shards, is an error" {
	deliver 0 f32
	deliver 1 f32
	refuses 3 "mismatch: the inputs have step 1 of 'edge1' twice" balance in0 in1 in1
	ace-expand -S state in1 >again
	refuses 3 "mismatch: the input, .*, contains the residual" balance in0 again
	mkshards -s 1 -t other:7 >other
	refuses 3 "mismatch: '.*' is of another model" balance in0 other
	exits 4 balance missing
	exits 2 ace-inspect audit in0
	exits 2 ace-inspect list -S state in0
	mkdir -m 700 empty
	exits 3 ace-inspect audit -S empty --spool spool
	says "mismatch: state 'empty' has no residual"
	exits 4 ace-inspect audit -S nowhere --spool spool
	[ ! -e nowhere ]
	ace-aggregate --spool spool --rounds 2 --keep 1 >/dev/null
	exits 5 balance in0 in1
	says "step 0 of 'edge1' was accepted, but is no longer in the spool"
}

@test "audit refuses feedback that it does not know" {
	mkshards -s 0 >in
	ace-compress -S state -c q8 in | ace-recv --spool spool >/dev/null
	mkshards -s 0 -H kind=4 -K feedback=other >state/residual
	refuses 3 "unsupported: state '.*' has feedback other, which cannot be audited: expected ef or cache" balance in
}

@test "a difference of a last bit is within the bound, one of a millionth is not" {
	flat 1 8 -d edge1 -r test >in0
	ace-compress -S state -c f32 --window 4 in0 | ace-recv --spool spool |
	    ace-ack -S state >rest
	flat 1.00000012 8 -d edge1 -r test >near
	shows "within the bound, .* off by at most 1.19e-07" balance near
	flat 1.000001 8 -d edge1 -r test >far
	refuses 3 "mismatch: tensor" balance far
}

@test "every codec, fifty steps: nothing is lost, and the residual does not grow" {
	local c s g left
	for s in $(seq 0 49); do mkshards -n 4096 -g 1024 -s "$s"; done >in
	g=$(mkshards -n 4096 -g 1024 | ace-inspect stats --format tsv | sed -n 2p | cut -f 17)
	for c in f32 f16 exact q8 sign topk:0.05 chunk:1/16 \
	    nonzero qsgd:1 qsgd:4 qsgd:127 \
	    ecq:0.5 tcq:0.4 lowrank:2 none; do
		rm -rf state spool
		mkdir -m 700 spool
		ace-compress -S state -c "$c" --sync none in >sent
		ace-recv --spool spool --sync none sent >receipts
		exits 0 balance in
		grep -qE "(exact|within the bound), 50 inputs up to step 49, 50 accepted" out
		left=$(ace-inspect stats --format tsv state/residual | sed -n 2p | cut -f 17)
		# with codec none nothing was sent, and all values are kept
		[ "$c" != none ] || continue
		awk -v x="$left" -v g="$g" 'BEGIN { exit !(x < 20 * g) }' ||
		    { echo "$c: $left of $g"; return 1; }
	done
}
