#!/usr/bin/env python3
"""Trains a model in PyTorch on several machines: ace edge HOST:run -- python3 train.py

In each round a device takes 10 steps on data of its own, sends what they changed in
the weights, and applies the mean of what all devices changed.  The same line typed
again goes on from the checkpoint.
"""
import json, os, subprocess, sys, zlib
import torch
from torch import nn

name, rounds = os.environ["ACE_NAME"], int(os.environ["ACE_ROUNDS"]) or 1 << 40
checkpoint = os.path.join(os.environ["ACE_DIR"], "model.pt")


def send(f, tensors):
    """One safetensors file of f32."""
    head, at = {}, 0
    for k, v in tensors.items():
        head[k] = {"dtype": "F32", "shape": list(v.shape),
                   "data_offsets": [at, at + 4 * v.numel()]}
        at += 4 * v.numel()
    head = json.dumps(head).encode()
    f.write(len(head).to_bytes(8, "little") + head)
    f.write(b"".join(v.float().cpu().numpy().tobytes() for v in tensors.values()))
    f.flush()


def receive(f):
    head = json.loads(f.read(int.from_bytes(f.read(8), "little")) or sys.exit(1))
    head.pop("__metadata__", None)
    data = bytearray(f.read(max(v["data_offsets"][1] for v in head.values())))
    return {k: torch.frombuffer(data, dtype=torch.float32, offset=v["data_offsets"][0],
                                count=max(1, torch.Size(v["shape"]).numel()))
            .reshape(v["shape"]) for k, v in head.items()}


torch.manual_seed(1)                        # the same model on all devices
model = nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 8))
optimizer, begin = torch.optim.AdamW(model.parameters(), lr=3e-3), 0
teacher = torch.randn(64, 8)
if os.path.exists(checkpoint):
    saved = torch.load(checkpoint)
    model.load_state_dict(saved["model"])
    optimizer.load_state_dict(saved["optimizer"])
    begin = saved["round"]
out = subprocess.Popen(["ace-import", "--many", "-k", "delta", "-d", name,
                        "-s", str(begin)], stdin=subprocess.PIPE)
back = subprocess.Popen(["ace-export", "--many"], stdout=subprocess.PIPE)
for r in range(begin, rounds):
    was = {k: v.detach().clone() for k, v in model.named_parameters()}
    data = torch.Generator().manual_seed(zlib.crc32(f"{name} {r}".encode()))
    for step in range(10):
        x = torch.randn(64, 64, generator=data)
        loss = nn.functional.cross_entropy(model(x), (x @ teacher).argmax(1))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    with torch.no_grad():
        send(out.stdin, {k: v - was[k] for k, v in model.named_parameters()})
        mean = receive(back.stdout)
        for k, v in model.named_parameters():
            v.copy_(was[k] + mean[k])
    torch.save({"model": model.state_dict(), "optimizer": optimizer.state_dict(),
                "round": r + 1}, checkpoint + ".new")
    os.replace(checkpoint + ".new", checkpoint)
digest = zlib.crc32(b"".join(v.detach().numpy().tobytes() for v in model.parameters()))
print(f"{name}: {rounds} rounds, model {digest:08x}", file=sys.stderr)
