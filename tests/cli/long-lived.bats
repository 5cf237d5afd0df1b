# One connection for a whole run: many steps in constant memory; aggregates come back in the
# same connection.
load helper
load values

teardown() {
	set +e
	for p in $(jobs -p); do
		kill -9 "$p" 2>/dev/null || true
	done
}

# edge N FROM STEPS: run device N for STEPS steps from FROM, in a pipe to the spool and back
edge() {
	mkshards -d "edge$1" -x "$1" -s "$2" -N "$3" -k ramp |
	    peak "kib.compress$1" ace-compress -S "st$1" -c topk:0.1 \
	    --window 4 --sync none |
	    peak "kib.recv$1" ace-recv --spool spool --reply aggregate \
	    --sync none |
	    peak "kib.ack$1" ace-ack -S "st$1" --sync none >"back$1"
}

# cloud STEPS DEVICES ARGS...: aggregate and publish STEPS steps of DEVICES devices
cloud() {
	peak kib.aggregate ace-aggregate --spool spool --create --devices "$2" \
	    --rounds "$1" --publish --sync none "${@:3}" |
	    peak kib.publish ace-recv --spool spool --publish --sync none
}

# steps N: run two devices and a cloud for N steps
steps() {
	rm -rf spool st1 st2
	cloud "$1" 2 --keep 8 3>&- &
	local cloud=$!
	edge 1 0 "$1" 3>&- &
	local one=$!
	edge 2 0 "$1" 3>&-
	wait $one
	wait $cloud
}
export -f edge cloud steps

# bats test_tags=long
@test "two hundred steps take no more memory than twenty" {
	timeout "$HANG" bash -c 'set -o pipefail; steps 20'
	for f in kib.*; do cp "$f" "20.$f"; done
	[ "$(field step back1 | paste -sd' ')" = "$(seq -s' ' 0 19)" ]
	ace-inspect diff back1 back2 >/dev/null
	timeout "$HANG" bash -c 'set -o pipefail; steps 200'
	ace-inspect diff back1 back2 >/dev/null
	[ "$(field step back1 | paste -sd' ')" = "$(seq -s' ' 0 199)" ]
	[ "$(field contributors back2 | sort | uniq -c)" = "    200 edge1,edge2" ]
	sanitized || for f in kib.*; do
		echo "# ${f#kib.}: $(cat "20.$f") KiB, $(cat "$f") KiB" >&3
		# memory varies by some 600 KiB with the order in which libraries are loaded
		[ "$(cat "$f")" -le $(($(cat "20.$f") + 1024)) ]
	done
	# the spool has only the files of the last steps
	[ "$(find spool -name '*.aceg' | wc -l)" -le 30 ]
}

@test "if the aggregate was removed, the answer is the receipt alone" {
	mkshards -k ramp >in
	ace-recv --spool spool in >/dev/null
	mkshards -d edge2 -k ramp -N 5 | ace-recv --spool spool >/dev/null
	ace-aggregate --spool spool --rounds 4 --keep 2 >/dev/null
	[ ! -e spool/0 ]
	makes back timeout "$HANG" ace-recv --spool spool --reply aggregate in
	notes 'step 0: accepted' ace-ack -v -S st back
	[ -z "$(field step out)" ]
}

# closes STATUS SECONDS ARGS...: run ace-aggregate for one step and at most SECONDS, and check
# its status, which is 124 if the time is over
closes() {
	exits "$1" timeout "${2}" ace-aggregate --omit provenance --spool spool \
	    --rounds 1 "${@:3}"
}

@test "ace-aggregate waits for all devices, or for the deadline" {
	for i in 1 2; do
		mkshards -d "edge$i" -x "$i" | ace-recv --spool spool >receipt
	done
	# with a deadline more shards may come until then; without one a quorum is enough
	closes 124 1 --quorum 1 --deadline 1h
	closes 124 1 --deadline 1h
	closes 124 1 --devices 3
	closes 124 1 --devices 3 --quorum 2 --deadline 1h
	[ ! -e spool/closed ]
	cp -r spool other
	closes 0 "$HANG" --devices 2 --quorum 2 --deadline 1h
	mv out want
	rm -r spool
	mv other spool
	cp -r spool other
	closes 0 "$HANG" --quorum 2
	same out want
	rm -r spool
	mv other spool
	closes 0 "$HANG" --devices 3 --quorum 2 --deadline 0s
	same out want
	exits 2 ace-aggregate --spool spool --quorum 3 --devices 2
	says "is larger than --devices"
}

@test "after a restart, the deadline still counts from the shard that completed the quorum" {
	for i in 1 2; do
		mkshards -d "edge$i" -x "$i" | ace-recv --spool spool >receipt
	done
	closes 124 1 --quorum 2 --deadline 1h
	touch -d '50 minutes ago' spool/0/edge2.aceg
	closes 124 1 --quorum 1 --deadline 1h
	# the first shard of a quorum of two does not start the deadline
	touch -d '61 minutes ago' spool/0/edge2.aceg
	closes 124 1 --quorum 2 --deadline 1h
	touch -d '61 minutes ago' spool/0/edge1.aceg
	closes 124 1 --quorum 3 --deadline 1h
	closes 0 "$HANG" --quorum 2 --deadline 1h
	[ "$(field contributors out)" = edge1,edge2 ]
	# an arrival time in the future counts as now
	mkshards -s 1 | ace-recv --spool spool >receipt
	touch -d 'now + 1 day' spool/1/*.aceg
	closes 0 "$HANG" --deadline 100ms
}
