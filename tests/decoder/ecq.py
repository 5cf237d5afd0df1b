"""Codecs 9 and 18, ecq and tcq."""
from bits import Bytes, f32, need, of_bits

FIRST = [353, 437, 542, 678, 852, 1077, 1369, 1752, 2254, 2914, 3783, 4923,
         6410, 8331, 10779, 13833, 17540, 21889, 26780, 32023, 37355, 42492,
         47185, 51267]


class Tail:
    """Reads bits from the end of a body towards its start; after Code.turn, those in the
    final states first."""

    def __init__(self, data):
        self.data, self.at, self.byte, self.left = data, len(data), 0, 0
        self.given = []

    def bits(self, n):
        value = 0
        for i in range(n):
            value |= self.bit() << i
        return value

    def bit(self):
        if self.given:
            return self.given.pop()
        if self.left == 0:
            self.at -= 1
            need(self.at >= 0, 'too short')
            self.byte, self.left = self.data[self.at], 8
        bit = self.byte & 1
        self.byte >>= 1
        self.left -= 1
        return bit


def context(level):
    return level if level < 24 else 22 + level % 2


def shift(level):
    return 0 if level < 24 else (level - 22) // 2


def eighths(v):
    v = int(f32(v))
    e = v.bit_length() - 1
    return 8 * e + ((v << 3) >> e) - 8


def cut(t):
    return max(0, min(42, t // 4))


def moved(mean, u, near):
    if near:
        return mean + u // 2 + u // 8 - mean // 2 - mean // 8
    return mean + u // 8 - mean // 8


class Tables:
    def __init__(self, top):
        self.top, self.chunks = top, 0
        self.n = []
        for t in FIRST:
            more = (t * t >> 16) + 2048
            marks = [t]
            for _ in range(top - 1):
                marks.append(marks[-1] * more >> 16)
            marks = [m >> 8 for m in marks] + [0]
            self.n.append([256 - marks[0]] + [
                marks[s] - marks[s + 1] for s in range(top)])
        self.make()

    def make(self):
        self.first = []
        for n in self.n:
            if sum(n) >= 1 << 18:
                n[:] = [v - v // 2 for v in n]
            rate = 32752 * 65536 // sum(n)
            self.first.append([0] + [
                32768 - (sum(n[s:]) * rate >> 16) - (self.top - s + 1)
                for s in range(1, self.top + 1)] + [32768])

    def learn(self, pairs):
        for c, s in pairs:
            self.n[c][s] += 10
        self.chunks += 1
        k = self.chunks
        if k < 32 or k < 128 and k % 8 == 0 or k < 1024 and k % 32 == 0 \
                or k % 128 == 0:
            self.make()


class Levels:
    def __init__(self, mode, level, n, group):
        self.mode, self.level, self.cols = mode, level, group.cols
        self.column = group.offset
        self.stride = -(-16 // group.cols) * group.cols
        need(mode < 2 or group.cols > 1 and self.stride <= n // 2, 'mode')
        self.m = (2 + level % 2) * 2 ** (level // 2) // 2
        self.near = self.far = self.near2 = self.far2 = 64 * self.m
        self.above, self.at = [], 0

    def chunk(self, k):
        """Return the levels, which select the statistics, of the next k values."""
        if self.mode == 0:
            return [self.level] * k
        first = self.cols >= 64 and self.at > 0 and \
            (self.column + self.at) % self.cols < 16
        left = eighths((self.far if first else self.near) + self.far + 32)
        if self.mode == 1 or self.at < self.stride:
            return [cut(left - 56)] * k
        gain = 0 if first else left - eighths(self.near2 + self.far2 + 32)
        old = self.above[self.at - self.stride:][:k]
        return [cut(eighths(a + self.m // 2 + 2) - 16 + gain) for a in old]

    def done(self, r):
        row = self.at // self.stride
        u = expected = 4096 * sum(r)
        if self.mode == 2:
            old = [0] * len(r)
            if row > 0:
                old = self.above[self.at - self.stride:][:len(r)]
                expected = sum(old)
            pace = max(8, 256 // (row + 1))
            self.above += [a + ((4096 * v - a) * pace >> 8)
                           for a, v in zip(old, r)]
        self.near, self.far = moved(self.near, u, 1), moved(self.far, u, 0)
        self.near2 = moved(self.near2, expected, 1)
        self.far2 = moved(self.far2, expected, 0)
        self.at += len(r)


class Code:
    """Reads a body: its states and bits from the end, its words from the start."""

    def __init__(self, data, states):
        self.data, self.at, self.tail = data, 0, Tail(data)
        self.x = []
        for _ in range(states):
            e = self.tail.bits(4)
            self.x.append((1 << 16 + e) + self.tail.bits(16 + e))

    def symbol(self, i, first):
        i %= len(self.x)
        x = self.x[i]
        slot = x % 32768
        s = max(s for s in range(len(first) - 1) if first[s] <= slot)
        x = (first[s + 1] - first[s]) * (x >> 15) + slot - first[s]
        if x < 65536:
            need(self.at + 2 <= len(self.data), 'too short')
            x = x << 16 | int.from_bytes(
                self.data[self.at:self.at + 2], 'little')
            self.at += 2
        self.x[i] = x
        return s

    def turn(self):
        """Put the bits in the final states before the other bits."""
        given = []
        for x in self.x:
            need(x < 1 << 17, 'end of a state')
            given += [x >> i & 1 for i in range(16)]
        self.tail.given = given[::-1]

    def end(self):
        need(not any(self.tail.given), 'bits not used')
        need(self.at == self.tail.at and self.tail.byte == 0,
             'end of the code')


def symbols(code, levels, tables, n):
    """Return lists of (level, symbol), for 16 values each, the last for at most 16."""
    chunks = []
    for at in range(0, n, 16):
        k = min(16, n - at)
        level = levels.chunk(k)
        got = [code.symbol(i, tables.first[context(l)])
               for i, l in enumerate(level)]
        levels.done([min(s << shift(l), 2047) for l, s in zip(level, got)])
        if k == 16:
            tables.learn([(context(l), s) for l, s in zip(level, got)])
        chunks.append(list(zip(level, got)))
    return chunks


def rest(bits, level, s, g, negative):
    """Return |q|, its sign, and |x| if the body has it unchanged."""
    if s == 15:
        k = 0
        while k < 15 and bits.bit():
            k += 1
        e = (1 << k) + bits.bits(k) - 1
        s = 15 + (e << g) + bits.bits(g)
        given = 1
    else:
        given = s > 0
    q = (s << shift(level)) + bits.bits(shift(level))
    need(q <= 32767, 'too large')
    if not given and q:
        negative = bits.bit()
    x = of_bits(bits.bits(31)) if q == 32767 else None
    return q, negative, x


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
    level, top = b.u8(), b.u8()
    mode, level, states, top = level >> 6, level & 63, top >> 4, top & 15
    need(level < 43 and mode < 3 and states < 5 and top > 0, 'header')
    g = b.u8() if top == 15 else 0
    need(g < 15, 'header')
    levels = Levels(mode, level, n, group)
    code = Code(b.rest(), 1 << states)
    chunks = symbols(code, levels, Tables(top), n)
    code.turn()
    bits, out = code.tail, []
    for chunk in chunks:
        signs = [bits.bit() if s else 0 for _, s in chunk]
        for (l, s), negative in zip(chunk, signs):
            q, x = s, None
            if shift(l) or s == 15:
                q, negative, x = rest(bits, l, s, g, negative)
            if x is None and q:
                x = f32(f32(q + d[min(q, 3) - 1]) * step)
            out.append(-x if negative else x if q else 0.0)
    code.end()
    return out


# ---- codec 18, tcq: two quantisers, and a trellis in each of 16 lanes ----

def moved_on(state, parity):
    a, b, c = state & 1, state >> 1 & 1, state >> 2
    return (a ^ b) + 2 * (c ^ parity) + 4 * a


def tcq_rest(bits, level, s, g, negative):
    """Return k, its sign, and |x| if the body has it unchanged."""
    h, top = shift(level), s >> 1
    if s >= 14:
        j = 0
        while j < 15 and bits.bit():
            j += 1
        e = (1 << j) + bits.bits(j) - 1
        top = 7 + (e << g) + bits.bits(g)
    k = 2 * ((top << h) + bits.bits(h)) + s % 2
    need(k <= 32767, 'too large')
    if s == 0 and k:
        negative = bits.bit()
    return k, negative, of_bits(bits.bits(31)) if k == 32767 else None


def tcq_symbols(code, levels, tables, n):
    """Return lists of (level, symbol, quantiser), for 16 values each, or the rest."""
    chunks, state = [], [0] * 16
    for at in range(0, n, 16):
        chunk, counted = [], []
        for i, l in enumerate(levels.chunk(min(16, n - at))):
            u = state[i] % 2
            s = code.symbol(i, tables[u].first[context(l)])
            state[i] = moved_on(state[i], s % 2)
            chunk.append((l, s, u))
            counted.append(min((s // 2 << shift(l) + 1) + s % 2, 2047))
        levels.done(counted)
        if len(chunk) == 16:
            for u in 0, 1:
                tables[u].learn([(context(l), s) for l, s, v in chunk
                                 if v == u])
        chunks.append(chunk)
    return chunks


def tcq_values(chunks, bits, g, d, step):
    out = []
    for chunk in chunks:
        signs = [bits.bit() if s else 0 for _, s, _ in chunk]
        for (l, s, u), negative in zip(chunk, signs):
            k, x = s, None
            if shift(l) or s >= 14:
                k, negative, x = tcq_rest(bits, l, s, g, negative)
            if x is None and k:
                x = f32(f32(2 * k - u + d[u][min(k, 3) - 1]) * step)
            out.append(-x if negative else x if k else 0.0)
    return out


def tcq(body, n, group):
    b = Bytes(body)
    if len(body) == 0:
        return [0.0] * n
    if len(body) == 4:
        return [b.number('f')] * n
    step = int.from_bytes(b.take(3), 'little')
    if step == 0:
        return list(b.numbers('f', n)) if b.left() == 4 * n else need(0, 'long')
    need(0x010000 <= step <= 0x718000, 'step')
    d = []
    for _ in range(2):
        first, both = b.number('b'), b.u8()
        d.append([first / 128, ((both & 15 ^ 8) - 8) / 16,
                  ((both >> 4 ^ 8) - 8) / 16])
    level, top = b.u8(), b.u8()
    mode, level, states, top = level >> 6, level & 63, top >> 4, top & 15
    need(level < 43 and mode < 3 and states < 5 and top > 0, 'header')
    g = b.u8() if top >= 14 else 0
    need(g < 15, 'header')
    levels = Levels(mode, level, n, group)
    code = Code(b.rest(), 1 << states)
    chunks = tcq_symbols(code, levels, [Tables(top), Tables(top)], n)
    code.turn()
    out = tcq_values(chunks, code.tail, g, d, of_bits(step << 8))
    code.end()
    return out
