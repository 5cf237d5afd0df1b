# A shard that was damaged in the spool after it was accepted: the run continues without it.
load helper

shard() { mkshards -d "$1" -s "$2" -n 64 -c q8; }

# sends STEP DEVICE...: send a shard of each device for this step to `spool'
sends() {
	local d
	for d in "${@:2}"; do
		shard "$d" "$1" | ace-recv --spool spool --sync none >receipts
	done
}

# damaged KIND: restore `spool', then damage the shard of device b
damaged() {
	rm -rf spool
	cp -a whole spool
	damage "$1"
}

# aggregate ARGS...: aggregate the next step
aggregate() {
	exits 0 timeout "$HANG" ace-aggregate --spool spool --rounds 1 --sync none \
	    --devices 3 "$@"
}

# members: print the contributors to the average in `out'
members() { ace-inspect list out | awk '$1 == "mEMb" { printf "%s", $2 }'; }

# damage KIND: damage the shard of device b
damage() {
	local f=spool/0/b.aceg
	case $1 in
	head) printf '\377' | dd of=$f bs=1 seek=3 conv=notrunc status=none ;;
	middle) perl -pi -e 'substr($_, 300, 1) ^= "\1"' -0777 $f ;;
	end) perl -pi -e 'substr($_, -10, 1) ^= "\1"' -0777 $f ;;
	short) truncate -s 100 $f ;;
	empty) : >$f ;;
	esac
}

damages=(head middle end short empty)

# goes_on: check that step 1 of all devices is averaged
goes_on() {
	sends 1 a b c
	aggregate
	[ "$(members)" = abc ]
}

@test "a shard damaged before its step is closed is named and left out, and the run continues" {
	local how
	sends 0 a b c
	mv spool whole
	for how in "${damages[@]}"; do
		damaged "$how"
		aggregate
		says "^ace-aggregate: 'spool/0/b.aceg', the shard of device 'b', is damaged in the spool: (corrupt|truncated): .*; no average counts it$"
		[ "$(members)" = ac ]
		goes_on
	done
}

@test "a shard damaged after its step is closed is named and left out, and the run continues" {
	local how
	sends 0 a b c
	# do not publish the average, so that the step has to be averaged again
	ace-aggregate --spool spool --rounds 1 --sync none --devices 3 --publish >none &
	wait_for [ -s none ]
	kill $!
	wait $! || true
	[ -e spool/closed ]
	[ ! -e spool/done/0 ]
	mv spool whole
	for how in "${damages[@]}"; do
		damaged "$how"
		aggregate
		# the damage is after the shard itself, which is whole
		[ "$how" = end ] ||
		    says "^ace-aggregate: step [0-9]+: 1 of 3 shards is excluded: (corrupt|truncated): .*'spool/0/b.aceg'$"
		[ "$(members)" = "$([ "$how" = end ] && echo abc || echo ac)" ]
		goes_on
	done
}

# bats test_tags=long
@test "with any byte changed the step is averaged, and a device that is left out is named" {
	local i n
	sends 0 a b c
	mv spool whole
	n=$(stat -c %s whole/0/b.aceg)
	[ "$n" -gt 500 ]
	for ((i = 0; i < n; i++)); do
		damaged none
		perl -pi -e "substr(\$_, $i, 1) ^= chr(1 << $i % 8)" -0777 spool/0/b.aceg
		aggregate
		[ "$(members)" = abc ] || says "'spool/0/b.aceg', the shard of device 'b'"
	done
}

@test "too few undamaged shards for the quorum: they count in the next average" {
	sends 0 a b c
	damage middle
	aggregate --quorum 3
	says "step [0-9]+ has no average: each of its shards is excluded or waits"
	sends 1 a
	exits 0 timeout "$HANG" ace-aggregate --spool spool --rounds 1 --sync none
	[ "$(members)" = ac ]
}

@test "if the only shard of a step is damaged, there is no average and its device gets a receipt" {
	shard b 0 >in
	ace-recv --spool spool --sync none in >receipts
	damage short
	exits 0 timeout "$HANG" ace-aggregate --spool spool --rounds 1 --sync none
	says "step [0-9]+ has no average"
	exits 0 timeout "$HANG" ace-recv --spool spool --sync none -v --reply aggregate in
	says "^ace-recv: 'b' step 0: late: step 0 is closed"
	sends 1 b
	exits 0 timeout "$HANG" ace-aggregate --spool spool --rounds 1 --sync none
	[ "$(members)" = b ]
}

@test "a shard that is sent again before its step is closed replaces the damaged file" {
	local how
	sends 0 a b c
	mv spool whole
	for how in "${damages[@]}"; do
		damaged "$how"
		shard b 0 >in
		exits 0 ace-recv --spool spool --sync none -v in
		says "^ace-recv: 'b' step 0: accepted$"
		same whole/0/b.aceg spool/0/b.aceg
		aggregate
		[ ! -s err ]
		[ "$(members)" = abc ]
	done
}

@test "a damaged shard of a step that was skipped" {
	sends 0 a b
	sends 1 a c
	damage end
	exits 0 timeout "$HANG" ace-aggregate --spool spool --rounds 1 --sync none \
	    --quorum 2 --deadline 1ms
	exits 0 timeout "$HANG" ace-aggregate --spool spool --rounds 1 --sync none
	[ "$(members)" = ac ]
}
