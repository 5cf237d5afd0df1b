load helper

# shard DEVICE STEP: into the spool, its state in the directory of its name
shard() {
	mkshards -d "$1" -s "$2" -x "$2" -r demo | ace-compress -S "$1" -c q8 |
	    ace-recv --spool spool | ace-ack -S "$1" >/dev/null 2>&1
}

# closes N [QUORUM OPTIONS]: a step
closes() { ace-aggregate --spool spool --expect "$1" --steps 1 "${@:2}" >mean.aceg; }

# row DEVICE: its columns, one blank between
row() { exits 0 ace-status spool && grep "^$1 " out | tr -s ' '; }

# json EXPRESSION: of the first document in `out'
json() { python3 -c 'import json, sys
d = json.loads(open("out").readline()); print(eval(sys.argv[1]))' "$1"; }

@test "who is here, who is missing, and what is waited for" {
	shard edge1 0
	shard edge2 0
	closes 2
	exits 0 ace-status spool
	grep -q "^run 'demo' in 'spool': 1 steps kept, aggregates up to step 0, " out
	grep -q '^waiting for a first shard after step 0$' out
	[[ $(row edge1) = 'edge1 0 done '* ]]
	shard edge1 1
	exits 0 ace-status spool
	grep -qE '^step 1: 1 of 2 shards are there, for [0-9]+ s; missing: edge2$' out
	[[ $(row edge1) = 'edge1 1 here '*' 2 0 0' ]]
	[[ $(row edge2) = 'edge2 0 missing '*' 1 0 0' ]]
	# closed without it, and what it sends then is late
	closes 1
	shard edge2 1
	[[ $(row edge2) = 'edge2 0 behind '*' 1 1 0' ]]
	exits 0 ace-status edge2
	grep -q "^device 'edge2' of run 'demo' in 'edge2': step 1, late$" out
	grep -q '^receipts  accepted 1, late 1, invalid 0, equivocation 0, fenced 0; of the last 2$' out
}

@test "a list of devices says who is waited for" {
	shard edge1 0
	shard edge2 0
	ace-recv --spool spool --run demo --device edge3 --join >/dev/null
	exits 0 ace-status spool
	grep -q 'missing: edge3$' out
	[[ $(row edge3) = 'edge3 - never '* ]]
	ace-recv --spool spool --run demo --device edge3 --leave
	ace-recv --spool spool --run demo --device edge2 --leave
	closes 2
	shard edge1 1
	exits 0 ace-status spool
	grep -q '^step 1: all 1 shards are there' out
	[[ $(row edge2) = 'edge2 0 left '* ]]
}

@test "verdicts, what is kept of removed steps, and the bandwidth that shards say" {
	for s in 0 1 2; do
		for d in edge1 edge2; do shard $d $s; done
		closes 2 --keep 1
	done
	[ -e spool/demo/old/0 ]
	[[ $(row edge1) = 'edge1 2 done '*' - 3 0 0' ]]
	# another model: invalid
	mkshards -d edge2 -s 3 -r demo -n 300 | ace-recv --spool spool >/dev/null
	mkshards -d edge1 -s 3 -r demo | ace-policy -S p --bandwidth 5Mbit \
	    --cmin 1 --cmax 9 --half 1Mbit | ace-recv --spool spool >/dev/null
	[[ $(row edge2) = 'edge2 3 missing '*' 3 0 1' ]]
	[[ $(row edge1) = 'edge1 3 here '*' 5.0 4 0 0' ]]
	exits 0 ace-status --json spool
	[ "$(json '[r["now"] for r in d["runs"]]')" = "['open']" ]
	[ "$(json 'd["runs"][0]["devices"][1]["verdicts"]["invalid"]')" = 1 ]
	[ "$(json 'd["runs"][0]["devices"][0]["bandwidth"]')" = 5000000 ]
	[ "$(json 'd["disk_bytes"] >= d["runs"][0]["disk_bytes"] > 0')" = True ]
}

@test "a step that is closed and has no aggregate yet" {
	shard edge1 0
	shard edge2 0
	closes 2
	# as when the aggregator is killed
	rm spool/demo/last
	exits 0 ace-status spool
	grep -q '^step 0 is closed with 2 shards, its aggregate is not there yet' out
	exits 0 ace-status --json spool
	[ "$(json 'd["runs"][0]["now"]')" = closed ]
}

@test "a device's link, before and after it was measured" {
	shard edge1 0
	exits 0 ace-status edge1
	grep -q '^link      not measured' out
	mkshards | ace-meter -S edge1 --limit 5Mbit >/dev/null
	exits 0 ace-status --json edge1
	[ "$(json '(d["kind"], d["device"], d["verdict"], d["bandwidth"])')" = \
	    "('state', 'edge1', 'accepted', 5000000)" ]
}

@test "the sandbox of those that serve the spool, as the last of them said" {
	local in_force
	in_force=$(ace-score -vv </dev/null 2>&1 | sed -n 's/^ace-score: sandbox: //p')
	[ -n "$in_force" ]
	# who only looks leaves nothing, and nobody has served it yet
	mkdir -m 700 spool
	exits 0 ace-status spool
	grep 'sandbox of' out && return 1
	exits 0 ace-status --json spool
	[ "$(json 'd["sandbox"]')" = '{}' ]
	shard edge1 0
	exits 0 ace-status spool
	[ "$(grep 'sandbox of' out)" = "sandbox of ace-recv: $in_force" ]
	mkshards -d edge2 -r demo >in
	exits 0 ace-recv --sandbox off --spool spool in
	closes 2
	exits 0 ace-status spool
	grep -q '^sandbox of ace-recv: off$' out
	grep -q "^sandbox of ace-aggregate: $in_force$" out
	exits 0 ace-status --json spool
	[ "$(json 'd["sandbox"]["ace-recv"]')" = off ]
	[ "$(json 'd["sandbox"]["ace-aggregate"]')" = "$in_force" ]
	# written when it changes, and not with every connection
	touch -d @1 spool/.sandbox.ace-recv
	exits 0 ace-recv --sandbox off --spool spool in
	[ "$(stat -c %Y spool/.sandbox.ace-recv)" -eq 1 ]
	exits 0 ace-recv --spool spool in
	exits 0 ace-status spool
	grep -q "^sandbox of ace-recv: $in_force$" out
	# what no program leaves there is not said, and stops nobody
	printf 'a\033[31mb\n' >spool/.sandbox.ace-recv
	rm spool/.sandbox.ace-aggregate
	mkfifo spool/.sandbox.ace-aggregate
	exits 0 timeout "$HANG" ace-status spool
	grep 'sandbox of' out && return 1
	exits 0 ace-recv --spool spool in
	exits 0 ace-status spool
	grep -q "^sandbox of ace-recv: $in_force$" out
}

@test "names that a terminal would obey, and long ones" {
	long=$(printf 'x%.0s' {1..200})
	shard "$long" 0
	odd=$'k \303\274.%41'
	shard "$odd" 0
	exits 0 ace-status spool
	grep -q "^$odd " out
	grep -q '^xxxxx' out
	mkdir -p spool/demo/0
	touch spool/demo/0/$'evil\e[2J.aceg' 'spool/demo/0/half%4.aceg' 'spool/demo/0/no%zz.aceg'
	exits 0 ace-status spool
	LC_ALL=C grep -q 'evil?\[2J' out
	# what ace-recv would not have written is shown as it is
	grep -q '^half%4 ' out
	grep -q '^no%zz ' out
	COLUMNS=40 exits 0 ace-status --json spool
	json 'len(d["runs"][0]["devices"])'
}

@test "on a terminal lines are cut to its width, elsewhere not" {
	shard edge1 0
	exits 0 pty sh -c 'stty cols 40 <&1; ace-status spool'
	tr -d '\r' <out >lines
	[ "$(wc -L <lines)" -eq 40 ]
	exits 0 ace-status spool
	[ "$(wc -L <out)" -gt 60 ]
}

@test "--watch goes on, and leaves when nobody reads" {
	shard edge1 0
	ace-status --watch 0.1s --json spool >all 3>&- &
	pid=$!
	lines() { [ "$(wc -l <all)" -ge "$1" ]; }
	wait_of $pid lines 2
	shard edge1 1
	# one of these may have been begun before
	wait_of $pid lines $(($(wc -l <all) + 2))
	kill $pid
	tail -n 1 all | grep -q '"step":1'
	# a reader that has gone
	{ got=0; timeout "$HANG" ace-status --watch 0.1s spool || got=$?; echo $got >status; } |
	    head -n 1 >/dev/null
	case $(cat status) in
	4 | 141) ;;
	*) echo "nobody reads, and it ends with $(cat status)"; return 1 ;;
	esac
	exits 2 ace-status --watch 0 spool
}

@test "what is no spool and no state is refused with the way out" {
	exits 4 ace-status nowhere
	[ ! -e nowhere ]
	mkdir folder empty
	echo hello >folder/file
	exits 3 ace-status folder
	says "^ace-status: mismatch: 'folder' is no spool \(ace-recv --spool\) and no device's state"
	exits 3 ace-status folder/file
	says "is a file"
	exits 2 ace-status
	exits 0 ace-status empty
	grep -q 'waiting for a first shard' out
	shard edge1 0
	exits 3 ace-status --run other spool
	says "mismatch: no run 'other' in 'spool'"
	chmod 777 spool
	exits 5 ace-status spool
	chmod 700 spool
	echo x >spool/demo/0/edge9.no
	exits 3 ace-status spool
}

@test "a spool that is written while it is looked at" {
	(for s in $(seq 0 15); do
		for d in edge1 edge2; do shard $d $s; done
		closes 2 --keep 1
	done; : >finished) 3>&- &
	wait_for test -d spool/demo/0
	n=0
	until [ -e finished ]; do
		exits 0 ace-status spool
		exits 0 ace-status --json spool
		json 'd["kind"]' >/dev/null
		n=$((n + 1))
	done
	[ $n -gt 3 ]
	[[ $(row edge1) = 'edge1 15 done '*' 16 0 0' ]]
}

@test "no memory: said, wherever it is" {
	shard edge1 0
	mkshards -d edge2 -r demo -k nan | ace-recv --spool spool >receipt
	starves ace-status spool
	starves ace-status --json spool
	# nothing is there but a refusal
	rm spool/demo/0/edge1.aceg
	starves ace-status spool
	[[ $(row edge2) = 'edge2 '* ]]
}
