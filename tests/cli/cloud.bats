# What a malicious cloud, or an attacker on the return path, can do to a device: to its
# residual, its disk and its next step.
load helper
load values

# grad STEP VALUE: print a gradient of 64 values
grad() {
	flat "$2" 64 --name w -d edge1 -r test -s "$1"
}

# step STEP VALUE: code the gradient of grad to `sent', with the state S
step() {
	grad "$1" "$2" >in$1
	makes sent ace-compress -S S -c q8 --window 4 in$1
}

# answer ARGS...: record the receipt of the real cloud in the state
answer() {
	makes receipts ace-recv --spool spool --sync none sent
	exits 0 ace-ack -S S receipts
}

# balance: check that the delivered and kept values add up to the inputs
balance() { exits 0 ace-inspect audit -S S --spool spool in[0-9]; }

@test "a model that is not the device's is refused before it is on the disk" {
	local p
	grad 0 1 >mine
	mkshards -t w:4294967296 -c none -d aggregate >huge
	[ "$(wc -c <huge)" -lt 1000 ]
	mkdir temp
	export TMPDIR=$PWD/temp
	for p in "ace-ack -S S" ace-expand "ace-export -f raw -o raw" \
	    "ace-export -f npz -o raw" "ace-export -f safetensors -o raw" \
	    "ace-step -S T -c q8" ace-policy ace-aggregate; do
		exits 3 timeout "$HANG" $p --schema mine huge
		says "mismatch: the (shard|stream) is for another model than (ace-recv )?--schema: .*'w'"
		[ "$(wc -c <out)" -lt 1000 ]
	done
	[ ! -e raw ]
	[ -z "$(ls temp)" ]
	[ ! -e T/residual ]
	mkshards -t v:64 -d aggregate >other
	exits 3 ace-export --schema mine -f raw -o raw other
	says "mismatch: the (shard|stream) is for another model than (ace-recv )?--schema"
	# the device's own model passes, with its schema and without
	exits 0 ace-export --schema mine -f raw -o raw mine
	[ "$(wc -c <raw)" -eq 256 ]
	ace-expand --omit schema mine >bare
	exits 0 ace-export --schema mine -f raw -o raw bare
}

@test "receipts for bytes that were not sent have no effect" {
	local v
	step 0 1
	answer
	step 1 2
	cp sent first
	# receipts for another shard of this device and step: one accepted, one late
	grad 1 77 >other
	makes lie ace-recv --spool theirs --sync none other
	grad 2 77 >other
	exits 0 ace-recv --spool late --sync none other
	ace-aggregate --spool late --rounds 1 --sync none >mean
	grad 1 77 >other
	makes late.lie ace-recv --spool late --sync none other
	for v in lie late.lie; do
		exits 0 ace-ack -S S $v
		# the device continues, and sends the shard without a receipt again
		makes again ace-compress -S S --window 4 --resend
		[ "$(frames again | grep -c SHRD)" -eq 1 ]
		exits 0 ace-inspect diff again first
	done
	cp first sent
	answer
	exits 0 ace-compress -S S --window 4 --resend
	[ "$(frames out | grep -c SHRD)" -eq 0 ]
	step 2 3
	answer
	balance
}

@test "a flood of receipts: 64 are kept, and the right one still counts" {
	local i
	step 0 1
	for i in $(seq 200); do mkshards -s $((1000 + i)); done >many
	for i in $(seq 200); do mkshards -d "other$i"; done >>many
	mkdir -m 700 theirs
	echo open 1000 >theirs/limits
	makes flood ace-recv --spool theirs --sync none many
	exits 0 ace-ack -S S --sync none flood
	[ "$(frames S/receipts | grep -c RCPT)" -eq 64 ]
	# receipts for other devices are skipped
	[ "$(grep -c 'skipped a receipt for a shard that is not pending' err)" -eq 200 ]
	answer
	exits 0 ace-compress -S S --window 4 --resend
	[ "$(frames out | grep -c SHRD)" -eq 0 ]
	balance
}
