"""ace.join: make a model and its optimiser a device of a run."""
from __future__ import annotations

import logging
import numbers
import os
import socket
from typing import Any

import torch

from . import transport
from .algorithms import Gradients, Local, Replay, Run
from .transport import Error, Way, log, output


def join(model: torch.nn.Module, optimizer: Any, cloud: str | None = None, *,
         name: str | None = None, dir: str | None = None, every: int | None = None,
         rounds: int | None = None, bits: float | None = None, mode: str = "local",
         buffers: str = "own", timeout: float | None = None, save_every: int = 1,
         moment: bool = False, through: str | None = None, **more: Any) -> Run:
    """Train this model as a device of a run.  The cloud is HOST:DIR, USER@HOST:DIR or a
    folder of this machine; under ace-edge(1) it is that of ace-edge.  ace-pytorch(7)
    describes each argument.  The classes in algorithms.py get those in more:
    outer_rate, outer_momentum, schedule, state, weight, patience, run."""
    if not log.hasHandlers():           # print messages, unless the script configures logging
        handler = logging.StreamHandler()
        handler.setFormatter(logging.Formatter("ace: %(message)s"))
        log.addHandler(handler)
        log.setLevel(logging.INFO)
    modes = {"local": Local, "replay": Replay, "gradients": Gradients}
    if mode not in modes:
        raise Error(f"mode={mode!r}: expected one of {', '.join(modes)}")
    if every is None:
        every = 1 if mode == "gradients" else 50
    for what, n in (("every", every), ("rounds", rounds), ("save_every", save_every)):
        if n is not None and (not isinstance(n, numbers.Integral) or n < 1):
            raise Error(f"{what}={n!r}: expected a whole number, 1 or more")
    if mode == "gradients" and every > 1:
        raise Error(f"every={every}: with mode=\"gradients\" only every=1 is allowed")
    inside = transport.INHERITED and not through
    if not (inside or cloud or through) or cloud and through:
        raise Error("expected one of cloud=\"[[USER@]HOST:]DIR\" and through=\"PIPELINE\", "
                    f"found {'both' if cloud else 'neither: give one, or use ace edge'}")
    name = os.environ["ACE_NAME"] if inside else \
        name or socket.gethostname().split(".")[0]
    dir = os.path.abspath(os.environ["ACE_DIR"] if inside else dir or f"ace-{name}")
    if inside:
        way = transport.INHERITED
    elif through:
        os.makedirs(dir, exist_ok=True)
        way = Way.through(through)
    else:       # let ace-edge greet the cloud and make the state folder
        if ":" not in cloud.split("/")[0]:      # the script may change its folder
            cloud = os.path.abspath(cloud)
        way = Way.through(output(["ace-edge", cloud, "--name", name, "--state", dir,
                                  "--print"]))
    said = _agreed(dir)
    for what, mine in (("rounds", rounds), ("bits", bits)):
        if mine is not None and said.get(what, 0) not in (0, mine):
            raise Error(f"{what}={mine:.12g}, but the cloud's run has {said[what]:.12g}: leave "
                        f"{what}= out", 5)
    if moment:
        if through or mode != "local":
            raise Error("moment=True needs mode=\"local\" without through=, found "
                        f"mode={mode!r}{' with through=' if through else ''}")
        more["moment"] = f"{dir}/state/moment"
    more.setdefault("patience", float("inf") if timeout is None else timeout)
    return modes[mode](model, optimizer, way, name, checkpoint=f"{dir}/model.pt",
                       every=every, rounds=rounds or int(said.get("rounds", 0)) or None,
                       buffers=buffers, save_every=save_every, timeout=timeout, **more)


def _agreed(dir: str) -> dict[str, float]:
    """Return the cloud's settings, which ace-edge wrote into the folder of this device."""
    try:
        with open(f"{dir}/run", encoding="utf-8") as f:
            rows = [line.split() for line in f]
    except FileNotFoundError:
        return {}
    return {r[0]: float(r[1]) for r in rows if r and r[0] in ("bits", "rounds")}
