# ace-meter against links of a known rate: TCP between two hosts, a cable
# limited by tc tbf.  What it says must be within 10 % of the cable's rate, of
# which headers take 4.
#
# METER_SECS: how long each transfer lasts; 20 and 50 Mbit/s are measured by
# default, METER_RATES="5 20 50 200" measures all.

load helper
load netns

: "${METER_SECS:=3}" "${METER_RATES:=20 50}"

teardown() { netns_down; }

# transfer RATE: over a new cable; what was measured, bit/s
transfer() {
	local ip bytes=$(($1 * METER_SECS * 125000))
	netns_up "a$1" "b$1"
	netns_link "a$1" "b$1" "${1}mbit"
	ip=$(netns_ip "b$1" "a$1")
	netns_on "b$1" nc -l -p 5000 </dev/null >got 3>&- &
	until netns_on "b$1" ss -ltn | grep -q :5000; do sleep 0.05; done
	head -c "$bytes" /dev/zero |
	    netns_on "a$1" sh -c 'ace-meter -S "st'"$1"'" | nc -N "$1" 5000' \
	    sh "$ip"
	wait
	[ "$(wc -c <got)" -eq "$bytes" ]
	perl -e 'local $/; $_ = <STDIN>; /bandwidth([0-9]+)/ and print $1' \
	    <"st$1/link" >rate
}

@test "the estimate is right within a tenth, on links of $METER_RATES Mbit/s" {
	sanitized && skip "slower than the links"
	netns_can || skip "needs root and network namespaces"
	command -v nc ss >/dev/null || skip "needs nc and ss"
	for r in $METER_RATES; do
		transfer "$r"
		rate=$(cat rate)
		echo "# $r Mbit/s: $rate" >&3
		[ "$rate" -ge $((r * 900000)) ]
		[ "$rate" -le $((r * 1100000)) ]
	done
}

@test "a limit below the link's is kept, and known" {
	sanitized && skip "slower than the links"
	netns_can || skip "needs root and network namespaces"
	command -v nc ss >/dev/null || skip "needs nc and ss"
	netns_up a b
	netns_link a b 50mbit
	netns_on b nc -l -p 5000 </dev/null >got 3>&- &
	until netns_on b ss -ltn | grep -q :5000; do sleep 0.05; done
	start=$(date +%s%N)
	head -c 2000000 /dev/zero | netns_on a \
	    sh -c 'ace-meter -S st -L 8Mbit | nc -N "$1" 5000' sh \
	    "$(netns_ip b a)" &
	pid=$!
	sleep 1
	# a byte a microsecond, a fifth of a second made up for, and a piece
	size=$(wc -c <got)
	[ "$size" -le $((($(date +%s%N) - start) / 1000 + 300000)) ]
	wait "$pid"
	wait
	[ "$(wc -c <got)" -eq 2000000 ]
	grep -a -q bandwidth8000000 st/link
}
