"""Exact bits: codec 17 of ace-stream(5), words given those before them."""
from bits import Bytes, need
from rangecode import Learnt, RangeCode, log2
from values import planes

# bytes, mantissa, exponent; at last halves of bytes
FORMS = [(4, 23, 8), (2, 10, 5), (2, 7, 8), (8, 52, 11), (1, 3, 4), (1, 2, 5),
         (1, 0, 0), (2, 0, 0), (4, 0, 0), (8, 0, 0), (1, 0, 0)]
BYTES, HALVES = 6, 10


class LowBits:
    """Read from the end of the body."""

    def __init__(self, data):
        self.all, self.length = int.from_bytes(data, 'big'), len(data)
        self.taken = 0

    def take(self, n):
        self.taken += n
        need(self.taken <= 8 * self.length, 'bits')
        return self.all >> self.taken - n & (1 << n) - 1

    def before(self):
        """How many bytes come before them; the last is padded with 0."""
        need(self.take(-self.taken % 8) == 0, 'padding')
        return self.length - self.taken // 8


class Levels:
    """What is learnt, and the two numbers that it is for."""

    def __init__(self, code, bits, width, form, mean):
        self.code, self.bits, self.width = code, bits, width
        self.g = [Learnt(used=2) for _ in range(4)]
        self.c = [Learnt(7 << 13 if form in (0, 3) else 1 << 13)
                  for _ in range(64)]
        self.near, self.was = (Learnt(), Learnt()), 0
        self.end, self.low, self.grows, self.half = \
            Learnt(), Learnt(), Learnt(), Learnt()
        self.flat = FORMS[form][2] == 0
        self.sum, self.count = 8 if mean is None else 6 << mean, 4

    def next(self):
        for p in self.g + self.c + [self.low]:
            p.used = min(p.used, 8)
        self.c = self.c[1:] + [Learnt(self.c[63].p, self.c[63].used)]
        self.sum, self.count = min(8 * self.sum // self.count, 1 << 34), 4

    def number(self, width, first):
        if width == 0:
            return 0
        top = self.code.bit(first)
        return top << width - 1 | self.bits.take(width - 1)

    def gap(self, rest):
        k = max(0, log2(self.sum // self.count))
        passed = 0
        if self.flat and k > 3:
            self.was = self.code.bit(self.near[self.was])
            if self.was:
                gap = self.bits.take(3)
                need(gap < rest, 'near gap')
                return gap
            if rest <= 8:
                return None
            passed = 8
            rest -= 8
        base, width, t, more = 0, k, 0, 1
        while rest - base >= 1 << width:
            more = self.code.bit(self.g[min(t, 3)])
            if not more:
                break
            base += 1 << width
            t += 1
            width = k if t < 16 else k + t - 15
        if more and self.code.bit(self.end):
            return None
        gap = base + self.number(width, self.low)
        need(gap < rest, 'gap')
        gap += passed
        self.sum += gap + 1
        self.count += 1
        if self.count == 64:
            self.sum, self.count = self.sum // 2, self.count // 2
        return gap

    def move(self, old, signed):
        grows, k, top = self.code.bit(self.grows), 0, 1 << self.width - 1
        while k < self.width - 1 and self.code.bit(self.c[k]):
            k += 1
        d = (1 << k) + self.number(k, self.half)
        sign = signed and old >= top
        place = 2 * top - 1 - old if sign else old + top * signed
        place = (place + (-d if grows == sign else d)) % (2 * top)
        if not signed:
            return place
        return place - top if place >= top else 2 * top - 1 - place


def given(form, b, old):
    size, mantissa, exponent = FORMS[form]
    data = b.rest()
    code, bits = RangeCode(data), LowBits(data)
    a, count = bits.take(exponent), 1 + bits.take(min(exponent, 8))
    need(count <= 254 and a + count <= 1 << exponent, 'levels')
    mean = bits.take(log2(len(old)).bit_length()) if count == 1 else None
    known = Levels(code, bits, 4 if form == HALVES else 8 * size, form, mean)
    new, by_level = list(old), [[] for _ in range(count)]
    for i, w in enumerate(old):
        level = max(0, (w >> mantissa & (1 << exponent) - 1) - a)
        if level < count:
            by_level[level].append(i)
    for level, at in enumerate(by_level):
        if level > 0:
            known.next()
        while at:
            gap = known.gap(len(at))
            if gap is None:
                break
            i = at[gap]
            new[i] = known.move(old[i], exponent > 0 or form == HALVES)
            at = at[gap + 1:]
    need(code.end() == bits.before(), 'end')
    return new


def halves(b, old):
    """Words of 4 bits, two in a byte."""
    new = given(HALVES, b, [h for w in old for h in (w & 15, w >> 4)])
    return [low | high << 4 for low, high in zip(new[::2], new[1::2])]


def words(param, body, n, old):
    """The n words of a group; old: those before, or None."""
    form = param & 15
    need(param < 64 and form < len(FORMS), 'form')
    size, _, exponent = FORMS[form]
    b = Bytes(body)
    if param & 16:
        need(old is not None, 'no old words')
        return halves(b, old) if form == HALVES else given(form, b, old)
    need(form != HALVES, 'halves')
    value = planes(b, n, size)
    need(b.left() == 0, 'too long')
    if exponent:
        value = [v >> 1 | (v & 1) << 8 * size - 1 for v in value]
    return value
