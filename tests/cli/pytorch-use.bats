# examples/pytorch/ace_shards as people use it: with what a training script of
# PyTorch has around its model.
# bats file_tags=long,plain
load helper
patient
load hosts
load pytorch

@test "gradients that were clipped after they were sent: refused, nothing has happened" {
	cat >late.py <<-'E'
	from common import *

	def once(change, layers=True):
	    m = mlp()
	    sgd = torch.optim.SGD(m.parameters(), lr=0.1)
	    g = ace.Gradients(m, through("edge1"), "edge1", layers=layers)
	    (1000 * loss(m, "edge1", 0)).backward()
	    change(m, sgd)
	    g.average()

	def clip(m, sgd):
	    torch.nn.utils.clip_grad_norm_(m.parameters(), 1.0)

	def clip_one(m, sgd):
	    torch.nn.utils.clip_grad_norm_([m[0].weight], 1.0)

	def clip_value(m, sgd):
	    torch.nn.utils.clip_grad_value_(m.parameters(), 0.01)

	def unscale(m, sgd):
	    scaler(4.0).unscale_(sgd) if not hasattr(torch.amp, "GradScaler") \
	        else clip(m, sgd)

	def another(m, sgd):
	    m[2].bias.grad = torch.zeros(5)

	def gone(m, sgd):
	    sgd.zero_grad(set_to_none=True)

	for change in clip, clip_one, clip_value, unscale, another, gone:
	    with fails("changed after it was sent, as by clip_grad_norm_") as f:
	        once(change)
	    assert "average(clip=1.0)" in f.error and "layers=False" in f.error
	E
	py late.py
	# nothing left the device, whole: its state is as if it had not begun
	[ -z "$(find spool -name 'edge1.*')" ]
	cat >good.py <<-'E'
	from common import *

	m = mlp()
	g = ace.Gradients(m, through("edge1"), "edge1", layers=False)
	(1000 * loss(m, "edge1", 0)).backward()
	torch.nn.utils.clip_grad_norm_(m.parameters(), 1.0)
	g.average()
	print(sum(p.grad.square().sum() for p in m.parameters()).sqrt().item())
	g.close()
	E
	cloud 1 1 3>&- &
	py good.py >norm
	wait
	awk '{ exit !($1 > 0.99 && $1 < 1.01) }' norm
}

@test "average(clip=): the norm of the average, the same bits on all devices" {
	cat >clip.py <<-'E'
	from common import *

	device, layers = sys.argv[1], sys.argv[2] == "layers"
	model = mlp()
	model[2].half() if layers else None     # of two types
	g = ace.Gradients(model, through(device), device, layers=layers)
	for step, clip in enumerate((1e9, 0.5, 1e-3, 0.5)):
	    model.zero_grad()
	    scale = 0 if step == 3 else 100
	    x, y = batch(device, step)
	    h = model[1](model[0](x))
	    h = F.linear(h, model[2].weight.float(), model[2].bias.float())
	    (scale * F.cross_entropy(h, y)).backward()
	    want = sum((p.grad.double() ** 2).sum() for p in model.parameters())
	    norm = g.average(clip=clip)
	    grads = [p.grad for p in model.parameters()]
	    now = sum((t.double() ** 2).sum() for t in grads).sqrt().item()
	    assert now <= clip * 1.002, (now, clip)
	    if norm > clip:
	        assert abs(now - clip) < 0.02 * clip, (now, clip)
	    else:
	        assert abs(now - norm) < 1e-9 * norm + 1e-12, (now, norm)
	    copies = [t.clone().mul_(norm / now) for t in grads if now]
	    print(norm, [t.tolist() for t in grads])
	# torch's own, of the same gradients
	m = mlp()
	loss(m, device, 0).backward()
	want = torch.nn.utils.clip_grad_norm_(m.parameters(), 1e9).item()
	got = sum(ace.squares(p.grad) for p in m.parameters()) ** 0.5
	assert abs(got - want) < 1e-5 * want, (got, want)
	assert ace.squares(torch.zeros(0)) == 0
	t = torch.randn(3 * (1 << 20) + 77)
	assert abs(ace.squares(t) / (t.double() ** 2).sum().item() - 1) < 1e-12
	g.close()
	E
	for how in layers whole; do
		cloud 2 4 3>&- &
		pair clip.py $how
		rm -r spool edge1 edge2 cloud
	done
}

@test "a GradScaler: unscaled before the average, and all take the same step" {
	# one device's gradients overflow now and then: they count as zeros
	cat >scaled.py <<-'E'
	from common import *

	device = sys.argv[1]
	model = mlp()
	optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
	grads = ace.Gradients(model, through(device), device, layers=False)
	scaling = scaler(1024.0 if device == "edge1" else 4.0)
	over = 0
	for step in range(5):
	    optimizer.zero_grad()
	    l = loss(model, device, step)
	    if step == 2 and device == "edge2":
	        l = l * float("inf")
	    scaling.scale(l).backward()
	    scaling.unscale_(optimizer)
	    if not all(p.grad.isfinite().all() for p in model.parameters()):
	        optimizer.zero_grad()       # they count as zeros
	        over += 1
	    grads.average(clip=1.0)
	    optimizer.step()                # not scaling.step: it may skip one
	    scaling.update()
	grads.close()
	assert over == (device == "edge2"), over
	print([p.tolist() for p in model.parameters()])
	E
	cloud 2 5 3>&- &
	pair scaled.py
}

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
	    # as most people write it, past all counters of torch
	    for m, p in zip(model.mean.parameters(), model.head[1].parameters()):
	        m.data.mul_(0.9).add_(p.data, alpha=0.1)
	    local.sync()
	local.close()
	print(local.digest(), data.at, scheduler.get_last_lr(), scaling.state_dict(),
	      [t.tolist() for t in model.state_dict().values()])
	E
	# each is its own: what they have alone differs from device to device
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
	says "ace_shards.Error: parameter 'frozen.weight', which needs no gradient, is not what it was when the run of checkpoint 'edge1.pt' began: give it the same seed or file"
	py whole.py edge1 6 >said1
	wait
	same said1 calm/said1
	same said2 calm/said2
	[ -s said1 ]
	# what is frozen is in the name of the run
	exits 1 py whole.py edge3 6 other
	says "mismatch: a shard of run 'train-"
	# and what nobody moved is not in the checkpoint
	py - <<-'E'
	from common import *

	had = ace.load("edge1.pt")
	assert sorted(had["moved"]) == ["mean.bias", "mean.weight"], had["moved"]
	assert sorted(had["frozen"])[0] == "frozen.bias"
	E
}

@test "a checkpoint without what the script has, or with more; of the older form" {
	cloud 1 3 3>&- &
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

	def left(l):
	    l.close()

	def ended(l):       # without a round
	    l._leave()
	    l.lock.close()

	with fails("state: 'x' has no state_dict() and load_state_dict()"):
	    local(state={"x": 1})
	odd = Odd()
	l = local(state={"odd": odd})
	odd.seen.append("here")
	l.sync()
	left(l)
	for more, why in (({}, "checkpoint 'edge1.pt' has the state of 'odd': give it"),
	                  ({"state": {"odd": Odd(), "new": Odd()}},
	                   "made without the state of 'new': go on without")):
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
	left(l)
	# a checkpoint as it was before there were these
	had = ace.load("edge1.pt")
	for k in "frozen", "moved", "state", "cuda":
	    del had[k]
	ace.save("edge1.pt", had)
	l = local()
	assert l.round == 2
	l.sync()
	assert set(ace.load("edge1.pt")) > {"frozen", "moved", "state", "cuda"}
	left(l)
	# the random numbers of a GPU, where there is one: as on a machine with two
	states = [torch.ones(16, dtype=torch.uint8), torch.zeros(16, dtype=torch.uint8)]
	given = {}
	torch.cuda.is_available = torch.cuda.is_initialized = lambda: True
	torch.cuda.get_rng_state_all = lambda: states
	torch.cuda.set_rng_state = lambda s, i: given.update({i: s.tolist()})
	l = local()
	l._save()
	ended(l)
	for n in 2, 1, 0:
	    given.clear()
	    torch.cuda.device_count = lambda: n
	    l = local()
	    ended(l)
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
	    if step == 0:       # another wrapper takes the checkpoint of the first
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
	ace-inspect spool/*/0/edge4.aceg >listing
	grep -qE '^0\.weight +f32' listing
	# a model's own module, beside others, keeps its name
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
	cat >seeded.py <<-'E'
	from common import *

	device, seed, *odd = sys.argv[1:]
	torch.manual_seed(int(seed))
	m = mlp()
	if odd:
	    m = nn.ModuleDict({"a": m})
	local = ace.Local(m, None, os.environ.get("PIPE") or through(device), device)
	local.sync()
	local.close()
	print(local.digest())
	E
	cloud 2 1 3>&- &
	py seeded.py edge1 1 >one 3>&- &
	wait_for eval 'test -e spool/train-*/0/edge1.aceg'
	first=$(basename spool/train-*)
	exits 1 py seeded.py edge2 2
	# the first line is the cause, and says what is kept where and what to do
	grep -m1 Error err >line
	grep -q "^ace_shards.Error: ace-recv: mismatch: a shard of run 'train-.*is of run '$first'" line
	grep -q "there in the folder $first\." line
	grep -q "remove its state.*\. .*begin anew: end the cloud's programs" line
	[ -z "$(grep 'ended with status' err)" ]
	# with the state of a try before
	rm -rf edge2
	PIPE='ace-compress -S edge2 -c f32 --window 1 --sync none | ace-expand' \
	    py seeded.py edge2 2
	exits 1 py seeded.py edge2 1
	says "ace_shards.Error: ace-compress: mismatch: .*remove the state of the one before"
	# the same values under other names: of this run, and refused by the cloud
	rm -r edge2
	exits 1 py seeded.py edge2 1 odd
	grep -m1 Error err | grep -q "^ace_shards.Error: ace-ack: step 0: invalid: mismatch: run '$first' is of another model: tensor 0 is '0.weight' and 'a.0.weight'"
	[ -z "$(grep 'ended with status' err)" ]
	rm -r edge2
	exits 0 py seeded.py edge2 1
	wait
	same one out
}

@test "a first try that was given up: with its state it goes on, without it is told" {
	cat >moved.py <<-'E'
	from common import *

	device, by = sys.argv[1:]
	m = mlp()
	local = ace.Local(m, None, through(device), device)
	with torch.no_grad():
	    m[0].bias.add_(float(by))
	local.sync()
	local.close()
	print(m[0].bias.sum().item(), local.digest())
	E
	"$PYTHON" moved.py edge1 0.5 3>&- 2>err1 &
	wait_for eval 'test -e spool/train-*/0/edge1.aceg'
	kill -9 %%
	wait || true
	cp -r spool before
	cp -r edge1 state
	# with its state: what was sent counts
	cloud 1 1 3>&- &
	py moved.py edge1 0.7 >kept
	wait
	rm -r spool cloud edge1
	cp -r before spool
	# without: it is another one's name
	exits 1 py moved.py edge1 0.7
	grep -m1 Error err | grep -q "^ace_shards.Error: ace-ack: step 0: equivocation: .*or its state 'edge1' was removed after something was sent"
	[ -z "$(grep 'ended with status' err)" ]
	rm -r edge1 spool/train-*/0/edge1.aceg
	cloud 1 1 3>&- &
	py moved.py edge1 0.7 >again
	wait
	paste kept again | awk '{ exit !($3 - $1 > 5.9 && $3 - $1 < 6.1) }'
}

@test "two models in one script: one spool, two runs" {
	cat >gan.py <<-'E'
	"""gan.py DEVICE ROUNDS [die=N]: killed at the N-th checkpoint."""
	from common import *

	device, rounds, *die = sys.argv[1:]
	if die:
	    kill_at("_save:" + die[0][4:])
	nets = {"generator": nn.Linear(6, 20), "critic": mlp()}


	def local(name):
	    pipeline = f"""
	        ace-compress -S {device}-{name} -c f32 --window 1 --sync none |
	        ace-recv --spool spool --run '{name}-*' --reply aggregate --sync none |
	        ace-ack -S {device}-{name} --sync none | ace-expand"""
	    inner = torch.optim.SGD(nets[name].parameters(), lr=0.05)
	    return ace.Local(nets[name], inner, pipeline, device, run=name,
	                     checkpoint=f"{device}-{name}.pt")


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
		for name in generator critic; do
			timeout "$HANG" ace-aggregate --spool spool --create --run "$name-*" \
			    --expect 2 --steps 4 --published --sync none -q |
			    timeout "$HANG" ace-step -S "cloud-$name" -c f32 --sync none |
			    timeout "$HANG" ace-recv --spool spool --publish --sync none &
		done
		wait
	}
	clouds 3>&- &
	pair gan.py 4
	[ "$(find spool -name '*.aceg' -path '*/3/*' | wc -l)" -eq 6 ]
	[ "$(cut -d' ' -f1,3 one)" = '4 4' ]
	[ "$(cut -d' ' -f2 one)" != "$(cut -d' ' -f4 one)" ]
	# killed when one of the two is a round ahead
	rm -r spool cloud-* edge*
	clouds 3>&- &
	py gan.py edge2 4 >two 3>&- 2>err2 &
	for n in 2 3 4; do
		exits 137 "$PYTHON" gan.py edge1 4 die=$n
	done
	py gan.py edge1 4 >one
	wait
	same one two
	# what the two may not share is said
	cat >shared.py <<-'E'
	from common import *

	ace.locked.__defaults__ = ("rb", 0.2)
	alone = "ace-compress -S {} -c f32 --window 1 --sync none | ace-expand".format
	a = ace.Local(mlp(), None, alone("one"), "edge1", checkpoint="x.pt")
	with fails("checkpoint 'x.pt' is in use") as f:
	    ace.Local(mlp(), None, alone("two"), "edge1", checkpoint="x.pt")
	assert "each model of a script, a checkpoint and a state of its own" in f.error
	E
	py shared.py
}

@test "words of a pipeline as a shell has them, and programs of a venv" {
	py - <<-'E'
	from common import *

	os.environ.update(HOME="/home/me", WITH="a b")
	os.environ.pop("NOTHING", None)
	for text, want in (
	    ("x $HOME/s ~/t ~ a~ --d=~ ${HOME}y", "x|/home/me/s|/home/me/t|/home/me|a~|--d=~|/home/mey"),
	    ("x $WITH \"$WITH\" '$WITH' \\$WITH \"\\$WITH \\q\"", "x|a b|a b|$WITH|$WITH|$WITH \\q"),
	    ("x 'a | b' \"c ; d\" e\\ f '' g\\\nh", "x|a | b|c ; d|e f||gh"),
	    ("x $ 5$ '~' \\~", "x|$|5$|~|~")):
	    got, = ace.stages_of(text)
	    assert got == want.split("|") or "|".join(got) == want, (got, want)
	assert ace.stages_of("a b|c\n |d") == [["a", "b"], ["c"], ["d"]]
	for bad, why in (("x $NOTHING/y", "'$NOTHING' in the pipeline: there is no such"),
	                 ("x ${NOTHING}", "'${NOTHING}' in the pipeline"),
	                 ("x ${HOME:-a}", "'${' in the pipeline: no shell reads it"),
	                 ("x \"$(ls)\"", "'$(' in the pipeline"),
	                 ("x `ls`", "'`' in the pipeline"), ("x $1", "'$1' in the"),
	                 ("x 'abc", "a quote without its end in the pipeline: 'abc"),
	                 ("x $(ls)", "'(' in the pipeline: only programs")):
	    with fails(why):
	        ace.stages_of(bad)
	    with fails(why):
	        ace.Local(mlp(), None, bad, "edge1")
	E
	# where the state is, and a variable that is not there
	export HERE=$PWD
	sed "s|-S {device}|-S \$HERE/in-{device}|g" "$BATS_FILE_TMPDIR/common.py" >common.py
	cp "$BATS_FILE_TMPDIR/train.py" .
	cloud 1 1 3>&- &
	py train.py edge1 1
	wait
	[ -d "$HERE/in-edge1" ]
	# a virtual environment that nobody activated has the programs beside its
	# Python, and they come before those in PATH
	"$PYTHON" -m venv --without-pip --system-site-packages venv 2>/dev/null ||
	    skip 'no venv here'
	mkdir path
	for which in 'path wrong' 'venv/bin right'; do
		printf '#!/bin/sh\necho "the %s one" >&2\nexit 5\n' "${which#* }" \
		    >"${which% *}/which-one"
		chmod +x "${which% *}/which-one"
	done
	PATH=$PWD/path:$PATH
	for f in ace-import ace-export; do
		ln -s "$(command -v $f)" venv/bin/$f
	done
	cat >which.py <<-'E'
	from common import *

	with fails(sys.argv[1]):
	    ace.Local(mlp(), None, "which-one", "edge1").sync()
	E
	timeout "$HANG" venv/bin/python which.py 'the right one'
	PATH=/usr/bin:/bin timeout "$HANG" venv/bin/python which.py 'the right one'
	py which.py 'the wrong one'
}

@test "a model too small for its bits is told how many are enough" {
	cat >small.py <<-'E'
	from common import *

	def local(n, bits, state):
	    return ace.Local(nn.Linear(n, 1), None, f"""
	        ace-step -S {state} --bits {bits} --sync none | ace-expand""", "edge1")

	with fails("bytes are too few: it takes") as f:
	    local(10, 2, "s1").sync()
	assert "has 11 values (no --bits is enough, -c CODEC needs none)" in f.error
	with fails("has 201 values (--bits ") as f:
	    local(200, 2, "s2").sync()
	bits = f.error.split("(--bits ")[1].split()[0]
	l = local(200, bits, "s3")
	with torch.no_grad():
	    l.model.weight.add_(1)
	l.sync()
	l.close()
	assert abs(l.start[0] - l.model.weight).max() < 1e-6
	E
	py small.py
}

@test "torch 2: its hook for a whole gradient gives the same average" {
	cat >hook.py <<-'E'
	from common import *

	device, how = sys.argv[1:]
	used = []
	if how == "new":
	    if not hasattr(torch.Tensor, "register_post_accumulate_grad_hook"):
	        def register(p, hook):
	            node = p.expand_as(p).grad_fn.next_functions[0][0]
	            p.__dict__["kept"] = node
	            return node.register_hook(lambda *_: hook(p))
	        torch.Tensor.register_post_accumulate_grad_hook = register
	    there = torch.Tensor.register_post_accumulate_grad_hook

	    def counted(p, hook):
	        used.append(p)
	        return there(p, hook)
	    torch.Tensor.register_post_accumulate_grad_hook = counted
	else:       # as if there were none, for the module alone
	    ace.hasattr = lambda x, name: "accumulate" not in name and hasattr(x, name)
	model = compiled(mlp())
	sgd = torch.optim.SGD(model.parameters(), lr=0.1)
	grads = ace.Gradients(model, through(device), device)
	assert len(used) == (4 if how == "new" else 0), len(used)
	for step in range(3):
	    sgd.zero_grad()
	    loss(model, device, step).backward()
	    assert grads.sent == 3, grads.sent      # the last one waits for average()
	    grads.average(clip=10.0)
	    sgd.step()
	grads.close()
	loss(model, device, 9).backward()           # nobody listens any more
	print([p.tolist() for p in model.parameters()])
	E
	for how in new old; do
		cloud 2 3 3>&- &
		pair hook.py $how
		mv one $how
		rm -r spool edge1 edge2 cloud
	done
	same new old
}

@test "a model that is cut into parts is refused by its name" {
	py - <<-'E'
	from common import *

	class FullyShardedDataParallel(nn.Module):
	    def __init__(self, m):
	        super().__init__()
	        self._fsdp_wrapped_module = m

	class FSDPModule:
	    pass

	class FSDPLinear(FSDPModule, nn.Linear):
	    pass

	class DTensor(nn.Parameter):
	    pass

	one = mlp()
	one[0].weight = DTensor(one[0].weight.detach())
	for m, name in ((FullyShardedDataParallel(mlp()), "FullyShardedDataParallel"),
	                (nn.Sequential(mlp(), FullyShardedDataParallel(mlp())),
	                 "FullyShardedDataParallel"),
	                (nn.Sequential(FSDPLinear(3, 3)), "FSDPModule"), (one, "DTensor")):
	    for what in (lambda: ace.Local(m, None, "ace-expand", "edge1"),
	                 lambda: ace.Gradients(m, "ace-expand", "edge1")):
	        with fails(f"the model has a {name}: each process has a part of its"):
	            what()
	E
}

@test "what ace-pytorch(7) shows of a scaler and of two models runs as it stands" {
	cat >scaled.py <<-'E'
	from common import *

	model = mlp()
	model[0].bias.requires_grad_(False)
	before = [p.detach().clone() for p in model.parameters()]
	optimizer, loss = torch.optim.SGD(model.parameters(), lr=0.1), F.cross_entropy
	data = [batch("edge1", step) for step in range(3)]
	grads = ace.Gradients(model, through("edge1"), "edge1", layers=False)
	scaler = scaler(8.0)
	E
	block scaler.unscale_ >>scaled.py
	cat >>scaled.py <<-'E'
	grads.close()
	assert all(((p - b).abs().max() > 0) == p.requires_grad
	           for p, b in zip(model.parameters(), before))
	E
	cloud 1 3 3>&- &
	py scaled.py
	wait
	rm -r spool cloud edge1
	cat >two.py <<-'E'
	from common import *

	if sys.argv[1:]:
	    kill_at(sys.argv[1])
	generator, critic = nn.Linear(200, 40), nn.Linear(300, 30)
	g_optimizer = torch.optim.SGD(generator.parameters(), lr=0.1)
	c_optimizer = torch.optim.SGD(critic.parameters(), lr=0.1)
	before = [m.bias.mean().item() for m in (generator, critic)]

	def steps(r):
	    with torch.no_grad():
	        for m in generator, critic:
	            for p in m.parameters():
	                p.add_(1)
	E
	block 'run="critic"' | sed 's/100/3/' >>two.py
	block '--run "$m-*"' | sed 's/100/3/; s/--expect 4/--expect 1/' >cloud.sh
	echo wait >>cloud.sh
	timeout "$HANG" bash -euo pipefail cloud.sh 3>&- &
	cat >>two.py <<-'E'
	# no step counts twice
	moved = [m.bias.mean().item() - b for m, b in zip((generator, critic), before)]
	assert abs(moved[0] - 3) < 0.4, moved
	assert abs(moved[1] - 2) < 0.4, moved
	E
	# killed between the two syncs of the second round
	exits 137 "$PYTHON" two.py sync:4
	py two.py
	wait
	for f in spool/generator-*/2/aggregate.aceg spool/critic-*/2/edge1.aceg; do
		[ -e "$f" ]
	done
}

# place NAME [ROUND]: the page's script in two processes, which die in that round
place() {
	local rank
	rm -f "$1.meet"
	for rank in 1 0; do
		py place.py "$1" "$rank" "${2:-}" >"$1-$rank" 2>"$1-$rank.err" 3>&- &
	done
	wait
}

@test "ace-pytorch(7): two processes in a place, killed and started again" {
	{
		cat <<-'E'
		from common import *

		place, rank, die = sys.argv[1:]
		pipeline = through(place, "-c q8")
		model = nn.Sequential(nn.Linear(20, 30), nn.ReLU(), nn.Linear(30, 5))
		optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
		loss = F.cross_entropy
		given = dict(init_method=f"file://{os.getcwd()}/{place}.meet",
		             rank=int(rank), world_size=2)

		def batches(round):
		    if die == str(round):
		        os._exit(9)
		    return [batch(f"{place}-{rank}", 2 * round + k) for k in range(2)]
		E
		block 'import torch.distributed' | sed 's/"gloo"/"gloo", **given/
		    s/"place1"/place/; s/"place1\.pt"/place + ".pt"/; s/100/4/'
		cat <<-'E'
		print([p.double().sum().item() for p in model.parameters()])
		print([s["exp_avg"].sum().item() for s in optimizer.state.values()])
		E
	} >place.py
	for die in '' 2; do
		mkdir "all$die" && cd "all$die" && ln ../place.py .
		cloud 2 4 3>&- &
		place two '' 3>&- &
		place one "$die" 3>&- &
		[ -z "$die" ] || { wait $!; place one '' 3>&- & }
		wait
		cat ./*.err
		same one-0 one-1
		same two-0 two-1
		[ "$(head -n 1 one-0)" = "$(head -n 1 two-0)" ]
		[ "$(wc -l <one-0)$(wc -l <two-0)" = 22 ]
		cd ..
	done
	same all/one-0 all2/one-0
	same all/two-0 all2/two-0
}

# What people do with a training script, and the test that does it.  Those of
# joining, waiting and the cloud's restart are tested beside this file.
situations() {
	cat <<-'END'
	1	two devices from nothing	two devices: the same bits after every round
	2	a device killed anywhere, the same line again	killed anywhere, started again
	3	one of its programs killed	a program killed in the middle of a round
	4	a connection that breaks	patience: a connection that broke is tried again
	5	DistributedDataParallel inside a device	DistributedDataParallel: its communication hook
	6	bf16, tied, transposed, empty parameters	bf16, f16, strided, tied, frozen, empty
	7	a device that is not the CPU	another device than the CPU
	12	gradients are clipped	gradients that were clipped after they were sent
	12	and the average is	average(clip=): the norm of the average
	13	a GradScaler	a GradScaler: unscaled before the average
	14	a schedule, data, buffers, a running mean: resumed	killed and started again with all that a script has
	15	resumed with another seed for what is frozen	killed and started again with all that a script has
	16	compiled or wrapped on some devices	module. and _orig_mod. are taken off
	17	the first device was wrong, or a device's first try	the first device was the wrong one
	17	a first try that was given up	a first try that was given up
	18	two models in one script	two models in one script
	20	$HOME, ~, a venv	words of a pipeline as a shell has them
	21	a model too small for its bits	a model too small for its bits
	23	a cloud that answers something else	an answer that is not what was asked for
	24	a notebook's cell, run again	a cell of a notebook is run again
	25	two torch releases or settings under Replay	replay: two devices that differ are both told
	22	torch 2: hooks, weights_only, FSDP	torch 2: its hook for a whole gradient
	22	and FSDP is refused	a model that is cut into parts
	END
}

@test "each situation has its test" {
	local n what name
	grep -h '^@test "' "$ROOT"/tests/cli/pytorch*.bats >tests
	situations >table
	while IFS='	' read -r n what name; do
		grep -qF "@test \"$name" tests || { echo "$n $what: $name"; false; }
	done <table
	[ "$(cut -f1 table | sort -u | wc -l)" -eq 20 ]
}
