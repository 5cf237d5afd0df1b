# Devices of examples/pytorch/ace_shards that come late, wait, or are stopped and continue.
# bats file_tags=long,plain
load helper
patient
load pytorch

# tells FILE REGEX: check that a line of FILE, a trainer's output, matches
tells() {
	grep -qE -e "$2" "$1" && return
	echo "no line like '$2' in $1:"
	head -c 2000 "$1"
	return 1
}

# gone_by DEVICE FIRST LAST NEXT: check that DEVICE missed FIRST to LAST and continues at NEXT
gone_by() {
	says "^ace: $1: rounds $2 to $3 passed without this device: continuing at round $4 with the model of the others\$"
}

@test "a late device without a checkpoint begins with the model of the others" {
	for WAY in Local Replay; do
		export WAY
		mkdir $WAY
		cd $WAY
		cloud 3 12 '--bits 8' 3>&- &
		train edge1 12 code='-c q8' >said1 3>&- &
		train edge2 12 code='-c q8' >said2 3>&- &
		exits 137 "$PYTHON" "$TRAINERS/train.py" edge3 12 code='-c q8' die=_round:9
		exits 0 train edge4 12 code='-c q8'
		gone_by edge4 1 8 9
		wait
		# edge4 has the same bits as the others from its first round on
		same edge1.log edge2.log
		sed -n '9,12p' edge1.log | diff - edge4.log
		cd ..
	done
}

@test "a device that returns during or after a run gets the weights and moments of the others" {
	for WAY in Local Replay; do
		export WAY
		mkdir $WAY
		cd $WAY
		# two of the three devices are enough to close a round
		cloud 3 10 '--bits 12' --quorum 2 --deadline 0.5s 3>&- &
		train edge1 10 >said1 3>&- 2>err1 &
		train edge2 10 >said2 3>&- 2>err2 &
		exits 137 "$PYTHON" "$TRAINERS/train.py" edge3 10 die=sync:3
		wait_for eval 'test -e spool/6/aggregate.aceg'
		exits 0 train edge3 10
		wait
		gone_by edge3 '[34]' '[0-9]*' '([89]|1[01])'
		exits 0 train edge4 10
		gone_by edge4 1 10 11
		for device in edge2 edge3 edge4; do
			py - edge1.pt $device.pt <<-'P'
			from common import *

			a, b = map(ace.load, sys.argv[1:])
			assert a["round"] == b["round"] == 10 and a["digest"] == b["digest"]
			states = [c["optimizer"]["state"] if WAY is ace.Replay else c["memory"]
			          for c in (a, b)]
			for x, y in zip(*states):
			    x, y = ([m[k] for k in sorted(m)] if isinstance(m, dict) else [m]
			            for m in (x, y))
			    assert x[0].any() and all(map(torch.equal, x, y))
			P
		done
		cd ..
	done
	# a device with another learning rate gets another model
	sed 's/1e-2 \* min/2e-2 * min/' "$TRAINERS/common.py" >common.py
	cp "$TRAINERS/train.py" .
	cp -r Replay/spool .
	exits 1 py train.py edge5 10
	says 'ace_shards.Error: mismatch: in round 2 this device has model [0-9a-f]{8}, but the others have [0-9a-f]{8}, so the average was not applied: weights, optimiser states, options or arithmetic differ'
}

@test "an answer with missed rounds that is truncated: the complete rounds are applied" {
	cloud 1 6 3>&- &
	train edge1 6 >said1
	wait
	cat >cut.py <<-'E'
	from common import *

	body, calls, what = ace.Pipe.body, [], [ace.Error("cut off", 4)]

	def cut(*args):
	    calls.append(1)
	    if len(calls) == 4:
	        raise what[0]
	    return body(*args)

	def common(local):
	    return all(torch.equal(p.float(), s)
	               for (_, p), s in zip(local.pairs, local.start))

	ace.Pipe.body = cut
	opts = dict(outer_rate=0.7, outer_momentum=0.5, patience=30)
	# the first connection is cut off, and the second one brings the rest
	torch.manual_seed(1)
	local = ace.Local(mlp(), None, through("edge2"), "edge2", **opts)
	assert local.round == 6 and common(local), local.round
	print("digest", local.digest())
	local.close()
	# the first connection is cut off after all rounds
	ask, asked = ace.Local._hear, []

	def late(*args):
	    ask(*args)
	    asked.append(1)
	    if len(asked) == 1:
	        raise ace.Error("cut off", 4)

	ace.Pipe.body, ace.Local._hear = body, late
	torch.manual_seed(1)
	local = ace.Local(mlp(), None, through("edge3"), "edge3", **opts)
	assert local.round == 6 and common(local), local.round
	local.close()
	# the same with Ctrl-C
	ace.Pipe.body, ace.Local._hear = cut, ask
	transport.connection_of, asks = lambda stages: [], transport.connection_of
	torch.manual_seed(1)
	local = ace.Local(mlp(), None, through("edge4"), "edge4", **opts)
	transport.connection_of = asks
	local.way = ace.Way.through(through("edge4"))
	local.call["way"] = local.way
	calls.clear()
	what[0] = KeyboardInterrupt()
	try:
	    local._catch_up()
	except KeyboardInterrupt:
	    pass
	assert local.round == 3 and common(local), local.round
	assert local.pipe is None
	local._catch_up()
	assert local.round == 6 and common(local), local.round
	print("digest", local.digest())
	E
	exits 0 py cut.py
	[ "$(grep -c "^digest $(cut -d' ' -f3 said1)\$" out)" -eq 2 ]
}

@test "a device that signs its shards also signs its question" {
	cloud 1 2 3>&- &
	train edge1 2 >said1
	wait
	(umask 077 && openssl genpkey -algorithm ed25519 -out edge2.pem)
	echo "edge2 $(openssl pkey -in edge2.pem -pubout -outform DER | base64)" >ring
	printf '#!/bin/sh\nace-sign --check ring | %s\n' \
	    'ace-recv --spool spool --reply aggregate --sync none' >far.sh
	chmod +x far.sh
	exits 0 train edge2 2 through='ace-compress -S edge2 -c f32 --window 1 |
	    ace-sign -k edge2.pem | ./far.sh | ace-ack -S edge2 | ace-expand'
	says '^ace: edge2: rounds 1 to 2 passed without this device'
	[ "$(cut -d' ' -f2- out)" = "$(cut -d' ' -f2- said1)" ]
}

@test "a message says once that a round was closed without the device" {
	cloud 2 5 '--bits 6' --quorum 1 --deadline 0.1s 3>&- &
	cat >slow.py <<-'E'
	from common import *
	import time

	device, waits, makes = sys.argv[1:]
	model = mlp()
	local = ace.Local(model, None, through(device), device)
	while local.round < 5:
	    if local.round == 1:        # edge2 waits until edge1 has closed the round
	        if device == "edge2":
	            open(makes, "w").close()
	        while not os.path.exists(waits):
	            time.sleep(0.05)
	    with torch.no_grad():
	        model[0].weight.add_(0.1)
	    local.sync()
	    open(makes, "w").close() if local.round == 2 else None
	local.close()
	E
	py slow.py edge1 slow over 3>&- 2>err1 &
	exits 0 py slow.py edge2 over slow
	wait
	[ "$(grep -c "^ace: edge2: the average of round 2 is without this device's shard: the update is kept for a later round, if any$" err)" -eq 1 ]
	# edge1 has no such message; edge2, if slow, may have one for other rounds, too
	! grep 'edge1: the average of round 2 is without' err1 || false
}

@test "while it waits, it names the missing devices" {
	cloud 2 3 3>&- &
	train edge2 1 >said2 3>&- &
	train edge1 1 >said1
	wait %train 2>/dev/null || true
	"$PYTHON" "$TRAINERS/train.py" edge1 3 >said1 2>err1 3>&- &
	pid=$!
	wait_for tells err1 '^ace: edge1: round 2: waiting for round 2: there are shards: edge1; missing: edge2 \(since [0-9:]{8}\)$'
	train edge2 3 >said2
	wait $pid
	[ "$(cut -d' ' -f2- said1)" = "$(cut -d' ' -f2- said2)" ]
	wait
	# the cloud has ended after its last round
	"$PYTHON" "$TRAINERS/train.py" edge1 4 timeout=30 >said1 2>err1 3>&- &
	wait_for tells err1 'edge1: round 4: waiting for .*: there are shards: edge1; missing: edge2'
	kill -9 $!
}

@test "timeout: a message, status 4, and the same command continues" {
	undisturbed 3
	cloud 2 3 3>&- &
	exits 1 train edge1 3 timeout=14
	says 'ace_shards.Error: round 1 took more than 14 s: waiting for round 1'
	says 'edge1: round 1: waiting for .*: there are shards: edge1'
	# the same command again; nothing is lost
	both 3
	unharmed
}

@test "Ctrl-C to all processes or to the trainer alone: the same command continues" {
	undisturbed 6
	cloud 2 6 3>&- &
	for whom in - '' - ''; do	# `-' sends it to the process group, '' to the trainer
		# background jobs of a shell ignore INT
		setsid perl -e '$SIG{INT} = "DEFAULT"; exec @ARGV' "$PYTHON" \
		    "$TRAINERS/train.py" edge1 6 >said1 2>err 3>&- &
		pid=$!
		wait_for eval 'test -e spool/0/edge1.aceg'
		wait_for eval 'pgrep -P $pid -x ace-export'
		kill -INT -- "$whom$pid"
		status=0
		wait $pid || status=$?
		[ "$status" -eq 130 ]
		tells err '^KeyboardInterrupt'
	done
	both 6
	unharmed
}

@test "a message at least every ten seconds, in steps, waits and transfers" {
	py - 2>err <<-'E'
	from common import *
	import types

	m = mlp()
	local = ace.Local(m, torch.optim.SGD(m.parameters(), lr=.1), "cat", "edge1")
	now, words = [0.0], lambda _: "12:00:00"
	transport.time = types.SimpleNamespace(monotonic=lambda: now[0], strftime=words)
	local.wait.begin(0, "ssh")
	for tick in range(1, 901):      # one look at the pipe every 0.2 s
	    now[0] = tick / 5
	    local.step() if tick <= 300 else local.wait.look(tick <= 600)
	local.wait.quiet = True         # as under ace-edge, which prints its own lines
	now[0] += 10
	local.wait.look(True)

	# before each operation of Wait.begin, another thread notes an event of a round
	wait, came = transport.Wait("edge1"), []

	def other(frame, event, _):
	    frame.f_trace_opcodes = True
	    came.append(1)
	    assert wait.heard('{"event":"ends","round":%d}' % (1 + len(came)))
	    return other
	sys.settrace(other)
	wait.begin(1)
	sys.settrace(None)
	assert len(wait.facts) == len(came) > 9, (wait.facts, len(came))
	assert not wait.heard('{"event":"sent","rou')   # a connection broke
	E
	for what in 'steps so far: [0-9]+' "no answer since 12:00:00 from 'ssh'.*" 'receiving the average'; do
		[ "$(grep -cE "^ace: edge1: round 1: $what\$" err)" -eq 6 ]
	done
}
