import contextlib
import gc
import glob
import re
import signal
import subprocess
import time
from common import *

ace = ace_shards
PAGE, OTHERS = [], []


class Row:
    """A situation.  f takes the device's number, 1 or 2.  Both devices end with the same
    model if wants is "same"; otherwise they are refused with the text wants."""

    def __init__(self, name, f, wants="same", rounds=3, bits=8, kills=(), tells=(),
                 same=()):
        self.name, self.f, self.wants, self.rounds = name, f, wants, rounds
        self.bits = bits        # bits per value
        self.kills = kills      # places at which device 1 is killed; it is then started again
        self.tells = tells      # messages of device 1
        self.same = same        # files that are as in a run without kills


def row(*args, **more):
    """Add a row of SITUATIONS in ace-pytorch(7)."""
    PAGE.append(Row(*args, **more))


def other(*args, **more):
    """Add a row that is not on the page."""
    OTHERS.append(Row(*args, **more))


def start(row, k, kill=None):
    """Start device k in a child, which writes its result to the file saidK."""
    pid = os.fork()
    if pid:
        return pid
    err = os.open(f"err{k}", os.O_CREAT | os.O_WRONLY | os.O_APPEND, 0o600)
    os.dup2(err, 2)
    os.dup2(err, 1)
    signal.alarm(200 * (1 + len(row.kills)))
    global NAME
    NAME = f"edge{k}"
    torch.manual_seed(1)
    if kill:
        kill_at(kill)
    try:
        said = row.f(k)
    except ace.Error as e:
        said = f"refused: {e}"
    except BaseException as e:
        import traceback
        traceback.print_exc()
        said = f"{type(e).__name__}: {e}"
    with open(f"said{k}", "w") as out:
        out.write(str(said))
    os._exit(0)


def read(name):
    with open(name) as f:
        return f.read()


def run(row, folder, kills=()):
    """Run the row with its own cloud; return the results of the devices."""
    os.mkdir(folder)
    os.chdir(folder)
    cloud = subprocess.Popen(["ace-cloud", "run", "--devices", "2", "--rounds",
                              str(row.rounds), "--bits", str(row.bits), "-q"])
    missing = []
    try:
        end = time.monotonic() + 100
        while not os.path.exists("run/run") and time.monotonic() < end:
            time.sleep(0.02)
        second = start(row, 2)
        for place in kills:
            if os.waitpid(start(row, 1, place), 0)[1] != signal.SIGKILL:
                missing.append(f"not killed: {place}")
        for pid in start(row, 1), second:
            os.waitpid(pid, 0)
    finally:
        cloud.terminate()
        cloud.wait()
    said = [read(f"said{k}") if os.path.exists(f"said{k}") else
            "hangs: " + read(f"err{k}")[-300:] for k in (1, 2)]
    said += [read(f) for f in row.same if os.path.exists(f)]
    missing += [f"not said: {t}" for t in row.tells if kills and t not in read("err1")]
    os.chdir("..")
    return [*missing, *said]


def happens(row):
    folder = row.name.replace(" ", "_")
    said = run(row, folder, row.kills)
    if row.wants == "same":
        good = said[0] == said[1] and said[0].startswith(f"{row.rounds} ") and \
            len(said) == 2 + len(row.same)
        if good and row.kills:      # compare with a run without kills
            calm = run(row, folder + ".calm")
            good = calm == said
            said += calm
    else:
        good = all(x.startswith("refused: ") and row.wants in x for x in said)
    print("ok" if good else "not ok", row.name, "" if good else "\n  " + "\n  ".join(said),
          flush=True)
    return good


def data(k, step, n=16):
    g = torch.Generator().manual_seed(1000 * k + step)
    x = torch.randn(n, 20, generator=g)
    return x, x[:, :5].argmax(1)


def ce(model, k, step):
    x, y = data(k, step)
    return F.cross_entropy(model(x).float(), y)


def go(k, model=None, optimizer=None, loss=ce, step=None, then=None, until=None, **more):
    """A user's loop with the three added lines; until: the round in which it ends."""
    model = model or mlp()
    optimizer = (optimizer or adam)([p for p in model.parameters() if p.requires_grad])
    if more.get("schedule"):
        more["schedule"] = lambda step: warm(optimizer, step)
    more = {"every": 4, "timeout": 150, **more}
    with ace.join(model, optimizer, "run", name=NAME, **more) as run:
        n = more["every"] * run.round
        while not run.done and run.round != until:
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
row("local steps with replay", lambda k: go(k, mode="replay"))
row("every gradient averaged", lambda k: go(k, **GRADIENTS))


def last(run, n):
    run.optimizer.step()
    if run.round:
        assert run.last["bytes"] > 100 and run.last["participants"] == 2, run.last
        assert 0 < run.last["seconds"] < 200


row("the dict run.last", lambda k: go(k, step=last))


def weighs(run, n):
    """Check that ace-step's file has the roots of Adam's second moments, over their maximum."""
    run.optimizer.step()
    if run.round and n % 4 == 3 and run.round < 3:
        said = subprocess.run(["ace-export", f"ace-{NAME}/state/moment"],
                              stdout=subprocess.PIPE, check=True).stdout
        got = torch.frombuffer(bytearray(said[8 + int.from_bytes(said[:8], "little"):]),
                               dtype=torch.float32)
        want = torch.cat([run.optimizer.state[p]["exp_avg_sq"].sqrt().flatten()
                          for p in run.model.parameters()])
        assert torch.allclose(got, want / want.max(), rtol=1e-5), (got, want)


row("moment=True with Adam", lambda k: go(k, step=weighs, moment=True))
row("moment=True with SGD", lambda k: go(k, None, sgd, moment=True),
    "moment=True needs an optimiser with mean squared gradients (exp_avg_sq)")


def stored(m):
    kept = ace.model(f"ace-{NAME}/model.pt")
    assert all(torch.equal(x, kept[name]) for name, x in m.state_dict().items())


def clips(run, n):
    run.sync()
    before = [p.grad.clone() for p in run.model.parameters()]
    nn.utils.clip_grad_norm_(run.model.parameters(), 1e-2)
    assert not torch.equal(before[0], run.model[0].weight.grad)
    run.optimizer.step()


row("clipping with gradients", lambda k: go(k, step=clips, then=stored, **GRADIENTS))


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
    if not n:               # made after join, so that it counts run's steps
        run.rate = torch.optim.lr_scheduler.CosineAnnealingLR(run.optimizer, 20)
    run.optimizer.step()
    run.rate.step()


def falling(ps):
    o = sgd(ps)
    o.rate = torch.optim.lr_scheduler.ExponentialLR(o, .9)
    return o


row("a torch scheduler", lambda k: go(k, step=cosine))
row("a torch scheduler with replay",
    lambda k: go(k, None, falling, mode="replay", step=lambda run, n: (
        run.optimizer.step(), run.optimizer.rate.step())),
    "the optimiser's options were changed after ace.join or a step")
row("a schedule by step number",
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
row("BatchNorm with local statistics", lambda k: shifted(k, own))


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
    read, bits = [], tensors._sum

    def step(run, n):
        tensors._sum = lambda t: read.append(t.numel()) or bits(t)
        run.optimizer.step()
    said = go(k, m, step=step)
    assert read and max(read) <= 256, read
    return said


row("LoRA with a frozen base", lora)


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


row("frozen int64 and float64 parameters", frozen)
row("trained float64 parameters", lambda k: typed(k, torch.float64),
    "parameter 'odd' is of type torch.float64, not f32, f16 or bf16")
row("trained complex parameters", lambda k: typed(k, torch.complex64),
    "parameter 'odd' is of type torch.complex64")
# if torch lacks the type, another one is refused
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
row("a compiled model on one device", lambda k: wrapped(k, compiled))
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
    "the optimiser's step() was called with arguments, such as a closure: call it without them, or use mode=\"local\"")


class Free(torch.optim.Optimizer):
    """Schedule-free: the parameters are calculated from z, which is in the state."""
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
    """Each step writes a running mean that is hidden from the state."""
    @torch.no_grad()
    def step(self, closure=None):
        ps = [p for g in self.param_groups for p in g["params"]]
        if not hasattr(self, "own"):
            self.own = [p.detach().clone() for p in ps]
        super().step()
        for p, o in zip(ps, self.own):
            p.copy_(o.lerp_(p, .1))


row("a schedule free optimiser", lambda k: go(k, None, Free),
    "the optimiser (Free) undoes each average: its ")
row("a schedule free optimiser with gradients", lambda k: go(k, None, Free, **GRADIENTS))
row("a schedule free optimiser with replay", lambda k: go(k, None, Free, mode="replay"))
row("an optimiser with a running mean", lambda k: go(k, None, lambda ps: Slow(ps, .3), every=10),
    "the optimiser (Slow) undoes each average: its first step after")
row("momentum and a high learning rate",
    lambda k: go(k, None, lambda ps: sgd(ps, .3, momentum=.9)))
row("ASGD of torch",
    lambda k: go(k, None, lambda ps: torch.optim.ASGD(ps, 1e-1)))
row("sparse gradients", lambda k: go(
    k, nn.Sequential(nn.Embedding(10, 20, sparse=True), nn.Flatten(), nn.Linear(20, 5)),
    sgd, lambda m, k, n: F.cross_entropy(m(torch.tensor([[1], [2]])),
                                         torch.tensor([0, 1])), **GRADIENTS),
    "the gradient of parameter '0.weight' is sparse")
row("lazy modules", lambda k: go(k, nn.Sequential(nn.LazyLinear(5)), lambda _: sgd(
    [nn.Parameter(torch.ones(1))])), "has no values yet")
row("other rounds than the cloud's", lambda k: go(k, rounds=9),
    "rounds=9, but the cloud's run has 3: leave rounds= out")
row("other bits than the cloud's", lambda k: go(k, bits=0), "bits=0, but the cloud's run has 8: ")
row("rounds below 1", lambda k: go(k, rounds=-1), "rounds=-1: expected a whole number, 1 or more")


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
    assert f"{os.getcwd()}/run" in str(first.way.stages), first.way.stages
    run = cell(-1)
    with fails("a later ace.join with the same folder, state or checkpoint replaced this run"):
        first.sync()
    before = run.digest()
    run.sync()                  # after the last round, this does nothing
    run.optimizer.step()        # and step() is a normal step
    run.close()
    run.close()
    cell(-1)                    # drops the run, whose programs end
    gc.collect()
    assert not os.popen(f"ps -o pid= --ppid {os.getpid()}").read().split()[:-1]
    return f"{run.round} {before}"


def mistaken(k):
    with contextlib.suppress(KeyError):
        go(k, step=lambda run, n: {}["a mistake"] if run.round == 1 else
           run.optimizer.step())
    return go(k)


def saved(k):
    said = shifted(k, stored, buffers="mean", save_every=2)
    # a checkpoint of another kind, and one that would run code
    for bad in [1], {"start": os.system}:
        torch.save(bad, f"{NAME}.bad")
        with fails(f"'{NAME}.bad' cannot be read as a checkpoint of ace.join"):
            ace.model(f"{NAME}.bad")
    return said


row("a notebook cell that is run again", notebook)
row("a restart after an error in the block", mistaken)
row("the model of a checkpoint", saved)


def wrapped(k, how):
    """Device 1 begins with a wrapped model; device 2 continues with one from its checkpoint."""
    inner = mlp()
    go(k, how(inner) if k == 1 else inner, sgd, until=1)
    return go(k, inner if k == 1 else nn.DataParallel(compiled(inner)), sgd)


other("a model in DataParallel", lambda k: wrapped(k, nn.DataParallel))
other("a compiled model in DataParallel",
      lambda k: wrapped(k, lambda m: nn.DataParallel(compiled(m))))
other("compiled layers",
      lambda k: wrapped(k, lambda m: nn.Sequential(*(compiled(x) for x in m))))

# killed before a round is sent, when it is half sent, half read or half applied, in the
# middle of the steps of all devices, before the checkpoint is written or renamed, and at
# the beginning of the first round
other("killed anywhere, with local steps", lambda k: go(
    k, outer_rate=0.7, outer_momentum=0.5, every=3), rounds=12,
    kills="sync:1 send:1 send:8 _fill:3 _fill:10 _outer:3 _save:2 replace:2 sync:2".split())
other("killed anywhere, with replay", lambda k: go(k, mode="replay", every=3, schedule=True),
      rounds=12, kills="step:2 send:8 _fill:10 _take:10 _keep:3 _save:2".split())


def seldom(k, **more):
    """Every fourth round device 1 writes a checkpoint; in other rounds, only their average.
    At the end it repeats two rounds, and writes a checkpoint after each."""
    rare = k == 1 and not os.path.exists("ace-edge1/model.pt.6")
    said = shifted(k, statistics, buffers="mean", save_every=4 if rare else 1, **more)
    assert not glob.glob("ace-edge1/model.pt.[0-9]*") or k == 2
    return said


for mode, every in ("local", 3), ("replay", 3), ("gradients", 1):
    other(f"killed between two checkpoints, with mode {mode}",
          lambda k, mode=mode, every=every: seldom(k, mode=mode, every=every),
          rounds=8, kills=["sync:2", "sync:7"],
          tells=[f"repeating rounds {n} with the averages that were stored"
                 for n in ("1 to 1", "5 to 6")])


class Data:
    """Data in an order that depends on k."""

    def __init__(self, k):
        self.at, self.g = 0, torch.Generator().manual_seed(k)

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
    """A net with a frozen layer, buffers, dropout, and a running mean of the head."""

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


def whole(k):
    """A training script with scheduler, scaler, data and all other usual state."""
    model, data = Net(), Data(k)
    torch.manual_seed(k)
    inner = adam(p for p in model.parameters() if p.requires_grad)
    scheduler = torch.optim.lr_scheduler.MultiStepLR(inner, [5, 11], 0.3)
    scaling = scaler(8.0)

    def join():
        return ace.join(model, inner, "run", name=NAME, every=99, timeout=150, state={
            "scheduler": scheduler, "data": data, "scaler": scaling})
    with join() as run:
        while not run.done:
            for i in range(3):
                x, y = data.next()
                inner.zero_grad()
                scaling.scale(F.cross_entropy(model(x), y)).backward()
                scaling.step(inner)
                scaling.update()
                scheduler.step()
            # the usual way, which torch's version counters do not notice
            for m, p in zip(model.mean.parameters(), model.head[1].parameters()):
                m.data.mul_(0.9).add_(p.data, alpha=0.1)
            run.sync()
    with open(f"local{k}", "w") as f:   # must be as in a run without kills
        print(data.at, scheduler.get_last_lr(), scaling.state_dict(),
              [t.tolist() for t in model.state_dict().values()], file=f)
    had = checkpoint.load(f"ace-{NAME}/model.pt")
    # the checkpoint has only those of the frozen parameters that changed
    assert sorted(had["moved"]) == ["mean.bias", "mean.weight"], had["moved"]
    assert "parameter 'frozen.bias', which needs no gradient," in had["settings"]
    # other frozen parameters are refused, since they are part of the run's name
    torch.manual_seed(7)
    model.frozen.reset_parameters()
    with fails("parameter 'frozen.weight', which needs no gradient, is torch.float32") as f:
        join()
    assert f"but checkpoint '{os.getcwd()}/ace-{NAME}/model.pt' has" in f.error, f.error
    with fails("mismatch: the shard is of run 'train-"):
        algorithms.Local(model, None, through(f"{NAME}-new", spool="run/spool"), NAME)
    return f"{run.round} {run.digest()}"


other("killed anywhere, with all that a script has", whole, rounds=6, bits=32, same=("local1", "local2"),
      kills="sync:2 _outer:5 _save:2 replace:1 replace:2".split())


class Momenta(torch.optim.Optimizer):
    """Keeps moments in f32 for parameters of any dtype, and numbers in a list, in the
    groups and beside the parameters."""

    def __init__(self, params):
        super().__init__(params, dict(lr=1e-3, seen=0.0))

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
                p.grad.mul_(0)      # optimisers may change the gradient
                p.sub_((g["lr"] / g["seen"] * (s["m"] + len(s["past"]))).to(p.dtype))


def odd(k, **more):
    """All kinds of parameters and moments; device 1 continues from a checkpoint."""
    def loss(m, k, n):
        return m(0.1 * (k + n))

    def step(run, n):
        run.optimizer.step()
        if more:    # torch itself would load moments with their parameter's dtype
            state = [s for s in run.optimizer.state.values() if isinstance(s, dict)]
            assert state and all(s["m"].dtype == torch.float32 for s in state), state
        assert run.optimizer.state["all"] == n + 1
        assert abs(run.optimizer.param_groups[0]["seen"] - (n + 1) / 3) < 1e-6

    for until in (2, None) if k == 1 else (None,):
        torch.manual_seed(1)
        m = Odd()
        had = {n: (p.dtype, p.stride()) for n, p in m.named_parameters()}
        said = go(k, m, Momenta, loss, step, until=until, every=3, **more)
        assert had == {n: (p.dtype, p.stride()) for n, p in m.named_parameters()}
        assert m.b.weight is m.a.weight and m.frozen.eq(1).all()
    if not more:
        shown = subprocess.run(["ace-inspect", "run/spool/0/edge1.aceg"], check=True,
                               stdout=subprocess.PIPE).stdout.decode()
        assert re.search("(?m)^b16 +bf16", shown), shown
        assert re.search("(?m)^last +f32 +2x3x4x5", shown), shown
    sent = [n for n, _ in checkpoint.load(f"ace-{NAME}/model.pt")["names"]]
    assert "b.weight" not in sent and "frozen" not in sent, sent
    kept = "replay of Momenta, every=3" if more else "local"
    with fails(f"but checkpoint '{os.getcwd()}/ace-{NAME}/model.pt' has {kept}: give the old value"):
        go(k, m, sgd, every=3, mode="replay")
    return said


other("parameters of all kinds", odd, rounds=4, bits=32)
other("parameters of all kinds with replay", lambda k: odd(k, mode="replay"), rounds=4, bits=32)


if __name__ == "__main__":
    kind, *names = sys.argv[1:]
    rows = [r for r in {"page": PAGE, "others": OTHERS}[kind]
            if not names or r.name in names]
    sys.exit(not all([happens(r) for r in rows]))
