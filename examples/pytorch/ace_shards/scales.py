"""Scales of the rows and columns of matrices, by which differences are multiplied before they
are sent: at few bits, values with larger gradients then get smaller errors."""
from __future__ import annotations

import math
from typing import Iterator

import torch
from torch import Tensor

from .transport import Pairs, store

# 2^(i/8), and exact powers of two times these: no function of torch, whose last bit may
# differ between machines
EIGHTHS = (1.0, 1.0905077, 1.1892071, 1.2968396, 1.4142136, 1.5422108, 1.6817928, 1.8340081)
MOST = 32       # the largest scale is 2^(MOST / 8), the smallest 2^(-MOST / 8)
UNIT = 64       # a value is log2(scale) / UNIT, about as large as a difference of weights
LIMIT = 1e6     # of a row's or column's mean square, in means of the matrix
TABLE = torch.tensor([math.ldexp(EIGHTHS[k % 8], k // 8) for k in range(-MOST, MOST + 1)],
                     dtype=torch.float32, device="cpu")


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
    (mean of the row / mean of all) ^ (1/8), and so for columns."""
    for i, rows, columns in parts(params, into):
        s = squares[i]
        if s is None:
            continue
        v = s.float()
        for t, m in ((rows, v.mean([*range(1, v.dim())], keepdim=True)), (columns, v.mean(0))):
            # without a gradient yet, this is 0 / 0
            m = (m / m.mean()).nan_to_num(1, LIMIT).clamp(1 / LIMIT, LIMIT)
            store([t], [m.log2().div(8 * UNIT)])


def factors(params: Pairs, values: Tensor) -> dict[int, list[Tensor]]:
    """Return the scales of the rows and columns of each wide parameter, by its place, from the
    tensor of `added`."""
    return {i: [TABLE[x.mul(8 * UNIT).round().clamp(-MOST, MOST).long() + MOST] for x in both]
            for i, *both in parts(params, values)}
