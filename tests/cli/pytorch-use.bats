# examples/pytorch/ace_shards in realistic use: with everything that PyTorch scripts have
# around a model.
# bats file_tags=long,plain
load helper
patient
load pytorch

@test "killed and started again with all that a script has: the same as undisturbed" {
	cat >whole.py <<-'E'
	"""whole.py DEVICE ROUNDS [die=PLACE:N] [SEED]: a frozen layer, a buffer, a
	running mean of the weights, dropout, a schedule, a scaler, data in an order of
	their own."""
	from common import *

	device, rounds = sys.argv[1], int(sys.argv[2])

	class Data:
	    def __init__(self):
	        self.at, self.g = 0, torch.Generator().manual_seed(sum(device.encode()))

	    def next(self):
	        self.at += 1
	        x = torch.randn(8, 20, generator=self.g) + self.at / 100
	        return x, x[:, :5].argmax(1)

	    def state_dict(self):
	        return {"at": self.at, "g": self.g.get_state()}

	    def load_state_dict(self, s):
	        self.at = s["at"]
	        self.g.set_state(s["g"])

	class Net(nn.Module):
	    def __init__(self):
	        super().__init__()
	        self.frozen = nn.Linear(20, 30)
	        self.norm = nn.BatchNorm1d(30)
	        self.head = nn.Sequential(nn.Dropout(0.3), nn.Linear(30, 5))
	        self.mean = nn.Linear(30, 5)
	        for p in *self.frozen.parameters(), *self.mean.parameters():
	            p.requires_grad_(False)

	    def forward(self, x):
	        return self.head(self.norm(self.frozen(x)).relu())

	for place in sys.argv[3:]:
	    if place.startswith("die="):
	        kill_at(place[4:])
	model, data = Net(), Data()
	if sys.argv[-1] == "other":
	    torch.manual_seed(7)
	    model.frozen.reset_parameters()
	torch.manual_seed(sum(device.encode()))
	inner = torch.optim.AdamW((p for p in model.parameters() if p.requires_grad),
	                          lr=1e-2)
	scheduler = torch.optim.lr_scheduler.MultiStepLR(inner, [5, 11], 0.3)
	scaling = scaler(8.0)
	local = ace.Local(model, inner, through(device), device,
	                  checkpoint=f"{device}.pt",
	                  state={"scheduler": scheduler, "data": data, "scaler": scaling})
	while local.round < rounds:
	    for i in range(3):
	        x, y = data.next()
	        inner.zero_grad()
	        scaling.scale(F.cross_entropy(model(x), y)).backward()
	        scaling.step(inner)
	        scaling.update()
	        scheduler.step()
	    # as most people write it; torch's version counters do not notice it
	    for m, p in zip(model.mean.parameters(), model.head[1].parameters()):
	        m.data.mul_(0.9).add_(p.data, alpha=0.1)
	    local.sync()
	local.close()
	print(local.digest(), data.at, scheduler.get_last_lr(), scaling.state_dict(),
	      [t.tolist() for t in model.state_dict().values()])
	E
	# the local part of the model differs between the devices
	whole() {
		py whole.py edge1 6 >said1 3>&- &
		py whole.py edge2 6 >said2
		wait
	}
	mkdir calm
	cp whole.py calm
	cd calm
	cloud 2 6 3>&- &
	whole
	cd ..
	cloud 2 6 3>&- &
	py whole.py edge2 6 >said2 3>&- &
	for place in sync:2 _outer:5 _save:2 replace:1 replace:2; do
		exits 137 "$PYTHON" whole.py edge1 6 die=$place
	done
	exits 1 py whole.py edge1 6 other
	says "ace_shards.Error: parameter 'frozen.weight', which needs no gradient, is torch.float32 .*, and in checkpoint 'edge1.pt' it is torch.float32"
	py whole.py edge1 6 >said1
	wait
	same said1 calm/said1
	same said2 calm/said2
	[ -s said1 ]
	# frozen parameters are part of the run's name
	exits 1 py whole.py edge3 6 other
	says "mismatch: a shard of run 'train-"
	# parameters that never moved are not in the checkpoint
	py - <<-'E'
	from common import *

	had = ace.load("edge1.pt")
	assert sorted(had["moved"]) == ["mean.bias", "mean.weight"], had["moved"]
	assert "parameter 'frozen.bias', which needs no gradient," in had["settings"]
	E
}

@test "a checkpoint without what the script has, or with more" {
	cloud 1 2 3>&- &
	cat >two.py <<-'E'
	from common import *

	class Odd:
	    """A state that no weights-only loading would take."""
	    def __init__(self):
	        self.seen = []

	    def state_dict(self):
	        return {"seen": self.seen, "what": {1, 2}, "who": complex(1, 2)}

	    def load_state_dict(self, s):
	        assert s["what"] == {1, 2} and s["who"] == complex(1, 2)
	        self.seen = s["seen"]

	def local(**more):
	    return ace.Local(mlp(), None, through("edge1"), "edge1",
	                     checkpoint="edge1.pt", **more)

	with fails("state: 'x' has no state_dict() and load_state_dict()"):
	    local(state={"x": 1})
	odd = Odd()
	l = local(state={"odd": odd})
	odd.seen.append("here")
	l.sync()
	l.close()
	for more, why in (({}, "state is [], and in checkpoint 'edge1.pt' it is ['odd']: go on as"),
	                  ({"state": {"odd": Odd(), "new": Odd()}}, "state is ['new', 'odd'], and")):
	    with fails(why):
	        local(**more)
	# the default of torch 2.6
	load = torch.load
	torch.load = lambda f, *a, weights_only=True, **k: load(
	    f, *a, weights_only=weights_only, **k)
	odd = Odd()
	l = local(state={"odd": odd})
	assert odd.seen == ["here"] and l.round == 1
	l.sync()
	l.close()
	# the random state of GPUs: simulate a machine with two
	states = [torch.ones(16, dtype=torch.uint8), torch.zeros(16, dtype=torch.uint8)]
	given = {}
	torch.cuda.is_available = torch.cuda.is_initialized = lambda: True
	torch.cuda.get_rng_state_all = lambda: states
	torch.cuda.set_rng_state = lambda s, i: given.update({i: s.tolist()})
	l = local(state={"odd": Odd()})
	l._save()
	l.leave()
	for n in 2, 1, 0:
	    given.clear()
	    torch.cuda.device_count = lambda: n
	    l = local(state={"odd": Odd()})
	    l.leave()
	    assert given == {i: states[i].tolist() for i in range(n)}, given
	os._exit(0)
	E
	py two.py
	wait
}

@test "module. and _orig_mod. are taken off: wrapped, compiled and plain are one run" {
	cat >wrap.py <<-'E'
	from common import *

	device, how = sys.argv[1:3]
	kind = dict(plain=lambda m: m, compiled=compiled, parallel=nn.DataParallel,
	            both=lambda m: nn.DataParallel(compiled(m)),
	            inside=lambda m: nn.Sequential(*(compiled(x) for x in m)))
	inner = mlp()
	model = kind[how](inner)
	if how == "compiled":
	    assert all(n.startswith("_orig_mod.") for n, _ in model.named_parameters())
	local = ace.Local(model, None, through(device), device,
	                  checkpoint=f"{device}.pt")
	for step in range(2):
	    sgd = torch.optim.SGD(model.parameters(), lr=0.1)
	    loss(model, device, local.round).backward()
	    sgd.step()
	    local.sync()
	    if step == 0:       # another wrapper uses the checkpoint of the first
	        local.close()
	        model = nn.DataParallel(compiled(inner)) if how == "plain" else inner
	        local = ace.Local(model, None, through(device), device,
	                          checkpoint=f"{device}.pt")
	        assert local.round == 1
	local.close()
	print(local.digest(), flush=True)
	E
	cloud 5 2 3>&- &
	n=0
	for how in plain compiled parallel both inside; do
		n=$((n + 1))
		py wrap.py edge$n $how >said$n 2>err$n 3>&- &
	done
	wait
	for n in 1 2 3 4 5; do
		[ -s said$n ] || { cat err$n; false; }
		same said1 said$n
	done
	ace-inspect spool/0/edge4.aceg >listing
	grep -qE '^0\.weight +f32' listing
	# a submodule keeps its name beside others
	py - <<-'E'
	from common import *

	m = nn.Module()
	m.module, m.head = nn.Linear(2, 2), nn.Linear(2, 2)
	assert list(ace.named(m)[0]) == ["module.weight", "module.bias",
	                                  "head.weight", "head.bias"]
	m = nn.Module()
	m._orig_mod, m.weight = nn.Linear(2, 2), nn.Parameter(torch.ones(2))
	with fails("two parameters have the same name without"):
	    ace.Local(m, None, "ace-compress -c f32 | ace-expand", "edge1")
	E
}

@test "the first device was the wrong one; a device that was wrong tries again" {
	cloud 2 1 3>&- &
	train edge1 1 >one 3>&- &
	wait_for eval 'test -e spool/0/edge1.aceg'
	first=$(ace-status spool | sed -n "s/^run '\(.*\)' in.*/\1/p")
	exits 1 train edge2 1 type=bfloat16
	says 'ace_shards.Error: ace-recv: mismatch: a shard of run .* began with another model or type'
	exits 1 train edge2 1 seed=2
	[ ! -e edge2 ]
	# the first line names the cause, what is kept where, and what to do
	grep -m1 Error err >line
	grep -q "^ace_shards.Error: ace-recv: mismatch: a shard of run 'train-.*is of run '$first'" line
	grep -q "If that device is right: give this one the same seed or file, and remove its state.*\. .*begin anew: see" line
	[ -z "$(grep 'ended with status' err)" ]
	# with the state of an earlier try
	rm -rf edge2
	train edge2 1 seed=2 checkpoint=alone.pt \
	    through='ace-compress -S edge2 -c f32 --window 1 --sync none | ace-expand'
	exits 1 train edge2 1
	says "ace_shards.Error: ace-compress: mismatch: .*remove the state of the one before"
	# the same values under other names pass as the same run here, but the cloud refuses them
	rm -r edge2
	exits 1 train edge2 1 inside=1
	grep -m1 Error err | grep -q "^ace_shards.Error: ace-ack: step 0: invalid: mismatch: run '$first' is of another model: tensor 0 is '0.weight' and '0.0.weight'"
	[ -z "$(grep 'ended with status' err)" ]
	rm -r edge2
	exits 0 train edge2 1
	wait
	[ "$(cut -d' ' -f2- one)" = "$(cut -d' ' -f2- out)" ]
}

@test "a first try that was given up: with its state it goes on, without it is told" {
	mkdir calm
	cd calm
	cloud 1 1 3>&- &
	train edge1 1 >said1
	wait
	cd ..
	"$PYTHON" "$BATS_FILE_TMPDIR/train.py" edge1 1 3>&- 2>err1 &
	wait_for eval 'test -e spool/0/edge1.aceg'
	kill -9 %%
	wait || true
	cp -r spool before
	# with its state, the shard that was sent already counts, not the present one
	cloud 1 1 3>&- &
	train edge1 1 code='-c q8' >said1
	wait
	same said1 calm/said1
	rm -r spool edge1 edge1.pt
	mv before spool
	# without its state, it is taken for another device of that name
	exits 1 train edge1 1 code='-c q8'
	grep -m1 Error err | grep -q "^ace_shards.Error: ace-ack: step 0: equivocation: .*or its state 'edge1' was removed after something was sent"
	[ -z "$(grep 'ended with status' err)" ]
}

@test "two models in one script: two runs" {
	cat >gan.py <<-'E'
	"""gan.py DEVICE ROUNDS [die=N]: killed at the N-th checkpoint."""
	from common import *

	device, rounds, *die = sys.argv[1:]
	if die:
	    kill_at("_save:" + die[0][4:])
	nets = {"generator": nn.Linear(6, 20), "critic": mlp()}


	def local(name):
	    inner = torch.optim.SGD(nets[name].parameters(), lr=0.05)
	    return ace.join(nets[name], inner, f"run-{name}", name=device,
	                    dir=f"{device}-{name}", every=99)


	generator, critic = local("generator"), local("critic")
	while critic.round < int(rounds):
	    for i in range(2 if generator.round == critic.round else 0):
	        x, y = batch(device, 2 * critic.round + i)
	        made = nets["generator"](x[:, :6])
	        for l, sign in (critic, 1), (generator, -1):
	            l.optimizer.zero_grad()
	            (sign * F.cross_entropy(nets["critic"](made.detach() if sign > 0
	             else made), y)).backward()
	            l.optimizer.step()
	    (generator if generator.round <= critic.round else critic).sync()
	generator.close()
	critic.close()
	print(generator.round, generator.digest(), critic.round, critic.digest())
	E
	clouds() {
		timeout "$HANG" ace-cloud run-generator --devices 2 --rounds 4 --bits 32 -q 3>&- &
		timeout "$HANG" ace-cloud run-critic --devices 2 --rounds 4 --bits 32 -q 3>&- &
	}
	clouds
	pair gan.py 4
	[ "$(find run-*/spool -name '*.aceg' -path '*/3/*' | wc -l)" -eq 6 ]
	[ "$(cut -d' ' -f1,3 one)" = '4 4' ]
	[ "$(cut -d' ' -f2 one)" != "$(cut -d' ' -f4 one)" ]
	# killed when one of the two runs is a round ahead
	rm -r run-* edge*
	clouds
	py gan.py edge2 4 >two 3>&- 2>err2 &
	for n in 2 3 4; do
		exits 137 "$PYTHON" gan.py edge1 4 die=$n
	done
	py gan.py edge1 4 >one
	wait
	same one two
}
