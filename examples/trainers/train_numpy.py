#!/usr/bin/env python3
"""Trains a model in numpy on several machines: ace edge HOST:run -- python3 train.py

In each round a device takes 20 steps on data of its own, sends what they changed in
the weights, and applies the mean of what all devices changed.  The same line typed
again goes on from the checkpoint: a round that is repeated computes the same again.
"""
import json, os, subprocess, sys, zlib
import numpy as np

name, rounds = os.environ["ACE_NAME"], int(os.environ["ACE_ROUNDS"]) or 1 << 40
checkpoint = os.path.join(os.environ["ACE_DIR"], "model.npz")


def send(f, arrays):
    """One safetensors file of f32."""
    head, at = {}, 0
    for k, v in arrays.items():
        head[k] = {"dtype": "F32", "shape": v.shape, "data_offsets": [at, at + 4 * v.size]}
        at += 4 * v.size
    head = json.dumps(head).encode()
    f.write(len(head).to_bytes(8, "little") + head)
    f.write(b"".join(v.astype("<f4").tobytes() for v in arrays.values()))
    f.flush()


def receive(f):
    head = json.loads(f.read(int.from_bytes(f.read(8), "little")) or sys.exit(1))
    head.pop("__metadata__", None)
    data = f.read(max(v["data_offsets"][1] for v in head.values()))
    return {k: np.frombuffer(data, "<f4", int(np.prod(v["shape"])), v["data_offsets"][0])
            .reshape(v["shape"]) for k, v in head.items()}


model, begin = {"w": np.zeros((256, 32), "f4"), "b": np.zeros(32, "f4")}, 0
if os.path.exists(checkpoint):
    saved = dict(np.load(checkpoint))
    begin, model = int(saved.pop("round")), saved
teacher = np.random.default_rng(1).normal(size=(256, 32))
out = subprocess.Popen(["ace-import", "--many", "-k", "delta", "-d", name,
                        "-s", str(begin)], stdin=subprocess.PIPE)
back = subprocess.Popen(["ace-export", "--many"], stdout=subprocess.PIPE)
for r in range(begin, rounds):
    new = {k: v.copy() for k, v in model.items()}
    data = np.random.default_rng([zlib.crc32(name.encode()), r])
    for step in range(20):
        x = data.normal(size=(32, 256)).astype("f4")
        error = x @ new["w"] + new["b"] - x @ teacher
        new["w"] -= 0.001 * x.T @ error
        new["b"] -= 0.001 * error.sum(0)
    send(out.stdin, {k: new[k] - model[k] for k in model})
    model = {k: model[k] + v for k, v in receive(back.stdout).items()}
    np.savez(checkpoint + ".new.npz", round=r + 1, **model)
    os.replace(checkpoint + ".new.npz", checkpoint)
digest = zlib.crc32(b"".join(model[k].tobytes() for k in sorted(model)))
print(f"{name}: {rounds} rounds, loss {(error ** 2).mean() if rounds > begin else 0:.3g},"
      f" model {digest:08x}", file=sys.stderr)
