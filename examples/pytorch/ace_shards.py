"""Train one PyTorch model on several machines, through the programs of ace(7).

Local averages what the devices' local steps changed; Replay averages the gradients
along steps that are taken back, and all devices take the same steps with the
average; Gradients averages gradients at every step, layer by layer as they are
computed or by a communication hook of DistributedDataParallel.  ace-pytorch(7) has
the rest.

It needs torch, 1.13 or later, the standard library, and the programs, in PATH or
beside this Python.
"""
import contextlib
import ctypes
import errno
import fcntl
import json
import math
import numbers
import os
import queue
import re
import select
import signal
import stat
import subprocess
import sys
import threading
import time
import weakref
import zlib

import torch

__all__ = ["Error", "Gradients", "Local", "Replay", "load", "save"]

NAMES = {torch.float32: "F32", torch.float16: "F16", torch.bfloat16: "BF16"}
SEE = "see ace-pytorch(7), WHEN SOMETHING FAILS"
ASK = "look at the cloud and at who can write to its spool, then start again"
ADVICE = {
    2: "the call is wrong: see the page of that program",
    3: "bytes were cut off or damaged: start this device again",
    4: "the system or the network failed: start this device again",
    5: f"refused, and the same again will be refused: {SEE}",
    255: "ssh failed: look at the connection, then start this device again"}


class Error(RuntimeError):
    """What failed first, and what to do.  status is that of the program."""

    def __init__(self, text, status=2, final=False):
        super().__init__(text)
        self.status = status
        self.final = final      # no use to try the connection again


# ---- tensors as bytes, and the files of safetensors, without a copy ----

def _host(t):
    """t in the memory of the CPU and in order: t itself, or a copy of it."""
    return t.detach().cpu().contiguous()


def _bytes(t):
    """The memory of what _host gave, which lives as long as the view."""
    n = t.numel() * t.element_size()
    there = (ctypes.c_char * n).from_address(t.data_ptr())
    there.tensor = t
    return memoryview(there).cast("B") if n else memoryview(b"")


def _layout(tensors):
    """Where these (name, tensor) pairs are in a safetensors file."""
    head, at = {}, 0
    for name, t in tensors:
        end = at + t.numel() * t.element_size()
        head[name] = {"dtype": NAMES[t.dtype], "shape": list(t.shape),
                      "data_offsets": [at, end]}
        at = end
    return head


def _header(tensors, note=None):
    """The beginning of a safetensors file of these pairs."""
    head = {"__metadata__": note or {}, **_layout(tensors)}
    text = json.dumps(head, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    return len(text).to_bytes(8, "little") + text


LARGEST = 2.0 ** 63     # of what comes back: a larger square is beyond f32


def _sound(tensors, what):
    """Raise if a value of these (name, tensor) pairs is no number to go on with."""
    for name, t in tensors:
        low, high = torch.aminmax(t.float()) if t.numel() else (t.new_zeros(()),) * 2
        if not (low > -LARGEST and high < LARGEST):
            x = t.float().reshape(-1)
            at = int((~(x.abs() < LARGEST)).nonzero()[0])
            raise Error(f"{what} has {x[at].item():g} in '{name}' at index {at}, "
                        f"expected finite values below 2^63: nothing was applied; "
                        f"{ASK}", 3, True)


# ---- what can be sent ----

def _span(t):
    """How many elements of memory t spreads over; 0 where some share theirs."""
    room = 1
    for step, n in sorted((s, n) for s, n in zip(t.stride(), t.shape) if n > 1):
        if step < room:
            return 0
        room += step * (n - 1)
    return room


def _refuse(name, t):
    """Why this tensor cannot be sent, and what to do; or None."""
    if torch.nn.parameter.is_lazy(t) or t.is_meta:
        return "has no values yet: run the model once before, or fill it"
    if t.layout != torch.strided:
        return "is sparse: use .to_dense(), or Embedding(sparse=False)"
    if t.is_quantized:
        return "is quantised: train a model of floats, and quantise that"
    if t.dtype not in NAMES:
        return f"is of type {t.dtype}, not f32, f16 or bf16: use .float()"
    if not _span(t):
        return "has elements that share their memory (expand): use .clone()"
    if t.device.type == "cpu" and t.is_shared():
        return "is in memory shared with other processes: use .clone()"
    if t.dim() > 8 or len(name.encode()) > 255 or name == "__metadata__":
        return "has more than 8 dimensions, or a name that cannot be sent"
    if min(name, default=" ") < " " or "\x7f" in name:
        return "has a control character in its name: give it another one"
    return None


def _plain(names):
    """Names without what wrappers put before them, so that who has a wrapper and
    who has none are of one run: module. of DistributedDataParallel, _orig_mod. of
    torch.compile."""
    names = [".".join(w for w in n.split(".") if w != "_orig_mod")
             for n in names]
    while names and all(n.startswith("module.") for n in names):
        names = [n[7:] for n in names]
    return names


PARTS = {"FullyShardedDataParallel", "FSDPModule", "FlatParameter", "DTensor"}


def _named(model):
    """Two dicts by plain names: its parameters and its buffers."""
    for x in (*model.modules(), *model.parameters()):
        parts = PARTS.intersection(c.__name__ for c in type(x).__mro__)
        if parts:
            raise Error(f"the model has a {parts.pop()}: each process has a part "
                        "of its parameters, and only whole ones can be sent: "
                        "use DistributedDataParallel, or one process a device")
    params, buffers = list(model.named_parameters()), list(model.named_buffers())
    names = _plain([n for n, _ in params + buffers])
    if len(set(names)) < len(names):
        raise Error("two parameters have the same name without 'module.' and "
                    "'_orig_mod.': give them other ones")
    tensors = [t for _, t in params + buffers]
    n = len(params)
    return dict(zip(names[:n], tensors)), dict(zip(names[n:], tensors[n:]))


def _parameters(model):
    """The (name, parameter) pairs that are sent; tied ones are there once."""
    found = [(n, p) for n, p in _named(model)[0].items() if p.requires_grad]
    if not found:
        raise Error("the model has no parameter that requires a gradient")
    for name, p in found:
        why = _refuse(name, p)
        if why:
            raise Error(f"parameter '{name}' {why}")
    last, end = None, 0
    for at, name, p in sorted((p.data_ptr(), n, p) for n, p in found
                              if p.numel() and p.data_ptr()):
        if at < end:
            raise Error(f"parameters '{last}' and '{name}' share their "
                        "memory: tie them by assigning the same Parameter")
        last, end = name, at + _span(p) * p.element_size()
    return found


def _mark(t):
    """What is another text when t has other values, or the same ones elsewhere: the
    sum of its bits, each times a number of its place, so that nothing is copied from
    where t is."""
    def sums(bits):
        place = torch.arange(1, min(len(bits), 1 << 20) + 1, device=bits.device)
        place = place * -0x61c8864680b583eb     # 2^64 over the golden ratio
        place = place ^ place >> 32
        parts = [bits[i:i + (1 << 20)] for i in range(0, len(bits) or 1, 1 << 20)]
        return torch.stack([(b * place[:len(b)]).sum() for b in parts])
    if torch.nn.parameter.is_lazy(t):
        return "nothing yet"
    said = f"{t.dtype} {tuple(t.shape)}"
    if t.is_meta or t.layout != torch.strided or t.is_quantized:
        return said
    kinds = {1: torch.uint8, 2: torch.int16, 4: torch.int32}
    bits = torch.view_as_real(t.detach()) if t.is_complex() else t.detach()
    bits = bits.contiguous().view(kinds.get(bits.element_size(), torch.int64))
    return f"{said} {sums(sums(bits.reshape(-1))).sum().item()}"


def _look(pairs):
    return {n: [tuple(p.shape), str(p.dtype)] for n, p in pairs}


def _changed(old, new, what):
    """Raise with the first difference between two models."""
    for name in {**new, **old}:
        had, has = old.get(name), new.get(name)
        if had != has:
            how = (f"is new: {what} does not have it" if had is None else
                   f"is gone: {what} has it" if has is None else
                   f"is {has}, and in {what} {had}")
            raise Error(f"parameter '{name}' {how}; begin another run, with "
                        "empty states")


def _same(pairs, look, model):
    """Raise if the model's parameters are not these, which looked so."""
    now, had = _parameters(model), dict(pairs)
    _changed(look, _look(now), "the run")
    for name, p in now:
        if p is not had[name]:
            raise Error(f"parameter '{name}' is another object than when the run "
                        "began, which nobody sends: copy values into the one that "
                        "was there (load_state_dict, without assign=True), or begin "
                        "with ace after the model is changed")


WORDS = re.compile(r"""(\s+) | ([|;&<>()]+) | '([^']*)' | "((?:[^"\\]|\\.)*)" |
                   \\(.) | ([^\s|;&<>()'"\\]+)""", re.S | re.X)
VARIABLE = re.compile(r"""\\([$`"\\\n]) | (\$\{(\w+)\} | \$([A-Za-z_]\w*) |
                      \$[\w{@*#?!$(-] | `)""", re.X)


def _variables(text):
    """With the values of $NAME and ${NAME}, and without the \\ of double quotes."""
    def value(m):
        name = m[3] or m[4]
        if not m[2]:
            return m[1].strip("\n")
        if not name:
            raise Error(f"'{m[0]}' in the pipeline: no shell reads it; write it "
                        "in single quotes, or into a script of your own")
        if name not in os.environ:
            raise Error(f"'{m[0]}' in the pipeline: there is no such variable in "
                        "the environment")
        return os.environ[name]
    return VARIABLE.sub(value, text)


def _stages(through):
    """A pipeline as a shell would see it, each stage a list of words."""
    stages, word, at = [[]], None, 0
    while at < len(through):
        m = WORDS.match(through, at)
        if not m:
            raise Error(f"a quote without its end in the pipeline: "
                        f"{through[at:at + 20]}")
        at = m.end()
        space, sign, single, double, escaped, bare = m.groups()
        if space or sign:
            stages[-1] += [] if word is None else [word]
            word = None
            if sign == "|":
                stages.append([])
            elif sign:
                raise Error(f"'{sign}' in the pipeline: only programs, their "
                            "arguments and '|' can stand there")
        elif escaped:
            word = (word or "") + escaped if escaped != "\n" else word
        elif bare and word is None:
            home = re.match("(~[^/$]*)?", bare)[0]
            word = os.path.expanduser(home) + _variables(bare[len(home):])
        else:
            word = (word or "") + (single or _variables(double or bare or ""))
    stages[-1] += [] if word is None else [word]
    if not all(stages):
        raise Error("a stage of the pipeline is empty")
    return stages


def _environment():
    """For the programs: PATH has those that are beside this Python, and first of
    all when it is that of a virtual environment."""
    here = [d for d in (os.path.dirname(sys.executable or ""),
                        os.path.join(sys.prefix, "bin")) if d]
    path = os.environ.get("PATH", os.defpath).split(os.pathsep)
    path = here + path if sys.prefix != sys.base_prefix else path + here
    return {**os.environ, "PATH": os.pathsep.join(path)}


def _connection(stages):
    """Those stages of a pipeline that bring a shard to the cloud and the answer
    back: what stands before ace-ack and is not a program that codes, with those that
    sign on the way there; what comes back is not all signed."""
    names = [os.path.basename(words[0]) for words in stages]
    end = at = names.index("ace-ack") if "ace-ack" in names else 0
    while at and (not names[at - 1].startswith("ace-") or
                  names[at - 1] == "ace-recv" or
                  names[at - 1] == "ace-sign" and at < end):
        at -= 1
    return stages[at:end]


@contextlib.contextmanager
def _whole():
    """Ctrl-C waits until what is done here is done."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    came = []
    old = signal.signal(signal.SIGINT, lambda *_: came.append(1))
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, old)
        if came:
            os.kill(os.getpid(), signal.SIGINT)


class _Wait:
    """What the programs say while a device runs, in the words of its user: of
    each wait for an answer, which is not for ever, who is waited for, and once
    of each round that was closed without the device.

    The receiver says the first after ten seconds, and its words come back with
    those of all other programs."""

    SILENT = 10

    def __init__(self, device, timeout=None, on_wait=None):
        self.device, self.timeout, self.call = device, timeout, on_wait
        self.late, self.behind = set(), True
        self.begin(0)

    def say(self, text):
        print(f"ace: {self.device}: {text}", file=sys.stderr, flush=True)

    def begin(self, step, command=""):
        self.round, self.command, self.text, self.printed = step, command, None, None
        self.began, self.since, self.calls = time.monotonic(), time.time(), 0

    def heard(self, line):
        """A line of a program."""
        m = re.match(r"ace-ack: step (\d+): late: ", line)
        if m and int(m[1]) not in self.late:
            self.late.add(int(m[1]))
            self.behind = True
            self.say(f"round {m[1]} was closed before this device's part came: "
                     "it is kept, and sent with a later round")
        m = re.match(r"ace-recv: waiting for step (\d+) of run '.*?': (.*)", line)
        if m and int(m[1]) >= self.round:
            self.text = m[2]

    def known(self):
        seconds = time.monotonic() - self.began
        missing = re.search(r"missing: ([^;]*)", self.text or "")
        return {"device": self.device, "round": self.round, "since": self.since,
                "seconds": seconds, "text": self.says(),
                "missing": re.sub(r" \(.*?\)", "", missing[1]).split(", ")
                           if missing else []}

    def says(self):
        at = time.strftime("%H:%M:%S", time.localtime(self.since))
        if self.text:
            return f"waiting since {at}: {self.text}"
        return (f"no answer since {at} from '{self.command}': does the cloud "
                "run, and can it be reached?")

    def left(self, most):
        """Seconds until the timeout, at most so many."""
        if self.timeout is None:
            return most
        return max(0, min(most, self.began + self.timeout - time.monotonic()))

    def over(self):
        """Raise after the timeout, whatever has come."""
        if self.timeout is not None and not self.left(1):
            raise Error(f"round {self.round} took more than {self.timeout:g} s: "
                        f"{self.says()} (what was sent is in this device's "
                        "state: start it again, or call sync() again)", 4, True)

    def look(self):
        """To be called again and again while nothing comes."""
        seconds = time.monotonic() - self.began
        # the receiver's words need a moment to come back
        if seconds < self.SILENT + (0 if self.text else 2):
            return
        if self.call and seconds >= (self.calls + 1) * self.SILENT:
            self.calls = int(seconds // self.SILENT)
            self.call(self.known())
        if not self.call and self.printed != self.says():
            self.printed = self.says()
            self.say(f"round {self.round}: {self.printed}")


# What a forked child, as a worker of a DataLoader, must not hold: the programs'
# input would never end while it lives, and a lock outlive its owner.
OURS = weakref.WeakSet()


RUNS = weakref.WeakSet()        # each Local of this process that was not closed


def _ours(f):
    OURS.add(f)
    return f


os.register_at_fork(after_in_child=lambda: [[f.close() for f in list(OURS)],
                                            RUNS.clear()])


OWN = ("or give each device, and each model of a script, a checkpoint and a state of "
       "its own")


def _claim(new):
    """Take the place of the same call before, as when a cell of a notebook is run
    again; raise where another run of this process has a file that this one needs."""
    def files(run):
        _, through, _, _, checkpoint = run.said
        return {("state", s) for s in _states(_stages(through))} | \
            ({("checkpoint", checkpoint)} if checkpoint else set())
    for other in list(RUNS):
        shared = files(new) & files(other)
        name = f"ace.{type(other).__name__}"
        if shared and other.said == new.said:
            other._give(f"another call of {name} with the same pipeline and checkpoint "
                        "took the place of this one")
        elif shared:
            raise Error("{} '{}' is in use by another {} of this process: close() that "
                        "one, {}".format(*shared.pop(), name, OWN), 5)


def _place():
    """Which process of how many this is, as torchrun and torch.distributed say."""
    d = torch.distributed
    if d.is_available() and d.is_initialized():
        return d.get_rank(), d.get_world_size()
    return int(os.environ.get("RANK") or 0), int(os.environ.get("WORLD_SIZE") or 1)


def _alone(rank, size):
    return (f"process {rank} of {size} of this place: they are one device, for which "
            "process 0 alone speaks, see ace-pytorch(7), Several processes in one place")


def _lock(path, what, mode="rb", seconds=10):
    """This file, open and locked; what a killed run left behind has time to go."""
    f, end = _ours(open(path, mode)), time.monotonic() + seconds
    while True:
        try:
            fcntl.flock(f, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return f
        except BlockingIOError:
            if time.monotonic() > end:
                rank, size = _place()
                raise Error(f"{what} is in use by another process: stop that "
                            f"one, {OWN}" + (size > 1) *
                            f" (this is {_alone(rank, size)})", 5) from None
        time.sleep(0.05)


def _states(stages):
    """The states that the programs of these stages have."""
    words = [w for words in stages for w in words]
    return {b for a, b in zip(words, words[1:]) if a in ("-S", "--state")} | \
        {w[8:] for w in words if w.startswith("--state=")}


def _listen(hear, said, wait):
    with open(hear, errors="replace") as f:
        for line in f:
            if not line.startswith("Try '"):
                said.append(line.rstrip())
            del said[:-200]
            w = wait()
            if w:               # else nobody waits any more
                w.heard(line.rstrip())
            del w


def _feed(parts, into):
    """What is in the queue into the pipe: nobody else writes there.  When the
    programs have ended, who reads will see why."""
    with contextlib.suppress(OSError), into as f:
        for part in iter(parts.get, None):
            while part:
                part = part[os.write(f.fileno(), part):]


def _end(owner, processes, threads, seconds):
    """Wait for all programs; after so many seconds end our own."""
    if os.getpid() != owner:
        return
    end = time.monotonic() + seconds
    for p in processes:
        try:
            p.wait(max(0, end - time.monotonic()))
        except subprocess.TimeoutExpired:
            p.terminate()
            p.ended = True
    for p in processes:
        try:
            p.wait(2)
        except subprocess.TimeoutExpired:
            p.kill()
            p.wait()
    for t in threads:
        if t is not threading.current_thread():
            t.join(seconds + 1)


def _forget(out, parts, *programs):
    """The end of a pipe, whatever is under way."""
    out.close()
    parts.put(None)
    _end(*programs)


class _Pipe:
    """Programs that live for a whole run: a file of tensors goes in for each
    round, and one comes out."""

    def __init__(self, through, step, kind, device, run, weight, samples,
                 wait=None, ask=False, how=""):
        self.stages = _stages(through)
        self.wait, self.how = wait or _Wait(device), how
        # what is not sent to a cloud comes back as it is
        self.run = run
        self.kinds = ("mean",) if _connection(self.stages) else ("mean", kind)
        self.far = " | ".join(" ".join(w) for w in _connection(self.stages))
        if ask:                 # nothing is coded, and no state is touched
            self.stages = _connection(self.stages) + [["ace-expand"]]
            kind = "model"
        self.states = _states(self.stages)
        self.stages.insert(0, ["ace-import", "--many", "-k", kind, "-d", device,
                               "-r", run, "-s", str(step), "--base-version",
                               str(step), "-w", str(weight), "-n", str(samples)])
        self.stages.append(["ace-export", "--many"])
        self.said = []          # lines, in the order they were written
        self.processes, self.threads = [], []
        self.programs = os.getpid(), self.processes, self.threads
        self.queue = queue.SimpleQueue()    # as a finalizer may use it
        self.heard = False      # some of an answer that will not come again
        self.answered = False
        self.model = None       # the digest that the answer says, of all devices
        for s in self.states:
            for path in f"{s}/lock", f"{s}/ack-lock":
                if os.path.exists(path):
                    _lock(path, f"state '{s}'").close()
        # one pipe for what all of them say: who speaks first comes first
        self.hear, say = os.pipe()
        self.into, self.out = None, subprocess.PIPE
        try:
            for words in self.stages:
                p = subprocess.Popen(words, stdin=self.out, bufsize=0,
                                     stdout=subprocess.PIPE, stderr=say,
                                     env=_environment())
                if self.processes:
                    self.out.close()
                self.into = self.into or _ours(p.stdin)
                self.processes.append(p)
                self.out = _ours(p.stdout)
        except OSError as e:
            os.close(say)
            os.close(self.hear)
            _end(*self.programs, 0)
            raise Error(f"cannot run '{words[0]}': {e.strerror}; is it in "
                        "PATH, or beside this Python?") from None
        os.close(say)
        self.poll = select.poll()       # not select, which ends at 1024 descriptors
        self.poll.register(self.out, select.POLLIN)
        with contextlib.suppress(OSError):
            for f in self.into, self.out:
                fcntl.fcntl(f, getattr(fcntl, "F_SETPIPE_SZ", 1031), 1 << 20)
        for f, *args in ((_listen, self.hear, self.said, weakref.ref(self.wait)),
                         (_feed, self.queue, self.into)):
            self.threads.append(threading.Thread(target=f, args=args, daemon=True))
            self.threads[-1].start()
        self.end = weakref.finalize(self, _forget, self.out, self.queue,
                                    *self.programs, 1)

    def send(self, *parts):
        for p in parts:
            self.queue.put(memoryview(p))

    def _fill(self, room):
        room, at = memoryview(room), 0
        while at < len(room):
            # a program may be dead, and those behind it wait for the others'
            # shards all the same
            while not self.poll.poll(200):
                if any(p.poll() for p in self.processes):
                    raise self.failure()
                self.wait.over()
                self.wait.look()
            self.wait.over()
            n = self.out.readinto(room[at:])
            if not n:
                raise self.failure()
            # with a state they send again what they have, whatever comes in
            self.heard = not self.states
            at += n

    def head(self):
        """What is in the next file, and of which step it is; of this run, and a
        mean, or the end of what was asked for."""
        n = bytearray(8)
        self._fill(n)
        n = int.from_bytes(n, "little")
        if n > 1 << 27:
            raise Error(f"the answer has a head of {n} bytes, and a safetensors file "
                        f"has at most {1 << 27}", 3)
        text = bytearray(n)
        self._fill(text)
        got = json.loads(text)
        note = got.pop("__metadata__", {})
        self.model = note.get("model.digest")
        kinds = self.kinds if got else ("model",)
        for what, found, want in (("run", note.get("run"), (self.run,)),
                                  ("kind", note.get("kind"), kinds)):
            if found not in want:
                raise self.unfit(f"is of {what} '{found}'", f"'{want[0]}'")
        return got, int(note.get("step", -1))

    def unfit(self, found, expected):
        """The Error for an answer that is not what was asked for."""
        return Error(f"round {self.wait.round}: the answer {found}, expected "
                     f"{expected}: nothing was applied; {ASK}", 3, True)

    def fits(self, got, tensors):
        """Raise if that file has not these (name, tensor) pairs."""
        want = _layout(tensors)
        for name in {**want, **got}:
            if got.get(name) != want.get(name):
                raise self.unfit(f"does not fit the model: '{name}' is "
                                 f"{got.get(name, 'not there')}",
                                 want.get(name, "no tensor of that name"))

    def begin(self, step, tensors, note=None):
        """The head of a round's file; before it nothing is to be read."""
        self.wait.begin(step, self.far)
        if self.answered and self.poll.poll(0):
            raise self.unfit("of the round before goes on", "its end")
        self.send(_header(tensors, note))

    def answer(self, step, tensors):
        """The values of the file of this step into these pairs, as of _host."""
        self.wait.begin(step, self.far)
        while True:
            got, at = self.head()
            if not 0 <= at <= step or self.answered and at < step:
                raise self.unfit(f"is of round {at}", f"round {step}")
            self.fits(got, tensors)
            if at == step:
                break
            # of a shard that the state sent once more
            rest = sum(t.numel() * t.element_size() for _, t in tensors)
            while rest:
                part = bytearray(min(rest, 1 << 20))
                self._fill(part)
                rest -= len(part)
        self.body(tensors)
        self.answered = True

    def body(self, tensors):
        for _, t in tensors:
            self._fill(_bytes(t))
        self.heard = False
        _sound(tensors, f"round {self.wait.round}: the answer")

    def leave(self, seconds=10):
        """Give the pipe up, whatever is under way."""
        self.end.detach()
        _forget(self.out, self.queue, *self.programs, seconds)

    def _last_word(self, i):
        """When stage i, which failed, spoke last, and what it said: its error.
        What ours did not say, other programs and the hosts behind them said;
        ours say nothing when nobody reads them."""
        names = [os.path.basename(w[0]) for w in self.stages]
        ours = {n for n in names if n.startswith("ace-")}
        name, status = names[i], self.processes[i].returncode
        if status < 0:
            return -2, i, f"{name} was killed by signal {-status}", 4
        for k in range(len(self.said) - 1, -1, -1):
            who = self.said[k].split(":")[0]
            if who == name or (name not in ours and who not in ours):
                return k, i, self.said[k], status
        return (len(self.said) if name in ours else -1, i, None, status)

    def _advice(self, line, status):
        """What to do about it."""
        state = " ".join(["its state", *(f"'{s}'" for s in sorted(self.states))])
        other = re.search(r": mismatch: a shard of run '(.*)', and the spool is "
                          r"of run '(.*)' \(--run\)", line)
        if other:
            return ("the first device of this spool began with another model, or "
                    "another way, optimiser or number of steps to replay; "
                    f"what it sent is there in the folder {other[2]}.  If that "
                    "device is right: give this one the same seed or file, and "
                    f"remove {state}.  If this one is right, begin "
                    "anew: end the cloud's programs, remove that folder, and the "
                    "states and checkpoints of the cloud and all devices.  Two "
                    f"models of one script have a run each: see "
                    "ace-pytorch(7), Two models in one script")
        if "no more have one than the other" in line:
            return ("half of the devices have other weights or moments than the rest"
                    f"{self.how}: give all of them one torch and the same settings, "
                    f"and one half the checkpoint of the other; {SEE}")
        if ": mismatch: " in line:
            return (f"this device, {state} and the cloud are not of one "
                    "run: when the model is right now, remove the state of the "
                    f"one before; {SEE}")
        if re.match("ace-expand: (non-finite|limit)", line):
            return f"nothing was applied; {ASK}"
        if ": equivocation: " in line:
            return (f"two devices have this name, or {state} was removed "
                    f"after something was sent: {SEE}")
        return ADVICE.get(status, f"status {status}")

    def failure(self):
        """The Error for a pipe that ended too early."""
        self.leave()
        # who fails because another one did says that a stream was cut off, or says
        # nothing, or speaks after that one; a broken pipe, of a program or of a shell
        # (141), is the fault of the one that reads no more
        said = [self._last_word(i) for i, p in enumerate(self.processes)
                if p.returncode not in (0, -13, 141) and not hasattr(p, "ended")]
        failed = sorted((status == 3 and (not line or ": truncated: " in line),
                         at, i, line, status) for at, i, line, status in said)
        if not failed:
            return Error("the pipeline ended without an answer: "
                         + " | ".join(w[0] for w in self.stages), 4)
        *_, at, line, status = failed[0]
        if line is None:
            line = f"{self.stages[at][0]} ended with status {status}"
        more = [f[3] for f in failed[1:] if f[3] not in (None, line)]
        return Error("\n    then ".join(
            [f"{line} ({self._advice(line, status)})"] + more), status)

    def close(self, seconds=60):
        """The end of a run: nothing is under way, and all programs are done, or
        are ended after so many seconds."""
        self.end.detach()
        self.queue.put(None)
        end = time.monotonic() + seconds
        over = self.poll.poll(1000 * seconds)
        if over and self.out.read(1):
            self.leave(1)
            raise self.unfit("goes on", "its end")
        _end(*self.programs, max(0, end - time.monotonic()))
        # who goes because another one was ended has not failed
        if over and any(p.returncode and not hasattr(p, "ended")
                        for p in self.processes):
            raise self.failure()
        self.out.close()


class _File:
    """A file for torch.save, which can end the process when a write fails: what
    failed is kept, and what comes after it goes nowhere."""

    def __init__(self, f):
        self.f, self.failed = f, None

    def write(self, part):
        try:
            if not self.failed:
                self.f.write(part)
        except OSError as e:
            self.failed = e
        return len(part)

    def flush(self):
        pass


def _sync_dir(path):
    """fsync of the directory that holds path, where the system can."""
    try:
        d = os.open(os.path.dirname(path) or ".", os.O_RDONLY)
        try:
            os.fsync(d)
        finally:
            os.close(d)
    except OSError as e:
        if e.errno not in (errno.EACCES, errno.EINVAL, errno.ENOTSUP, errno.ENOSYS,
                           errno.EBADF, errno.ENOENT):
            raise


def save(path, what):
    """torch.save, on disk whole or not at all, and as open to others as it was."""
    temp = f"{path}.new"
    try:
        with open(temp, "wb") as f:
            if os.path.exists(path):
                os.fchmod(f.fileno(), stat.S_IMODE(os.stat(path).st_mode))
            out = _File(f)
            torch.save(what, out)
            if out.failed:
                raise out.failed
            f.flush()
            os.fsync(f.fileno())
        os.replace(temp, path)
        _sync_dir(path)
    except OSError as e:
        raise Error(f"checkpoint '{path}' cannot be written: {e.strerror}", 4) from e


def load(path):
    """What save wrote, or None if it never did.  It is a file of our own, which may
    hold whatever a state_dict does: not weights only."""
    try:
        return torch.load(path, map_location="cpu", weights_only=False)
    except FileNotFoundError:
        return None
    except Exception as e:
        raise Error(f"checkpoint '{path}' cannot be read: {e}", 3) from e


GAP = 16        # so many rounds may pass without an average, for lack of a quorum


class Local:
    """Local steps of any optimiser, then the average of what they changed.

    through     the pipeline between ace-import and ace-export, which are started
                here: it takes this device's difference and gives the average
    checkpoint  a file that is written after every round, and from which a
                killed run goes on by itself
    outer_rate, outer_momentum
                of the step with the average, Nesterov's; 1, 0: as it is
    patience    seconds to try a broken connection again
    timeout     seconds to wait for the average of a round, or None: for ever
    on_wait     called every ten seconds of a wait with what is known of it, a
                dict; else it is said once on standard error
    weight, samples     of this device in the average
    state       what else a resumed run needs, by names of your own: anything with
                state_dict() and load_state_dict(), as a scheduler

    round is the next round, and seconds says what the last one took."""

    kind = "delta"                      # of a shard
    sent = None                         # as this type, else as each parameter's
    steps = None                        # that are replayed
    gone = ""                           # why it does not go on

    def __init__(self, model, optimizer, through, device, run="train",
                 checkpoint=None, outer_rate=1.0, outer_momentum=0.0,
                 patience=0, weight=1, samples=0, state=None, timeout=None,
                 on_wait=None):
        self.model, self.optimizer, self.checkpoint = model, optimizer, checkpoint
        self.state = dict(state or {})
        for k, v in self.state.items():
            if not hasattr(v, "state_dict") or not hasattr(v, "load_state_dict"):
                raise Error(f"state: '{k}' has no state_dict() and "
                            "load_state_dict()")
        self.pairs = _parameters(model)
        # what needs no gradient is not sent: it has to be the same everywhere
        self.frozen = {n: _mark(p) for n, p in self._still()}
        self.look = _look(self.pairs)
        self.rate, self.momentum, self.patience = outer_rate, outer_momentum, patience
        self.call = dict(through=through, kind=self.kind, device=device, run=run,
                         weight=weight, samples=samples, how=self._how(),
                         wait=_Wait(device, timeout, on_wait))
        self.round, self.pipe, self.seconds = 0, None, {}
        self.room, self.unsent = [], []     # for a difference, and what is kept of one
        self.tried = None                   # the round whose part may be sent
        self.said = type(self), through, device, run, checkpoint
        self._in_place(model)
        self.lock = checkpoint and _lock(
            f"{checkpoint}.lock", f"checkpoint '{checkpoint}'", "wb")
        try:
            self._begin()
        except BaseException:       # whose traceback may live, and this with it
            if self.lock:
                self.lock.close()
            raise
        RUNS.add(self)
        self.since = time.monotonic()

    def _in_place(self, model):
        """Raise where another process speaks for this model, or another run of this
        process has what this one needs."""
        rank, size = _place()
        if rank and any(isinstance(m, torch.nn.parallel.DistributedDataParallel)
                        for m in model.modules()):
            raise Error(f"this is {_alone(rank, size)}")
        _claim(self)

    def _give(self, why):
        self._leave(1)
        self._release(why)

    def _release(self, why):
        """Another process, or another run of this one, may go on from here."""
        self.gone = why
        RUNS.discard(self)
        if self.lock:
            self.lock.close()

    def _how(self):
        """What the arithmetic depends on."""
        return f" (here it is torch {torch.__version__})"

    def _begin(self):
        with torch.no_grad():
            # the common model, and the momentum's memory
            self._keep()
            self.memory = [torch.zeros_like(s) for s in self.start
                           if self.momentum]
        # who begins with another model is of another run, and ace-recv refuses
        self.call["run"] += f"-{self.digest()}"
        self._resume()
        self._catch_up()
        self.pipe = self.pipe or _Pipe(step=self.round, **self.call)

    def _keep(self):
        """The common model is what the model is now; in f32."""
        self.start = [_host(p).to(torch.float32, copy=True) for _, p in self.pairs]

    def _holds(self):
        """What a checkpoint has of the optimiser."""
        return self.optimizer and self.optimizer.state_dict()

    def _take_up(self, had):
        """Weights and optimiser as this checkpoint has them."""
        self.start, self.memory = had["start"], had["memory"]
        self._reset()
        if self.optimizer is not None:
            self.optimizer.load_state_dict(had["optimizer"])

    def _resume(self):
        had = load(self.checkpoint) if self.checkpoint else None
        if had is None:
            return
        self._check(had, f"checkpoint '{self.checkpoint}'")
        tensors = {**dict(self._still()), **_named(self.model)[1]}
        with torch.no_grad():
            self._take_up(had)
            for name, value in {**had["buffers"], **had.get("moved", {})}.items():
                t = tensors.get(name)
                if t is not None and t.shape != value.shape:
                    self.call["wait"].say(
                        f"'{name}' is {list(t.shape)} in the model, and "
                        f"{list(value.shape)} in the checkpoint, as which it goes on")
                    t.data = torch.empty(value.shape, dtype=t.dtype, device=t.device)
                if t is not None:
                    t.copy_(value)
        for k, v in self.state.items():
            v.load_state_dict(had["state"][k])
        torch.set_rng_state(had["random"])
        for i, r in enumerate(had.get("cuda", [])[:torch.cuda.device_count()]):
            torch.cuda.set_rng_state(r, i)
        self.round, self.call["run"] = had["round"], had["run"]

    def _check(self, had, what):
        """Raise if this script cannot go on from this checkpoint."""
        if not isinstance(had, dict) or not had.keys() >= {"look", "run", "start"}:
            raise Error(f"{what} is none that ace.Local or ace.Replay wrote: load other "
                        "files into the model, and give the name of a new one", 3)
        _changed(had["look"], self.look, what)
        if had.get("steps") != self.steps:
            was, now = (f"ace.Replay with steps={s}" if s else "ace.Local"
                        for s in (had.get("steps"), self.steps))
            raise Error(f"{what} was made by {was}, and this is {now}: go on as "
                        "before, or begin another run, with empty states")
        was, now = (r.rpartition("-")[0] for r in (had["run"], self.call["run"]))
        if was != now:
            raise Error(f"{what} is of run '{was}', and this is run '{now}': go on with "
                        "that one, or begin another run, with another checkpoint and "
                        "empty states")
        outer = had.get("outer", [self.rate, self.momentum])
        if outer != [self.rate, self.momentum] or \
                len(had["memory"]) != len(self.memory):
            raise Error(f"{what} was made with another outer_rate or outer_momentum"
                        f", {outer}: go on with those")
        # those that were made before frozen ones were looked at have none
        frozen = had.get("frozen", self.frozen)
        for name in {**frozen, **self.frozen}:
            if frozen.get(name) != self.frozen.get(name):
                raise Error(f"parameter '{name}', which needs no gradient, is not "
                            f"what it was when the run of {what} began: give it "
                            "the same seed or file, or begin another run, with "
                            "empty states")
        state = had.get("state", {})
        for k in {**state, **self.state}:
            if k not in self.state:
                raise Error(f"{what} has the state of '{k}': give it as before, "
                            f"state={{'{k}': ...}}")
            if k not in state:
                raise Error(f"{what} was made without the state of '{k}': go on "
                            "without, or begin another run, with empty states")

    def _still(self):
        """The parameters that need no gradient, with their names."""
        return [(n, p) for n, p in _named(self.model)[0].items()
                if not p.requires_grad]

    def _save(self):
        # of those that need no gradient the ones that somebody moved all the same,
        # as the running mean of a model's weights
        moved = {n: p.detach() for n, p in self._still()
                 if _mark(p) != self.frozen.get(n)}
        cuda = torch.cuda.is_available() and torch.cuda.is_initialized()
        save(self.checkpoint, {
            "round": self.round, "run": self.call["run"], "look": self.look,
            "start": self.start, "memory": self.memory,
            "outer": [self.rate, self.momentum],
            "buffers": _named(self.model)[1], "frozen": self.frozen,
            "moved": moved, "optimizer": self._holds(), "steps": self.steps,
            "state": {k: v.state_dict() for k, v in self.state.items()},
            "random": torch.get_rng_state(),
            "cuda": torch.cuda.get_rng_state_all() if cuda else [],
            "digest": self.digest()})

    def _leave(self, seconds=10):
        if self.pipe:
            self.pipe.leave(seconds)
        self.pipe = None

    def _catch_up(self):
        """Apply the averages of the rounds that went by without this device,
        all of them for one that is new: then it has the model of the others,
        bit for bit.  The cloud is asked on a connection of its own."""
        end = time.monotonic() + self.patience
        first, heard = self.round, False
        try:
            while not heard and _connection(_stages(self.call["through"])):
                heard = self._try_to_ask(end)
        except BaseException:
            if self.round != first:     # of some of those rounds it knows
                self._leave(1)
            raise
        finally:
            if self.round != first:
                with _whole(), torch.no_grad():
                    self._reset()
        # a round that it took part in is done again, and others may come after it
        self.call["wait"].behind = self.pipe is None and first > 0
        if self.round == first:
            return
        self.call["wait"].say(
            f"rounds {first} to {self.round - 1} went by without this device: "
            f"it goes on at round {self.round}, with the model of the others")
        if self.pipe:           # its next shard is not of the next round
            pipe, self.pipe = self.pipe, None
            pipe.close()
        if self.checkpoint:
            self._save()

    def _try_to_ask(self, end):
        """Ask once: is it done?  What was heard before the connection broke is not
        asked for again."""
        pipe = _Pipe(step=self.round, ask=True, **self.call)
        try:
            self._ask(pipe)
            pipe.close(self.call["wait"].left(60))
            return True
        except Error as e:
            pipe.leave(1)
            if e.status in (2, 5) or e.final or time.monotonic() > end:
                raise
        except BaseException:
            pipe.leave(1)
            raise
        time.sleep(1)
        return False

    @torch.no_grad()
    def _ask(self, pipe):
        """From the model of self.round to that of the others."""
        wait = self.call["wait"]
        wait.begin(self.round, pipe.far)
        pipe.send(_header([]))
        pipe.queue.put(None)
        while True:
            got, at = pipe.head()
            if not self.round <= at <= self.round + GAP:
                raise pipe.unfit(f"is of round {at}" if got else
                                 f"says to begin at round {at}",
                                 f"round {self.round}, or one of the {GAP} after it")
            if not got:         # the end: the round to begin with
                self.round = at
                return
            d = self._room()
            pipe.fits(got, d)
            pipe.body(d)
            if at:              # the name of the run says the first one
                self._alike(pipe, at)
            with _whole():
                self.round = at
                self._apply(d)
                self.round = at + 1
            wait.begin(self.round, pipe.far)

    def _room(self):
        """Pairs for a difference or an average, in memory that is not the model's."""
        if not self.room:
            self.room = [torch.empty(p.shape, dtype=self.sent or p.dtype, device="cpu")
                         for _, p in self.pairs]
        return [(n, t) for (n, _), t in zip(self.pairs, self.room)]

    @torch.no_grad()
    def _reset(self):
        """The model is the common one."""
        for (_, p), s in zip(self.pairs, self.start):
            p.copy_(s)

    def digest(self):
        """A checksum of the common model, with what needed no gradient when the run
        began and the numbers of the outer step: after sync it is the same
        everywhere."""
        sum_ = _crc([self.frozen, float(self.rate), float(self.momentum)])
        for s in self.start:
            sum_ = zlib.crc32(_bytes(s), sum_)
        return f"{sum_:08x}"

    def _says(self, at):
        """What a shard of round at says of the model."""
        return self.digest()

    def _alike(self, pipe, at):
        """Raise if those whose average this is had another model than this one."""
        if pipe.model not in (None, self._says(at)):
            raise Error(
                f"mismatch: in round {at} this device has model {self._says(at)}, "
                f"and the others have {pipe.model}: weights, moments, rates or the "
                f"arithmetic differ{self._how()}, and its part was not counted.  It "
                "has to begin "
                f"again after round {at} with theirs: give it the checkpoint of "
                f"another device; {SEE}", 5)

    def _exchange(self, d):
        """The differences d, (name, tensor) pairs, become their average."""
        end = time.monotonic() + self.patience
        while True:
            try:
                self.pipe = self.pipe or _Pipe(step=self.round, **self.call)
                self.pipe.begin(self.round, d, {"model.digest": self._says(self.round)})
                self.pipe.send(*(_bytes(t) for _, t in d))
                self.pipe.answer(self.round, d)
                return self._alike(self.pipe, self.round)
            except Error as e:
                heard = self.pipe and self.pipe.heard
                self._leave(1 if e.final else 10)
                if e.status in (2, 5) or heard or e.final or \
                        time.monotonic() > end:
                    raise
                self.call["wait"].behind = True
            print(f"ace: round {self.round}: broken, and again", file=sys.stderr)
            time.sleep(1)

    @torch.no_grad()
    def sync(self):
        """Send what the local steps changed, and make the model the next common
        one.  When it raises, the model is the last common one, and the next call
        sends the same again, but for what was refused."""
        if self.gone:
            raise Error(self.gone)
        began, d = time.monotonic(), None
        try:
            with _whole():
                _same(self.pairs, self.look, self.model)
                d = self._part()
                self.tried = self.round
            self._exchange(d)
            heard = time.monotonic()
            with _whole():
                self._apply(d)
                self.round += 1
                d, self.unsent = None, []
                self._reset()
        except BaseException as e:
            with _whole():
                self._leave(1)          # who sends d still reads its memory
                if d is not None:
                    refused = getattr(e, "status", 4) in (2, 5)
                    self.unsent = [] if refused else self._again()
                    self.tried = None if refused else self.tried
                if d is not None or not isinstance(e, KeyboardInterrupt):
                    self._reset()       # else nothing had begun, or all was done
            raise
        applied = time.monotonic()
        if self.checkpoint:
            self._save()
        if self.call["wait"].behind:
            self._catch_up()
        now = time.monotonic()
        self.seconds = {"steps": began - self.since, "exchange": heard - began,
                        "apply": applied - heard, "save": now - applied}
        self.since = now

    def _part(self):
        """What this device sends, (name, tensor) pairs: differences."""
        d = self._room()
        for (_, t), (_, p), s in zip(d, self.pairs, self.start):
            torch.sub(_host(p), s.to(t.dtype), out=t)
        # the state may have the part of that try, and would send it without these
        if self.tried == self.round and any(t.any() for _, t in d):
            raise Error("steps were taken between a sync() that failed and this one, "
                        "and nobody would get them: they were taken back; call sync() "
                        "again before any other step")
        for (_, t), u in zip(d, self.unsent):
            t.add_(u)
        return d

    def _again(self):
        """What was to be sent, in memory of its own: the model still has it."""
        self.tried, tried = None, self.tried
        u = [t.clone() for _, t in self._part()]
        self.tried = tried
        return u

    def _apply(self, d):
        """The common model takes a step with the average d."""
        for i, (s, (_, t)) in enumerate(zip(self.start, d)):
            self._outer(s, t, self.memory[i] if self.momentum else None)

    def _outer(self, s, d, m):
        """s += rate * (d + momentum * v), v being the momentum's sum of d; each
        operation rounds once, so that all machines get the same bits."""
        d = d.float()
        if m is not None:               # m is momentum * v
            m.add_(d).mul_(self.momentum)
            d.add_(m)
        s.add_(d.mul_(self.rate))

    def close(self):
        """End the run; raises if a program failed."""
        if self.pipe:
            self.pipe.close()
            self.pipe = None
        self._release("it was closed: make another one")


def _copy(x):
    """x, as an optimiser keeps it, in memory of its own."""
    if torch.is_tensor(x):
        return x.detach().clone()
    if isinstance(x, dict):
        return {k: _copy(v) for k, v in x.items()}
    if isinstance(x, (list, tuple)):
        return (list if isinstance(x, list) else tuple)(map(_copy, x))
    if x is None or isinstance(x, (numbers.Number, str)):
        return x
    raise Error(f"the optimiser keeps a {type(x).__name__}, and ace.Replay can put "
                "back and compare only tensors, numbers and words: use ace.Local")


def _into(now, had, where, but=None):
    """What _copy gave, in the memory of now as far as it fits, else on a device; in
    a dict all but one key."""
    if torch.is_tensor(had):
        if torch.is_tensor(now) and (now.shape, now.dtype) == (had.shape, had.dtype):
            return now.copy_(had)
        # as torch has it: what is one number stays with the CPU
        return had.to(where if had.dim() else had.device, copy=True)
    if isinstance(had, dict):
        now = now if isinstance(now, dict) else {}
        for k in [k for k in now if k not in had and k != but]:
            del now[k]
        for k, v in had.items():
            now[k] = _into(now.get(k), v, where)
        return now
    if isinstance(had, (list, tuple)):
        return type(had)(_into(None, v, where) for v in had)
    return had


def _crc(x, sum_=0):
    """A checksum of what _copy gave."""
    if torch.is_tensor(x):
        sum_ = zlib.crc32(f"{x.dtype}{tuple(x.shape)}".encode(), sum_)
        return zlib.crc32(_bytes(_host(x)), sum_)
    if isinstance(x, dict):
        x = [v for k in sorted(x, key=str) for v in (str(k), x[k])]
    if isinstance(x, (list, tuple)):
        for v in x:
            sum_ = _crc(v, sum_)
        return zlib.crc32(b"end", sum_)
    return zlib.crc32(repr(x).encode(), sum_)


class Replay(Local):
    """Steps of an optimiser that are taken back: the mean of their gradients is sent,
    and all devices take as many steps with the average.  So all have the same
    moments, and none of them travel.

    step() takes the place of the optimiser's, and sync() that of Local.

    steps       that are taken back, and then taken by all, in each round
    schedule    called with the number of each step before it is taken, to set the
                rates of the optimiser by that number alone

    The others are those of Local.  The state of the optimiser has to be a function
    of the gradients that it saw, and all of it has to be in its state and groups."""

    kind, sent = "gradient", torch.float32

    def __init__(self, model, optimizer, through, device, steps, run="train",
                 checkpoint=None, patience=0, weight=1, samples=0, state=None,
                 schedule=None, timeout=None, on_wait=None):
        if not isinstance(steps, int) or steps < 1:
            raise Error(f"steps is the number of steps in a round, not {steps!r}")
        own = {id(p) for _, p in _parameters(model)}
        if any(p.requires_grad and id(p) not in own
               for g in optimizer.param_groups for p in g["params"]):
            raise Error("the optimiser has a parameter that the model has not: give "
                        "ace.Replay all that it steps, as one model")
        if any(not p.requires_grad and p.grad is not None
               for g in optimizer.param_groups for p in g["params"]):
            raise Error("the optimiser has a parameter that needs no gradient and has "
                        "one, with which each step would move it: set its .grad to None")
        self.steps, self.schedule = steps, schedule
        self.sum, self.taken = [], 0    # of the gradients, and how many
        self.again = False              # the round was tried, and failed
        self.proved = ""                # what its steps lead to
        super().__init__(model, optimizer, through, device, f"{run}-replay{steps}",
                         checkpoint, patience=patience, weight=weight,
                         samples=samples, state=state, timeout=timeout,
                         on_wait=on_wait)

    def _now(self):
        """What the optimiser has now, in its own memory, by the order of its
        parameters."""
        groups, state = self.optimizer.param_groups, self.optimizer.state
        return {"groups": [{k: v for k, v in g.items() if k != "params"}
                           for g in groups],
                "state": [state.get(p) or None for g in groups for p in g["params"]],
                "more": {k: v for k, v in state.items() if not torch.is_tensor(k)}}

    def _keep(self):
        """The common model and moments are what they are now."""
        self.start = [p.detach().clone() for _, p in self.pairs]
        self.kept = _copy(self._now())
        self.groups, self.crc = _crc(self.kept["groups"]), None
        self.away = False               # from what all have in common

    @torch.no_grad()
    def _reset(self):
        """Model and optimiser are the common ones, to the bit."""
        if not self.away:
            return
        for (_, p), s in zip(self.pairs, self.start):
            p.copy_(s)
        groups, state = self.optimizer.param_groups, self.optimizer.state
        for g, had in zip(groups, self.kept["groups"]):
            where = g["params"][0].device if g["params"] else "cpu"
            _into(g, had, where, "params")
        ps = [p for g in groups for p in g["params"]]
        for p, had in zip(ps, self.kept["state"]):
            if had is None:
                state.pop(p, None)
            else:
                state[p] = _into(state.get(p), had, p.device)
        for k in [k for k in state if not torch.is_tensor(k)]:
            del state[k]
        state.update(_copy(self.kept["more"]))
        self.groups, self.away = _crc(self.kept["groups"]), False

    def _holds(self):
        return self.kept

    def _take_up(self, had):
        now = self.kept["groups"]
        if len(had["optimizer"]["state"]) == len(self.kept["state"]) and \
                len(had["optimizer"]["groups"]) == len(now):
            self.start, self.kept, self.crc = had["start"], had["optimizer"], None
        if had["digest"] != self.digest():
            raise Error(f"checkpoint '{self.checkpoint}' was made with another "
                        "optimiser: go on with that one, or begin another run, with "
                        "empty states")
        # options that the torch of that time did not have are as they are now
        for g, new in zip(self.kept["groups"], now):
            g.update({k: v for k, v in new.items() if k not in g})
        self.away = True
        self._reset()
        self._keep()

    def _how(self):
        options = {f"{k}=True" for g in self.optimizer.param_groups
                   for k, v in g.items() if v is True}
        cpu = getattr(getattr(torch.backends, "cpu", None), "get_cpu_capability", None)
        return " ".join([f" (here it is torch {torch.__version__.split('+')[0]},",
                         type(self.optimizer).__name__, *sorted(options), "on",
                         *sorted({p.device.type for _, p in self.pairs}),
                         *([cpu()] if cpu else [])]) + ")"

    def _says(self, at):
        """In the first round also what the arithmetic depends on, and where it leads."""
        if at:
            return self.digest()
        self._prove()
        return f"{_crc([self.digest(), self.proved, self._how()]):08x}"

    def digest(self):
        """A checksum of the common model and moments, what needed no gradient when
        the run began, the optimiser's numbers, and how many steps are replayed."""
        if self.crc is None:
            self.crc = _crc([self.frozen, *self._parts(self.start, self.kept),
                             self.steps, type(self.optimizer).__name__])
        return f"{self.crc:08x}"

    @staticmethod
    def _parts(weights, kept):
        # not what only says how it computes, which each torch has others of
        options = [{k: v for k, v in g.items() if not isinstance(v, bool) and
                    isinstance(v, (numbers.Number, tuple, torch.Tensor))}
                   for g in kept["groups"]]
        return weights, kept["state"], kept["more"], options

    def _step(self, i):
        """The optimiser's step number i of this round."""
        if self.schedule is not None:
            self.schedule(self.round * self.steps + i)
        try:
            self.optimizer.step()
        except TypeError as e:
            raise Error("the optimiser cannot take a step with gradients alone, use "
                        f"ace.Local: {e}") from e

    @torch.no_grad()
    def step(self):
        """A step ahead with .grad, in the place of the optimiser's: sync takes it
        back."""
        if self.taken == self.steps and not self.again:
            raise Error(f"{self.steps} steps were taken: sync() comes next")
        if self.taken in (0, self.steps):
            self.taken, self.again = 0, False
            self.sum = [torch.zeros(p.shape, dtype=torch.float32, device=p.device)
                        for _, p in self.pairs]
        if _crc(self._now()["groups"]) != self.groups:
            raise Error("the options of the optimiser were changed between two steps, "
                        "as by a scheduler: the same has to be done when the steps "
                        "are replayed; give schedule=, a function of a step's number")
        for s, (n, p) in zip(self.sum, self.pairs):
            if p.grad is not None:
                why = _refuse(n, p.grad)
                if why:
                    raise Error(f"the gradient of '{n}' {why}")
                s.add_(p.grad)
        self.away, self.taken = True, self.taken + 1
        if self.taken < self.steps:
            self._step(self.taken - 1)
            self.groups = _crc(self._now()["groups"])

    def _replay(self, d):
        """This round's steps with the gradient d."""
        self.away = True
        for i in range(self.steps):
            for (_, p), (_, t) in zip(self.pairs, d):
                if p.grad is None:
                    p.grad = torch.empty_like(p)
                p.grad.copy_(t)         # which an optimiser may change
            self._step(i)
        for _, p in self.pairs:
            p.grad = None

    def _prove(self):
        """Raise if a round's steps, taken twice from the same state, differ.  What
        they make of gradients that are the same everywhere is in self.proved."""
        if self.proved:
            return
        seen = []
        for _ in range(2):
            self._replay([(n, _pattern(p.numel()).reshape(p.shape))
                          for n, p in self.pairs])
            seen.append(_crc(self._parts([p.detach() for _, p in self.pairs],
                                         _copy(self._now()))))
            self._reset()
        if seen[0] != seen[1]:
            raise Error(
                "the optimiser takes other steps when it takes them again from the "
                "same state: it keeps something outside of its state and groups, or "
                "draws random numbers; ace.Replay needs one whose state is a function "
                "of the gradients that it saw: use ace.Local")
        self.proved = f"{seen[0]:08x}"

    def sync(self):
        """Send the mean gradient of the steps, which are taken back, and take as many
        with the average.  When it raises, model and optimiser are the last common
        ones, and the same sync, or the same steps, can be tried again."""
        if self.taken < self.steps:
            raise Error(f"sync() comes after {self.steps} calls of step(), and not "
                        f"after {self.taken}")
        self.again = True
        super().sync()

    def _part(self):
        self.away = True                # whatever the script did with them
        self._reset()
        self._prove()
        return [(n, s.div(self.steps).cpu()) for (n, _), s in zip(self.pairs, self.sum)]

    def _again(self):
        return []                       # the sums have it

    def _apply(self, d):
        """All devices take the same steps."""
        self._replay(d)
        self._keep()
        self.taken, self.again, self.sum = 0, False, []


def _pattern(n):
    """Numbers between -1/2 and 1/2 that look random, with the same bits everywhere."""
    bits = torch.arange(n, dtype=torch.int64) * 0x9e3779b1 & 0xffffff
    return bits.to(torch.float32) * 2.0 ** -24 - 0.5


def _squares(t):
    """The sum of t's squares, added in an order that is the same on all machines:
    their bits are."""
    sum_ = 0.0
    for part in t.reshape(-1).split(1 << 20):
        x = part.double().square()
        while len(x) > 1:
            half = len(x) + 1 >> 1
            x[:len(x) - half].add_(x[half:])
            x = x[:half]
        sum_ += x.item() if len(x) else 0.0
    return sum_


class Gradients:
    """The average gradient of all devices, at every step: after loss.backward(),
    in which each layer leaves when it is computed, average() makes it .grad.

    DistributedDataParallel calls average by itself: give layers=False, and
    ddp.register_comm_hook(grads, ace.Gradients.hook).
    step is the first one's number: after a crash that of the checkpoint."""

    def __init__(self, model, through, device, run="train", step=0, layers=True,
                 weight=1, samples=0):
        self.model, self.step = model, step
        self.pairs = _parameters(model)[::-1]       # last layer first
        self.look = _look(self.pairs)
        self.name = {p: n for n, p in self.pairs}
        self.said, self.gone = (type(self), through, device, run, None), ""
        _claim(self)
        self.pipe = _Pipe(through, step, "gradient", device, run, weight, samples)
        self.ready, self.sent, self.buckets = {}, 0, []
        self.rooms = {}                 # for averages, before they are gradients
        self.lock = threading.Lock()    # autograd has a thread for each device
        self.nodes = [self._attach(p) for _, p in self.pairs if layers]
        RUNS.add(self)

    def _give(self, why):
        self._release(why)
        self.pipe.leave(1)

    def _release(self, why):
        self.gone = why
        RUNS.discard(self)
        for _, h in self.nodes:
            h.remove()

    def _attach(self, p):
        """Call _computed when p.grad is whole."""
        if hasattr(p, "register_post_accumulate_grad_hook"):
            return None, p.register_post_accumulate_grad_hook(self._computed)
        node = p.expand_as(p).grad_fn.next_functions[0][0]
        return node, node.register_hook(lambda *_: self._computed(p))

    def _computed(self, p):
        with self.lock:
            self._take(p, p.grad, _mark)
            self._leave()

    def _take(self, p, g, mark=lambda _: None):
        name = self.name[p]
        why = _refuse(name, g) or g.dtype != p.dtype and \
            f"is of type {g.dtype}, its parameter of {p.dtype}"
        if why:
            raise Error(f"the gradient of '{name}' {why}")
        if name in self.ready:
            raise Error(f"the gradient of '{name}' changed after it was sent: "
                        "one backward() for each average(), or layers=False")
        self.ready[name] = p, g, _host(g), mark(g)

    def _leave(self, all_=False):
        """Send the layers whose turn it is.  The last one waits for average(): a
        shard without it is none, if something is wrong with the others."""
        for name, _ in self.pairs[self.sent:]:
            if name not in self.ready or not all_ and name == self.pairs[-1][0]:
                break
            if self.sent == 0:
                self.pipe.begin(self.step, self.pairs)
            self.pipe.send(_bytes(self.ready[name][2]))
            self.sent += 1

    @torch.no_grad()
    def average(self, clip=None):
        """Wait for the average, into every .grad.  With clip it gets that norm if its
        own is larger, which is returned."""
        if self.gone:
            raise Error(self.gone)
        _same(self.pairs, self.look, self.model)
        for name, p in self.pairs:
            _, g, _, mark = self.ready.get(name, (p, p.grad, None, None))
            if p.grad is not g or mark is not None and _mark(g) != mark:
                self.pipe.leave()
                raise Error(
                    f"the gradient of '{name}' changed after it was sent, as by "
                    "clip_grad_norm_ or a GradScaler: average(clip=1.0) clips the "
                    "average, and with layers=False all are sent by average() as "
                    "they are then")
        for name, p in self.pairs:
            if p.grad is None:
                p.grad = torch.zeros_like(p)
            if name not in self.ready:
                self._take(p, p.grad)
        done, norm = self._finish(clip)
        for p, g in done:
            p.grad = g
        return norm

    def _finish(self, clip=None):
        """The averages, in the memory of the gradients, and their norm."""
        self._leave(True)
        # not into the gradients before all is there, and sound
        done = []
        for n, _ in self.pairs:
            p, g, h, _ = self.ready[n]
            if h.data_ptr() == g.data_ptr():
                if n not in self.rooms:
                    self.rooms[n] = torch.empty_like(h)
                h = self.rooms[n]
            done.append((p, g, h, n))
        self.pipe.answer(self.step, [(n, h) for *_, h, n in done])
        self.ready = {}
        self.sent, self.step = 0, self.step + 1
        norm = None if clip is None else \
            math.sqrt(math.fsum(_squares(h) for _, _, h, _ in done))
        for _, g, h, _ in done:
            if norm is not None and norm > clip:
                h.mul_(clip / norm)
            g.copy_(h)
        return [(p, g) for p, g, _, _ in done], norm

    @staticmethod
    def hook(grads, bucket):
        """The communication hook: register_comm_hook(grads, Gradients.hook)."""
        done = torch.futures.Future()
        grads.buckets.append((done, bucket.buffer()))
        for p, g in zip(bucket.parameters(), bucket.gradients()):
            grads._take(p, g)
        if bucket.is_last():
            grads._finish()
            for f, buffer in grads.buckets:
                f.set_result(buffer)
            grads.buckets = []
        return done

    def close(self):
        """End the run; raises if a program failed."""
        if not self.gone:
            self._release("it was closed: make another one")
            self.pipe.close()
