# shellcheck disable=SC2154 # front.bash sets train and last
load helper
load front

@test "text that another host prints before its answer is quoted" {
	# signals that the caller ignores, as systemd does, change nothing
	local ignores=(perl -e '@SIG{qw(CHLD PIPE)} = ("IGNORE") x 2; exec @ARGV')
	printf '#!/usr/bin/perl\nprint "Welcome to $SIG{PIPE}Linux!"' >through
	chmod 755 through
	exits 3 "${ignores[@]}" ace edge h:run --name edge1 --through ./through -- true
	says "'h' answers 'Welcome to Linux!', expected 'ace-cloud 1'"
	exits 4 "${ignores[@]}" ace edge h:run --name edge1 --through false -- true
	says "the cloud 'h' was not reached"
	printf '#!/bin/sh\nprintf "ace-cloud 1\\nh:/x\\nbits 2\\n"' >through
	exits 3 ace edge h:run --name edge1 --through ./through -- true
	[ ! -e ace-edge1/run ]
	exits 3 timeout "$HANG" ace edge h:run --name edge1 --through yes -- true
	says "limit: 'yes' prints 8192 bytes or more, expected a short answer: let nothing else print, "
	mkdir -m 700 state state/run
	refuses 3 "/state/run' is not a regular file.*give another folder" ace edge h:run -S state -- true
}

@test "--through replaces ssh" {
	cloud run --devices 1 --rounds 2 --bits 8
	printf '#!/bin/sh\nexec ace-cloud serve %s "$@"\n' "$PWD/run" >through
	chmod 755 through
	exits 0 ace edge far:away --name edge1 --through ./through -- "$train" 5 2
	averaged edge1 2 5
	# ace-step's message is printed, although the connection fails, too
	sed -i '2i [ "$2" != sync ] || { cat >all; exit 255; }' through
	exits 3 ace edge far:away --name edge1 --through ./through -- echo hello
	says '^ace-edge: .echo. wrote no valid shard: '
	# a program like socat reports a broken pipe, but the trainer failed first
	sed -i '2s/exit 255/echo "12:58 socat E: Broken pipe" >\&2; exit 1/' through
	exits 1 ace edge far:away --name edge1 --through ./through -- false
	says '^ace-edge: .false. ended with status 1'
	# a line of the cloud's programs is the cause, although the trainer failed first
	sed -i '2c [ "$2" != sync ] || { exec >&-; until [ -e pid ] && ! kill -0 "$(cat pid)"; '\
'do sleep 0.1; done 2>&-; echo "ace-recv: corrupt'$'\u009b'': all" >&2; exit 3; }' through
	begin ace edge far:away --name edge1 --through ./through -- bash -c \
	    'echo $$ >pid; "$train" 5 3; exit 1' 2>far.err
	wait_for grep -q 'round 3 failed: ace-recv: corrupt??: all' far.err
	mv ace-edge1 gone
	wait_for grep -q "^ace-edge: '$PWD/ace-edge1' was moved or removed while it was in use" far.err
}

@test "a damaged file 'closed' and a damaged average are named with their remedy" {
	local round long=
	mkdir "${long:=$(printf %0150d 0)}"	# the command is whole for a long path, too
	cd "$long"
	for round in 1 3 4; do
		cloud run --devices 1 --bits 8
		exits 0 ace edge run --name edge1 -- "$train" 2 $round
		kill "$pid_cloud"
		wait
		case $round in
		1) cp run/spool/0/aggregate.aceg first ;;
		3) truncate -s 100 run/spool/closed ;;
		4) rm run/spool/closed ;;
		esac
		[ "$round" -gt 1 ] || continue
		exits 3 ace cloud run
		says "^ace-cloud: ace-aggregate: corrupt: '$PWD/run/spool/closed'.*; to go on after step"
		eval "$(grep -o '(cd .*' err)"
	done
	cloud run --devices 1
	exits 0 ace edge run --name edge1 -- "$train" 2 6
	averaged edge1 6 2
	truncate -s 100 run/spool/0/aggregate.aceg
	exits 3 ace-recv --spool run/spool --publish first
	says "truncated: .*, file 'run/spool/0/aggregate.aceg'$"
	exits 0 ace add run edge2
	begin ace edge run --name edge2 -- "$train" 4 7 2>edge2.err
	wait_for grep -q "ace-recv: corrupt: the average '$PWD/run/spool/0/aggregate.aceg' cannot be read, but a device needs it (restore" edge2.err
	cp first run/spool/0/aggregate.aceg
	begin ace edge run --name edge1 -- "$train" 2 7 2>edge1.err
	wait_for has edge1.got 7
}

@test "an edge whose cloud begins another run ends, with what to do" {
	cloud run --devices 1 --bits 8
	begin ace edge run --name edge1 -- "$train" 2 100000 2>edge1.err
	wait_for has edge1.got 1
	mv run old
	wait_for grep -q "^ace-cloud: round .* failed: '$PWD/run' was moved or removed while it was in use" cloud.err
	mkdir run
	wait_for eval '! kill -0 "$pid_cloud"'
	cloud run --devices 1 --bits 8
	wait_for grep -q "^ace-edge: ace-cloud: device 'edge1' belongs to run [0-9a-f]\{8\}, but .* has run [0-9a-f]\{8\}: give the cloud" edge1.err
}

@test "--print prints the pipeline, and this pipeline continues the run" {
	cloud run --devices 1 --rounds 4 --bits 8
	edge edge1 1 2
	ends edge1
	shows '^mkfifo back$' ace edge run --name edge1 --print -- "$train" 1 4
	cp out pipe.sh
	ACE_NAME=edge1 bash pipe.sh 2>/dev/null || [ $? -eq 141 ]
	averaged edge1 4 1
	exits 0 ace cloud other --devices 3 --print
	grep -q 'ace-aggregate --spool .*/other/spool .*--devices 3' out
}

variant() { sed "$1" "$train" >"$BATS_TEST_TMPDIR/variant"; chmod 755 variant; }

@test "a trainer that fails, or writes other things: one message; the right trainer continues" {
	local r line what bad
	cloud run --devices 1 --bits 8
	exits 3 env "LD_PRELOAD=$(preload)" ACE_FASTER=5 ACE_ONLY=ace-edge \
	    ace-edge run --name edge1 -- bash -c 'exec >&- && sleep 1000'
	says '^ace-edge: .bash. wrote no valid shard: '
	exits 1 ace edge run --name edge1 -- ./none
	says '^ace-edge: ../none. ended with status 127 in round 1: '
	variant 's/4096/4/g;s/16384/16/g'
	refuses 5 'has 4 values .--bits [0-9]+ is enough.: give this --bits to ace-cloud, for a new run' ace edge run --name edge1 -- ./variant 2 99
	exits 0 ace edge run --name edge1 -- "$train" 2 1
	r=1
	while IFS='|' read -r code what line; do
		case $what in
		variant*) variant "${what#variant }"; bad=(./variant 2 99) ;;
		*) bad=(bash -c "$what") ;;
		esac
		exits "$code" timeout "$HANG" ace edge run --name edge1 -- "${bad[@]}"
		[ "$(grep '^ace-edge: ' err | tail -n 1 | grep -cE "$line")" -eq 1 ] || { cat err; false; }
		# the invalid shard was not accepted, and the usual command continues the run
		r=$((r + 1))
		exits 0 timeout "$HANG" ace edge run --name edge1 -- "$train" 2 $r
		averaged edge1 $r 2
	done <<-'END'
	3|echo hello|.bash. wrote no valid shard: expected one per round on its standard output
	1|exit 7|.bash. ended with status 7 in round .*run the same command again to continue
	1|exit 255|.bash. ended with status 255 in round
	1|kill -9 $$|.bash. ended with status 137 .128 . the signal.s number. in round
	1|variant s/into.stdin.write.*/into.stdin.write(shard(step)[:9000]); sys.exit(3)/|.*variant. ended with status 3
	3|variant s/4096/8192/g;s/16384/32768/g|ace-step: mismatch: '.*/ace-edge1/state/residual' is of another model than the shard: tensor 'w' differs in shape: [0-9]+ and [0-9]+ in dimension 0 .give a new model a new state directory
	3|variant s/"w"/"v"/|another model
	3|variant s/"delta"/"model"/|ace-step: mismatch: step [0-9]+ of 'edge1' has kind model, expected gradient, delta, sum or mean
	5|variant s/"delta"/"delta","-w","5"/|ace-ack: step [0-9]+: invalid: limit: the weight is 5, expected at most 1 .*: correct the training program or, if it is right, raise that limit on the cloud and remove the file 'spool/STEP/NAME.no' there;
	5|variant s/"delta"/"delta","-w","5"/|ace-ack: step [0-9]+: invalid: limit: the weight is 5, expected at most 1 .*: correct the training program or, if it is right, raise that limit on the cloud and remove the file 'spool/STEP/NAME.no' there;
	5|variant s/str(begun)/str(begun+3)/|ace-step: steps are missing between [0-9]+ and [0-9]+ of 'edge1': send step
	END
	# a model with other tensors from the beginning
	ace remove run edge1
	rm run/devices/edge1 2>/dev/null || :
	variant 's/4096/8192/g;s/16384/32768/g'
	exits 5 timeout "$HANG" ace edge run --name edge1 --state other -- ./variant 2 99
	says "^ace-edge: ace-ack: step [0-9]+: invalid: mismatch: .*another model than run '.*': tensor 'w' differs in shape: [0-9]+ and [0-9]+ in dimension 0: correct the training program or, if it is right, begin a new run and give its folder; then run the command again"
	exits 3 timeout "$HANG" ace edge run --name edge1 --state other -- "$train" 2 $((r + 1))
	says "^ace-edge: ace-step: mismatch: .*: correct the training program or, if it is right, remove 'state' in this"
	rm -r other/state
	exits 0 timeout "$HANG" ace edge run --name edge1 --state other -- "$train" 2 $((r + 1))
	# a new device with another model: the first average that it receives is refused
	ace remove run edge1
	exits 3 timeout "$HANG" ace edge run --name late -- ./variant 2 99
	says "^ace-edge: ace-ack: mismatch: the shard of 'aggregate' is of another model .* begin a new run and give its folder; then"
	rm -r ace-late/state
	exits 0 timeout "$HANG" ace edge run --name late -- "$train" 2 $((r + 2))
}

@test "a second shard in a round is refused before it is sent; the right trainer continues" {
	cloud run --devices 2 --bits 8
	edge edge2 4 1
	exits 0 ace edge run --name edge1 -- "$train" 2 1
	ends edge2
	variant 's/into.stdin.write(.*/&; &/'
	exits 5 timeout "$HANG" ace edge run --name edge1 -- ./variant 2 3
	says "^ace-edge: ace-step: step 2 of 'edge1' came before the average of step 1: the training program has to send one shard per round"
	edge edge2 4 2
	exits 0 timeout "$HANG" ace edge run --name edge1 -- "$train" 2 2
	ends edge2
	averaged edge1 2 3
	# an average that came after the next shard was sent is counted, too
	begin ace cloud other --devices 1 --bits 8 2>other.err
	wait_for test -e other/run
	exits 0 timeout "$HANG" ace edge other --name edge3 -- ./variant 2 1
	says 'done: [12] rounds?$'
}

@test "COMMAND may read the events; the first one comes before its shard, and has the round" {
	cloud run --devices 1 --bits 8
	variant 's/^into = /import json\ntold = json.loads(open(int(os.environ["ACE_EVENTS"]), closefd=False).readline())\n'\
'assert (told["event"], told["round"]) == ("begins", begun + 1), told\n&/'
	# nobody reads these events, which are more than a pipe holds
	exits 0 timeout "$HANG" ace edge run --name edge1 -- ./variant 2 2
	exits 0 timeout "$HANG" ace edge run --name edge1 -- ./variant 2 100
	averaged edge1 100 2
	[ "$(tr -d ' ' <ace-edge1/round)" -eq 101 ]
	exits 3 timeout "$HANG" ace edge run --name edge1 --events events -- true
	[ "$(head -n 1 events | grep -c '"event":"begins",.*"round":101,')" -eq 1 ]
}

# on_small SIZE <SCRIPT: run the script with a disk of SIZE at the directory `small'
on_small() {
	[ "$(id -u)" -eq 0 ] || skip 'needs root, for a small disk'
	unshare --mount true || skip 'no name spaces here'
	mkdir -m 700 small
	{ echo "mount -t tmpfs -o size=$1,mode=700 none small"; cat; } >within
	timeout "$HANG" unshare --mount --uts bash within
}

@test "a full disk of the device, with a name of 64 letters; with room it continues" {
	name=$(printf 'h%.0s' {1..64}); export name
	on_small 200k <<-'END'
		hostname "$name"
		ace cloud run --devices 1 --bits 8 2>cloud.err &
		until [ -e run/run ]; do sleep 0.1; done
		head -c 184k /dev/zero >small/ballast
		ace edge run --state small -- "$train" 2 3 2>full.err
		echo $? >status
		rm small/ballast
		mount -o remount,size=20m small
		ace edge run --state small -- "$train" 2 3 2>again.err
		echo $? >>status
		kill $!
	END
	[ "$(paste -sd ' ' status)" = '4 0' ]
	tail -n 1 full.err | grep -q '^ace-edge: .*No space left on device'
	averaged "$name" 3 2
}

@test "a full disk of the cloud: a message again and again; with room the run continues" {
	on_small 300k <<-'END'
		ace cloud small/run --devices 1 --bits 8 2>cloud.err &
		until [ -e small/run/run ]; do sleep 0.1; done
		ace edge small/run --name edge1 -- "$train" 2 60 2>edge1.err &
		until grep 'No space left on device' cloud.err edge1.err | grep -q small/run; do
			sleep 0.1
		done
		mount -o remount,size=20m small
		wait $!
		echo $? >status
		kill %1
	END
	[ "$(cat status)" -eq 0 ]
	averaged edge1 60 2
}

@test "the cloud's folder is moved during a run: both sides name it, and continue when it is back" {
	cloud run --devices 2 --bits 8
	edge edge1 1 1
	wait_for eval 'find run/spool -name edge1.aceg | grep -q .'
	mv run away
	wait_for grep -q "^ace-edge: round 1 failed: ace-recv: '$PWD/run/spool' was moved or removed while it was in use: move it back" edge1.err
	wait_for grep -q "^ace-cloud: round 1 failed: '$PWD/run' was moved or removed" cloud.err
	wait_for grep -q "^ace-edge: round 1 failed: ace-cloud: folder '.*:$PWD/run' is absent: put it back" edge1.err
	mv away run
	edge edge2 3 1
	ends edge1 edge2
	averaged edge1 1 2
}

@test "clocks that jump twelve days forward, or back: both sides say whom they wait for, and continue" {
	local way
	variant 's/^for step.*/&\n    while step == 1 and not os.path.exists("go"): open("hangs" + sys.argv[1], "w"); import time; time.sleep(0.1)/'
	printf '#!/bin/sh\nunset LD_PRELOAD\nexec ./variant "$@"\n' >trains
	chmod 755 trains
	for way in LATER AGO; do
		rm -rf run ace-* ./*.got hangs* go pids
		: >when
		begin env "LD_PRELOAD=$(preload)" "ACE_$way=$PWD/when" \
		    ace cloud run --devices 2 --rounds 3 --bits 8 --quorum 1 --deadline 1000h 2>cloud.err
		export pid_cloud=$last
		wait_for test -e run/run
		for k in 1 2; do
			begin env "LD_PRELOAD=$(preload)" "ACE_$way=$PWD/when" \
			    ace edge run --name edge$k -- ./trains $((2 * k - 1)) 3 2>edge$k.err
			eval "pid_edge$k=$last"
		done
		# both devices are in round 2, and both trainers compute
		for k in 1 2; do
			wait_for test -e hangs$((2 * k - 1))
			wait_for grep -q '^ace-edge: round 1/3: ' edge$k.err
		done
		echo 1 >when
		if [ $way = LATER ]; then
			wait_for grep -qx 'ace-edge: round 2/3: ./trains has been computing for 277.8 h' edge1.err
			wait_for grep -q 'ace-cloud: round 2/3: waiting for .* for 277.8 h' cloud.err
		fi
		: >go
		ends edge1 edge2 cloud
		averaged edge1 3 2
		averaged edge2 3 2
		! grep -E 'broke|late|closed' ./*.err || false
	done
}

@test "each side of a run prints a line at least every 10 s" {
	local k
	# the clocks of ace-cloud and ace-edge run fast only while they wait
	variant 's/^for step.*/&\n    import time; time.sleep(1000)/'
	begin env "LD_PRELOAD=$(preload)" ACE_FASTER=0 ACE_ONLY=ace-cloud \
	    ace-cloud run --devices 1 --rounds 2 --bits 8 2>cloud.err
	wait_for test -e run/run
	begin env "LD_PRELOAD=$(preload)" ACE_FASTER=0 ACE_ONLY=ace-edge \
	    ace-edge run --name edge1 -- env -u LD_PRELOAD ./variant 1 2 2>edge1.err
	for k in edge1 cloud; do
		wait_for has $k.err 25
		# while it waits, a message is repeated at least every 10 s
		head -n 25 $k.err | awk '!/^ace-[a-z]*: round [12]\/2: .* for [0-9.]* s$/ { next }
		    { now = $(NF - 1); $(NF - 1) = ""; if ($0 == same && now - was > 10) exit 1
		    same = $0; was = now; n++ } END { exit n < 5 }'
	done
}

@test "on a terminal one line of at most 80 columns is redrawn, until a round's line replaces it" {
	local long edge k
	long=./$(printf 'x%.0s' {1..90})
	cloud run --devices 1 --rounds 2 --bits 8
	variant 's/^for step.*/&\n    while step == 1 and not os.path.exists("go"): import time; time.sleep(0.1)/'
	ln -s "$(command -v env)" "$long"
	# the clock of ace-edge runs fast only while it waits
	begin env "LD_PRELOAD=$(preload)" ACE_FASTER=0 ACE_ONLY=ace-edge \
	    pty sh -c 'exec "$@" 2>&1' sh ace-edge run --name edge1 -- "$long" -u LD_PRELOAD ./variant 1 2 >screen
	wait_for eval 'grep -aoE "round 2/2: ./x+" screen | has /dev/stdin 9'
	# the terminal blocks for a while, as over ssh; no line is lost although programs end
	kill -STOP $last
	edge=$(pgrep -P $last)
	wait_for grep -q '^State:.S' "/proc/$edge/status"
	: >go
	wait_for has edge1.got 2
	for k in {1..30}; do
		kill -CHLD "$edge"
		sleep 0.02
	done
	kill -CONT $last
	wait_for eval "! kill -0 $last"
	python3 - <<-'END'
	import re
	raw = open("screen", newline="").read()
	log = ["ace-edge: " + line[20:] for line in open("ace-edge1/log").read().splitlines()]
	drawn = re.findall(r"\r(ace-edge: [^\r\x1b]*)\x1b\[K", raw)
	assert len(drawn) >= 9 and max(map(len, drawn)) == 80, drawn
	# each update overwrites the line; only the lines of the log stay
	assert not re.search(r"[^\r]\x1b\[K(?!\r)", raw), raw
	assert re.sub(r"\r(ace-edge: [^\r\x1b]*)?\x1b\[K", "", raw).splitlines() == log, raw
	assert [line[10:19] for line in log[1:3]] == ["round 1/2", "round 2/2"], log
	assert "round 3" not in raw, raw
	END
}

@test "Ctrl-C at any time, even if COMMAND ignores it: ace-edge ends by INT; the same command continues" {
	local where
	cloud run --devices 2 --bits 8
	printf '#!/bin/sh\n: >slow; exec sleep 1000\n' >slow.sh
	variant 's/^for step/open("slow", "w"); import time; time.sleep(1000)\nfor step/'
	printf '#!/bin/sh\ntrap "" INT TERM HUP\n: >slow; while :; do sleep 1; done\n' >deaf
	chmod 755 slow.sh deaf
	for where in '--through ./slow.sh -- true' '-- ./variant 2 1' '-- ./deaf' "-- $train 1 1"; do
		rm -f slow
		# a shell's background jobs ignore INT unless that is reset
		begin perl -e '@SIG{qw(INT HUP)} = qw(DEFAULT IGNORE); exec @ARGV' ace edge run --name edge1 $where 2>ended.err
		case $where in
		*train*) wait_for eval 'find run/spool -name edge1.aceg | grep -q .' ;;
		*) wait_for test -e slow ;;
		esac
		kill -HUP $last		# ignored, as under nohup
		kill -INT $last
		wait $last || [ $? -eq 130 ]
		! pgrep -f "$BATS_TEST_TMPDIR/[a]ce-edge1" || false
	done
	edge edge1 1 1
	edge edge2 3 1
	ends edge1 edge2
	averaged edge1 1 2
}
