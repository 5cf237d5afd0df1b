# Devices of examples/pytorch/ace_shards that come late, wait, are stopped and go
# on; and the line of their cloud, typed again.
# bats file_tags=long,plain
load helper
patient
load hosts
load pytorch

# tells FILE REGEX: a line of what a trainer said
tells() {
	grep -qE -e "$2" "$1" && return
	echo "no line like '$2' in $1:"
	head -c 2000 "$1"
	return 1
}

@test "who comes late without a checkpoint begins with the model of the others" {
	cat >late.py <<-'E'
	from common import *

	device, rounds, die = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
	code = "--bits 6"
	model = mlp()
	inner = torch.optim.AdamW(model.parameters(), lr=1e-2)
	local = ace.Local(model, inner, through(device).replace(
	    "ace-compress", "ace-step").replace("-c f32", code), device,
	    outer_rate=0.7, outer_momentum=0.5)
	said = [local.round]
	while local.round < rounds:
	    if local.round == die:
	        os._exit(9)
	    for i in range(3):
	        inner.zero_grad()
	        loss(model, "edge3" if device == "edge4" else device,
	             3 * local.round + i).backward()
	        inner.step()
	    local.sync()
	    norm = sum(s.double().square().sum().item() for s in local.start) ** .5
	    x, y = zip(*(batch("test", k, 64) for k in range(8)))
	    right = (model(torch.cat(x)).argmax(1) == torch.cat(y)).double().mean()
	    print(local.round, local.digest(), norm, right.item(), flush=True)
	local.close()
	print("began", said[0])
	E
	cloud 3 60 '--bits 8' 3>&- &
	py late.py edge1 60 -1 >one 3>&- 2>err1 &
	py late.py edge2 60 -1 >two 3>&- 2>err2 &
	exits 9 py late.py edge3 60 40
	exits 0 py late.py edge4 60 -1
	says '^ace: edge4: rounds 0 to 39 went by without this device: it goes on at round 40, with the model of the others$'
	wait
	# the same bits from its first round on, which was the next one of the others
	grep -qx 'began 40' out
	[ "$(wc -l <out)" -eq 21 ]
	sed -n '41,60p' one | diff - <(head -n 20 out)
	diff <(head -n 60 one) <(head -n 60 two)
	# and no harm: from one round to the next the norm grows by no more after it
	# came than in the ten before, and as many are right
	awk 'NR > 30 && NR <= 60 { step = $3 - norm; if (step < 0) step = -step
		if (NR <= 40 && step > before) before = step
		if (NR > 40 && step > after) after = step
		if (NR <= 40) were += $4 / 10; else are += $4 / 20 }
	    { norm = $3 }
	    END { print "# norm of a step:", before, after, "right:", were, are
		exit !(before > 0 && after < 1.5 * before && are > were - 0.01) }' \
	    one >&3
}

@test "who comes back to a run that went on: what it missed, and its own residual" {
	# rounds are closed by two of the three
	cloud 3 12 '--bits 6' --quorum 2 --deadline 0.5s 3>&- &
	train edge1 12 >said1 3>&- 2>err1 &
	train edge2 12 >said2 3>&- 2>err2 &
	exits 137 "$PYTHON" "$BATS_FILE_TMPDIR/train.py" edge3 12 die=sync:3
	wait_for eval 'test -e spool/train-*/6/aggregate.aceg'
	exits 0 train edge3 12
	wait
	says '^ace: edge3: rounds [0-9]+ to [0-9]* went by without this device: it goes on at round [0-9]+, '
	[ "$(cut -d' ' -f2- said1)" = "$(cut -d' ' -f2- out)" ]
	[ "$(cut -d' ' -f2- said1)" = "$(cut -d' ' -f2- said2)" ]
}

@test "an answer cut off in the middle: the model is that of the rounds heard of" {
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
	# all of it comes, on two connections
	torch.manual_seed(1)
	local = ace.Local(mlp(), None, through("edge2"), "edge2", **opts)
	assert local.round == 6 and common(local), local.round
	print("digest", local.digest())
	local.close()
	# nothing but the end comes on the second one
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
	# and Ctrl-C
	ace.Pipe.body, ace.Local._hear = cut, ask
	ace.connection_of, asks = lambda stages: [], ace.connection_of
	torch.manual_seed(1)
	local = ace.Local(mlp(), None, through("edge4"), "edge4", **opts)
	ace.connection_of = asks
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

@test "who does not ask is refused, and its late shards go nowhere" {
	cloud 1 6 3>&- &
	train edge1 6 >said1
	wait
	cat >deaf.py <<-'E'
	from common import *

	# a pipeline of a kind that cannot be asked through
	ace.connection_of = lambda stages: []
	model = mlp()
	local = ace.Local(model, None, through("edge2"), "edge2", outer_rate=0.7,
	                  outer_momentum=0.5)
	with torch.no_grad():
	    model[0].weight.add_(1)
	local.sync()
	E
	exits 1 py deaf.py
	says 'Error: ace-ack: step 0: invalid: this device is new here, and step 6 is the next: it has to ask for what the others know'
	[ -z "$(ls spool/train-*/*/edge2.aceg 2>/dev/null)" ]
}

@test "who signs asks too, through the cloud's check" {
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
	says '^ace: edge2: rounds 0 to 1 went by without this device'
	[ "$(cut -d' ' -f2- out)" = "$(cut -d' ' -f2- said1)" ]
}

@test "a round closed without the device is said, once" {
	cloud 2 5 '--bits 6' --quorum 1 --deadline 0.1s 3>&- &
	cat >slow.py <<-'E'
	from common import *
	import time

	model = mlp()
	local = ace.Local(model, None, through("edge2"), "edge2")
	while local.round < 5:
	    with torch.no_grad():
	        model[0].weight.add_(0.1)
	    if local.round == 1:        # until the others have closed it
	        open("slow", "w").close()
	        while not os.path.exists("over"):
	            time.sleep(0.05)
	    local.sync()
	local.close()
	E
	cat >fast.py <<-'E'
	from common import *
	import time

	local = ace.Local(mlp(), None, through("edge1"), "edge1")
	local.sync()
	while not os.path.exists("slow"):
	    time.sleep(0.05)
	local.sync()
	open("over", "w").close()
	while local.round < 5:
	    local.sync()
	local.close()
	E
	py fast.py 3>&- 2>err1 &
	exits 0 py slow.py
	wait
	[ "$(grep -c "^ace: edge2: round 1 was closed before this device's part came: it is kept, and sent with a later round$" err)" -eq 1 ]
	# of later rounds that may be said to the other one, too, where it is slow
	! grep 'edge1: round 1 was closed' err1 || false
}

# waits_alone: edge1 waits, and says whom for; its process is in the file pid
waits_alone() {
	"$PYTHON" "$BATS_FILE_TMPDIR/train.py" edge1 3 >said1 2>err1 3>&- &
	echo $! >pid
}

@test "waiting is said: a peer that is dead, a cloud that does not run, no answer" {
	cloud 2 3 3>&- &
	train edge2 1 >said2 3>&- &
	train edge1 1 >said1
	wait %train 2>/dev/null || true
	waits_alone
	wait_for tells err1 '^ace: edge1: round 1: waiting since [0-9:]{8}: waiting for step 1 of run '.*': there are shards: edge1; missing: edge2 \(sent last [0-9]+ s ago\)$'
	[ "$(grep -c 'waiting since' err1)" -eq 1 ]
	train edge2 3 >said2
	wait "$(cat pid)"
	[ "$(cut -d' ' -f2- said1)" = "$(cut -d' ' -f2- said2)" ]
	wait
	# the cloud has ended with its last round
	"$PYTHON" "$BATS_FILE_TMPDIR/train.py" edge1 4 timeout=30 >said1 2>err1 3>&- &
	wait_for tells err1 'edge1: round 3: waiting since .*: there are shards: edge1; missing: edge2 .*; no ace-aggregate runs$'
	kill -9 $!
	# nothing comes back at all
	exits 1 train edge9 1 timeout=1 \
	    through='ace-compress -S edge9 -c f32 | sleep 100 | ace-ack -S edge9 | ace-expand'
	says "ace_shards.Error: round 0 took more than 1 s: no answer since .* from 'sleep 100': does the cloud run, and can it be reached\\?"
}

@test "timeout: what is known, status 4, and the state goes on" {
	undisturbed 3
	cloud 2 3 3>&- &
	cat >wait.py <<-'E'
	from common import *

	model = mlp()
	inner = torch.optim.AdamW(model.parameters(), lr=1e-2)
	local = ace.Local(model, inner, through("edge1"), "edge1",
	                  checkpoint="edge1.pt", outer_rate=0.7, outer_momentum=0.5,
	                  timeout=14)
	before = local.digest()
	for i in range(3):
	    inner.zero_grad()
	    loss(model, "edge1", i).backward()
	    inner.step()
	with fails("round 0 took more than 14 s: waiting since", 4):
	    local.sync()
	assert local.digest() == before and local.round == 0
	E
	exits 0 py wait.py
	says 'edge1: round 0: waiting since .*: there are shards: edge1'
	# the same command again, and nothing is lost
	goes_on 3
}

# stopped SIGNAL WHOM: edge1 in a group of its own gets it in the middle of a wait
stopped() {
	cat >group.py <<-'E'
	import os
	import signal
	import sys

	signal.signal(signal.SIGINT, signal.default_int_handler)
	os.setsid()
	os.execvp(sys.argv[1], sys.argv[1:])
	E
	"$PYTHON" group.py "$PYTHON" "$BATS_FILE_TMPDIR/train.py" edge1 6 \
	    >said1 2>err 3>&- &
	pid=$!
	wait_for eval 'test -e spool/train-*/0/edge1.aceg'
	wait_for eval 'pgrep -P $pid -x ace-export'
	case $2 in
	group) kill "-$1" -- "-$pid" ;;
	alone) kill "-$1" "$pid" ;;
	esac
	status=0
	wait $pid || status=$?
	[ "$status" -eq 130 ]
	tells err '^KeyboardInterrupt'
}

@test "Ctrl-C, to all of it or to the trainer alone: the same command goes on" {
	undisturbed 6
	cloud 2 6 3>&- &
	for whom in group alone group alone; do
		stopped INT $whom
	done
	goes_on 6
}

# line STEPS [PROGRAM N]: the cloud's line as it is typed, in a group of its own;
# that program of it is ended as by kill -9 at its N-th change
line() {
	local p
	for p in ace-aggregate ace-step ace-recv; do
		[ "$p" != "${2:-}" ] ||
		    set -- "$1" "$2" "$3" "env ACE_KILL=$3 LD_PRELOAD=$(preload)"
	done
	cat >line.sh <<-END
		$([ "${2:-}" != ace-aggregate ] || echo "${4:-}") timeout $HANG ace-aggregate \
		    --spool spool --create --devices 2 --rounds $1 --publish --sync none -q |
		    $([ "${2:-}" != ace-step ] || echo "${4:-}") timeout $HANG ace-step \
		    -S cloud --bits 6 --sync none |
		    $([ "${2:-}" != ace-recv ] || echo "${4:-}") timeout $HANG ace-recv \
		    --spool spool --publish --sync none
		echo "\${PIPESTATUS[*]}" >ended
	END
	rm -f ended
	exec perl -e '$SIG{INT} = "DEFAULT"; setpgrp; exec @ARGV' bash line.sh 2>>line.err
}

@test "the cloud's line typed again goes on, whatever was killed, and when" {
	local n p victims=0 rounds=60
	mkdir calm
	cd calm
	line $rounds 3>&- &
	train edge1 $rounds >said1 3>&- &
	train edge2 $rounds >said2
	wait
	[ "$(cat ended)" = '0 0 0' ]
	cd ..
	train edge1 $rounds >said1 3>&- &
	train edge2 $rounds >said2 3>&- &
	for n in 1 2 3 4 6 9 14 20; do
		for p in ace-aggregate ace-step ace-recv; do
			line $rounds $p $n 3>&- &
			wait $! || true
			[[ $(cat ended) != *137* ]] || victims=$((victims + 1))
		done
	done
	# what a person does: Ctrl-C in the middle of a round, and the line again
	for n in 1 2 3; do
		line $rounds 3>&- &
		pid=$!
		at=$(ls -d spool/*/[0-9]* | wc -l)
		further() { [ "$(ls -d spool/*/[0-9]* | wc -l)" -gt $((at + 2)) ] || [ -e ended ]; }
		wait_for further
		kill -INT -- -$pid 2>/dev/null || true
		wait $pid || true
	done
	line $rounds 3>&- &
	wait
	[ "$(cat ended)" = '0 0 0' ]
	echo "# killed $victims times" >&3
	[ $victims -ge 15 ]
	# the run has its rounds, no more and no fewer, and the same models
	[ "$(ls spool/*/*/aggregate.aceg | wc -l)" -eq $rounds ]
	unharmed
	# once more, when all is done, it ends at once
	line $rounds 3>&- &
	wait
	[ "$(cat ended)" = '0 0 0' ]
	[ "$(ls -d spool/*/[0-9]* | wc -l)" -eq $rounds ]
}
