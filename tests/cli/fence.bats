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

balance() { ace-inspect --conservation -S state --spool spool "$@"; }

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
	ace-inspect --verify spool/test/6/edge1.aceg
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
	exits 0 ace-inspect --conservation -S state --spool other in0
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
	[ "$(ace-inspect --list out | awk '$1 == "step" { print $2 }' |
	    paste -sd ' ')" = '0 1 2' ]
	exits 0 ace-recv --spool spool --run test --device edge1 --fence 0
	mv out answer
	ace-inspect --list answer | awk '$1 == "step" { print $2 }' >steps
	[ "$(cat steps)" = 2 ]
}

@test "--fence with what it does not go with: status 2, the incarnation as it was" {
	mkshards | ace-recv --spool spool >/dev/null
	find spool | sort >before
	for o in --publish "--reply aggregate" --once x.aceg; do
		# shellcheck disable=SC2086 # words
		exits 2 ace-recv --spool spool --run test --device edge1 \
		    --fence 0 $o </dev/null
	done
	find spool | sort | cmp - before
	exits 2 ace-recv --spool spool --publish --once </dev/null
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
	says "which device, of which run"
}
