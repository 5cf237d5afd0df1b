# ace.Replay of examples/pytorch/ace_shards: steps that are taken back, and the
# same ones taken by all.
# bats file_tags=plain
load helper
patient
load hosts
load pytorch

export WAY=Replay

@test "replay: the same weights and moments after each round, and what they are" {
	cloud 2 4 3>&- &
	train edge1 4 3>&- >said1 &
	train edge2 4 >said2
	wait
	[ "$(wc -l <edge1.log)" -eq 4 ]
	same edge1.log edge2.log
	[ "$(cut -d' ' -f2 edge1.log | sort -u | wc -l)" -eq 4 ]
	# each shard is a gradient, and says the model and moments that it began with
	for i in 1 2; do
		ace-inspect --format json spool/train-replay3-*/3/edge$i.aceg >listing
		grep -q '"kind":"gradient"' listing
		grep -q "\"model.digest\":\"$(sed -n 's/^3 //p' edge1.log)\"" listing
	done
	# the same in one process: steps that are taken back, and the mean of all
	py - >want <<-'P'
	import copy
	from common import *

	common = mlp()
	optimizer = torch.optim.AdamW(common.parameters(), lr=1e-2)

	def step(o, number):
	    warm(o, number)
	    o.step()

	for r in range(4):
	    sums = [torch.zeros_like(p) for p in common.parameters()]
	    for device in "edge1", "edge2":
	        ahead = copy.deepcopy(common)
	        o = torch.optim.AdamW(ahead.parameters(), lr=1e-2)
	        o.load_state_dict(copy.deepcopy(optimizer.state_dict()))
	        for i in range(3):
	            o.zero_grad()
	            loss(ahead, device, 3 * r + i).backward()
	            for s, p in zip(sums, ahead.parameters()):
	                s += p.grad / 3 / 2
	            step(o, 3 * r + i)
	    for i in range(3):
	        for s, p in zip(sums, common.parameters()):
	            p.grad = s.clone()
	        step(optimizer, 3 * r + i)
	had = ace.load("edge1.pt")
	close = lambda a, b: torch.allclose(a, b, rtol=1e-4, atol=1e-6)
	for p, s, m in zip(common.parameters(), had["start"], had["optimizer"]["state"]):
	    print(close(p, s), *(close(optimizer.state[p][k], m[k]) and m[k].any().item()
	                         for k in ("exp_avg", "exp_avg_sq")), int(m["step"]))
	P
	[ "$(sort want | uniq -c | tr -s ' ')" = ' 4 True True True 12' ]
}

# bats test_tags=long
@test "replay: killed anywhere, started again: as if nothing had happened" {
	undisturbed 10
	cloud 2 10 3>&- &
	train edge2 10 >said2 3>&- &
	# ahead, half sent, half read, in the middle of the steps of all, behind them, and
	# before the checkpoint
	for place in step:2 send:8 _fill:10 _take:10 _keep:3 _save:2; do
		exits 137 "$PYTHON" "$BATS_FILE_TMPDIR/train.py" edge1 10 die=$place
	done
	train edge1 10 >said1
	wait
	unharmed
}

# bats test_tags=long
@test "replay: who missed rounds and who comes late have the weights and moments of the others" {
	# rounds are closed by two of the three
	cloud 3 10 '--bits 12' --quorum 2 --deadline 0.5s 3>&- &
	train edge1 10 >said1 3>&- 2>err1 &
	train edge2 10 >said2 3>&- 2>err2 &
	exits 137 "$PYTHON" "$BATS_FILE_TMPDIR/train.py" edge3 10 die=sync:3
	wait_for eval 'test -e spool/train-*/6/aggregate.aceg'
	exits 0 train edge3 10
	wait
	says '^ace: edge3: rounds [23] to [0-9]* went by without this device: it goes on at round ([7-9]|10), '
	exits 0 train edge4 10
	says '^ace: edge4: rounds 0 to 9 went by without this device'
	for device in edge2 edge3 edge4; do
		py - edge1.pt $device.pt <<-'P'
		from common import *

		a, b = map(ace.load, sys.argv[1:])
		assert a["round"] == b["round"] == 10 and a["digest"] == b["digest"]
		for x, y in zip(a["optimizer"]["state"], b["optimizer"]["state"]):
		    assert x["exp_avg"].any() and list(x) == list(y)
		    assert all(torch.equal(x[k], y[k]) for k in x)
		P
	done
	# one whose rate is another cannot take the steps of the others
	sed 's/1e-2 \* min/2e-2 * min/' "$BATS_FILE_TMPDIR/common.py" >common.py
	cp "$BATS_FILE_TMPDIR/train.py" .
	exits 1 py train.py edge5 10
	says 'ace_shards.Error: mismatch: in round 1 this device has model [0-9a-f]{8}, and the others have [0-9a-f]{8}: weights, moments, rates or the arithmetic differ'
}

# bats test_tags=long
@test "replay: moments that differ, and another number of steps, are refused" {
	cat >moments.py <<-'P'
	from common import *

	device, wrong = sys.argv[1:]
	model = mlp()
	inner = torch.optim.AdamW(model.parameters(), lr=1e-2)
	replay = ace.Replay(model, inner, through(device), device, every=2,
	                    checkpoint=f"{device}.pt")
	while replay.round < 4:
	    if replay.round == int(wrong):
	        for m in replay.kept["state"]:
	            m["exp_avg"].mul_(1 + 2 ** -23)
	        replay.crc = None
	    for i in range(2):
	        inner.zero_grad()
	        loss(model, device, 2 * replay.round + i).backward()
	        replay.step()
	replay.close()
	print(replay.round, replay.digest())
	P
	cloud 3 4 3>&- &
	py moments.py edge1 -1 >one 3>&- &
	py moments.py edge2 -1 >two 3>&- &
	exits 1 py moments.py edge3 2
	says 'ace_shards.Error: mismatch: in round 2 this device has model [0-9a-f]{8}, and the others have [0-9a-f]{8}: weights, moments, .* It has to begin again after round 2 with theirs: give it the checkpoint of another device; see ace-pytorch'
	# what it says is enough: the others wait for it in round 3
	wait_for eval 'test -e spool/train-*/3/edge1.aceg'
	cp edge1.pt edge3.pt
	exits 0 py moments.py edge3 -1
	wait
	same one out
	same one two
	# another number of steps is of another run
	exits 1 train edge4 1 steps=3
	says "ace_shards.Error: ace-recv: mismatch: a shard of run 'train-replay3-[0-9a-f]{8}', and the spool is of run 'train-replay2-"
	says 'another model or type of parameters, mode, optimiser or number of steps'
}

@test "replay: two devices that differ are both told, with torch and settings, and go on" {
	cat >split.py <<-'P'
	from common import *

	class Other(torch.optim.AdamW):
	    """As a fused one: other roundings, the same name and numbers."""
	    def step(self, closure=None):
	        super().step()
	        with torch.no_grad():
	            for g in self.param_groups:
	                for p in g["params"]:
	                    p.mul_(1 + 2 ** -23)

	device, wrong = sys.argv[1:]
	model = mlp()
	kind = Other if wrong == "fused" else torch.optim.AdamW
	kind.__name__ = "AdamW"
	inner = kind(model.parameters(), lr=1e-2, foreach=wrong != "fused")
	replay = ace.Replay(model, inner, through(device), device, every=2,
	                    checkpoint=f"{device}.pt")
	while replay.round < 4:
	    if str(replay.round) == wrong:
	        replay.start[0].add_(1)
	        replay.crc = None
	    for i in range(2):
	        inner.zero_grad()
	        loss(model, device, 2 * replay.round + i).backward()
	        replay.step()
	replay.close()
	print(replay.round, replay.digest())
	P
	# told WRONG ROUND: both of them end, with what each computes with
	told() {
		py split.py edge1 -1 >said1 2>err1 3>&- &
		exits 1 py split.py edge2 "$1"
		wait $! && false
		for f in err err1; do
			grep -q "^ace_shards.Error: ace-recv: mismatch: step $2 of run 'train-replay2-.*' has no aggregate: 'edge[12]' has model [0-9a-f]* and 'edge[12]' [0-9a-f]*, at version $2, and no more have one than the other" $f
			grep -q "half of the devices have other weights or moments than the rest (here it is torch $torch, AdamW .*on cpu.*): give all of them one torch and the same settings" $f
		done
		grep -q 'AdamW foreach=True on cpu' err1
	}
	torch=$(py -c 'import torch; print(torch.__version__.split("+")[0])')
	cloud 2 4 3>&- &
	line=$!
	# other roundings, in the first round already
	told fused 0
	grep -q 'AdamW on cpu' err
	# put right they go on
	told 2 2
	cp edge1.pt edge2.pt
	py split.py edge1 -1 >one 3>&- &
	py split.py edge2 -1 >two
	wait $!
	wait $line
	same one two
	grep -q '^4 ' one
}

@test "replay: a checkpoint of a torch that did not have some of the options" {
	py - <<-'P'
	from common import *

	def run(rounds, pop=()):
	    torch.manual_seed(1)
	    m = mlp()
	    o = torch.optim.AdamW(m.parameters(), lr=1e-2)
	    r = ace.Replay(m, o, "ace-compress -c f32 | ace-expand", "edge1", every=1,
	                   checkpoint="x.pt")
	    while r.round < rounds:
	        o.zero_grad()
	        loss(m, "edge1", r.round).backward()
	        r.step()
	    r.close()
	    had = ace.load("x.pt")
	    for g in had["optimizer"]["groups"]:
	        for k in pop:
	            g.pop(k, None)
	    ace.save("x.pt", had)
	    return o, r.digest()

	_, want = run(4)
	os.remove("x.pt")
	new = [k for k, v in torch.optim.AdamW(mlp().parameters()).defaults.items()
	       if isinstance(v, bool) or v is None]
	assert len(new) > 2, new
	run(2, new)
	o, digest = run(4)
	assert digest == want
	assert {*new} <= {*o.param_groups[0]}, o.param_groups[0].keys()
	P
}

@test "replay: an optimiser with hidden state, and calls that are wrong, are refused" {
	py - <<-'P'
	from common import *

	class Hidden(torch.optim.SGD):
	    """Its rate falls by a number that only it knows."""
	    calls = 0

	    def step(self, closure=None):
	        self.calls += 1
	        for g in self.param_groups:
	            for p in g["params"]:
	                p.sub_(p.grad / self.calls)

	class Noisy(torch.optim.SGD):
	    def step(self, closure=None):
	        super().step()
	        for g in self.param_groups:
	            for p in g["params"]:
	                p.add_(torch.randn_like(p) * 1e-3)

	class Keeps(torch.optim.SGD):
	    def step(self, closure=None):
	        super().step()
	        self.state[self.param_groups[0]["params"][0]]["how"] = self.calls

	    def calls(self):
	        pass

	Hidden.step = torch.no_grad()(Hidden.step)
	Noisy.step = torch.no_grad()(Noisy.step)


	def replay(optimizer, steps=2, **more):
	    model = mlp()
	    o = optimizer(model.parameters(), lr=1e-2)
	    r = ace.Replay(model, o, "ace-compress -c f32 | ace-expand", "edge1",
	                   steps, **more)

	    def ahead(n=steps):
	        for i in range(n):
	            o.zero_grad()
	            loss(model, "edge1", i).backward()
	            r.step()
	    return model, o, r, ahead

	def common(r, digest):
	    """Weights and moments are those, to the bit."""
	    assert r.digest() == digest
	    r.crc, r.kept = None, ace.copied(r._now())
	    assert r.digest() == digest
	    assert all(torch.equal(p, s) for (_, p), s in zip(r.pairs, r.start))

	other = "takes other steps when it takes them again from the same state"
	for way in Hidden, Noisy:
	    model, o, r, ahead = replay(way)
	    digest = r.digest()
	    with fails(other):
	        ahead()
	    assert r.round == 0
	    common(r, digest)
	with fails("the optimiser keeps a method, and mode=\"replay\" can put back"):
	    replay(Keeps, 1)[3]()
	model, o, r, ahead = replay(torch.optim.LBFGS)
	with fails("the optimiser cannot take a step with gradients alone"):
	    ahead()

	# calls that are wrong change nothing, and the round goes on
	model, o, r, ahead = replay(torch.optim.RMSprop)
	digest = r.digest()
	ahead(1)
	with fails("sync() comes after 2 calls of step(), and not after 1"):
	    r.sync()
	ahead(1)
	assert r.round == 1 and r.digest() != digest
	o.param_groups[0]["lr"] /= 2
	with fails("as by a scheduler: the same has to be done when the steps are"):
	    ahead(1)
	# sums of gradients are f32, whatever torch makes by itself
	model, o, r, ahead = replay(torch.optim.SGD)
	for p in model.parameters():
	    p.grad = torch.ones_like(p)
	torch.set_default_dtype(torch.float64)
	r.step()
	torch.set_default_dtype(torch.float32)
	assert {s.dtype for s in r.sum} == {torch.float32}
	more = nn.Parameter(torch.ones(1))
	with fails("the optimiser has a parameter that the model has not"):
	    replay(lambda p, lr: torch.optim.SGD([*p, more], lr=lr))
	model = mlp()
	loss(model, "edge1", 0).backward()
	model[0].requires_grad_(False)
	o = torch.optim.SGD(model.parameters(), lr=0.1)
	with fails("the optimiser has a parameter that needs no gradient and has one"):
	    ace.Replay(model, o, "ace-expand", "edge1", 1)
	P
}

@test "replay: bf16, f16 and odd parameters, moments of any kind, and a checkpoint of them" {
	py - <<-'P'
	from common import *

	class Odd(nn.Module):
	    def __init__(self):
	        super().__init__()
	        self.b16 = nn.Parameter(torch.randn(7, 3).bfloat16())
	        self.f16 = nn.Parameter(torch.randn(9).half())
	        self.turned = nn.Parameter(torch.randn(6, 4).t())
	        self.one = nn.Parameter(torch.tensor(1.5))
	        self.none = nn.Parameter(torch.zeros(0, 4))
	        self.unused = nn.Parameter(torch.ones(3))
	        self.frozen = nn.Parameter(torch.ones(3), requires_grad=False)

	    def forward(self, x):
	        return sum((p.float() * x).square().sum() for n, p in
	                   self.named_parameters() if n != "unused")

	class Momenta(torch.optim.Optimizer):
	    """Moments in f32 of whatever parameter, numbers in a list, in the groups
	    and beside the parameters."""

	    def __init__(self, params, lr):
	        super().__init__(params, dict(lr=lr, seen=0.0))

	    @torch.no_grad()
	    def step(self, closure=None):
	        self.state["all"] = self.state.get("all", 0) + 1
	        for g in self.param_groups:
	            g["seen"] += 1 / 3
	            for p in g["params"]:
	                if p.grad is None:
	                    continue
	                s = self.state[p]
	                s.setdefault("m", torch.zeros(p.shape)).mul_(0.9).add_(p.grad)
	                s.setdefault("past", []).append(s["m"].sum())
	                s["past"] = s["past"][-2:]
	                p.grad.mul_(0)      # its own to spoil
	                p.sub_((g["lr"] / g["seen"] * (s["m"] + len(s["past"])))
	                       .to(p.dtype))

	def run(rounds, checkpoint, optimizer=Momenta, steps=3):
	    torch.manual_seed(1)
	    model = Odd()
	    o = optimizer((p for p in model.parameters() if p.requires_grad), lr=1e-3)
	    r = ace.Replay(model, o, "ace-compress -c f32 | ace-expand", "edge1", steps,
	                   checkpoint=checkpoint)
	    while r.round < rounds:
	        for i in range(3):
	            o.zero_grad()
	            model(0.1 * (1 + i + r.round)).backward()
	            r.step()
	    r.close()
	    return model, o, r

	model, o, r = run(4, "whole.pt")
	run(2, "parts.pt")
	again, p, s = run(4, "parts.pt")
	assert r.digest() == s.digest()
	for (n, a), b in zip(model.named_parameters(), again.parameters()):
	    assert torch.equal(a, b) and a.dtype == b.dtype, n
	    assert a.stride() == b.stride(), n
	    if a.requires_grad:
	        assert o.state[a]["m"].dtype == torch.float32
	        assert torch.equal(o.state[a]["m"], p.state[b]["m"]), n
	        assert o.state[a]["past"] == p.state[b]["past"], n
	assert o.state["all"] == p.state["all"] == 12
	assert abs(o.param_groups[0]["seen"] - 4) < 1e-6

	# one checkpoint is of one way
	with fails("checkpoint 'parts.pt' was made with another optimiser: go on"):
	    run(5, "parts.pt", torch.optim.SGD)
	with fails("checkpoint 'parts.pt' was made with run='train-replay3', and this is "
	           "run='train-replay2': go on as before"):
	    run(5, "parts.pt", steps=2)
	with fails("was made with run='train-replay3', and this is run='train'"):
	    ace.Local(again, None, "ace-expand", "edge1", checkpoint="parts.pt")
	P
}

@test "replay: one step is what the optimiser would have done; a sync that failed, again" {
	cat >one.py <<-'P'
	from common import *

	model, plain = mlp(), mlp()
	plain.load_state_dict(model.state_dict())
	inner = torch.optim.AdamW(model.parameters(), lr=1e-2)
	o = torch.optim.AdamW(plain.parameters(), lr=1e-2)
	replay = ace.Replay(model, inner, through("edge1"), "edge1", every=1, timeout=3)
	digest = replay.digest()
	for k in range(3):
	    inner.zero_grad()
	    loss(model, "edge1", k).backward()
	    if k == 0:
	        with fails("round 0 took more than 3 s", 4):
	            replay.step()
	        assert replay.digest() == digest and replay.round == 0
	        open("go", "w").close()
	        replay.wait.timeout = None
	        replay.sync()
	    else:
	        replay.step()
	    o.zero_grad()
	    loss(plain, "edge1", k).backward()
	    o.step()
	    for p, q in zip(model.parameters(), plain.parameters()):
	        assert torch.equal(p, q)
	assert replay.round == 3
	replay.close()
	P
	py one.py 3>&- &
	wait_for eval 'test -e go'
	cloud 1 3 3>&- &
	wait %1
	wait
}
