load helper

# verdict FILE: print what ace-ack says about the receipts in FILE, one per line
verdict() {
	rm -rf scratch
	ace-ack -S scratch -v <"$1" 2>&1 >/dev/null | sed 's/^ace-ack: //'
}

# recv VERDICT ARGS...: receive standard input, and check that the one receipt has VERDICT
recv() {
	local want=$1
	shift
	exits 0 ace-recv --spool spool "$@"
	verdict out >said
	grep -qE "$want" said || { cat said; return 1; }
}

# waits REGEX: check that standard input gets no receipt and that the spool is unchanged
waits() {
	find spool | sort >was
	refuses 5 "$1" ace-recv --spool spool
	[ ! -s out ]
	find spool | sort | diff was -
}

shard() { mkshards -d "${2:-edge1}" -s "$1" "${@:3}"; }

# gets VERDICT STEP [DEVICE [OPTION...]]: send such a shard, and check that the receipt has VERDICT
gets() {
	shard "${@:2}" >in
	recv "$1" <in
}

@test "a shard is accepted and stored unchanged; the same shard again is a duplicate" {
	gets '^step 3: accepted$' 3
	ace-inspect verify spool/3/edge1.aceg
	ace-inspect diff in spool/3/edge1.aceg
	cp spool/3/edge1.aceg before
	recv '^step 3: duplicate$' <in
	recv '^step 3: duplicate$' <in
	same before spool/3/edge1.aceg
	[ "$(find spool -name '*.new-*')" = "" ]
}

@test "another shard for the same step is an equivocation, and the first stays" {
	shard 0 edge1 -x 1 >one
	shard 0 edge1 -x 2 >other
	recv '^step 0: accepted$' <one
	recv '^step 0: equivocation' <other
	ace-inspect diff one spool/0/edge1.aceg
	makes receipt ace-recv --spool spool other
	refuses 5 "equivocation" ace-ack -S state receipt
}

@test "many shards on one connection: one receipt per shard, in order" {
	mkshards -N 20 >in
	exits 0 ace-recv --spool spool in
	[ "$(verdict out | grep -c accepted)" -eq 20 ]
	verdict out | sort -c -k2n
}

@test "a non-finite value makes a shard invalid, with the same verdict each time" {
	gets "^step 0: invalid: non-finite value in tensor 'embed' at index 3" 0 edge1 -k nan
	recv "^step 0: invalid: non-finite" <in
	# the same after the step is closed, when a valid shard is late
	shard 0 edge2 >other
	recv accepted <other
	exits 0 ace-aggregate --spool spool --rounds 1
	recv "^step 0: invalid: non-finite" <in
	gets '^step 0: late: step 0 is closed' 0
}

@test "the differences of a device, as f32, take at most eight times the limit shard" {
	limits 'shard 100Ki'
	for s in 0 1 2 3; do
		mkshards -n 64k -s $s -c topk:0.01 -H flags=16 -K predict=cache:1 -K history=none >in
		[ $s = 3 ] || exits 0 ace-recv --spool spool in
	done
	refuses 5 'limit: steps of .* that wait for an average: 3, and with this step, the values as f32 exceed 8 times the limit \(limits: shard\): see' \
	    ace-recv --spool spool in
	# another device has its own room, and a gradient needs none
	exits 0 ace-recv --spool spool < <(mkshards -d edge2 -n 64k -c topk:0.01)
	exits 0 ace-recv --spool spool < <(mkshards -n 64k -s 3 -c topk:0.01)
}

@test "a shard beyond the limit of open steps gets no receipt, and counts once when sent again" {
	limits 'open 1'
	for s in 0 1; do
		shard $s >in$s
		ace-compress -S state -c f32 --window 4 in$s >sent$s
		[ $s = 1 ] || ace-recv --spool spool sent0 | ace-ack -S state >rest
	done
	waits 'that wait for an average: 1, as many as may wait \(limits: open\): see' <sent1
	exits 4 ace-ack -S state < <(cat out)
	says 'no answer: .*run the same command again later'
	exits 0 ace-aggregate --spool spool --rounds 1
	ace-recv --spool spool sent1 | ace-ack -S state >rest
	exits 0 ace-aggregate --spool spool --rounds 1
	exits 0 ace-inspect audit -S state --spool spool in0 in1
	[ "$(cat out)" = 'edge1: exact, 2 inputs up to step 1, 2 accepted, 0 pending' ]
}

@test "after an invalid shard a valid one may take its step; the invalid one stays invalid" {
	shard 0 edge1 -k nan >wrong
	shard 0 edge1 -k inf >again
	shard 0 >good
	shard 0 edge1 -x 2 >other
	recv '^step 0: invalid' <wrong
	recv '^step 0: invalid' <again
	recv '^step 0: accepted$' <good
	# verdicts stay the same, and no third shard is accepted for that step
	for _ in 1 2; do
		recv '^step 0: invalid' <wrong
		recv '^step 0: invalid' <again
		recv '^step 0: duplicate$' <good
		recv '^step 0: equivocation' <other
	done
	same good <(ace-cut spool/0/edge1.aceg) ||
	    exits 0 ace-inspect diff good spool/0/edge1.aceg
	shows 'edge1' ace-status spool
	# after 16 invalid shards no other shard is accepted for a step
	for i in {1..16}; do
		shard 1 edge1 -k nan -n $((400 + i)) >try
		recv '^step 1: invalid' <try
	done
	shard 1 >good
	recv '^step 1: invalid: 16 other shards of this step were invalid: send a later step' <good
}

@test "a spool belongs to one run: its first shard's, or that of --run" {
	mkshards -r gen -d edge1 >gen
	mkshards -r crit -d edge1 -s 1 >crit
	exits 3 ace-recv --spool spool --run gen crit
	says "^ace-recv: mismatch: the shard is of run 'crit', expected 'gen' .--run.$"
	exits 0 ace-recv --spool spool --device edge2 --join
	exits 0 ace-recv --spool spool gen
	exits 3 ace-recv --spool spool crit
	says "^ace-recv: mismatch: the shard is of run 'crit', but spool '.*' is of run 'gen'$"
	mkshards -r crit -d edge1 -s 1 -k nan >nan
	exits 3 ace-recv --spool spool nan
	[ ! -e spool/1 ]
}

@test "a shard of another device than --device gets no receipt and leaves nothing in the spool" {
	shard 0 edge2 >in
	exits 3 ace-recv --spool spool --device edge1 <in
	says "mismatch: the shard is of device 'edge2', but only 'edge1' may send here"
	[ "$(ls spool)" = "" ]
	recv "^step 0: accepted" --device edge2 <in
}

@test "input after a refused shard is read and discarded, up to a limit" {
	shard 0 edge2 >in
	(cat in; sleep 0.3; cat in; sleep 0.3; cat in) |
	    still ace-recv --spool spool --device edge1 >out 2>err &&
	    status=("${PIPESTATUS[@]}") || status=("${PIPESTATUS[@]}")
	[ "${status[*]}" = '0 3' ]
	(cat in; exec yes) | ace-recv --spool spool --device edge1 >out 2>err &&
	    status=("${PIPESTATUS[@]}") || status=("${PIPESTATUS[@]}")
	[ "${status[*]}" = '141 3' ]
	# a connection that stays silent is closed after a while
	mkfifo line
	exec 9<>line
	cat in >&9
	exits 3 timeout "$HANG" ace-recv --spool spool --device edge1 <line
	says "mismatch: the shard is of device 'edge2'"
}

@test "a shard of another model than the run's is invalid" {
	gets accepted 0
	mkshards -d edge2 -t other:7 >in
	recv "^step 0: invalid: mismatch: the shard is of another model than run 'test': .*other" <in
}

@test "--create writes a file of limits once; a line of it may name a device" {
	exits 0 ace-recv --spool spool --create
	[ ! -s out ]
	cp spool/limits made
	refuses 5 "'spool/limits' exists already" ace-recv --spool spool --create
	same made spool/limits
	for other in --publish '--run r' '--reply aggregate' '--device d' '-o log' file; do
		exits 2 ace-recv --spool other --create $other
		[ ! -e other/limits ]
	done
	gets '^step 0: accepted$' 0 edge1 -w 2
	# a device's last own line counts; without own lines, the last line for all devices
	printf '%s\n' 'weight 3 edge1' '  weight 9 # edge1' 'weight 1' '' '# weight 5' \
	    'weight 5 edge#2 # a name' 'weight 4 an edge ' >>spool/limits
	for d in edge1 edge#2 'an edge' edge2 ''; do
		mkshards -w 6 -s 1 -d "${d:-edge3}" >in
		exits 0 ace-recv -v --spool spool ${d:+--device "$d"} in
		sed -n 's/.*weight is 6, expected at most \([0-9]*\) (limits: weight)$/\1/p' err
	done >most
	[ "$(paste -sd' ' most)" = '3 5 4 1 1' ]
	# the file is read in the sandbox as well
	mkshards -s 2 >in
	exits 0 ace-recv --sandbox auto -v --spool spool --device edge1 in
}

@test "the message for an invalid line of limits has file, line and what is expected; no input is read" {
	shard 0 >in
	ace-recv --spool spool --create
	while read -r line; do
		printf '# one\n\n%s\n' "${line%%:*}" | tr _ ' ' >spool/limits
		refuses 2 "spool/limits:3: ${line#*:}" ace-recv --spool spool in
		[ ! -e spool/0 ]
	done <<-'END'
		max-weight_1:this file cannot set 'max-weight'
		shards_1M:this file cannot set 'shards'
		shard:shard has no value: expected SIZE
		shard_1X:shard '1X'
		weight_0:weight '0' is not a number from
		weight_x_edge9:weight 'x' is not a number from
		open_0:open '0' is not a whole number from 1
		idle_-1s:idle '-1s'
	END
	printf 'weight 1\n\0' >spool/limits
	refuses 3 "spool/limits' has a zero byte" ace-recv --spool spool in
	rm spool/limits
	recv accepted <in
	mkdir spool/limits
	exits 3 ace-recv --spool spool in
	rmdir spool/limits
}

@test "a shard larger than its limit is invalid" {
	# the limit counts the bytes of the frames between SHRD and SEND
	mkshards -n 10k -s 2 >in
	bytes=$(frames in | awk '$2 == "SEND" { print $1 - at }
	    !at && $2 == "DATA" { at = $1 }')
	[ "$bytes" -gt 40000 ]
	limited "shard $bytes" recv "^step 2: accepted" <in
	mkshards -n 10k -s 3 >in
	limited "shard $((bytes - 1))" recv "^step 3: invalid: limit: the shard is larger" <in
	# a shard of more than eight times the limit is not read to its end
	limited "shard $((bytes / 8 + 1))" recv \
	    "^step 3: invalid: limit: the shard is larger" <in
	limited "shard $((bytes / 8 - 1))" exits 3 ace-recv --spool spool in
	says "limit: the shard is larger than 8 times [0-9]+ bytes .limits: shard"
}

@test "input that ends inside a shard: the shards before are accepted" {
	{ shard 0; shard 1; } >in
	head -c "$(($(wc -c <in) - 300))" in >part
	refuses 3 truncated ace-recv --spool spool <part
	[ -e spool/0/edge1.aceg ]
	[ ! -e spool/1/edge1.aceg ]
	mv out receipts
	refuses 3 "step 0: accepted" ace-ack -S state -v <receipts
	says "truncated"
	[ "$(find spool -name '*.new-*')" = "" ]
}

@test "--reply aggregate does not wait for an aggregate that cannot come" {
	gets accepted 0
	shard 0 edge1 -x 9 >other
	mkshards -d edge2 -t other:7 >model
	shard 0 edge3 -k inf >inf
	for f in other model inf; do
		exits 0 timeout "$HANG" ace-recv --spool spool \
		    --reply aggregate $f
		mv out back
		exits 5 ace-ack -S state back
		says '^ace-ack: step 0: (equivocation|invalid): '
	done
}

@test "--reply aggregate sends the receipt, then the step's aggregate" {
	shard 0 edge1 | ace-compress -S state -c f32 >one
	shard 0 edge2 -x 2 >two
	ace-recv --spool spool --reply aggregate one >back &
	recv accepted <two
	ace-aggregate --spool spool --devices 2 --rounds 1 |
	    ace-recv --spool spool --publish
	wait
	makes got ace-ack -S state back
	ace-aggregate one two >want
	ace-inspect diff want got
}

@test "--reply aggregate ends with the connection" {
	{ shard 0; shard 1; } >in
	head -c -40 in >part
	refuses 3 truncated timeout "$HANG" ace-recv --spool spool --reply aggregate part
	verdict out >said
	grep -q '^step 0: accepted' said
	limits 'idle 300ms, each 1'
	mkfifo line
	exec 9<>line
	cat in >&9
	exits 3 timeout "$HANG" ace-recv --spool spool --device edge1 \
	    --reply aggregate line
	exec 9>&-
	[ "$(verdict out | grep -c '^step [01]: ')" -eq 2 ]
	recv duplicate --device edge1 <in
}

@test "limits time excludes the wait for an aggregate" {
	shard 0 edge1 | ace-compress -S state -c f32 >one
	limits 'time 100s'
	still ace-recv --spool spool --reply aggregate one >back 3>&- &
	pid=$!
	wait_for grep -q RCPT back
	echo twelve days >later
	ace-aggregate --spool spool --devices 1 --rounds 1 |
	    ace-recv --spool spool --publish
	wait $pid
	makes got ace-ack -S state back
	exits 0 ace-inspect verify got
}

@test "no --spool: status 2" {
	refuses 2 "spool" ace-recv </dev/null
}

@test "the fixed limits of the page hold" {
	shard 0 >in
	# a weight may be very small; a value is at most 1e18
	limited 'weight 1' recv '^step 0: accepted$' <in
	limited 'weight 0' exits 2 ace-recv --spool spool in
	perl -e 'print pack("f<*", 1, 1e18, -1e18, 1e18)' >raw
	ace-import -f raw --name embed --shape 4 -d edge1 -r r2 raw >in
	exits 0 ace-recv --spool other in
	[ "$(verdict out)" = 'step 0: accepted' ]
	for v in 1.0001e18 -1.0001e18; do
		perl -e 'print pack("f<*", 1, 1e18, $ARGV[0], -1e18)' -- $v >raw
		ace-import -f raw --name embed --shape 4 -d "edge$v" -r r2 raw >in
		exits 0 ace-recv --spool other in
		[ "$(verdict out)" = "step 0: invalid: limit: ${v/18/+18} in tensor 'embed' at index 2 is above 1e+18 in magnitude" ]
	done
	gets '^step 1: accepted$' 1 edge1 -H samples=1099511627776
	shard 2 edge1 -H samples=1099511627777 >in
	recv '^step 2: invalid: limit: the shard has 1099511627777 samples, expected at most 2\^40$' <in
	shard 3 edge1 -H contributors=1025 >in
	recv '^step 3: invalid: limit: the shard has 1025 contributors, expected at least 1 and at most 1024 ' <in
	gets '^step 4: invalid: limit: the weight is ' 4 edge1 -w 1000001
	# while no step is closed, `ahead' counts from step 0
	limited 'ahead 7' gets '^step 7: accepted$' 7 edge1
	shard 9 edge1 >in
	limited 'ahead 8' waits 'limit: step 9 of .* is more than 8 steps after step 0 ' <in
}

@test "a shard that ace-aggregate deferred becomes invalid, with the reason" {
	shard 0 edge1 >one
	shard 0 edge2 >two
	recv accepted <one
	recv accepted <two
	shard 0 edge2 -H flags=16 >spool/0/edge2.aceg
	exits 0 ace-aggregate --spool spool --devices 2 --rounds 1
	recv "^step 0: invalid: mismatch: " <spool/0/edge2.aceg
	[ "$(grep -c 'step 0 is closed' said)" -eq 0 ]
	recv '^step 0: accepted$' <one
}

@test "a fenced shard leaves no file; only accepted shards raise the device's incarnation" {
	gets '^step 0: accepted$' 0 edge1 -H incarnation=3
	[ "$(cat spool/device/edge1.incarnation)" = 3 ]
	find spool | sort >before
	gets '^step 1: fenced: incarnation 2 is older than 3, the newest: ' 1 edge1 -H incarnation=2
	gets '^step 1: accepted$' 1 edge1 -H incarnation=3
	[ "$(find spool -name '*.no')" = '' ]
	# a shard without an incarnation writes none
	gets '^step 1: accepted$' 1 edge2
	[ ! -e spool/device/edge2.incarnation ]
}

@test "a receipt has the time and the model version at which it was written" {
	shard 0 >in
	SOURCE_DATE_EPOCH=1234567890 exits 0 ace-recv --spool spool in
	mv out receipt
	shows '"clock":1234567890000000000,"version":0' ace-inspect --format json receipt
	for s in 0 1 2 3; do
		gets accepted $s edge2
		exits 0 ace-aggregate --spool spool --rounds 1
	done
	shard 4 >in
	SOURCE_DATE_EPOCH=7 exits 0 ace-recv --spool spool in
	mv out receipt
	exits 0 ace-inspect --format json receipt
	grep -q '"verdict":"accepted",.*"step":4,.*"clock":7000000000,"version":3}' out
}

@test "the spool and all folders in it have mode 700" {
	umask 022
	gets accepted 0
	gets accepted 1
	exits 0 ace-aggregate --spool spool --rounds 2 --keep 1
	exits 0 ace-recv --spool spool --device d --join
	[ -d spool/done ]
	[ "$(find spool -type d -printf '%m\n' | sort -u)" = 700 ]
}

@test "--publish, --join and --leave print nothing, and may run on a terminal" {
	gets accepted 0
	makes mean ace-aggregate --spool spool --rounds 1
	exits 0 ace-recv --spool spool --publish mean
	[ ! -s out ]
	ace-inspect diff mean spool/0/aggregate.aceg
	exits 0 ace-recv --spool spool --device edge1 --join
	exits 0 ace-recv --spool spool --device edge1 --leave
	[ ! -s out ]
	exits 0 pty ace-recv --spool spool --publish mean
	for act in "--publish -o log" "--publish --device edge1" \
	    "--join --device edge1 -o log" "--leave --device edge1 -o log"; do
		exits 2 ace-recv --spool spool $act
	done
	[ ! -e log ]
	refuses 4 "^ace-recv: spool 'typo' is absent: " ace-recv --spool typo --device edge1 --leave
	[ ! -e typo ]
	for act in --join --leave; do
		refuses 2 'no device was given: add --device NAME' ace-recv --spool spool $act
	done
}

@test "-v prints the verdicts" {
	shard 0 >in
	exits 0 ace-recv --spool spool in
	[ ! -s err ]
	echo 'weight .1' >spool/limits
	exits 0 ace-recv --spool spool -v in
	[ "$(cat err)" = "ace-recv: 'edge1' step 0: duplicate" ]
	exits 0 ace-recv --spool spool -q in
	[ ! -s err ]
}

@test "a damaged file of the spool: status 3" {
	gets accepted 0
	gets invalid 1 edge1 -k nan
	cp spool/1/edge1.no no
	: >spool/1/edge1.no
	refuses 3 "corrupt: 'spool/1/edge1.no': the input is empty" ace-recv --spool spool in
	cp no spool/1/edge1.no
	exits 0 ace-aggregate --spool spool --rounds 1
	shard 2 >in
	rm spool/0/edge1.aceg spool/done/0
	refuses 3 'mismatch: a shard that .spool/closed. lists is absent from .spool/0.: restore that folder' \
	    ace-aggregate --spool spool --rounds 1
	for v in '' 0 '0 ' x $'0\n1'; do
		printf '%s' "$v" >spool/closed
		refuses 3 "corrupt: 'spool/closed'" ace-recv --spool spool in
	done
}

@test "by default all accepted data is synced; with --sync rename or none nothing is" {
	local s d
	shard 0 >in
	synced ace-recv --spool spool in >receipt
	for d in . spool spool/0; do
		grep -qx "$d" synced || { cat synced; return 1; }
	done
	grep -q '^spool/edge1\.new-' synced
	for s in rename none; do
		shard 0 $s >in
		synced ace-recv --spool spool --sync $s in >receipt
		[ ! -s synced ] || { cat synced; return 1; }
	done
	gets accepted 1
	shard 2 edge1 -H incarnation=1 >in
	synced ace-recv --spool spool in >receipt
	grep -q '^spool/device/edge1\.incarnation' synced
	makes mean ace-aggregate --spool spool --rounds 1
	synced ace-recv --spool spool --publish mean
	grep -q '^spool/0/.*aggregate' synced
	grep -qx spool/0 synced
}

@test "shards for the newest closed step and those before it are late" {
	for d in edge1 edge2; do shard 5 $d; done >in
	recv accepted <in
	exits 0 ace-aggregate --spool spool --rounds 1 --quorum 2
	recv '^step 5: accepted$' <in
	gets '^step 5: late: step 5 is closed$' 5 edge3
	[ ! -e spool/5/edge3.aceg ]
	gets '^step 4: late: step 4 is closed$' 4
	shard 8 >in
	limited 'ahead 2' waits 'limit: step 8 of .* is more than 2 steps after the last closed step, 5 ' <in
	limited 'ahead 2' gets '^step 7: accepted$' 7
}

@test "a name on the list of devices has at most 255 bytes, and its own line" {
	local name
	name=$(printf '%0255d' 7)
	exits 0 ace-recv --spool spool --device "$name" --join
	exits 0 ace-recv --spool spool --device b --join
	exits 0 ace-recv --spool spool --device "$name" --join
	[ "$(wc -l <spool/devices)" -eq 2 ]
	[ "$(head -n 1 spool/devices)" = "$name" ]
	# a list that was edited by hand and is too long is refused, not truncated
	yes edge77 | head -c $(((1 << 20) - 1)) >spool/devices
	exits 0 ace-recv --spool spool --device b --join
	yes edge77 | head -c $((1 << 20)) >spool/devices
	exits 3 ace-recv --spool spool --device b --join
	says "limit: 'spool/devices' has 1 MiB or more"
	echo "${name}0" >spool/devices
	exits 3 ace-recv --spool spool --device b --join
	says "corrupt: 'spool/devices' has line '.*', expected a device's name of at most"
	for name in "${name}0" $'two\nlines' $'\033[31m' ' blank' 'blank ' ''; do
		exits 2 ace-recv --spool spool --device "$name" --join
		says 'is not a valid name for the list of devices'
		[ ! -e spool/new ]
	done
}

@test "-o writes all receipts or no file" {
	{ shard 0; shard 1; } >in
	exits 0 ace-recv --spool spool -o receipts in
	[ ! -s out ]
	[ "$(verdict receipts | paste -sd,)" = 'step 0: accepted,step 1: accepted' ]
	head -c "$(($(wc -c <in) - 300))" in >part
	exits 3 ace-recv --spool other -o none part
	[ ! -e none ]
	# options about the output apply to the receipts
	exits 0 ace-recv --spool spool --omit provenance in
	grep -aq 'ace-recv [0-9]' receipts
	if grep -aq 'ace-recv [0-9]' out; then false; fi
}

@test "the child that reads shards is killed: status 4 and a message" {
	mkfifo hole
	exec 9<>hole
	mkshards | head -c -40 >&9
	(got=0; ace-recv --spool spool --reply aggregate <hole >back 2>err || got=$?
	    echo "$got" >status) 9>&- 3>&- &
	wait_for test -e spool/0/edge1.aceg
	# the parent process waits for aggregates, and its child reads shards
	kill -9 "$(pgrep -P "$(pgrep -P $! -x ace-recv)")"
	exec 9>&-
	wait_for test -s status
	verdict back | grep -q '^step 0: accepted'
	[ "$(cat status)" = 4 ]
	says '^ace-recv: the process that reads the shards was killed'
}

@test "--publish accepts one aggregate per step, of the spool's run" {
	shard 0 >in
	shard 0 edge2 -k ramp >in2
	recv accepted <in
	recv accepted <in2
	makes mean ace-aggregate --spool spool --devices 2 --rounds 1
	ace-aggregate in >other
	exits 3 ace-recv --spool spool --publish in
	says "mismatch: step [0-9]+ of 'edge1' has kind gradient, expected mean or sum .--publish."
	mkshards -r else >in2
	ace-aggregate in2 >in3
	exits 3 ace-recv --spool spool --publish in3
	says "mismatch: the shard is of run 'else', but spool '.*' is of run 'test'"
	mkshards -n 5 | ace-aggregate >in3
	refuses 3 "the average is of another model than run 'test': " ace-recv --spool spool --publish in3
	[ ! -e spool/0/aggregate.aceg ]
	exits 0 ace-recv --spool spool --publish mean
	exits 0 ace-recv --spool spool --publish mean
	exits 5 ace-recv --spool spool --publish other
	says "step 0 already has a different average, '.*0/aggregate.aceg'"
	ace-inspect diff mean spool/0/aggregate.aceg
	[ -z "$(find spool -name '*.new-*')" ]
}

# at_once LOCK N CMD -- CMD: hold LOCK until both commands together have N temporary files;
# set `won' to the index (0 or 1) of the command with status 0, `lost' to the other's status
at_once() {
	local lock=$1 n=$2 one pid=() i got
	shift 2
	while [ "$1" != -- ]; do one+=("$1"); shift; done
	shift
	exec 9>"$lock"
	flock 9
	"${one[@]}" >out0 2>err0 9>&- 3>&- &
	pid+=($!)
	"$@" >out1 2>err1 9>&- 3>&- &
	pid+=($!)
	begun() { [ "$(find spool -name '*.new-*' | wc -l)" -eq "$n" ]; }
	wait_for begun
	exec 9>&-
	won='' lost=''
	for i in 0 1; do
		got=0
		wait "${pid[i]}" || got=$?
		[ "$got" -eq 0 ] && won+=$i || lost+=$got
	done
}

@test "two runs or two averages at the same time: one is accepted" {
	mkshards -r one >one
	mkshards -r two >two
	mkdir -m 700 spool
	at_once spool/.lock 2 ace-recv --spool spool one -- ace-recv --spool spool two
	[ "$lost" = 3 ]
	ace-status spool | grep "^run '$([ "$won" = 0 ] && echo one || echo two)'"
	rm -r spool
	gets accepted 0
	shard 0 edge1 -x 2 | ace-aggregate >mean1
	ace-aggregate in >mean0
	at_once spool/.lock 2 ace-recv --spool spool --publish mean0 -- \
	    ace-recv --spool spool --publish mean1
	[ "$lost" = 5 ]
	ace-inspect diff "mean$won" spool/0/aggregate.aceg
}

@test "a receipt is valid although its reason is truncated inside a character" {
	gets accepted 0
	long=x$(printf '\303\251%.0s' {1..60})
	mkshards -t "$long:64" -s 1 >other
	exits 0 ace-recv --spool spool other
	ace-inspect out >said
	grep -q 'step 1: invalid' said
	exits 0 ace-recv --spool spool other
	exits 0 ace-status spool
}

# costs CMD...: count the files and directories that it syncs, and the entries that it lists
costs() {
	strace -f -y -qq -o trace -e trace=fsync,getdents64 "$1" --sandbox off "${@:2}" >sum
	awk '/fsync/ { if (/\.new-/) f++; else d++ }
	    /getdents64/ && /entries/ { sub(/.*\/\* /, ""); l += $1 }
	    END { print f + 0, d + 0, l + 0 }' trace
}

# bats test_tags=plain
@test "a shard takes 2 syncs and a closed step 4, for any number of devices" {
	local d n one two
	needs strace
	for n in 0 1 2 3 4; do shard $n edge0; done >first
	for n in 1 2 3; do shard 1 edge$n; done >in
	exits 0 ace-recv --spool spool --run test first
	read -ra one < <(costs ace-recv --spool spool --run test in)
	[ "${one[*]:0:2}" = "3 3" ]
	exits 0 ace-aggregate --spool spool --rounds 1
	read -ra one < <(costs ace-aggregate --spool spool --rounds 1)
	read -ra two < <(costs ace-aggregate --spool spool --rounds 2)
	[ "$((two[0] - one[0])) $((two[1] - one[1]))" = "1 3" ]
	# a step of a device: one of each, and once the folder of the state
	mkshards -N 9 -n 100k >steps
	read -ra one < <(costs ace-compress -S state -c q8 steps)
	[ "${one[*]:0:2}" = "9 10" ]
	# only the step's directory, which grows with the devices, is listed: twice
	for d in $(seq 100); do mkshards -d "edge$d" -n 8; done >all
	read -ra one < <(costs ace-recv --spool many --run test --sync none all)
	read -ra two < <(costs ace-aggregate --spool many --sync none --rounds 1)
	[[ ${one[2]} -lt 20 && ${two[2]} -lt 360 ]]
}
