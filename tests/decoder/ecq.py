"""Codec 9, ecq, whose levels and contexts are a page of their own."""
from bits import Bytes, f32, need, of_bits
from rangecode import Learnt, RangeCode, log2


class Tail:
    """Bits from the end of a body towards its start."""

    def __init__(self, data):
        self.data, self.at, self.byte, self.left = data, len(data), 0, 0

    def bits(self, n):
        value = 0
        for i in range(n):
            if self.left == 0:
                self.at -= 1
                need(self.at >= 0, 'too short')
                self.byte, self.left = self.data[self.at], 8
            value |= (self.byte & 1) << i
            self.byte >>= 1
            self.left -= 1
        return value


def half_octaves(v):
    return 0 if v < 2 else 2 * log2(v) + (v >> log2(v) - 1 & 1)


def start(level, trust):
    """Where the p of a level begin: seg, block, value, more."""
    def known(p):
        return Learnt(max(64, min(65472, p)), trust)

    def times(a, b):
        return a * b >> 16

    def y(v):
        return 65536 - v

    if level == 0:
        z = 65536 / (1 + 2 ** -11)
    else:
        z = 65536 / (1 + 2 ** (level / 2 - 39 / 4))
    z = min(65535, int(z + 0.5))
    z2 = times(z, z)
    z4 = times(z2, z2)
    z8 = times(z4, z4)
    z16 = times(z8, z8)
    seg = known(y(z16))
    block = [known((y(z4) << 16) // y(v))
             for v in (z16, times(z8, z4), z8)] + [known(y(z4))]
    value = [known((y(z) << 16) // y(v))
             for v in (z4, times(z2, z), z2)] + [known(y(z))]
    more, p = [], y(z)
    for _ in range(15):
        more.append(known(p))
        p = times(p, p)
    return seg, block, value, more


class Model:
    def __init__(self, n, cols, offset, level, plain):
        self.plain, self.fixed = plain, level
        self.rows_matter = not plain and 16 <= cols <= n // 2
        self.cols = cols if self.rows_matter else n
        self.at = offset % cols if self.rows_matter else 0
        self.row, self.sum, self.number = 0, 0, 0
        self.near = self.far = 64 * ((2 + level % 2) * 2 ** (level // 2) // 2)
        self.col = [0] * self.cols
        self.p = [start(l, 60 if plain else 8) for l in range(36)]
        self.mantissa = [[Learnt() for _ in range(8)] for _ in range(16)]

    def level(self, first, width):
        """Of the value, block or segment at column first."""
        if self.plain:
            return self.fixed
        left = half_octaves(self.near + self.far >> 7)
        if not self.rows_matter or self.row == 0:
            return left
        own = self.old[first:min(first + width, self.cols)]
        return (left + half_octaves(8 * sum(own) // len(own)) + 1) // 2

    def segment(self):
        """The length of the next one; a row may begin."""
        if self.at == self.cols:
            self.at = 0
            self.row += 1
            self.near = self.far = (self.sum << 16) // self.number
        if self.at == 0 or self.number == 0:
            self.old = self.col[:]
        return min(16 - self.at % 16, self.cols - self.at)

    def block(self, counts):
        mean = (sum(counts) << 16) // len(counts)
        self.near += mean // 4 - self.near // 4
        self.far += mean // 32 - self.far // 32

    def done(self, counts):
        shift = min(self.row, 3)
        for i, q in enumerate(counts, self.at):
            self.col[i] += 128 * q - self.col[i] >> shift
        self.at += len(counts)
        self.sum += sum(counts)
        self.number += len(counts)


class Reader:
    def __init__(self, data, model):
        self.code, self.tail, self.m = RangeCode(data), Tail(data), model

    def value(self, level):
        """What |q| counts as, and q with its sign: None for x as it is."""
        m, c = self.m, 1
        more = m.p[level // 2 * 2][3]
        while c < 15 and self.code.bit(more[c - 1]):
            c += 1
        known = min(c - 1, 3)
        out = c - 1 - known
        a = (1 << known | self.code.tree(m.mantissa[c], known)) << out
        negative = self.tail.bits(1)
        q = a | self.tail.bits(out)
        x = of_bits(self.tail.bits(31)) if q == 32767 else None
        return min(a, 255), q, negative, x

    def block(self, k):
        """k values at m.at + self.i, one of which is not 0."""
        zeros, found, counts, got = 0, 0, [], []
        for i in range(k):
            level = self.m.level(self.m.at + self.i + i, 1)
            there = 1
            if found or i < k - 1:
                there = self.code.bit(
                    self.m.p[level][2][3 if found else min(zeros, 2)])
            if there:
                found = 1
                count, *q = self.value(level)
                counts.append(count)
                got.append(q)
            else:
                zeros += 1
                counts.append(0)
                got.append(None)
        return counts, got

    def segment(self, k):
        m = self.m
        some = self.code.bit(m.p[m.level(m.at // 16 * 16, 16)][0])
        zeros, found, counts, got = 0, 0, [], []
        self.i = 0
        while self.i < k:
            b = min(4, k - self.i)
            there = some
            if some and (found or self.i + b < k):
                first = (m.at + self.i) // 4 * 4
                there = self.code.bit(m.p[m.level(first, 4)][1][
                    3 if found else min(zeros, 2)])
            if there:
                found = 1
                count, values = self.block(b)
            else:
                zeros += 1
                count, values = [0] * b, [None] * b
            m.block(count)
            counts += count
            got += values
            self.i += b
        m.done(counts)
        return got


def ecq(body, n, group):
    b = Bytes(body)
    if len(body) == 0:
        return [0.0] * n
    if len(body) == 4:
        return [b.number('f')] * n
    step = int.from_bytes(b.take(3), 'little')
    if step == 0:
        return list(b.numbers('f', n)) if b.left() == 4 * n else need(0, 'long')
    need(0x010000 <= step <= 0x718000, 'step')
    step = of_bits(step << 8)
    d = [b.number('b') / 256]
    both = b.u8()
    d += [((both & 15 ^ 8) - 8) / 32, ((both >> 4 ^ 8) - 8) / 32]
    level = b.u8()
    plain, level = level >> 7, level & 127
    need(level < 36, 'level')
    model = Model(n, group.cols, group.offset, level, plain)
    data = b.rest()
    r, out = Reader(data, model), []
    while len(out) < n:
        for q in r.segment(min(model.segment(), n - len(out))):
            if q is None:
                out.append(0.0)
                continue
            a, negative, x = q
            if x is None:
                x = f32(f32(a + d[min(a, 3) - 1]) * step)
            out.append(-x if negative else x)
    need(r.code.end() == r.tail.at and r.tail.byte == 0, 'end of the code')
    return out
