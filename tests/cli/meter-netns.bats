# ace-meter on TCP links whose rate tc tbf limits.  Its estimate must be within 10 % of the
# rate at which the receiver got the same transfer and, if that used the whole link, within
# 10 % of the link's rate, of which headers take 4 %.
#
# On a busy machine the programs do not use the whole link, or use it in bursts.  So they get
# a higher priority if that is permitted, and one of several transfers must be right.
#
# METER_SECS: seconds of each transfer; METER_RATES: the links, in Mbit/s

# bats file_tags=long

load helper
load netns

: "${METER_SECS:=3}" "${METER_RATES:=5 20 50 200}"

setup() {
	cd "$BATS_TEST_TMPDIR" || return
	sanitized && skip "slower than the links"
	netns_can || skip "needs root and network namespaces"
	command -v nc ss >/dev/null || skip "needs nc and ss"
	first=()
	! chrt -f 1 true 2>/dev/null || first=(chrt -f 1)
}

teardown() { netns_down; }

listens() { netns_on "$1" ss -Hltn "sport = :5000" | grep -q .; }

# receive: print the number of bytes in the input, and its rate in bit/s after 0.5 s
receive() {
	perl -e 'use Time::HiRes qw(clock_gettime CLOCK_MONOTONIC);
	    for ($n = 0; ($k = sysread(STDIN, $b, 1 << 20)) > 0;) {
		$n += $k;
		$t = clock_gettime(CLOCK_MONOTONIC);
		$begin //= $t;
		($from, $m) = ($t, $n) if !defined $from && $t - $begin > 0.5;
	    }
	    printf("%d %.0f\n", $n, ($n - $m) * 8 / ($t - $from))'
}

# transfer RATE: transfer over a new link; set `took' to the received and `rate' to the
# estimated bit/s
transfer() {
	local bytes=$(($1 * METER_SECS * 125000)) all
	rm -rf st
	netns_up a b
	netns_link a b "${1}mbit"
	netns_on b "${first[@]}" timeout "$HANG" nc -l -p 5000 </dev/null 3>&- |
	    "${first[@]}" bash -c "$(declare -f receive); receive" >got 3>&- &
	wait_for listens b
	"${first[@]}" head -c "$bytes" /dev/zero | netns_on a \
	    "${first[@]}" timeout "$HANG" sh -c 'ace-meter -S st | nc -N "$1" 5000' \
	    sh "$(netns_ip b a)"
	wait
	netns_down
	read -r all took <got
	[ "$all" -eq "$bytes" ] || return
	rate=$(perl -e 'local $/; $_ = <STDIN>; /bandwidth([0-9]+)/ and print $1' \
	    <st/link)
}

# tenth A B: check that A is within 10 % of B
tenth() {
	[ $(($1 * 10)) -ge $(($2 * 9)) ] && [ $(($1 * 10)) -le $(($2 * 11)) ]
}

# right RATE: check that the estimate is right in one of eight transfers: in one that used the
# whole link or, if none did, in any
right() {
	local try filled=0 near=0
	for try in 1 2 3 4 5 6 7 8; do
		transfer "$1" || return
		echo "# $1 Mbit/s, try $try: $rate of $took" >&3
		if [ "$took" -lt $(($1 * 930000)) ]; then
			! tenth "$rate" "$took" || near=1
			continue
		fi
		filled=1
		tenth "$rate" "$took" && tenth "$rate" $(($1 * 1000000)) &&
		    return
	done
	[ $filled = 0 ] && [ $near = 1 ]
}

@test "the estimate is within 10 % on links of $METER_RATES Mbit/s" {
	for r in $METER_RATES; do
		right "$r"
	done
}

@test "-L below the link's rate limits the transfer, and is the stored rate" {
	netns_up a b
	netns_link a b 50mbit
	netns_on b timeout "$HANG" nc -l -p 5000 </dev/null >got 3>&- &
	wait_for listens b
	start=$(date +%s%N)
	head -c 2000000 /dev/zero | netns_on a timeout "$HANG" \
	    sh -c 'ace-meter -S st -L 8Mbit | nc -N "$1" 5000' sh \
	    "$(netns_ip b a)" &
	pid=$!
	wait_for test -s got
	sleep 1
	# at 8 Mbit/s a byte per microsecond, and 0.3 s, of which 0.2 s may be sent in advance
	size=$(wc -c <got)
	[ "$size" -le $((($(date +%s%N) - start) / 1000 + 300000)) ]
	wait "$pid"
	wait
	[ "$(wc -c <got)" -eq 2000000 ]
	rate=$(perl -e 'local $/; $_ = <STDIN>; /bandwidth([0-9]+)/ and print $1' \
	    <st/link)
	# the stored rate may be lower only if the machine could not keep up
	[ "$rate" -gt 0 ] && [ "$rate" -le 8000000 ]
}
