# Delivery as a user sees it: every verdict, in any order and repeatedly, and what happens
# to the gradient.

load helper

# code STEP [ARGS...]: code a step of the device to sentSTEP
code() {
	mkshards -s "$1" -k ramp >"in$1"
	exits 0 ace-compress -S state -c topk:0.2 --window 8 "${@:2}" "in$1"
	mv out "sent$1"
}

# answer FILE: receive FILE and take the receipt; ace-ack's messages are in err
answer() {
	exits 0 ace-recv --spool spool "${@:2}" "$1"
	mv out receipt
	exits 0 ace-ack -S state -v receipt
}

balance() {
	exits 0 ace-inspect audit -S state --spool spool in*
	grep -q ": exact, $1\$" out || { cat out; return 1; }
}

@test "each verdict is said by both ends" {
	code 0
	answer sent0
	says "step 0: accepted$"
	answer sent0
	says "step 0: duplicate$"
	code 1
	code 2
	mkshards -s 2 -d edge2 | ace-recv --spool spool >/dev/null
	ace-aggregate --spool spool --rounds 2 >/dev/null
	answer sent1
	says "step 1: late: step 1 is closed$"
	exits 0 ace-recv --spool spool -v sent2
	says "'edge1' step 2: late: step 2 is closed$"
	mv out receipt
	exits 0 ace-ack -S state receipt
	mkshards -s 3 -x 5 | ace-recv --spool spool >/dev/null
	code 3
	exits 0 ace-recv --spool spool -v sent3
	says "'edge1' step 3: equivocation: other bytes came under this name before$"
	mv out receipt
	exits 5 ace-ack -S state receipt
	says "step 3: equivocation: other bytes"
}

@test "wrong run, wrong model, a model too old: named, none in the sums" {
	mkshards -s 0 -k ramp | ace-recv --spool spool >/dev/null
	mkshards -s 0 -r other -d edge2 >in
	exits 3 ace-recv --spool spool --run test in
	says "mismatch: the shard is of run 'other', expected 'test'"
	mkshards -s 0 -d edge2 -t w:7 >in
	exits 0 ace-recv --spool spool -v in
	says "invalid: mismatch: "
	ace-aggregate --spool spool --rounds 1 >/dev/null
	mkshards -s 1 | ace-recv --spool spool >/dev/null
	ace-aggregate --spool spool --rounds 1 >/dev/null
	# computed at model version 0, when the last closed step is 1
	mkshards -s 2 -d edge2 >in
	limited 'staleness 0' exits 0 ace-recv --spool spool -v in
	says "step 2: late: stale: model version 0, now 1"
	limited 'staleness 1' exits 0 ace-recv --spool spool -v in
	says "step 2: late: stale"	# the verdict does not change
	mkshards -s 2 -d edge3 >in
	limited 'staleness 1' exits 0 ace-recv --spool spool -v in
	says "step 2: accepted"
	# shards of the last step's model, and of a newer one
	mkshards -s 2 -d edge4 -H base=1 >in
	limited 'staleness 0' exits 0 ace-recv --spool spool -v in
	says "step 2: accepted"
	mkshards -s 2 -d edge5 -H base=2 >in
	limited 'staleness 0' exits 0 ace-recv --spool spool -v in
	says "step 2: accepted"
	ace-aggregate --spool spool --rounds 1 >sum
	[ "$(ace-inspect --format json sum | grep -c edge2)" -eq 0 ]
}

@test "four in flight, in any order and repeatedly: each once, exact" {
	local order s
	for order in "3 2 1 0" "1 1 0 3 0 2" "2 0 2 3 1 3" "0 3 1 2 0 0"; do
		each_of 2 || continue
		rm -rf state spool in* sent*
		for s in 0 1 2 3; do
			code $s
		done
		[ "$(ace-compress -S state --resend | ace-inspect --format json |
		    wc -l)" -eq 4 ]
		for s in $order; do
			answer "sent$s"
			exits 0 ace-inspect audit -S state \
			    --spool spool in*
			grep -q ": exact" out
		done
		balance "4 inputs up to step 3, 4 accepted, 0 pending"
		code 4
		answer sent4
		balance "5 inputs up to step 4, 5 accepted, 0 pending"
		# send everything again after the steps were closed, too
		ace-aggregate --spool spool --rounds 5 --rule sum >first
		cat sent0 sent1 sent2 sent3 sent4 >all
		exits 0 ace-recv --spool spool all
		balance "5 inputs up to step 4, 5 accepted, 0 pending"
	done
}

@test "some late, some not, receipts late too: taken back once, exact" {
	local s
	for s in 0 1 2 3; do
		code $s
	done
	mkshards -s 2 -d edge2 | ace-recv --spool spool >/dev/null
	ace-recv --spool spool sent0 >r0
	ace-aggregate --spool spool --rounds 2 >/dev/null
	ace-recv --spool spool sent3 >r3
	ace-recv --spool spool sent1 >r1
	ace-recv --spool spool sent2 >r2
	for s in 3 1 0 1 2 3; do
		exits 0 ace-ack -S state r$s
	done
	balance "4 inputs up to step 3, 2 accepted, 2 pending"
	code 4
	balance "5 inputs up to step 4, 2 accepted, 1 pending"
	# rejected shards come again: still late, and nothing counts twice
	answer sent1
	says "step 1: late"
	answer sent4
	code 5
	answer sent5
	balance "6 inputs up to step 5, 4 accepted, 0 pending"
}

# sums FILE...: print the sums of all values
sums() {
	local f
	for f; do
		ace-expand --omit provenance "$f" | ace-export -f raw -o raw
		perl -e 'local $/; binmode STDIN; print join("\n",
		    unpack("f<*", <STDIN>)), "\n"' <raw >"$f.txt"
	done
	paste "${@/%/.txt}" | perl -lane '$s = 0; $s += $_ for @F; print $s'
}

@test "rejected, with each kind of feedback: what the receiver gets next" {
	local how
	for how in ef momentum ef21 cache; do
		rm -rf state spool cache in* sent*
		code 0 --error-feedback $how -c f32
		mkshards -s 0 -d edge2 | ace-recv --spool spool >/dev/null
		ace-aggregate --spool spool --rounds 1 >/dev/null
		answer sent0
		says "step 0: late"
		code 1 --error-feedback $how -c f32
		limited 'kind gradient,difference' answer sent1
		says "step 1: accepted"
		exits 0 ace-expand --cache cache sent1
		mv out got
		if [ $how = ef21 ]; then	# differences: nothing stays in a residual
			sums in1 >want
		else
			sums in0 in1 >want
		fi
		sums got >have
		same want have
	done
}

@test "ids that no file name or terminal should see" {
	local id
	for id in 'a/b' 'a/../b' '../../up' '.' '..' '-o' '-' 'sp ace' '%2F' 'x%2Fy' a.b \
	    '' '*' "$(printf '%0255d' 7)"; do
		rm -rf spool state
		mkshards -d "$id" -r "$id" >in0
		ace-compress -S state -c f32 --window 2 in0 >sent
		exits 0 ace-recv --spool spool sent
		mv out receipt
		exits 0 ace-ack -S state receipt
		exits 0 ace-inspect audit -S state --spool spool in0
		[ "$(find . -newer in0 -name '*.aceg' ! -path './spool/*' | wc -l)" -eq 0 ]
		[ "$(find spool -mindepth 1 -maxdepth 1 ! -name '.*' | wc -l)" -eq 3 ]
		exits 0 ace-recv --spool spool -v sent
		says duplicate
		exits 0 ace-aggregate --spool spool --rounds 1
	done
	[ ! -e ../up ]
	[ ! -e ../../up ]
	# a name with control characters is refused when the shard is made
	for id in $'new\nline' $'\e[31mred' $'tab\t'; do
		exits 4 mkshards -d "$id"
	done
}

@test "clocks that jump change nothing but what a receipt says of the time" {
	local t
	code 0
	for t in 0 4102444800 1 18446744073; do
		rm -rf spool
		SOURCE_DATE_EPOCH=$t ace-recv --spool spool sent0 >r
		exits 0 ace-ack -S state r
		balance "1 inputs up to step 0, 1 accepted, 0 pending"
		# deadlines use a clock that does not jump
		SOURCE_DATE_EPOCH=$t timeout "$HANG" ace-aggregate --spool spool \
		    --devices 2 --quorum 1 --deadline 50ms --rounds 1 >"sum$t"
		[ "$t" = 0 ] || same sum0 "sum$t"
	done
}

@test "a spool without hard links: said, nothing accepted" {
	code 0
	exits 4 env LD_PRELOAD="$(preload)" ACE_NOLINK=1 \
	    ace-recv --spool spool sent0
	says "the file system of the spool has no hard links"
	[ "$(find spool -name '*.aceg' ! -name schema.aceg | wc -l)" -eq 0 ]
	[ "$(find spool -name '*.new-*' | wc -l)" -eq 0 ]
	balance "1 inputs up to step 0, 0 accepted, 1 pending"
	answer sent0
	says "step 0: accepted"
}

@test "a full disk: status 4, nothing lost, and on when there is room" {
	[ "$(id -u)" -eq 0 ] || skip "needs root for a small tmpfs"
	mkdir small
	mount -t tmpfs -o size=64k,mode=700 tmpfs small || skip "no mount here"
	local n=0 got=0 where
	for where in spool state; do
		rm -rf spool state in* sent* small/*
		mkdir small/d
		ln -s small/d $where
		for ((n = 0; n < 60; n++)); do
			mkshards -n 2k -s $n -k ramp >in$n
			got=0
			ace-compress -S state -c f32 --window 8 in$n >sent 2>err ||
			    got=$?
			[ $got -eq 0 ] || break
			ace-recv --spool spool sent >receipt 2>err || got=$?
			[ $got -eq 0 ] || break
			ace-ack -S state receipt >rest 2>err || got=$?
			[ $got -eq 0 ] || break
			head -c 3072 /dev/zero 2>err >>small/ballast || true
		done
		[ $got -eq 4 ] || { umount small; echo "$where: $got"; cat err; return 1; }
		says "No space left on device" || { umount small; return 1; }
		ace-inspect audit -S state --spool spool in* >out 2>err ||
		    { umount small; cat err; return 1; }
		grep -q exact out
		rm small/ballast
		ace-compress -S state -c f32 --window 8 in$n |
		    ace-recv --spool spool | ace-ack -S state >rest
		ace-inspect audit -S state --spool spool in* >out ||
		    { umount small; return 1; }
		grep -q ": exact, $((n + 1)) inputs" out || { umount small
		    cat out; return 1; }
	done
	umount small
}

@test "a state that others can change: refused, named" {
	code 0
	for mode in 775 757; do
		chmod $mode state
		exits 5 ace-compress -S state -c f32 in0
		says "'state' can be changed by other users"
	done
	exits 5 ace-ack -S state sent0
	exits 5 ace-score -S state in0
	chmod 700 state
	if [ "$(id -u)" -eq 0 ]; then
		chown 65534 state
		exits 5 ace-compress -S state -c f32 in0
		says "'state' belongs to user 65534, but the program runs as user 0"
	fi
}
