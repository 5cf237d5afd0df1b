"""Codec 14, eden, and its random numbers."""
import math

from bits import Bytes, cut, f32, need

HALVES = [
    [], [0.797884561],
    [0.452780035, 1.51041761],
    [0.245094179, 0.756005281, 1.34390928, 2.1519457],
    [0.12839503, 0.388048299, 0.656759119, 0.942340456,
     1.2562312, 1.61804639, 2.06901723, 2.73258957],
]
WORD = (1 << 32) - 1


def philox(counter, key):
    """Philox 4x32-10 (Salmon et al. 2011)."""
    a, b, c, d = counter
    k, l = key
    for _ in range(10):
        p, q = 0xd2511f53 * a, 0xcd9e8d57 * c
        a, b, c, d = (q >> 32) ^ b ^ k, q & WORD, (p >> 32) ^ d ^ l, p & WORD
        k, l = k + 0x9e3779b9 & WORD, l + 0xbb67ae85 & WORD
    return a, b, c, d


def noise(group, block):
    return philox((block, group.number, group.step & WORD, group.step >> 32),
                  (group.key & WORD, group.key >> 32))


def back(x, m, group, block):
    """Walsh and Hadamard's transform of m values, then the signs."""
    h = 1
    while h < m:
        for i in range(0, m, 2 * h):
            for j in range(i, i + h):
                a, b = x[j], x[j + h]
                x[j], x[j + h] = f32(a + b), f32(a - b)
        h *= 2
    for i in range(m):
        if i % 128 == 0:
            words = noise(group, block + i // 128)
        if words[i % 128 // 32] >> i % 32 & 1:
            x[i] = -x[i]
    return x


def eden(body, n, group):
    b = Bytes(body)
    if len(body) == 0:
        return [0.0] * n
    bits = b.number('H')
    need(0 < bits <= 4 * 4096, 'bits')
    e = b.number('h')
    need(-200 <= e <= 200, 'e')
    m = 1 << n.bit_length() - 1
    s0 = b.number('f') if m < n else 0.0
    s1 = b.number('f')
    need(0 <= s0 <= 2 ** 64 and 0 <= s1 <= 2 ** 64, 'S')
    low, part = bits // 4096, bits % 4096 << 20
    a = noise(group, 1 << 21)[0]
    more = [a + (i + 1) * part >> 32 > a + i * part >> 32 for i in range(n)]
    long = iter(b.codes(sum(more), low + 1))
    short = iter(b.codes(n - sum(more), low))
    need(b.left() == 0, 'too long')
    x = []
    for i in range(n):
        width = low + more[i]
        c = next(long) if more[i] else next(short)
        v = 0.0
        if width:
            v = f32(f32(HALVES[width][c >> 1]) * (s0 if i < n - m else s1))
        x.append(-v if c & 1 else v)
    if m < n:
        x[n - m:] = [f32(v * (1 / math.sqrt(m)))
                     for v in back(x[n - m:], m, group, 1 << 20)]
        x[m:] = [cut(math.ldexp(v, e)) for v in x[m:]]
    scale = math.ldexp(1 / math.sqrt(m), e)
    x[:m] = [cut(v * scale) for v in back(x[:m], m, group, 0)]
    return x
