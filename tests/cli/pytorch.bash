# What the tests of examples/pytorch/ace_shards share: a trainer that takes orders
# from each test, the cloud, and a directory for each test.

# setup_file: makes that trainer and finds a python that has torch.
setup_file() {
	export OMP_NUM_THREADS=1 PYTHONDONTWRITEBYTECODE=1
	export PYTHONPATH=$BATS_FILE_TMPDIR:$ROOT/examples/pytorch
	for PYTHON in python3 /usr/bin/python3 none; do
		"$PYTHON" -c 'import torch' 2>/dev/null && break
	done
	export PYTHON
	cat >"$BATS_FILE_TMPDIR/common.py" <<-'E'
	"""What the tests' trainers have in common."""
	import os
	import sys
	import torch
	from torch import nn
	from torch.nn import functional as F
	import logging
	import ace_shards
	from ace_shards import algorithms, checkpoint, front, transport


	class Inside:
	    """The module for tests that look inside of it: all names of its parts, which
	    are set wherever they are."""

	    parts = ace_shards, algorithms, checkpoint, front, transport

	    def __getattr__(self, name):
	        return next(getattr(m, name) for m in self.parts if hasattr(m, name))

	    def __setattr__(self, name, value):
	        for m in self.parts:
	            if hasattr(m, name) or m is algorithms:
	                setattr(m, name, value)


	ace = Inside()
	logging.basicConfig(format="ace: %(message)s", level=logging.INFO)
	torch.set_num_threads(1)
	torch.manual_seed(1)
	WAY = getattr(ace, os.environ.get("WAY", "Local"))


	def through(device, code="-c f32", spool="spool"):
	    return f"""ace-compress -S {device} {code} --window 1 --sync none |
	        ace-recv --spool {spool} --reply aggregate --sync none |
	        ace-ack -S {device} --sync none | ace-expand"""


	def mlp():
	    return nn.Sequential(nn.Linear(20, 30), nn.ReLU(), nn.Linear(30, 5))


	def batch(device, step, n=8):
	    g = torch.Generator().manual_seed(sum(device.encode()) * 1000 + step)
	    x = torch.randn(n, 20, generator=g)
	    return x, x[:, :5].argmax(1)


	def loss(model, device, step):
	    x, y = batch(device, step)
	    return F.cross_entropy(model(x), y)


	def warm(optimizer, step):
	    """A rate by the number of the step."""
	    for g in optimizer.param_groups:
	        g["lr"] = 1e-2 * min(1, (step + 1) / 8)


	def kill_at(place):
	    """kill -9 of this process at the n-th call of a function, PLACE:N."""
	    place, n = place.split(":")
	    owner = {"replace": os, "send": ace.Pipe, "_fill": ace.Pipe}.get(
	        place, WAY)
	    old, calls = getattr(owner, place), []

	    def new(*args):
	        calls.append(1)
	        if len(calls) == int(n):
	            os.kill(os.getpid(), 9)
	        return old(*args)
	    setattr(owner, place, new)


	class fails:
	    """with fails(TEXT): what has to raise an ace.Error that says so."""

	    def __init__(self, text, status=None):
	        self.text, self.status = text, status

	    def __enter__(self):
	        return self

	    def __exit__(self, kind, e, _):
	        assert kind is ace.Error, (self.text, kind, e)
	        assert self.text in str(e), (self.text, str(e))
	        assert self.status in (None, e.status), (self.status, e.status)
	        self.error = str(e)
	        return True


	class Odd(nn.Module):
	    """Parameters of all kinds that can be sent."""

	    def __init__(self):
	        super().__init__()
	        self.b16 = nn.Parameter(torch.randn(7, 3).bfloat16())
	        self.f16 = nn.Parameter(torch.randn(9).half())
	        self.turned = nn.Parameter(torch.randn(6, 4).t())
	        self.last = nn.Parameter(torch.randn(2, 3, 4, 5).to(
	            memory_format=torch.channels_last))
	        self.one = nn.Parameter(torch.tensor(1.5))
	        self.none = nn.Parameter(torch.zeros(0, 4))
	        self.unused = nn.Parameter(torch.ones(3))
	        self.frozen = nn.Parameter(torch.ones(3), requires_grad=False)
	        self.a, self.b = nn.Linear(4, 4), nn.Linear(4, 4)
	        self.b.weight = self.a.weight

	    def forward(self, x):
	        return sum((p.float() * x).square().sum() for n, p in
	                   self.named_parameters() if n != "unused")


	class Wrapped(nn.Module):
	    """As torch.compile wraps a model (its OptimizedModule)."""

	    def __init__(self, model):
	        super().__init__()
	        self._orig_mod = model

	    def forward(self, *x):
	        return self._orig_mod(*x)


	def compiled(model):
	    """torch.compile where there is one, without making code."""
	    if hasattr(torch, "compile"):
	        return torch.compile(model, backend="eager")
	    return Wrapped(model)


	class Scaler:
	    """As torch.amp.GradScaler, which before 2.3 does nothing without CUDA."""

	    def __init__(self, init_scale=2.0 ** 16):
	        self._scale, self.found, self.unscaled = init_scale, False, False

	    def scale(self, loss):
	        return loss * self._scale

	    @torch.no_grad()
	    def unscale_(self, optimizer):
	        for group in optimizer.param_groups:
	            for p in group["params"]:
	                if p.grad is not None:
	                    p.grad.mul_(1 / self._scale)
	                    self.found |= not p.grad.isfinite().all().item()
	        self.unscaled = True

	    def step(self, optimizer):
	        if not self.unscaled:
	            self.unscale_(optimizer)
	        if not self.found:
	            optimizer.step()

	    def update(self):
	        self._scale *= 0.5 if self.found else 1.25
	        self.found = self.unscaled = False

	    def state_dict(self):
	        return {"scale": self._scale}

	    def load_state_dict(self, state):
	        self._scale = state["scale"]


	def scaler(scale):
	    return torch.amp.GradScaler("cpu", init_scale=scale, growth_interval=1) \
	        if hasattr(torch.amp, "GradScaler") else Scaler(scale)
	E
	cat >"$BATS_FILE_TMPDIR/train.py" <<-'E'
	"""train.py DEVICE ROUNDS [KEY=VALUE...]: a device of ace.Local, or of another
	class, WAY in the environment.  Keys: what the calls below ask for."""
	from common import *

	device, rounds, *more = sys.argv[1:]
	o = dict(m.split("=", 1) for m in more)


	class Fused(torch.optim.AdamW):
	    """Of the same name and numbers, with other roundings."""
	    def step(self, closure=None):
	        super().step()
	        with torch.no_grad():
	            for p in self.param_groups[0]["params"]:
	                p.mul_(1 + 2 ** -23)


	Fused.__name__ = "AdamW"
	if "die" in o:
	    kill_at(o["die"])
	torch.manual_seed(int(o.get("seed", 1)))
	model = nn.Sequential(mlp()) if "inside" in o else mlp()
	model.to(getattr(torch, o.get("type", "float32")))
	inner = (Fused if "fused" in o else torch.optim.AdamW)(
	    model.parameters(), lr=1e-2, foreach="foreach" in o)
	opts = dict(checkpoint=o.get("checkpoint", f"{device}.pt"),
	            patience=float(o.get("patience", 0)),
	            timeout=float(o["timeout"]) if "timeout" in o else None)
	if WAY is ace.Local:
	    opts.update(outer_rate=float(o.get("outer_rate", 0.7)),
	                outer_momentum=float(o.get("momentum", 0.5)))
	else:
	    opts.update(every=int(o.get("steps", 3)), schedule=lambda step: warm(inner, step))
	local = WAY(model, inner, o.get("through") or
	            through(device, o.get("code", "-c f32")), device, **opts)
	while local.round < int(rounds):
	    began = local.round
	    if o.get("wrong") == str(began):    # changes what devices share
	        for t in local.start if WAY is ace.Local else \
	                [m["exp_avg"] for m in local.kept["state"]]:
	            t.mul_(1 + 2 ** -20)
	        local.crc = None
	    for i in range(local.every or 3):
	        inner.zero_grad()
	        loss(model, device, (local.every or 3) * began + i).backward()
	        inner.step()
	    if WAY is ace.Local:
	        local.sync()
	    with open(f"{device}.log", "a") as f:
	        print(local.round, local.digest(), file=f)
	local.close()
	print(device, local.round, local.digest())
	E
}

setup() {
	cd "$BATS_TEST_TMPDIR" || return
	[ "$PYTHON" != none ] || skip "no torch here (Debian's python3-torch)"
}

teardown() {
	set +e
	for p in $(jobs -p); do
		kill -9 "$p" 2>/dev/null
	done
	true
}

py() { timeout "$HANG" "$PYTHON" "$@"; }
train() { py "$BATS_FILE_TMPDIR/train.py" "$@"; }

# cloud DEVICES STEPS [CODE [OPTION...]]: starts the cloud in the background.
cloud() {
	timeout "$HANG" ace-aggregate --spool spool --create --devices "$1" \
	    --rounds "$2" "${@:4}" --publish --sync none -q 3>&- |
	    timeout "$HANG" ace-step -S cloud ${3:--c f32} --sync none 3>&- |
	    timeout "$HANG" ace-recv --spool spool --publish --sync none 3>&-
}

# pair FILE [WORD...]: runs python FILE edge1 WORD..., and the same for edge2, with a cloud
# of two, and checks that both print the same.
pair() {
	py "$1" edge1 "${@:2}" >one 3>&- 2>err1 &
	py "$1" edge2 "${@:2}" >two 2>err2 || { cat err1 err2; false; }
	wait
	[ -s one ] || { cat err1; false; }
	same one two
}

# both ROUNDS: trains edge1 and edge2, whose output is in said1 and said2.
both() {
	train edge1 "$1" >said1 3>&- &
	train edge2 "$1" >said2
	wait
}

# undisturbed ROUNDS: makes a run of two devices in calm/, which nothing disturbs.
undisturbed() {
	mkdir calm
	cd calm || return
	cloud 2 "$1" 3>&- &
	both "$1"
	cd ..
}

# unharmed: checks that the result is as undisturbed.
unharmed() {
	cmp said1 calm/said1
	cmp said2 calm/said2
}
