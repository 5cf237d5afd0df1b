"""bench-peers.py FILE: raw f32 through numpy, torch and blosc, one thread.

A line for each: our codec that does the same, the peer, GB/s of f32, how many
times smaller the result is; separated by tabs.  What is not installed is said.
"""
import sys
import time

import numpy as np

x = np.fromfile(sys.argv[1], dtype=np.float32)


def line(spec, name, code, size):
    """The best of three runs, in seconds of the processor; size(result) is its bytes."""
    best = 1e9
    for _ in range(3):
        at = time.process_time()
        got = code()
        best = min(best, time.process_time() - at)
    print(spec, name, 1e-9 * x.nbytes / best, x.nbytes / size(got), sep='\t')


def numpy_topk(share):
    at = np.argpartition(np.abs(x), x.size - int(share * x.size))
    at = at[x.size - int(share * x.size):].astype(np.int32)
    return at, x[at]


def numpy_q8():
    b = x.reshape(-1, 32)
    scale = np.abs(b).max(axis=1) / np.float32(127)
    inverse = np.divide(1, scale, out=np.zeros_like(scale), where=scale > 0)
    return np.rint(b * inverse[:, None]).astype(np.int8), scale


def both(got):
    return sum(part.nbytes for part in got)


line('f16', 'numpy astype(float16)', lambda: x.astype(np.float16),
     lambda a: a.nbytes)
line('q8', 'numpy, int8 in blocks of 32', numpy_q8, both)
line('sign', 'numpy packbits(signbit)', lambda: np.packbits(np.signbit(x)),
     lambda a: a.nbytes)
line('topk:0.01', 'numpy argpartition, 1 %', lambda: numpy_topk(0.01), both)
line('topk:0.1', 'numpy argpartition, 10 %', lambda: numpy_topk(0.1), both)

try:
    import torch
except ImportError:
    print('torch: not installed')
else:
    torch.set_num_threads(1)
    t = torch.from_numpy(x)

    def torch_topk(share):
        at = torch.topk(t.abs(), int(share * x.size), sorted=False)[1]
        return at.int().numpy(), t[at].numpy()

    line('f16', 'torch half()', lambda: t.half().numpy(), lambda a: a.nbytes)
    line('topk:0.01', 'torch topk, 1 %', lambda: torch_topk(0.01), both)
    line('topk:0.1', 'torch topk, 10 %', lambda: torch_topk(0.1), both)

try:
    import blosc
except ImportError:
    print('blosc: not installed')
else:
    blosc.set_nthreads(1)
    raw = x.tobytes()
    for name, shuffle in (('lz4', blosc.BITSHUFFLE), ('zstd', blosc.SHUFFLE)):
        line('lossless', 'blosc ' + name,
             lambda: blosc.compress(raw, 4, 5, shuffle, name), len)
