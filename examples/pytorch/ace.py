"""Train one PyTorch model on several machines, through the programs of ace(7).

    import ace
    local = ace.Local(model, optimizer, device="edge1", through='''
        ace-step -S edge1 --bits 1.3 --window 1 |
        ssh -T cloud |
        ace-ack -S edge1 | ace-expand''')
    while local.round < 100:
        for x, y in batches(local.round):       # some local steps, as ever
            optimizer.zero_grad()
            loss(model(x), y).backward()
            optimizer.step()
        local.sync()                            # and what all devices did
    local.close()

Local averages what the devices' local steps changed; Gradients averages their
gradients at every step, layer by layer as they are computed or by a
communication hook of DistributedDataParallel.  ace-pytorch(7) has the rest.

It needs torch, 1.13 or later, the standard library, and the programs in PATH.
"""
import ctypes
import fcntl
import json
import os
import queue
import select
import shlex
import struct
import subprocess
import sys
import threading
import time
import zlib

import torch

__all__ = ["Error", "Gradients", "Local", "load", "save"]

NAMES = {torch.float32: "F32", torch.float16: "F16", torch.bfloat16: "BF16"}
ADVICE = {
    2: "the call is wrong: see the page of that program",
    3: "bytes were cut off or damaged: start this device again",
    4: "the system or the network failed: start this device again",
    5: "refused, and the same again will be refused: see ace-pytorch(7), "
       "WHEN SOMETHING FAILS",
    255: "ssh failed: look at the connection, then start this device again"}


MISMATCH = ("this device, its state and the cloud are not of one run: see "
            "ace-pytorch(7), WHEN SOMETHING FAILS")


class Error(RuntimeError):
    """What failed first, and what to do.  status is that of the program."""

    def __init__(self, text, status=2):
        super().__init__(text)
        self.status = status


# ---- tensors as bytes, and the files of safetensors, without a copy ----

def _bytes(t):
    """The memory of a contiguous tensor, which lives as long as the view."""
    n = t.numel() * t.element_size()
    if n == 0:
        return memoryview(b"")
    there = (ctypes.c_char * n).from_address(t.data_ptr())
    there.tensor = t
    return memoryview(there).cast("B")


def _header(tensors, note=None):
    """The beginning of a safetensors file of these (name, tensor) pairs."""
    head, at = {"__metadata__": note} if note else {}, 0
    for name, t in tensors:
        end = at + t.numel() * t.element_size()
        head[name] = {"dtype": NAMES[t.dtype], "shape": list(t.shape),
                      "data_offsets": [at, end]}
        at = end
    text = json.dumps(head, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    return struct.pack("<Q", len(text)) + text


def _check_header(text, tensors):
    """Refuse a file that is not of just these tensors."""
    head, at = json.loads(text), 0
    head.pop("__metadata__", None)
    for name, t in tensors:
        got, end = head.pop(name, None), at + t.numel() * t.element_size()
        if got != {"dtype": NAMES[t.dtype], "shape": list(t.shape),
                   "data_offsets": [at, end]}:
            raise Error(f"the answer does not fit the model: tensor '{name}' "
                        f"is {got}", 3)
        at = end
    if head:
        raise Error(f"the answer has a tensor '{min(head)}', which the model "
                    "does not have", 3)


def _contiguous(t):
    """t itself, or a copy of it where its bytes are not in order."""
    return t if t.is_contiguous() else t.contiguous()


# ---- what can be sent ----

def _overlaps(t):
    """Whether two elements of t are the same memory."""
    room = 1
    for step, n in sorted((s, n) for s, n in zip(t.stride(), t.shape) if n > 1):
        if step < room:
            return True
        room = step * (n - 1) + room
    return False


def _refuse(name, t):
    """Why this tensor cannot be sent, and what to do; or None."""
    if torch.nn.parameter.is_lazy(t):
        return "has no values yet: run the model once before"
    if t.layout != torch.strided:
        return "is sparse: use .to_dense(), or Embedding(sparse=False)"
    if t.is_quantized:
        return "is quantised: train a model of floats, and quantise that"
    if t.device.type != "cpu":
        return (f"is on device '{t.device}': keep the model that is "
                "synchronised on the CPU (model.cpu())")
    if t.dtype not in NAMES:
        return (f"is of type {t.dtype}, and what is sent is f32, f16 or bf16: "
                "use model.float()")
    if _overlaps(t):
        return "has elements that share their memory (expand): use .clone()"
    if t.is_shared():
        return ("is in memory shared with other processes, which would see "
                "half a change: use .clone()")
    if t.dim() > 8 or len(name.encode()) > 255 or name == "__metadata__":
        return "has more than 8 dimensions, or a name that cannot be sent"
    return None


def _parameters(model, wanted=lambda p: p.requires_grad):
    """The (name, parameter) pairs that are sent; tied ones are there once."""
    found = [(n, p) for n, p in model.named_parameters() if wanted(p)]
    if not found:
        raise Error("the model has no parameter that requires a gradient")
    last = 0, None
    for name, p in found:
        why = _refuse(name, p)
        if why:
            raise Error(f"parameter '{name}' {why}")
    for start, end, name in sorted((p.data_ptr(), p.data_ptr() + (
            1 + sum(s * (n - 1) for s, n in zip(p.stride(), p.shape)))
            * p.element_size(), n) for n, p in found if p.numel()):
        if start < last[0]:
            raise Error(f"parameters '{last[1]}' and '{name}' share their "
                        "memory: tie them by assigning the same Parameter")
        last = end, name
    return found


def _look(pairs):
    return [(n, tuple(p.shape), str(p.dtype)) for n, p in pairs]


def _changed(old, new, what):
    """Raise with the first difference between two models."""
    old, new = {n: k for n, *k in old}, {n: k for n, *k in new}
    for name in new:
        if name not in old:
            raise Error(f"parameter '{name}' is new: {what} does not have it; "
                        "begin another run, with empty states")
        if old[name] != new[name]:
            raise Error(f"parameter '{name}' is {new[name]}, and in {what} "
                        f"{old[name]}; begin another run, with empty states")
    for name in old:
        if name not in new:
            raise Error(f"parameter '{name}' is gone: {what} has it; begin "
                        "another run, with empty states")


# ---- the programs ----

def _stages(through):
    """A pipeline as a shell would see it, each stage a list of words."""
    words = shlex.shlex(through, posix=True, punctuation_chars="|;&<>()")
    words.whitespace_split, words.commenters = True, ""
    stages = [[]]
    for w in words:
        if w == "|":
            stages.append([])
        elif set(w) <= set("|;&<>()"):
            raise Error(f"'{w}' in the pipeline: only programs, their "
                        "arguments and '|' can stand there")
        else:
            stages[-1].append(w)
    if not all(stages):
        raise Error("a stage of the pipeline is empty")
    return stages


def _states(stages):
    """The state directories that the stages name."""
    for words in stages:
        for i, w in enumerate(words):
            if w in ("-S", "--state") and i + 1 < len(words):
                yield words[i + 1]
            elif w.startswith("--state="):
                yield w[8:]


def _lock(f, what, seconds=10):
    """Lock an open file; what a killed run left behind has time to go."""
    end = time.monotonic() + seconds
    while True:
        try:
            return fcntl.flock(f, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() > end:
                raise Error(f"{what} is in use by another process: stop that "
                            "one, or give this device a checkpoint, a state "
                            "and a name of its own", 5) from None
        time.sleep(0.05)


def _free(states):
    """Wait until nobody is in these state directories."""
    for s in set(states):
        for name in "lock", "ack-lock":
            if os.path.exists(f"{s}/{name}"):
                with open(f"{s}/{name}", "rb") as f:
                    _lock(f, f"state '{s}'")


class _Pipe:
    """Programs that live for a whole run: a file of tensors goes in for each
    round, and one comes out."""

    def __init__(self, through, step, kind, device, run, weight, samples):
        self.stages = _stages(through)
        self.states = list(_states(self.stages))
        self.stages.insert(0, ["ace-import", "--many", "-k", kind, "-d", device,
                               "-r", run, "-s", str(step), "--base-version",
                               str(step), "-w", str(weight), "-n", str(samples)])
        self.stages.append(["ace-export", "--many"])
        self.said = []          # lines, in the order they were written
        self.processes, self.threads = [], []
        self.known = None       # the last header, which was checked
        self.heard = False      # some of an answer
        _free(self.states)
        self._start()
        self.queue = queue.Queue()
        self._thread(self._send)

    def _start(self):
        # one pipe for what all of them say: who speaks first comes first
        hear, say = os.pipe()
        self._thread(self._listen, hear)
        last = subprocess.PIPE
        try:
            for words in self.stages:
                p = subprocess.Popen(words, stdin=last, bufsize=0,
                                     stdout=subprocess.PIPE, stderr=say)
                if self.processes:
                    last.close()
                self.processes.append(p)
                last = p.stdout
        except OSError as e:
            os.close(say)
            self._end(0)
            raise Error(f"cannot run '{words[0]}': {e.strerror}; is it in "
                        "PATH?") from None
        os.close(say)
        self.into, self.out = self.processes[0].stdin, last
        for f in self.into, self.out:
            try:
                fcntl.fcntl(f, getattr(fcntl, "F_SETPIPE_SZ", 1031), 1 << 20)
            except OSError:
                pass

    def _thread(self, f, *args):
        t = threading.Thread(target=f, args=args, daemon=True)
        self.threads.append(t)
        t.start()

    def _listen(self, hear):
        with open(hear, errors="replace") as f:
            for line in f:
                self.said.append(line.rstrip())
                del self.said[:-200]

    def _last_word(self, i):
        """Where in said the last line of stage i is, and that line; of programs
        that are not ours, and of hosts behind them, all that ours did not say."""
        ours = {w[0] for w in self.stages if w[0].startswith("ace-")}
        name = self.stages[i][0]
        for k in range(len(self.said) - 1, -1, -1):
            who = self.said[k].split(":")[0]
            if who == name or (name not in ours and who not in ours):
                return k, self.said[k]
        return -1, None

    def _send(self):
        """What is in the queue into the pipe: nobody else writes there."""
        try:
            with self.into as f:
                for parts in iter(self.queue.get, None):
                    while parts:
                        n = os.writev(f.fileno(), parts[:256])
                        while parts and n >= len(parts[0]):
                            n -= len(parts.pop(0))
                        if n:
                            parts[0] = parts[0][n:]
        except OSError:         # the programs ended; who reads will see why
            pass

    def send(self, *parts):
        self.queue.put([memoryview(p) for p in parts if len(p)])

    def _fill(self, view):
        at = 0
        while at < len(view):
            # a program may be dead, and those behind it wait for the others'
            # shards all the same
            while not select.select([self.out], [], [], 0.2)[0]:
                if any(p.poll() for p in self.processes):
                    raise self.failure()
            n = self.out.readinto(view[at:])
            if not n:
                raise self.failure()
            self.heard = True
            at += n

    def receive(self, tensors):
        """The next file into the memory of (name, tensor) pairs."""
        n = bytearray(8)
        self._fill(memoryview(n))
        n = struct.unpack("<Q", n)[0]
        if n > 1 << 27:
            raise Error("the answer is no safetensors file", 3)
        text = bytearray(n)
        self._fill(memoryview(text))
        if text != self.known:
            _check_header(text, tensors)
            self.known = text
        for _, t in tensors:
            to = _contiguous(t)
            self._fill(_bytes(to))
            if to is not t:
                t.copy_(to)
        self.heard = False

    def _end(self, seconds):
        """Wait for all programs; after so many seconds end our own."""
        end = time.monotonic() + seconds
        for p in self.processes:
            try:
                p.wait(max(0, end - time.monotonic()))
            except subprocess.TimeoutExpired:
                p.terminate()
                p.ended = True
        for p in self.processes:
            p.wait()
        for t in self.threads:
            t.join(seconds + 1)

    def leave(self):
        """Give the pipe up, whatever is under way."""
        self.out.close()
        self.queue.put(None)
        self._end(10)

    def failure(self):
        """The Error for a pipe that ended too early."""
        self.leave()
        failed = []
        for i, p in enumerate(self.processes):
            if p.returncode in (0, -13) or hasattr(p, "ended"):
                continue
            # a program's error is the last thing it says, who fails because
            # another one did speaks after that one, and ours say nothing when
            # nobody reads them
            at, line = self._last_word(i)
            if line is None and self.stages[i][0].startswith("ace-"):
                at = len(self.said)
            if p.returncode < 0:
                at, line = -2, (f"{self.stages[i][0]} was killed by signal "
                                f"{-p.returncode}")
            failed.append((at, i, line or f"{self.stages[i][0]} ended with "
                           f"status {p.returncode}"))
        if not failed:
            return Error("the pipeline ended without an answer: "
                         + " | ".join(w[0] for w in self.stages), 4)
        _, first, line = min(failed)
        status = max(self.processes[first].returncode, 0) or 4
        what = MISMATCH if ": mismatch: " in line else \
            ADVICE.get(status, f"status {status}")
        said = [s for _, i, s in sorted(failed) if i != first]
        return Error("\n    then ".join(
            [f"{line} ({what})"]
            + [s for s in said if s != line]), status)

    def close(self):
        """The end of a run: nothing is under way, and all programs are done."""
        self.queue.put(None)
        rest = self.out.read(1)
        if rest or any(p.wait() for p in self.processes):
            raise (Error("the pipeline said more than was asked", 3) if rest
                   else self.failure())
        self._end(10)
        self.out.close()


# ---- files that are whole or not there ----

def save(path, what):
    """torch.save, on disk whole or not at all."""
    temp = f"{path}.new"
    with open(temp, "wb") as f:
        torch.save(what, f)
        f.flush()
        os.fsync(f.fileno())
    os.replace(temp, path)
    d = os.open(os.path.dirname(path) or ".", os.O_RDONLY)
    try:
        os.fsync(d)
    finally:
        os.close(d)


def load(path):
    """What save wrote, or None if it never did."""
    try:
        return torch.load(path, map_location="cpu")
    except FileNotFoundError:
        return None
    except Exception as e:
        raise Error(f"checkpoint '{path}' cannot be read: {e}", 3) from e


def _alone(path):
    """The lock of a checkpoint, held as long as its file is open."""
    f = open(f"{path}.lock", "wb")
    _lock(f, f"checkpoint '{path}'")
    return f


# ---- (a) local steps ----

class Local:
    """Local steps of any optimiser, then the average of what they changed.

    through     the pipeline between ace-import and ace-export, both of which
                are started here: it takes this device's difference and gives
                the average
    checkpoint  a file that is written after every round, and from which a
                killed run goes on by itself
    outer_rate, outer_momentum
                of the step with the average, Nesterov's; 1 and 0 take it as
                it is
    patience    seconds to try a broken connection again
    weight, samples
                of this device in the average

    round is the next round, and seconds says what the last one took."""

    def __init__(self, model, optimizer, through, device, run="train",
                 checkpoint=None, outer_rate=1.0, outer_momentum=0.0,
                 patience=0, weight=1, samples=0):
        self.model, self.optimizer = model, optimizer
        self.pairs = _parameters(model)
        self.look = _look(self.pairs)
        self.rate, self.momentum = outer_rate, outer_momentum
        self.call = dict(through=through, kind="delta", device=device, run=run,
                         weight=weight, samples=samples)
        self.patience, self.checkpoint = patience, checkpoint
        self.round, self.pipe, self.seconds = 0, None, {}
        self.lock = _alone(checkpoint) if checkpoint else None
        with torch.no_grad():
            # the common model, in f32, and the momentum's memory
            self.start = [p.detach().to(torch.float32, copy=True)
                          for _, p in self.pairs]
            self.memory = [torch.zeros_like(s) for s in self.start
                           if outer_momentum]
        # who begins with another model is of another run, and ace-recv refuses
        self.call["run"] = f"{run}-{self.digest()}"
        self._resume()
        self._connect()
        self.since = time.monotonic()

    def _resume(self):
        had = load(self.checkpoint) if self.checkpoint else None
        if had is None:
            return
        what = f"checkpoint '{self.checkpoint}'"
        _changed(had["look"], self.look, what)
        if len(had["memory"]) != len(self.memory):
            raise Error(f"{what} was made with another outer momentum: go on "
                        "with that one")
        with torch.no_grad():
            for to, x in zip(self.start + self.memory,
                             had["start"] + had["memory"]):
                to.copy_(x)
            self._reset()
            for name, b in self.model.named_buffers():
                if name in had["buffers"]:
                    b.copy_(had["buffers"][name])
        if self.optimizer is not None:
            self.optimizer.load_state_dict(had["optimizer"])
        torch.set_rng_state(had["random"])
        self.round, self.call["run"] = had["round"], had["run"]

    def _save(self):
        save(self.checkpoint, {
            "round": self.round, "run": self.call["run"], "look": self.look, "start": self.start,
            "memory": self.memory, "buffers": dict(self.model.named_buffers()),
            "optimizer": self.optimizer and self.optimizer.state_dict(),
            "random": torch.get_rng_state(), "digest": self.digest()})

    def _connect(self):
        self.pipe = _Pipe(step=self.round, **self.call)

    def _leave(self):
        if self.pipe is not None:
            self.pipe.leave()
        self.pipe = None

    @torch.no_grad()
    def _reset(self):
        """The model is the common one."""
        for (_, p), s in zip(self.pairs, self.start):
            p.copy_(s)

    def digest(self):
        """A checksum of the common model: after sync it is the same everywhere."""
        sum_ = 0
        for s in self.start:
            sum_ = zlib.crc32(_bytes(_contiguous(s)), sum_)
        return f"{sum_:08x}"

    def _exchange(self):
        d = [(n, p.detach()) for n, p in self.pairs]
        end = time.monotonic() + self.patience
        while True:
            try:
                if self.pipe is None:
                    self._connect()
                self.pipe.send(_header(d, {"model": self.digest()}))
                for _, t in d:
                    self.pipe.send(_bytes(_contiguous(t)))
                self.pipe.receive(d)
                return
            except Error as e:
                # with a state the programs send again what they have, and the
                # values here do not count
                heard = self.pipe is not None and self.pipe.heard and \
                    not self.pipe.states
                self._leave()
                if e.status in (2, 5) or heard or time.monotonic() > end:
                    raise
            print(f"ace: round {self.round}: broken, and again", file=sys.stderr)
            time.sleep(1)

    @torch.no_grad()
    def sync(self):
        """Send what the local steps changed, and make the model the next common
        one.  When it raises, the model is the last common one."""
        began = time.monotonic()
        try:
            _changed(self.look, _look(_parameters(self.model)), "the run")
            for (_, p), s in zip(self.pairs, self.start):
                p.sub_(s.to(p.dtype))       # in the parameter's own memory
            self._exchange()
            heard = time.monotonic()
            for i, (s, (_, p)) in enumerate(zip(self.start, self.pairs)):
                self._outer(s, p, self.memory[i] if self.momentum else None)
        except BaseException:
            self._leave()
            self._reset()
            raise
        self.round += 1
        applied = time.monotonic()
        if self.checkpoint:
            self._save()
        now = time.monotonic()
        self.seconds = {"steps": began - self.since, "exchange": heard - began,
                        "apply": applied - heard, "save": now - applied}
        self.since = now

    def _outer(self, s, p, m):
        """s += rate * (d + momentum * v), v being the momentum's sum of d; each
        operation rounds once, so that all machines get the same bits."""
        d = p.detach() if p.dtype == s.dtype else p.detach().float()
        if m is not None:               # m is momentum * v
            m.add_(d).mul_(self.momentum)
            d.add_(m)
        s.add_(d.mul_(self.rate))
        p.copy_(s)

    def close(self):
        """End the run; raises if a program failed."""
        if self.pipe is not None:
            self.pipe.close()
            self.pipe = None
        if self.lock is not None:
            self.lock.close()


# ---- (b) and (c) gradients ----

class Gradients:
    """The average gradient of all devices, at every step.

        grads = ace.Gradients(model, through, device="edge1")
        ...
        loss.backward()     # each layer leaves when it is computed
        grads.average()     # .grad is now the average of all devices
        optimizer.step()

    With DistributedDataParallel, which calls average by itself:

        grads = ace.Gradients(model, through, device="edge1", layers=False)
        ddp.register_comm_hook(grads, ace.Gradients.hook)

    step is the first one's number: after a crash that of the checkpoint."""

    def __init__(self, model, through, device, run="train", step=0, layers=True,
                 weight=1, samples=0):
        self.model = model
        self.pairs = _parameters(model)[::-1]       # last layer first
        self.look = _look(self.pairs)
        self.name = {p: n for n, p in self.pairs}
        self.step = step
        self.pipe = _Pipe(through, step, "gradient", device, run, weight, samples)
        self.ready, self.sent, self.buckets = {}, 0, []
        self.nodes = [self._attach(p) for _, p in self.pairs if layers]

    def _attach(self, p):
        """Call _computed when p.grad is whole."""
        if hasattr(p, "register_post_accumulate_grad_hook"):
            return p.register_post_accumulate_grad_hook(self._computed)
        node = p.expand_as(p).grad_fn.next_functions[0][0]
        return node, node.register_hook(lambda *_: self._computed(p))

    def _computed(self, p):
        self._take(p, p.grad)
        self._leave(False)

    def _take(self, p, g):
        name = self.name[p]
        why = _refuse(name, g)
        if why is None and g.dtype != p.dtype:
            why = f"is of type {g.dtype}, its parameter of {p.dtype}"
        if why:
            raise Error(f"the gradient of '{name}' {why}")
        if name in self.ready:
            raise Error(f"the gradient of '{name}' changed after it was sent: "
                        "one backward() for each average(), or layers=False")
        self.ready[name] = g

    def _leave(self, all_):
        """Send the layers whose turn it is."""
        if self.sent == 0:
            self.pipe.send(_header(self.pairs))
        while self.sent < len(self.pairs):
            name, p = self.pairs[self.sent]
            if name not in self.ready:
                if not all_:
                    return
                self.ready[name] = torch.zeros_like(
                    p, memory_format=torch.contiguous_format)
            self.sent += 1
            self.pipe.send(_bytes(_contiguous(self.ready[name])))

    @torch.no_grad()
    def average(self):
        """Wait for the average, into every .grad."""
        _changed(self.look, _look(_parameters(self.model)[::-1]), "the run")
        for name, p in self.pairs:
            if name not in self.ready and p.grad is not None:
                self._take(p, p.grad)
        self._finish()
        for name, p in self.pairs:
            p.grad = self.ready[name]
        self.ready = {}

    def _finish(self):
        self._leave(True)
        self.pipe.receive([(n, self.ready[n]) for n, _ in self.pairs])
        self.sent, self.step = 0, self.step + 1

    @staticmethod
    def hook(grads, bucket):
        """The communication hook: register_comm_hook(grads, Gradients.hook)."""
        done = torch.futures.Future()
        grads.buckets.append((done, bucket.buffer()))
        for p, g in zip(bucket.parameters(), bucket.gradients()):
            grads._take(p, g)
        if bucket.is_last():
            grads._finish()
            grads.ready = {}
            for f, buffer in grads.buckets:
                f.set_result(buffer)
            grads.buckets = []
        return done

    def close(self):
        """End the run; raises if a program failed."""
        self.pipe.close()
