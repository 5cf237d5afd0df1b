"""Decode which of n values were chosen."""

from bits import need


class Symbols:
    """Reads symbols from the start of the body."""

    def __init__(self, data, states):
        self.data, self.at = data, 0
        self.state = [self.next(4) for _ in range(states)]

    def next(self, n):
        self.at += n
        need(self.at <= len(self.data), 'words')
        return int.from_bytes(self.data[self.at - n:self.at], 'little')

    def symbol(self, over):
        x = self.state.pop(0)
        low = x & 4095
        i = next(i for i in range(len(over) - 1) if over[i + 1] <= low)
        x = (over[i] - over[i + 1]) * (x >> 12) + low - over[i + 1]
        if x < 1 << 16:
            x = x << 16 | self.next(2)
        self.state.append(x)
        return i

    def end(self):
        need(all(x == 1 << 16 for x in self.state), 'end of the states')
        return self.at


def table(m, e):
    """Return for each symbol its frequency plus those of later symbols, of 4096; then 0."""
    less, r, over = 65536 - (1 << 20) // ((2 * m + 1) << e), 1 << 28, [4096]
    while over[-1] >= 64:
        r = r * less >> 16
        over.append(r >> 16)
    return over + [0]


def which(symbols, bits, c, n):
    """Decode c numbers below n, in rising order."""
    need(c <= n, 'too many')
    few = min(c, n - c)
    if few == 0:
        return list(range(c))
    v, e = 8 * n // few, (8 * n // few).bit_length() - 4
    over, k = table(v >> e, min(e, 3)), max(0, e - 3)
    last, at, found = len(over) - 2, 0, []
    for _ in range(few):
        gap = s = symbols.symbol(over)
        while s == last:
            s = symbols.symbol(over)
            gap += s
        at += gap << k | bits.take(k)
        need(at < n, 'gap')
        found.append(at)
        at += 1
    if few == c:
        return found
    others = set(found)
    return [i for i in range(n) if i not in others]
