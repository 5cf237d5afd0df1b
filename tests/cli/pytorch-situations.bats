# ace.join of examples/pytorch/ace_shards: the table of ace-pytorch(7), SITUATIONS, each
# row two devices and a cloud, and what a run does that is killed.
# bats file_tags=long,plain
load helper
patient
load pytorch

# table_py: the situations; each is a function of its device's number
table_py() {
	cat >table.py <<-'E'
	import contextlib
	import signal
	import subprocess
	import time
	from common import *

	ace = ace_shards
	ROWS = {}


	def row(wants="same", rounds=3):
	    """A situation that ends with the same model on both devices, or is refused with
	    a text on both."""
	    def add(f):
	        ROWS[f.__name__.replace("_", " ")] = f, wants, rounds
	        return f
	    return add


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


	def go(k, model, optimizer=None, loss=ce, step=None, train=None, **more):
	    """The loop of a user, who has added three lines."""
	    optimizer = optimizer or torch.optim.AdamW(model.parameters(), 1e-2)
	    n = 0
	    with ace.join(model, optimizer, "run", name=NAME,
	                  **{"every": 4, "timeout": 150, **more}) as run:
	        while not run.done:
	            optimizer.zero_grad()
	            l = loss(train or model, k, n)
	            l.backward() if torch.is_tensor(l) else None
	            (step or (lambda *_: optimizer.step()))(run, n)
	            n += 1
	            assert n < 100
	    return f"{run.round} {run.digest()}"


	@row()
	def local_steps(k):
	    said = go(k, mlp())
	    return said


	@row()
	def what_the_last_round_took(k):
	    def step(run, n):
	        o.step()
	        if run.round:
	            assert run.last["bytes"] > 100 and run.last["participants"] == 2, run.last
	            assert 0 < run.last["seconds"] < 200
	    m = mlp()
	    o = torch.optim.SGD(m.parameters(), .1)
	    return go(k, m, o, step=step)


	@row()
	def replayed_steps(k):
	    m = mlp()
	    said = go(k, m, mode="replay")
	    return said + str([p.sum().item() for p in m.parameters()])


	@row()
	def gradients(k):
	    m = mlp()
	    said = go(k, m, mode="gradients", every=1)
	    return said + str([p.sum().item() for p in m.parameters()])


	@row()
	def gradients_that_are_clipped(k):
	    m = mlp()
	    o = torch.optim.SGD(m.parameters(), .1, momentum=.9)

	    def step(run, n):
	        run.sync()
	        before = [p.grad.clone() for p in m.parameters()]
	        nn.utils.clip_grad_norm_(m.parameters(), 1e-2)
	        assert not torch.equal(before[0], m[0].weight.grad)
	        o.step()
	    return go(k, m, o, step=step, mode="gradients", every=1)


	@row()
	def a_GradScaler_with_gradients(k):
	    m = mlp()
	    o = torch.optim.SGD(m.parameters(), .1)
	    s = scaler(2. ** 12)

	    def loss(m, k, n):
	        return s.scale(ce(m, k, n) * (float("inf") if k == n == 1 else 1))

	    def step(run, n):
	        s.unscale_(o)
	        if not all(p.grad.isfinite().all() for p in m.parameters()):
	            o.zero_grad()
	        run.sync()
	        o.step()
	        s.update()
	    return go(k, m, o, loss, step, mode="gradients", every=1)


	@row()
	def a_GradScaler_with_local_steps(k):
	    m = mlp()
	    o = torch.optim.SGD(m.parameters(), .1)
	    s = scaler(2. ** 12)

	    def step(run, n):
	        s.step(o)
	        s.update()
	    return go(k, m, o, lambda *a: s.scale(ce(*a)), step, state={"scaler": s})


	@row()
	def a_scheduler_of_torch(k):
	    m = mlp()
	    o = torch.optim.SGD(m.parameters(), .1)
	    late = []

	    def step(run, n):
	        if not late:            # made after join, whose step it counts
	            late.append(torch.optim.lr_scheduler.CosineAnnealingLR(o, 20))
	        o.step()
	        late[0].step()
	    return go(k, m, o, step=step)


	@row("the options of the optimiser were changed between two steps")
	def a_scheduler_of_torch_with_replay(k):
	    m = mlp()
	    o = torch.optim.SGD(m.parameters(), .1)
	    s = torch.optim.lr_scheduler.ExponentialLR(o, .9)
	    return go(k, m, o, step=lambda *_: (o.step(), s.step()), mode="replay")


	@row()
	def a_schedule_by_the_number_of_the_step(k):
	    m = mlp()
	    o = torch.optim.AdamW(m.parameters(), 1e-2)
	    return go(k, m, o, mode="replay", schedule=lambda step: warm(o, step))


	def net():
	    return nn.Sequential(nn.Linear(20, 30), nn.BatchNorm1d(30), nn.ReLU(),
	                         nn.Linear(30, 5))


	def shifted(model, k, n):
	    x, y = data(k, n)
	    return F.cross_entropy(model(x * (k + 1) + 3 * k), y)


	def statistics(m):
	    return [b.tolist() for b in m.buffers()]


	@row()
	def BatchNorm_with_averaged_statistics(k):
	    m = net()
	    said = go(k, m, loss=shifted, buffers="mean")
	    assert m[1].running_var.min() >= 0 and m[1].running_mean.abs().sum() > 0.1
	    return said + str(statistics(m))


	@row()
	def BatchNorm_with_replay(k):
	    m = net()
	    said = go(k, m, loss=shifted, buffers="mean", mode="replay")
	    return said + str(statistics(m)[:2])


	@row()
	def BatchNorm_with_gradients(k):
	    m = net()
	    said = go(k, m, loss=shifted, buffers="mean", mode="gradients", every=1)
	    return said + str(statistics(m)[:2])


	@row()
	def BatchNorm_with_statistics_of_its_own(k):
	    m = net()
	    said = go(k, m, loss=shifted)
	    with open("../own", "a") as f:
	        print(statistics(m)[:2], file=f)
	    return said


	class LoRA(nn.Module):
	    def __init__(self, base):
	        super().__init__()
	        self.base = base.requires_grad_(False)
	        self.a = nn.Parameter(torch.randn(4, base.in_features) / 8)
	        self.b = nn.Parameter(torch.zeros(base.out_features, 4))

	    def forward(self, x):
	        return self.base(x) + x @ self.a.T @ self.b.T


	@row()
	def LoRA_whose_base_is_not_read_again(k):
	    m = nn.Sequential(LoRA(nn.Linear(20, 64)), nn.ReLU(), LoRA(nn.Linear(64, 5)))
	    read, bits = [], algorithms._sum

	    def spy(t):
	        read.append(t.numel())
	        return bits(t)

	    def step(run, n):
	        algorithms._sum = spy
	        o.step()
	    o = torch.optim.AdamW([p for p in m.parameters() if p.requires_grad], 1e-2)
	    said = go(k, m, o, step=step)
	    assert read and max(read) <= 256, read
	    return said


	@row()
	def frozen_integers_and_floats_of_64_bits(k):
	    m = mlp()
	    for kind in torch.int64, torch.bool, torch.float64, torch.complex64, \
	            getattr(torch, "float8_e4m3fn", torch.uint8):
	        m.register_parameter(str(kind).split(".")[1], nn.Parameter(
	            torch.ones(4).to(kind), requires_grad=False))
	    return go(k, m)


	def typed(kind, value=1.0):
	    m = mlp()
	    m.odd = nn.Parameter(torch.full((3,), value).to(kind))
	    return m


	@row("parameter 'odd' is of type torch.float64, not f32, f16 or bf16")
	def trained_parameters_of_float64(k):
	    return go(k, typed(torch.float64))


	@row("parameter 'odd' is of type torch.complex64")
	def trained_complex_parameters(k):
	    return go(k, typed(torch.complex64))


	@row("is of type torch.float8_e4m3fn" if hasattr(torch, "float8_e4m3fn") else "same")
	def trained_float8_parameters(k):
	    if hasattr(torch, "float8_e4m3fn"):
	        return go(k, typed(torch.float8_e4m3fn))
	    return go(k, mlp())


	@row()
	def bfloat16(k):
	    return go(k, mlp().bfloat16(), loss=lambda m, k, n: F.cross_entropy(
	        m(data(k, n)[0].bfloat16()).float(), data(k, n)[1]))


	@row()
	def autocast(k):
	    def loss(m, k, n):
	        with torch.autocast("cpu", dtype=torch.bfloat16):
	            return ce(m, k, n)
	    return go(k, mlp(), loss=loss)


	@row()
	def a_compiled_model_on_one_device(k):
	    m = mlp()
	    c = compiled(m) if k == 1 else m
	    return go(k, c, torch.optim.AdamW(m.parameters(), 1e-2))


	@row()
	def tied_weights(k):
	    m = nn.Sequential(nn.Linear(20, 20), nn.Linear(20, 20), nn.Linear(20, 5))
	    m[1].weight = m[0].weight
	    return go(k, m)


	@row()
	def accumulated_gradients(k):
	    return go(k, mlp(), loss=lambda m, k, n: sum(
	        ce(m, k, 3 * n + i) for i in range(3)) / 3)


	@row()
	def LBFGS_with_local_steps(k):
	    m = mlp()
	    o = torch.optim.LBFGS(m.parameters(), .3, max_iter=2)

	    def step(run, n):
	        def closure():
	            o.zero_grad()
	            l = ce(m, k, n)
	            l.backward()
	            return l
	        o.step(closure)
	    return go(k, m, o, step=step)


	@row("the optimiser takes a step with a closure, which only mode=\"local\" can")
	def LBFGS_with_gradients(k):
	    m = mlp()
	    o = torch.optim.LBFGS(m.parameters(), .3)
	    return go(k, m, o, step=lambda *_: o.step(lambda: ce(m, k, 0)), mode="gradients",
	              every=1)


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


	@row("the optimiser (Free) keeps weights of its own (its ")
	def a_schedule_free_optimiser(k):
	    m = mlp()
	    return go(k, m, Free(m.parameters()))


	@row()
	def a_schedule_free_optimiser_with_gradients(k):
	    m = mlp()
	    return go(k, m, Free(m.parameters()), mode="gradients", every=1)


	@row()
	def a_schedule_free_optimiser_with_replay(k):
	    m = mlp()
	    return go(k, m, Free(m.parameters()), mode="replay")


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


	@row("the optimiser (Slow) keeps weights of its own (its first step after")
	def a_running_mean_in_the_step(k):
	    m = mlp()
	    return go(k, m, Slow(m.parameters(), .3), every=10)


	@row()
	def momentum_and_a_high_rate(k):
	    m = mlp()
	    return go(k, m, torch.optim.SGD(m.parameters(), .3, momentum=.9))


	@row()
	def averaged_SGD_whose_mean_is_not_written_back(k):
	    m = mlp()
	    return go(k, m, torch.optim.ASGD(m.parameters(), 1e-1))


	@row("the gradient of '0.weight' is sparse")
	def sparse_gradients(k):
	    m = nn.Sequential(nn.Embedding(10, 20, sparse=True), nn.Flatten(), nn.Linear(20, 5))
	    return go(k, m, torch.optim.SGD(m.parameters(), .1), lambda m, k, n: F.cross_entropy(
	        m(torch.tensor([[1], [2]])), torch.tensor([0, 1])), mode="gradients", every=1)


	@row("has no values yet")
	def a_lazy_model(k):
	    return go(k, nn.Sequential(nn.LazyLinear(5)), torch.optim.SGD(
	        [nn.Parameter(torch.ones(1))], .1))


	@row("rounds=9 here, and the cloud says 3: leave it out")
	def other_rounds_than_the_cloud_says(k):
	    return go(k, mlp(), rounds=9)


	@row("--bits 2 here, and the run in ")
	def other_bits_than_the_cloud_says(k):
	    return go(k, mlp(), bits=2)


	@row()
	def a_cell_of_a_notebook_that_is_run_again(k):
	    def cell(break_):
	        torch.manual_seed(1)
	        m = mlp()
	        o = torch.optim.SGD(m.parameters(), .1)
	        run = ace.join(m, o, "run", name=NAME, every=2)
	        while not run.done:
	            o.zero_grad()
	            ce(m, k, run.round).backward()
	            o.step()
	            if run.round == break_:
	                return run
	        return run
	    first = cell(1)
	    run = cell(-1)
	    with fails("another call with the same folder, state or checkpoint took its place"):
	        first.sync()
	    before = run.digest()
	    run.optimizer.step()        # after the last round: a step as ever
	    run.close()
	    run.close()
	    return f"{run.round} {before}"


	@row()
	def the_block_fails_and_the_script_is_run_again(k):
	    with contextlib.suppress(KeyError):
	        go(k, mlp(), step=lambda run, n: {}["a mistake"] if run.round == 1 else
	           torch.optim.SGD.step(run.optimizer) if n < 0 else run.optimizer.step())
	    m = mlp()
	    return go(k, m)


	@row()
	def a_model_of_a_checkpoint(k):
	    m = net()
	    said = go(k, m, loss=shifted, buffers="mean", save_every=2)
	    got = ace.model(f"ace-{NAME}/model.pt")
	    fresh = net()
	    fresh.load_state_dict(got)
	    assert all(torch.equal(a, b) for a, b in
	               zip(m.state_dict().values(), fresh.state_dict().values()))
	    # a file of another kind, and one that would run something
	    for bad in [1], {"start": os.system}:
	        torch.save(bad, f"{NAME}.bad")
	        with fails(f"'{NAME}.bad' is not a checkpoint of ace.join"):
	            ace.model(f"{NAME}.bad")
	    return said


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
	# statistics of one's own are other ones on each device
	[ "$(sort -u own | wc -l)" -eq 2 ]
	# the page has these rows, and no others
	sed 's/^ok //; s/ *$//' said | sort >have
	sed -n '/^\.Sh SITUATIONS/,/^\.Sh /p' "$ROOT/man/ace-pytorch.7" |
	    sed -n 's/^\.It \(.*\) Ta .*/\1/p' | sed '/^Em /d' | sort >page
	diff page have
}

# trainer: resumed.py NAME ROUND KEYWORDS, killed in that round
trainer() {
	cat >resumed.py <<-'E'
	from common import *

	ace = ace_shards
	name, die, more = sys.argv[1], int(sys.argv[2]), eval(f"dict({sys.argv[3]})")
	torch.manual_seed(1)
	m = nn.Sequential(nn.Linear(20, 30), nn.BatchNorm1d(30), nn.ReLU(), nn.Linear(30, 5))
	m.to(getattr(torch, os.environ.get("TYPE", "float32")))
	o = torch.optim.AdamW(m.parameters(), lr=1e-2)
	print("what the script prints goes elsewhere")
	with ace.join(m, o, "run", name=name, **{"every": 3, **more}) as run:
	    n = run.every * run.round
	    while not run.done:
	        if run.round == die:
	            os.kill(os.getpid(), 9)
	        o.zero_grad()
	        loss(m, name, n).backward()
	        o.step()
	        n += 1
	with open(f"{name}.end", "w") as f:
	    print(run.round, run.digest(), [p.sum().item() for p in m.parameters()], file=f)
	E
}

@test "killed between two checkpoints: the rounds are done again with the averages that were kept" {
	trainer
	for how in '' 'mode="replay"' 'mode="gradients", every=1'; do
		for die in none 5; do
			rm -rf run ace-* ./*.end
			timeout "$HANG" ace-cloud run --devices 2 --rounds 8 --bits 8 -q 3>&- &
			wait_for eval 'test -e run/run'
			py resumed.py edge1 -1 "buffers='mean', $how" 3>&- &
			if [ $die = 5 ]; then
				exits 137 "$PYTHON" resumed.py edge2 5 "save_every=4, buffers='mean', $how"
				[ "$(cd ace-edge2 && echo model.pt.[0-9]*)" = model.pt.4 ]
			fi
			py resumed.py edge2 -1 "save_every=4, buffers='mean', $how" 2>err
			[ $die = none ] || grep -q 'rounds 4 to 4 are done again, with the averages' err
			wait
			same edge1.end edge2.end
			[ -z "$(ls ace-edge2/model.pt.[0-9]* 2>/dev/null)" ]
			[ $die = none ] || same edge1.end calm
			cp edge1.end calm
		done
	done
}

@test "the same script as COMMAND of ace edge: from the first round, and late" {
	trainer
	timeout "$HANG" ace-cloud run --devices 2 --rounds 6 --bits 8 --quorum 1 --deadline 0.2s -q 3>&- &
	wait_for eval 'test -e run/run'
	timeout "$HANG" ace-edge run --name edge1 -- "$PYTHON" resumed.py edge1 -1 '' >out1 2>err1 3>&- &
	wait_for eval 'test -e run/spool/train-*/2'
	timeout "$HANG" ace-edge run --name edge2 -- "$PYTHON" resumed.py edge2 -1 '' >out2 2>err2 3>&- ||
	    { cat err1 err2; false; }
	wait
	same edge1.end edge2.end
	grep -q 'went by without this device: it goes on at round' err2
	grep -qx 'what the script prints goes elsewhere' err1
	[ ! -s out1 ]
	[ ! -s out2 ]
}

@test "a device of another type than the others': refused, and the same line with theirs goes on" {
	trainer
	timeout "$HANG" ace-cloud run --devices 2 --rounds 3 --bits 8 -q 3>&- &
	wait_for eval 'test -e run/run'
	py resumed.py edge1 -1 '' 3>&- 2>err1 &
	wait_for eval 'test -e run/spool/train-*/0/edge1.aceg'
	TYPE=bfloat16 exits 1 timeout 300 "$PYTHON" resumed.py edge2 -1 ''
	says "ace_shards.Error: .*mismatch: a shard of run 'train-.* began with another model or type"
	exits 0 py resumed.py edge2 -1 ''
	wait
	same edge1.end edge2.end
}
