# Devices that nobody controls: what one of them sends costs nobody else a step,
# the run or the machine.
load helper

shard() { mkshards -d "${2:-edge1}" -s "$1" "${@:3}"; }

# recv REGEX ARGS...: standard input into the spool; what is said of it
recv() {
	local want=$1
	shift
	exits 0 ace-recv -v --spool spool --sync none "$@"
	says "$want"
}

# aggregate ARGS...: the next step
aggregate() {
	exits 0 timeout "$HANG" ace-aggregate --spool spool --run test --steps 1 \
	    --sync none --no-provenance "$@"
}

@test "kinds that are no gradients, and differences to a history" {
	local k
	for k in 4 5 6; do
		shard "$k" edge1 -H kind=$k >in
		recv "step $k: invalid: mismatch: a shard of kind" <in
	done
	for k in 0 1 2 3; do
		shard 1$k edge1 -H kind=$k >in
		recv "step 1$k: accepted" <in
	done
	shard 7 edge1 -H flags=16 >in
	recv "step 7: invalid: mismatch: a difference to a history" <in
	shard 8 edge1 -H flags=16 >in
	recv "step 8: accepted" --kind gradient,difference <in
	shard 9 edge1 -H kind=3 >in
	recv "step 9: invalid: .* kind mean" --kind gradient <in
	# of an option that is given twice the last one counts
	shard 20 edge1 -H flags=16 >in
	recv "step 20: invalid: mismatch: a difference" --kind difference,gradient \
	    --kind gradient <in
	exits 2 ace-recv --spool spool --kind gradient,poetry in
	exits 2 ace-recv --spool spool --kind '' in
}

@test "numbers that sums are made of have a bound" {
	shard 0 edge1 -w 1e30 >in
	recv "invalid: limit: weight 1e\+30, at most 1e\+06" <in
	shard 1 edge1 -w 2 >in
	recv "invalid: limit: weight 2, at most 1 " --max-weight 1 <in
	shard 2 edge1 -H contributors=0 >in
	recv "invalid: limit: 0 contributors" <in
	shard 3 edge1 -H contributors=4294967295 >in
	recv "invalid: limit: 4294967295 contributors, at most 1024" <in
	shard 4 edge1 -H samples=18446744073709551615 >in
	recv "invalid: limit: 18446744073709551615 samples" <in
	shard 5 edge1 -H base=6 >in
	recv "invalid: mismatch: step 5 was computed at model version 6" <in
	shard 6 edge1 -H incarnation=4294967295 >in
	recv "invalid: limit: incarnation" <in
	shard 7 edge1 -w 1e6 -H contributors=1024 -H base=7 >in
	recv "step 7: accepted" <in
}

@test "policies with values that are none: refused, and the aggregate goes on" {
	local p step=0
	for p in delay=nan interval=nan force=2 delay=1001 cuts=1,2; do
		shard $((++step)) edge1 -P $p >in
		recv "invalid: .*corrupt: key ${p%=*}" <in
	done
	shard 9 edge1 -K model.norm=nan >in
	recv "invalid: .*corrupt: key model.norm" <in
	shard 9 edge2 >in
	recv accepted <in
	aggregate
	ace-inspect --verify out
}

@test "steps that are far ahead leave no trace" {
	local s
	for s in 9223372036854775808 18446744073709551615 10001; do
		shard $s >in
		recv "invalid: limit: step $s is more than 10000 after 0" <in
	done
	[ "$(ls spool)" = "" ]
	shard 10000 >in
	recv accepted <in
	aggregate
	shard 10030 >in
	exits 0 ace-recv -v --spool spool --max-ahead 20 in
	says "more than 20 after 10000"
	recv accepted --max-ahead 30 <in
}

@test "the run and the model are those that are pinned, or the first" {
	shard 0 >in
	recv accepted <in
	mkshards -d edge2 -r other >in
	exits 3 ace-recv --spool spool in
	says "mismatch: a shard of run 'other', and the spool is of run 'test'"
	[ "$(ls spool)" = test ]
	# who comes first does not own the run that is named
	mkshards -d edge2 -r other -t w:7 >in
	exits 3 ace-recv --spool pinned --run test in
	[ "$(ls pinned)" = "" ]
	mkshards -t w:7 >theirs
	exits 0 ace-recv -v --spool pinned --run test --schema spool/test/0/edge1.aceg \
	    --sync none theirs
	says "invalid: mismatch: not of the model of --schema"
	[ ! -e pinned/test/schema.aceg ]
	shard 0 edge2 >in
	exits 0 ace-recv -v --spool pinned --run test --schema spool/test/0/edge1.aceg \
	    --sync none in
	says accepted
}

@test "devices are counted, not files: one key has one voice" {
	local i
	for i in 1 2 3 4 5; do
		shard 0 evil -k ramp -x $i >in
		ace-recv --spool spool --device evil --sync none in >/dev/null
	done
	for i in 1 2 3; do
		shard 0 edge$i -k zeros >in
		recv accepted --device edge$i <in
	done
	[ "$(ls spool/test/0/*.aceg | wc -l)" -eq 4 ]
	# a name of somebody else's, or none, is not the key's
	shard 0 edge4 >in
	exits 3 ace-recv --spool spool --device evil in
	mkshards -d '?' >in
	exits 3 ace-recv --spool spool --device evil in
	mkshards -d '' >in
	exits 3 ace-recv --spool spool --device '?' in
	aggregate --rule median --expect 4
	[ "$(ace-export -f raw out | od -An -v -tf4 |
	    awk '{ for (i = 1; i <= NF; i++) if ($i != 0) n++ } END { print n + 0 }')" -eq 0 ]
}

@test "a device called aggregate does not speak for the cloud" {
	shard 0 aggregate >in
	recv accepted <in
	[ ! -e spool/test/0/aggregate.aceg ]
	aggregate
	recv duplicate\|accepted <in
}

# bats test_tags=long,asan
@test "more devices than there may be open files: the same bytes" {
	local i
	mkdir files
	for i in $(seq 300); do
		mkshards -d "e$i" -x "$i" -w $((i % 7 + 1)) -P delay=$((i % 5)) \
		    >files/$i
	done
	cat files/* >all
	exits 0 ace-recv --spool spool --sync none all
	exits 0 ace-aggregate --mean --no-provenance --expect 300 all
	mv out want
	(
		ulimit -n 280
		sanitized || ulimit -v 400000
		aggregate --expect 300
	)
	ace-inspect --diff want out
	cmp want out
	# a rule wants to see all of them: who is too many is set aside, and said
	for i in files/*; do cat $i; done >all
	rm -r spool
	exits 0 ace-recv --spool spool --sync none all
	(
		ulimit -n 164
		aggregate --expect 300 --rule median
		says "^ace-aggregate: 200 of 300 shards of a step set aside: limit: a rule looks at 100"
	)
	ace-inspect --verify out
}

# big DEVICE VALUE: eight values
big() {
	perl -e 'print pack("f<*", ($ARGV[0]) x 8)' "$2" >values
	ace-import -f raw --name w --shape 8 -d "$1" -r test values
}

@test "sums that overflow: who is to blame is set aside, the step goes on" {
	local i
	for i in 1 2 3; do
		mkshards -d edge$i -t w:8 -k zeros >in
		recv accepted <in
	done
	# more than may come today, and was accepted before it was so
	for i in 4 5; do
		big edge$i 1e18 >in
		recv accepted <in
		big edge$i 3e38 >spool/test/0/edge$i.aceg
	done
	aggregate --sum --expect 5
	says "1 of 5 shards of a step set aside: the sum of tensor 'w' overflows f32"
	ace-inspect --verify out
	# and stays set aside, for whoever asks
	for i in 4 5; do
		big edge$i 3e38 >in
		exits 0 ace-recv -v --spool spool in
		grep -o 'step 0: [a-z]*' err
	done >verdicts
	[ "$(sort verdicts | paste -sd,)" = "step 0: accepted,step 0: invalid" ]
}

@test "what cannot be used is set aside in the manifest; the next step comes" {
	local i
	for i in 1 2 3; do shard 0 edge$i; shard 1 edge$i; done >all
	exits 0 ace-recv --spool spool --sync none all
	# in the place of one that was accepted before these limits
	shard 0 edge2 -H flags=16 >spool/test/0/edge2.aceg
	aggregate --expect 3
	says "^ace-aggregate: 1 of 3 shards of a step set aside: mismatch: "
	[ "$(ace-inspect --json out | grep -o '"contributors": *[0-9]*' |
	    grep -o '[0-9]*$' | head -n 1)" = 2 ]
	cp spool/test/0/edge2.aceg in
	recv "edge2' step 0: invalid: mismatch: " <in
	# fewer than a quorum are left: no aggregate, and nobody waits for it
	shard 1 edge2 -H flags=16 >spool/test/1/edge2.aceg
	aggregate --expect 3 --quorum 3
	says "no aggregate of this step"
	shard 1 edge1 >in
	exits 0 timeout "$HANG" ace-recv --spool spool --reply aggregate --sync none in
	shard 2 edge1 >in
	recv accepted <in
	aggregate
}

@test "weights and counts that overflow: one is set aside, the others are averaged" {
	local i what=("-w 1.7e308" "-H samples=18446744073709551615"
	    "-H contributors=4294967295")
	local why=("limit: the weights overflow, with 1.7e\\+308 of 'evil[12]'"
	    "limit: more samples or contributors than can be counted, with"
	    "limit: more samples or contributors than can be counted, with")
	for i in 0 1 2; do
		for d in edge1 edge2 evil1 evil2; do shard $i $d; done >all
		exits 0 ace-recv --spool spool --sync none all
		# more than may come today, and was accepted before it was so
		for d in evil1 evil2; do
			# shellcheck disable=SC2086 # words are meant
			shard $i $d ${what[i]} >spool/test/$i/$d.aceg
		done
		exits 3 ace-aggregate spool/test/$i/*.aceg
		says "${why[i]}"
		aggregate --expect 4
		says "^ace-aggregate: 1 of 4 shards of a step set aside: ${why[i]}"
		ace-inspect --verify out
	done
}

@test "one device's policy moves the others by no more than a factor" {
	local i
	for i in 1 2 3; do
		shard 0 edge$i -P "$([ $i = 1 ] && echo delay=1000 || echo delay=2)" >in
		recv accepted <in
	done
	aggregate --expect 3
	[ "$(ace-inspect -v out | grep -o 'delay=[0-9]*')" = delay=8 ]
	# nor does it speak where the others say nothing
	for i in 1 2 3; do
		if [ $i = 1 ]; then shard 1 edge1 -P delay=1000; else shard 1 edge$i; fi
	done >all
	exits 0 ace-recv --spool spool --sync none all
	aggregate --expect 3
	ace-inspect -v out | grep -q delay= && return 1
	# nor decide by a time that nobody takes where the others cut
	for i in 1 2 3; do
		shard 2 edge$i -P "cuts=$((i + 3)),1
cuts.seconds=$([ $i = 1 ] && echo 1e8 || echo $i)"
	done >all
	exits 0 ace-recv --spool spool --sync none all
	aggregate --expect 3
	ace-inspect -v out >shown
	grep -q 'cuts=6,1$' shown
	grep -q 'cuts.seconds=3$' shown
}

@test "a quota: bytes and open steps of a device, not of the others" {
	mkshards -N 12 >in
	exits 0 ace-recv -v --spool spool --sync none --max-open 5 in
	[ "$(grep -c accepted err)" -eq 5 ]
	says "step 5: invalid: limit: 5 steps of this device are open"
	[ "$(ls -d spool/test/[0-9]* | wc -l)" -eq 5 ]
	shard 9 edge2 >in
	recv accepted --max-open 5 <in
	# what is known is answered as before
	shard 3 >in
	recv "step 3: duplicate" --max-open 5 <in
	shard 6 >in
	recv "invalid: limit: [0-9]+ bytes of this device wait" --quota 1k <in
	# to the byte: the files of the device in open steps
	bytes=$(cat spool/test/[0-9]*/edge1.* | wc -c)
	recv "invalid: limit: $bytes bytes of this device wait" --quota "$bytes" <in
	# and a step that closes makes room
	aggregate
	recv "step 6: accepted" --max-open 5 <in
	shard 7 >in
	bytes=$(cat spool/test/[1-9]/edge1.* | wc -c)
	recv "step 7: accepted" --quota $((bytes + 1)) <in
}

@test "a quota: what was refused and has left a file counts, too" {
	local s
	for s in 0 1 2; do
		shard $s edge1 -k nan >in
		recv "step $s: invalid: non-finite" <in
	done
	shard 3 >in
	recv "limit: 3 steps of this device are open" --max-open 3 <in
	bytes=$(cat spool/test/[0-9]*/edge1.no | wc -c)
	recv "limit: $bytes bytes of this device wait" --quota 1 <in
	recv "step 3: accepted" --max-open 4 <in
}

# slow CMD ARGS...: ace-recv with ARGS reads what CMD writes, which never ends
slow() {
	local pid r=0 cmd=$1
	shift
	rm -f pipe
	mkfifo pipe
	bash -c "$cmd" >pipe 3>&- &
	pid=$!
	exits 3 timeout "$HANG" ace-recv --spool spool "$@" <pipe || r=1
	kill $pid 2>/dev/null || true
	wait $pid || true
	return $r
}

@test "who says nothing more in the middle of a shard is not waited for" {
	mkshards -n 100k >in
	slow 'head -c 100000 in; exec sleep "$HANG"' --timeout 300ms
	says "truncated: the time is over"
	slow 'exec sleep "$HANG"' --max-time 300ms
	says "truncated: the time is over"
	# byte by byte does not help
	slow 'exec <in; head -c 5000; while head -c 9; do sleep 0.1; done' \
	    --timeout 5s --max-time 700ms
	says "truncated: the time is over"
	[ "$(find spool -name '*.new-*')" = "" ]
}

@test "who says nothing between two shards is not waited for either" {
	mkshards -n 500 >in
	# without the last frame, TAIL: another shard might come.  It is all in the
	# pipe before somebody waits for it
	mkfifo full
	exec 9<>full
	head -c -40 in >&9
	exits 3 timeout "$HANG" ace-recv --spool spool -v --idle 300ms <full
	exec 9>&-
	says "accepted"
	says "truncated: the time is over"
	slow 'exec sleep "$HANG"' --idle 300ms
	says "truncated: the time is over"
}

# gives_up N SECS ARGS...: on a clock N times as fast, for who sends no more than
# what is in the file `sent', ace-recv waits so many seconds
gives_up() {
	local n=$1 secs=$2 began took
	shift 2
	rm -rf spool
	began=$(date +%s%N)
	LD_PRELOAD=$(preload) ACE_FASTER=$n \
	    slow 'cat sent; exec sleep "$HANG"' "$@"
	took=$((($(date +%s%N) - began) * n / 1000000000))
	says "truncated: the time is over"
	echo "$took of $secs s"
	[ "$took" -ge "$secs" ] && [ "$took" -lt $((secs * 4)) ]
}

@test "unless it is told otherwise: a minute in a shard, two hours between two, a day" {
	mkshards -n 500 >in
	head -c 1000 in >sent
	tries 3 gives_up 100 60
	head -c -40 in >sent
	tries 3 gives_up 10000 7200
	tries 3 gives_up 100000 86400 --idle 48h
}

@test "who never reads what is answered is not answered for ever" {
	mkshards -r demo >one
	mkfifo hole
	# a pipe that is full, and that nobody reads
	python3 - <<-'END' 3>&- &
	import fcntl, os, time
	p = os.open('hole', os.O_RDWR)
	fcntl.fcntl(p, 1031, 1 << 20)	# F_SETPIPE_SZ
	os.write(p, bytes(fcntl.fcntl(p, 1032)))
	open('full', 'w')
	time.sleep(1000)
	END
	wait_for test -e full
	local status=0
	timeout "$HANG" ace-recv --spool spool --sync none --max-time 1s <one \
	    >hole 2>err || status=$?
	kill $!
	[ "$status" -eq 3 ] || { echo "status $status"; cat err; false; }
	says 'truncated: the time is over, and nobody takes the answers'
	# what was accepted before is kept
	ace-inspect --verify spool/demo/0/edge1.aceg
}

@test "what a killed program left beside its line of the sandbox goes" {
	mkshards -r demo >one
	ace-recv --spool spool <one >/dev/null
	echo half >spool/.sandbox.ace-recv.new-abc123
	# one that is being written is locked, and stays
	echo half >spool/.sandbox.ace-recv.new-def456
	exec 8<spool/.sandbox.ace-recv.new-def456
	flock 8
	exits 0 ace-recv --spool spool one
	[ ! -e spool/.sandbox.ace-recv.new-abc123 ]
	[ -e spool/.sandbox.ace-recv.new-def456 ]
	exec 8<&-
}

@test "shards of steps that are over leave nothing behind" {
	shard 500 >in
	recv accepted <in
	aggregate
	mkshards -d evil -N 300 >in
	recv "step 299: invalid: this device is new here, and step 501 is the next" <in
	[ "$(grep -c 'this device is new' err)" -eq 300 ]
	[ "$(find spool -name '[0-9]*' -type d)" = spool/test/500 ]
	# whoever was accepted hears it again, when the step's folder is gone too
	shard 501 >in
	recv accepted <in
	aggregate --keep 1
	[ ! -e spool/test/500 ]
	shard 500 >in
	recv "step 500: accepted" <in
	[ ! -e spool/test/500 ]
}

# hold ARGS...: a connection of ace-recv that stays, its number in $held
held=()
hold() {
	local n=${#held[@]}
	mkfifo hold$n
	ace-recv --spool spool "$@" <hold$n >/dev/null 2>held$n.err 3>&- &
	held+=($!)
	exec {fd}>hold$n
	fds+=("$fd")
}
# let_go: the ends of all of them
let_go() {
	local fd
	for fd in "${fds[@]}"; do
		exec {fd}>&-
	done
	wait "${held[@]}" || true
}

@test "so many connections and no more, of all and of one device" {
	fds=()
	shard 0 edge1 -n 10k >in
	shard 0 evil -n 10k >theirs
	# a place is taken when a shard that began is on its way
	begun() { [ "$(find spool -name 'evil.new-*' | wc -l)" -eq "$1" ]; }
	hold --device evil --sync none
	head -c 20000 theirs >&${fds[0]}
	wait_for begun 1
	exits 5 ace-recv --spool spool --device evil --max-each 1 theirs
	says "1 connections of device 'evil' are served already"
	recv accepted --device edge1 --max-each 1 <in
	exits 5 ace-recv --spool spool --device edge1 --max-clients 1 in
	says "1 connections are served already"
	recv duplicate --device edge1 --max-clients 2 --max-each 1 <in
	# who has gone has left its place
	let_go
	recv accepted --device evil --max-clients 1 --max-each 1 <theirs
}

@test "what is on its way counts in the quota, as large as it may become" {
	fds=()
	shard 0 evil -n 10k >theirs
	shard 1 evil >second
	begun() { [ "$(find spool -name 'evil.new-*' | wc -l)" -eq "$1" ]; }
	hold --sync none
	head -c 20000 theirs >&${fds[0]}
	wait_for begun 1
	recv "step 1: invalid: limit: 1000000 bytes of this device wait" \
	    --quota 1M --max-shard 1M <second
	recv accepted --quota 1M --max-shard 999k <second
	# not in that of others, and not when it is no longer on its way
	for d in edge1 evil2; do
		shard 2 $d >in
		recv accepted --quota 1M --max-shard 1M <in
	done
	let_go
	touch spool/test/evil.new-abcdef
	shard 3 evil >in
	recv accepted --quota 1M --max-shard 1M <in
}

@test "a step that one device alone sends holds up nobody" {
	local d step
	# before the first one, between two, and again and again
	for step in 0 3 4 5 6 7 8 9 11 12; do
		shard $step evil >in
		recv accepted <in
	done
	for step in 5 10 15; do
		for d in 1 2; do
			shard $step edge$d >in
			recv accepted <in
		done
		aggregate --expect 2 --quorum 2
		ace-inspect out >shown
		grep -q "^ *step *$step$" shown
		[ "$(cat spool/test/last)" = $step ]
	done
	# what was passed over is late, and is not looked at again
	shard 3 evil >in
	recv "step 3: late: step 3 is closed" <in
	shard 16 edge1 >in
	recv accepted <in
	shard 16 edge2 >in
	recv accepted <in
	echo 4 >spool/test/last	# as after a kill
	aggregate --expect 2 --quorum 2
	[ "$(cat spool/test/last)" = 5 ]
	# nor does its deadline stop anybody
	shard 17 evil >in
	recv accepted <in
	exits 124 timeout 1 ace-aggregate --spool spool --run test --steps 9 \
	    --sync none --quorum 2 --deadline 1ms
	for d in 1 2; do
		shard 18 edge$d >in
		recv accepted <in
	done
	aggregate --quorum 2 --deadline 1ms
	[ "$(cat spool/test/last)" = 18 ]
}

@test "the last incarnation does not wrap" {
	shard 0 >in
	recv accepted <in
	echo 4294967295 >spool/test/edge1.incarnation
	exits 5 ace-recv --spool spool --run test --device edge1 --fence 0
	says "last incarnation"
	[ "$(cat spool/test/edge1.incarnation)" = 4294967295 ]
	# nor is one given that the spool would not take shards of
	echo 2147483646 >spool/test/edge1.incarnation
	exits 0 ace-recv --spool spool --run test --device edge1 --fence 0
	shard 1 edge1 -H incarnation=2147483647 >in
	recv accepted <in
	exits 5 ace-recv --spool spool --run test --device edge1 --fence 0
	says "last incarnation"
}

@test "key files and names that would say more than they may" {
	command -v ssh-keygen >/dev/null || skip "no ssh-keygen"
	auth=$ROOT/examples/hosts/authorize.sh
	ssh-keygen -q -t ed25519 -N '' -C 'a comment' -f key
	exits 0 "$auth" edge1 key.pub spool --reply aggregate
	[ "$(wc -l <out)" -eq 1 ]
	grep -q -- '--max-weight 1 .*--reply aggregate" ssh-ed25519' out
	cat key.pub key.pub >two.pub
	exits 2 "$auth" edge1 two.pub spool
	{ printf 'command="sh" '; cat key.pub; } >own.pub
	exits 2 "$auth" edge1 own.pub spool
	for n in 'edge1 --publish' "edge'1" 'a;b' -publish ../x ''; do
		exits 2 "$auth" "$n" key.pub spool
	done
	exits 2 "$auth" edge1 key.pub 'spool --publish'
	exits 2 "$auth" edge1 key.pub spool '--run a b'
}

@test "names as long as they may be reach the answer whole, longer ones are none" {
	local long
	long=$(printf 'n%.0s' $(seq 255))
	mkshards -d "$long" -r "$long" >in
	recv accepted <in
	exits 0 timeout "$HANG" ace-aggregate --spool spool --run "$long" \
	    --steps 1 --sync none
	mv out mean
	exits 0 ace-recv --spool spool --publish --sync none mean
	exits 0 timeout "$HANG" ace-recv --spool spool --reply aggregate \
	    --sync none in
	mv out answer
	exits 0 ace-inspect answer
	grep -q '^kind *mean$' out
	head -c 16 /dev/zero >values
	exits 2 ace-import -f raw -d "${long}n" values
	says "at most 255 bytes"
	exits 2 ace-import -f raw -r "${long}n" values
	says "at most 255 bytes"
}

@test "a few bytes that stand for billions of groups: refused at once" {
	local p
	mkshards -t w:16777216 -g 1 -c none >in
	[ "$(wc -c <in)" -lt 1000 ]
	sanitized || ulimit -v 1000000
	for p in "ace-select --bits 1" ace-score ace-expand ace-aggregate \
	    "ace-export -f raw -o raw" "ace-recv --spool spool" ace-inspect; do
		# shellcheck disable=SC2086 # words are meant
		exits 3 cpu 20 $p in
		says "limit: 16777216 groups"
	done
	[ ! -e raw ] && [ "$(ls spool)" = "" ]
}

@test "tensors whose names leave the folder go into no npz" {
	local n
	for n in ../../x /etc/x a/../b 'a\..\b' '\x' ..; do
		mkshards -t "$n:4" >in
		exits 3 ace-export -o x.npz in
		says "leaves the folder"
		[ ! -e x.npz ]
	done
	mkshards -t a/b..c:4 >in
	exits 0 ace-export -o x.npz in
}

@test "what is no file, or a cut one, in a state or a spool: said at once" {
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
	says "residual' is no file"
	ace-recv --spool spool --sync none in >/dev/null
	rm spool/test/schema.aceg
	mkfifo spool/test/schema.aceg
	exits 3 timeout "$HANG" ace-recv --spool spool next
	says "schema.aceg' is no file"
}

@test "random mixtures of honest and hostile devices: no step is lost" {
	exits 0 timeout "$HANG" mixtures -n 10 -s 2
	grep -q '^10 mixtures, no wedge; [1-9]' out
}

# bats test_tags=long
@test "the same, many" {
	exits 0 timeout "$HANG" mixtures -n "${MIXTURES:-1000}" -s 3
	grep -q ' mixtures, no wedge; [1-9]' out
}
