#!/usr/bin/env python3
"""One device of several, in PyTorch: local steps, then their difference through
a pipeline of your choice, then an outer step with what comes back.

    train_torch.py --device edge1 text                        # alone
    train_torch.py --device edge1 --through '
        ace-expand -S s1 | ace-score -S s1 | ace-select --bits 1.3 |
        ace-compress -S s1 | ssh -T cloud step | ace-expand' text

The pipeline reads one shard stream and writes one; it is run once a round,
and what it keeps from round to round is in its -S directories.  Tensors go in
and out as safetensors.  Needs torch and safetensors.
"""
import argparse
import subprocess

import torch
from safetensors.torch import load, save
from torch import nn
from torch.nn import functional as F


class Model(nn.Module):
    """A small transformer over bytes."""

    def __init__(self, width=96, layers=2, heads=3, context=64):
        super().__init__()
        self.bytes = nn.Embedding(256, width)
        self.places = nn.Embedding(context, width)
        layer = nn.TransformerEncoderLayer(
            width, heads, 4 * width, dropout=0, activation="gelu",
            batch_first=True, norm_first=True)
        self.layers = nn.TransformerEncoder(layer, layers)
        self.out = nn.Linear(width, 256)

    def forward(self, x):
        n = x.shape[1]
        mask = nn.Transformer.generate_square_subsequent_mask(n)
        x = self.bytes(x) + self.places(torch.arange(n))
        return self.out(self.layers(x, mask=mask))


def loss_of(model, windows):
    out = model(windows[:, :-1])
    return F.cross_entropy(out.flatten(0, 1), windows[:, 1:].flatten())


def windows(text, count, size, generator):
    at = torch.randint(len(text) - size, (count,), generator=generator)
    return torch.stack([text[i:i + size] for i in at.tolist()]).long()


def exchange(delta, o, step):
    """The mean of all devices' differences, for this device's."""
    stages = (f"ace-import -f safetensors -k delta -r torch -d {o.device}"
              f" -s {step} --base-version {step}"
              f" -n {o.interval * o.batch * 64} | {o.through}"
              f" | ace-export -f safetensors --step {step}")
    done = subprocess.run(["bash", "-o", "pipefail", "-c", stages], check=True,
                          input=save(delta), stdout=subprocess.PIPE)
    return load(done.stdout)


def main():
    p = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    p.add_argument("--device", default="edge1")
    p.add_argument("--through", default="ace-compress -c q8 | ace-expand")
    p.add_argument("--rounds", type=int, default=20)
    p.add_argument("--interval", type=int, default=10)
    p.add_argument("--batch", type=int, default=16)
    p.add_argument("--rate", type=float, default=3e-3)
    p.add_argument("--outer-rate", type=float, default=0.9)
    p.add_argument("--outer-momentum", type=float, default=0.5)
    p.add_argument("text")
    o = p.parse_args()

    with open(o.text, "rb") as f:
        text = torch.frombuffer(bytearray(f.read()), dtype=torch.uint8)
    torch.manual_seed(1)            # every device starts from the same weights
    model = Model()
    chance = torch.Generator().manual_seed(sum(o.device.encode()))
    inner = torch.optim.AdamW(model.parameters(), lr=o.rate)
    outer = torch.optim.SGD(model.parameters(), lr=o.outer_rate,
                            momentum=o.outer_momentum,
                            nesterov=o.outer_momentum > 0)
    for step in range(o.rounds):
        start = {k: v.detach().clone() for k, v in model.named_parameters()}
        for _ in range(o.interval):
            loss = loss_of(model, windows(text, o.batch, 65, chance))
            inner.zero_grad()
            loss.backward()
            inner.step()
        print(f"round {step} loss {loss.item():.4f}", flush=True)
        mean = exchange({k: (start[k] - v.detach()).contiguous()
                         for k, v in model.named_parameters()}, o, step)
        with torch.no_grad():
            for k, v in model.named_parameters():
                v.copy_(start[k])
                v.grad = mean[k]    # a difference acts like a gradient
        outer.step()


if __name__ == "__main__":
    main()
