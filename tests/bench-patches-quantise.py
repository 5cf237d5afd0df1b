#!/usr/bin/env python3
"""bench-patches-quantise.py DIR: quantise each model f32-NAME in DIR, which bench-patches
made, to fp8-NAME as DeepSeek does and nvfp4-NAME as NVIDIA does.  Vectors, which have one
row, and for nvfp4 rows that are not multiples of 16 values, become bf16 instead."""
import os
import sys

import numpy

sys.dont_write_bytecode = True
import tensorfile  # noqa: E402

BLOCK, PART = 128, 16
F32 = numpy.float32


def bf16(x):
    u = x.view(numpy.uint32)
    return (u + 0x7fff + (u >> 16 & 1) >> 16).astype('<u2')


def f8(x):
    """Return the f8e4m3 code of the nearest of its 127 magnitudes, with the sign of x."""
    a = numpy.minimum(numpy.abs(x), F32(448))
    # -5: magnitudes below 2^-6, the subnormal ones
    e = numpy.where(a == 0, -5, numpy.maximum(numpy.frexp(a)[1], -5))
    # rint is from 8 on if normal; rounding up to 16 carries into the exponent
    m = numpy.rint(numpy.ldexp(a, 4 - e)).astype(int) + (e + 5) * 8
    return (numpy.minimum(m, 0x7e) | (x < 0) * 0x80).astype(numpy.uint8)


def f8_value(c):
    e, m = (c >> 3 & 15).astype(int), (c & 7).astype(F32)
    return numpy.ldexp(m + F32(8) * (e > 0), numpy.maximum(e, 1) - 10)


def f4(x):
    """Return the f4 code of the nearest of 0 0.5 1 1.5 2 3 4 6, with the sign of x."""
    above = numpy.array([.25, .75, 1.25, 1.75, 2.5, 3.5, 5], F32)
    return (numpy.searchsorted(above, numpy.abs(x)) | (x < 0) * 8).astype(numpy.uint8)


def fp8(name, x):
    """Yield name, dtype and array of x in f8, and of the f32 scales of its 128x128 blocks."""
    rows, cols = x.shape
    high, wide = -(-rows // BLOCK), -(-cols // BLOCK)
    most = numpy.zeros((high * BLOCK, wide * BLOCK), F32)
    most[:rows, :cols] = numpy.abs(x)
    most = most.reshape(high, BLOCK, wide, BLOCK).max((1, 3))
    scale = numpy.where(most > 0, most / F32(448), F32(1))
    each = scale.repeat(BLOCK, 0).repeat(BLOCK, 1)[:rows, :cols]
    yield name, 'F8_E4M3', f8(x / each)
    yield name + '_scale', 'F32', scale


def nvfp4(name, x):
    """Yield name, dtype and array of x in f4, two values per byte; of the f8e4m3 scales of
    each 16 values of a row; and of the f32 scale of the tensor."""
    parts = x.reshape(x.shape[0], -1, PART)
    most = numpy.abs(x).max()
    most = most / F32(448 * 6) if most > 0 else F32(1)
    scale = f8(numpy.abs(parts).max(2) / F32(6) / most)
    value = f8_value(scale) * most
    code = f4(numpy.divide(parts, value[:, :, None], where=value[:, :, None] > 0,
                           out=numpy.zeros_like(parts)))
    yield name, 'U8', (code[:, :, ::2] | code[:, :, 1::2] << 4).reshape(len(x), -1)
    yield name + '_scale', 'F8_E4M3', scale
    yield name + '_scale_2', 'F32', numpy.array([[most]])


def quantised(model, kind, cols):
    for name, x in model:
        if len(x) > 1 and x.shape[1] % cols == 0:
            yield from kind(name, x)
        else:
            yield name, 'BF16', bf16(x)


def put(path, some):
    tensorfile.write(path, [(name, dtype, x.shape, x.tobytes()) for name, dtype, x in some])


def main():
    for name in os.listdir(sys.argv[1]):
        if not name.startswith('f32-'):
            continue
        path = os.path.join(sys.argv[1], '%s' + name[3:])
        model = [(n, numpy.frombuffer(raw, F32).reshape(shape))
                 for n, _, shape, raw in tensorfile.read(path % 'f32')]
        put(path % 'fp8', quantised(model, fp8, 1))
        put(path % 'nvfp4', quantised(model, nvfp4, PART))


main()
