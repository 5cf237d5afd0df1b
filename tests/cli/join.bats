# Devices that join a run after it has begun, and devices that leave it.
load helper
load values

# sends DEVICE STEP: send a shard to the spool
sends() {
	mkshards -d "$1" -s "$2" -x "$2" -r demo -c f32 |
	    ace-recv --spool spool >/dev/null
}

# closes STEP DEVICE...: close STEP with shards of these devices, and publish its aggregate
closes() {
	local d
	for d in "${@:2}"; do sends "$d" "$1"; done
	ace-aggregate --spool spool --devices $(($# - 1)) --rounds 1 "${keep[@]}" |
	    ace-recv --spool spool --publish
}

# joins DEVICE, leaves DEVICE: put the device on the list of devices, or remove it
joins() { ace-recv --spool spool --device "$1" --join; }
leaves() { ace-recv --spool spool --device "$1" --leave; }

# is_late DEVICE STEP: send a shard, and check that its receipt says late
is_late() {
	mkshards -d "$1" -s "$2" -r demo | ace-recv --spool spool >receipt
	notes "step $2: late" ace-ack -v -S "state.$1" receipt
}

# question DEVICE STEP: print a device's question for the averages from STEP on;
# asks DEVICE STEP: print the answer
question() {
	perl -e 'print pack("Q<", 8), "{}      "' |
	    ace-import -k model -d "$1" -r demo -s "$2"
}
asks() {
	question "$1" "$2" |
	    timeout "$HANG" ace-recv --spool spool --device "$1" --reply aggregate
}

# told: print kind and step of each shard in the file `told'
told() {
	ace-inspect --format json told | python3 -c 'import json, sys
for line in sys.stdin:
    d = json.loads(line); "kind" in d and print(d["kind"], d["step"])' | paste -sd ' '
}

@test "the list of devices, and the averages in an answer, survive a power cut" {
	for s in 0 1; do closes $s edge1; done
	synced joins edge2
	grep -qx spool synced || { cat synced calls; return 1; }
	question edge3 0 >ask
	synced ace-recv --spool spool --device edge3 --reply aggregate ask >told
	for d in spool/0 spool/1 spool/device; do
		grep -qx "$d" synced || { cat synced calls; return 1; }
	done
	[ "$(told)" = 'mean 0 mean 1 model 2' ]
}

@test "steps wait for the devices on the list, which may change while ace-aggregate runs" {
	for d in edge1 edge2; do sends $d 0; done
	joins edge3
	ace-aggregate --spool spool --devices 2 --rounds 2 >means 2>log 3>&- &
	pid=$!
	# --devices is 2 and two shards are present, but ace-aggregate waits for the third device
	wait_for hears $pid
	asks() { kill -USR1 $pid && grep -q '2 of 3 shards are there: .*; missing: edge3$' log; }
	wait_for asks
	[ ! -e spool/closed ]
	sends edge3 0
	wait_for test -e spool/closed
	# a device leaves during the step
	sends edge1 1
	sends edge3 1
	asks() { kill -USR1 $pid && grep -q 'step 1: .*missing: edge2$' log; }
	wait_for asks
	leaves edge2
	wait $pid
	[ "$(ace-inspect --format json means | grep -c '"contributors":3')" -eq 1 ]
	[ "$(ace-inspect --format json means | grep -c '"contributors":2')" -eq 1 ]
	# a device that left does not return to the list when another device joins
	joins edge4
	[ "$(sort spool/devices | paste -sd ' ')" = 'edge1 edge3 edge4' ]
	leaves edge4
	# a device that left may still send, but steps do not wait for it
	sends edge2 2
	sends edge1 2
	sends edge3 2
	exits 0 ace-aggregate --spool spool --rounds 1
	[ "$(field n out)" = 3 ]
}

@test "without a list, --leave writes one that lacks the device" {
	for s in 0 1 2; do closes $s edge1 edge2; done
	[ ! -e spool/devices ]
	leaves edge1
	[ "$(cat spool/devices)" = edge2 ]
	# a name that is longer than that of its file, and one that no line can have
	rm -r spool
	closes 0 "$(printf 'edge.%.0s' {1..26})" edge2 ' edge3 '
	leaves edge2
	[ "$(wc -c <spool/devices)" -eq 131 ]
}

@test "--deadline and --quorum also apply to the devices on the list" {
	sends edge1 0
	joins edge2
	exits 0 ace-aggregate --spool spool --deadline 0.1s --rounds 1
	sends edge1 1
	exits 124 timeout 1 ace-aggregate --spool spool --quorum 2 --deadline 0.1s \
	    --rounds 1
	[ spool/closed -ef spool/done/0 ]
}

@test "the list of devices may be edited by hand; control characters are refused" {
	sends edge1 0
	printf '\n  edge1 \r\nk \303\274\n' >spool/devices
	exits 0 ace-status spool
	odd=$'k \303\274'
	grep -q "missing: $odd\$" out
	leaves "$odd"
	[ "$(cat spool/devices)" = edge1 ]
	printf 'evil\033[2J\n' >spool/devices
	refuses 3 "corrupt: 'spool/devices'" ace-aggregate --spool spool --rounds 1
	exits 3 leaves edge1
}

@test "invalid uses of --join and --leave are refused, and the list stays" {
	sends edge1 0
	refuses 5 "'spool' has no device 'edge9'" leaves edge9
	[ ! -e spool/devices ]
	refuses 2 'no device was given: add --device NAME' ace-recv --spool spool --join
	exits 2 ace-recv --spool spool --device edge1 --join --leave
	exits 2 ace-recv --spool spool --device edge1 --join file
	exits 2 ace-recv --spool spool --device edge1 --leave --reply aggregate
}

@test "a question gets the averages of closed steps, and the step at which to begin" {
	asks edge3 0 >told
	[ "$(told)" = 'model 0' ]
	[ "$(ls spool/*/)" = edge3.known ]
	for s in 0 1 2; do closes $s edge1 edge2; done
	sends edge1 3
	asks edge3 0 >told
	[ "$(told)" = 'mean 0 mean 1 mean 2 model 3' ]
	ace-inspect verify told
	for s in 0 1 2; do cat spool/$s/aggregate.aceg; done >all
	ace-export --many told >files
	ace-export --many all | cmp - <(head -c "$(ace-export --many all | wc -c)" files)
	# the earliest step from which edge3 has the others' model stays noted
	[ "$(cat spool/device/edge3.known)" = 0 ]
	asks edge3 2 >told
	[ "$(told)" = 'mean 2 model 3' ]
	# the answer ends before the first step in which the device has a shard
	asks edge1 0 >told
	[ "$(told)" = 'model 0' ]
	asks edge3 9 >told
	[ "$(told)" = 'model 9' ]
	[ ! -e spool/devices ]
	# each model file for the trainer has its step in the metadata
	asks edge4 1 | ace-expand | ace-export --many >files
	[ "$(grep -ao '"step":"[0-9]*"' files | paste -sd ' ')" = '"step":"1" "step":"2" "step":"3"' ]
	exits 3 ace-recv --spool spool --device edge5 --reply aggregate \
	    <(question edge3 0)
	says "mismatch: the shard is of device 'edge3', but only 'edge5' may send here"
	# without --reply aggregate a question is refused
	question edge3 9 | ace-recv --spool spool >receipts
	refuses 5 'kind model is not accepted, expected gradient' ace-ack -S st receipts
}

@test "a question that is repeated on one connection gets each average once" {
	local s
	for s in 0 1 2; do closes $s edge1 edge2; done
	for s in $(seq 50); do question edge3 0; done |
	    timeout "$HANG" ace-recv --spool spool --device edge3 --reply aggregate >told
	ace-inspect verify told
	[ "$(told | sed 's/\( model 3\)\1*$/\1/')" = 'mean 0 mean 1 mean 2 model 3' ]
	# a repeated shard gets each average once, too
	for s in 0 0 0 1 1 2; do mkshards -d edge1 -s $s -x $s -r demo -c f32; done >again
	ace-recv --spool spool --reply aggregate <again >told
	[ "$(told)" = 'mean 0 mean 1 mean 2' ]
}

@test "a device that has asked, with or without a name, is late and not invalid with an old shard" {
	local s none
	none=$(printf '{}      ')
	for s in 0 1 2; do closes $s edge1 edge2; done
	asks edge3 0 >told
	[ "$(cat spool/device/edge3.known)" = 3 ]
	nameless() { ace-import -r demo "$@"; }
	perl -e 'print pack("Q<", 8), $ARGV[0]' "$none" | nameless -k model -s 0 |
	    timeout "$HANG" ace-recv --spool spool --reply aggregate >told
	[ "$(told)" = 'mean 0 mean 1 mean 2 model 3' ]
	[ -e spool/device/%.known ]
	for s in 3 4 5 6; do closes $s edge1 edge2; done
	asks edge3 3 >told
	mkshards -d edge3 -r demo -s 3 >in
	notes "step 3: late: step 3 is closed" ace-recv -v --spool spool in
	ace-export -o in.safetensors in
	nameless -s 3 in.safetensors >in
	notes "step 3: late: step 3 is closed" ace-recv -v --spool spool in
}

@test "a question waits for an unpublished average, and is refused if one was removed" {
	closes 0 edge1 edge2
	sends edge1 1
	sends edge2 1
	ace-aggregate --spool spool --devices 2 --rounds 1 >mean
	asks edge3 0 >told 3>&- &
	wait_for larger told 500	# the first aggregate
	ace-recv --spool spool --publish mean
	wait $!
	[ "$(told)" = 'mean 0 mean 1 model 2' ]
	keep=(--keep 1)
	closes 2 edge1 edge2
	exits 5 asks edge4 0
	says "the average of step [01] is absent \(ace-aggregate --keep removes averages\): begin with a model of a later step"
	asks edge4 2 >told
	[ "$(told)" = 'mean 2 model 3' ]
}

@test "a shard of a new device far behind is invalid if the device has not asked" {
	for s in 0 1 2; do closes $s edge1; done
	# a shard of the step before the last closed one is late
	mkshards -d edge2 -s 1 -r demo | ace-compress -S st2 -c f32 |
	    ace-recv --spool spool | ace-ack -v -S st2 2>said >/dev/null
	grep -q 'step 1: late: step 1 is closed' said
	mkshards -d edge3 -s 0 -r demo | ace-compress -S st3 -c f32 |
	    ace-recv --spool spool >receipt
	exits 5 ace-ack -S st3 receipt
	says 'step 0: invalid: this device is new here, and step 3 is the next: the device has to ask for the averages so far'
	# a device that has a shard in the spool is late
	mkshards -d edge1 -s 3 -r demo -x 3 | ace-recv --spool spool >/dev/null
	mkshards -d edge2 -s 3 -r demo -x 3 | ace-recv --spool spool >/dev/null
	for s in 3 4 5; do closes $s edge1; done
	is_late edge2 2
	# a device that asked is late from the step in the answer on
	asks edge3 0 >told
	for s in 6 7 8; do closes $s edge1; done
	is_late edge3 6
	mkshards -d edge3 -s 5 -r demo | ace-recv --spool spool >receipt
	exits 5 ace-ack -S st6 receipt
	# a device that an operator added is late
	joins edge7
	is_late edge7 2
}

@test "a question before the first shard does not decide the run" {
	local i
	for i in 1 2 3 4; do
		perl -e 'print pack("Q<", 8), "{}      "' |
		    ace-import -k model -d edge$i -r run$i
	done >in
	makes told ace-recv --spool spool --reply aggregate in
	[ "$(told)" = 'model 0 model 0 model 0 model 0' ]
	[ "$(ls spool)" = device ]
}

@test "a slow device that asked or joined when the run began is late" {
	asks edge2 0 >told
	joins edge3
	[ "$(cat spool/device/edge2.known spool/device/edge3.known)" = 0$'\n'0 ]
	rm spool/devices
	for s in 0 1 2; do closes $s edge1; done
	is_late edge2 0
	is_late edge3 0
}

# bats test_tags=long
@test "--reply aggregate prints once which devices are missing" {
	closes 0 edge1 edge2 edge3
	mkshards -d edge2 -s 1 -r demo | ace-recv --spool spool >/dev/null
	mkshards -d edge1 -s 1 -r demo |
	    timeout "$HANG" ace-recv --spool spool --reply aggregate \
	    >answer 2>said 3>&- &
	wait_for grep -qE "^ace-recv: waiting for step 1: there are shards: edge[12], edge[12]; missing: edge3$" said
	sends edge3 1
	ace-aggregate --spool spool --devices 3 --rounds 1 | ace-recv --spool spool --publish
	wait
	[ "$(wc -l <said)" -eq 1 ]
	# all shards have come, but the running cloud's average has not
	ace-aggregate --spool spool --devices 1 --rounds 3 --publish >mean 3>&- 2>/dev/null &
	aggregate=$!
	mkshards -d edge1 -s 2 -r demo |
	    timeout "$HANG" ace-recv --spool spool --reply aggregate \
	    >answer 2>said 3>&- &
	wait_for grep -qx "ace-recv: waiting for step 2: it is closed, but its average is not there" said
	ace-aggregate spool/2/edge1.aceg | ace-recv --spool spool --publish
	wait $aggregate
	wait
}

@test "--rounds with --publish counts all averages of the run, also from other calls" {
	for s in 0 1 2; do sends edge1 $s; done
	ace-aggregate --spool spool --devices 1 --rounds 1 | ace-recv --spool spool --publish
	timeout "$HANG" ace-aggregate --spool spool --devices 1 --rounds 3 --publish |
	    ace-recv --spool spool --publish
	[ -e spool/2/aggregate.aceg ]
	exits 0 timeout "$HANG" ace-aggregate --spool spool --devices 1 --rounds 3 --publish
	ace-inspect verify out
	[ -z "$(field step out)" ]
	# steps that --keep removed count as well
	sends edge1 3
	timeout "$HANG" ace-aggregate --spool spool --devices 1 --rounds 4 --keep 1 \
	    --publish | ace-recv --spool spool --publish
	[ ! -e spool/1 ]
	exits 0 timeout "$HANG" ace-aggregate --spool spool --devices 1 --rounds 4 --publish
}
