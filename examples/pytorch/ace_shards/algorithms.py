"""What devices do together: Local, Replay and Gradients."""
from __future__ import annotations

import contextlib
import functools
import itertools
import logging
import math
import numbers
import os
import threading
import time
import types
import weakref
from typing import Any, Callable, Iterable, Iterator

import torch
from torch import Tensor

from . import transport
from .checkpoint import kept, load, save
from .tensors import (averaged, checksum, compare, copied, marks, named, opaque, parameters,
                      refuse, renewed, some)
from .transport import (HOW, RUNS, SEE, Error, Pairs, Pipe, Room, Wait, Way, alone,
                        carried, fetch, header, locked, log, output, store)

GAP = 16        # most rounds in a row that may lack a quorum, and so an average


class Run:
    """A device of a run, as ace.join returns it: see ace-pytorch(7).

    round is the number of complete rounds; messages and events count rounds from 1.

    Each mode has these methods.  _common returns the values that all devices share; _keep
    copies them from the model, and _reset restores the model from the copy.  _part puts
    what this device sends into self.room.  _apply updates the common model with the average
    in self.room.  _step replaces the optimiser's step.  _holds returns the parts of model
    and optimiser for a checkpoint, and _take_up restores them."""

    mode = "local"
    kind = "delta"                      # kind of the shards
    sent: torch.dtype | None = None     # dtype of the shards; None: that of each parameter
    gone = ""                           # the reason why the run cannot continue
    ready = False                       # mode gradients: True: .grad is the average
    outer = (1.0, 0.0)                  # rate and momentum of the outer step

    def __init__(self, model: torch.nn.Module, optimizer: Any, way: Way | str,
                 device: str, run: str = "train", checkpoint: str | None = None,
                 every: int | None = None, rounds: int | None = None,
                 buffers: str = "own", save_every: int = 1, patience: float = 0,
                 weight: float = 1, state: dict[str, Any] | None = None,
                 timeout: float | None = None) -> None:
        self.model, self.optimizer, self.checkpoint = model, optimizer, checkpoint
        self.every, self.rounds, self.count = every, rounds, 0
        self.state = dict(state or {})
        for k, v in self.state.items():
            if not hasattr(v, "state_dict") or not hasattr(v, "load_state_dict"):
                raise Error(f"state: '{k}' is of type {type(v).__name__}, expected an "
                            "object with state_dict() and load_state_dict()")
        if buffers not in ("own", "mean"):
            raise Error(f"buffers={buffers!r}: expected 'own' or 'mean'")
        self.params = parameters(model)
        self.means = averaged(model) if buffers == "mean" else []
        self.pairs = self.params + self.means
        self.look = self._look(self.pairs)
        # parameters without a gradient are not sent, and must be equal on all devices
        still = self._still()
        self.frozen, self.seen = dict(zip(still, marks(still.values()))), self._glance()
        self.way = Way.through(way) if isinstance(way, str) else way
        self.save_every, self.patience = save_every, patience
        self.wait = Wait(device, timeout, self.way.ends is not None)  # quiet under ace-edge
        if self.way.events is not None:
            threading.Thread(target=transport.listen, daemon=True, args=(
                self.way.events, [], weakref.ref(self.wait))).start()
        self.call = dict(way=self.way, kind=self.kind, device=device, run=run,
                         weight=weight, wait=self.wait)
        self.round, self.last = 0, {}
        self.pipe: Pipe | None = None
        self.crc: str | None = None         # the result of digest()
        self.saved = self.redo = 0  # last round in the checkpoint; last one with a kept average
        self.closed = False
        step = getattr(optimizer, "step", None)
        self.take: Callable = getattr(step, "plain", step)  # without an earlier run's wrapper
        self._in_place(model)
        self.lock = checkpoint and locked(
            f"{checkpoint}.lock", f"checkpoint '{checkpoint}'", "wb")
        try:
            self._begin()
        except BaseException:       # the traceback may keep this object and its lock alive
            self.leave("this run did not begin: call ace.join again")
            raise
        RUNS.add(self)
        self.since = time.monotonic()
        if optimizer is not None:
            def ours(_: Any, *args: Any, **more: Any) -> Any:
                return self.step(*args, **more)
            ours.plain = self.take      # type: ignore[attr-defined]
            optimizer.step = types.MethodType(functools.wraps(self.take)(ours), optimizer)

    def _in_place(self, model: torch.nn.Module) -> None:
        """Raise if another process sends this model; end an earlier run of this process
        with the same files, such as that of a notebook cell that is executed again."""
        if alone() and any(isinstance(m, torch.nn.parallel.DistributedDataParallel)
                           for m in model.modules()):
            raise Error(alone())
        for other in list(RUNS):
            if other._files() & self._files():
                other.leave("a later ace.join with the same folder, state or checkpoint "
                            "replaced this run: give each model of a script its own folder")

    def _files(self) -> set[str]:
        return transport.states_of(self.way.stages) | {self.checkpoint or ""} - {""}

    @torch.no_grad()
    def _begin(self) -> None:
        self._keep()
        # the run's name has the first model's digest, so ace-recv refuses other models
        self.call["run"] += f"-{self.digest()}"
        self._resume()
        self.room = Room(self.pairs, self.sent)     # for a difference or an average
        if self.save_every > 1 and self.checkpoint and not os.path.exists(self.checkpoint):
            self._save()        # the base for averages kept from the first round on
        if self.round >= self.redo:
            self._catch_up()
            self.pipe = self.pipe or Pipe(step=self.round, **self.call)

    def digest(self) -> str:
        """Return a checksum of the common model with its averaged buffers, of the initial
        values of parameters without a gradient, and of the numbers of the outer step or of
        the replayed optimiser."""
        self.crc = self.crc or checksum([self.frozen, self._common()])
        return self.crc

    @property
    def done(self) -> bool:
        """Return whether all rounds of the run are complete."""
        return self.rounds is not None and self.round >= self.rounds

    def __enter__(self) -> Run:
        return self

    def __exit__(self, kind: Any, *_: Any) -> None:
        if kind is None:
            self.close()
        else:
            self.leave("the with block of this run failed: call ace.join again")

    def leave(self, why: str = "this run was left: call ace.join again") -> None:
        """Abandon the run in any state."""
        self._leave(1)
        self.gone = why
        RUNS.discard(self)
        if self.lock:           # let another process, or another run in this process, continue
            self.lock.close()

    def close(self) -> None:
        """End the run; raise if a program failed."""
        if self.gone:
            return
        self._note(True)
        pipe, self.pipe, self.closed = self.pipe, None, True
        self.leave("this run was closed: call ace.join again")
        if pipe:
            pipe.close()

    def _leave(self, seconds: float = 10) -> None:
        if self.pipe:
            self.pipe.leave(seconds)
        self.pipe = None

    # ---- checkpoints ----

    def _holds(self) -> dict[str, Any]:
        return {"start": list(fetch(t for _, t in self.pairs)),
                "optimizer": self.optimizer and self.optimizer.state_dict()}

    def _take_up(self, had: dict[str, Any]) -> None:
        """Take the parts out of a checkpoint, so that each is freed as soon as possible."""
        store((t for _, t in self.pairs), had.pop("start"))
        if self.optimizer is not None:
            self.optimizer.load_state_dict(had.pop("optimizer"))

    def _says(self, at: int) -> str | None:
        """Return the digest to state in the shard of round number at, or None."""
        return self.digest()

    def _still(self) -> dict[str, Tensor]:
        """Return the parameters that need no gradient."""
        return {n: p for n, p in named(self.model)[0].items() if not p.requires_grad}

    def _glance(self) -> dict[str, tuple]:
        """Return for each parameter of _still its version, which a write changes, its shape,
        and a mark of some values, since a write to .data keeps the version."""
        still = self._still()
        seen = marks(t if opaque(t) else some(t, 64) for t in still.values())
        return {n: (0 if t.is_inference() else t._version, tuple(t.shape), m)
                for (n, t), m in zip(still.items(), seen)}

    @staticmethod
    def _look(pairs: Pairs) -> dict[str, list]:
        return {f"{'parameter' if isinstance(p, torch.nn.Parameter) else 'buffer'} '{n}'":
                [tuple(p.shape), str(p.dtype)] for n, p in pairs}

    def _settings(self) -> dict[str, Any]:
        """Return what must be equal in a checkpoint and in the script that continues."""
        return {"mode": self.mode, "run": self.call["run"].rpartition("-")[0],
                "outer_rate": self.outer[0], "outer_momentum": self.outer[1],
                "state": sorted(self.state), **self.look,
                **{f"parameter '{n}', which needs no gradient,": m
                   for n, m in self.frozen.items()}}

    def _resume(self) -> None:
        had = load(self.checkpoint) if self.checkpoint else None
        if had is None:
            return
        what = f"checkpoint '{self.checkpoint}'"
        if not isinstance(had, dict) or not had.keys() >= {"names", "settings", "start"}:
            raise Error(f"{what} was not written by ace.join: load it into the model "
                        "with torch.load, and give ace.join another folder", 3)
        compare(had["settings"], self._settings(), what)
        self._take_up(had)
        self.crc = None
        tensors = {**self._still(), **named(self.model)[1]}
        for name, value in {**had["buffers"], **had["moved"]}.items():
            if name in tensors:
                if tensors[name].shape != value.shape:      # a buffer that grows
                    tensors[name].data = value.to(tensors[name])
                tensors[name].copy_(value)
        for k, v in self.state.items():
            v.load_state_dict(had["state"][k])
        torch.set_rng_state(had["random"])
        for i, r in enumerate(had["cuda"][:torch.cuda.device_count()]):
            torch.cuda.set_rng_state(r, i)
        self.round = self.saved = self.redo = had["round"]
        self.call["run"] = had["run"]
        while self.redo + 1 in kept(self.checkpoint):
            self.redo += 1
        if self.redo > self.round:
            log.info("%s: repeating rounds %d to %d with the averages that were stored "
                     "beside the checkpoint", self.wait.device, self.round + 1, self.redo)

    def _note(self, now: bool = False) -> None:
        """Write a checkpoint after a round if one is due."""
        if self.checkpoint and self.round - self.saved >= (1 if now else self.save_every):
            self._save()

    def _save(self) -> None:
        # save parameters without a gradient that were changed nevertheless, such as a
        # running mean of weights
        now = self._glance()
        moved = {n: p for n, p in self._still().items() if now[n] != self.seen.get(n)}
        marked = dict(zip(moved, marks(moved.values())))
        cuda = torch.cuda.is_available() and torch.cuda.is_initialized()
        save(self.checkpoint, {
            "round": self.round, "run": self.call["run"], "settings": self._settings(),
            "names": [[n, str(t.dtype)] for n, t in self.pairs], **self._holds(),
            "digest": self.digest(), "buffers": named(self.model)[1],
            "moved": {n: p.detach() for n, p in moved.items()
                      if marked[n] != self.frozen[n]},
            "state": {k: v.state_dict() for k, v in self.state.items()},
            "random": torch.get_rng_state(),
            "cuda": torch.cuda.get_rng_state_all() if cuda else []})
        self.saved = self.round
        for n, path in kept(self.checkpoint).items():
            if not self.round < n <= self.redo:     # those are still to be repeated
                os.unlink(path)

    # ---- the connection ----

    def _patiently(self, call: Callable) -> None:
        """Repeat the call while the connection fails, for at most self.patience seconds."""
        end, pause = time.monotonic() + self.patience, 1
        while True:
            try:
                return call()
            except Error as e:
                # an answer that was partly read cannot be read again, and a process
                # started by ace-edge has only this connection
                lost = self.way.ends or self.pipe and self.pipe.heard
                self._leave(1 if e.final else 10)
                if e.status in (2, 5) or e.final or lost or time.monotonic() > end:
                    raise
                self.wait.behind = True
                log.warning("%s: round %d: trying again in %d s, after: %s",
                            self.wait.device, self.round + 1, pause,
                            str(e).rpartition(" (")[0] or e)    # without advice
            time.sleep(pause)
            pause = min(30, 2 * pause)

    def _exchange(self) -> None:
        """Send self.room, and replace it by the average of all devices."""
        self.pipe = self.pipe or Pipe(step=self.round, **self.call)
        digest = self._says(self.round)
        self.pipe.exchange(self.round, self.room, {"step": str(self.round), **(
            {"model.digest": digest} if digest else {})})
        self._alike(self.pipe, self.round)

    def _alike(self, pipe: Pipe, at: int) -> None:
        """Raise if this device's model differs from that of the devices in the average."""
        if pipe.model not in (None, self._says(at)):
            raise Error(
                f"mismatch: in round {at + 1} this device has model {self._says(at)}, "
                f"but the others have {pipe.model}, so the average was not applied: "
                f"weights, optimiser states, options or arithmetic differ{HOW}.  Copy "
                f"a checkpoint that another device wrote after round {at + 1} or later; "
                f"{SEE}", 5)

    def _catch_up(self) -> None:
        """Apply the averages of the rounds that this device missed, or of all rounds if it
        is new.  Then it has the model of the others, bit for bit.  The averages come on a
        separate connection to the cloud."""
        first = self.round
        try:
            if self.way.connection:
                self._patiently(self._ask)
        except BaseException:
            if self.round != first:     # some averages were applied
                self._leave(1)
            raise
        # this device may have sent its shard of the next round before it was killed
        self.wait.behind = self.pipe is None and first > 0
        if self.round == first:
            return
        log.info("%s: rounds %d to %d passed without this device: %s with the model of "
                 "the others", self.wait.device, first + 1, self.round,
                 "the run is over, so it ends" if self.done else
                 f"continuing at round {self.round + 1}")
        self._note(True)

    def _ask(self) -> None:
        """Update the model of self.round to that of the others.  After a broken connection,
        ask only for averages that were not applied yet."""
        pipe = Pipe(step=self.round, ask=True, **self.call)
        try:
            self.wait.begin(self.round, pipe.far)
            pipe.send(header([]))
            pipe.queue.put(None)
            self._hear(pipe)
            pipe.close(self.wait.left(60))
        except BaseException:
            pipe.leave(1)
            raise

    @torch.no_grad()
    def _hear(self, pipe: Pipe) -> None:
        """Read and apply the requested averages."""
        while True:
            got, at = pipe.head()
            if not self.round <= at <= self.round + GAP:
                raise pipe.unfit(f"is of round {at + 1}" if got else
                                 f"says to begin at round {at + 1}",
                                 f"a round from {self.round + 1} to {self.round + GAP + 1}")
            if not got:         # the last answer, which has the number of the next round
                self.round = at
                return
            pipe.body(got, self.room)
            if at:              # in round 0 the run's name already has the digest
                self._alike(pipe, at)
            self.round = at
            self._missed()
            self.round, self.crc = at + 1, None
            self.wait.begin(self.round, pipe.far)

    def _missed(self) -> None:
        """Apply the average of a missed round, as the other devices did."""
        self._apply()

    # ---- a round ----

    def step(self, *args: Any, **more: Any) -> Any:
        """Run in place of optimizer.step()."""
        if self.closed or self.done and not self.ready:
            return self.take(*args, **more)
        if self.gone:
            raise Error(self.gone)
        if (args or more) and self.mode != "local":
            raise Error("the optimiser's step() was called with arguments, such as a closure: "
                        "call it without them, or use mode=\"local\"")
        got = self._step(*args, **more)
        self.count += 1
        self.wait.tell(logging.INFO, self.round + 1, f"steps so far: {self.count}")
        if self.every and self.count >= self.every:
            self.sync()
        return got

    def sync(self) -> None:
        """Exchange now, whatever the number of steps: send this device's part, and apply
        the average to the model, or set .grad to it (mode gradients)."""
        if self.gone:
            raise Error(self.gone)
        if self.done:           # as step(): the cloud has ended
            return
        with self._whole():
            self._round()
            self._finish()

    @contextlib.contextmanager
    def _whole(self) -> Iterator[None]:
        """Abandon the run if a round fails, and restore the last common model; another
        ace.join continues from the checkpoint and the state."""
        try:
            yield
        except BaseException:
            self.leave("an earlier round of this run failed: call ace.join again, or "
                       "start this device again")
            self._reset()
            raise

    @torch.no_grad()
    def _round(self) -> None:
        began = time.monotonic()
        self._unchanged()
        self._part()
        if self.round < self.redo:      # this round's average is beside the checkpoint
            store(self.room, load(kept(self.checkpoint)[self.round + 1]))
        else:
            self._patiently(self._exchange)
            if self.checkpoint and self.round + 1 - self.saved < self.save_every:
                save(f"{self.checkpoint}.{self.round + 1}", list(self.room))
        heard = time.monotonic()
        self._apply()
        self.round, self.count, self.crc = self.round + 1, 0, None
        now = time.monotonic()
        self.last = {"round": self.round, "steps": began - self.since,
                     "exchange": heard - began, "apply": now - heard}

    def _finish(self) -> None:
        """Write a checkpoint if one is due, catch up if rounds were missed, log the times."""
        began, last = time.monotonic(), self.last
        self._note()
        if self.pipe and ("ace-ack" in str(self.pipe.stages) or self.way.events is not None):
            last.update(self.wait.known(last["round"]))
        if self.wait.behind and self.round >= self.redo:
            self._catch_up()
        self.since = self.wait.spoke = now = time.monotonic()
        last["save"] = now - began
        last["seconds"] = sum(last[k] for k in ("steps", "exchange", "apply", "save"))
        left, sent = (self.rounds or 0) - self.round, last.get("bytes", 0)
        times = 4 * max(1, last["values"]) / sent if sent else 1
        log.log(
            logging.DEBUG if self.wait.quiet else logging.INFO,
            "round %d%s: %s%.1f s computing%s, exchange %.1f s%s", last["round"],
            f"/{self.rounds}" if self.rounds else "",
            f"{last['participants']} device{'s' * (last['participants'] != 1)}, "
            if "participants" in last else "",
            last["steps"], f", sent {sent / 1e6:.3g} MB "
            f"({max(times, 1 / times):.3g}x {'smaller' if times >= 1 else 'larger'})"
            if sent else "",
            last["exchange"], f", about {left * last['seconds']:.0f} s left"
            if left > 0 else "")

    def _unchanged(self) -> None:
        """Raise if the model's tensors are not those with which the run began."""
        now = parameters(self.model) + (averaged(self.model) if self.means else [])
        had = dict(self.pairs)
        compare(self.look, self._look(now), "the run's first model")
        for name, p in now:
            if p is not had[name]:
                what = "parameter" if name in dict(self.params) else "buffer"
                raise Error(f"{what} '{name}' was replaced by another object after "
                            "the run began: copy values into the original object "
                            "(load_state_dict without assign=True), or call ace.join "
                            "after the model is changed")

    @staticmethod
    def _average(common: list[Tensor], d: list[Tensor]) -> None:
        """Add d to the averaged buffers.  Coding errors must not make values of a buffer
        without negative values, such as a variance, negative."""
        for s, t in zip(common, carried(d, [s.device for s in common])):
            if s.numel():
                low = torch.where(s.min() < 0, -math.inf, 0).to(s.dtype)
                s.add_(t).clamp_(min=low)


class Local(Run):
    """Mode local: each device takes steps of any optimiser; then the changes are averaged.

    moment      file for ace-score(1) with the root mean squared gradient of each value,
    written after rounds 1, 2, 4, 8 and so on"""

    def __init__(self, *args: Any, outer_rate: float = 1.0, outer_momentum: float = 0.0,
                 moment: str | None = None, **more: Any) -> None:
        self.moment = moment
        self.outer = float(outer_rate), float(outer_momentum)
        # _weights before and after the first exchange, and after the next step; None once
        # they were compared
        self.watch: list[list[Tensor]] | None = []
        self.undone = False
        super().__init__(*args, **more)

    def _common(self) -> Any:
        return self.start, self.outer

    def _keep(self) -> None:
        # in f32, so that small changes of a bf16 model are not lost
        self.start = [t.to(torch.float32, copy=True)
                      for t in fetch(t for _, t in self.pairs)]
        self.memory = [torch.zeros_like(s) for s in self.start if self.outer[1]]

    def _reset(self) -> None:
        store((t for _, t in self.pairs), self.start)

    def _holds(self) -> dict[str, Any]:
        return {"start": self.start, "memory": self.memory,
                "optimizer": self.optimizer and self.optimizer.state_dict()}

    def _take_up(self, had: dict[str, Any]) -> None:
        self.start, self.memory = had["start"], had.pop("memory")
        super()._take_up(had)

    def _weights(self) -> list[Tensor]:
        """Return some values of each parameter, scaled so that a sum of products is about
        that of all values."""
        return [some(p).float() * (p.numel() / max(1, some(p).numel())) ** 0.5
                for _, p in self.params]

    def _step(self, *args: Any, **more: Any) -> Any:
        got = self.take(*args, **more)
        if self.watch and len(self.watch) == 2:
            self.watch.append(self._weights())
        elif self.watch:
            self._look_back(*self.watch)
            self.watch = None
        return got

    @torch.no_grad()
    def _look_back(self, was: list, common: list, after: list) -> None:
        """Detect an optimiser that undoes the average: its first step after an exchange
        returns to the weights before the exchange, and is much longer than the next step."""
        def dot(a: list, b: list, c: list, d: list) -> Tensor:
            return torch.stack([((w - x) * (y - z)).sum().cpu()
                                for w, x, y, z in zip(a, b, c, d)]).sum()
        now = self._weights()
        back, all_, first, second = torch.stack(
            [dot(after, common, was, common), dot(was, common, was, common),
             dot(after, common, after, common), dot(now, after, now, after)]).tolist()
        near = first - 2 * back + all_ < all_ / 2       # to the weights before the exchange
        self.undone = near and first > 4 * second

    def _squares(self) -> list[Tensor | None]:
        """Return each parameter's mean squared gradient from Adam's state, None if absent."""
        had = getattr(self.optimizer, "state", {})
        found = [had.get(p, {}).get("exp_avg_sq") for _, p in self.params]
        if all(s is None for s in found):
            raise Error("moment=True needs an optimiser with mean squared gradients "
                        "(exp_avg_sq), as Adam has after its first step, but "
                        f"{type(self.optimizer).__name__} has none: take a step of Adam "
                        "before sync(), or leave moment=True out", 2, True)
        return found

    def _finish(self) -> None:
        super()._finish()
        if self.moment and self.round & self.round - 1 == 0:
            found = self._squares()
            most = max((float(s.max().sqrt()) for s in found
                        if s is not None and s.numel()), default=0) or 1
            # as shares of the largest root, for the range of f16; buffers get the share 1
            store(self.room, itertools.chain(
                (torch.zeros_like(p) if s is None else s.sqrt().div_(most)
                 for s, (_, p) in zip(found, self.params)),
                (torch.ones_like(b) for _, b in self.means)))
            output(["ace-import", "-o", self.moment], header(self.room.pairs),
                   *self.room.bytes)

    def _unchanged(self) -> None:
        super()._unchanged()
        if self.moment:
            self._squares()             # refuse an optimiser without them before sending
        if self.undone:
            raise Error(
                f"the optimiser ({type(self.optimizer).__name__}) undoes each average: "
                "its first step after an exchange restored the weights from before the "
                "exchange, as if from a copy: use mode=\"replay\" or mode=\"gradients\"", 2, True)

    def _part(self) -> None:
        for t, v, s in zip(self.room, fetch(t for _, t in self.pairs), self.start):
            torch.sub(v, s.to(t.dtype), out=t)

    def _apply(self) -> None:
        if self.watch == [] and self.optimizer is not None:
            self.watch = [self._weights()]
        n, d = len(self.params), list(self.room)
        for i, (s, t) in enumerate(zip(self.start[:n], d)):
            self._outer(s, t.float(), self.memory[i] if self.memory else None)
        self._average(self.start[n:], d[n:])
        self._reset()
        if self.watch and len(self.watch) == 1:
            self.watch.append(self._weights())

    def _outer(self, s: Tensor, d: Tensor, m: Tensor | None) -> None:
        """Compute s += rate * (d + momentum * v), where v = d + momentum * (the last v).  Each
        operation rounds once, so that all machines get the same bits."""
        if m is not None:               # m is momentum * v
            m.add_(d).mul_(self.outer[1])
            d.add_(m)
        s.add_(d.mul_(self.outer[0]))


class Replay(Run):
    """Mode replay: each device takes steps of its optimiser, undoes them, and sends the mean
    of their gradients; all devices repeat the steps with the average gradient.  So all
    have the same moments, which are not sent."""

    kind, sent = "gradient", torch.float32

    def __init__(self, model: torch.nn.Module, optimizer: Any, way: Way | str,
                 device: str, every: int, run: str = "train",
                 schedule: Callable[[int], Any] | None = None, **more: Any) -> None:
        own = {id(p): f"'{n}'" for n, p in named(model)[0].items()}
        for p in (p for g in optimizer.param_groups for p in g["params"]):
            if p.requires_grad and id(p) not in own:
                raise Error("the optimiser has a parameter of shape "
                            f"{tuple(p.shape)} that is absent from the model: with "
                            "mode=\"replay\" give a model that contains all parameters "
                            "of the optimiser")
            if not p.requires_grad and p.grad is not None:
                raise Error(f"parameter {own.get(id(p), f'of shape {tuple(p.shape)}')} "
                            "requires no gradient but has a .grad, so each step would "
                            "change it: set its .grad to None")
        self.mode = f"replay of {type(optimizer).__name__}, every={every}"
        self.schedule = schedule
        self.sum: list[Tensor] = []     # sum of the round's gradients; on the CPU it is self.room
        self.start: list[Tensor] = []
        self.kept: dict[str, Any] = {"state": []}
        self.proved = ""                # the digest that _prove computed
        super().__init__(model, optimizer, way, device, f"{run}-replay{every}",
                         every=every, **more)

    def _now(self) -> dict[str, Any]:
        """Return the optimiser's state itself, not a copy, in the order of its
        parameters."""
        groups, state = self.optimizer.param_groups, self.optimizer.state
        return {"groups": [{k: v for k, v in g.items() if k != "params"}
                           for g in groups],
                "state": [state.get(p) or None for g in groups for p in g["params"]],
                "more": {k: v for k, v in state.items() if not torch.is_tensor(k)}}

    def _options(self) -> str:
        return checksum(self._now()["groups"])

    def _keep(self) -> None:
        now = self._now()
        copied(now, lambda t: t)        # refuse what cannot be copied before any is replaced
        self.start = renewed(self.start, [p.detach() for _, p in self.pairs])
        self.kept = renewed(self.kept, now)
        self.options = self._options()

    def _reset(self) -> None:
        """Restore the common model and optimiser, to the bit."""
        store((p for _, p in self.pairs), self.start)
        groups, state = self.optimizer.param_groups, self.optimizer.state
        state.clear()
        state.update(copied(self.kept["more"]))
        had = iter(self.kept["state"])
        for g, options in zip(groups, self.kept["groups"]):
            for k in [k for k in g if k != "params" and k not in options]:
                del g[k]
            g.update(copied(options))
            for p in g["params"]:
                s = next(had)
                if s is not None:   # leave single numbers on the CPU, as torch does
                    state[p] = copied(s, lambda t: t.to(p.device if t.dim() else t.device,
                                                        copy=True))
        self.options = self._options()

    def _holds(self) -> dict[str, Any]:
        return {"start": self.start, "optimizer": self.kept}

    def _take_up(self, had: dict[str, Any]) -> None:
        now = self.kept["groups"]
        self.start, self.kept = had.pop("start"), had.pop("optimizer")
        # options that an older torch did not have keep their present values
        for g, new in zip(self.kept["groups"], now):
            g.update({k: v for k, v in new.items() if k not in g})
        self._reset()
        self._keep()

    def _says(self, at: int) -> str:
        """Return the digest; in the first round it also covers this device's arithmetic."""
        if at:
            return self.digest()
        self._prove()
        return checksum([self.digest(), self.proved])

    def _common(self) -> Any:
        return *self._parts(self.start, self.kept), self.mode

    @staticmethod
    def _parts(weights: list[Tensor], kept: dict[str, Any]) -> tuple:
        # leave out options that only select an implementation; each torch has others
        options = [{k: v for k, v in g.items() if not isinstance(v, bool) and
                    isinstance(v, (numbers.Number, tuple, torch.Tensor))}
                   for g in kept["groups"]]
        return weights, kept["state"], kept["more"], options

    def _take(self, i: int) -> None:
        """Take the optimiser's step number i of this round."""
        if self.schedule is not None:
            self.schedule(self.round * self.every + i)
        try:
            self.take()
        except TypeError as e:
            raise Error("mode=\"replay\" calls the optimiser's step() without arguments, "
                        f"and step() failed: {e}: if it needs arguments, use "
                        "mode=\"local\"") from e

    @torch.no_grad()
    def _step(self) -> None:
        """Take a step with this device's gradient; sync undoes it later."""
        if self.count == 0:
            self.sum = [t.zero_() if t.device == p.device else
                        torch.zeros(p.shape, dtype=torch.float32, device=p.device)
                        for t, (_, p) in zip(self.room, self.params)]
        if self._options() != self.options:
            raise Error("the optimiser's options were changed after ace.join or a step, "
                        "and mode=\"replay\" cannot repeat that: set the options only "
                        "in f(step), given as schedule=f, and use no other scheduler")
        for s, (n, p) in zip(self.sum, self.params):
            if p.grad is not None:
                why = refuse(p.grad)
                if why:
                    raise Error(f"the gradient of parameter '{n}' {why}")
                s.add_(p.grad)
        if self.count + 1 < self.every:
            self._take(self.count)
            self.options = self._options()

    def _replay(self, gradient: Callable[[], Iterable[Tensor]]) -> None:
        """Take this round's steps with a gradient; a step may change .grad."""
        for i in range(self.every):
            for _, p in self.params:
                p.grad = torch.empty_like(p) if p.grad is None else p.grad
            store((p.grad for _, p in self.params), gradient())
            self._take(i)
        for _, p in self.params:
            p.grad = None

    def _prove(self) -> None:
        """Take a round's steps twice from the same state, with gradients that are equal on
        all devices.  Raise if the results differ; set self.proved to their digest."""
        if self.proved:
            return
        cycle = torch.arange(-127., 128, device="cpu").div(256)
        seen = []
        for _ in range(2):
            self._replay(lambda: (
                cycle.repeat(p.numel() // 255 + 1)[:p.numel()].view(p.shape)
                for _, p in self.params))
            seen.append(checksum(self._parts([p.detach() for _, p in self.params],
                                             self._now())))
            self._reset()
        if seen[0] != seen[1]:
            raise Error(
                "the optimiser's steps differ when they are repeated from the same "
                "state with the same gradients; the optimiser may use random numbers, or "
                "data outside of state and param_groups: use mode=\"local\"")
        self.proved = seen[0]

    def sync(self) -> None:
        """Undo the round's steps, send the mean of their gradients, and repeat the steps
        with the average."""
        if self.count < self.every and not self.gone and not self.done:
            raise Error(f"sync() was called after step {self.count} of {self.every}: "
                        "leave sync() out, since mode=\"replay\" calls it in step()")
        super().sync()

    def _part(self) -> None:
        moved = [b - s for (_, b), s in zip(self.means, self.start[len(self.params):])]
        self._reset()
        self._prove()
        store(self.room, [s.div_(self.every) for s in self.sum] + moved)

    def _apply(self) -> None:
        n, d = len(self.params), list(self.room)
        gradient = list(carried(d[:n], [p.device for _, p in self.params]))
        self._replay(lambda: gradient)
        self._average([b for _, b in self.means], d[n:])
        self._keep()
        self.sum = []


class Gradients(Run):
    """Mode gradients: sync() sets .grad to the average gradient of all devices, so that the
    script can clip it, and step() takes the optimiser's step with it."""

    mode, kind = "gradients", "gradient"

    def _common(self) -> Any:
        return [t for _, t in self.pairs]

    def _keep(self) -> None:
        self.start = [b.detach().clone() for _, b in self.means]

    def _reset(self) -> None:
        pass

    def _says(self, at: int) -> str | None:
        return None                     # reading all weights would take longer than a step

    def _take_up(self, had: dict[str, Any]) -> None:
        super()._take_up(had)
        self._keep()

    def _gradients(self) -> list[Tensor]:
        for name, p in self.params:
            if p.grad is None:
                p.grad = torch.zeros_like(p)
            why = refuse(p.grad) or p.grad.dtype != p.dtype and \
                f"is of type {p.grad.dtype}, expected {p.dtype} as the parameter: cast it"
            if why:
                raise Error(f"the gradient of parameter '{name}' {why}")
        return [p.grad for _, p in self.params]

    def _part(self) -> None:
        store(self.room, fetch(self._gradients() + [
            b - s for (_, b), s in zip(self.means, self.start)]))

    def _apply(self) -> None:
        n, d = len(self.params), list(self.room)
        store(self._gradients(), d[:n])
        self._average(self.start, d[n:])
        store((b for _, b in self.means), self.start)
        self.ready = True

    def _missed(self) -> None:
        self._apply()
        self.take()
        self.ready = False

    def _note(self, now: bool = False) -> None:
        if not self.ready:      # else the weights lack the round's step; the state sends it again
            super()._note(now)

    def _finish(self) -> None:
        pass                            # _step calls Run._finish after the optimiser's step

    def _step(self) -> Any:
        if not self.ready:
            self.sync()
        with self._whole():
            self.take()
            self.ready, self.crc = False, None
            super()._finish()
        self.count = -1                 # no exchange is due at this step any more
