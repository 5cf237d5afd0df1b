# ace.Replay of examples/pytorch/ace_shards: each device undoes its steps of a round, and all
# devices repeat them with the mean gradient.
# bats file_tags=plain
load helper
patient
load pytorch

export WAY=Replay

@test "replay: two devices with different models are both refused, and continue when corrected" {
	# told WRONG ROUND: run edge2 with the option WRONG, and check that both devices end with an
	# error about ROUND
	told() {
		train edge1 4 foreach=1 >said1 2>err1 3>&- &
		exits 1 train edge2 4 "$1"
		wait $! && false
		for f in err err1; do
			grep -q "^ace_shards.Error: ace-recv: mismatch: step $2 has no average: 'edge[12]' has model [0-9a-f]*, 'edge[12]' has [0-9a-f]* at version $2, and neither model has a majority" $f
			grep -q "compute differently (this device has torch $torch)\. *If neither model has a majority, give all devices the same torch and settings" $f
		done
	}
	torch=$(py -c 'import torch; print(torch.__version__)')
	cloud 2 4 3>&- &
	line=$!
	# different rounding is detected in the first round
	told fused=1 0
	# with the right settings they continue, until edge2's model changes in round 2
	told wrong=2 2
	cp edge1.pt edge2.pt
	train edge1 4 >one 3>&- &
	train edge2 4 >two
	wait $!
	wait $line
	[ "$(cut -d' ' -f2- one)" = "$(cut -d' ' -f2- two)" ]
	grep -q '^edge1 4 ' one
}

@test "replay: a checkpoint of an older torch whose optimiser had fewer options" {
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

@test "replay: optimisers with hidden state, and invalid calls, are refused" {
	py - <<-'P'
	from common import *

	class Hidden(torch.optim.SGD):
	    """Its rate depends on a number that is not in its state."""
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
	    """Check that weights and moments have this digest, also if it is calculated anew."""
	    assert r.digest() == digest
	    r.crc, r.kept = None, ace.copied(r._now())
	    assert r.digest() == digest
	    assert all(torch.equal(p, s) for (_, p), s in zip(r.pairs, r.start))

	other = "the optimiser's steps differ when they are repeated from the same state"
	for way in Hidden, Noisy:
	    model, o, r, ahead = replay(way)
	    digest = r.digest()
	    with fails(other):
	        ahead()
	    assert r.round == 0
	    common(r, digest)
	with fails("the optimiser's state or param_groups has a method, but mode=\"replay\" can restore"):
	    replay(Keeps, 1)[3]()
	model, o, r, ahead = replay(torch.optim.LBFGS)
	with fails("calls the optimiser's step() without arguments, and step() failed"):
	    ahead()

	# an invalid call changes nothing, and the round continues
	model, o, r, ahead = replay(torch.optim.RMSprop)
	digest = r.digest()
	ahead(1)
	with fails("sync() was called after step 1 of 2"):
	    r.sync()
	ahead(1)
	assert r.round == 1 and r.digest() != digest
	# gradients are summed in f32 with any default type of torch
	model, o, r, ahead = replay(torch.optim.SGD)
	for p in model.parameters():
	    p.grad = torch.ones_like(p)
	torch.set_default_dtype(torch.float64)
	r.step()
	torch.set_default_dtype(torch.float32)
	assert {s.dtype for s in r.sum} == {torch.float32}
	more = nn.Parameter(torch.ones(1))
	with fails("the optimiser has a parameter of shape (1,) that is absent from the model"):
	    replay(lambda p, lr: torch.optim.SGD([*p, more], lr=lr))
	model = mlp()
	loss(model, "edge1", 0).backward()
	model[0].requires_grad_(False)
	o = torch.optim.SGD(model.parameters(), lr=0.1)
	with fails("requires no gradient but has a .grad"):
	    ace.Replay(model, o, "ace-expand", "edge1", 1)
	P
}

@test "replay: with one step per round the result is the optimiser's; a failed round is repeated" {
	cat >one.py <<-'P'
	from common import *

	model, plain = mlp(), mlp()
	plain.load_state_dict(model.state_dict())
	inner = torch.optim.AdamW(model.parameters(), lr=1e-2)
	o = torch.optim.AdamW(plain.parameters(), lr=1e-2)
	def join(**more):
	    return ace.Replay(model, inner, through("edge1"), "edge1", every=1, **more)

	replay = join(timeout=3)
	digest = replay.digest()
	for k in range(3):
	    inner.zero_grad()
	    loss(model, "edge1", k).backward()
	    if k == 0:
	        with fails("round 1 took more than 3 s", 4):
	            replay.step()
	        assert replay.digest() == digest and replay.round == 0
	        open("go", "w").close()
	        with fails("an earlier round of this run failed: call ace.join again"):
	            inner.step()
	        replay = join()
	        loss(model, "edge1", k).backward()
	        replay.step()
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
