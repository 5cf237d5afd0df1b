load helper

# step N ARGS...: code step N of the device into `sent'
step() {
	mkshards -s "$1" -c f32 "${@:2}" >in
	makes sent ace-compress -S state -c topk:0.1 --window 4 in
}

# resent: print the steps that --resend sends again
resent() {
	ace-compress -S state --resend >again
	ace-inspect --format json again | grep -o '"step": *[0-9]*' | grep -o '[0-9]*$' |
	    sort -nu | paste -sd' '
}

# pending: print the steps that the state holds without a receipt
pending() {
	ace-inspect --format json state/residual | grep -o '"step":[0-9]*' |
	    sed 1d | grep -o '[0-9]*' | paste -sd' '
}

@test "an accepted shard is forgotten at the next step" {
	step 0
	ace-recv --spool spool sent | ace-ack -S state >/dev/null
	[ "$(pending)" = 0 ]
	step 1
	[ "$(pending)" = 1 ]
}

@test "shards without a receipt are kept, and the next --resend sends them again" {
	step 0
	step 1
	step 2
	[ "$(pending)" = "0 1 2" ]
	[ "$(resent)" = "0 1 2" ]
	ace-recv --spool spool again | ace-ack -S state >/dev/null
	[ "$(resent)" = "" ]
	step 3
	[ "$(pending)" = 3 ]
}

@test "a receipt may come twice, and receipts may come in any order" {
	local s
	for s in 0 1 2; do
		step $s
		ace-recv --spool spool sent >/dev/null
	done
	ace-compress -S state --resend | ace-recv --spool spool >all
	exits 0 ace-ack -S state all
	cp state/receipts once
	exits 0 ace-ack -S state all
	same once state/receipts
	step 3
	[ "$(pending)" = 3 ]
}

@test "the receipt 'duplicate' does not replace the earlier receipt 'accepted'" {
	step 0
	ace-recv --spool spool sent >first
	ace-recv --spool spool sent >again
	exits 0 ace-ack -S state first
	exits 0 ace-ack -S state again
	[ "$(ace-inspect state/receipts | sed 's/.* step/step/')" = 'step 0: accepted' ]
}

@test "a receipt, and the directory that it is in, survive a power cut" {
	step 0
	ace-recv --spool spool sent >receipt
	# the parent is synced even if it exists: a process that was killed may have made it
	mkdir -p on/state
	chmod 700 on/state
	synced ace-ack -S on/state receipt >/dev/null
	for f in on on/state 'on/state/receipts.*'; do
		grep -qx "$f" synced || { cat synced; return 1; }
	done
}

@test "receipts that come together are synced together, and before the next input is read" {
	local s n
	for s in 0 1 2; do
		step $s
	done
	ace-compress -S state --resend | ace-recv --spool spool >all
	synced ace-ack -S state all >/dev/null
	n=$(grep -c '^state/receipts' synced)
	[ "$n" -le 2 ] || { cat synced; false; }
	[ "$(ace-inspect --format json state/receipts | grep -o accepted | wc -l)" -eq 3 ]
	# a receipt is stored although the rest of its stream has not come yet
	mkfifo slow
	ace-ack -S other slow >/dev/null &
	exec 7>slow
	n=$(frames all | grep -m1 -A1 RCPT | sed -n '2s/ .*//p')
	head -c "$n" all >&7
	kept() { ace-inspect --format json other/receipts 2>/dev/null | grep -q accepted; }
	wait_for kept
	exec 7>&-
	wait $! || true
	kept
}

@test "shards in the input are passed on" {
	mkshards -N 3 -a -p >in
	exits 0 ace-ack -S state in
	ace-inspect diff in out
}

# average [OPTION]...: print a shard of kind mean
average() { mkshards -d aggregate -H kind=3 -p "$@"; }

@test "the average of the last step is passed on; any other is refused, and the state stays" {
	average -s 1 >mean
	exits 3 ace-ack -S state mean
	says "mismatch: the average is of step 1 of run 'test', but state 'state' has sent nothing"
	step 0
	step 1
	# the average is accepted while the shard is pending
	exits 0 ace-ack -S state mean
	ace-inspect diff mean out
	cp -r state before
	refused() {
		refuses 3 "^ace-ack: mismatch: $1" ace-ack -S state "$2"
		diff -r before state
	}
	average -s 2 >other
	refused "the average is of step 2, whose shard has its receipt already or was not sent from this state .last step: 1" other
	average -s 1 -r other >other
	refused "the shard of 'aggregate' is of run 'other', but this state is of run 'test'" other
	mkshards -d aggregate -s 1 >other
	refused "the shard of 'aggregate' has kind gradient, expected an average" other
	mkshards -d aggregate -s 1 -H kind=5 >other
	refused "the shard of 'aggregate' has kind model, expected an average" other
	average -s 1 -n 7 >other
	refused "the shard of 'aggregate' is of another model than this state: " other
	# after the receipt the average is refused, unless the stream begins with the receipt
	ace-compress -S state --resend | ace-recv --spool spool >receipts
	ace-ack -S state receipts >rest
	step 2
	rm -r before
	cp -r state before
	refused "the average is of step 1, whose shard has its receipt already or was not sent from this state .last step: 2" mean
	ace-expand --omit provenance mean | cat receipts - >both
	exits 0 ace-ack -S state both
	[ -s out ]
}

@test "equivocation: status 5, and the shard stays pending" {
	step 0
	mkshards -x 9 | ace-recv --spool spool >/dev/null
	ace-recv --spool spool sent >receipt
	cp state/residual before
	exits 5 ace-ack -S state receipt
	says "^ace-ack: step 0: equivocation: another shard of this device and step came before"
	[ "$(wc -l <err)" -eq 1 ]
	same before state/residual
	[ "$(pending)" = 0 ]
}

@test "a receipt for another run, device or shard is skipped with a message" {
	local v
	step 0
	mkshards -x 9 | ace-recv --spool spool >/dev/null
	ace-recv --spool spool sent >receipt
	ace-inspect --format json receipt >shown
	# receipts for shards that differ in device, run, step or bytes
	mkshards -d edge2 | ace-recv --spool spool >/dev/null
	mkshards -d edge2 -x 9 | ace-recv --spool spool >equivocation
	mkshards -r other -H incarnation=1 | ace-recv --spool spool2 >/dev/null
	mkshards -r other -s 1 | ace-recv --spool spool2 >fenced
	mkshards -s 0 -x 4 | ace-recv --spool spool >bytes
	mkshards -s 9 -H incarnation=1 | ace-recv --spool spool3 >/dev/null
	mkshards -x 5 | ace-recv --spool spool3 >before
	[ "$(ace-inspect before | grep -c 'step 0: fenced')" -eq 1 ]
	mkshards -d edge2 -s 5 -k nan | ace-recv --spool spool >invalid
	mkshards -d edge2 -s 6 | ace-recv --spool spool >accepted
	for v in equivocation fenced bytes before invalid accepted; do
		exits 0 ace-ack -S state $v
		says "^ace-ack: skipped a receipt for a shard that is not pending in this state, but of another state, device or run: step"
	done
	[ "$(ace-inspect state/receipts | grep -c step)" -eq 0 ]
	# the shard's own receipt counts after receipts for other shards
	cat equivocation fenced receipt >all
	refuses 5 "step 0: equivocation" ace-ack -S state all
}

@test "the receipt 'invalid': a message, status 5, once; the other receipts count, too" {
	step 0
	cp sent first
	limited 'shard 100' ace-recv --spool spool first >receipts
	step 1
	ace-recv --spool spool sent >>receipts
	exits 5 ace-ack -S state receipts
	says '^ace-ack: step 0: invalid: limit: the shard is larger than 100 bytes \(limits: shard\)$'
	[ "$(wc -l <err)" -eq 1 ]
	exits 0 ace-ack -S state receipts
	[ "$(sort -u err)" = "ace-ack: step 0: invalid: limit: the shard is larger than 100 bytes (limits: shard)" ]
	# a second receipt 'invalid' for the same bytes does not change the status
	limited 'shard 100' ace-recv --spool spool first >later
	exits 0 ace-ack -S state later
	[ "$(cat err)" = "ace-ack: step 0: invalid: limit: the shard is larger than 100 bytes (limits: shard)" ]
	ace-inspect state/receipts >list
	[ "$(sed 's/.* step/step/' list)" = "step 0: invalid: limit: the shard is larger than 100 bytes (limits: shard)
step 1: accepted" ]
	step 2
	[ "$(pending)" = 2 ]
}

@test "the receipt 'late' is printed without -v, with status 0" {
	mkshards -d edge2 | ace-recv --spool spool >/dev/null
	ace-aggregate --spool spool --rounds 1 >/dev/null
	step 0
	ace-recv --spool spool sent >receipt
	exits 0 ace-ack -S state receipt
	[ "$(cat err)" = "ace-ack: step 0: late: step 0 is closed" ]
	exits 0 ace-ack -q -S state receipt
	[ ! -s err ]
	step 1
	ace-recv --spool spool sent >receipt
	exits 0 ace-ack -S state receipt
	[ ! -s err ]
	notes "^ace-ack: step 1: accepted" ace-ack -v -S state receipt
}

@test "a second ace-ack on the same state: status 5" {
	mkfifo in
	ace-ack -S state <in >/dev/null &
	exec 9>in
	wait_for test -e state/receipts
	refuses 5 "in use" ace-ack -S state /dev/null
	exec 9>&-
	wait || true
}

@test "--restart is refused while another process uses the state" {
	mkfifo slow
	ace-compress -S state -c q8 slow >c 3>&- &
	exec 9>slow	# returns when ace-compress has locked the state and opens the pipe
	exits 5 ace-ack -S state --restart 1
	says "'state' is in use by another process"
	exec 9>&-
	wait $! || true
}

@test "with --sync rename or none a receipt is stored without a sync" {
	step 0
	ace-recv --spool spool sent >receipt
	for s in rename none; do
		synced ace-ack -S $s --sync $s receipt >rest
		[ ! -s synced ]
		ace-inspect --format json $s/receipts | grep -q accepted
	done
}

@test "no -S: status 2" {
	exits 2 ace-ack </dev/null
}

@test "no receipt from the cloud: status 4, and the shard stays pending" {
	step 0
	false | exits 4 ace-ack -S state || { cat err; false; }
	says '^ace-ack: no answer: the receiver was not reached'
	: >none
	refuses 3 'truncated: the input is empty' ace-ack -S state none
	ace-recv --spool spool sent | head -c 100 | exits 3 ace-ack -S other
	says '^ace-ack: truncated: '
	[ "$(pending)" = 0 ]
}
