load helper

# shard DEVICE STEP: send a shard to the spool, with the state in directory DEVICE
shard() {
	mkshards -d "$1" -s "$2" -x "$2" -r demo | ace-compress -S "$1" -c q8 |
	    ace-recv --spool spool | ace-ack -S "$1" >/dev/null 2>&1
}

# closes N [OPTION]...: aggregate one step of N devices
closes() { ace-aggregate --spool spool --devices "$1" --rounds 1 "${@:2}" >mean.aceg; }

# row DEVICE: print the device's line, its columns separated by one blank
row() { exits 0 ace-status spool && grep "^$1 " out | tr -s ' '; }

# json EXPRESSION: print the value of EXPRESSION for the first document in `out'
json() { python3 -S -c 'import json, sys
d = json.loads(open("out").readline()); print(eval(sys.argv[1]))' "$1"; }

# is DIR EXPRESSION WANT: check the value of EXPRESSION in the JSON of the directory
is() { exits 0 ace-status --format json "$1" && [ "$(json "$2")" = "$3" ]; }

@test "in the first step no device is missing unless a list of devices names it" {
	shard edge1 0
	shows '^step 0: 1 shard is there, for [0-9]\+ s; ace-aggregate waits for devices that are not known yet' ace-status spool
	! grep 'has not closed' out || false
	ace-recv --spool spool --device edge2 --join
	shows '^step 0: 1 of 2 shards are there, for [0-9]\+ s; missing: edge2$' ace-status spool
	shard edge2 0
	shows '^step 0: every expected shard is there (2), .* ace-aggregate has not closed the step' ace-status spool
}

@test "it prints which devices are here and which are missing" {
	shard edge1 0
	shard edge2 0
	closes 2
	exits 0 ace-status spool
	grep -q "^run 'demo' in 'spool': 1 step kept, averages up to step 0, " out
	grep -q '^waiting for a first shard after step 0$' out
	[[ $(row edge1) = 'edge1 0 done '* ]]
	shard edge1 1
	shows '^step 1: 1 of 2 shards are there, for [0-9]\+ s; missing: edge2$' ace-status spool
	[[ $(row edge1) = 'edge1 1 here '*' 2 0 0' ]]
	[[ $(row edge2) = 'edge2 0 missing '*' 1 0 0' ]]
	# the step is closed without edge2, and its shard is late
	closes 1
	shard edge2 1
	[[ $(row edge2) = 'edge2 0 behind '*' 1 1 0' ]]
	shows "^device 'edge2' of run 'demo' in 'edge2': step 1, late$" ace-status edge2
	grep -q '^receipts  accepted 1, late 1, invalid 0; of the last 2$' out
}

@test "the devices of the list are waited for" {
	shard edge1 0
	shard edge2 0
	ace-recv --spool spool --device edge3 --join
	shows 'missing: edge3$' ace-status spool
	[[ $(row edge3) = 'edge3 - never '* ]]
	for d in edge3 edge2; do ace-recv --spool spool --device $d --leave; done
	closes 2; [[ $(row edge2) = 'edge2 0 left '* ]]; shard edge1 1
	shows '^step 1: every expected shard is there (1),' ace-status spool
	[[ $(row edge2) = 'edge2 0 left '* ]]
	# without a list, the devices of the last average are waited for
	rm spool/devices; shard edge3 1; closes 2; shard edge1 2
	[[ $(row edge2) = 'edge2 0 left '* && $(row edge3) = 'edge3 1 missing '* ]]
}

@test "verdicts, also of steps that were removed" {
	for s in 0 1 2; do
		for d in edge1 edge2; do shard $d $s; done
		closes 2 --keep 1
	done
	[ -e spool/done/0 ]
	[[ $(row edge1) = 'edge1 2 done '*' 3 0 0' ]]
	# a shard of another model is invalid
	mkshards -d edge2 -s 3 -r demo -n 300 | ace-recv --spool spool >/dev/null
	mkshards -d edge1 -s 3 -r demo | ace-recv --spool spool >/dev/null
	[[ $(row edge2) = 'edge2 3 missing '*' 3 0 1' ]]
	[[ $(row edge1) = 'edge1 3 here '*' 4 0 0' ]]
	exits 0 ace-status --format json spool
	[ "$(json 'd["now"]')" = open ]
	[ "$(json 'd["devices"][1]["verdicts"]["invalid"]')" = 1 ]
	[ "$(json 'd["disk_bytes"] > 0')" = True ]
}

@test "a closed step that has no aggregate yet" {
	shard edge1 0
	shard edge2 0
	closes 2
	# the spool as a killed aggregator leaves it
	rm spool/done/0
	shows '^step 0 is closed with 2 shards; its average is not there yet' ace-status spool
	is spool 'd["now"]' closed
}

@test "a state's link, before and after it was measured" {
	shard edge1 0
	shows '^link      not measured' ace-status edge1
	mkshards | ace-meter -S edge1 --bandwidth 5Mbit >/dev/null
	is edge1 '(d["kind"], d["device"], d["verdict"], d["bandwidth"])' \
	    "('state', 'edge1', 'accepted', 5000000)"
}

@test "names with control characters are printed with ?; long names are shortened" {
	long=$(printf 'x%.0s' {1..200})
	shard "$long" 0
	odd=$'k \303\274.%41'
	shard "$odd" 0
	shows "^$odd" ace-status spool
	grep -q '^xxxxx' out
	mkdir -p spool/0
	touch spool/0/$'evil\e[2J.aceg' 'spool/0/half%4.aceg' 'spool/0/no%zz.aceg'
	exits 0 ace-status spool
	LC_ALL=C grep -q 'evil?\[2J' out
	# file names that ace-recv does not make are printed as they are
	grep -qE '^half%4( |$)' out
	grep -q '^no%zz ' out
	COLUMNS=40 exits 0 ace-status --format json spool
	json 'len(d["devices"])'
}

# aged FILE AGE [SIZE]: set the age in seconds, and the size, of a file in the spool
aged() {
	[ $# -lt 3 ] || truncate -s "$3" "spool/$1"
	touch -d "@$(($(date +%s) - $2))" "spool/$1"
}

@test "times and sizes are printed in a suitable unit" {
	local age since size bytes
	shard edge1 0
	while IFS=: read -r age since size bytes; do
		aged 0/edge1.aceg "$age" "$size"
		row edge1 >line
		grep -qE "^edge1 0 here $since $bytes 1 0 0$" line ||
		    { cat line; return 1; }
		grep -qE "^step 0: 1 shard is there, for $since; ace-aggregate waits for devices" out
	done <<-'END'
		80:(8|9|10|11)[0-9] s:532:532 B
		3600:60 m:999:999 B
		6000:100 m:1000:1 kB
		108000:30\.0 h:12345:12\.3 kB
		259200:3\.0 d:12345678:12\.3 MB
		864000:10\.0 d:5000000000:5 GB
		-1000:0 s:1015000:1\.01 MB
	END
}

@test "a step is as old as its first shard; a device's line is about its newest shard" {
	shard edge1 0
	shard edge2 0
	shard edge2 1
	aged 0/edge1.aceg 6000
	aged 0/edge2.aceg 259200 700
	aged 1/edge2.aceg 108000 900
	shows '^step 0: 2 shards are there, for 3\.0 d; ' ace-status spool
	[ "$(row edge2)" = 'edge2 1 here 30.0 h 900 B 2 0 0' ]
	exits 0 ace-status --format json spool
	[ "$(json '259200 <= d["seconds"] < 300000')" = True ]
	[ "$(json '[108000 <= v["seconds"] < 200000 for v in d["devices"]]')" = \
	    '[False, True]' ]
	[ "$(json '[v["bytes"] for v in d["devices"]][1]')" = 900 ]
	[ "$(json 'abs(d["time"] - __import__("time").time()) < 3600')" = True ]
}

@test "the members of JSON have the right values" {
	shard edge1 0
	shard edge2 0
	ace-recv --spool spool --device edge1 --join
	closes 2
	for s in 1 2; do
		for d in edge2 edge1; do shard $d $s; done
		closes 2 --keep 2
	done
	ace-recv --spool spool --device edge2 --leave
	shard edge2 3
	shard edge3 3
	exits 0 ace-status --format json spool
	[ "$(json '[d[k] for k in ("run", "last", "steps", "now", "step", "here", "missing")]')" = \
	    "['demo', 2, 3, 'open', 3, 2, 1]" ]
	[ "$(json '[[v[k] for k in ("device", "is", "step", "listed")] for v in d["devices"]]')" = \
	    "[['edge1', 'missing', 2, True], ['edge2', 'here', 3, False], ['edge3', 'here', 3, False]]" ]
	# blocks FILE...: print the bytes on disk
	blocks() { find "$@" -printf '%b\n' | awk '{ n += $1 } END { print 512 * n }'; }
	[ "$(json 'd["disk_bytes"]')" -eq "$(blocks spool -mindepth 1 ! -name '.*')" ]
	[ "$(json 'd["devices"][1]["disk_bytes"]')" -eq \
	    "$(blocks spool -name edge2.aceg)" ]
	# the output while a closed step still has no average
	ace-aggregate --spool spool --rounds 4 --quorum 2 --deadline 0.1s \
	    --publish 3>&- >mean.aceg &
	wait_for test ! spool/closed -ef spool/done/2
	exits 0 ace-status --format json spool
	kill $!
	[ "$(json '[d[k] for k in ("now", "step", "here")]')" = "['closed', 3, 2]" ]
}

@test "several directories: a blank line between tables, one JSON document each" {
	shard edge1 0
	exits 0 ace-status spool edge1
	grep -A 1 '^$' out | grep -q "^device 'edge1' of run 'demo'"
	[ "$(grep -c '^$' out)" -eq 1 ]
	exits 0 ace-status --format json spool edge1
	[ "$(wc -l <out)" -eq 2 ]
	[ "$(grep -c '^{"directory":' out)" -eq 2 ]
	tail -n 1 out | grep -q '^{"directory":"edge1",.*"kind":"state"'
	[ "$(ace-status nowhere edge1 2>err || echo "$?")" = "$(ace-status edge1; echo 4)" ]
}

@test "invalid shards count as refused; a step with a receipt does not count as missed" {
	for s in 0 1; do
		shard edge1 $s
		closes 1
	done
	mkshards -d edge3 -s 2 -r demo -k nan | ace-recv --spool spool >receipt
	[[ $(row edge3) = 'edge3 2 '*' 0 0 1' ]]
	is spool '[v["verdicts"]["invalid"] for v in d["devices"]]' '[0, 1]'
	shard edge1 2
	closes 1
	[[ $(row edge3) = 'edge3 2 '*' 0 0 1' ]]
	# edge4: one shard of step 3 is accepted, two are refused; step 4 is missed
	for k in nan inf gauss; do
		mkshards -d edge4 -s 3 -r demo -k $k | ace-recv --spool spool >receipt
	done
	closes 1
	mkshards -d edge1 -s 4 -r demo | ace-recv --spool spool >receipt
	closes 1
	[[ $(row edge4) = 'edge4 3 '*' 1 1 2' ]]
}

@test "a state: receipts, the measured link, bytes on disk" {
	mkshards -r demo -d edge1 | ace-compress -S st -c q8 >sent
	exits 0 ace-status st
	grep -q "^device 'edge1' of run 'demo' in 'st': step 0, no receipts are kept (ace-ack)$" out
	! grep -q '^receipts' out || false
	is st '("verdict" in d, "verdicts" in d, "rtt" in d, "bandwidth" in d)' \
	    '(False, False, False, False)'
	# two receipts for the same shard, of which the second is recorded
	ace-recv --spool spool sent >first
	ace-recv --spool spool sent | ace-ack -S st >/dev/null
	mkshards -r demo -d edge1 -s 1 | ace-compress -S st -c q8 >next
	shows ': step 1, no receipt yet$' ace-status st
	grep -q '^receipts  accepted 1, late 0, invalid 0; of the last 1$' out
	is st '(d["step"], "verdict" in d, d["verdicts"]["accepted"], sorted(d["verdicts"]))' \
	    "(1, False, 1, ['accepted', 'invalid', 'late'])"
	# as ace-meter writes the file
	mkshards -H kind=6 -K bandwidth=2500000 -K rtt=0.25 -K jitter=0.03125 >st/link
	shows '^link      2\.5 Mbit/s, round trip 250\.0 +- 31\.2 ms$' ace-status st
	exits 0 ace-status --format json st
	[ "$(json '(d["bandwidth"], d["rtt"], d["jitter"])')" = '(2500000, 0.25, 0.03125)' ]
	[ "$(json 'd["disk_bytes"]')" -eq "$(find st -mindepth 1 -printf '%b\n' |
	    awk '{ n += $1 } END { print 512 * n }')" ]
	mkshards -r demo -d edge1 -s 1 -x 7 | ace-recv --spool spool >/dev/null
	ace-recv --spool spool next >other
	exits 5 ace-ack -S st other
	shows '^receipts  accepted 1, late 0, invalid 0; of the last 1$' ace-status st
}

@test "a message says that the residual has grown for five shards in a row" {
	for s in 0 1 2 3 4; do
		mkshards -n 64k -s $s |
		    ace-compress -S st -c qsgd:1 --error-feedback ef:raw >sent
		exits 0 ace-status st
		[ $s = 4 ] || run ! grep -q residual out
		is st 'd["growing"]' $((s + 1))
	done
	shows '^residual  grows: the errors of 5 shards in a row were as large as their values (ace-compress)$' ace-status st
	mkshards -n 64k -s 5 | ace-compress -S st -c f32 --error-feedback ef:raw >sent
	exits 0 ace-status st
	run ! grep -q residual out
}

@test "a state is recognised whichever program created it" {
	local p n=0
	mkshards >in
	for p in "ace-score --form paper" "ace-policy --bandwidth 1Mbit --target-divergence 0.1 --model-norm 9" \
	    "ace-meter -L 1Mbit" "ace-compress -c q8" ace-ack; do
		n=$((n + 1))
		exits 0 $p -S st$n in
		exits 0 ace-status st$n
		grep -q '^disk ' out || { echo "$p"; return 1; }
		is st$n 'd["kind"]' state
	done
}

@test "a long name does not shift the columns; the table fits 80 columns" {
	long=$(printf 'x%.0s' {1..100})
	shard "$long" 0
	shard edge1 0
	shows '^edge1 \+0 ' ace-status spool
	grep -qx "$long" out
	[ "$(sed 1,2d out | wc -L)" -eq 100 ]
	[ "$(sed 1,2d out | grep -v x | wc -L)" -le 80 ]
	# if the name is unknown, twelve digits of its hash are shown
	closes 2
	shard edge1 1
	closes 1 --keep 1
	exits 0 ace-status spool
	grep -qE '^#[0-9a-f]{12} +0 ' out
	# a name too long for a file name is shown by its beginning
	shard "$(printf 'y%.0s' {1..200})" 2
	exits 0 ace-status spool
	grep -qE '^y{50,}\.\.\.$' out
}

@test "a new spool is recognised as one" {
	exits 0 ace-recv --spool spool --create
	shows 'waiting for a first shard' ace-status spool
	mkdir new
	exits 0 ace-recv --spool new/spool --device edge1 --join
	rm -r new/spool/*
	exits 0 ace-status new/spool
}

@test "a directory that is neither a spool nor a state is refused, with what to do" {
	exits 4 ace-status nowhere
	[ ! -e nowhere ]
	mkdir folder empty
	echo hello >folder/file
	refuses 3 "^ace-status: mismatch: 'folder' is not a spool \(ace-recv --spool\) and not a device's state" ace-status folder
	mkdir folder/spool && : >folder/spool/limits
	refuses 3 "'folder' is the folder of a cloud or a relay: give its folder 'spool'" ace-status folder
	refuses 3 "is not a directory" ace-status folder/file
	exits 2 ace-status
	shows 'waiting for a first shard' ace-status empty
	shard edge1 0
	chmod 777 spool
	exits 5 ace-status spool
	exits 5 ace-status --format json spool
	[ "$(json '"run" in d')" = False ]
	chmod 700 spool
	echo x >spool/closed
	exits 3 ace-status --format json spool
	[ "$(json '"run" in d')" = False ]
	rm spool/closed
	is empty '"run" in d' False
	echo x >spool/0/edge9.no
	exits 3 ace-status spool
}

@test "a spool may change while ace-status reads it" {
	local n writer
	(n=0; until [ -e looked ]; do
		for d in edge1 edge2; do shard $d $n; done
		closes 2 --keep 1
		n=$((n + 1))
		echo $n >steps
	done) 3>&- &
	writer=$!
	wait_for test -s steps
	for _ in {1..12}; do
		exits 0 ace-status spool
		exits 0 ace-status --format json spool
		json 'd["kind"]' >/dev/null
	done
	: >looked
	wait $writer
	n=$(cat steps)
	[[ $(row edge1) = "edge1 $((n - 1)) done "*" $n 0 0" ]]
}

@test "the page names each field" {
	shard edge1 0
	shard edge2 0
	mkshards | ace-meter -S edge1 --bandwidth 5Mbit >/dev/null
	exits 0 ace-status --format json spool edge1
	grep -oE '"[a-z_-]+":' out | tr -d '":' | sort -u >said
	exits 0 ace-status spool
	grep '^device ' out | tr -s ' ' '\n' | sort -u >>said
	[ "$(wc -l <said)" -gt 30 ]
	sed -n '/^\.Sh DESCRIPTION/,/^\.Sh EXIT/p' "$ROOT/man/ace-status.1" |
	    tr -c 'a-zA-Z_/-' '\n' | sort -u >page
	comm -23 <(sort -u said) page | diff /dev/null -
}

@test "a directory that contains a state's directory is neither a spool nor a state" {
	mkdir -m 700 here
	mkshards | ace-compress -S here/edge1 -c q8 >/dev/null
	touch here/lock here/round	# as in the folder of ace edge
	refuses 3 "'here' is not a spool" ace-status here
}

# bats test_tags=plain
@test "the work grows in proportion to the list of devices" {
	local n work=()
	needs valgrind
	mkshards -d d0 | ace-recv --spool spool -q >/dev/null
	for n in 2000 4000; do
		seq -f d%.0f $n | sort -R --random-source=<(yes) >spool/devices
		exits 0 valgrind --tool=callgrind --callgrind-out-file=/dev/null \
		    ace-status --sandbox off spool
		work+=("$(sed -n 's/.*Collected : //p' err)")
	done
	echo "${work[*]}"
	[ "${work[1]}" -lt $((work[0] * 23 / 10)) ]
}
