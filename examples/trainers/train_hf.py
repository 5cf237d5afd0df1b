#!/usr/bin/env python3
"""Trains the model in a Hugging Face folder on several machines:

    ace edge HOST:run -- python3 train.py FOLDER

Reads all *.safetensors of FOLDER, which must be in f32.  Trains and sends only tensors
whose names begin with TRAINED (all, unless it is set).  After each round the folder's
files are the new model, with the number of rounds in their metadata; config.json and the
tokenizer stay as they are.  The same command continues the run.  Replace the function
train by your trainer.
"""
import glob, json, os, subprocess, sys, zlib
import numpy as np

name, rounds = os.environ["ACE_NAME"], int(os.environ["ACE_ROUNDS"]) or 1 << 40
trained = os.environ.get("TRAINED", "")


def train(model, r):
    """Take some steps on data of this device: here towards a value, with noise."""
    data = np.random.default_rng([zlib.crc32(name.encode()), r])
    return {k: v + 0.1 * (0.5 - v + data.normal(size=v.shape, scale=0.1).astype("f4"))
            for k, v in model.items()}


def receive(f):
    head = json.loads(f.read(int.from_bytes(f.read(8), "little")) or sys.exit(1))
    meta = head.pop("__metadata__", {})
    for k, v in head.items():
        if v["dtype"] != "F32":
            sys.exit(f"{f.name}: '{k}' is of type {v['dtype']}, expected F32: convert it")
    data = f.read(max(v["data_offsets"][1] for v in head.values()))
    return {k: np.frombuffer(data, "<f4", int(np.prod(v["shape"])), v["data_offsets"][0])
            .reshape(v["shape"]) for k, v in head.items()}, meta


def send(f, arrays, meta={}):
    head, at = {"__metadata__": meta}, 0
    for k, v in arrays.items():
        head[k] = {"dtype": "F32", "shape": v.shape, "data_offsets": [at, at + 4 * v.size]}
        at += 4 * v.size
    head = json.dumps(head).encode()
    f.write(len(head).to_bytes(8, "little") + head)
    f.write(b"".join(v.astype("<f4").tobytes() for v in arrays.values()))
    f.flush()


files, at, begin = {}, {}, 1 << 40
for path in sorted(glob.glob(os.path.join(sys.argv[1], "*.safetensors"))):
    with open(path, "rb") as f:
        files[path], meta = receive(f)
    at[path] = int(meta.get("ace_round", 0))
    begin = min(begin, at[path])
model = {k: v for part in files.values() for k, v in part.items() if k.startswith(trained)}
out = subprocess.Popen(["ace-import", "--many", "-k", "delta", "-d", name,
                        "-s", str(begin)], stdin=subprocess.PIPE)
back = subprocess.Popen(["ace-export", "--many"], stdout=subprocess.PIPE)
for r in range(begin, rounds):
    new = train(model, r)
    send(out.stdin, {k: new[k] - model[k] for k in model})
    mean = receive(back.stdout)[0]
    for path, part in files.items():
        if at[path] > r:    # a run that was killed wrote this file, but not all
            continue
        part.update({k: part[k] + mean[k] for k in part if k in mean})
        with open(path + ".new", "wb") as f:
            send(f, part, {"format": "pt", "ace_round": str(r + 1)})
        os.replace(path + ".new", path)
    model = {k: v for part in files.values() for k, v in part.items() if k.startswith(trained)}
digest = zlib.crc32(b"".join(model[k].tobytes() for k in sorted(model)))
print(f"{name}: {rounds} rounds, model {digest:08x}", file=sys.stderr)
