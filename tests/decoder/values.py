"""The value codecs of ace-stream(5): decode the body of a group to f32."""
import math

from bits import Bytes, bf16, cut, f32, lz4, need, of_bits, rans
from ecq import ecq, tcq


def f32s(body, n, group):
    return list(Bytes(body).numbers('f', n))


def f16s(body, n, group):
    return list(Bytes(body).numbers('e', n))


def plane(b, kind, n):
    if kind == 0:
        return b.take(n)
    if kind == 1:
        return b.take(1) * n
    need(kind in (2, 3), 'plane')
    data = b.take(b.varint())
    return lz4(data, n) if kind == 2 else rans(data, n)


def planes(b, n, size):
    """Decode n numbers of `size' bytes from byte planes, the most significant first."""
    kind = b.u8()
    first = plane(b, kind & 127, n)
    value = list(first)
    there = [i for i in range(n) if kind < 128 or first[i] != 0]
    for _ in range(size - 1):
        value = [v << 8 for v in value]
        if there:
            for i, byte in zip(there, plane(b, b.u8(), len(there))):
                value[i] |= byte
    return value


def exact(body, n, group):
    need(group.param == 0, 'parameter')
    b = Bytes(body)
    value = planes(b, n, 4)
    need(b.left() == 0, 'too long')
    return [of_bits(v >> 1 | (v & 1) << 31) for v in value]


def q8(body, n, group):
    b, out = Bytes(body), []
    while len(out) < n:
        k = min(32, n - len(out))
        h = b.number('H')
        need(h & 0x7fff <= 0x7bff, 'scale')
        out += [f32(bf16(h) * c) for c in b.numbers('b', k)]
    return out


def sign(body, n, group):
    b, out = Bytes(body), []
    while len(out) < n:
        k = min(256, n - len(out))
        h = b.number('H')
        need(h < 0x7f80, 'mean')
        out += [-bf16(h) if c else bf16(h) for c in b.codes(k, 1)]
    return out


# ---- topk ----

class Numbers:
    """Reads numbers up to `most' with an adaptive Rice code of this initial mean."""

    def __init__(self, bits, mean, most):
        self.bits, self.mean, self.most = bits, mean << 8, most

    def next(self):
        r = max(0, (self.mean >> 8).bit_length() - 1)
        q = 0
        while q < 16 and self.bits.take(1) == 0:
            q += 1
        if q < 16:
            v = q << r | self.bits.take(r)
        else:
            v = self.bits.take(self.most.bit_length())
            need(v >> r >= 16, 'a number not its shortest')
        need(v <= self.most, 'a number')
        self.mean += (v << 6) - (self.mean >> 2)
        return v


class Bits:
    """Reads bits, the least significant one of each byte first."""

    def __init__(self, b):
        self.b, self.have, self.left = b, 0, 0

    def take(self, n):
        while self.left < n:
            self.have |= self.b.u8() << self.left
            self.left += 8
        v = self.have & (1 << n) - 1
        self.have >>= n
        self.left -= n
        return v

    def end(self):
        need(self.have == 0 and self.left < 8, 'padding')


def positions(bits, k, n):
    """Decode k positions below n from the gaps between them, or between the n - k others."""
    count, listed, at = min(k, n - k), [], -1
    gaps = Numbers(bits, n // max(count, 1), n)
    for _ in range(count):
        at += 1 + gaps.next()
        listed.append(at)
    need(at < n, 'position')
    if k <= n - k:
        return listed
    return sorted(set(range(n)) - set(listed))


def topk(body, n, group):
    b, out = Bytes(body), [0.0] * n
    kind = group.param
    need(kind in (0, 2, 3), 'kind')
    width = {2: 2, 3: 1}.get(kind)
    k = b.varint()
    need(k <= n, 'k')
    if k == 0:
        need(b.left() == 0, 'too long')
        return out
    if kind == 0:
        e = b.number('b')
    else:
        a, r = b.bf16(), b.bf16() if kind < 3 else 0.0
        need(0 <= a < math.inf and 0 <= r < math.inf, 'magnitudes')
        mag = [a]
        while len(mag) < 8:
            mag.append(mag[-1] * r)
        mag = [cut(m) for m in mag]
    m = b.number('H') if kind == 0 else 0
    bits, codes = Bits(b), []
    pos = positions(bits, k, n)
    more = Numbers(bits, 512, 65535)
    for _ in range(k):
        c = more.next() if kind == 0 else bits.take(width)
        if kind == 0:
            h = m - (1 << 15) + c // 2 if m >> 15 else m - c // 2
            need(0 <= h < 1 << 15, 'h')
            c = c % 2 << 15 | h
        codes.append(c)
    bits.end()
    need(b.left() == 0, 'too long')
    for i, c in zip(pos, codes):
        if kind == 0:
            half = Bytes(c.to_bytes(2, 'little')).number('e')
            out[i] = f32(math.ldexp(half, e))
        else:
            out[i] = -mag[c >> 1] if c & 1 else mag[c >> 1]
    return out


# ---- the others ----

def qsgd(body, n, group):
    b, s = Bytes(body), group.param
    need(1 <= s <= 127, 'levels')
    norm = b.number('f')
    need(0 <= norm < math.inf, 'norm')
    if norm == 0:
        need(b.left() == 0, 'too long')
        return [0.0] * n
    codes = b.take(n) if b.left() == n else rans(b.rest(), n)
    need(max(codes) <= 2 * s, 'code')
    return [f32((c - s) * (norm / s)) for c in codes]


def lowrank(body, n, group):
    b = Bytes(body)
    rank = group.param
    need(1 <= rank <= 64, 'rank')
    if len(body) == 0:
        return [0.0] * n
    cols, first = group.cols, 0
    if cols < 2 or cols > n // 2:
        cols = math.isqrt(n)
    else:
        first = group.offset % cols
    rows = -(-(first + n) // cols)
    rank = min(rank, rows, cols)
    e = b.number('h')
    need(-200 <= e <= 200, 'e')

    def column(size):
        c = [bf16(h) for h in b.numbers('H', size)]
        need(all(map(math.isfinite, c)), 'factor')
        return c
    p = [column(rows) for _ in range(rank)]
    q = [column(cols) for _ in range(rank)]
    need(b.left() == 0, 'too long')
    out = []
    for i in range(first, first + n):
        x = 0.0
        for u, v in zip(p, q):
            x = f32(x + f32(u[i // cols] * v[i % cols]))
        out.append(cut(math.ldexp(x, e)))
    return out


def nonzero(body, n, group):
    b, out = Bytes(body), [0.0] * n
    k = b.varint()
    need(k <= n, 'k')
    bits = Bits(b)
    pos = positions(bits, k, n)
    bits.end()
    for p, x in zip(pos, b.numbers('f', k)):
        out[p] = x
    need(b.left() == 0, 'too long')
    return out


CODECS = {0: f32s, 1: f16s, 4: q8, 6: sign, 7: topk, 8: qsgd, 9: ecq, 11: lowrank,
          16: nonzero, 17: exact, 18: tcq}


def decode(codec, body, n, group):
    """Decode n values with these fields of group: param, cols and offset."""
    if n == 0:
        need(len(body) == 0, 'not empty')
        return []
    need(codec in CODECS, 'codec')
    out = CODECS[codec](body, n, group)
    need(codec in (0, 1, 17) or all(map(math.isfinite, out)), 'not finite')
    return out
