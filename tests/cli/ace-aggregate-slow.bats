# Devices that are slow, stopped, dead or damaged, at the pipes of
# ace-aggregate --quorum --deadline: they cost the others the deadline and
# nothing else, and nothing of what they half sent is in the sum.
load helper
load values
load netns

setup() {
	cd "$BATS_TEST_TMPDIR" || return
	for i in 1 2 3; do
		mkshards -d "edge$i" -x "$i" -n 100k >"e$i"
	done
	ace-aggregate --no-provenance e1 e2 >want
	pids=() fed=
}

teardown() {
	for p in "${pids[@]}"; do
		kill -9 "$p" 2>/dev/null || true
	done
	netns_down
}

# dribble FILE [FROM]: a byte a second, after the first FROM at once
dribble() {
	exec perl -e '$| = 1; binmode STDOUT; open(F, "<", $ARGV[0]) or die;
	    binmode F; read(F, $_, $ARGV[1] // 0); print;
	    while (read(F, $c, 1)) { print $c; sleep 1 }' "$@"
}

# fed CMD...: what CMD writes is in the pipe p, which is made anew
fed() {
	[ -z "$fed" ] || kill -9 "$fed" 2>/dev/null
	rm -f p
	mkfifo p
	"$@" >p 3>&- &
	fed=$!
	pids+=("$fed")
}

# begins N: so much of the third, and then nothing
begins() {
	head -c "$1" e3
	exec sleep "$HANG"
}

# sum STATUS ARGS...: ends by itself, long before it is ended
sum() {
	local want=$1
	shift
	exits "$want" timeout "$HANG" ace-aggregate --no-provenance "$@"
}

# late_one DEADLINE CMD...: of CMD, which is late, nothing is in the sum
late_one() {
	fed "${@:2}"
	sum 0 --quorum 2 --deadline "$1" e1 p e2 && same out want &&
	    [ "$(field contributors out)" = edge1,edge2 ]
}

@test "a byte a second does not hold the others, nor is it in the sum" {
	in_time late_one dribble e3
}

# early_one DEADLINE CMD...: what matters of CMD comes in time
early_one() {
	fed "${@:2}"
	sum 0 --quorum 2 --deadline "$1" e1 p e2 &&
	    [ "$(field contributors out)" = edge1,edge2,edge3 ]
}

@test "nor does all but the last byte" {
	size=$(wc -c <e3)
	# its tail apart, a shard is whole with its SEND: cut before that
	send=$(frames e3 | sed -n 's/ SEND//p')
	for at in "$size" $((send + 144)); do
		in_time early_one dribble e3 "$at"
	done
	for at in $((send + 143)) $((send + 64)) $((send + 1)) 100000 64 1; do
		in_time late_one begins "$at"
	done
}

@test "a producer that is stopped in the middle" {
	in_time late_one \
	    sh -c 'head -c 200000 e3; kill -STOP $$; tail -c +200001 e3'
}

@test "a pipe that nobody has opened, one that is silent, a file not there" {
	mkfifo p q
	exec 9<>q
	silent() {	# DEADLINE
		sum 0 --quorum 2 --deadline "$1" p e1 q e2 nowhere &&
		    same out want && says "lost 'nowhere': cannot open"
	}
	in_time silent
	exec 9>&-
}

@test "a producer that dies, damage, an empty input: lost, said, no waiting" {
	head -c 200000 e3 >part
	cp e3 flipped
	flip flipped 150000
	: >empty
	head -c 70000 /dev/urandom >noise
	# a deadline that the test would not survive
	sum 0 --quorum 2 --deadline 1h e1 part flipped e2 empty noise .
	same out want
	says "lost 'part': truncated: "
	says "lost 'flipped': corrupt: "
	says "lost 'empty': truncated: "
	says "lost 'noise': "
	says "lost '.': cannot read: "
	sum 0 --quorum 2 --deadline 1h e1 <(head -c 3000 e3; kill -9 $BASHPID) e2
	same out want
	# with less left than the quorum there is nothing to wait for
	sum 5 --quorum 3 --deadline 1h e1 part e2
	says 'quorum not reached: 1 inputs lost, 2 of 3 left'
	exits 3 ace-expand out
}

@test "a terminal among the inputs is refused, and not waited for" {
	for in in - /dev/stdin /dev/tty; do
		exits 2 timeout "$HANG" pty -i setsid -wc sh -c \
		    'ace-aggregate --quorum 2 --deadline 1h e1 "$1" e2 >sum' sh $in
		says "^ace-aggregate: '.*' is a terminal: a shard stream is binary"
		ace-inspect --verify sum 2>err && return 1
		says 'aborted|truncated'
	done
}

@test "what does not belong is passed over, and said" {
	mkshards -d edge3 -r other -n 100k >run
	mkshards -d edge4 -n 99k >model
	cp e1 again
	# who comes first says what the run is: files are read in turn
	sum 0 --quorum 2 --deadline 1h e1 run model again e2
	same out want
	says "step 0 of 'edge3' passed over: mismatch: another run"
	says "step 0 of 'edge4' passed over: mismatch: another model"
	says "step 0 of 'edge1' passed over: the device has sent that step before"
}

@test "of one input too: what does not belong is passed over, and said" {
	cat e1 e1 e2 >one
	sum 0 --quorum 2 --deadline 1h one
	same out want
	says "step 0 of 'edge1' passed over: the device has sent that step before"
	# of a step before the one that has begun, though that is not over
	mkshards -d edge1 -x 1 -s 5 >five1
	mkshards -d edge2 -x 2 -s 5 >five2
	mkshards -d edge2 -s 4 | cat five1 - five2 >one
	ace-aggregate --no-provenance five1 five2 >want
	sum 0 --deadline 1h one
	same out want
	says "step 4 of 'edge2' passed over: late, a later step has begun"
	ace-inspect --recover -o saved e2
	sum 0 --deadline 1h five1 saved five2
	says "step 0 of 'edge2' passed over: recovered from a damaged file"
}

@test "several inputs at several steps: the lowest comes first, with who has it" {
	mkshards -d edge1 -x 1 -s 1 >s1
	mkshards -d edge2 -x 2 -N 2 >s2
	for order in "s1 s2" "s2 s1"; do
		# shellcheck disable=SC2086 # words
		sum 0 --deadline 1h $order
		[ "$(field step out | paste -sd' ')" = "0 1" ]
		[ "$(field contributors out | paste -sd' ')" = "edge2 edge1,edge2" ]
	done
}

@test "fewer than the quorum at the deadline: refused" {
	mkfifo p q
	exec 8<>p 9<>q
	sum 5 --quorum 2 --deadline 1s e1 p q
	says 'quorum not reached: 1 of 2 shards of step 0 at the deadline'
	# where nobody says more, one is a quorum
	ace-aggregate --no-provenance e1 >want
	sum 0 --deadline 50ms e1 p q
	same out want
	exec 8>&- 9>&-
}

@test "nobody late: the deadline is not waited for, and changes no byte" {
	ace-aggregate --no-provenance e1 e2 e3 >all
	sum 0 --deadline 1h e1 e2 e3
	same out all
	sum 0 --deadline 1h <(cat e2) e3 <(cat e1)
	same out all
	cat e3 e1 e2 >one
	sum 0 --deadline 1h --expect 3 one
	same out all
	sum 0 --deadline 1h - <one
	same out all
	for i in 1 2 3; do mkshards -d "edge$i" -x "$i" -n 100k -N 5 >"l$i"; done
	ace-aggregate --no-provenance l1 l2 l3 >all
	sum 0 --deadline 1h l3 <(cat l1) l2
	same out all
	# of three the first two
	mkfifo p
	exec 9<>p
	sum 0 --quorum 2 e1 p e2
	same out want
	says "^ace-aggregate: gave up 'p': the others have ended$"
	exec 9>&-
}

# over N: N shards are in out, or nobody makes any
over() { sent out "$1" || ! kill -0 "$pid" 2>/dev/null; }

# four DEADLINE: steps; the third is late to the second
four() {
	rm -f p? out
	mkfifo p1 p2 p3
	timeout "$HANG" ace-aggregate --no-provenance --quorum 2 \
	    --deadline "$1" p1 p2 p3 >out 2>err 3>&- &
	pid=$!
	exec 7>p1 8>p2 9>p3
	step() { mkshards -d "edge$1" -x "$1" -s "$2"; }
	step 3 0 >&9
	step 1 0 >&7
	step 2 0 >&8
	wait_for over 1
	step 1 1 >&7
	step 2 1 >&8
	wait_for over 2
	step 3 1 >&9
	for s in 2 3; do
		step 3 $s >&9
		step 1 $s >&7
		step 2 $s >&8
	done
	exec 7>&- 8>&- 9>&-
	wait "$pid" &&
	    says "step 1 of 'edge3' passed over: late, the step is over" &&
	    [ "$(field step out | paste -sd' ')" = "0 1 2 3" ] &&
	    [ "$(field contributors out | paste -sd' ')" = \
	    "edge1,edge2,edge3 edge1,edge2 edge1,edge2,edge3 edge1,edge2,edge3" ]
}

@test "many steps: who is late to one is there in the next" {
	in_time four
}

# one_pipe DEADLINE
one_pipe() {
	rm -f out
	{
		cat e1 e2
		wait_for sent out 1
		cat e3
		mkshards -d edge1 -n 100k -s 1
	} | sum 0 --quorum 1 --deadline "$1" --expect 3 &&
	    says "step 0 of 'edge3' passed over: late, the step is over" &&
	    [ "$(field contributors out | paste -sd' ')" = "edge1,edge2 edge1" ]
}

@test "from one pipe: what is late is passed over, what is cut is not in" {
	in_time one_pipe
}

@test "rules read a step twice, here too" {
	for rule in median krum:0 "clip:5"; do
		ace-aggregate --no-provenance --rule "$rule" e1 e2 e3 >all
		sum 0 --deadline 1h --rule "$rule" e3 e1 e2
		same out all
		cat e3 e1 e2 >one
		sum 0 --deadline 1h --rule "$rule" one
		same out all
	done
}

listening() { [ "$(netns_on cloud ss -ltn | grep -c ':500[123]')" -eq 3 ]; }

third() { netns_on cloud ss -tn | grep -q ':5003.*ESTAB\|ESTAB.*:5003'; }

# cable DEADLINE
cable() {
	rm -f p?
	netns_up cloud edge1 edge2 edge3
	for i in 1 2 3; do
		netns_link cloud "edge$i" 8mbit
		mkfifo "p$i"
		netns_on cloud nc -l -p "500$i" </dev/null >"p$i" 3>&- &
	done
	timeout "$HANG" ace-aggregate --no-provenance --quorum 2 \
	    --deadline "$1" p1 p2 p3 >out 2>err 3>&- &
	pid=$!
	wait_for listening
	# the third sends a part, and then nothing can be heard of it
	mkfifo p4
	begins 50000 >p4 3>&- &
	pids+=("$!")
	netns_on edge3 nc "$(netns_ip cloud edge3)" 5003 <p4 3>&- &
	wait_for third
	ip -n "$NETNS-edge3" link set to-cloud down
	for i in 1 2; do
		netns_on "edge$i" nc -N "$(netns_ip cloud "edge$i")" "500$i" \
		    <"e$i" 3>&- &
	done
	got=0
	wait "$pid" || got=$?
	netns_down
	[ "$got" -eq 0 ] && same out want
}

@test "a cable that is pulled out in the middle" {
	netns_can || skip "needs root and network namespaces"
	command -v nc ss >/dev/null || skip "needs nc and ss"
	in_time cable
}

# leaves CMD...: CMD, with an input p on which nothing comes, ends when the one
# who reads it does
leaves() {
	local got
	rm -f p status
	mkfifo p
	exec 8<>p
	{
		got=0
		timeout "$HANG" "$@" 3>&- || got=$?
		echo "$got" >status
	} | true
	exec 8>&-
	cat status
	# where there is something to write, that may find out first
	grep -qxE '4|141' status
}

@test "when nobody reads what it writes, it does not wait for more" {
	leaves ace-aggregate p
	leaves ace-aggregate e1 p
	leaves ace-aggregate --quorum 2 e1 p e2
	leaves ace-aggregate --deadline 1h e1 p e2
	leaves ace-aggregate --deadline 1h p
	leaves ace-aggregate --rule median e1 p e2
}
