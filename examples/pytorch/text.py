#!/usr/bin/env python3
"""A language model of bytes, learnt by several devices with ace.join.

    text.py --data FILE --passes 1 --device edge1 --index 1 --of 4 CLOUD
    text.py --data FILE --passes 1 --of 4       # the same, synchronous

Options and output are those of digits.py, and those of the model below; the default model
has 50 million parameters, for a GPU (--on cuda).  The last 4 % of the text are for the test,
and the accuracy is that of the next byte.
"""
import torch
from torch import nn

import digits


class Transformer(nn.Module):
    def __init__(self, o):
        super().__init__()
        self.embed = nn.Embedding(256, o.width)
        self.place = nn.Parameter(0.02 * torch.randn(o.context, o.width))
        self.layers = nn.TransformerEncoder(
            nn.TransformerEncoderLayer(o.width, o.heads, 4 * o.width, 0, "gelu",
                                       batch_first=True, norm_first=True),
            o.layers, nn.LayerNorm(o.width))
        self.head = nn.Linear(o.width, 256)
        self.register_buffer("mask", torch.full((o.context, o.context), -torch.inf).triu(1))

    def forward(self, x):
        """x [n, context] bytes; returns logits [n, 256, context]."""
        return self.head(self.layers(self.embed(x) + self.place, self.mask)).transpose(1, 2)


def windows(path, context, least):
    """Return the training part, of at least that many windows [n, context], and the test
    part, both with the next bytes."""
    with open(path, "rb") as f:
        text = torch.frombuffer(bytearray(f.read()), dtype=torch.uint8).long()
    n = (len(text) - 1) // context
    x, y = (text[k:k + n * context].view(n, context) for k in (0, 1))
    test, need = n // 25, max(25, least * 25 // 24 + 1)
    if n < need:
        raise SystemExit(f"{path}: {len(text)} bytes, expected over {need * context}")
    return (x[:-test], y[:-test]), (x[-test:], y[-test:])


if __name__ == "__main__":
    p = digits.options(__doc__)
    for name, value in ("width", 640), ("layers", 10), ("heads", 10), ("context", 256):
        p.add_argument(f"--{name}", type=int, default=value)
    o = p.parse_args()
    digits.main(o, *windows(o.data, o.context, o.of * o.batch), lambda: Transformer(o))
