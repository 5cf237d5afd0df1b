"""Common parts of the tests' trainers."""
import os
import sys
import torch
from torch import nn
from torch.nn import functional as F
import logging
import ace_shards
from ace_shards import algorithms, checkpoint, front, tensors, transport


class Inside:
    """The module ace_shards with the names of all its parts."""

    parts = ace_shards, algorithms, checkpoint, front, tensors, transport

    def __getattr__(self, name):
        return next(getattr(m, name) for m in self.parts if hasattr(m, name))


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
    """Set a rate that depends on the number of the step."""
    for g in optimizer.param_groups:
        g["lr"] = 1e-2 * min(1, (step + 1) / 8)


def kill_at(place):
    """Kill this process (SIGKILL) at the N-th call of function PLACE; place: PLACE:N."""
    place, n = place.split(":")
    owners = {"replace": [os], "send": [ace.Pipe], "_fill": [ace.Pipe]}.get(
        place, [ace.Local, ace.Replay, ace.Gradients])
    calls = []

    def counted(old):
        def new(*args):
            calls.append(1)
            if len(calls) == int(n):
                os.kill(os.getpid(), 9)
            return old(*args)
        return new
    for owner in owners:
        if hasattr(owner, place):
            setattr(owner, place, counted(getattr(owner, place)))


class fails:
    """with fails(TEXT): the block has to raise an ace.Error that contains TEXT."""

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
    """Wraps a model as torch.compile does with OptimizedModule."""

    def __init__(self, model):
        super().__init__()
        self._orig_mod = model

    def forward(self, *x):
        return self._orig_mod(*x)


def compiled(model):
    """Wrap the model with torch.compile, without generated code, or with Wrapped."""
    if hasattr(torch, "compile"):
        return torch.compile(model, backend="eager")
    return Wrapped(model)


class Scaler:
    """Works as torch.amp.GradScaler, which before torch 2.3 needs CUDA."""

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
