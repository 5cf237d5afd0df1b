"""Scales of the rows and columns of matrices, by which differences are multiplied before they
are sent: at few bits, values with larger gradients then get smaller errors."""
from __future__ import annotations

import math
from typing import Iterator

import torch
from torch import Tensor

from .transport import Pairs, store

# A scale is 2^(k/2) for a whole number k from -MOST to MOST; no function of torch, whose last
# bit may differ between machines, computes it.  The tensor has log2(scale) / 4, which is large
# beside differences of weights, so that the first rounds send it in spite of few bits.
MOST = 8
LIMIT = 1e3     # of a row's or column's mean square, in means of the matrix
TABLE = torch.tensor([math.ldexp((1, 1.4142135)[k % 2], k // 2) for k in range(-MOST, MOST + 1)],
                     dtype=torch.float32, device="cpu")


def due(n: int) -> bool:
    """Return whether n is a power of 4: estimates are sent in these rounds, counted from 1.  A
    lossy code needs more than one round for them, but while the scales in use change, the
    residuals of error feedback are wrong.  So scales change only after the round after these."""
    return n > 0 and n & n - 1 == 0 and n % 3 == 1


def wide(params: Pairs) -> list[int]:
    """Return the places of the parameters with more than one row and column.  Like Adafactor,
    a kernel of a convolution has its first dimension as rows, and the others as columns."""
    return [i for i, (_, p) in enumerate(params)
            if p.dim() > 1 and p.numel() > p.shape[0] > 1]


def added(params: Pairs) -> Pairs:
    """Return what the common model has more: one tensor with the values of all scales, since each
    tensor costs bytes in a shard.  No parameter's name begins with a dot."""
    n = sum(p.shape[0] + p[0].numel() for p in (params[i][1] for i in wide(params)))
    return [(".scales", torch.zeros(n, dtype=torch.float32, device="cpu"))] if n else []


def parts(params: Pairs, values: Tensor) -> Iterator[tuple[int, Tensor, Tensor]]:
    """Yield the place of each wide parameter, and its rows' and columns' parts of the tensor of
    `added`, in the shapes to multiply by."""
    at = 0
    for i in wide(params):
        p = params[i][1]
        end = at + p.shape[0]
        rows = values[at:end].view(-1, *[1] * (p.dim() - 1))
        at = end + p[0].numel()
        yield i, rows, values[end:at].view(p.shape[1:])


def estimate(params: Pairs, squares: list[Tensor | None], into: Tensor) -> None:
    """Set the tensor of `added` to what this device's mean squared gradients suggest: scales of
    (mean of the row / mean of all) ^ (1/4), and so for columns."""
    for i, rows, columns in parts(params, into):
        s = squares[i]
        if s is None:
            continue
        v = s.float()
        for t, m in ((rows, v.mean([*range(1, v.dim())], keepdim=True)), (columns, v.mean(0))):
            # without a gradient yet, this is 0 / 0
            m = (m / m.mean()).nan_to_num(1, LIMIT).clamp(1 / LIMIT, LIMIT)
            store([t], [m.log2().div(16)])


def factors(params: Pairs, values: Tensor) -> dict[int, list[Tensor]]:
    """Return the scales of the rows and columns of each wide parameter, by its place, from the
    tensor of `added`."""
    return {i: [TABLE[x.mul(8).round().clamp(-MOST, MOST).long() + MOST] for x in both]
            for i, *both in parts(params, values)}
