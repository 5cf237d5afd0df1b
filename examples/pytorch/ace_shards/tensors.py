"""Name, check, checksum and copy the tensors of a model."""
from __future__ import annotations

import numbers
import re
import sys
import zlib
from typing import Any, Callable, Iterable

import torch
from torch import Tensor

from .transport import NAMES, Error, Pairs


# ---- what can be sent ----

def opaque(t: Tensor) -> bool:
    return torch.nn.parameter.is_lazy(t) or t.is_meta or t.is_quantized or \
        t.layout != torch.strided


def refuse(t: Tensor) -> str | None:
    """Return why this tensor cannot be sent, with advice; or None."""
    if torch.nn.parameter.is_lazy(t) or t.is_meta:
        return "has no values yet: run the model once, or fill it, before ace.join"
    if t.layout != torch.strided:
        return "is sparse: use .to_dense(), or Embedding(sparse=False)"
    if t.is_quantized:
        return "is quantised: train a model of floats, and quantise it afterwards"
    if t.dtype not in NAMES:
        return f"is of type {t.dtype}, not f32, f16 or bf16: use .float()"
    if 0 in (s for s, n in zip(t.stride(), t.shape) if n > 1):
        return "has elements that share their memory (expand): use .clone()"
    if t.device.type == "cpu" and t.is_shared():
        return "is in memory shared with other processes: use .clone()"
    return None


# torch modules and their classes with which a process has only a part of the model; a
# module that was not imported is not used
PARTS = (("torch.distributed.fsdp", "FullyShardedDataParallel"),
         ("torch.distributed.tensor", "DTensor"),       # of fully_shard
         ("torch.distributed._tensor", "DTensor"))


def named(model: torch.nn.Module) -> tuple[dict[str, Tensor], dict[str, Tensor]]:
    """Return the parameters and the buffers of a model by name, without the prefixes
    of wrappers (module. of DistributedDataParallel, _orig_mod. of torch.compile), so that
    devices with and without a wrapper have the same names."""
    parts = tuple(filter(None, (getattr(sys.modules.get(m), c, None) for m, c in PARTS)))
    for x in (*model.modules(), *model.parameters()):
        if isinstance(x, parts):
            raise Error(f"the model has a {type(x).__name__}, so each process has only "
                        "parts of parameters, but only whole parameters can be sent: "
                        "use DistributedDataParallel, or train in one process")
    tensors = [*model.named_parameters(), *model.named_buffers()]
    names = [re.sub(r"(^|\.)_orig_mod(?=\.)", "", n).lstrip(".") for n, _ in tensors]
    while names and all(n.startswith("module.") for n in names):
        names = [n[7:] for n in names]
    if len(set(names)) < len(names):
        same = next(n for n in names if names.count(n) > 1)
        raise Error(f"two parameters or buffers are named '{same}' when 'module.' and "
                    "'_orig_mod.' are left out: rename one of them")
    found = [(n, t) for n, (_, t) in zip(names, tensors)]
    n = len(list(model.parameters()))
    return dict(found[:n]), dict(found[n:])


def parameters(model: torch.nn.Module) -> Pairs:
    """Return the parameters to send; tied parameters occur once."""
    found = [(n, p) for n, p in named(model)[0].items() if p.requires_grad]
    if not found:
        raise Error("no parameter of the model requires a gradient, so nothing can be "
                    "trained: set requires_grad")
    for name, p in found:
        why = refuse(p)
        if why:
            raise Error(f"parameter '{name}' {why}")
    last, end = "", 0
    for at, name, p in sorted((p.data_ptr(), n, p) for n, p in found
                              if p.numel() and p.data_ptr()):
        if at < end:
            raise Error(f"parameters '{last}' and '{name}' share memory: to tie them, "
                        "assign the same Parameter to both, else .clone() one of them")
        spread = 1 + sum(s * (n - 1) for s, n in zip(p.stride(), p.shape))
        last, end = name, at + spread * p.element_size()
    return found


def averaged(model: torch.nn.Module) -> Pairs:
    """Return the buffers that buffers="mean" averages: those of floats in the state_dict."""
    kept = {id(t) for t in model.state_dict(keep_vars=True).values()}
    found = [(n, b) for n, b in named(model)[1].items()
             if id(b) in kept and b.is_floating_point()]
    for name, b in found:
        why = refuse(b)
        if why:
            raise Error(f"buffer '{name}' {why}; or leave buffers=\"mean\" out")
    return found


# ---- checksums and copies ----

def _sum(t: Tensor) -> Tensor:
    """Return, on t's device, the sum of t's words, each times a number that depends on its
    position."""
    def sums(bits: Tensor) -> Tensor:
        place = torch.arange(1, min(len(bits), 1 << 16) + 1, device=bits.device)
        place = place * -0x61c8864680b583eb     # 2^64 over the golden ratio
        place = place ^ place >> 32
        parts = [bits[i:i + (1 << 16)] for i in range(0, len(bits) or 1, 1 << 16)]
        return torch.stack([(b * place[:len(b)]).sum() for b in parts])
    kinds = {1: torch.uint8, 2: torch.int16, 4: torch.int32}
    bits = torch.view_as_real(t.detach()) if t.is_complex() else t.detach()
    bits = bits.contiguous().view(kinds.get(bits.element_size(), torch.int64))
    return sums(sums(bits.reshape(-1))).sum()


def marks(tensors: Iterable[Tensor]) -> list[str]:
    """Return for each tensor a text that changes when its values change or swap places.
    Each device needs only one transfer."""
    tensors = list(tensors)
    said = ["nothing yet" if torch.nn.parameter.is_lazy(t) else
            f"{t.dtype} {tuple(t.shape)}" for t in tensors]
    sums: dict[torch.device, list] = {}
    for i, t in enumerate(tensors):
        if not opaque(t):
            sums.setdefault(t.device, []).append((i, _sum(t)))
    for found in sums.values():
        values = torch.stack([s for _, s in found]).tolist()
        for (i, _), value in zip(found, values):
            said[i] += f" {value}"
    return said


def some(t: Tensor, n: int = 4096) -> Tensor:
    """Return about n values of a tensor, or all if it has fewer than 2n.  The distance between
    them is odd, so that they come from many columns of a matrix."""
    return t.detach().reshape(-1)[::t.numel() // n | 1]


def copied(x: Any, at: Callable = lambda t: t.detach().clone()) -> Any:
    """Return a copy of x, an optimiser's state, with at(t) in place of each tensor t."""
    if torch.is_tensor(x):
        return at(x)
    if isinstance(x, dict):
        return {k: copied(v, at) for k, v in x.items()}
    if isinstance(x, (list, tuple)):
        return (list if isinstance(x, list) else tuple)(copied(v, at) for v in x)
    if x is None or isinstance(x, (numbers.Number, str)):
        return x
    raise Error(f"the optimiser's state or param_groups has a {type(x).__name__}, but "
                "mode=\"replay\" can restore only tensors, numbers and strings: use "
                "mode=\"local\"")


def renewed(had: Any, now: Any) -> Any:
    """Return a copy of now, in the tensors of had where they fit: this needs no memory, and
    so cannot fail half way."""
    if isinstance(now, dict) and isinstance(had, dict):
        return {k: renewed(had.get(k), v) for k, v in now.items()}
    if isinstance(now, list) and isinstance(had, list) and len(now) == len(had):
        return [renewed(h, v) for h, v in zip(had, now)]
    if torch.is_tensor(now) and torch.is_tensor(had) and (
            had.shape, had.dtype, had.device) == (now.shape, now.dtype, now.device):
        return had.copy_(now.detach())
    return copied(now)


def checksum(x: Any) -> str:
    """Return a checksum of x, which must be of a type that copied takes."""
    tensors: list[Tensor] = []
    x = copied(x, lambda t: tensors.append(t) or len(tensors))

    def sort(x: Any) -> Any:
        if isinstance(x, dict):
            return sorted((str(k), sort(v)) for k, v in x.items())
        return list(map(sort, x)) if isinstance(x, (list, tuple)) else x
    return f"{zlib.crc32(repr([sort(x), marks(tensors)]).encode()):08x}"


def compare(had: dict, now: dict, what: str) -> None:
    """Raise an Error that names the first value that differs, if one does."""
    for name in {**now, **had}:
        if had.get(name) != now.get(name):
            raise Error(f"{name} is {now.get(name, 'absent or frozen')}, but {what} has "
                        f"{had.get(name, 'none')}: give the old value again, or begin "
                        "another run in another folder, with empty states")
