"""Codec 17 of ace-stream(5), exact: words that are coded relative to old words."""
from bits import Bytes, need
from subset import Symbols, which
from values import planes

# (bytes, mantissa bits, exponent bits) of each form; the last form is for half bytes
FORMS = [(4, 23, 8), (2, 10, 5), (2, 7, 8), (8, 52, 11), (1, 3, 4), (1, 2, 5),
         (1, 0, 0), (2, 0, 0), (4, 0, 0), (8, 0, 0), (1, 0, 0)]
BYTES, HALVES = 6, 10


class LowBits:
    """Reads bits from the end of the body."""

    def __init__(self, data):
        self.data, self.taken = data, 0

    def take(self, n):
        at, end = self.taken, len(self.data)
        self.taken += n
        need(self.taken <= 8 * end, 'bits')
        part = self.data[end - (self.taken + 7) // 8:end - at // 8]
        return int.from_bytes(part, 'big') >> at % 8 & (1 << n) - 1

    def count(self, most):
        length = self.take(most.bit_length().bit_length())
        if length < 2:
            c = length
        else:
            c = 1 << length - 1 | self.take(length - 1)
        need(c <= most, 'count')
        return c

    def before(self):
        """Return the number of bytes before the bits, which are padded with 0."""
        need(self.take(-self.taken % 8) == 0, 'padding')
        return len(self.data) - self.taken // 8


def moved(bits, width, old, signed, k):
    """Return the word whose distance from old has k bits below its first 1."""
    grows, top = bits.take(1), 1 << width - 1
    d = (1 << k) + bits.take(k)
    sign = signed and old >= top
    place = 2 * top - 1 - old if sign else old + top * signed
    place = (place + (-d if grows == sign else d)) % (2 * top)
    if not signed:
        return place
    return place - top if place >= top else 2 * top - 1 - place


def in_blocks(symbols, bits, n, size, c):
    """Return for each of n words whether its block has changes."""
    blocks = (n - 1 >> size) + 1
    if size == 0:
        return [True] * n
    some = set(which(symbols, bits, bits.count(min(blocks, c)), blocks))
    return [i >> size in some for i in range(n)]


def given(form, b, old):
    size, mantissa, exponent = FORMS[form]
    width = 4 if form == HALVES else 8 * size
    data = b.rest()
    bits = LowBits(data)
    states, block = 1 + 3 * bits.take(1), bits.take(4)
    a, levels = bits.take(exponent), 1 + bits.take(min(exponent, 8))
    need(levels <= 254 and a + levels <= 1 << exponent, 'levels')
    c = bits.count(len(old))
    symbols = Symbols(data, states)
    new, by_level = list(old), [[] for _ in range(levels)]
    inside = in_blocks(symbols, bits, len(old), block, c)
    for i, w in enumerate(old):
        level = max(0, (w >> mantissa & (1 << exponent) - 1) - a)
        if level < levels and inside[i]:
            by_level[level].append(i)
    for level, at in enumerate(by_level):
        m = c if level == levels - 1 else bits.count(min(c, len(at)))
        c -= m
        at = [at[i] for i in which(symbols, bits, m, len(at))]
        k, left = [0] * m, list(range(m))
        for more in range(1, width):
            if not left:
                break
            left = [left[i] for i in which(symbols, bits, bits.count(len(left)),
                                           len(left))]
            for i in left:
                k[i] = more
        for i, n in zip(at, k):
            new[i] = moved(bits, width, old[i], exponent > 0 or form == HALVES, n)
    need(symbols.end() == bits.before(), 'end')
    return new


def halves(b, old):
    """Decode words of 4 bits, two per byte."""
    new = given(HALVES, b, [h for w in old for h in (w & 15, w >> 4)])
    return [low | high << 4 for low, high in zip(new[::2], new[1::2])]


def words(param, body, n, old):
    """Decode the n words of a group; old: its old words, or None."""
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
