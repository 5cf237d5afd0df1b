#!/usr/bin/env python3
"""Trains a model in PyTorch on several machines: ace edge HOST:run -- python3 train.py

In each round a device takes 10 steps on data of its own, and ace.join averages what
they changed in the weights of all devices.  The same command continues from the
checkpoint.
"""
import os, shutil, sys, zlib
import torch
from torch import nn

# for an installed ace, unless Python already finds the module
sys.path.append(os.path.dirname(shutil.which("ace")) + "/../share/ace/pytorch")
import ace_shards as ace

name = os.environ["ACE_NAME"]
torch.manual_seed(1)                        # the same model on all devices
model = nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 8))
optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
teacher = torch.randn(64, 8)
with ace.join(model, optimizer, every=10) as run:
    while not run.done:
        data = torch.Generator().manual_seed(zlib.crc32(f"{name} {run.round}".encode()))
        for step in range(10):              # the last step exchanges
            x = torch.randn(64, 64, generator=data)
            loss = nn.functional.cross_entropy(model(x), (x @ teacher).argmax(1))
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
print(f"{name}: {run.round} rounds, model {run.digest()}", file=sys.stderr)
