# Hostile devices: nothing that one of them sends may cost the others a step or the run, or
# exhaust the machine.
# shellcheck disable=SC2238 # cut is a file here
load helper

shard() { mkshards -d "${2:-edge1}" -s "$1" "${@:3}"; }

# recv REGEX ARGS...: receive standard input into the spool, and check that the message matches
recv() {
	local want=$1
	shift
	notes "$want" ace-recv -v --spool spool --sync none "$@"
}

# gets REGEX STEP [DEVICE [OPTION...]]: send this shard, and check that the message matches
gets() {
	shard "${@:2}" >in
	recv "$1" <in
}

# waits REGEX ARGS...: the same as recv for a shard that has to wait and gets no receipt
waits() {
	local want=$1
	shift
	refuses 5 "$want" ace-recv --spool spool --sync none "$@"
}

# aggregate ARGS...: aggregate the next step
aggregate() {
	exits 0 timeout "$HANG" ace-aggregate --spool spool --rounds 1 \
	    --sync none --omit provenance "$@"
}

@test "kinds other than gradients, and differences to a history, are refused" {
	local k
	for k in 4 5 6; do
		gets "step $k: invalid: mismatch: kind [a-z]* is not accepted" "$k" edge1 -H kind=$k
	done
	for k in 0 1 2 3; do
		gets "step 1$k: accepted" 1$k edge1 -H kind=$k
	done
	gets "step 7: invalid: corrupt: the shard has only some of flag PREDICTED, key predict and key history" 7 edge1 -H flags=16
	shard 8 edge1 -H flags=16 -K predict=poetry -K history=none >in
	recv "step 8: invalid: corrupt: key predict: 'poetry'" <in
	gets "step 8: accepted" 8 edge1 -H flags=16 -K predict=cache:1 -K history=none
}

@test "weights, counts and steps are limited" {
	gets "invalid: limit: the weight is 1e\+30, expected at most 1000000" 0 edge1 -w 1e30
	limited 'weight 1' gets "invalid: limit: the weight is 2, expected at most 1 " 1 edge1 -w 2
	# a limit on weights is at most 1e12, so that sums stay finite
	limited 'weight 1.1e12' exits 2 ace-recv --spool spool in
	gets "invalid: limit: the shard has 0 contributors" 2 edge1 -H contributors=0
	shard 3 edge1 -H contributors=4294967295 >in
	recv "invalid: limit: the shard has 4294967295 contributors, expected at least 1 and at most 1024" <in
	shard 4 edge1 -H samples=18446744073709551615 >in
	recv "invalid: limit: the shard has 18446744073709551615 samples" <in
	gets "invalid: mismatch: step 5 was computed with model version 6, which is later than the step" 5 edge1 -H base=6
	gets "invalid: limit: the incarnation is" 6 edge1 -H incarnation=4294967295
	gets "invalid: limit: the weight is 1e-31, expected at least 1e-30" 6 edge1 -w 1e-31
	limited 'ahead 4611686018427387904' gets 'step 4611686018427387904: accepted' 4611686018427387904
	gets "step 7: accepted" 7 edge1 -w 1e6 -H contributors=1024 -H base=7
}

@test "a device that may send only its own shards may not name other contributors" {
	shard 0 edge1 | ace-aggregate -d evil >in
	recv "step 0: accepted" <in
	rm -r spool
	limited 'contributors 1' recv \
	    "evil' step 0: invalid: limit: the list of contributors has [0-9]+ names? \(first: 'edge1'\), expected only the sender's \(limits: contributors\)" <in
	shard 1 evil | ace-aggregate -d evil >in
	limited 'contributors 1' recv "step 1: accepted" <in
	shard 1 edge1 | ace-aggregate -d relay >in
	limited 'contributors 1, contributors 16 relay' recv accepted --device relay <in
}

@test "a list of contributors that names a device twice, in two frames, is corrupt" {
	mkshards -d evil -H contributors=3 -M a,x -M y >in
	exits 0 ace-aggregate in
	mkshards -d evil -H contributors=3 -M a,x -M x >in
	for cmd in ace-aggregate "ace-inspect -v" "ace-inspect verify"; do
		refuses 3 "corrupt: .*the list of contributors" $cmd in
	done
	recv "invalid: corrupt: .*the list of contributors" <in
}

@test "shards with invalid policies are refused, and the others are averaged" {
	local p step=0
	for p in delay=nan interval=nan force=2 delay=1001 cuts=1,2; do
		gets "invalid: .*corrupt: key ${p%=*}" $((++step)) edge1 -P $p
	done
	gets "invalid: .*corrupt: key model.norm" 9 edge1 -K model.norm=nan
	gets accepted 9 edge2
	aggregate
	ace-inspect verify out
}

# many PREFIX: print 9000 lines of a policy
many() { seq -f "$1%04g=" 1000 9999; }

@test "many policies of a shard take little time, and all together have the limit of one" {
	local frames=() i
	for i in {1..24}; do
		frames+=(-P "$(many a)")
	done
	# the same keys in several frames
	mkshards "${frames[@]}" >in
	exits 0 cpu 5 ace-aggregate in
	exits 0 cpu 5 ace-inspect verify in
	mkshards -P "$(many a)" -P "$(many b)" >in
	for i in ace-aggregate 'ace-inspect verify'; do
		refuses 3 "limit: the policy is larger than 64 KiB" $i in
	done
	gets "invalid: .*limit: the policy is larger" 0 evil -P "$(many a)" -P "$(many b)"
}

@test "cuts that leave no room in an aggregate for other keys are ignored" {
	shard 0 evil -P "cuts=$(seq -s, 999999 -1 990641),1
cuts.seconds=1" >in
	recv accepted <in
	# the same with a long number
	shard 0 evil2 -P "cuts=1
cuts.seconds=1.$(printf '0%.0s' {1..65000})" >in
	recv accepted <in
	gets accepted 0 good -P $'cuts=2,1\ncuts.seconds=1\ndelay=1\ninterval=4'
	for d in good2 good3; do
		gets accepted 0 $d -P $'delay=1\ninterval=4'
	done
	aggregate --devices 5
	ace-inspect verify out
	ace-inspect -v out >shown
	grep -q 'cuts=2,1$' shown
	grep -q 'delay=1$' shown
	# if no cuts are usable, the aggregate has none
	mkshards -d evil -P "cuts=$(seq -s, 999999 -1 990641),1
cuts.seconds=1" >in
	exits 0 ace-aggregate in
	ace-inspect -v out >shown
	grep -q cuts shown && return 1
	true
}

@test "shards of steps that are far ahead leave no files" {
	local s
	for s in 9223372036854775808 18446744073709551615 10001; do
		shard $s >in
		waits "limit: step $s of .* is more than 10000 steps after step 0 " <in
	done
	[ "$(ls spool)" = "" ]
	gets accepted 10000
	aggregate
	shard 10030 >in
	limited 'ahead 20' waits "more than 20 steps after the last closed step, 10000 " <in
	limited 'ahead 30' recv accepted <in
}

@test "--run and a given schema are not replaced by the first shard's" {
	gets accepted 0
	mkshards -d edge2 -r other -t w:7 >in
	exits 3 ace-recv --spool pinned --run test in
	[ "$(ls pinned)" = "" ]
	mkshards -t w:7 >theirs
	exits 0 ace-recv -v --spool pinned --run test --schema spool/0/edge1.aceg \
	    --sync none theirs
	says "invalid: mismatch: the shard is for another model than ace-recv --schema"
	[ ! -e pinned/schema.aceg ]
	shard 0 edge2 >in
	exits 0 ace-recv -v --spool pinned --run test --schema spool/0/edge1.aceg \
	    --sync none in
	says accepted
}

@test "a device that sends several shards for a step counts once" {
	local i
	for i in 1 2 3 4 5; do
		shard 0 evil -k ramp -x $i >in
		ace-recv --spool spool --device evil --sync none in >/dev/null
	done
	for i in 1 2 3; do
		shard 0 edge$i -k zeros >in
		recv accepted --device edge$i <in
	done
	[ "$(ls spool/0/*.aceg | wc -l)" -eq 4 ]
	# with --device, a shard of another device or without a name is refused
	shard 0 edge4 >in
	exits 3 ace-recv --spool spool --device evil in
	mkshards -d '?' >in
	exits 3 ace-recv --spool spool --device evil in
	mkshards -d '' >in
	exits 3 ace-recv --spool spool --device '?' in
	aggregate --rule median --devices 4
	[ "$(ace-export -f raw out | od -An -v -tf4 |
	    awk '{ for (i = 1; i <= NF; i++) if ($i != 0) n++ } END { print n + 0 }')" -eq 0 ]
}

@test "a device with the name aggregate cannot replace the aggregate" {
	gets accepted 0 aggregate
	[ ! -e spool/0/aggregate.aceg ]
	aggregate
	recv duplicate\|accepted <in
}

@test "an unusable shard is deferred, and the next step follows" {
	local i
	for i in 1 2 3; do shard 0 edge$i; shard 1 edge$i; done >all
	exits 0 ace-recv --spool spool --sync none all
	# an unusable file, as an earlier version might have accepted it
	shard 0 edge2 -H flags=16 >spool/0/edge2.aceg
	aggregate --devices 3
	says "^ace-aggregate: step [0-9]+: 1 of 3 shards is excluded: mismatch: "
	[ "$(ace-inspect --format json out | grep -o '"contributors": *[0-9]*' |
	    grep -o '[0-9]*$' | head -n 1)" = 2 ]
	cp spool/0/edge2.aceg in
	recv "edge2' step 0: invalid: mismatch: " <in
	# fewer than a quorum are left: there is no aggregate, and no device waits for one
	shard 1 edge2 -H flags=16 >spool/1/edge2.aceg
	aggregate --devices 3 --quorum 3
	says "step [0-9]+ has no average"
	shard 1 edge1 >in
	exits 0 timeout "$HANG" ace-recv --spool spool --reply aggregate --sync none in
	gets accepted 2 edge1
	aggregate
}

@test "weights and counts that overflow: one shard is deferred, the others are averaged" {
	local i what=("-w 1.7e308" "-H samples=18446744073709551615"
	    "-H contributors=4294967295")
	local why=("limit: (step 0: )?weight 1.7e\\+308 of 'evil[12]' makes the sum of weights infinite"
	    "limit: (step 1: )?'evil[12]' has samples=18446744073709551615, contributors=1, the shards before it [0-9]* and [0-9]*: expected"
	    "limit: (step 2: )?'evil[12]' has samples=.*, contributors=4294967295, the shards before it [0-9]* and [0-9]*: expected")
	for i in 0 1 2; do
		for d in edge1 edge2 evil1 evil2; do shard $i $d; done >all
		exits 0 ace-recv --spool spool --sync none all
		# these files exceed the limits, as if accepted under larger ones
		for d in evil1 evil2; do
			shard $i $d ${what[i]} >spool/$i/$d.aceg
		done
		refuses 3 "${why[i]}" ace-aggregate spool/$i/*.aceg
		aggregate --devices 4
		says "^ace-aggregate: step [0-9]+: 1 of 4 shards is excluded: ${why[i]}"
		ace-inspect verify out
	done
}

@test "the open steps of each device are limited separately, those of refused shards too" {
	mkshards -N 12 >in
	limited 'open 5' waits "limit: steps of '.*' that wait for an average: 5, as many as may wait .limits: open" -v in
	[ "$(grep -c accepted err)" -eq 5 ]
	[ "$(ls -d spool/[0-9]* | wc -l)" -eq 5 ]
	limited 'open 5' gets accepted 9 edge2
	# shards that the spool has get the same receipts as before
	limited 'open 5' gets "step 3: duplicate" 3
	# closing a step makes room
	shard 6 >in
	limited 'open 5' waits "limit: steps of .edge1. that wait for an average: 5" <in
	aggregate
	limited 'open 5' gets "step 6: invalid: non-finite" 6 edge1 -k nan
	shard 7 >in
	limited 'open 5' waits "limit: steps of .edge1. that wait for an average: 5" <in
	limited 'open 6' recv "step 7: accepted" <in
}

# slow CMD: check that ace-recv ends with status 3 although CMD, which writes to it, does not end
slow() {
	local pid r=0 cmd=$1
	rm -f pipe
	mkfifo pipe
	bash -c "$cmd" >pipe 3>&- &
	pid=$!
	exits 3 timeout "$HANG" ace-recv --spool spool <pipe || r=1
	kill $pid 2>/dev/null || true
	wait $pid || true
	return $r
}

@test "a device that stops in the middle of a shard times out" {
	mkshards -n 100k >in
	limited 'timeout 300ms' slow 'head -c 100000 in; exec sleep "$HANG"'
	says "truncated: timed out"
	limited 'time 300ms' slow 'exec sleep "$HANG"'
	[ "$(grep -c "truncated: timed out" err)" = 1 ]
	# slow input, a few bytes at a time, times out, too
	limited 'timeout 5s, time 700ms' slow \
	    'exec <in; head -c 5000; while head -c 9; do sleep 0.1; done'
	says "truncated: timed out"
	[ "$(find spool -name '*.new-*')" = "" ]
}

@test "a device that stops between two shards times out" {
	mkshards -n 500 >in
	# send all but the last frame, TAIL, so that another shard could follow; these bytes are
	# in the pipe before ace-recv starts
	mkfifo full
	exec 9<>full
	head -c -40 in >&9
	limited 'idle 300ms' exits 3 timeout "$HANG" ace-recv --spool spool -v <full
	exec 9>&-
	says "accepted"
	says "truncated: timed out"
	limited 'idle 300ms' slow 'exec sleep "$HANG"'
	says "truncated: timed out"
}

# gives_up WHY FROM [LIMIT]: check that ace-recv ends for reason WHY if the sender stops after
# the file FROM; its clock advances only while it waits
gives_up() {
	rm -rf spool full
	[ -z "${3:-}" ] || limits "$3"
	mkfifo full
	exec 9<>full
	cat "$2" >&9
	LD_PRELOAD=$(preload) ACE_FASTER=0 exits 3 timeout "$HANG" ace-recv --spool spool <full
	exec 9>&-
	says "truncated: timed out$1"
}

@test "default limits: a minute inside a shard, two hours between shards, a day per connection" {
	mkshards -n 500 >in
	head -c 1000 in >half
	gives_up ': no byte came for 60 s' half
	head -c -40 in >whole
	gives_up ': no byte came for 7200 s' whole
	gives_up ": no shard ended within 86400 s .set by 'time' in the spool's" whole 'idle 48h'
}

@test "a device that never reads its answers times out, also if SIGALRM was blocked" {
	mkshards -r demo >one
	mkfifo hole
	limits 'time 1s'
	: >later
	for blocked in '' signal.SIGALRM; do
		# a full pipe that nobody reads; a timer ends the blocked write
		python3 - "$HANG" "$(preload)" 3>&- <<-END
		import fcntl, os, signal, subprocess, sys
		p = os.open('hole', os.O_RDWR)
		fcntl.fcntl(p, 1031, 1 << 20)	# F_SETPIPE_SZ
		os.write(p, bytes(fcntl.fcntl(p, 1032)))
		signal.pthread_sigmask(signal.SIG_BLOCK, [$blocked])
		recv = ['ace-recv', '--spool', 'spool', '--sync', 'none']
		r = subprocess.run(['timeout', sys.argv[1], *recv],
		    stdin=open('one'), stdout=p, stderr=open('err', 'w'),
		    env={**os.environ, 'LD_PRELOAD': sys.argv[2], 'ACE_LATER': 'later'})
		sys.exit(r.returncode != 3)
		END
		says 'truncated: timed out: the device does not read its answers'
	done
	# the accepted shard is kept
	ace-inspect verify spool/0/edge1.aceg
}

@test "shards of closed steps leave no files" {
	gets accepted 500
	aggregate
	mkshards -d evil -N 300 >in
	recv "step 299: invalid: this device is new here, and step 501 is the next" <in
	[ "$(grep -c 'this device is new' err)" -eq 300 ]
	[ "$(find spool -name '[0-9]*' -type d)" = spool/500 ]
	# a shard sent again is accepted again, even after the step's directory is removed
	gets accepted 501
	aggregate --keep 1
	[ ! -e spool/500 ]
	gets "step 500: accepted" 500
	[ ! -e spool/500 ]
}

# hold ARGS...: start an ace-recv whose input stays open, and append its number to $held
held=()
hold() {
	local n=${#held[@]}
	mkfifo hold$n
	ace-recv --spool spool "$@" <hold$n >/dev/null 2>held$n.err 3>&- &
	held+=($!)
	exec {fd}>hold$n
	fds+=("$fd")
}
# let_go: close all connections that `hold' opened
let_go() {
	local fd
	for fd in "${fds[@]}"; do
		exec {fd}>&-
	done
	wait "${held[@]}" || true
}

@test "limits on the number of connections, of all devices and of one" {
	fds=()
	shard 0 edge1 -n 10k >in
	shard 0 evil -n 10k >theirs
	# begun N: succeed if N shards of `evil' have begun
	begun() { [ "$(find spool -name 'evil.new-*' | wc -l)" -eq "$1" ]; }
	hold --device evil --sync none
	head -c 20000 theirs >&${fds[0]}
	wait_for begun 1
	limited 'each 1' exits 5 ace-recv --spool spool --device evil theirs
	says "too many open connections of device 'evil', expected at most 1 .limits: each"
	limited 'each 1' recv accepted --device edge1 <in
	limited 'clients 1' exits 5 ace-recv --spool spool --device edge1 in
	says "too many open connections, expected at most 1 .limits: clients"
	limited 'clients 2, each 1' recv duplicate --device edge1 <in
	# a closed connection frees its place
	let_go
	limited 'clients 1, each 1' recv accepted --device evil <theirs
}

@test "unfinished shards leave no files, nor their steps or run" {
	local s
	for s in 1 2 3 4; do
		shard $s evil -n 10k | head -c 20000 >part
		limited 'open 2' exits 3 ace-recv --spool spool part
		mkshards -r ghost$s -k nan >part
		notes "invalid: non-finite" ace-recv -v --spool spool part
	done
	[ "$(ls spool | paste -sd ' ')" = '0 device' ]
	[ "$(ls spool/0)" = edge1.no ]
	gets accepted 9
}

@test "the work for a shard does not grow with the number of devices" {
	local opened d
	opened() {
		strace -f -qq -o calls -e trace=file ace-recv --spool spool "$@" >/dev/null
		grep -vc resumed calls
	}
	gets accepted 0 edge3
	# measure second shards, since a device's first shard makes files and directories
	for d in edge1 edge2; do
		gets accepted 1 $d
	done
	shard 2 edge3 >in		# sync now what is synced once per device
	exits 0 ace-recv --spool spool in
	shard 2 edge1 >in
	opened=$(opened in)
	mkdir spool/{1000..1400}
	shard 2 edge2 >in
	[ "$(opened in)" -eq "$opened" ]
	# the number of open steps does not matter either
	mkshards -N 199 -s 3 >in
	limits 'open 1000'
	recv accepted <in
	shard 202 >in
	[ "$(opened in)" -le $((opened + 16)) ]
	for d in 2 4 5 6; do shard 202 edge$d; done >in
	recv accepted <in
	exits 0 ace-aggregate --spool spool --rounds 1 --quorum 5
	gets accepted 203
	[ "$(wc -l <spool/device/edge1.open)" -eq 1 ]
	shard 204 >in
	[ "$(opened in)" -le $((opened + 16)) ]
}

@test "invalid entries in a list of open steps are not counted" {
	mkshards -N 3 >in
	recv accepted <in
	shard 3 >in
	limited 'open 3' waits "limit: steps of '.*' that wait for an average: 3, as many as may wait .limits: open" <in
	limited 'open 4' recv "step 3: accepted" <in
	printf 'x\n' >>spool/device/edge1.open
	shard 4 >in
	limited 'open 4' waits "limit: steps of '.*' that wait for an average: 4, as many as may wait .limits: open" <in
	limited 'open 5' recv "step 4: accepted" <in
}

@test "a step with shards of only one device does not delay the others" {
	local d step
	# steps of `evil' alone come first, between others, and several in a row
	for step in 0 3 4 5 6 7 8 9 11 12; do
		gets accepted $step evil
	done
	for step in 5 10 15; do
		for d in 1 2; do
			gets accepted $step edge$d
		done
		aggregate --devices 2 --quorum 2
		says "fewer than 2 devices sent step $((step == 5 ? 0 : step - 4)): the next average is of step $step, with the accepted shards of the skipped steps"
		ace-inspect out >shown
		grep -q "^ *step *$step$" shown
		# all shards of `evil' count as one contributor
		grep -q "^ *contributors *3$" shown
		[ -e spool/done/$step ]
	done
	# in a skipped step, a counted shard is accepted again; a new one is late
	gets "step 3: accepted" 3 evil
	gets "step 2: late: step 2 is closed" 2 evil
	gets accepted 16 edge1
	gets accepted 16 edge2
	rm spool/done/15	# as if killed before it was published
	aggregate --devices 2 --quorum 2
	[ -e spool/done/15 ]
	# a shard of `evil' does not start the deadline
	gets accepted 17 evil
	exits 124 timeout 1 ace-aggregate --spool spool --rounds 9 \
	    --sync none --quorum 2 --deadline 1ms
	for d in 1 2; do
		gets accepted 18 edge$d
	done
	aggregate --quorum 2 --deadline 1ms
	[ -e spool/done/18 ]
}

@test "names of the greatest length are kept, longer ones are refused" {
	local long
	long=$(printf 'n%.0s' $(seq 255))
	mkshards -d "$long" -r "$long" >in
	recv accepted <in
	exits 0 timeout "$HANG" ace-aggregate --spool spool \
	    --rounds 1 --sync none
	mv out mean
	exits 0 ace-recv --spool spool --publish --sync none mean
	exits 0 timeout "$HANG" ace-recv --spool spool --reply aggregate \
	    --sync none in
	mv out answer
	shows '^kind *mean$' ace-inspect answer
	head -c 16 /dev/zero >values
	refuses 2 "at most 255 bytes" ace-import -f raw -d "${long}n" values
	refuses 2 "at most 255 bytes" ace-import -f raw -r "${long}n" values
}

@test "a FIFO or a truncated file in a state or spool is an error, without waiting" {
	mkshards >in
	ace-compress -S state -c q8 in >sent
	cp -r state cut
	truncate -s -70 cut/residual
	mkshards -s 1 >next
	exits 3 ace-compress -S cut -c q8 next
	exits 3 ace-expand -S cut next
	rm state/residual
	mkfifo state/residual
	exits 3 timeout "$HANG" ace-compress -S state -c q8 next
	says "residual' is not a regular file"
	ace-recv --spool spool --sync none in >/dev/null
	rm spool/schema.aceg
	mkfifo spool/schema.aceg
	exits 3 timeout "$HANG" ace-recv --spool spool next
	says "schema.aceg' is not a regular file"
	rm spool/schema.aceg
	touch spool/schema.aceg
	ace-aggregate in >mean
	while read -r call; do
		refuses 3 "corrupt: '.*schema.aceg': the input is empty, at byte 0: remove the file, which the next shard makes anew" $call
	done <<-'END'
		ace-recv --spool spool next
		ace-recv --spool spool --publish mean
		ace-status spool
	END
	rm spool/schema.aceg
	exits 0 ace-recv --spool spool next
}

@test "-o does not write through a link or FIFO that another user made in a shared folder" {
	[ "$(id -u)" -eq 0 ] || skip "needs root, to have another user's link"
	mkshards >in
	echo mine >victim
	mkdir -m 1777 all
	ln -s ../victim all/out
	chown -h nobody all/out
	exits 5 ace-score -o all/out in
	says "'all/out' is a symbolic link that another user made in a directory open to all"
	[ "$(cat victim)" = mine ]
	[ "$(ls all)" = out ]
	mkfifo -m 666 all/pipe
	chown nobody all/pipe
	refuses 5 "'all/pipe' belongs to another user, in a directory open to all" timeout "$HANG" ace-score -o all/pipe in
	rm all/pipe
	# links of the user and of the directory's owner are followed
	ln -s ../own all/own
	exits 0 ace-score -o all/own in
	[ -s own ]
	[ -h all/own ]
	chown nobody all
	exits 0 ace-score -o all/out in
	same own victim
	mkfifo all/mine
	cat all/mine >got &
	exits 0 timeout "$HANG" ace-score -o all/mine in
	wait $!
	same own got
	# in a directory that is not writable for everybody all links are followed
	chmod 1755 all
	exits 0 ace-score -o all/out in
}

@test "invisible and bidirectional characters are refused in names and replaced in messages" {
	local c all=
	for c in $'\u202e' $'\u2066' $'\u2028' $'\u200b' $'\u200f' $'\ufeff' $'\u061c' $'\u2060' \
	    $'\u00ad' $'\u034f' $'\u115f' $'\u17b4' $'\u180e' $'\u206a' $'\u3164' $'\ufe0f' \
	    $'\uffa0' $'\ufff9' $'\U0001d173' $'\U000e0041'; do
		exits 2 ace-import -f raw --name w --shape 1 -d "ed${c}ge" /dev/null
		all+=$c
	done
	# a message, or a note, contains no byte of these characters
	mkshards >in
	for c in 'exits 4 ace-inspect list' 'exits 0 ace-score -v -S'; do
		$c "ed${all}ge" <in
		LC_ALL=C grep -q '[^ -~]' err && return 1
		says "'ed\?+ge(': No such file|/moment' is absent)"
	done
	# letters of other scripts are printed, also with joiners
	mkshards -d $'k\u00fc\u06cc\u200c\u00ae\u0350\u1161\u3165\U0001f600' >in
	exits 0 ace-inspect list in
}

@test "a message about too deep a folder has its path" {
	mkdir -p d/{1/2,2}/3/4/5/6/7/8/9/10
	mkshards >d/1/in
	refuses 3 "limit: 'd/.*' is more than 8 folders below 'd'" ace-inspect list d
	grep -q null err && return 1
	true
}
