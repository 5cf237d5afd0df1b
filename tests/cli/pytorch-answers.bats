# examples/pytorch/ace_shards: answers that are not the expected average; and the model as
# other threads see it while sync() waits.
# bats file_tags=long,plain
load helper
patient
load pytorch

# hostile: make a cloud that answers round N with the output of script go.N
hostile() {
	cat >cloud.sh <<-'E'
	#!/bin/sh
	exec 3<&0
	cat <&3 >/dev/null &
	for n in 0 1 2 3; do
		until [ -e go.$n ]; do
			kill -0 $! || exit 0    # the input has ended
			sleep 0.05
		done
		. ./go.$n || exit
	done
	wait
	E
	chmod +x cloud.sh
	cat >answers.py <<-'E'
	"""Make the answers of a hostile cloud."""
	import glob
	import shlex
	from common import *
	from ace_shards.transport import Pipe

	made = []       # (N, text of go.N), written after the device has sent its next round

	def send(pipe, *parts, real=Pipe.send):
	    real(pipe, *parts)
	    while made:
	        n, text = made.pop(0)
	        with open("new", "w") as f:
	            f.write(text)
	        os.rename("new", f"go.{n}")

	Pipe.send = send

	def said(local, n, tensors, kind="mean", step=None, run=None, times=1, bad=None,
	         then=""):
	    """Let the n-th answer be these tensors, with this run, kind and step; with
	    bad, nan or inf, such values instead."""
	    step, run = n if step is None else step, run or local.call["run"]
	    with open(f"values.{n}", "wb") as f:
	        f.write(ace.header(tensors))
	        for _, t in tensors:
	            f.write(t.detach().clone().view(torch.uint8).numpy().tobytes())
	    sent = {"mean": "delta", "sum": "delta"}.get(kind, kind)
	    after = {"mean": "| ace-aggregate", "sum": "| ace-aggregate --rule sum"}.get(kind, "")
	    shapes = " ".join(f"-t {n}:{','.join(map(str, t.shape))}" for n, t in tensors)
	    lines = [(f"mkshards -k {bad} -H kind=3 -r {run} -s {step} {shapes}" if bad else
	              f"ace-import --many -k {sent} -d edge1 -r {run} -s {step} "
	              f"<values.{n} {after}") + f" {then}\n" for _ in range(times)]
	    made.append((n, "".join(lines)))

	def values(model):
	    return [(n, torch.full(p.shape, 0.001)) for n, p in model.named_parameters()]

	def one(tensors, x):
	    dict(tensors)["2.bias"][3] = x
	    return tensors

	def bits(model):
	    return [p.detach().clone() for p in model.parameters()]

	def same(model, had):
	    return all(torch.equal(a, b) for a, b in zip(model.parameters(), had))

	def begin():
	    made.clear()
	    for f in glob.glob("go.*"):
	        os.remove(f)
	    torch.manual_seed(1)
	    return mlp()
	E
}

@test "an unexpected answer is refused, and nothing is applied or saved" {
	hostile
	cat >cases.py <<-'E'
	from answers import *

	def local(m, end):
	    return ace.Local(m, None, "ace-compress -c f32 | ./cloud.sh" + end, "edge1",
	                     checkpoint="edge1.pt")

	def case(why, change=lambda v: v, status=3, end=" | ace-expand", **how):
	    for f in glob.glob("edge1.pt*"):
	        os.remove(f)
	    m = begin()
	    l = local(m, end)
	    said(l, 0, values(m))
	    l.sync()
	    kept, model, digest = open("edge1.pt", "rb").read(), bits(m), l.digest()
	    with torch.no_grad():
	        m[0].weight.add_(0.5)
	    said(l, 1, change(values(m)), **how)
	    with fails(why, status) as f:
	        l.sync()
	        l.sync()                        # gets the surplus answer
	    if how.get("times", 1) == 1:
	        assert open("edge1.pt", "rb").read() == kept, why
	        assert same(m, model) and l.digest() == digest and l.round == 1, why
	    print(f.error)
	    return l

	case("round 2: the answer is of round 3, expected round 2: nothing more was applied", step=2)
	case("the answer is of round 1, expected round 2", step=0)
	case("the answer is of round 18446744073709551616, expected round 2", step=2 ** 64 - 1)
	case("the answer is of run 'other', expected 'train-", run="other")
	for kind in "gradient", "model", "sum":
	    case(f"the answer is of kind '{kind}', expected 'mean'", kind=kind)
	for bad in "nan", "inf":
	    # the same under a shell, which reports a broken pipe as status 141
	    for end in " | ace-expand", " | sh -c 'cat; exit 141' | ace-expand":
	        case(f"ace-expand: non-finite value in tensor '0.weight' at index 3: {bad}, shard ",
	             bad=bad, end=end)
	for x in 1e38, -1e19:
	    case(f"ace-expand: limit: {x:g} in tensor '2.bias' at index 3 is above 1e+18 in magnitude, ",
	         lambda v: one(v, x))
	case("the answer does not fit the model: '2.bias' is absent, expected {'dtype'",
	     lambda v: v[:-1])
	case("does not fit the model: 'more' is {'dtype': 'F32'",
	     lambda v: [*v, ("more", torch.ones(2))])
	case("does not fit the model: '0.weight' is {'dtype': 'F32', 'shape': [20, 30]",
	     lambda v: [(v[0][0], v[0][1].t().contiguous()), *v[1:]])
	case("does not fit the model: '0.weight' is {'dtype': 'F16'",
	     lambda v: [(n, t.half()) for n, t in v])
	case("ace-expand: truncated: ", then="| head -c 1500; exit")
	# two answers to one round
	case("the answer ", times=2)
	E
	py cases.py >said
	[ "$(wc -l <said)" -ge 19 ]
	[ "$(grep -c 'check the cloud and which users can write to its spool' said)" -eq 18 ]
}

@test "Replay and Gradients refuse an unexpected answer, too" {
	hostile
	cat >others.py <<-'E'
	from answers import *

	for way in ace.Replay, ace.Gradients:
	    m = begin()
	    r = way(m, torch.optim.Adam(m.parameters(), lr=1e-2),
	            "ace-compress -c f32 | ./cloud.sh | ace-expand", "edge1", every=1)
	    model, digest = bits(m), r.digest()
	    loss(m, "edge1", 0).backward()
	    had = [p.grad.clone() for p in m.parameters()]
	    said(r, 0, values(m)[:-1])
	    with fails("the answer does not fit the model: '2.bias' is absent", 3):
	        r.step()
	    assert same(m, model) and r.digest() == digest and r.round == 0, way
	    if way is ace.Replay:
	        assert not any(r.kept["state"])
	    else:
	        assert all(torch.equal(p.grad, x) for p, x in zip(m.parameters(), had))
	# the weights lack the step of the last round, so no checkpoint has its number
	g = ace.Gradients(mlp(), None, "cat", "edge1", checkpoint="g.pt")
	g.sync()
	g.close()
	assert not os.path.exists("g.pt")
	E
	py others.py
}

@test "missed rounds in an answer must be few, in order, and of this run" {
	hostile
	cat >missed.py <<-'E'
	from answers import *

	def asks(why, *answers, rounds=0):
	    """Check that these answers are refused: pairs of tensors and options of said."""
	    m = begin()
	    before = bits(m)
	    probe = ace.Local(m, None, "cat", "edge1", run="demo")
	    for n, (tensors, how) in enumerate(answers):
	        said(probe, n, tensors(m), **how)
	    made.append((len(answers), "exec >&-\n"))
	    probe.close()
	    torch.manual_seed(1)
	    m = mlp()
	    with fails(why, 3):
	        ace.Local(m, None, "ace-compress -S s -c f32 | ./cloud.sh | ace-ack -S s | "
	                  "ace-expand", "edge1", run="demo", checkpoint="m.pt")
	    assert not os.path.exists("m.pt")
	    assert rounds or same(m, before), why

	none, good = (lambda m: []), values
	last = "expected a round from 1 to 17"
	for at in 2 ** 64 - 1, 2 ** 63, 1000, 17:
	    asks(f"says to begin at round {at + 1}, {last}", (none, {"kind": "model", "step": at}))
	asks("the answer says to begin at round 1, expected a round from 2 to", (good, {}),
	     (none, {"kind": "model", "step": 0}), rounds=1)
	asks("the answer is of round 1, expected a round from 2 to", (good, {}),
	     (good, {"step": 0}), rounds=1)
	asks(f"the answer is of round 100, {last}", (good, {"step": 99}))
	asks("the answer is of run 'x', expected 'demo-", (good, {"run": "x"}))
	asks("the answer is of kind 'delta', expected 'mean'", (good, {"kind": "delta"}))
	asks("the answer is of kind 'delta', expected 'model'", (none, {"kind": "delta"}))
	asks("ace-expand: non-finite value in tensor '0.weight'", (good, {"bad": "nan"}))
	asks("the answer has bytes left over, expected no more bytes", (none, {"kind": "model", "step": 0}),
	     (none, {"kind": "model", "step": 0}))
	E
	py missed.py
}

@test "timeout ends a round although the cloud sends without end" {
	hostile
	cat >ends.py <<-'E'
	from answers import *

	def local(m):
	    return ace.Local(m, None, "ace-compress -c f32 | ./cloud.sh | ace-expand",
	                     "edge1", checkpoint="edge1.pt", timeout=3)

	# the average of an earlier round, which may be repeated, comes again and again
	m = begin()
	l = local(m)
	said(l, 0, values(m))
	l.sync()
	l.close()
	m = begin()
	l = local(m)
	model = bits(m)
	said(l, 1, values(m), step=0)
	made.append((0, "while " + made.pop()[1] + "do :; done\n"))
	with fails("round 2 took more than 3 s", 4):
	    l.sync()
	assert same(m, model) and l.round == 1

	# a connection that ends between two rounds failed: no bytes are left over
	for path in glob.glob("go.*") + glob.glob("edge1.pt*"):
	    os.unlink(path)
	m = begin()
	l = local(m)
	said(l, 0, values(m))
	made.append((1, "exit 4\n"))
	l.sync()
	while not l.pipe.poll.poll(100):
	    pass
	with fails("", 4):
	    l.sync()
	assert l.round == 1
	E
	py ends.py
}

@test "while sync() waits, other threads see the model's weights" {
	cat >looks.py <<-'E'
	from common import *
	import threading
	import time

	m = mlp()
	o = torch.optim.SGD(m.parameters(), lr=0.1)
	before = [p.detach().clone() for p in m.parameters()]
	ours = WAY(m, o, through("edge1"), "edge1", **{"every": 1} if WAY is ace.Replay else {})
	loss(m, "edge1", 0).backward()
	if WAY is ace.Local:
	    o.step()
	stepped = [p.detach().clone() for p in m.parameters()]
	seen = []

	def look():
	    """Look from before the shard is sent until the average is applied."""
	    end = time.monotonic() + 600
	    while not os.path.exists("sent") and time.monotonic() < end:
	        seen.append([p.detach().clone() for p in m.parameters()])
	        time.sleep(0.001)
	    n = len(seen)
	    while len(seen) < n + 50:
	        seen.append([p.detach().clone() for p in m.parameters()])
	        time.sleep(0.001)
	    open("seen", "w").close()

	thread = threading.Thread(target=look)
	thread.start()
	ours.step() if WAY is ace.Replay else ours.sync()
	thread.join()
	for was in seen:
	    for t, a, b in zip(was, before, stepped):
	        # a tensor may be half restored
	        assert ((t == a) | (t == b)).all(), t
	for t, b in zip(seen[-1], before if WAY is ace.Replay else stepped):
	    assert torch.equal(t, b)
	ours.close()
	E
	for WAY in Local Replay Gradients; do
		export WAY
		rm -rf spool edge1 cloud sent seen
		py looks.py 3>&- &
		wait_for eval 'ls spool/0/edge1.aceg'
		touch sent
		wait_for eval 'test -e seen'
		cloud 1 1 3>&- &
		wait
		[ -s "$(ls spool/0/aggregate.aceg)" ]
	done
}
