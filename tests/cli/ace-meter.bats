load helper
load values

# known KEY: print the value of KEY in the state's file `link'
known() {
	ace-inspect st/link >inspect || return
	perl -e 'local $/; binmode STDIN; $_ = <STDIN>;
	    exit 1 unless /\Q$ARGV[0]\E([0-9.]+)/; print $1' "$1" <st/link
}

@test "bytes are passed unchanged" {
	mkshards -N 2 >in
	exits 0 ace-meter <in
	same out in
	[ ! -s err ]
	exits 0 ace-meter in
	same out in
	head -c 100001 /dev/urandom >any
	exits 0 ace-meter -S st - <any
	same out any
	: >none
	exits 0 ace-meter -S st <none
	[ ! -s out ]
	[ ! -e st/link ]
	printf x | exits 0 ace-meter -S st
	[ "$(cat out)" = x ]
}

@test "shards are counted, in any stream" {
	mkshards -N 3 -a -p >in
	cat in in >two
	notes 'shards: 6,' ace-meter -v two
	head -c 5000 /dev/zero | exits 0 ace-meter -v
	says 'bytes: 5000, shards: 0,'
}

@test "each piece of input is passed before more is read" {
	mkfifo in out
	ace-meter <in >out 3>&- &
	exec 8>in 9<out
	printf one >&8
	read -r -N 3 -u 9 got
	[ "$got" = one ]
	printf two >&8
	read -r -N 3 -u 9 got
	[ "$got" = two ]
	exec 8>&-
	wait $!
	exec 9<&-
}

@test "the measured rate of a slow link is stored for ace-policy" {
	head -c 4000000 /dev/urandom >in
	# on a busy machine it may find nothing to measure; test_link checks the precision, with
	# a clock of its own
	wait_for eval 'ace-meter -S st in | ace-meter -L 20Mbit >out && [ "$(known bandwidth)" -gt 0 ]'
	same out in
	mkshards >shard
	notes 'link [0-9.]+ [kMG]bit/s' ace-policy -v -S st shard
}

@test "-L limits the rate, and the state stores at most that rate" {
	head -c 250000 /dev/zero >in
	start=$(date +%s%N)
	exits 0 ace-meter -S st -L 2Mbit in
	same out in
	# one second, less 0.2 s for the bytes that may be sent in advance
	[ $(($(date +%s%N) - start)) -gt 750000000 ]
	[ "$(known bandwidth)" -le 2000000 ]
	# too few bytes for a measurement: the limit is recorded
	head -c 20000 in >few
	exits 0 ace-meter -S st2 -L 2Mbit few
	grep -q -a bandwidth2000000 st2/link
}

@test "a limited rate is even: each write has the bytes of at most 1/50 s" {
	mkshards -n 100 >in
	: >log
	# at 80 kbit/s 1/50 s is 200 bytes
	CLIP_LOG=log LD_PRELOAD="$(preload)" \
	    ace-meter -L 80kbit in >out
	same in out
	perl -e 'local $/; $_ = <STDIN>; $n = 0;
	    while (length) {
		($op, $a, $b, $k) = unpack "L4", $_;
		push @n, $k if $op == 9;
		$_ = substr $_, 32 + $a + $b + $k;
	    }
	    exit !(@n > 5 && !grep { $_ > 200 } @n)' <log
}

@test "it waits a second for receipts at the end if the state has had one before" {
	local began
	mkshards -s 0 >in
	ace-compress -S st -c q8 --window 4 in >sent
	ace-recv --spool spool sent | ace-ack -S st
	mkshards -s 1 >in
	ace-compress -S st -c q8 --window 4 in >sent
	began=$(date +%s%N)
	exits 0 ace-meter -S st sent
	[ $(($(date +%s%N) - began)) -ge 950000000 ]
}

@test "round trips from receipts" {
	mkshards -n 1000 >in
	ace-recv --spool box in >receipt
	# this receipt came before the shard was sent
	ace-ack -S st <receipt
	notes 'round trip 0 s' ace-meter -S st -v in
	rm -r st
	# here the receipt comes after the shard
	later() {
		rm -rf st out
		mkdir -m 700 st
		{
			wait_for cmp out in
			sleep 0.3
			ace-ack -S st <receipt
		} 3>&- &
		exits 0 ace-meter -S st -v --wait "${HANG}s" in && wait $! &&
		    says 'round trip 0\.[2-9]|round trip [1-9]'
	}
	tries 5 later
	known rtt
	known jitter
	# writing the bandwidth keeps the round-trip time
	exits 0 ace-meter -S st -L 100Mbit in
	[ "$(known bandwidth)" = 100000000 ]
	known rtt
}

@test "it ends with the reader of its output, although its input is still open" {
	local args
	mkfifo in
	exec 8<>in
	for args in in "-S st in" "-L 8kbit in"; do
		{
			got=0
			timeout "$HANG" ace-meter $args 3>&- || got=$?
			echo "$got" >status
		} | true
		[ "$(cat status)" -eq 141 ]
	done
	exec 8>&-
}

@test "invalid calls and a damaged state are refused" {
	exits 4 ace-meter nowhere
	exits 4 ace-meter .
	exits 2 ace-meter a b
	refuses 2 "^ace-meter: --bandwidth" ace-meter -L fast
	exits 2 ace-meter -L 7bit
	exits 0 ace-meter -L 8bit </dev/null
	exits 2 pty -i ace-meter
	echo x >in
	exits 2 pty ace-meter in
	mkdir -m 700 st
	echo garbage >st/link
	refuses 3 'st/link' ace-meter -S st in
}

@test "no space for the output: status 4" {
	needs_full
	echo x >in
	got=0
	ace-meter in 2>err >/dev/full || got=$?
	[ "$got" -eq 4 ]
	says 'No space left'
}

@test "the stored rate is the measured one, at most -L; without a measurement it is -L" {
	head -c 3000000 /dev/zero | ace-meter -S st | ace-meter -L 5Mbit >/dev/null
	mkshards -n 1000 >in
	exits 0 ace-meter -S st -L 50Mbit in
	ace-status st | grep -qE '^link +[45](\.[0-9]+)? Mbit/s'
	exits 0 ace-meter -S st -L 1Mbit in
	ace-status st | grep -qE '^link +1 Mbit/s'
	exits 0 ace-meter -S new -L 50Mbit in
	ace-status new | grep -qE '^link +50 Mbit/s'
}
