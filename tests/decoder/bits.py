"""Read numbers from bytes, as ace-stream(5) describes them."""
import struct


class Corrupt(Exception):
    """Data that are corrupt by ace-stream(5)."""


def need(true, what):
    if not true:
        raise Corrupt(what)


class Bytes:
    """Bytes that are read from the start; reading beyond the end raises Corrupt."""

    def __init__(self, data):
        self.data, self.at = data, 0

    def take(self, n):
        need(self.at + n <= len(self.data), 'too short')
        self.at += n
        return self.data[self.at - n:self.at]

    def rest(self):
        return self.take(len(self.data) - self.at)

    def left(self):
        return len(self.data) - self.at

    def number(self, form):
        size = struct.calcsize('<' + form)
        return struct.unpack('<' + form, self.take(size))[0]

    def numbers(self, form, n):
        size = struct.calcsize('<' + form)
        return struct.unpack('<%d%s' % (n, form), self.take(n * size))

    def u8(self):
        return self.number('B')

    def bf16(self):
        return bf16(self.number('H'))

    def varint(self):
        value, shift = 0, 0
        while True:
            byte = self.u8()
            value |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                need(byte != 0 or shift == 7, 'varint not its shortest')
                need(value < 1 << 64, 'varint above 64 bits')
                return value

    def codes(self, n, width):
        """Read n codes of width bits, the least significant bit first, and the zeros
        that pad them to a byte."""
        size = (n * width + 7) // 8
        value = int.from_bytes(self.take(size), 'little')
        mask = (1 << width) - 1
        # in pieces, since n shifts of one long number take time n^2
        out = []
        while len(out) < n:
            piece = min(n - len(out), 64)
            low = value & ((1 << (piece * width)) - 1)
            value >>= piece * width
            out.extend(low >> (i * width) & mask for i in range(piece))
        need(value == 0, 'padding')
        return out


def of_bits(u):
    return struct.unpack('<f', struct.pack('<I', u & 0xffffffff))[0]


def bf16(h):
    return of_bits(h << 16)


FLT_MAX = of_bits(0x7f7fffff)


def f32(x):
    """Round a double to f32, beyond its range to infinity.  If the double is the
    sum, difference or product of two f32, the result is rounded correctly, since
    a double has more than twice the digits."""
    try:
        return struct.unpack('<f', struct.pack('<f', x))[0]
    except OverflowError:
        return float('inf') if x > 0 else float('-inf')


def cut(x):
    """Round to f32, but values beyond its range to its largest value."""
    return max(-FLT_MAX, min(FLT_MAX, f32(x)))


def lz4(data, size):
    """Decode an LZ4 block."""
    b, out = Bytes(data), bytearray()
    while True:
        token = b.u8()
        run = token >> 4
        while run >= 15 and (run - 15) % 255 == 0:
            more = b.u8()
            run += more
            if more < 255:
                break
        out += b.take(run)
        if b.left() == 0:
            break
        back = b.number('H')
        need(0 < back <= len(out), 'LZ4 offset')
        run = token & 15
        while run >= 15 and (run - 15) % 255 == 0:
            more = b.u8()
            run += more
            if more < 255:
                break
        for _ in range(run + 4):
            out.append(out[-back])
    need(len(out) == size, 'LZ4 length')
    return bytes(out)


def rans(data, n):
    """Decode the rANS code of n bytes."""
    b = Bytes(data)
    freq, symbol = [0] * 256, 0
    while symbol < 256:
        freq[symbol] = b.varint()
        symbol += 1
        if freq[symbol - 1] == 0:
            symbol += b.varint()
    need(symbol == 256 and sum(freq) == 4096, 'frequencies')
    base, owner = [0] * 256, []
    for s in range(256):
        base[s] = len(owner)
        owner += [s] * freq[s]
    state = list(b.numbers('I', 4))
    out = bytearray()
    for i in range(n):
        x = state[i % 4]
        s = owner[x % 4096]
        out.append(s)
        x = freq[s] * (x // 4096) + x % 4096 - base[s]
        if x < 65536:
            x = 65536 * x + b.number('H')
        state[i % 4] = x
    need(b.left() == 0 and state == [65536] * 4, 'end of the rANS code')
    return bytes(out)


def frames(data):
    """Yield (type, payload) of each frame of a stream."""
    at = 0
    while at < len(data):
        _, kind, flags, _, _, _, size, full = struct.unpack_from(
            '<4s4sHBBIII', data, at)
        payload = data[at + 64:at + 64 + size]
        need(len(payload) == size, 'truncated')
        at += (64 + size + 7) // 8 * 8
        yield kind, lz4(payload, full) if flags & 1 else payload


def records(payload):
    """Yield (group, codec, parameter, body) of each record of a DATA frame."""
    b = Bytes(payload)
    count, size, group = b.numbers('I', 3)
    d = Bytes(b.take(size))
    b.at = (b.at + 7) // 8 * 8
    param = 0
    for i in range(count):
        head = d.u8()
        gap, codec = head >> 5, head & 15
        need(i > 0 or gap == 0, 'gap of the first record')
        if gap == 7:
            gap += d.varint()
        if codec == 15:
            codec = d.varint()
            need(codec >= 15, 'codec below 15 after the escape')
        if not head & 16:
            param = d.u8()
        group += gap
        yield group, codec, param, b.take(d.varint())
        group += 1
    need(d.left() == 0 and b.left() == 0, 'bytes left')
