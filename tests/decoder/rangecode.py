"""The range code and its numbers that learn."""

from bits import need

MASK = (1 << 64) - 1


class Learnt:
    """A p that learns."""

    def __init__(self, p=1 << 15, used=0):
        self.p, self.used = p, used

    def learn(self, bit):
        # 2^16 / (u + 1.5) to the nearest
        rate = (2 * (1 << 17) + 2 * self.used + 3) // (2 * (2 * self.used + 3))
        if bit:
            self.p += (65512 - self.p) * rate >> 16
        else:
            self.p -= (self.p - 24) * rate >> 16
        self.used = min(self.used + 1, 255)


class RangeCode:
    def __init__(self, data):
        self.data, self.at = data, 0
        self.range = MASK
        self.code = self.next(4) << 32 | self.next(4)

    def next(self, n):
        got = self.data[self.at:self.at + n]
        self.at += n
        return int.from_bytes(got + bytes(n - len(got)), 'big')

    def decide(self, bound):
        if self.code < bound:
            self.range, bit = bound, 1
        else:
            self.code, self.range, bit = \
                self.code - bound, self.range - bound, 0
        if self.range < 1 << 32:
            self.range = self.range << 32 & MASK
            self.code = (self.code << 32 | self.next(4)) & MASK
        return bit

    def bit(self, learnt):
        bit = self.decide((self.range >> 16) * learnt.p)
        learnt.learn(bit)
        return bit

    def end(self):
        """How many bytes it has."""
        seen = int.from_bytes((self.data + bytes(self.at))[
            self.at - 8:self.at], 'big')
        low = seen - self.code & MASK
        for k in range(1, 9):
            unit = 1 << 64 - 8 * k
            v = -(-low // unit) * unit
            if v - low + unit - 1 < self.range:
                break
        v &= MASK
        need(v >> 64 - 8 * k == seen >> 64 - 8 * k, 'end of the range code')
        return self.at - 8 + k


def log2(v):
    return v.bit_length() - 1
