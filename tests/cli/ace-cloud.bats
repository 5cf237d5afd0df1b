# shellcheck disable=SC2154 # front.bash sets train and last
load helper
load front

@test "two devices and a cloud, each started by one command, get the average" {
	cloud run --devices 2 --rounds 3 --bits 8
	edge edge1 1 3
	exec 9> >(:)
	wait $!		# nobody reads the events of edge2
	edge edge2 3 3 --events 9
	exec 9>&-
	ends cloud edge1 edge2
	averaged edge1 3 2
	averaged edge2 3 2
	# both sides report each round, and the absolute path of their folder
	for k in 1 2 3; do
		grep -qE "^ace-cloud: round $k/3: 2 of 2 devices, .*, average .* \(.*x smaller\)" cloud.err
		grep -qE "^ace-edge: round $k/3: 2 of 2 devices, computing .*, sent .* \(.*x smaller\)" edge1.err
	done
	grep -q "$PWD/run" cloud.err
	grep -q "$PWD/ace-edge1" edge1.err
	[ ! -s cloud.out ]
	[ ! -s edge1.out ]
	[ "$(stat -c %a run ace-edge1 | sort -u)" = 700 ]
}

@test "after kill -9 of the cloud and the devices, the same commands continue the run" {
	local k program victims=0
	cloud run --devices 2 --rounds 60 --bits 8
	edge edge1 1 60
	edge edge2 3 60
	wait_for has edge1.got 5
	xargs kill -KILL <pids
	rm pids
	wait
	[ "$(lines edge1.got)" -lt 60 ]
	edge edge1 1 60
	wait_for has edge1.err 1
	edge edge2 3 60
	# each program of the cloud in turn is killed at its K-th change of a file
	for k in 1 2 3 4 6 9 14 20; do
		for program in ace-aggregate ace-step ace-recv; do
			ACE_ONLY=$program killed $k timeout "$HANG" ace-cloud run 2>>killed.err &&
			    break 2
			victims=$((victims + ($? == 4)))
		done
	done
	[ $victims -ge 15 ]
	cloud run
	ends edge1 edge2 cloud
	averaged edge1 60 2
	averaged edge2 60 2
}

@test "in a run: no second process in a folder, a device is added; TERM ends all" {
	cloud run --devices 1 --bits 8
	wait_for grep -q 'on each device' cloud.err
	refuses 5 "'$PWD/run' is in use by another process: wait for it, or end it" ace cloud run
	edge edge1 1 100000
	wait_for has edge1.got 3
	refuses 5 "'$PWD/ace-edge1' is in use" ace edge run --name edge1 -- true
	exits 5 ace edge run --name edge2 -- "$train" 3 1
	notes "'edge2' may take part in the run in $(hostname):$PWD/run" ace add run edge2
	grep -qx edge2 run/spool/devices
	# TERM, since background jobs ignore INT; both have the same handler
	xargs kill -TERM <pids
	wait
	rm pids
	run ! pgrep -f "$BATS_TEST_TMPDIR/[r]un"
	run ! pgrep -f "$BATS_TEST_TMPDIR/[a]ce-edge1"
}

@test "a name in use, a device too many, other bits, a folder of another kind: refused, with what to do" {
	cloud run --devices 1 --rounds 2
	edge edge1 1 2
	ends edge1
	exits 5 ace edge run --name edge1 --state elsewhere -- true
	says "the name 'edge1' is in use by another device of the run in $(hostname):$PWD/run: .*ace remove DIR edge1"
	exits 5 ace edge run --name edge2 -- true
	says "'edge2' is not a device of the run in .*, which is full .devices: 1.: .*ace add DIR edge2'"
	ends cloud
	refuses 5 '--bits 4 differs from .* began with 1.3' ace cloud run --bits 4
	exits 5 ace edge run --name edge2 --state run -- true
	says "/run' is the folder of a cloud or a relay: give another folder with --state"
	refuses 5 "/ace-edge1' is the folder of a device or a relay: give another" ace cloud ace-edge1 --devices 1
	exits 5 ace add ace-edge1 edge2
	exits 5 ace relay run ace-edge1 --name edge1 --devices 1
	refuses 5 "/run' is the folder of a cloud: give another folder$" ace relay run run --name r --devices 1
	ace cloud many --devices 2 --print >out
	seq 10 17 | xargs -P 8 -I{} sh -c 'ace-cloud serve many d{} hello $(printf %032d {}) || :' >out 2>&1
	[ "$(ls many/devices | wc -l)" -eq 2 ]
	exits 124 flock run/devices-lock timeout 0.5 ace add run d9
	[ ! -e run/devices/d9 ]
	exits 124 flock run/devices-lock timeout 0.5 ace cloud run
	[ ! -s err ]
	rm -rf run
	cloud run --devices 1
	exits 5 ace edge run --name edge1 -- true
	says "'$PWD/ace-edge1' belongs to run [0-9a-f]{8}, but .*/run' has run [0-9a-f]{8}: .*another folder"
	[ ! -e run/devices/edge1 ]	# it takes no place
}

@test "devices removed before all are known: one only added, one not waited for" {
	cloud run --devices 3 --bits 8
	edge edge1 1 2
	wait_for test -e run/spool/0/edge1.aceg
	exits 0 ace add run edge2
	exits 0 ace remove run edge2
	[ ! -e run/devices/edge2 ]
	edge edge2 3 2
	wait_for test -e run/spool/0/edge2.aceg
	[ ! -e run/spool/devices ]
	exits 0 ace remove run edge1
	[ "$(cat run/spool/devices)" = edge2 ]
}

@test "rounds wait for all devices that were added or said hello, and name them; ace remove ends a wait" {
	mkdir -m 700 run
	exits 0 ace add run edge2
	cloud run --devices 3 --rounds 2 --bits 8
	edge edge1 1 2
	wait_for test -e run/spool/0/edge1.aceg
	edge edge2 3 2
	# the third is not known yet, so the number counts
	wait_for grep -q 'waiting for the cloud' edge2.err
	[ ! -e edge1.got ]
	# a file that is being written is not a device
	touch run/devices/edge1.new-abcdef
	for d in edge3 edge4; do exits 0 ace add run $d; done
	[ "$(sort run/spool/devices | xargs)" = 'edge1 edge2 edge3 edge4' ]
	edge edge3 5 2
	wait_for grep -q 'waiting for edge4' edge3.err
	exits 0 ace remove run edge4
	touch run/devices/edge4	# as an interrupted command leaves it
	exits 0 ace remove run edge4
	ends cloud edge1 edge2 edge3
	averaged edge1 2 3
	refuses 1 "'edge4' is not a device of the run" ace remove run edge4
}

@test "a device may be added while the first shard is received" {
	local n=0 between=0
	cloud run --devices 9 --bits 8
	exits 0 ace add run edge1
	head -c 4096 /dev/zero >values
	ace-import -f raw --name w --shape 1024 -k delta -d edge1 -r demo -s 0 values >first
	until killed $((n += 1)) ace-recv --spool run/spool --device edge1 first >receipts 2>err; do
		[ $n -lt 200 ]
		if [ ! -e run/spool/schema.aceg ]; then
			[ ! -d run/spool/device ] || between=$((between + 1))
			exits 0 ace add run new$n
		fi
		rm -rf run/spool/{[0-9]*,device*,schema.aceg}
	done
	[ $between -gt 5 ]
	exits 0 ace add run new
	grep -qx new run/spool/devices
}

@test "ace add prints a line for authorized_keys that restricts the key to one device" {
	cloud run --devices 1
	echo 'ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIB me@edge1' >key.pub
	exits 0 ace add run edge1 key.pub
	[ "$(cat out)" = "restrict,command=\"ace-cloud serve '$PWD/run' edge1\" $(cat key.pub)" ]
	printf 'ssh-rsa AAAA\nssh-rsa BBBB\n' >1.pub
	printf 'ssh-rsa AAAA\rssh-rsa BBBB\n' >2.pub
	printf 'command="sh" ssh-rsa AAAA\n' >3.pub
	printf 'ssh-rsa AAAA "me"\n' >4.pub
	echo '-----BEGIN OPENSSH PRIVATE KEY-----' >5.pub
	for k in 1 2 3 4 5; do
		refuses 2 "'$k.pub' is not a public key" ace add run edge2 $k.pub
	done
	[ ! -e run/devices/edge2 ]
	for name in 'a b' '' '../x' '-oProxyCommand=x' 'a;b' '$(touch planted)' $'a\nb'; do
		exits 2 ace add run "$name" key.pub
		exits 2 ace remove run "$name"
		exits 2 ace edge run --name "$name" -- true
		exits 2 ace-cloud serve run "$name" sync
	done
	[ ! -e planted ]
}

@test "the forced command of a key permits hello and sync for its device alone" {
	local id=0123456789abcdef0123456789abcdef
	cloud run --devices 1 --rounds 7
	SSH_ORIGINAL_COMMAND="ace-cloud serve 'x' 'other' 'hello' '$id'" \
	    exits 0 ace-cloud serve run edge1
	[ "$(head -n 1 out)" = 'ace-cloud 1' ]
	grep -qx 'rounds 7' out
	[ "$(ls run/devices)" = edge1 ]
	SSH_ORIGINAL_COMMAND='touch planted' exits 2 ace-cloud serve run edge1
	SSH_ORIGINAL_COMMAND='hello $(touch planted)' exits 2 ace-cloud serve run edge1
	# without a name in the command, the first line of the input has the name
	for words in "edge1 hello $id" "edge1 sync"; do
		printf '%s\n' "$words" >in
		exits "$([[ $words = *sync ]] && echo 3 || echo 0)" ace-cloud serve run <in
	done
	says 'truncated'
	echo "edge2 hello $id" >in
	exits 5 ace-cloud serve run <in
	exits 0 ace-cloud serve run edge1 <in
	exits 2 ace-cloud serve run </dev/null
	exits 2 ace-cloud serve run ../edge1 hello $id
	exits 2 ace-cloud serve run edge1 hello ../../x
	[ ! -e planted ]
}

@test "a relay counts as its number of devices" {
	cloud run --devices 2 --rounds 2 --bits 16
	yes '# a long file of limits stays whole' | head -n 5000 >>run/spool/limits
	cp run/spool/limits was
	exits 0 ace add run gone --devices 3
	exits 0 ace remove run gone
	same run/spool/limits was
	exits 0 ace add run west --devices 2
	exits 0 ace add run west	# which does not change the number
	exits 0 ace relay run west --name west --devices 2 --print
	grep -q "^    ace-cloud serve run west sync [0-9a-f]* |$" out
	! grep -q mkfifo out || false
	begin ace relay run west --name west --devices 2 2>relay.err
	wait_for test -e west/run
	edge edge1 1 2
	for k in 2 3; do
		begin ace edge west --name edge$k -- "$train" 4 2 2>edge$k.err
		eval "pid_edge$k=$last"
	done
	for k in 1 2 3; do
		ends edge$k
		averaged edge$k 2 3
	done
	grep -q 'round 2/2: 3 devices' edge1.err
	exits 5 ace cloud west
}

@test "--events writes one line of JSON per event, with the members of the page's table" {
	cloud run --devices 1 --rounds 2 --events events
	edge edge1 1 2 --events mine
	ends edge1 cloud
	python3 - "$ROOT/man/ace-cloud.1" <<-'END'
	import json, re, sys
	rows = re.findall(r"^\.It (\w+) Ta [\w -]+ Ta ((?:\w+,\s)*\w+)$", open(sys.argv[1]).read(), re.M)
	page = {name: re.findall(r"\w+", members) for name, members in rows}
	for name, said, kinds in (("events", "cloud.err", ["closed", "sent"]),
	                          ("mine", "edge1.err", ["average", "receipt", "sent"])):
	    all = list(map(json.loads, open(name)))
	    for e in all:
	        assert list(e) == ["event", "program", "time", *page.get(e["event"], [])], e
	    for n in 1, 2:
	        begins, *rest = [e for e in all if e["round"] == n and e["event"] != "waits"]
	        names = [e["event"] for e in rest]
	        assert begins["event"] == "begins" and sorted(names) == sorted([*kinds, "ends"]), all
	        ends = rest[names.index("ends")]
	        assert (ends["participants"], ends["values"]) == (1, 4096), ends
	        # programs do not wait for each other's events: "sent" may come after "ends"
	        assert min(ends["computing"], ends["sending"], ends["waiting"]) >= 0, ends
	        assert (ends["bytes"] > 0) == (names.index("sent") < names.index("ends")), all
	        assert f": {ends['text']}\n" in open(said).read(), ends
	END
	refuses 2 'that descriptor is not open' ace-step --bits 2 --events 77 /dev/null
	exits 4 ace-step --bits 2 --events /none/there /dev/null
}

@test "watch: rounds from 1, missing devices, failures, from the events alone; names of 60 letters" {
	local a b name wide
	name=$(printf "n%.0s" {1..59})
	a=a$name b=b$name
	cloud run --devices 2 --rounds 3 --bits 8
	wait_for test -e run/events
	mv run/events away
	shows '^round 1/3: waiting for the devices for [0-9.]* s$' ace watch run
	mv away run/events
	edge $a 1 3
	edge $b 3 1
	ends $b
	wait_for grep -q 'waiting for b' cloud.err $a.err
	# a line in the log is not shown
	echo 'round 9/9: planted' | tee run/log >ace-$a/log
	echo '{"event":1,"text":"x"}' >>run/events
	exits 0 ace watch run
	[ "$(head -n 1 out)" = "run in $(hostname):$PWD/run: 2 devices, 8 bits per value" ]
	grep -qE "^round 2/3: waiting for $b for [0-9.]+ s$" out
	grep -qE "^    2 here  .* s $a$" out
	grep -qE "^    1 missing .* s $b$" out
	[ "$(tail -n 1 out)" = "$(sed -n 's/^ace-cloud: \(round 1.3: 2 of 2 devices, .*\)/\1/p' cloud.err)" ]
	exits 0 ace watch ace-$a
	grep -qE "^round 2/3: waiting for $b for [0-9.]+ s$" out
	grep -qE '^round 1/3: 2 of 2 devices, computing ' out
	! grep -E 'step|planted|ago' out || false
	# events that come after the average of their round
	grep -E '"event":"(sent|receipt)".*"round":1\b' ace-$a/events >early
	[ "$(grep -c '' early)" -ge 2 ]
	cat early >>ace-$a/events
	shows "^round 2/3: waiting for $b for [0-9.]* s$" ace watch ace-$a
	for wide in 80 120; do
		pty sh -c "stty cols $wide rows 4 <&1; exec timeout 1 ace watch run" >screen || [ $? -eq 124 ]
		sed 's/\x1b[^a-z]*[HJ]//g' screen | tr -d '\r' | awk -v w=$wide 'length > w { exit 1 }
		    /^round 2.3: waiting for bn+ for [0-9.]+ s$/ { n++ } /^and/ { exit 1 } END { exit !n }'
	done
	edge $b 3 3
	ends $a $b cloud
	exits 0 ace watch run
	[ "$(sed -n 2p out)" = 'done: 3 rounds' ]
}

@test "a device says that the run had ended before, or that its trainer ended early" {
	cloud run --devices 1 --rounds 2 --bits 8
	edge edge1 1 2
	ends edge1 cloud
	exits 0 ace edge run --name edge1 -- "$train" 1 2
	says '^ace-edge: done: the run has ended already, after 2 rounds$'
	cloud other --devices 1 --bits 8
	exits 1 ace edge other --name edge2 -- false
	shows '^failed: .false. ended with status 1 in round 1: ' ace watch ace-edge2
	grep -q '^round 1: ace edge does not run in this folder: type its command again$' out
	exits 0 ace edge other --name edge2 -- "$train" 1 0
	says '^ace-edge: done: 0 rounds: the training program ended before a new average came$'
}

@test "invalid arguments are refused, and no run is begun" {
	exits 4 ace cloud /dev/null --devices 1
	says "^ace-cloud: folder '$(hostname):/dev/null' cannot be made or opened: Not a directory: check its parent, or"
	exits 4 ace cloud none/run --devices 1
	mkdir -m 700 empty full
	: >full/file
	for call in 'cloud run' 'cloud empty' 'watch run' 'watch empty' 'add full edge1' 'add run e' 'edge empty'; do
		refuses 2 '--devices N' ace $call
		[ "$(ls -d run empty/* full/* 2>/dev/null)" = full/file ]
	done
	exits 2 ace edge none --events ev --name edge1 -- true
	grep -q '"event":"fails","program":"ace-edge",.*"round":1,' ev
	refuses 2 '--output: the path is empty' ace-import -o '' full/file
	for call in cloud edge 'cloud run --devices 2 --quorum 3' 'cloud run --devices 2 --tolerate 1' \
	    'cloud run --devices 2 --deadline 3s' 'cloud run --devices 2 --quorum 1 --deadline 0s' \
	    'edge run --name a/b -- true' 'edge run --name a.new-b -- true' 'relay none run --name west' \
	    'relay run west --devices 2' 'edge none --name edge1 -- true'; do
		exits 2 ace $call
		[ ! -e run ]
	done
	refuses 2 "the command's name is empty" ace edge none --name edge1 -- ''
}

@test "the EXAMPLES of ace-operations(7) and ace-transports(7) run as printed" {
	for page in operations transports; do
		examples "$ROOT/man/ace-$page.7" |
		    sed "s|/usr/local/share/ace/hosts|'$ROOT/examples/hosts'|"
	done >pages.sh
	command -v openssl >/dev/null || sed -i '/^tls-keys/d' pages.sh
	shows 'ace-recv --spool .*/run/spool --publish' bash -euo pipefail pages.sh
	[ -e run/devices/edge3 ]
}
