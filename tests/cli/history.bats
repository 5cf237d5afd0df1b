# Differences to a history: the spool keeps the same history as the device, and both recover
# if the two differ.

load helper

# code STEP [HOW]: code a step to sentSTEP; every second step lacks some groups
code() {
	mkshards -s "$1" -k ramp -n 20k -t a:5000 -t b:3000 -x "$1" >"in$1"
	ace-score "in$1" | ace-select -p "$([ $(($1 % 2)) = 1 ] && echo 0.5 || echo 1)=topk:0.3" |
	    exits 0 ace-compress -S state --wait 0 --error-feedback "${2:-cache:1}"
	mv out "sent$1"
}

# answer FILE [STATUS]: receive FILE and record the receipt; ace-recv's messages are in err
answer() {
	makes receipt ace-recv --spool spool -v "$1"
	mv err said
	exits "${2:-0}" ace-ack -S state receipt
	mv said err
}

balance() {
	exits 0 ace-inspect audit -S state --spool spool in*
	grep -qE ", $1\$" out || { cat out; return 1; }
}

# shared STEP: check that both sides have the same history after STEP
shared() { same "state/history.$1" "spool/device/edge1.history/history.$1"; }

@test "an aggregate of differences has the reconstructed values" {
	for how in cache cache:0.5; do
		rm -rf state spool h in*
		for s in 0 1 2 3; do
			code $s $how
			answer sent$s
			says "step $s: accepted"
			shared $s
			mkshards -s $s -d edge2 -n 20k -t a:5000 -t b:3000 >other
			ace-recv --spool spool other >/dev/null
			makes got ace-aggregate --spool spool --rounds 1 --devices 2
			exits 0 ace-expand --cache h sent$s
			ace-aggregate out other >want
			ace-inspect diff got want
		done
		# the values of the aggregate are not those that were sent
		run ! ace-inspect diff spool/3/edge1.aceg out
		# the spool keeps the newest history and the one before
		[ "$(ls spool/device/edge1.history)" = "$(printf 'history.2\nhistory.3')" ]
		# the same shard again gives the same receipt, and no further history
		answer sent3
		says "step 3: accepted"
		shared 3
	done
}

@test "the history of a shard stays until its step is aggregated" {
	for s in 0 1 2; do
		code $s
		answer sent$s
	done
	[ "$(ls spool/device/edge1.history | wc -l)" -eq 3 ]
	makes got ace-aggregate --spool spool --rounds 3
	[ "$(ace-inspect --format json got | wc -l)" -eq 3 ]
	code 3
	answer sent3
	[ "$(ls spool/device/edge1.history)" = "$(printf 'history.2\nhistory.3')" ]
	balance "4 accepted, 0 pending"
	# step 3 gets no average, and edge1's shard waits for the next one
	mkshards -s 3 -d edge2 -n 20k -t a:5000 -t b:3000 | ace-recv --spool spool >/dev/null
	printf x | dd of=spool/3/edge2.aceg bs=1 seek=900 conv=notrunc status=none
	exits 0 ace-aggregate --spool spool --rounds 1 --quorum 2
	for s in 4 5; do
		code $s
		answer sent$s
	done
	makes got ace-aggregate --spool spool --rounds 1
	[ ! -s err ]
	balance "6 accepted, 0 pending"
}

@test "after a late shard, the next one is a difference to the history that the spool has" {
	code 0
	answer sent0
	code 1
	balance "2 inputs up to step 1, 1 accepted, 1 pending"
	mkshards -s 1 -d edge2 -n 20k -t a:5000 -t b:3000 |
	    ace-recv --spool spool >/dev/null
	exits 0 ace-aggregate --spool spool --rounds 2
	answer sent1
	says "step 1: late"
	[ "$(ls spool/device/edge1.history)" = history.0 ]
	code 2
	answer sent2
	says "step 2: accepted"
	shared 2
	balance "3 inputs up to step 2, 2 accepted, 0 pending"
}

# stamp FILE: print the first 8 digits of the digest in its tail
stamp() { perl -e 'local $/; print unpack("H8", substr(<STDIN>, -32, 4))' <"$1"; }

@test "if the spool lost its history, a shard is refused and the device begins a new history" {
	for s in 0 1 2; do
		code $s
		answer sent$s
	done
	old=$(stamp state/history.1) new=$(stamp state/history.2)
	# as if restored from a backup
	rm spool/device/edge1.history/history.2
	code 3
	answer sent3 5
	says "step 3: invalid: .*a difference to history $new, but this receiver has history $old of step 1: the device begins a new history with step 4"
	refuses 5 "step 3 of 'edge1' was refused as invalid, .*: send the next step" ace-compress -S state --error-feedback cache:1 in3
	[ ! -e spool/3/edge1.aceg ]
	code 4
	answer sent4
	says "step 4: accepted"
	shared 4
	balance "5 inputs up to step 4, 4 accepted, 0 pending"
	rm -r spool/device/edge1.history
	code 5
	answer sent5 5
	says "step 5: invalid: .*a difference to history .*, but this receiver has no history: the device begins a new history with step 6"
	code 6
	answer sent6
	shared 6
}

@test "a state from a backup begins a new history" {
	code 0
	answer sent0
	code 1
	cp -r state backup
	answer sent1
	code 2
	answer sent2
	rm -r state
	mv backup state
	exits 0 ace-ack -S state --restart 1
	[ ! -e state/history.1 ]
	rm in0 in1 in2
	code 3
	answer sent3
	says "step 3: accepted"
	shared 3
	code 4
	answer sent4
	shared 4
	balance "2 inputs up to step 4, 2 accepted, 0 pending"
}

@test "a difference for too large a model, or not valid, is refused and leaves no history" {
	code 0
	limited "shard $((4 * 28480 / 8 - 8))" answer sent0 5
	says "invalid: limit: the difference is for a model of 28480 values, which as f32 take more than 8 times"
	[ ! -e spool/device/edge1.history ]
	rm -r state spool
	code 0
	answer sent0
	mkshards -s 2 -n 20k -t a:5000 -t b:3000 -H flags=16 >in
	exits 0 ace-recv --spool spool -v in
	says "step 2: invalid: corrupt: the shard has only some of flag PREDICTED, key predict and key history"
}

@test "a shard whose history is gone when its step is aggregated is deferred, with its name" {
	code 0
	answer sent0
	rm spool/device/edge1.history/history.0
	mkshards -d edge2 -n 20k -t a:5000 -t b:3000 | ace-recv --spool spool >/dev/null
	exits 0 ace-aggregate --spool spool --rounds 1 --devices 2
	says "1 of 2 shards is excluded: mismatch: the shard is a difference to 'history.0', which is lost: .*spool/device/edge1.history"
	# ace-aggregate of files has no history
	refuses 3 "is a difference to a history" ace-aggregate spool/0/*.aceg
}

@test "another ace-recv keeps the history of a shard that is being received" {
	mkshards -s 0 | ace-compress -S st --error-feedback cache -c q8 |
	    ace-recv --spool spool | ace-ack -S st >rest
	mkshards -s 1 | ace-compress -S st --error-feedback cache -c q8 >next
	flock spool/.lock sleep 2 3>&- &
	sleep 0.3
	ace-recv --spool spool next >answer 3>&- &
	waits=$!
	sleep 0.7
	exits 3 ace-recv --spool spool --device nobody /dev/null
	wait $waits
	[ "$(ace-inspect answer | grep -c 'step 1: accepted')" -eq 1 ]
}
