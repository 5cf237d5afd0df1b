# ace.join of examples/pytorch/ace_shards: the table of ace-pytorch(7), SITUATIONS, one row for
# two devices and a cloud each; and runs that are killed.
# bats file_tags=long,plain
load helper
patient
load pytorch

# table_py: write the situations, each a function of its device's number
table_py() {
	cat >table.py <<-'E'
	import contextlib
	import gc
	import signal
	import subprocess
	import time
	from common import *

	ace = ace_shards
	ROWS = {}


	def row(name, f, wants="same", rounds=3):
	    """A situation, a function of the device's number, that ends with the same model
	    on both devices, or is refused with a text on both."""
	    ROWS[name] = f, wants, rounds


	def device(k, d, rounds):
	    """In a child: what a device prints last."""
	    signal.alarm(int(os.environ.get("ROW", 200)))
	    f = ROWS[d][0]
	    global NAME
	    NAME = f"edge{k}"
	    torch.manual_seed(1)
	    try:
	        said = f(k)
	    except ace.Error as e:
	        said = f"refused: {e}"
	    except BaseException as e:
	        import traceback
	        traceback.print_exc()
	        said = f"{type(e).__name__}: {e}"
	    with open(f"said{k}", "w") as out:
	        out.write(str(said))
	    os._exit(0)


	def happens(name, f, wants, rounds):
	    os.mkdir(name.replace(" ", "_"))
	    os.chdir(name.replace(" ", "_"))
	    cloud = subprocess.Popen(["ace-cloud", "run", "--devices", "2", "--rounds",
	                              str(rounds), "--bits", "8", "-q"])
	    try:
	        end = time.monotonic() + 100
	        while not os.path.exists("run/run") and time.monotonic() < end:
	            time.sleep(0.02)
	        pids = []
	        for k in 1, 2:
	            pids.append(os.fork())
	            if not pids[-1]:
	                err = os.open(f"err{k}", os.O_CREAT | os.O_WRONLY, 0o600)
	                os.dup2(err, 2)
	                os.dup2(err, 1)
	                device(k, name, rounds)
	        for pid in pids:
	            os.waitpid(pid, 0)
	    finally:
	        cloud.terminate()
	        cloud.wait()
	    a, b = ((open(f"said{k}").read() if os.path.exists(f"said{k}") else
	             "hangs: " + open(f"err{k}").read()[-300:]) for k in (1, 2))
	    os.chdir("..")
	    if wants == "same":
	        good = a == b and a.startswith(f"{rounds} ")
	    else:
	        good = all(x.startswith("refused: ") and wants in x for x in (a, b))
	    print("ok" if good else "not ok", name, "" if good else f"\n  {a}\n  {b}",
	          flush=True)
	    return good


	def data(k, step, n=16):
	    g = torch.Generator().manual_seed(1000 * k + step)
	    x = torch.randn(n, 20, generator=g)
	    return x, x[:, :5].argmax(1)


	def ce(model, k, step):
	    x, y = data(k, step)
	    return F.cross_entropy(model(x).float(), y)


	def go(k, model=None, optimizer=None, loss=ce, step=None, then=None, **more):
	    """The loop of a user, who has added three lines."""
	    model = model or mlp()
	    optimizer = (optimizer or adam)([p for p in model.parameters() if p.requires_grad])
	    if more.get("schedule"):
	        more["schedule"] = lambda step: warm(optimizer, step)
	    n, more = 0, {"every": 4, "timeout": 150, **more}
	    with ace.join(model, optimizer, "run", name=NAME, **more) as run:
	        while not run.done:
	            optimizer.zero_grad()
	            l = loss(model, k, n)
	            l.backward() if torch.is_tensor(l) else None
	            step(run, n) if step else optimizer.step()
	            n += 1
	            assert n < 100
	    return (f"{run.round} {run.digest()} {then(model) if then else ''} "
	            f"{[p.sum().item() for p in model.parameters() if p.requires_grad]}")


	def adam(ps):
	    return torch.optim.AdamW(ps, 1e-2)


	def sgd(ps, rate=.1, **more):
	    return torch.optim.SGD(ps, rate, **more)


	GRADIENTS = {"mode": "gradients", "every": 1}
	row("local steps", lambda k: go(k))
	row("replayed steps", lambda k: go(k, mode="replay"))
	row("gradients", lambda k: go(k, **GRADIENTS))


	def last(run, n):
	    run.optimizer.step()
	    if run.round:
	        assert run.last["bytes"] > 100 and run.last["participants"] == 2, run.last
	        assert 0 < run.last["seconds"] < 200


	row("what the last round took", lambda k: go(k, step=last))


	def weighs(run, n):
	    """After a round the file that ace-step reads has what Adam kept."""
	    run.optimizer.step()
	    if run.round and n % 4 == 3 and run.round < 3:
	        said = subprocess.run(["ace-export", f"ace-{NAME}/state/moment"],
	                              stdout=subprocess.PIPE, check=True).stdout
	        got = torch.frombuffer(bytearray(said[8 + int.from_bytes(said[:8], "little"):]),
	                               dtype=torch.float32)
	        want = torch.cat([run.optimizer.state[p]["exp_avg_sq"].sqrt().flatten()
	                          for p in run.model.parameters()])
	        assert torch.allclose(got, want / want.max(), rtol=1e-5), (got, want)


	row("weights of Adam's second moments", lambda k: go(k, step=weighs, moment=True))
	row("weights of moments that SGD has not", lambda k: go(k, None, sgd, moment=True),
	    "the optimiser (SGD) keeps no mean squares of its gradients (exp_avg_sq)")


	def clips(run, n):
	    run.sync()
	    before = [p.grad.clone() for p in run.model.parameters()]
	    nn.utils.clip_grad_norm_(run.model.parameters(), 1e-2)
	    assert not torch.equal(before[0], run.model[0].weight.grad)
	    run.optimizer.step()


	row("gradients that are clipped", lambda k: go(k, step=clips, **GRADIENTS))


	def scaling(k, **more):
	    s = scaler(2. ** 12)

	    def loss(m, k, n):
	        return s.scale(ce(m, k, n) * (float("inf") if more and k == n == 1 else 1))

	    def step(run, n):
	        o = run.optimizer
	        if more:
	            s.unscale_(o)
	            if not all(p.grad.isfinite().all() for p in run.model.parameters()):
	                o.zero_grad()
	            run.sync()
	            o.step()
	        else:
	            s.step(o)
	        s.update()
	    return go(k, None, sgd, loss, step, **(more or {"state": {"scaler": s}}))


	row("a GradScaler with gradients", lambda k: scaling(k, **GRADIENTS))
	row("a GradScaler with local steps", scaling)


	def cosine(run, n):
	    if not n:               # made after join, and counts its steps
	        run.rate = torch.optim.lr_scheduler.CosineAnnealingLR(run.optimizer, 20)
	    run.optimizer.step()
	    run.rate.step()


	def falling(ps):
	    o = sgd(ps)
	    o.rate = torch.optim.lr_scheduler.ExponentialLR(o, .9)
	    return o


	row("a scheduler of torch", lambda k: go(k, step=cosine))
	row("a scheduler of torch with replay",
	    lambda k: go(k, None, falling, mode="replay", step=lambda run, n: (
	        run.optimizer.step(), run.optimizer.rate.step())),
	    "the options of the optimiser were changed between two steps")
	row("a schedule by the number of the step",
	    lambda k: go(k, mode="replay", schedule=True))


	def net():
	    return nn.Sequential(nn.Linear(20, 30), nn.BatchNorm1d(30), nn.ReLU(),
	                         nn.Linear(30, 5))


	def shifted(k, then, **more):
	    def loss(model, k, n):
	        x, y = data(k, n)
	        return F.cross_entropy(model(x * (k + 1) + 3 * k), y)
	    return go(k, net(), loss=loss, then=then, **more)


	def statistics(m):
	    assert m[1].running_var.min() >= 0 and m[1].running_mean.abs().sum() > 0.1
	    return [b.tolist() for b in m.buffers()][:2]


	def own(m):
	    with open("../own", "a") as f:
	        print(statistics(m), file=f)


	MEAN = {"then": statistics, "buffers": "mean"}
	row("BatchNorm with averaged statistics", lambda k: shifted(k, **MEAN))
	row("BatchNorm with replay", lambda k: shifted(k, mode="replay", **MEAN))
	row("BatchNorm with gradients", lambda k: shifted(k, **GRADIENTS, **MEAN))
	row("BatchNorm with statistics of its own", lambda k: shifted(k, own))


	class LoRA(nn.Module):
	    def __init__(self, base):
	        super().__init__()
	        self.base = base.requires_grad_(False)
	        self.a = nn.Parameter(torch.randn(4, base.in_features) / 8)
	        self.b = nn.Parameter(torch.zeros(base.out_features, 4))

	    def forward(self, x):
	        return self.base(x) + x @ self.a.T @ self.b.T


	def lora(k):
	    m = nn.Sequential(LoRA(nn.Linear(20, 64)), nn.ReLU(), LoRA(nn.Linear(64, 5)))
	    read, bits = [], algorithms._sum

	    def step(run, n):
	        algorithms._sum = lambda t: read.append(t.numel()) or bits(t)
	        run.optimizer.step()
	    said = go(k, m, step=step)
	    assert read and max(read) <= 256, read
	    return said


	row("LoRA whose base is not read again", lora)


	def frozen(k):
	    m = mlp()
	    for kind in torch.int64, torch.bool, torch.float64, torch.complex64, \
	            getattr(torch, "float8_e4m3fn", torch.uint8):
	        m.register_parameter(str(kind).split(".")[1], nn.Parameter(
	            torch.ones(4).to(kind), requires_grad=False))
	    return go(k, m)


	def typed(k, kind):
	    m = mlp()
	    m.odd = nn.Parameter(torch.full((3,), 1.).to(kind))
	    return go(k, m)


	row("frozen integers and floats of 64 bits", frozen)
	row("trained parameters of float64", lambda k: typed(k, torch.float64),
	    "parameter 'odd' is of type torch.float64, not f32, f16 or bf16")
	row("trained complex parameters", lambda k: typed(k, torch.complex64),
	    "parameter 'odd' is of type torch.complex64")
	# a torch without the type has nothing to refuse
	row("trained float8 parameters",
	    lambda k: typed(k, getattr(torch, "float8_e4m3fn", torch.float64)),
	    "parameter 'odd' is of type torch.float")


	def tied(k):
	    m = nn.Sequential(nn.Linear(20, 20), nn.Linear(20, 20), nn.Linear(20, 5))
	    m[1].weight = m[0].weight
	    return go(k, m)


	def autocast(m, k, n):
	    with torch.autocast("cpu", dtype=torch.bfloat16):
	        return ce(m, k, n)


	row("bfloat16", lambda k: go(k, mlp().bfloat16(), loss=lambda m, k, n: F.cross_entropy(
	    m(data(k, n)[0].bfloat16()).float(), data(k, n)[1])))
	row("autocast", lambda k: go(k, loss=autocast))
	row("a compiled model on one device",
	    lambda k: go(k, compiled(mlp()) if k == 1 else mlp()))
	row("tied weights", tied)
	row("accumulated gradients", lambda k: go(k, loss=lambda m, k, n: sum(
	    ce(m, k, 3 * n + i) for i in range(3)) / 3))


	def lbfgs(ps):
	    return torch.optim.LBFGS(ps, .3, max_iter=2)


	def closing(run, n):
	    def closure():
	        run.optimizer.zero_grad()
	        l = ce(run.model, int(NAME[-1]), n)
	        l.backward()
	        return l
	    run.optimizer.step(closure)


	row("LBFGS with local steps", lambda k: go(k, None, lbfgs, step=closing))
	row("LBFGS with gradients", lambda k: go(k, None, lbfgs, step=closing, **GRADIENTS),
	    "the optimiser takes a step with a closure, which only mode=\"local\" can")


	class Free(torch.optim.Optimizer):
	    """Schedule-free: z is in its state, and the parameters are made of it."""
	    def __init__(self, ps):
	        super().__init__(ps, dict(lr=.3, k=0))

	    @torch.no_grad()
	    def step(self, closure=None):
	        for g in self.param_groups:
	            g["k"] += 1
	            for p in g["params"]:
	                s = self.state[p]
	                z = s.setdefault("z", p.detach().clone())
	                x = s.setdefault("x", p.detach().clone())
	                z.add_(p.grad, alpha=-g["lr"])
	                x.lerp_(z, 1 / g["k"])
	                p.copy_(x.lerp(z, .1))


	class Slow(torch.optim.SGD):
	    """A running mean that each step writes back, kept nowhere that can be seen."""
	    @torch.no_grad()
	    def step(self, closure=None):
	        ps = [p for g in self.param_groups for p in g["params"]]
	        if not hasattr(self, "own"):
	            self.own = [p.detach().clone() for p in ps]
	        super().step()
	        for p, o in zip(ps, self.own):
	            p.copy_(o.lerp_(p, .1))


	row("a schedule free optimiser", lambda k: go(k, None, Free),
	    "the optimiser (Free) keeps weights of its own (its ")
	row("a schedule free optimiser with gradients", lambda k: go(k, None, Free, **GRADIENTS))
	row("a schedule free optimiser with replay", lambda k: go(k, None, Free, mode="replay"))
	row("a running mean in the step", lambda k: go(k, None, lambda ps: Slow(ps, .3), every=10),
	    "the optimiser (Slow) keeps weights of its own (its first step after")
	row("momentum and a high rate",
	    lambda k: go(k, None, lambda ps: sgd(ps, .3, momentum=.9)))
	row("averaged SGD whose mean is not written back",
	    lambda k: go(k, None, lambda ps: torch.optim.ASGD(ps, 1e-1)))
	row("sparse gradients", lambda k: go(
	    k, nn.Sequential(nn.Embedding(10, 20, sparse=True), nn.Flatten(), nn.Linear(20, 5)),
	    sgd, lambda m, k, n: F.cross_entropy(m(torch.tensor([[1], [2]])),
	                                         torch.tensor([0, 1])), **GRADIENTS),
	    "the gradient of '0.weight' is sparse")
	row("a lazy model", lambda k: go(k, nn.Sequential(nn.LazyLinear(5)), lambda _: sgd(
	    [nn.Parameter(torch.ones(1))])), "has no values yet")
	row("other rounds than the cloud says", lambda k: go(k, rounds=9),
	    "rounds=9 here, and the cloud says 3: leave it out")
	row("other bits than the cloud says", lambda k: go(k, bits=2), "--bits 2 differs from the run in ")
	row("rounds below 1", lambda k: go(k, rounds=-1), "rounds is a whole number from 1, not -1")


	def notebook(k):
	    def cell(breaks):
	        torch.manual_seed(1)
	        m = mlp()
	        o = sgd(m.parameters())
	        run = ace.join(m, o, "run", name=NAME, every=2)
	        while not run.done and run.round != breaks:
	            o.zero_grad()
	            ce(m, k, run.round).backward()
	            o.step()
	        return run
	    first = cell(1)
	    run = cell(-1)
	    with fails("another call with the same folder, state or checkpoint took its place"):
	        first.sync()
	    before = run.digest()
	    run.optimizer.step()        # after the last round, step() is a normal step
	    run.close()
	    run.close()
	    cell(-1)                    # the run is dropped, and its programs end
	    gc.collect()
	    assert not os.popen(f"ps -o pid= --ppid {os.getpid()}").read().split()[:-1]
	    return f"{run.round} {before}"


	def mistaken(k):
	    with contextlib.suppress(KeyError):
	        go(k, step=lambda run, n: {}["a mistake"] if run.round == 1 else
	           run.optimizer.step())
	    return go(k)


	def whole(k):
	    def then(m):
	        fresh = net()
	        fresh.load_state_dict(ace.model(f"ace-{NAME}/model.pt"))
	        return all(torch.equal(a, b) for a, b in
	                   zip(m.state_dict().values(), fresh.state_dict().values()))
	    said = shifted(k, then, buffers="mean", save_every=2)
	    assert " True " in said
	    # a file of another kind, and one that would run code
	    for bad in [1], {"start": os.system}:
	        torch.save(bad, f"{NAME}.bad")
	        with fails(f"'{NAME}.bad' is not a checkpoint of ace.join"):
	            ace.model(f"{NAME}.bad")
	    return said


	row("a cell of a notebook that is run again", notebook)
	row("the block fails and the script is run again", mistaken)
	row("a model of a checkpoint", whole)


	if __name__ == "__main__":
	    ok = [happens(name, *r) for name, r in ROWS.items()
	          if not sys.argv[1:] or name in sys.argv[1:]]
	    sys.exit(not all(ok))
	E
}

@test "ace-pytorch(7), SITUATIONS: each row is what happens" {
	table_py
	py table.py >said 2>err || { cat said err; false; }
	sed 's/^/# /' said >&3
	# local statistics differ between the devices
	[ "$(sort -u own | wc -l)" -eq 2 ]
	# the page has exactly these rows
	sed 's/^ok //; s/ *$//' said | sort >have
	sed -n '/^\.Sh SITUATIONS/,/^\.Sh /p' "$ROOT/man/ace-pytorch.7" |
	    sed -n '/^\.It$/{n;p;}' | sort >page
	diff page have
}

# starts [OPTION...]: a cloud of two devices in the folder run
starts() {
	timeout "$HANG" ace-cloud run --devices 2 --bits 8 -q "$@" 3>&- &
	wait_for test -e run/run
}

# as_command K: resumed.py as COMMAND of ace edge, which is edgeK and writes outK and errK
as_command() {
	timeout "$HANG" ace-edge run --name edge$1 -- "$PYTHON" resumed.py edge$1 -1 '' \
	    >out$1 2>err$1 3>&-
}

# trainer: write resumed.py NAME ROUND KEYWORDS, which is killed in that round
trainer() {
	cat >resumed.py <<-'E'
	import time
	from common import *

	ace = ace_shards
	name, die, more = sys.argv[1], int(sys.argv[2]), eval(f"dict({sys.argv[3]})")
	torch.manual_seed(1)
	m = nn.Sequential(nn.Linear(20, 30), nn.BatchNorm1d(30), nn.ReLU(), nn.Linear(30, 5))
	o = torch.optim.AdamW(m.parameters(), lr=1e-2)
	print("what the script prints goes elsewhere")
	with ace.join(m, o, "run", name=name, **{"every": 3, **more}) as run:
	    n = run.every * run.round
	    while not run.done:
	        if run.round == die:
	            os.kill(os.getpid(), 9)
	        while "LATE" in os.environ and not os.path.exists("run/spool/3"):
	            open("here", "w").close()
	            time.sleep(0.1)
	        o.zero_grad()
	        loss(m, name, n).backward()
	        o.step()
	        n += 1
	if "ACE_NAME" in os.environ and (run.last or name == "edge1"):  # ace-edge tells them
	    assert min(run.last[k] for k in ("bytes", "received")) > 99, run.last
	    assert run.last["participants"] in (1, 2), run.last
	with open(f"{name}.end", "w") as f:
	    print(run.round, run.digest(), [p.sum().item() for p in m.parameters()], file=f)
	E
}

@test "killed between two checkpoints: the rounds are done again with the averages that were kept" {
	trainer
	for how in '' 'mode="replay"' 'mode="gradients", every=1'; do
		for die in none 1 5; do
			rm -rf run ace-* ./*.end
			starts --rounds 8
			py resumed.py edge1 -1 "buffers='mean', $how" 3>&- &
			if [ $die != none ]; then
				exits 137 "$PYTHON" resumed.py edge2 $die "save_every=4, buffers='mean', $how"
				[ "$(cd ace-edge2 && echo model.pt.[0-9]*)" = model.pt.$die ]
			fi
			py resumed.py edge2 -1 "save_every=4, buffers='mean', $how" 2>err
			[ $die = none ] || grep -q "rounds $die to $die are done again, with the averages" err
			wait
			same edge1.end edge2.end
			[ -z "$(ls ace-edge2/model.pt.[0-9]* 2>/dev/null)" ]
			[ $die = none ] || same edge1.end calm
			cp edge1.end calm
		done
	done
}

@test "the same script as COMMAND of ace edge: from the first round, late, and late in the middle" {
	trainer
	starts --rounds 6 --quorum 1 --deadline 0.2s
	as_command 1 &
	wait_for eval 'test -e run/spool/2'
	as_command 2 || { cat err1 err2; false; }
	wait
	same edge1.end edge2.end
	grep -q 'went by without this device: it goes on at round' err2
	grep -qx 'what the script prints goes elsewhere' err1
	[ ! -s out1 ]
	[ ! -s out2 ]
	rm -rf run ace-* ./*.end
	starts --rounds 6 --quorum 1 --deadline 0.2s
	LATE=1 as_command 2 &
	wait_for test -e here
	as_command 1
	wait $! || { cat err2; false; }
	same edge1.end edge2.end
	grep -q 'round 1 closed before this device.s shard arrived' err2
	grep -q 'rounds 2 to [3-6] went by without this device' err2
}

@test "moment=True: a layer with large gradients gets more of the bits, from the second round on" {
	cat >moment.py <<-'E'
	from common import *

	ace = ace_shards
	# gradients that differ a hundredfold, and steps by Adam that do not
	m = nn.ParameterDict({n: nn.Parameter(torch.randn(64, 64)) for n in ("large", "small")})
	o = torch.optim.AdamW(m.parameters(), 1e-2)
	with ace.join(m, o, sys.argv[1], dir=f"ace-{sys.argv[1]}", name="edge1", every=4,
	              moment=sys.argv[1] == "moment") as run:
	    while not run.done:
	        o.zero_grad()
	        x, y = torch.randn(2, 32, 64)
	        (x @ (m["large"] + m["small"] / 100) - y).square().sum().backward()
	        o.step()
	E
	for how in plain moment; do
		timeout "$HANG" ace-cloud $how --devices 1 --rounds 2 --bits 2 -q 3>&- &
		wait_for eval "test -e $how/run"
		py moment.py $how
		wait
		for round in 0 1; do
			ace-inspect $how/spool/$round/edge1.aceg |
			    awk '$1 == "large" { large = $6 } $1 == "small" { print large / $6 }'
		done >$how.shares
	done
	# moments are known after the first round
	paste -d' ' plain.shares moment.shares | tee shares
	awk 'NR == 1 && $1 != $2 || NR == 2 && !($1 < 1.2 && $2 > 2) { exit 1 }' shares
}
