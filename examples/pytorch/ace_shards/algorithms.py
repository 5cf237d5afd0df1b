"""What devices do together: Local, Replay and Gradients."""
from __future__ import annotations

import numbers
import os
import sys
import time
import zlib
from typing import Any, Callable, Iterable

import torch
from torch import Tensor

from . import transport
from .checkpoint import again, keep, kept, load, save
from .transport import (NAMES, RUNS, SEE, Error, Pairs, Pipe, Room, Wait, Way, alone,
                        fetch, header, locked, log, rank_of, sound, store, whole)


# ---- what can be sent ----

def span(t: Tensor) -> int:
    """Return how many elements of memory t spreads over; 0 where some share theirs."""
    room = 1
    for step, n in sorted((s, n) for s, n in zip(t.stride(), t.shape) if n > 1):
        if step < room:
            return 0
        room += step * (n - 1)
    return room


def refuse(name: str, t: Tensor) -> str | None:
    """Return why this tensor cannot be sent, and what to do; or None."""
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


def plain(names: list[str]) -> list[str]:
    """Return names without what wrappers put before them, so that a device with a
    wrapper and one without are of one run: module. of DistributedDataParallel,
    _orig_mod. of torch.compile."""
    names = [".".join(w for w in n.split(".") if w != "_orig_mod")
             for n in names]
    while names and all(n.startswith("module.") for n in names):
        names = [n[7:] for n in names]
    return names


# where torch has the classes of models of which each process has a part; a model that
# has one has imported it
PARTS = [("torch.distributed." + m, c) for m, c in (
    ("fsdp", "FullyShardedDataParallel"), ("fsdp", "FSDPModule"),
    ("fsdp._fully_shard", "FSDPModule"), ("_composable.fsdp", "FSDPModule"),
    ("fsdp.flat_param", "FlatParameter"), ("fsdp._flat_param", "FlatParameter"),
    ("tensor", "DTensor"), ("_tensor", "DTensor"))]


def named(model: torch.nn.Module) -> tuple[dict[str, Tensor], dict[str, Tensor]]:
    """Return the parameters and the buffers of a model by plain names."""
    parts = tuple({c for c in (getattr(sys.modules.get(m), c, None) for m, c in PARTS)
                   if isinstance(c, type)})
    for x in (*model.modules(), *model.parameters()):
        if isinstance(x, parts):
            kind = next(c for c in parts if isinstance(x, c)).__name__
            raise Error(f"the model has a {kind}: each process has a part "
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


def parameters(model: torch.nn.Module) -> Pairs:
    """Return the parameters that are sent; tied ones are there once."""
    found = [(n, p) for n, p in named(model)[0].items() if p.requires_grad]
    if not found:
        raise Error("the model has no parameter that requires a gradient")
    for name, p in found:
        why = refuse(name, p)
        if why:
            raise Error(f"parameter '{name}' {why}")
    last, end = "", 0
    for at, name, p in sorted((p.data_ptr(), n, p) for n, p in found
                              if p.numel() and p.data_ptr()):
        if at < end:
            raise Error(f"parameters '{last}' and '{name}' share their "
                        "memory: tie them by assigning the same Parameter")
        last, end = name, at + span(p) * p.element_size()
    return found


def averaged(model: torch.nn.Module) -> Pairs:
    """Return the buffers that buffers="mean" averages: floats that a state_dict has."""
    kept = {id(t) for t in model.state_dict(keep_vars=True).values()}
    found = [(n, b) for n, b in named(model)[1].items()
             if id(b) in kept and b.is_floating_point()]
    for name, b in found:
        why = refuse(name, b)
        if why:
            raise Error(f"buffer '{name}' {why}; or leave buffers=\"mean\" out")
    return found


def _sum(t: Tensor) -> Tensor:
    """Return the sum of t's bits, each times a number of its place, where t is."""
    def sums(bits: Tensor) -> Tensor:
        place = torch.arange(1, min(len(bits), 1 << 20) + 1, device=bits.device)
        place = place * -0x61c8864680b583eb     # 2^64 over the golden ratio
        place = place ^ place >> 32
        parts = [bits[i:i + (1 << 20)] for i in range(0, len(bits) or 1, 1 << 20)]
        return torch.stack([(b * place[:len(b)]).sum() for b in parts])
    kinds = {1: torch.uint8, 2: torch.int16, 4: torch.int32}
    bits = torch.view_as_real(t.detach()) if t.is_complex() else t.detach()
    bits = bits.contiguous().view(kinds.get(bits.element_size(), torch.int64))
    return sums(sums(bits.reshape(-1))).sum()


def opaque(t: Tensor) -> bool:
    return torch.nn.parameter.is_lazy(t) or t.is_meta or t.is_quantized or \
        t.layout != torch.strided


def marks(pairs: Iterable[tuple[str, Tensor]]) -> dict[str, str]:
    """Return for each tensor a text that is another one when it has other values, or
    the same ones elsewhere; with one transfer for each device."""
    said, sums = {}, {}
    for name, t in pairs:
        lazy = torch.nn.parameter.is_lazy(t)
        said[name] = "nothing yet" if lazy else f"{t.dtype} {tuple(t.shape)}"
        if not opaque(t):
            sums.setdefault(t.device, []).append((name, _sum(t)))
    for found in sums.values():
        values = torch.stack([s for _, s in found]).tolist()
        for (name, _), value in zip(found, values):
            said[name] += f" {value}"
    return said


def glance(pairs: Pairs) -> dict[str, tuple]:
    """Return for each tensor what changes when somebody writes to it: the number of
    its version, and the marks of some values, for those who write to .data."""
    some = marks((n, t if opaque(t) else
                  t.detach().reshape(-1)[::max(1, t.numel() // 64)]) for n, t in pairs)
    return {n: (0 if t.is_inference() else t._version, tuple(t.shape), some[n])
            for n, t in pairs}


def looks(pairs: Pairs) -> dict[str, list]:
    return {n: [tuple(p.shape), str(p.dtype)] for n, p in pairs}


def changed(old: dict, new: dict, what: str) -> None:
    """Raise with the first difference between two models."""
    for name in {**new, **old}:
        had, has = old.get(name), new.get(name)
        if had != has:
            how = (f"is new: {what} does not have it" if had is None else
                   f"is gone: {what} has it" if has is None else
                   f"is {has}, and in {what} {had}")
            raise Error(f"parameter '{name}' {how}; begin another run, with "
                        "empty states")


def copied(x: Any) -> Any:
    """Return x, as an optimiser keeps it, in memory of its own."""
    if torch.is_tensor(x):
        return x.detach().clone()
    if isinstance(x, dict):
        return {k: copied(v) for k, v in x.items()}
    if isinstance(x, (list, tuple)):
        return (list if isinstance(x, list) else tuple)(map(copied, x))
    if x is None or isinstance(x, (numbers.Number, str)):
        return x
    raise Error(f"the optimiser keeps a {type(x).__name__}, and mode=\"replay\" can put "
                "back and compare only tensors, numbers and words: use mode=\"local\"")


def restored(now: Any, had: Any, where: Any, but: Any = None) -> Any:
    """Return what copied gave, in the memory of now as far as it fits, else on a
    device; in a dict all but one key."""
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


def checksum(x: Any) -> int:
    """Return a checksum of what copied gave."""
    found: list[Any] = []

    def walk(x: Any) -> None:
        if torch.is_tensor(x):
            found.append(f"{x.dtype}{tuple(x.shape)}".encode())
            found.append(x)
        elif isinstance(x, dict):
            walk([v for k in sorted(x, key=str) for v in (str(k), x[k])])
        elif isinstance(x, (list, tuple)):
            for v in x:
                walk(v)
            found.append(b"end")
        else:
            found.append(repr(x).encode())
    walk(x)
    tensors = iter(fetch(t for t in found if torch.is_tensor(t)))
    crc = 0
    for part in found:
        if torch.is_tensor(part):
            t, part = next(tensors), bytearray(part.numel() * part.element_size())
            if part:
                t = torch.view_as_real(t) if t.is_complex() else t
                torch.frombuffer(part, dtype=torch.uint8).copy_(
                    t.reshape(-1).view(torch.uint8))
        crc = zlib.crc32(part, crc)
    return crc


def own_weights(optimizer: Any, pairs: Pairs) -> str | None:
    """Return the name of a state of the optimiser that is a copy of the weights."""
    sums: dict[str, list[Tensor]] = {}
    state = getattr(optimizer, "state", {})
    for _, p in pairs:
        had = {} if isinstance(optimizer, torch.optim.ASGD) else state.get(p) or {}
        for k, s in had.items():
            if torch.is_tensor(s) and s.shape == p.shape and s.is_floating_point():
                w = p.detach().float()
                sums.setdefault(str(k), []).append(torch.stack(
                    [(s.float() - w).square().sum(), w.square().sum()]))
    for k, found in sums.items():
        away, size = torch.stack(found).sum(0).tolist()
        if away < 0.25 * size:
            return k
    return None


GAP = 16        # so many rounds may pass without an average, for lack of a quorum


class Device:
    """A device of a run, whatever it sends.

    way         how to reach the cloud, or a pipeline
    checkpoint  a file from which a killed run goes on by itself, written after every
                save_every rounds
    buffers     "own", or "mean": averaged as the parameters are
    patience    seconds to try a broken connection again
    timeout     seconds to wait for the average of a round, or None: for ever
    weight, samples     of this device in the average
    state       what else a resumed run needs, by names of your own: anything with
                state_dict() and load_state_dict(), as a scheduler

    round is the next round, and last says what the last one took.

    Each way has: _keep: the common model is what the model is now; _reset: the model is
    the common one; _part: put what this device sends into self.room; _apply: the common
    model takes a step with the average in self.room; digest; _holds, _take_up: what a
    checkpoint has of model and optimiser."""

    kind = "delta"                      # of a shard
    sent: torch.dtype | None = None     # as this type, else as each parameter's
    steps: int | None = None            # that are replayed
    gone = ""                           # why it does not go on
    outer = (1.0, 0.0)                  # rate and momentum of the step with the average

    def __init__(self, model: torch.nn.Module, optimizer: Any, way: Way | str,
                 device: str, run: str = "train", checkpoint: str | None = None,
                 buffers: str = "own", save_every: int = 1, patience: float = 0,
                 weight: float = 1, samples: int = 0,
                 state: dict[str, Any] | None = None,
                 timeout: float | None = None) -> None:
        self.model, self.optimizer, self.checkpoint = model, optimizer, checkpoint
        self.take: Callable = getattr(optimizer, "step", None)
        self.state = dict(state or {})
        for k, v in self.state.items():
            if not hasattr(v, "state_dict") or not hasattr(v, "load_state_dict"):
                raise Error(f"state: '{k}' has no state_dict() and "
                            "load_state_dict()")
        if buffers not in ("own", "mean"):
            raise Error(f"buffers is 'own' or 'mean', not {buffers!r}")
        self.params = parameters(model)
        self.means = averaged(model) if buffers == "mean" else []
        self.pairs = self.params + self.means
        # what needs no gradient is not sent: it has to be the same everywhere
        self.frozen, self.seen = marks(self._still()), glance(self._still())
        self.look = looks(self.pairs)
        self.way = Way.through(way) if isinstance(way, str) else way
        self.save_every, self.patience = save_every, patience
        self.wait = Wait(device, timeout)
        self.call = dict(way=self.way, kind=self.kind, device=device, run=run,
                         weight=weight, samples=samples, how=self._how(),
                         wait=self.wait)
        self.round, self.last = 0, {}
        self.pipe: Pipe | None = None
        self.saved = self.redo = 0          # rounds: in the checkpoint, and applied
        self.unsent: list[Tensor] = []
        self.tried: int | None = None       # the round whose part may be sent
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

    def _in_place(self, model: torch.nn.Module) -> None:
        """Raise where another process speaks for this model; take the place of the
        run of this process that has the same files, as a cell of a notebook that is
        run again does."""
        rank, size = rank_of()
        if rank and any(isinstance(m, torch.nn.parallel.DistributedDataParallel)
                        for m in model.modules()):
            raise Error(f"this is {alone(rank, size)}")
        for other in list(RUNS):
            if other._files() & self._files():
                other.leave("another call with the same folder, state or checkpoint took "
                            "its place: give each model of a script a folder of its own")

    def _files(self) -> set[str]:
        return transport.states_of(self.way.stages) | {self.checkpoint or ""} - {""}

    def leave(self, why: str = "it was left") -> None:
        """Give the run up, whatever is under way."""
        self._leave(1)
        self._release(why)

    def _release(self, why: str) -> None:
        """Another process, or another run of this one, may go on from here."""
        self.gone = why
        RUNS.discard(self)
        if self.lock:
            self.lock.close()

    def _how(self) -> str:
        """What the arithmetic depends on."""
        return f" (here it is torch {torch.__version__})"

    @torch.no_grad()
    def _begin(self) -> None:
        self.room = Room(self.pairs, self.sent)     # for a difference or an average
        self._keep()
        # a device that begins with another model is of another run: ace-recv refuses
        self.call["run"] += f"-{self.digest()}"
        self._resume()
        if self.round >= self.redo:
            self._catch_up()
            self.pipe = self.pipe or Pipe(step=self.round, **self.call)

    # ---- checkpoints ----

    def _says(self, at: int) -> str | None:
        """Return what a shard of round at says of the model."""
        return self.digest()

    def _still(self) -> Pairs:
        """Return the parameters that need no gradient."""
        return [(n, p) for n, p in named(self.model)[0].items()
                if not p.requires_grad]

    def _resume(self) -> None:
        had = load(self.checkpoint) if self.checkpoint else None
        if had is None:
            return
        self._check(had, f"checkpoint '{self.checkpoint}'")
        tensors = {**dict(self._still()), **named(self.model)[1]}
        self._take_up(had)
        for name, value in {**had["buffers"], **had.get("moved", {})}.items():
            t = tensors.get(name)
            if t is not None and t.shape != value.shape:
                log.warning("%s: '%s' is %s in the model, and %s in the checkpoint, as "
                            "which it goes on", self.wait.device, name, list(t.shape),
                            list(value.shape))
                t.data = torch.empty(value.shape, dtype=t.dtype, device=t.device)
            if t is not None:
                t.copy_(value)
        for k, v in self.state.items():
            v.load_state_dict(had["state"][k])
        torch.set_rng_state(had["random"])
        for i, r in enumerate(had.get("cuda", [])[:torch.cuda.device_count()]):
            torch.cuda.set_rng_state(r, i)
        self.round = self.saved = self.redo = had["round"]
        self.call["run"] = had["run"]
        averages = kept(self.checkpoint)
        while self.redo in averages:
            self.redo += 1
        if self.redo > self.round:
            log.info("%s: rounds %d to %d are done again, with the averages that they "
                     "had", self.wait.device, self.round, self.redo - 1)

    def _check(self, had: Any, what: str) -> None:
        """Raise if this script cannot go on from this checkpoint."""
        if not isinstance(had, dict) or not had.keys() >= {"look", "run", "start"}:
            raise Error(f"{what} is none that ace.join wrote: load other files into the "
                        "model, and give the name of a new one", 3)
        changed(had["look"], self.look, what)
        if had.get("steps") != self.steps:
            was, now = (f"mode=\"replay\" with every={s}" if s else "another mode"
                        for s in (had.get("steps"), self.steps))
            raise Error(f"{what} was made by {was}, and this is {now}: go on as "
                        "before, or begin another run, with empty states")
        was, now = (r.rpartition("-")[0] for r in (had["run"], self.call["run"]))
        if was != now:
            raise Error(f"{what} is of run '{was}', and this is run '{now}': go on with "
                        "that one, or begin another run, with another checkpoint and "
                        "empty states")
        if had["outer"] != list(self.outer):
            raise Error(f"{what} was made with another outer_rate or outer_momentum"
                        f", {had['outer']}: go on with those")
        frozen = had["frozen"]
        for name in {**frozen, **self.frozen}:
            if frozen.get(name) != self.frozen.get(name):
                raise Error(f"parameter '{name}', which needs no gradient, is not "
                            f"what it was when the run of {what} began: give it "
                            "the same seed or file, or begin another run, with "
                            "empty states")
        state = had["state"]
        for k in {**state, **self.state}:
            if k not in self.state:
                raise Error(f"{what} has the state of '{k}': give it as before, "
                            f"state={{'{k}': ...}}")
            if k not in state:
                raise Error(f"{what} was made without the state of '{k}': go on "
                            "without, or begin another run, with empty states")

    def _save(self) -> None:
        # of those that need no gradient the ones that somebody moved all the same,
        # as the running mean of a model's weights
        still, now = self._still(), glance(self._still())
        moved = [(n, p) for n, p in still if now[n] != self.seen.get(n)]
        marked = marks(moved)
        cuda = torch.cuda.is_available() and torch.cuda.is_initialized()
        save(self.checkpoint, {
            "round": self.round, "run": self.call["run"], "look": self.look,
            "outer": list(self.outer), "steps": self.steps, **self._holds(),
            "buffers": named(self.model)[1], "frozen": self.frozen,
            "moved": {n: p.detach() for n, p in moved if marked[n] != self.frozen[n]},
            "state": {k: v.state_dict() for k, v in self.state.items()},
            "random": torch.get_rng_state(),
            "cuda": torch.cuda.get_rng_state_all() if cuda else [],
            "digest": self.digest()})
        self.saved = self.round
        for n in kept(self.checkpoint):
            os.unlink(f"{self.checkpoint}.{n}")

    def _note(self, now: bool = False) -> None:
        """After a round: write a checkpoint if it is time for one."""
        if self.checkpoint and self.round - self.saved >= (1 if now else self.save_every):
            self._save()

    # ---- what was missed ----

    def _leave(self, seconds: float = 10) -> None:
        if self.pipe:
            self.pipe.leave(seconds)
        self.pipe = None

    def _catch_up(self) -> None:
        """Apply the averages of the rounds that went by without this device, all of
        them for one that is new: then it has the model of the others, bit for bit.
        The cloud is asked on a connection of its own."""
        first = self.round
        try:
            if self.way.connection:
                self._ask(time.monotonic() + self.patience)
        except BaseException:
            if self.round != first:     # of some of those rounds it knows
                self._leave(1)
            raise
        finally:
            if self.round != first:
                with whole():
                    self._reset()
        # a round that it took part in is done again, and others may come after it
        self.wait.behind = self.pipe is None and first > 0
        if self.round == first:
            return
        log.info("%s: rounds %d to %d went by without this device: it goes on at round "
                 "%d, with the model of the others", self.wait.device, first,
                 self.round - 1, self.round)
        if self.pipe:           # its next shard is not of the next round
            pipe, self.pipe = self.pipe, None
            pipe.leave(1) if pipe.ends else pipe.close()
        self._note(True)

    def _ask(self, end: float) -> None:
        """Go from the model of self.round to that of the others.  What was heard before
        a connection broke is not asked for again."""
        pause = 1
        while True:
            pipe = Pipe(step=self.round, ask=True, **self.call)
            try:
                self.wait.begin(self.round, pipe.far)
                pipe.send(header([]))
                pipe.queue.put(None)
                self._hear(pipe)
                return pipe.close(self.wait.left(60))
            except Error as e:
                pipe.leave(1)
                if e.status in (2, 5) or e.final or time.monotonic() > end:
                    raise
            except BaseException:
                pipe.leave(1)
                raise
            time.sleep(pause)
            pause = min(30, 2 * pause)

    @torch.no_grad()
    def _hear(self, pipe: Pipe) -> None:
        """Apply the averages that were asked for."""
        while True:
            got, at = pipe.head()
            if not self.round <= at <= self.round + GAP:
                raise pipe.unfit(f"is of round {at}" if got else
                                 f"says to begin at round {at}",
                                 f"round {self.round}, or one of the {GAP} after it")
            if not got:         # the end: the round to begin with
                self.round = at
                return
            pipe.body(got, self.room)
            sound(self.room.pairs, f"round {at}: the answer")
            if at:              # the name of the run says the first one
                self._alike(pipe, at)
            with whole():
                self.round = at
                self._missed()
                self.round = at + 1
            self.wait.begin(self.round, pipe.far)

    def _missed(self) -> None:
        """Do what the others did with this average."""
        self._apply()

    def _alike(self, pipe: Pipe, at: int) -> None:
        """Raise if those whose average this is had another model than this one."""
        if pipe.model not in (None, self._says(at)):
            raise Error(
                f"mismatch: in round {at} this device has model {self._says(at)}, "
                f"and the others have {pipe.model}: weights, moments, rates or the "
                f"arithmetic differ{self._how()}, and its part was not counted.  It "
                "has to begin "
                f"again after round {at} with theirs: give it the checkpoint of "
                f"another device; {SEE}", 5)

    # ---- a round ----

    def _exchange(self) -> None:
        """What is in self.room becomes the average of all devices."""
        end, pause, r = time.monotonic() + self.patience, 1, self.room
        while True:
            try:
                self.pipe = self.pipe or Pipe(step=self.round, **self.call)
                digest = self._says(self.round)
                self.pipe.begin(self.round, r.pairs,
                                {"model.digest": digest} if digest else {})
                self.pipe.send(*r.bytes)
                self.pipe.answer(self.round, r)
                return self._alike(self.pipe, self.round)
            except Error as e:
                heard = self.pipe and self.pipe.heard
                self._leave(1 if e.final else 10)
                if e.status in (2, 5) or heard or e.final or self.way.ends or \
                        time.monotonic() > end:
                    raise
                self.wait.behind = True
                log.warning("round %d: broken, and again in %d s: %s", self.round,
                            pause, e)
            time.sleep(pause)
            pause = min(30, 2 * pause)

    @torch.no_grad()
    def sync(self) -> None:
        """Send this device's part, and make the model the next common one.  When it
        raises, the model is the last common one, and the next call sends the same
        again, but for what was refused."""
        if self.gone:
            raise Error(self.gone)
        began, open_, redo = time.monotonic(), False, self.round < self.redo
        try:
            with whole():
                self._unchanged()
                self._part()
                open_ = True
                self.tried = None if redo else self.round
            if redo:            # it was sent, and the average came
                again(self.checkpoint, self.round, self.room)
            else:
                self._exchange()
                if self.checkpoint and self.round + 1 - self.saved < self.save_every:
                    keep(self.checkpoint, self.round, self.room)
            heard = time.monotonic()
            with whole():
                self._apply()
                self.round += 1
                open_, self.unsent = False, []
                self._reset()
        except BaseException as e:
            with whole():
                self._leave(1)          # it still reads the memory of the room
                if open_:
                    refused = getattr(e, "status", 4) in (2, 5)
                    self.unsent = [] if refused else self._again()
                    self.tried = None if refused else self.tried
                if open_ or not isinstance(e, KeyboardInterrupt):
                    self._reset()       # else nothing had begun, or all was done
            raise
        now = time.monotonic()
        self.last = {"round": self.round, "steps": began - self.since,
                     "exchange": heard - began, "apply": now - heard}
        self._finish()

    def _finish(self) -> None:
        """Write a checkpoint, catch up if rounds were missed, and say what it took."""
        began = time.monotonic()
        self._note()
        if self.wait.behind and self.round >= self.redo:
            self._catch_up()
        self.since = now = time.monotonic()
        more = self.wait.known(self.last["round"] - 1) if \
            self.pipe and "ace-ack" in str(self.pipe.stages) else {}
        self.last.update(more, save=now - began)
        self.last["seconds"] = sum(self.last[k] for k in
                                   ("steps", "exchange", "apply", "save"))

    def _unchanged(self) -> None:
        """Raise if the model's tensors are not those that the run began with."""
        now = parameters(self.model) + (averaged(self.model) if self.means else [])
        had = dict(self.pairs)
        changed(self.look, looks(now), "the run")
        for name, p in now:
            if p is not had[name]:
                raise Error(f"parameter '{name}' is another object than when the run "
                            "began, which nobody sends: copy values into the one that "
                            "was there (load_state_dict, without assign=True), or "
                            "begin with ace after the model is changed")

    def _again(self) -> list[Tensor]:
        """Return what was to be sent: the model still has it."""
        self.tried, tried = None, self.tried
        self._part()
        self.tried = tried
        return [t.clone() for t in self.room]

    def _average(self, common: Iterable[Tensor], d: Iterable[Tensor]) -> None:
        """The averaged buffers take a step; one that has no negative value, as a
        variance, gets none by what coding loses."""
        for s, t in zip(common, d):
            low = 0 if s.numel() and s.min() >= 0 else None
            s.add_(t.to(s.device))
            if low is not None:
                s.clamp_(min=low)

    def close(self) -> None:
        """End the run; raises if a program failed."""
        if self.gone:
            return
        self._note(True)
        pipe, self.pipe = self.pipe, None
        self._release("it was closed: make another one")
        if pipe:
            pipe.close()


class Local(Device):
    """Local steps of any optimiser, then the average of what they changed.

    outer_rate, outer_momentum
                of the step with the average, Nesterov's; 1, 0: as it is"""

    def __init__(self, *args: Any, outer_rate: float = 1.0, outer_momentum: float = 0.0,
                 watch: bool = False, **more: Any) -> None:
        self.outer = outer_rate, outer_momentum
        # of the first exchange: the weights before it and after it, and after the
        # next step; None: nobody looks
        self.watch: list[list[Tensor]] | None = [] if watch else None
        self.undone = False
        super().__init__(*args, **more)

    def _keep(self) -> None:
        # in f32, so that small changes of a bf16 model are not lost
        self.start = Room(self.pairs, torch.float32)
        store(self.start, fetch(t for _, t in self.pairs))
        self.memory = [torch.zeros_like(s, device="cpu") for s in self.start
                       if self.outer[1]]

    def _holds(self) -> dict[str, Any]:
        return {"start": list(self.start), "memory": self.memory,
                "optimizer": self.optimizer and self.optimizer.state_dict()}

    def _take_up(self, had: dict[str, Any]) -> None:
        store(self.start, had["start"])
        self.memory = had["memory"]
        self._reset()
        if self.optimizer is not None:
            self.optimizer.load_state_dict(had["optimizer"])

    def _reset(self) -> None:
        look = self.watch == [] and self.round > 0
        was = look and [p.detach().clone() for _, p in self.params]
        store((t for _, t in self.pairs), self.start)
        if look:
            self.watch = [was, [p.detach().clone() for _, p in self.params]]

    @torch.no_grad()
    def stepped(self) -> None:
        """Notice an optimiser that undoes the average: its first step after an exchange
        goes back to the weights of before, much farther than the next step."""
        if not self.watch:
            return
        now = [p.detach().clone() for _, p in self.params]
        if len(self.watch) == 2:
            self.watch.append(now)
            return
        was, common, after = self.watch
        self.watch = None

        def dot(a: list, b: list, c: list, d: list) -> Tensor:
            return torch.stack([((w - x).float() * (y - z).float()).sum()
                                for w, x, y, z in zip(a, b, c, d)]).sum()
        back, whole_, first, second = torch.stack(
            [dot(after, common, was, common), dot(was, common, was, common),
             dot(after, common, after, common), dot(now, after, now, after)]).tolist()
        self.undone = back > 0.5 * whole_ and first > 4 * second

    def _unchanged(self) -> None:
        super()._unchanged()
        if self.watch == []:
            return
        state = own_weights(self.optimizer, self.params) if self.watch else None
        if self.undone or state:
            raise Error(
                f"the optimiser ({type(self.optimizer).__name__}) keeps weights of its "
                f"own ({f'its state {state!r}' if state else 'its first step went back'})"
                ", from which it undoes each average: use mode=\"replay\" or "
                "mode=\"gradients\"", 2, True)

    def digest(self) -> str:
        """Return a checksum of the common model, with its averaged buffers, what needed
        no gradient when the run began, and the numbers of the outer step."""
        crc = checksum([self.frozen, *map(float, self.outer)])
        for b in self.start.bytes:
            crc = zlib.crc32(b, crc)
        return f"{crc:08x}"

    def _part(self) -> None:
        values = fetch(t for _, t in self.pairs)
        for t, v, s in zip(self.room, values, self.start):
            torch.sub(v, s.to(t.dtype), out=t)
        # the state may have the part of that try, and would send it without these
        if self.tried == self.round and any(t.any() for t in self.room):
            raise Error("steps were taken between a sync() that failed and this one, "
                        "and nobody would get them: they were taken back; call sync() "
                        "again before any other step")
        for t, u in zip(self.room, self.unsent):
            t.add_(u)

    def _apply(self) -> None:
        n = len(self.params)
        for i, (s, t) in enumerate(zip(self.start, self.room)):
            if i < n:
                self._outer(s, t, self.memory[i] if self.memory else None)
        self._average(list(self.start)[n:], list(self.room)[n:])

    def _outer(self, s: Tensor, d: Tensor, m: Tensor | None) -> None:
        """s += rate * (d + momentum * v), v being the momentum's sum of d; each
        operation rounds once, so that all machines get the same bits."""
        d = d.float()
        if m is not None:               # m is momentum * v
            m.add_(d).mul_(self.outer[1])
            d.add_(m)
        s.add_(d.mul_(self.outer[0]))


class Replay(Device):
    """Steps of an optimiser that are taken back: the mean of their gradients is sent,
    and all devices take as many steps with the average.  So all have the same
    moments, and none of them travel.  step() takes the place of the optimiser's.

    steps       that are taken back, and then taken by all, in each round
    schedule    called with the number of each step before it is taken, to set the
                rates of the optimiser by that number alone

    The state of the optimiser has to be a function of the gradients that it saw, and
    all of it has to be in its state and groups."""

    kind, sent = "gradient", torch.float32

    def __init__(self, model: torch.nn.Module, optimizer: Any, way: Way | str,
                 device: str, steps: int, run: str = "train",
                 schedule: Callable[[int], Any] | None = None, **more: Any) -> None:
        if not isinstance(steps, int) or steps < 1:
            raise Error(f"the number of steps in a round is an int, not {steps!r}")
        own = {id(p) for _, p in parameters(model)}
        for p in (p for g in optimizer.param_groups for p in g["params"]):
            if p.requires_grad and id(p) not in own:
                raise Error("the optimiser has a parameter that the model has not: give "
                            "mode=\"replay\" all that it steps, as one model")
            if not p.requires_grad and p.grad is not None:
                raise Error("the optimiser has a parameter that needs no gradient and "
                            "has one, with which each step would move it: set its "
                            ".grad to None")
        self.steps, self.schedule = steps, schedule
        self.sum: list[Tensor] = []     # of the gradients
        self.taken = 0
        self.again = False              # the round was tried, and failed
        self.proved = ""                # what its steps lead to
        super().__init__(model, optimizer, way, device, f"{run}-replay{steps}", **more)

    def _now(self) -> dict[str, Any]:
        """Return what the optimiser has now, in its own memory, by the order of its
        parameters."""
        groups, state = self.optimizer.param_groups, self.optimizer.state
        return {"groups": [{k: v for k, v in g.items() if k != "params"}
                           for g in groups],
                "state": [state.get(p) or None for g in groups for p in g["params"]],
                "more": {k: v for k, v in state.items() if not torch.is_tensor(k)}}

    def _keep(self) -> None:
        self.start = [p.detach().clone() for _, p in self.pairs]
        self.kept = copied(self._now())
        self.groups, self.crc = checksum(self.kept["groups"]), None
        self.away = False               # from what all have in common

    @torch.no_grad()
    def _reset(self) -> None:
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

    def _holds(self) -> dict[str, Any]:
        return {"start": self.start, "optimizer": self.kept}

    def _take_up(self, had: dict[str, Any]) -> None:
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

    def _how(self) -> str:
        options = {f"{k}=True" for g in self.optimizer.param_groups
                   for k, v in g.items() if v is True}
        cpu = getattr(getattr(torch.backends, "cpu", None), "get_cpu_capability", None)
        return " ".join([f" (here it is torch {torch.__version__.split('+')[0]},",
                         type(self.optimizer).__name__, *sorted(options), "on",
                         *sorted({p.device.type for _, p in self.params}),
                         *([cpu()] if cpu else [])]) + ")"

    def _says(self, at: int) -> str:
        """In the first round also what the arithmetic depends on, and where it leads."""
        if at:
            return self.digest()
        self._prove()
        return f"{checksum([self.digest(), self.proved, self._how()]):08x}"

    def digest(self) -> str:
        """Return a checksum of the common model and moments, what needed no gradient
        when the run began, the optimiser's numbers, and how many steps are replayed."""
        if self.crc is None:
            self.crc = checksum([self.frozen, *self._parts(self.start, self.kept),
                                 self.steps, type(self.optimizer).__name__])
        return f"{self.crc:08x}"

    @staticmethod
    def _parts(weights: list[Tensor], kept: dict[str, Any]) -> tuple:
        # not what only says how it computes, which each torch has others of
        options = [{k: v for k, v in g.items() if not isinstance(v, bool) and
                    isinstance(v, (numbers.Number, tuple, torch.Tensor))}
                   for g in kept["groups"]]
        return weights, kept["state"], kept["more"], options

    def _step(self, i: int) -> None:
        """Take the optimiser's step number i of this round."""
        if self.schedule is not None:
            self.schedule(self.round * self.steps + i)
        try:
            self.take()
        except TypeError as e:
            raise Error("the optimiser cannot take a step with gradients alone, use "
                        f"mode=\"local\": {e}") from e

    @torch.no_grad()
    def step(self) -> None:
        """Take a step ahead with .grad: sync takes it back."""
        if self.taken == self.steps and not self.again:
            raise Error(f"{self.steps} steps were taken: sync() comes next")
        if self.taken in (0, self.steps):
            self.taken, self.again = 0, False
            self.sum = [torch.zeros(p.shape, dtype=torch.float32, device=p.device)
                        for _, p in self.params]
        if checksum(self._now()["groups"]) != self.groups:
            raise Error("the options of the optimiser were changed between two steps, "
                        "as by a scheduler: the same has to be done when the steps "
                        "are replayed; give schedule=, a function of a step's number")
        for s, (n, p) in zip(self.sum, self.params):
            if p.grad is not None:
                why = refuse(n, p.grad)
                if why:
                    raise Error(f"the gradient of '{n}' {why}")
                s.add_(p.grad)
        self.away, self.taken = True, self.taken + 1
        if self.taken < self.steps:
            self._step(self.taken - 1)
            self.groups = checksum(self._now()["groups"])

    def _replay(self, d: Iterable[Tensor]) -> None:
        """Take this round's steps with the gradient d."""
        self.away = True
        for i in range(self.steps):
            for _, p in self.params:
                p.grad = torch.empty_like(p) if p.grad is None else p.grad
            store((p.grad for _, p in self.params), d)      # it may change them
            self._step(i)
        for _, p in self.params:
            p.grad = None

    def _prove(self) -> None:
        """Raise if a round's steps, taken twice from the same state, differ.  What
        they make of gradients that are the same everywhere is in self.proved."""
        if self.proved:
            return
        seen = []
        for _ in range(2):
            self._replay([pattern(p.numel()).reshape(p.shape) for _, p in self.params])
            seen.append(checksum(self._parts([p.detach() for _, p in self.params],
                                             copied(self._now()))))
            self._reset()
        if seen[0] != seen[1]:
            raise Error(
                "the optimiser takes other steps when it takes them again from the "
                "same state: it keeps something outside of its state and groups, or "
                "draws random numbers; mode=\"replay\" needs one whose state is a "
                "function of the gradients that it saw: use mode=\"local\"")
        self.proved = f"{seen[0]:08x}"

    def sync(self) -> None:
        """Send the mean gradient of the steps, which are taken back, and take as many
        with the average.  When it raises, model and optimiser are the last common
        ones, and the same sync, or the same steps, can be tried again."""
        if self.taken < self.steps:
            raise Error(f"sync() comes after {self.steps} calls of step(), and not "
                        f"after {self.taken}")
        self.again = True
        super().sync()

    def _part(self) -> None:
        n = len(self.params)
        moved = [b - s for (_, b), s in zip(self.means, self.start[n:])]
        self.away = True                # whatever the script did with them
        self._reset()
        self._prove()
        store(self.room, fetch([s.div(self.steps) for s in self.sum] + moved))

    def _again(self) -> list[Tensor]:
        return []                       # the sums have it

    def _apply(self) -> None:
        n, d = len(self.params), list(self.room)
        self._replay(d[:n])
        self._average([b for _, b in self.means], d[n:])
        self._keep()
        self.taken, self.again, self.sum = 0, False, []


def pattern(n: int) -> Tensor:
    """Return numbers between -1/2 and 1/2 that look random, with the same bits
    everywhere."""
    bits = torch.arange(n, dtype=torch.int64, device="cpu") * 0x9e3779b1 & 0xffffff
    return bits.to(torch.float32) * 2.0 ** -24 - 0.5


class Gradients(Device):
    """The average gradient of all devices at every step: sync() makes it .grad, and
    step() takes the optimiser's step with it."""

    kind = "gradient"
    ready = False                       # .grad is the average

    def _keep(self) -> None:
        self.start = [b.detach().clone() for _, b in self.means]

    def _reset(self) -> None:
        pass

    def digest(self) -> str:
        """Return a checksum of the model and what needed no gradient when the run
        began."""
        return f"{checksum([self.frozen, [t.detach() for _, t in self.pairs]]):08x}"

    def _says(self, at: int) -> str | None:
        return None                     # a step is too short to read all weights

    def _holds(self) -> dict[str, Any]:
        return {"start": [t.float() for t in fetch(t for _, t in self.pairs)],
                "optimizer": self.optimizer.state_dict()}

    def _take_up(self, had: dict[str, Any]) -> None:
        store((t for _, t in self.pairs), had["start"])
        self.optimizer.load_state_dict(had["optimizer"])
        self._keep()

    def _part(self) -> None:
        for name, p in self.params:
            if p.grad is None:
                p.grad = torch.zeros_like(p)
            why = refuse(name, p.grad) or p.grad.dtype != p.dtype and \
                f"is of type {p.grad.dtype}, its parameter of {p.dtype}"
            if why:
                raise Error(f"the gradient of '{name}' {why}")
        store(self.room, fetch([p.grad for _, p in self.params] +
                               [b - s for (_, b), s in zip(self.means, self.start)]))

    def _again(self) -> list[Tensor]:
        return []                       # the gradients are still there

    def _apply(self) -> None:
        n, d = len(self.params), list(self.room)
        store((p.grad for _, p in self.params), d[:n])
        self._average(self.start, d[n:])
        store((b for _, b in self.means), self.start)
        self.ready = True

    def _missed(self) -> None:
        for _, p in self.params:
            p.grad = torch.zeros_like(p) if p.grad is None else p.grad
        self._apply()
        self.take()
        self.ready = False

    def _finish(self) -> None:
        pass                            # the step comes first

    def step(self) -> None:
        """Take the optimiser's step with the average gradient."""
        if not self.ready:
            self.sync()
        with whole():
            self.take()
            self.ready = False
        super()._finish()
