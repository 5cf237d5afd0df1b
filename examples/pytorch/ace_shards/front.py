"""ace.join: a model and its optimiser as a device of a run."""
from __future__ import annotations

import functools
import logging
import os
import socket
import subprocess
import types
from typing import Any

import torch

from . import transport
from .algorithms import Device, Gradients, Local, Replay
from .transport import Error, Way, environment, log


def join(model: torch.nn.Module, optimizer: Any, cloud: str | None = None, *,
         name: str | None = None, dir: str | None = None, every: int | None = None,
         rounds: int | None = None, bits: float | None = None, mode: str = "local",
         buffers: str = "own", timeout: float | None = None, save_every: int = 1,
         through: str | None = None, **more: Any) -> Run:
    """Train this model as a device of the run whose cloud is in HOST:DIR,
    USER@HOST:DIR or a folder of this machine, see ace-cloud(1).

    name        of this device, the host's unless given
    dir         its folder, ./ace-NAME unless given: state and checkpoint
    every       steps of the optimiser in a round, 50 unless given; each every-th
                optimizer.step() exchanges
    rounds      after which run.done is true; the cloud's unless given
    bits        for each value: refused unless the cloud says the same
    mode        "local": local steps, then the average of what they changed; "replay":
                the steps are taken back, and all devices take as many with the average
                gradient; "gradients": the average gradient at every step
    buffers     "own" or "mean": averaged as the parameters are
    timeout     seconds to wait for the average of a round, for ever unless given
    save_every  rounds between two checkpoints
    through     a pipeline of one's own in the place of cloud
    more        outer_rate, outer_momentum (local); schedule (replay); state, weight,
                samples, patience, run: see ace-pytorch(7)

    Under ace-edge(1), as its COMMAND, the run is the one that ace-edge joined."""
    if not log.hasHandlers():           # say what happens, unless the script logs
        handler = logging.StreamHandler()
        handler.setFormatter(logging.Formatter("ace: %(message)s"))
        log.addHandler(handler)
        log.setLevel(logging.INFO)
    modes = {"local": Local, "replay": Replay, "gradients": Gradients}
    if mode not in modes:
        raise Error(f"mode is one of {', '.join(modes)}, not {mode!r}")
    if every is None:
        every = 1 if mode == "gradients" else 50
    if not isinstance(every, int) or every < 1 or mode == "gradients" and every > 1:
        raise Error(f"every is a number of steps, and 1 with mode=\"gradients\": "
                    f"not {every!r}")
    inside = transport.INHERITED and not through
    if not (inside or cloud or through) or cloud and through:
        raise Error("cloud=\"[[USER@]HOST:]DIR\" is missing, or through= in its place")
    name = os.environ["ACE_NAME"] if inside else \
        name or socket.gethostname().split(".")[0]
    dir = os.path.abspath(os.environ["ACE_DIR"] if inside else dir or f"ace-{name}")
    if inside:
        way = transport.INHERITED
    elif through:
        os.makedirs(dir, exist_ok=True)
        way = Way.through(through)
    else:
        way = Way.through(_pipeline(cloud, name, dir, bits))
    said = _agreed(dir)
    for what, mine in (("rounds", rounds), ("bits", bits)):
        if mine and said.get(what, 0) not in (0, mine):
            raise Error(f"{what}={mine:g} here, and the cloud says {said[what]:g}: "
                        "leave it out", 5)
    if mode == "replay":
        more["steps"] = every
    elif mode == "local":
        more["watch"] = True
    more.setdefault("patience", float("inf") if timeout is None else timeout)
    way_ = modes[mode](model, optimizer, way, name, checkpoint=f"{dir}/model.pt",
                       buffers=buffers, save_every=save_every, timeout=timeout, **more)
    return Run(way_, every, rounds or int(said.get("rounds", 0)) or None)


def _pipeline(cloud: str, name: str, dir: str, bits: float | None) -> str:
    """Let ace-edge greet the cloud and make the folder; return the pipeline that it
    would run."""
    words = ["ace-edge", cloud, "--name", name, "--state", dir, "--print"]
    if bits is not None:
        words += ["--bits", f"{bits:g}"]
    try:
        got = subprocess.run(words, env=environment(), stdin=subprocess.DEVNULL,
                             stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    except OSError as e:
        raise Error(f"cannot run 'ace-edge': {e.strerror}; is it in PATH, or beside "
                    "this Python?") from None
    if got.returncode:
        raise Error(got.stderr.strip() or f"ace-edge ended with status "
                    f"{got.returncode}", got.returncode)
    return got.stdout


def _agreed(dir: str) -> dict[str, float]:
    """Return the numbers that the cloud said, from the folder of this device."""
    try:
        with open(f"{dir}/run", encoding="utf-8") as f:
            rows = [line.split() for line in f]
    except FileNotFoundError:
        return {}
    return {r[0]: float(r[1]) for r in rows if r and r[0] in ("bits", "rounds")}


class Run:
    """What ace.join gives: with it, the optimiser's steps are those of a run."""

    def __init__(self, way: Device, every: int, rounds: int | None) -> None:
        self.way, self.every, self.rounds, self.count = way, every, rounds, 0
        if way.optimizer is not None:
            step = types.MethodType(functools.wraps(way.take)(
                lambda _, *args, **more: self._step(*args, **more)), way.optimizer)
            way.optimizer.step = step

    @property
    def round(self) -> int:
        """The next round, from 0."""
        return self.way.round

    @property
    def done(self) -> bool:
        """Whether the run has had all of its rounds."""
        return self.rounds is not None and self.way.round >= self.rounds

    @property
    def last(self) -> dict[str, Any]:
        """What the last round took: bytes (sent), participants, seconds, and what
        these were for: steps, exchange, apply, save."""
        return self.way.last

    def digest(self) -> str:
        return self.way.digest()

    def _step(self, *args: Any, **more: Any) -> Any:
        """Take the place of optimizer.step()."""
        if self.way.gone or self.done:
            return self.way.take(*args, **more)
        if isinstance(self.way, Local):
            got = self.way.take(*args, **more)
            self.way.stepped()
        elif args or more:
            raise Error("the optimiser takes a step with a closure, which only "
                        "mode=\"local\" can")
        else:
            got = self.way.step()
        self.count += 1
        if self.count == self.every and not isinstance(self.way, Gradients):
            self.sync()
        elif isinstance(self.way, Gradients):
            self._say()
        return got

    def sync(self) -> None:
        """Exchange now, whatever the number of steps; with mode="gradients": make .grad
        the average, as before clipping."""
        self.way.sync()
        self.count = 0
        if not isinstance(self.way, Gradients):
            self._say()

    def _say(self) -> None:
        last, left = self.way.last, (self.rounds or 0) - self.way.round
        sent = last.get("bytes", 0)
        log.log(logging.DEBUG if self.way.way.ends else logging.INFO, "round %d%s: %s%.1f s computing%s, exchange %.1f s%s", self.way.round,
                 f"/{self.rounds}" if self.rounds else "",
                 f"{last['participants']} devices, " if "participants" in last else "",
                 last["steps"], f", sent {sent / 1e6:.3g} MB "
                 f"({4 * last['values'] / sent:.3g}x smaller)" if sent else "",
                 last["exchange"], f", about {left * last['seconds']:.0f} s left"
                 if left > 0 else "")

    def close(self) -> None:
        """End the run; raises if a program failed."""
        self.way.close()

    def __enter__(self) -> Run:
        return self

    def __exit__(self, kind: Any, *_: Any) -> None:
        if kind is None:
            self.close()
        else:
            self.way.leave("the block that it was in has failed: make another one")
