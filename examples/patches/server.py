"""A model server without a model to run, only to try receive.sh:

    python3 server.py MODEL PORT

It maps the model's files into memory as real servers do, reads all of them repeatedly, and
answers these requests:

    POST /update_weights_from_disk  {"model_path": MODEL}       as SGLang
    POST /collective_rpc            {"method": "reload_weights"}    as vLLM
    GET  /model                     a hash of all tensors, by name

If a mapped file changes, or if tensors belong to different models, every later answer has
status 500 and names the tensor.  If the model has a tensor `version`, all its tensors must
begin with the first byte of `version`.  With PORT 0 it uses a free port and prints the
number."""
import hashlib
import json
import mmap
import os
import struct
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

INDEX = "model.safetensors.index.json"


def files(model):
    """Return the files that the index names, or the only file without an index."""
    index = os.path.join(model, INDEX)
    if not os.path.exists(index):
        return ["model.safetensors"]
    with open(index) as f:
        return sorted(set(json.load(f)["weight_map"].values()))


def mapped(model):
    """Return the bytes of each tensor in the mapped files."""
    tensors = {}
    for name in files(model):
        with open(os.path.join(model, name), "rb") as f:
            whole = memoryview(mmap.mmap(f.fileno(), 0, prot=mmap.PROT_READ))
        start = 8 + struct.unpack("<Q", whole[:8])[0]
        for tensor, t in json.loads(bytes(whole[8:start])).items():
            if tensor != "__metadata__":
                begin, end = t["data_offsets"]
                tensors[tensor] = whole[start + begin:start + end]
    return tensors


class Model:
    def __init__(self, path):
        self.path, self.mixture, self.passes = path, None, 0
        self.lock = threading.Lock()
        self.load()

    def load(self):
        tensors = mapped(self.path)
        sums = {n: hashlib.sha256(t).hexdigest() for n, t in tensors.items()}
        version = tensors.get("version")
        for n, t in tensors.items():
            if version is not None and t[0] != version[0]:
                self.mixture = f"{n} is of another model than version"
        with self.lock:
            self.tensors, self.sums = tensors, sums

    def digest(self):
        with self.lock:
            text = "".join(f"{n} {self.sums[n]}\n" for n in sorted(self.sums))
        return hashlib.sha256(text.encode()).hexdigest()

    def read(self):
        """Read all mapped bytes once, and note a change."""
        with self.lock:
            tensors, sums = self.tensors, self.sums
        for n, t in tensors.items():
            if hashlib.sha256(t).hexdigest() != sums[n]:
                self.mixture = f"{n} changed while it was served"
        self.passes += 1

    def serve(self):
        while True:
            self.read()


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *args):
        pass

    def answer(self, status, **what):
        if model.mixture is not None:
            status, what = 500, {"success": False, "message": model.mixture}
        body = json.dumps(what).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def do_GET(self):
        self.answer(200, model=model.digest(), passes=model.passes)

    def do_POST(self):
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        wanted = {"/update_weights_from_disk": {"model_path": model.path},
                  "/collective_rpc": {"method": "reload_weights"}}
        if wanted.get(self.path) != body:
            return self.answer(400, success=False, message="not known here")
        model.load()
        return self.answer(200, success=True, message="read again")


if __name__ == "__main__":
    model = Model(sys.argv[1])
    server = ThreadingHTTPServer(("127.0.0.1", int(sys.argv[2])), Handler)
    print(server.server_port, flush=True)
    threading.Thread(target=model.serve, daemon=True).start()
    server.serve_forever()
