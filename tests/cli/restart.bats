# A state that was lost or comes from a backup is detected, and begins again as a new
# incarnation (ace-ack --restart).

load helper

# code STEP [ARGS...]: code a step to `sent'
code() {
	mkshards -s "$1" -k ramp "${@:2}" >"in$1"
	makes sent ace-compress -S state -c topk:0.2 --window 4 "in$1"
}

deliver() {
	code "$@"
	ace-recv --spool spool sent | ace-ack -S state >rest
}

balance() { ace-inspect audit -S state --spool spool "$@"; }

# lost_disk: make a backup at step 2, go on to step 5, and return to the backup
lost_disk() {
	deliver 0
	deliver 1
	code 2			# pending in the backup, accepted later
	cp -r state backup
	ace-recv --spool spool sent | ace-ack -S state >rest
	deliver 3
	deliver 4
	code 5			# still on its way when the disk fails
	mv sent zombie
	rm -r state
	mv backup state
}

# noticed STEP N: check that STEP, sent with the old state, is an equivocation, and that the
# message names --restart N
noticed() {
	code "$1" -x 7 -k gauss
	ace-recv --spool spool sent >receipt
	cp -r state before
	exits 5 ace-ack -S state receipt
	says "step $1: equivocation: another shard .* run ace-ack -S 'state' --restart $2, then send a later step than the receiver has of this device .*"
	[ "$(wc -l <err)" -eq 1 ]
	same before/residual state/residual
	rm -r before
}

@test "a state from a backup is detected, and --restart makes the balance exact again" {
	lost_disk
	noticed 3 1
	exits 0 ace-ack -S state --restart 1
	says "^ace-ack: incarnation 1 begins: the residual of step 3 \\(norm [0-9.e+]+\\) is lost; shards without a receipt: 1\$"
	[ "$(wc -l <err)" -eq 1 ]
	[ ! -e state/residual ]
	deliver 5
	[ "$(cat spool/device/edge1.incarnation)" = 1 ]
	deliver 6
	# the balance needs none of the five earlier inputs
	exits 0 balance in5 in6
	[ "$(cat out)" = "edge1: exact, 2 inputs up to step 6, 2 accepted, 0 pending" ]
	exits 3 balance in0 in5 in6
	# no accepted shard is lost
	[ "$(find spool -name edge1.aceg | wc -l)" -eq 7 ]
	# a new device sends the same values
	cp spool/5/edge1.aceg was
	ace-compress -S other -c topk:0.2 in5 >is
	exits 0 ace-inspect diff was is
}

@test "shards of an earlier incarnation are fenced" {
	lost_disk
	exits 0 ace-ack -S state --restart 1
	deliver 6
	ace-recv --spool spool -v zombie 2>err >receipt
	says "step 5: fenced: incarnation 0 is older than 1, the newest"
	[ ! -e spool/5/edge1.aceg ]
	# the same if a state is lost a second time
	rm -r state
	code 7
	ace-recv --spool spool sent >receipt
	exits 5 ace-ack -S state receipt
	says "step 7: fenced: incarnation 0 is older than 1, the newest: .*--restart 2\$"
	exits 0 ace-ack -S state --restart 2
	deliver 7
	shows "exact, 1 inputs up to step 7, 1 accepted, 0 pending" balance in7
	# a shard that was accepted before is still a duplicate
	ace-recv --spool spool -v spool/4/edge1.aceg 2>err >receipt
	says "step 4: duplicate"
}

@test "a removed state is detected, and continues at the run's step" {
	lost_disk
	rm -r state
	noticed 4 1
	rm -r state
	exits 0 ace-ack -S state --restart 1
	says "residual of state .state. is absent, so all updates that were not delivered are lost, an unknown amount\$"
	# step 4, accepted before, is not counted twice by incarnation 1 either
	noticed 4 2
	exits 0 ace-ack -S state --restart 2
	deliver 5
	shows "exact, 1 inputs up to step 5, 1 accepted, 0 pending" balance in5
}

@test "--restart works with a damaged residual and damaged receipts" {
	lost_disk
	head -c 300 state/receipts >short
	mv short state/receipts
	exits 3 ace-compress -S state --resend
	says "\\(ace-ack --restart begins without the file and the residual\\), at byte [0-9]*, file 'state/receipts'\$"
	head -c 300 state/residual >short
	mv short state/residual
	exits 3 ace-compress -S state --resend
	notes "residual of state .state. is damaged, so all updates" ace-ack -S state --restart 1
	deliver 5
	exits 0 balance in5
}

@test "--restart refuses a smaller number, an input and no number, and the state stays" {
	deliver 0
	exits 0 ace-ack -S state --restart 3
	deliver 1
	cp -r state before
	for n in 1 3; do
		exits 5 ace-ack -S state --restart $n
		says "state 'state' already has incarnation 3: give --restart a larger number\$"
	done
	for n in 0 -1 x 2147483648; do
		exits 2 ace-ack -S state --restart $n
	done
	exits 2 ace-ack -S state --restart 4 receipt
	says "^ace-ack: --restart reads no input: leave out 'receipt'\$"
	exits 2 ace-ack --restart 4
	same before/residual state/residual
	same before/restart state/restart
	exits 0 ace-ack -S state --restart 2147483646
	exits 0 ace-ack -S state --restart 2147483646
	says '^ace-ack: incarnation 2147483646 has begun already: '
	exits 5 ace-ack -S state --restart 2147483645
	exits 0 ace-ack -S state --restart 2147483647
	deliver 2
	[ "$(cat spool/device/edge1.incarnation)" = 2147483647 ]
}
