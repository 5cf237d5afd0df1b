"""Read and write safetensors files for the programs that make models for tests, with nothing
but the standard library and none of our code."""
import json
import struct


def header(path):
    """Return the header of a file, and the position at which its data begins."""
    with open(path, 'rb') as f:
        n, = struct.unpack('<Q', f.read(8))
        return json.loads(f.read(n)), 8 + n


def read(path):
    """Return the name, dtype, shape and bytes of each tensor."""
    head, base = header(path)
    with open(path, 'rb') as f:
        data = f.read()[base:]
    return [(name, t['dtype'], t['shape'], data[slice(*t['data_offsets'])])
            for name, t in head.items() if name != '__metadata__']


def write(path, some, metadata=None):
    """Write tensors in the form that read returns."""
    head, at = {'__metadata__': metadata} if metadata is not None else {}, 0
    for name, dtype, shape, raw in some:
        head[name] = {'dtype': dtype, 'shape': shape,
                      'data_offsets': [at, at + len(raw)]}
        at += len(raw)
    text = json.dumps(head).encode()
    text += b' ' * (-len(text) % 8)
    with open(path, 'wb') as f:
        f.write(struct.pack('<Q', len(text)) + text)
        f.writelines(raw for _, _, _, raw in some)
