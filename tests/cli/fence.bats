# A state restored from a backup: ace-recv --fence, ace-ack --fence.

load helper

# code STEP [ARGS...]: step of the device, coded to `sent'
code() {
	mkshards -s "$1" -k ramp "${@:2}" >"in$1"
	exits 0 ace-compress -S state -c topk:0.2 --window 4 --allow-gap "in$1"
	mv out sent
}

deliver() {
	code "$@"
	ace-recv --spool spool sent | ace-ack -S state >rest
}

balance() { ace-inspect books -S state --spool spool "$@"; }

# to the backup at step 2, on to step 5, and back
lost_disk() {
	deliver 0
	deliver 1
	code 2			# pending in the backup, accepted after it
	cp -r state backup
	ace-recv --spool spool sent | ace-ack -S state >rest
	deliver 3
	deliver 4
	code 5			# still on its way when the disk dies
	mv sent zombie
	rm -r state
	mv backup state
}

fence() {
	ace-recv --spool spool --run test --device edge1 --fence 2 >answer
	exits 0 ace-ack -S state --fence answer
}

@test "restored without a fence: equivocation, and it stops" {
	lost_disk
	code 3 -x 7 -k gauss
	ace-recv --spool spool sent >receipt
	exits 5 ace-ack -S state receipt
	says "step 3: equivocation: other bytes .*--fence"
	exits 3 balance in0 in1 in2 in3
}

@test "restored with a fence: goes on as another incarnation, exact" {
	lost_disk
	exits 3 balance in0 in1 in2
	fence
	says "incarnation 1"
	# what was given is what the backup knows: 3 and 4 are taken back
	exits 0 balance in0 in1 in2
	[ "$(cat out)" = "edge1: exact, 3 inputs up to step 4, 5 accepted, 0 pending" ]
	deliver 5 -x 9
	deliver 6 -x 9
	exits 0 balance in0 in1 in2 in5 in6
	grep -q "exact, 5 inputs up to step 6, 7 accepted" out
	ace-inspect verify spool/test/6/edge1.aceg
}

@test "what the old incarnation still had on its way is fenced" {
	lost_disk
	fence
	ace-recv --spool spool zombie >receipt
	exits 5 ace-ack -S old receipt
	says "step 5: fenced: incarnation 0, 1 is known"
	[ ! -e spool/test/5/edge1.aceg ]
	deliver 5 -x 9
	exits 0 balance in0 in1 in2 in5
	# what it had delivered is still a duplicate
	ace-recv --spool spool -v spool/test/4/edge1.aceg 2>err >receipt
	says "step 4: duplicate"
}

@test "pending and never accepted: taken back, not sent again" {
	deliver 0
	code 1
	mv sent zombie
	ace-recv --spool spool --run test --device edge1 --fence 1 >answer
	exits 0 ace-ack -S state --fence answer
	exits 0 balance in0 in1
	grep -q "exact, 2 inputs up to step 1, 1 accepted, 0 pending" out
	ace-recv --spool spool -v zombie 2>err >receipt
	says "step 1: fenced"
	exits 0 ace-compress -S state --resend
	[ "$(ace-inspect --json out | wc -l)" -eq 0 ]
	deliver 2
	exits 0 balance in0 in1 in2
	grep -q "exact, 3 inputs up to step 2, 2 accepted" out
}

# bats test_tags=long
@test "killed at any place and done again: the same" {
	local n got
	lost_disk
	cp -r state before
	for ((n = 1; ; n++)); do
		rm -rf state
		cp -r before state
		ace-recv --spool spool --run test --device edge1 --fence 2 >answer
		got=0
		killed "$n" ace-ack -S state --fence answer 2>err || got=$?
		[ "$got" -eq 0 ] && break
		[ "$got" -eq 137 ]
		# in between: the books are right for what is counted so far
		ace-recv --spool spool --run test --device edge1 --fence 2 >answer
		exits 0 ace-ack -S state --fence answer
		exits 0 balance in0 in1 in2
		grep -q "exact, 3 inputs up to step 4, 5 accepted" out
	done
	[ "$n" -gt 20 ]
	[ "$(find state -name '*.new-*' | wc -l)" -eq 0 ]
}

@test "--fence 0: a backup of the first step, and one of a spool that has nothing" {
	# pending in the backup and accepted; so were the two steps after it
	code 0
	cp -r state backup
	ace-recv --spool spool sent | ace-ack -S state >rest
	deliver 1
	deliver 2
	rm -r state
	cp -r backup state
	ace-recv --spool spool --run test --device edge1 --fence 0 >answer
	# a receipt for step 0, which the backup has, and the shards of 1 and 2
	ace-inspect --json answer | sed 's/.*"\(verdict\|shard\)":"*\([a-z]*\).*"step":\([0-9]*\).*/\1 \2 \3/' >list
	printf '%s\n' "verdict fenced 0" "verdict accepted 0" "shard  1" "shard  2" | cmp - list
	exits 0 ace-ack -S state --fence answer
	says "incarnation 1"
	exits 0 balance in0
	[ "$(cat out)" = "edge1: exact, 1 inputs up to step 2, 3 accepted, 0 pending" ]
	deliver 3 -x 9
	exits 0 balance in0 in3
	# the same of a spool where no shard of it arrived
	rm -r state
	mv backup state
	mkshards -d edge2 | ace-recv --spool other >/dev/null
	ace-recv --spool other --run test --device edge1 --fence 0 >answer
	exits 0 ace-ack -S state --fence answer
	says "incarnation 1"
	exits 0 ace-inspect books -S state --spool other in0
	[ "$(cat out)" = "edge1: exact, 1 inputs up to step 0, 0 accepted, 0 pending" ]
}

@test "a step that was removed from the spool cannot be counted: status 5" {
	lost_disk
	exits 0 ace-aggregate --spool spool --steps 5 --keep 1
	cp -r state before
	ace-recv --spool spool --run test --device edge1 --fence 2 >answer
	exits 5 ace-ack -S state --fence answer
	says "the shard of step 3 was accepted and cannot be had any more"
	same before/residual state/residual
}

@test "what was set aside when its step was summed was not delivered" {
	local s d
	for s in 0 1 2; do
		for d in edge1 edge2; do
			mkshards -s $s -d $d >in
			exits 0 ace-recv --spool spool in
		done
	done
	# in the place of one that was accepted
	mkshards -s 1 -H flags=16 >spool/test/1/edge1.aceg
	exits 0 ace-aggregate --spool spool --expect 2 --quorum 1 --steps 3 --keep 9
	says "1 of 2 shards of a step set aside"
	# a quorum is left, so there is an aggregate of that step, too
	[ "$(ace-inspect list out | awk '$1 == "step" { print $2 }' |
	    paste -sd ' ')" = '0 1 2' ]
	exits 0 ace-recv --spool spool --run test --device edge1 --fence 0
	mv out answer
	ace-inspect list answer | awk '$1 == "step" { print $2 }' >steps
	[ "$(cat steps)" = 2 ]
}

@test "--fence with what it does not go with: status 2, the incarnation as it was" {
	mkshards | ace-recv --spool spool >/dev/null
	find spool | sort >before
	for o in --publish "--reply aggregate" x.aceg; do
		# shellcheck disable=SC2086 # words
		exits 2 ace-recv --spool spool --run test --device edge1 \
		    --fence 0 $o </dev/null
	done
	# nor a run that is not there
	exits 5 ace-recv --spool spool --run typo --device edge1 --fence 0
	says "no run 'typo' in 'spool'"
	find spool | sort | cmp - before
	exits 2 ace-recv --spool spool --publish --reply aggregate </dev/null
}

@test "damage and other streams: status 3, the state as it was" {
	lost_disk
	cp state/residual before
	ace-recv --spool spool --run test --device edge1 --fence 2 >answer
	head -c 700 answer >short
	exits 3 ace-ack -S state --fence short
	same before state/residual
	exits 3 ace-ack -S state --fence in0
	says "mismatch: not what ace-recv --fence answers"
	ace-recv --spool spool zombie >receipt
	exits 3 ace-ack -S state --fence receipt
	same before state/residual
	# two answers, one behind the other, without a shard between them
	ace-recv --spool spool --run test --device edge1 --fence 9 >answer
	cat answer answer >twice
	exits 3 ace-ack -S state --fence twice
	says "mismatch: not what ace-recv --fence answers"
	same before state/residual
	mkshards -d edge2 -t other:5 | ace-recv --spool spool2 >/dev/null
	mkshards -s 3 -t other:5 | ace-recv --spool spool2 >/dev/null
	ace-recv --spool spool2 --run test --device edge1 --fence 2 >answer
	exits 3 ace-ack -S state --fence answer
	says "mismatch: '.*' is of another model"
	exits 2 ace-recv --spool spool --fence 2
	says "which device"
}

# refused WHY: ace-ack --fence answer ends with 3, says why, and changes nothing
refused() {
	exits 3 ace-ack -S state --fence answer
	says "$1"
	same before/residual state/residual
}

@test "an answer for another device or run, and an old one: refused, nothing changes" {
	lost_disk
	cp -r state before
	ace-recv --spool spool --run test --device edge1 --fence 2 >answer
	mv answer first
	mkshards -d edge2 | ace-recv --spool spool >/dev/null
	ace-recv --spool spool --run test --device edge2 --fence 2 >answer
	refused "mismatch: an answer for another run or device"
	mkshards -r other | ace-recv --spool spool3 >/dev/null
	ace-recv --spool spool3 --run other --device edge1 --fence 2 >answer
	refused "mismatch: an answer for another run or device"
	# a shard of another device, behind a right beginning
	ace-recv --spool spool --run test --device edge1 --fence 4 >answer
	mkshards -d edge2 -s 5 -k ramp >>answer
	refused "mismatch: a shard of 'edge2', whose state this is not"
	ace-recv --spool spool --run test --device edge1 --fence 4 >answer
	mkshards -H incarnation=9 -s 5 -k ramp >>answer
	refused "mismatch: step 5 is of incarnation 9, the answer of 3"
	# a receipt that a zombie got
	fence
	says "incarnation 4"
	rm -r before
	cp -r state before
	mv first answer
	refused "mismatch: an old answer: incarnation 1, and the state is of 4"
	ace-recv --spool spool --run test --device edge1 --fence 4 >answer
	cp answer again
	exits 0 ace-ack -S state --fence answer
	# once more, as after a kill on the way: nothing changes
	cp state/residual once
	cp again answer
	exits 0 ace-ack -S state --fence answer
	cmp state/residual once
	# but not any more when something was sent since
	mkshards -s 9 | ace-compress -S state -c q8 --allow-gap --window 4 >/dev/null
	rm -r before
	cp -r state before
	mv again answer
	refused "mismatch: an old answer: incarnation 5, and the state is of 5"
	ace-recv --spool spool zombie >answer
	refused "mismatch: not what ace-recv --fence answers"
}

@test "an answer with a step far ahead: refused, nothing changes" {
	local step
	deliver 0
	exits 0 ace-recv --spool spool --run test --device edge1 --fence 0
	mv out begins
	cp -r state before
	for step in 18446744073709551615 1000001; do
		mkshards -s $step -k ramp | cat begins - >answer
		refused "limit: step $step is more than 1000000 after 0, the state's"
	done
	mkshards -s 1000000 -k ramp | cat begins - >answer
	exits 0 ace-ack -S state --fence answer
}

@test "values that a receiver refuses are refused in its answer, too" {
	local huge
	shard() { ace-import -f raw --name w --shape 4 -r test -d edge1 -s "$1"; }
	perl -e 'print pack "f<4", 1, 2, 3, 4' | shard 0 >in
	exits 0 ace-compress -S state -c topk:0.5 in
	cp -r state before
	ace-recv --spool spool out >/dev/null
	ace-recv --spool spool --run test --device edge1 --fence 9 >begins
	for huge in 1e38 -1e38 1.1e18 nan; do
		perl -e 'print pack "f<4", 1, $ARGV[0], 3, 4' -- $huge | shard 1 |
		    cat begins - >answer
		exits 3 ace-ack -S state --fence answer
		says "limit: the shard of step 1 has values beyond 1e\+18 in tensor 'w'"
		exits 0 ace-inspect list state/residual
		[ "$(awk '$1 == "step" { print $2 }' out)" = 0 ]
		rm -r state
		cp -r before state
	done
	perl -e 'print pack "f<4", 1, -1e18, 3, 4' | shard 1 | cat begins - >answer
	exits 0 ace-ack -S state --fence answer
}

@test "an answer that is cut in a shard's end: the shard does not count" {
	local at n
	deliver 0
	cp -r state before
	ace-recv --spool spool --run test --device edge1 --fence 0 >begins
	mkshards -s 1 -k ramp | cat begins - >answer
	at=$(frames answer | awk '$2 == "SEND" { at = $1 } END { print at }')
	for n in 1 63 64 65 70 100 143; do
		head -c $((at + n)) answer >"cut"
		exits 3 ace-ack -S state --fence "cut"
		[ "$(ace-inspect list state/residual | awk '$1 == "step" { print $2 }')" = 0 ]
		rm -r state
		cp -r before state
	done
	exits 0 ace-ack -S state --fence answer
	[ "$(ace-inspect list state/residual | awk '$1 == "step" { print $2 }')" = 1 ]
}
