"""What devices do together: Local, Replay and Gradients."""
import math
import numbers
import sys
import threading
import time
import zlib

import torch

from .checkpoint import load, save
from .transport import (NAMES, RUNS, SEE, Error, Pipe, Wait, alone, memory, claim,
                        connection, header, host, locked, rank_of, stages_of, whole)


# ---- what can be sent ----

def span(t):
    """How many elements of memory t spreads over; 0 where some share theirs."""
    room = 1
    for step, n in sorted((s, n) for s, n in zip(t.stride(), t.shape) if n > 1):
        if step < room:
            return 0
        room += step * (n - 1)
    return room


def refuse(name, t):
    """Why this tensor cannot be sent, and what to do; or None."""
    if torch.nn.parameter.is_lazy(t) or t.is_meta:
        return "has no values yet: run the model once before, or fill it"
    if t.layout != torch.strided:
        return "is sparse: use .to_dense(), or Embedding(sparse=False)"
    if t.is_quantized:
        return "is quantised: train a model of floats, and quantise that"
    if t.dtype not in NAMES:
        return f"is of type {t.dtype}, not f32, f16 or bf16: use .float()"
    if not span(t):
        return "has elements that share their memory (expand): use .clone()"
    if t.device.type == "cpu" and t.is_shared():
        return "is in memory shared with other processes: use .clone()"
    if t.dim() > 8 or len(name.encode()) > 255 or name == "__metadata__":
        return "has more than 8 dimensions, or a name that cannot be sent"
    if min(name, default=" ") < " " or "\x7f" in name:
        return "has a control character in its name: give it another one"
    return None


def plain(names):
    """Names without what wrappers put before them, so that who has a wrapper and
    who has none are of one run: module. of DistributedDataParallel, _orig_mod. of
    torch.compile."""
    names = [".".join(w for w in n.split(".") if w != "_orig_mod")
             for n in names]
    while names and all(n.startswith("module.") for n in names):
        names = [n[7:] for n in names]
    return names


PARTS = {"FullyShardedDataParallel", "FSDPModule", "FlatParameter", "DTensor"}


def named(model):
    """Two dicts by plain names: its parameters and its buffers."""
    for x in (*model.modules(), *model.parameters()):
        parts = PARTS.intersection(c.__name__ for c in type(x).__mro__)
        if parts:
            raise Error(f"the model has a {parts.pop()}: each process has a part "
                        "of its parameters, and only whole ones can be sent: "
                        "use DistributedDataParallel, or one process a device")
    params, buffers = list(model.named_parameters()), list(model.named_buffers())
    names = plain([n for n, _ in params + buffers])
    if len(set(names)) < len(names):
        raise Error("two parameters have the same name without 'module.' and "
                    "'_orig_mod.': give them other ones")
    tensors = [t for _, t in params + buffers]
    n = len(params)
    return dict(zip(names[:n], tensors)), dict(zip(names[n:], tensors[n:]))


def parameters(model):
    """The (name, parameter) pairs that are sent; tied ones are there once."""
    found = [(n, p) for n, p in named(model)[0].items() if p.requires_grad]
    if not found:
        raise Error("the model has no parameter that requires a gradient")
    for name, p in found:
        why = refuse(name, p)
        if why:
            raise Error(f"parameter '{name}' {why}")
    last, end = None, 0
    for at, name, p in sorted((p.data_ptr(), n, p) for n, p in found
                              if p.numel() and p.data_ptr()):
        if at < end:
            raise Error(f"parameters '{last}' and '{name}' share their "
                        "memory: tie them by assigning the same Parameter")
        last, end = name, at + span(p) * p.element_size()
    return found


def mark(t):
    """What is another text when t has other values, or the same ones elsewhere: the
    sum of its bits, each times a number of its place, so that nothing is copied from
    where t is."""
    def sums(bits):
        place = torch.arange(1, min(len(bits), 1 << 20) + 1, device=bits.device)
        place = place * -0x61c8864680b583eb     # 2^64 over the golden ratio
        place = place ^ place >> 32
        parts = [bits[i:i + (1 << 20)] for i in range(0, len(bits) or 1, 1 << 20)]
        return torch.stack([(b * place[:len(b)]).sum() for b in parts])
    if torch.nn.parameter.is_lazy(t):
        return "nothing yet"
    said = f"{t.dtype} {tuple(t.shape)}"
    if t.is_meta or t.layout != torch.strided or t.is_quantized:
        return said
    kinds = {1: torch.uint8, 2: torch.int16, 4: torch.int32}
    bits = torch.view_as_real(t.detach()) if t.is_complex() else t.detach()
    bits = bits.contiguous().view(kinds.get(bits.element_size(), torch.int64))
    return f"{said} {sums(sums(bits.reshape(-1))).sum().item()}"


def looks(pairs):
    return {n: [tuple(p.shape), str(p.dtype)] for n, p in pairs}


def changed(old, new, what):
    """Raise with the first difference between two models."""
    for name in {**new, **old}:
        had, has = old.get(name), new.get(name)
        if had != has:
            how = (f"is new: {what} does not have it" if had is None else
                   f"is gone: {what} has it" if has is None else
                   f"is {has}, and in {what} {had}")
            raise Error(f"parameter '{name}' {how}; begin another run, with "
                        "empty states")


def unchanged(pairs, look, model):
    """Raise if the model's parameters are not these, which looked so."""
    now, had = parameters(model), dict(pairs)
    changed(look, looks(now), "the run")
    for name, p in now:
        if p is not had[name]:
            raise Error(f"parameter '{name}' is another object than when the run "
                        "began, which nobody sends: copy values into the one that "
                        "was there (load_state_dict, without assign=True), or begin "
                        "with ace after the model is changed")


GAP = 16        # so many rounds may pass without an average, for lack of a quorum


class Local:
    """Local steps of any optimiser, then the average of what they changed.

    through     the pipeline between ace-import and ace-export, which are started
                here: it takes this device's difference and gives the average
    checkpoint  a file that is written after every round, and from which a
                killed run goes on by itself
    outer_rate, outer_momentum
                of the step with the average, Nesterov's; 1, 0: as it is
    patience    seconds to try a broken connection again
    timeout     seconds to wait for the average of a round, or None: for ever
    on_wait     called every ten seconds of a wait with what is known of it, a
                dict; else it is said once on standard error
    weight, samples     of this device in the average
    state       what else a resumed run needs, by names of your own: anything with
                state_dict() and load_state_dict(), as a scheduler

    round is the next round, and seconds says what the last one took."""

    kind = "delta"                      # of a shard
    sent = None                         # as this type, else as each parameter's
    steps = None                        # that are replayed
    gone = ""                           # why it does not go on

    def __init__(self, model, optimizer, through, device, run="train",
                 checkpoint=None, outer_rate=1.0, outer_momentum=0.0,
                 patience=0, weight=1, samples=0, state=None, timeout=None,
                 on_wait=None):
        self.model, self.optimizer, self.checkpoint = model, optimizer, checkpoint
        self.state = dict(state or {})
        for k, v in self.state.items():
            if not hasattr(v, "state_dict") or not hasattr(v, "load_state_dict"):
                raise Error(f"state: '{k}' has no state_dict() and "
                            "load_state_dict()")
        self.pairs = parameters(model)
        # what needs no gradient is not sent: it has to be the same everywhere
        self.frozen = {n: mark(p) for n, p in self._still()}
        self.look = looks(self.pairs)
        self.rate, self.momentum, self.patience = outer_rate, outer_momentum, patience
        self.call = dict(through=through, kind=self.kind, device=device, run=run,
                         weight=weight, samples=samples, how=self._how(),
                         wait=Wait(device, timeout, on_wait))
        self.round, self.pipe, self.seconds = 0, None, {}
        self.room, self.unsent = [], []     # for a difference, and what is kept of one
        self.tried = None                   # the round whose part may be sent
        self.said = type(self), through, device, run, checkpoint
        self._in_place(model)
        self.lock = checkpoint and locked(
            f"{checkpoint}.lock", f"checkpoint '{checkpoint}'", "wb")
        try:
            self._begin()
        except BaseException:       # whose traceback may live, and this with it
            if self.lock:
                self.lock.close()
            raise
        RUNS.add(self)
        self.since = time.monotonic()

    def _in_place(self, model):
        """Raise where another process speaks for this model, or another run of this
        process has what this one needs."""
        rank, size = rank_of()
        if rank and any(isinstance(m, torch.nn.parallel.DistributedDataParallel)
                        for m in model.modules()):
            raise Error(f"this is {alone(rank, size)}")
        claim(self)

    def _give(self, why):
        self._leave(1)
        self._release(why)

    def _release(self, why):
        """Another process, or another run of this one, may go on from here."""
        self.gone = why
        RUNS.discard(self)
        if self.lock:
            self.lock.close()

    def _how(self):
        """What the arithmetic depends on."""
        return f" (here it is torch {torch.__version__})"

    def _begin(self):
        with torch.no_grad():
            # the common model, and the momentum's memory
            self._keep()
            self.memory = [torch.zeros_like(s) for s in self.start
                           if self.momentum]
        # who begins with another model is of another run, and ace-recv refuses
        self.call["run"] += f"-{self.digest()}"
        self._resume()
        self._catch_up()
        self.pipe = self.pipe or Pipe(step=self.round, **self.call)

    def _keep(self):
        """The common model is what the model is now; in f32."""
        self.start = [host(p).to(torch.float32, copy=True) for _, p in self.pairs]

    def _holds(self):
        """What a checkpoint has of the optimiser."""
        return self.optimizer and self.optimizer.state_dict()

    def _take_up(self, had):
        """Weights and optimiser as this checkpoint has them."""
        self.start, self.memory = had["start"], had["memory"]
        self._reset()
        if self.optimizer is not None:
            self.optimizer.load_state_dict(had["optimizer"])

    def _resume(self):
        had = load(self.checkpoint) if self.checkpoint else None
        if had is None:
            return
        self._check(had, f"checkpoint '{self.checkpoint}'")
        tensors = {**dict(self._still()), **named(self.model)[1]}
        with torch.no_grad():
            self._take_up(had)
            for name, value in {**had["buffers"], **had.get("moved", {})}.items():
                t = tensors.get(name)
                if t is not None and t.shape != value.shape:
                    self.call["wait"].say(
                        f"'{name}' is {list(t.shape)} in the model, and "
                        f"{list(value.shape)} in the checkpoint, as which it goes on")
                    t.data = torch.empty(value.shape, dtype=t.dtype, device=t.device)
                if t is not None:
                    t.copy_(value)
        for k, v in self.state.items():
            v.load_state_dict(had["state"][k])
        torch.set_rng_state(had["random"])
        for i, r in enumerate(had.get("cuda", [])[:torch.cuda.device_count()]):
            torch.cuda.set_rng_state(r, i)
        self.round, self.call["run"] = had["round"], had["run"]

    def _check(self, had, what):
        """Raise if this script cannot go on from this checkpoint."""
        if not isinstance(had, dict) or not had.keys() >= {"look", "run", "start"}:
            raise Error(f"{what} is none that ace.Local or ace.Replay wrote: load other "
                        "files into the model, and give the name of a new one", 3)
        changed(had["look"], self.look, what)
        if had.get("steps") != self.steps:
            was, now = (f"ace.Replay with steps={s}" if s else "ace.Local"
                        for s in (had.get("steps"), self.steps))
            raise Error(f"{what} was made by {was}, and this is {now}: go on as "
                        "before, or begin another run, with empty states")
        was, now = (r.rpartition("-")[0] for r in (had["run"], self.call["run"]))
        if was != now:
            raise Error(f"{what} is of run '{was}', and this is run '{now}': go on with "
                        "that one, or begin another run, with another checkpoint and "
                        "empty states")
        outer = had.get("outer", [self.rate, self.momentum])
        if outer != [self.rate, self.momentum] or \
                len(had["memory"]) != len(self.memory):
            raise Error(f"{what} was made with another outer_rate or outer_momentum"
                        f", {outer}: go on with those")
        # those that were made before frozen ones were looked at have none
        frozen = had.get("frozen", self.frozen)
        for name in {**frozen, **self.frozen}:
            if frozen.get(name) != self.frozen.get(name):
                raise Error(f"parameter '{name}', which needs no gradient, is not "
                            f"what it was when the run of {what} began: give it "
                            "the same seed or file, or begin another run, with "
                            "empty states")
        state = had.get("state", {})
        for k in {**state, **self.state}:
            if k not in self.state:
                raise Error(f"{what} has the state of '{k}': give it as before, "
                            f"state={{'{k}': ...}}")
            if k not in state:
                raise Error(f"{what} was made without the state of '{k}': go on "
                            "without, or begin another run, with empty states")

    def _still(self):
        """The parameters that need no gradient, with their names."""
        return [(n, p) for n, p in named(self.model)[0].items()
                if not p.requires_grad]

    def _save(self):
        # of those that need no gradient the ones that somebody moved all the same,
        # as the running mean of a model's weights
        moved = {n: p.detach() for n, p in self._still()
                 if mark(p) != self.frozen.get(n)}
        cuda = torch.cuda.is_available() and torch.cuda.is_initialized()
        save(self.checkpoint, {
            "round": self.round, "run": self.call["run"], "look": self.look,
            "start": self.start, "memory": self.memory,
            "outer": [self.rate, self.momentum],
            "buffers": named(self.model)[1], "frozen": self.frozen,
            "moved": moved, "optimizer": self._holds(), "steps": self.steps,
            "state": {k: v.state_dict() for k, v in self.state.items()},
            "random": torch.get_rng_state(),
            "cuda": torch.cuda.get_rng_state_all() if cuda else [],
            "digest": self.digest()})

    def _leave(self, seconds=10):
        if self.pipe:
            self.pipe.leave(seconds)
        self.pipe = None

    def _catch_up(self):
        """Apply the averages of the rounds that went by without this device,
        all of them for one that is new: then it has the model of the others,
        bit for bit.  The cloud is asked on a connection of its own."""
        end = time.monotonic() + self.patience
        first, heard = self.round, False
        try:
            while not heard and connection(stages_of(self.call["through"])):
                heard = self._try_to_ask(end)
        except BaseException:
            if self.round != first:     # of some of those rounds it knows
                self._leave(1)
            raise
        finally:
            if self.round != first:
                with whole(), torch.no_grad():
                    self._reset()
        # a round that it took part in is done again, and others may come after it
        self.call["wait"].behind = self.pipe is None and first > 0
        if self.round == first:
            return
        self.call["wait"].say(
            f"rounds {first} to {self.round - 1} went by without this device: "
            f"it goes on at round {self.round}, with the model of the others")
        if self.pipe:           # its next shard is not of the next round
            pipe, self.pipe = self.pipe, None
            pipe.close()
        if self.checkpoint:
            self._save()

    def _try_to_ask(self, end):
        """Ask once: is it done?  What was heard before the connection broke is not
        asked for again."""
        pipe = Pipe(step=self.round, ask=True, **self.call)
        try:
            self._ask(pipe)
            pipe.close(self.call["wait"].left(60))
            return True
        except Error as e:
            pipe.leave(1)
            if e.status in (2, 5) or e.final or time.monotonic() > end:
                raise
        except BaseException:
            pipe.leave(1)
            raise
        time.sleep(1)
        return False

    @torch.no_grad()
    def _ask(self, pipe):
        """From the model of self.round to that of the others."""
        wait = self.call["wait"]
        wait.begin(self.round, pipe.far)
        pipe.send(header([]))
        pipe.queue.put(None)
        while True:
            got, at = pipe.head()
            if not self.round <= at <= self.round + GAP:
                raise pipe.unfit(f"is of round {at}" if got else
                                 f"says to begin at round {at}",
                                 f"round {self.round}, or one of the {GAP} after it")
            if not got:         # the end: the round to begin with
                self.round = at
                return
            d = self._room()
            pipe.fits(got, d)
            pipe.body(d)
            if at:              # the name of the run says the first one
                self._alike(pipe, at)
            with whole():
                self.round = at
                self._apply(d)
                self.round = at + 1
            wait.begin(self.round, pipe.far)

    def _room(self):
        """Pairs for a difference or an average, in memory that is not the model's."""
        if not self.room:
            self.room = [torch.empty(p.shape, dtype=self.sent or p.dtype, device="cpu")
                         for _, p in self.pairs]
        return [(n, t) for (n, _), t in zip(self.pairs, self.room)]

    @torch.no_grad()
    def _reset(self):
        """The model is the common one."""
        for (_, p), s in zip(self.pairs, self.start):
            p.copy_(s)

    def digest(self):
        """A checksum of the common model, with what needed no gradient when the run
        began and the numbers of the outer step: after sync it is the same
        everywhere."""
        sum_ = checksum([self.frozen, float(self.rate), float(self.momentum)])
        for s in self.start:
            sum_ = zlib.crc32(memory(s), sum_)
        return f"{sum_:08x}"

    def _says(self, at):
        """What a shard of round at says of the model."""
        return self.digest()

    def _alike(self, pipe, at):
        """Raise if those whose average this is had another model than this one."""
        if pipe.model not in (None, self._says(at)):
            raise Error(
                f"mismatch: in round {at} this device has model {self._says(at)}, "
                f"and the others have {pipe.model}: weights, moments, rates or the "
                f"arithmetic differ{self._how()}, and its part was not counted.  It "
                "has to begin "
                f"again after round {at} with theirs: give it the checkpoint of "
                f"another device; {SEE}", 5)

    def _exchange(self, d):
        """The differences d, (name, tensor) pairs, become their average."""
        end = time.monotonic() + self.patience
        while True:
            try:
                self.pipe = self.pipe or Pipe(step=self.round, **self.call)
                self.pipe.begin(self.round, d, {"model.digest": self._says(self.round)})
                self.pipe.send(*(memory(t) for _, t in d))
                self.pipe.answer(self.round, d)
                return self._alike(self.pipe, self.round)
            except Error as e:
                heard = self.pipe and self.pipe.heard
                self._leave(1 if e.final else 10)
                if e.status in (2, 5) or heard or e.final or \
                        time.monotonic() > end:
                    raise
                self.call["wait"].behind = True
            print(f"ace: round {self.round}: broken, and again", file=sys.stderr)
            time.sleep(1)

    @torch.no_grad()
    def sync(self):
        """Send what the local steps changed, and make the model the next common
        one.  When it raises, the model is the last common one, and the next call
        sends the same again, but for what was refused."""
        if self.gone:
            raise Error(self.gone)
        began, d = time.monotonic(), None
        try:
            with whole():
                unchanged(self.pairs, self.look, self.model)
                d = self._part()
                self.tried = self.round
            self._exchange(d)
            heard = time.monotonic()
            with whole():
                self._apply(d)
                self.round += 1
                d, self.unsent = None, []
                self._reset()
        except BaseException as e:
            with whole():
                self._leave(1)          # who sends d still reads its memory
                if d is not None:
                    refused = getattr(e, "status", 4) in (2, 5)
                    self.unsent = [] if refused else self._again()
                    self.tried = None if refused else self.tried
                if d is not None or not isinstance(e, KeyboardInterrupt):
                    self._reset()       # else nothing had begun, or all was done
            raise
        applied = time.monotonic()
        if self.checkpoint:
            self._save()
        if self.call["wait"].behind:
            self._catch_up()
        now = time.monotonic()
        self.seconds = {"steps": began - self.since, "exchange": heard - began,
                        "apply": applied - heard, "save": now - applied}
        self.since = now

    def _part(self):
        """What this device sends, (name, tensor) pairs: differences."""
        d = self._room()
        for (_, t), (_, p), s in zip(d, self.pairs, self.start):
            torch.sub(host(p), s.to(t.dtype), out=t)
        # the state may have the part of that try, and would send it without these
        if self.tried == self.round and any(t.any() for _, t in d):
            raise Error("steps were taken between a sync() that failed and this one, "
                        "and nobody would get them: they were taken back; call sync() "
                        "again before any other step")
        for (_, t), u in zip(d, self.unsent):
            t.add_(u)
        return d

    def _again(self):
        """What was to be sent, in memory of its own: the model still has it."""
        self.tried, tried = None, self.tried
        u = [t.clone() for _, t in self._part()]
        self.tried = tried
        return u

    def _apply(self, d):
        """The common model takes a step with the average d."""
        for i, (s, (_, t)) in enumerate(zip(self.start, d)):
            self._outer(s, t, self.memory[i] if self.momentum else None)

    def _outer(self, s, d, m):
        """s += rate * (d + momentum * v), v being the momentum's sum of d; each
        operation rounds once, so that all machines get the same bits."""
        d = d.float()
        if m is not None:               # m is momentum * v
            m.add_(d).mul_(self.momentum)
            d.add_(m)
        s.add_(d.mul_(self.rate))

    def close(self):
        """End the run; raises if a program failed."""
        if self.pipe:
            self.pipe.close()
            self.pipe = None
        self._release("it was closed: make another one")


def copied(x):
    """x, as an optimiser keeps it, in memory of its own."""
    if torch.is_tensor(x):
        return x.detach().clone()
    if isinstance(x, dict):
        return {k: copied(v) for k, v in x.items()}
    if isinstance(x, (list, tuple)):
        return (list if isinstance(x, list) else tuple)(map(copied, x))
    if x is None or isinstance(x, (numbers.Number, str)):
        return x
    raise Error(f"the optimiser keeps a {type(x).__name__}, and ace.Replay can put "
                "back and compare only tensors, numbers and words: use ace.Local")


def restored(now, had, where, but=None):
    """What copied gave, in the memory of now as far as it fits, else on a device; in
    a dict all but one key."""
    if torch.is_tensor(had):
        if torch.is_tensor(now) and (now.shape, now.dtype) == (had.shape, had.dtype):
            return now.copy_(had)
        # as torch has it: what is one number stays with the CPU
        return had.to(where if had.dim() else had.device, copy=True)
    if isinstance(had, dict):
        now = now if isinstance(now, dict) else {}
        for k in [k for k in now if k not in had and k != but]:
            del now[k]
        for k, v in had.items():
            now[k] = restored(now.get(k), v, where)
        return now
    if isinstance(had, (list, tuple)):
        return type(had)(restored(None, v, where) for v in had)
    return had


def checksum(x, sum_=0):
    """A checksum of what copied gave."""
    if torch.is_tensor(x):
        sum_ = zlib.crc32(f"{x.dtype}{tuple(x.shape)}".encode(), sum_)
        return zlib.crc32(memory(host(x)), sum_)
    if isinstance(x, dict):
        x = [v for k in sorted(x, key=str) for v in (str(k), x[k])]
    if isinstance(x, (list, tuple)):
        for v in x:
            sum_ = checksum(v, sum_)
        return zlib.crc32(b"end", sum_)
    return zlib.crc32(repr(x).encode(), sum_)


class Replay(Local):
    """Steps of an optimiser that are taken back: the mean of their gradients is sent,
    and all devices take as many steps with the average.  So all have the same
    moments, and none of them travel.

    step() takes the place of the optimiser's, and sync() that of Local.

    steps       that are taken back, and then taken by all, in each round
    schedule    called with the number of each step before it is taken, to set the
                rates of the optimiser by that number alone

    The others are those of Local.  The state of the optimiser has to be a function
    of the gradients that it saw, and all of it has to be in its state and groups."""

    kind, sent = "gradient", torch.float32

    def __init__(self, model, optimizer, through, device, steps, run="train",
                 checkpoint=None, patience=0, weight=1, samples=0, state=None,
                 schedule=None, timeout=None, on_wait=None):
        if not isinstance(steps, int) or steps < 1:
            raise Error(f"steps is the number of steps in a round, not {steps!r}")
        own = {id(p) for _, p in parameters(model)}
        if any(p.requires_grad and id(p) not in own
               for g in optimizer.param_groups for p in g["params"]):
            raise Error("the optimiser has a parameter that the model has not: give "
                        "ace.Replay all that it steps, as one model")
        if any(not p.requires_grad and p.grad is not None
               for g in optimizer.param_groups for p in g["params"]):
            raise Error("the optimiser has a parameter that needs no gradient and has "
                        "one, with which each step would move it: set its .grad to None")
        self.steps, self.schedule = steps, schedule
        self.sum, self.taken = [], 0    # of the gradients, and how many
        self.again = False              # the round was tried, and failed
        self.proved = ""                # what its steps lead to
        super().__init__(model, optimizer, through, device, f"{run}-replay{steps}",
                         checkpoint, patience=patience, weight=weight,
                         samples=samples, state=state, timeout=timeout,
                         on_wait=on_wait)

    def _now(self):
        """What the optimiser has now, in its own memory, by the order of its
        parameters."""
        groups, state = self.optimizer.param_groups, self.optimizer.state
        return {"groups": [{k: v for k, v in g.items() if k != "params"}
                           for g in groups],
                "state": [state.get(p) or None for g in groups for p in g["params"]],
                "more": {k: v for k, v in state.items() if not torch.is_tensor(k)}}

    def _keep(self):
        """The common model and moments are what they are now."""
        self.start = [p.detach().clone() for _, p in self.pairs]
        self.kept = copied(self._now())
        self.groups, self.crc = checksum(self.kept["groups"]), None
        self.away = False               # from what all have in common

    @torch.no_grad()
    def _reset(self):
        """Model and optimiser are the common ones, to the bit."""
        if not self.away:
            return
        for (_, p), s in zip(self.pairs, self.start):
            p.copy_(s)
        groups, state = self.optimizer.param_groups, self.optimizer.state
        for g, had in zip(groups, self.kept["groups"]):
            where = g["params"][0].device if g["params"] else "cpu"
            restored(g, had, where, "params")
        ps = [p for g in groups for p in g["params"]]
        for p, had in zip(ps, self.kept["state"]):
            if had is None:
                state.pop(p, None)
            else:
                state[p] = restored(state.get(p), had, p.device)
        for k in [k for k in state if not torch.is_tensor(k)]:
            del state[k]
        state.update(copied(self.kept["more"]))
        self.groups, self.away = checksum(self.kept["groups"]), False

    def _holds(self):
        return self.kept

    def _take_up(self, had):
        now = self.kept["groups"]
        if len(had["optimizer"]["state"]) == len(self.kept["state"]) and \
                len(had["optimizer"]["groups"]) == len(now):
            self.start, self.kept, self.crc = had["start"], had["optimizer"], None
        if had["digest"] != self.digest():
            raise Error(f"checkpoint '{self.checkpoint}' was made with another "
                        "optimiser: go on with that one, or begin another run, with "
                        "empty states")
        # options that the torch of that time did not have are as they are now
        for g, new in zip(self.kept["groups"], now):
            g.update({k: v for k, v in new.items() if k not in g})
        self.away = True
        self._reset()
        self._keep()

    def _how(self):
        options = {f"{k}=True" for g in self.optimizer.param_groups
                   for k, v in g.items() if v is True}
        cpu = getattr(getattr(torch.backends, "cpu", None), "get_cpu_capability", None)
        return " ".join([f" (here it is torch {torch.__version__.split('+')[0]},",
                         type(self.optimizer).__name__, *sorted(options), "on",
                         *sorted({p.device.type for _, p in self.pairs}),
                         *([cpu()] if cpu else [])]) + ")"

    def _says(self, at):
        """In the first round also what the arithmetic depends on, and where it leads."""
        if at:
            return self.digest()
        self._prove()
        return f"{checksum([self.digest(), self.proved, self._how()]):08x}"

    def digest(self):
        """A checksum of the common model and moments, what needed no gradient when
        the run began, the optimiser's numbers, and how many steps are replayed."""
        if self.crc is None:
            self.crc = checksum([self.frozen, *self._parts(self.start, self.kept),
                             self.steps, type(self.optimizer).__name__])
        return f"{self.crc:08x}"

    @staticmethod
    def _parts(weights, kept):
        # not what only says how it computes, which each torch has others of
        options = [{k: v for k, v in g.items() if not isinstance(v, bool) and
                    isinstance(v, (numbers.Number, tuple, torch.Tensor))}
                   for g in kept["groups"]]
        return weights, kept["state"], kept["more"], options

    def _step(self, i):
        """The optimiser's step number i of this round."""
        if self.schedule is not None:
            self.schedule(self.round * self.steps + i)
        try:
            self.optimizer.step()
        except TypeError as e:
            raise Error("the optimiser cannot take a step with gradients alone, use "
                        f"ace.Local: {e}") from e

    @torch.no_grad()
    def step(self):
        """A step ahead with .grad, in the place of the optimiser's: sync takes it
        back."""
        if self.taken == self.steps and not self.again:
            raise Error(f"{self.steps} steps were taken: sync() comes next")
        if self.taken in (0, self.steps):
            self.taken, self.again = 0, False
            self.sum = [torch.zeros(p.shape, dtype=torch.float32, device=p.device)
                        for _, p in self.pairs]
        if checksum(self._now()["groups"]) != self.groups:
            raise Error("the options of the optimiser were changed between two steps, "
                        "as by a scheduler: the same has to be done when the steps "
                        "are replayed; give schedule=, a function of a step's number")
        for s, (n, p) in zip(self.sum, self.pairs):
            if p.grad is not None:
                why = refuse(n, p.grad)
                if why:
                    raise Error(f"the gradient of '{n}' {why}")
                s.add_(p.grad)
        self.away, self.taken = True, self.taken + 1
        if self.taken < self.steps:
            self._step(self.taken - 1)
            self.groups = checksum(self._now()["groups"])

    def _replay(self, d):
        """This round's steps with the gradient d."""
        self.away = True
        for i in range(self.steps):
            for (_, p), (_, t) in zip(self.pairs, d):
                if p.grad is None:
                    p.grad = torch.empty_like(p)
                p.grad.copy_(t)         # which an optimiser may change
            self._step(i)
        for _, p in self.pairs:
            p.grad = None

    def _prove(self):
        """Raise if a round's steps, taken twice from the same state, differ.  What
        they make of gradients that are the same everywhere is in self.proved."""
        if self.proved:
            return
        seen = []
        for _ in range(2):
            self._replay([(n, pattern(p.numel()).reshape(p.shape))
                          for n, p in self.pairs])
            seen.append(checksum(self._parts([p.detach() for _, p in self.pairs],
                                         copied(self._now()))))
            self._reset()
        if seen[0] != seen[1]:
            raise Error(
                "the optimiser takes other steps when it takes them again from the "
                "same state: it keeps something outside of its state and groups, or "
                "draws random numbers; ace.Replay needs one whose state is a function "
                "of the gradients that it saw: use ace.Local")
        self.proved = f"{seen[0]:08x}"

    def sync(self):
        """Send the mean gradient of the steps, which are taken back, and take as many
        with the average.  When it raises, model and optimiser are the last common
        ones, and the same sync, or the same steps, can be tried again."""
        if self.taken < self.steps:
            raise Error(f"sync() comes after {self.steps} calls of step(), and not "
                        f"after {self.taken}")
        self.again = True
        super().sync()

    def _part(self):
        self.away = True                # whatever the script did with them
        self._reset()
        self._prove()
        return [(n, s.div(self.steps).cpu()) for (n, _), s in zip(self.pairs, self.sum)]

    def _again(self):
        return []                       # the sums have it

    def _apply(self, d):
        """All devices take the same steps."""
        self._replay(d)
        self._keep()
        self.taken, self.again, self.sum = 0, False, []


def pattern(n):
    """Numbers between -1/2 and 1/2 that look random, with the same bits everywhere."""
    bits = torch.arange(n, dtype=torch.int64) * 0x9e3779b1 & 0xffffff
    return bits.to(torch.float32) * 2.0 ** -24 - 0.5


def squares(t):
    """The sum of t's squares, added in an order that is the same on all machines:
    their bits are."""
    sum_ = 0.0
    for part in t.reshape(-1).split(1 << 20):
        x = part.double().square()
        while len(x) > 1:
            half = len(x) + 1 >> 1
            x[:len(x) - half].add_(x[half:])
            x = x[:half]
        sum_ += x.item() if len(x) else 0.0
    return sum_


class Gradients:
    """The average gradient of all devices, at every step: after loss.backward(),
    in which each layer leaves when it is computed, average() makes it .grad.

    DistributedDataParallel calls average by itself: give layers=False, and
    ddp.register_comm_hook(grads, ace.Gradients.hook).
    step is the first one's number: after a crash that of the checkpoint."""

    def __init__(self, model, through, device, run="train", step=0, layers=True,
                 weight=1, samples=0):
        self.model, self.step = model, step
        self.pairs = parameters(model)[::-1]       # last layer first
        self.look = looks(self.pairs)
        self.name = {p: n for n, p in self.pairs}
        self.said, self.gone = (type(self), through, device, run, None), ""
        claim(self)
        self.pipe = Pipe(through, step, "gradient", device, run, weight, samples)
        self.ready, self.sent, self.buckets = {}, 0, []
        self.rooms = {}                 # for averages, before they are gradients
        self.lock = threading.Lock()    # autograd has a thread for each device
        self.nodes = [self._attach(p) for _, p in self.pairs if layers]
        RUNS.add(self)

    def _give(self, why):
        self._release(why)
        self.pipe.leave(1)

    def _release(self, why):
        self.gone = why
        RUNS.discard(self)
        for _, h in self.nodes:
            h.remove()

    def _attach(self, p):
        """Call _computed when p.grad is whole."""
        if hasattr(p, "register_post_accumulate_grad_hook"):
            return None, p.register_post_accumulate_grad_hook(self._computed)
        node = p.expand_as(p).grad_fn.next_functions[0][0]
        return node, node.register_hook(lambda *_: self._computed(p))

    def _computed(self, p):
        with self.lock:
            self._take(p, p.grad, mark)
            self._leave()

    def _take(self, p, g, mark=lambda _: None):
        name = self.name[p]
        why = refuse(name, g) or g.dtype != p.dtype and \
            f"is of type {g.dtype}, its parameter of {p.dtype}"
        if why:
            raise Error(f"the gradient of '{name}' {why}")
        if name in self.ready:
            raise Error(f"the gradient of '{name}' changed after it was sent: "
                        "one backward() for each average(), or layers=False")
        self.ready[name] = p, g, host(g), mark(g)

    def _leave(self, all_=False):
        """Send the layers whose turn it is.  The last one waits for average(): a
        shard without it is none, if something is wrong with the others."""
        for name, _ in self.pairs[self.sent:]:
            if name not in self.ready or not all_ and name == self.pairs[-1][0]:
                break
            if self.sent == 0:
                self.pipe.begin(self.step, self.pairs)
            self.pipe.send(memory(self.ready[name][2]))
            self.sent += 1

    @torch.no_grad()
    def average(self, clip=None):
        """Wait for the average, into every .grad.  With clip it gets that norm if its
        own is larger, which is returned."""
        if self.gone:
            raise Error(self.gone)
        unchanged(self.pairs, self.look, self.model)
        for name, p in self.pairs:
            _, g, _, seen = self.ready.get(name, (p, p.grad, None, None))
            if p.grad is not g or seen is not None and mark(g) != seen:
                self.pipe.leave()
                raise Error(
                    f"the gradient of '{name}' changed after it was sent, as by "
                    "clip_grad_norm_ or a GradScaler: average(clip=1.0) clips the "
                    "average, and with layers=False all are sent by average() as "
                    "they are then")
        for name, p in self.pairs:
            if p.grad is None:
                p.grad = torch.zeros_like(p)
            if name not in self.ready:
                self._take(p, p.grad)
        done, norm = self._finish(clip)
        for p, g in done:
            p.grad = g
        return norm

    def _finish(self, clip=None):
        """The averages, in the memory of the gradients, and their norm."""
        self._leave(True)
        # not into the gradients before all is there, and sound
        done = []
        for n, _ in self.pairs:
            p, g, h, _ = self.ready[n]
            if h.data_ptr() == g.data_ptr():
                if n not in self.rooms:
                    self.rooms[n] = torch.empty_like(h)
                h = self.rooms[n]
            done.append((p, g, h, n))
        self.pipe.answer(self.step, [(n, h) for *_, h, n in done])
        self.ready = {}
        self.sent, self.step = 0, self.step + 1
        norm = None if clip is None else \
            math.sqrt(math.fsum(squares(h) for _, _, h, _ in done))
        for _, g, h, _ in done:
            if norm is not None and norm > clip:
                h.mul_(clip / norm)
            g.copy_(h)
        return [(p, g) for p, g, _, _ in done], norm

    @staticmethod
    def hook(grads, bucket):
        """The communication hook: register_comm_hook(grads, Gradients.hook)."""
        done = torch.futures.Future()
        grads.buckets.append((done, bucket.buffer()))
        for p, g in zip(bucket.parameters(), bucket.gradients()):
            grads._take(p, g)
        if bucket.is_last():
            grads._finish()
            for f, buffer in grads.buckets:
                f.set_result(buffer)
            grads.buckets = []
        return done

    def close(self):
        """End the run; raises if a program failed."""
        if not self.gone:
            self._release("it was closed: make another one")
            self.pipe.close()
