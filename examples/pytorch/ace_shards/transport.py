"""Bring files of tensors to the cloud and back, through programs that live for a
whole run."""
import contextlib
import ctypes
import fcntl
import json
import os
import queue
import re
import select
import signal
import subprocess
import sys
import threading
import time
import weakref

import torch

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

def host(t):
    """t in the memory of the CPU and in order: t itself, or a copy of it."""
    return t.detach().cpu().contiguous()


def memory(t):
    """The memory of what host gave, which lives as long as the view."""
    n = t.numel() * t.element_size()
    there = (ctypes.c_char * n).from_address(t.data_ptr())
    there.tensor = t
    return memoryview(there).cast("B") if n else memoryview(b"")


def layout(tensors):
    """Where these (name, tensor) pairs are in a safetensors file."""
    head, at = {}, 0
    for name, t in tensors:
        end = at + t.numel() * t.element_size()
        head[name] = {"dtype": NAMES[t.dtype], "shape": list(t.shape),
                      "data_offsets": [at, end]}
        at = end
    return head


def header(tensors, note=None):
    """The beginning of a safetensors file of these pairs."""
    head = {"__metadata__": note or {}, **layout(tensors)}
    text = json.dumps(head, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    return len(text).to_bytes(8, "little") + text


LARGEST = 2.0 ** 63     # of what comes back: a larger square is beyond f32


def sound(tensors, what):
    """Raise if a value of these (name, tensor) pairs is no number to go on with."""
    for name, t in tensors:
        low, high = torch.aminmax(t.float()) if t.numel() else (t.new_zeros(()),) * 2
        if not (low > -LARGEST and high < LARGEST):
            x = t.float().reshape(-1)
            at = int((~(x.abs() < LARGEST)).nonzero()[0])
            raise Error(f"{what} has {x[at].item():g} in '{name}' at index {at}, "
                        f"expected finite values below 2^63: nothing was applied; "
                        f"{ASK}", 3, True)


WORDS = re.compile(r"""(\s+) | ([|;&<>()]+) | '([^']*)' | "((?:[^"\\]|\\.)*)" |
                   \\(.) | ([^\s|;&<>()'"\\]+)""", re.S | re.X)
VARIABLE = re.compile(r"""\\([$`"\\\n]) | (\$\{(\w+)\} | \$([A-Za-z_]\w*) |
                      \$[\w{@*#?!$(-] | `)""", re.X)


def variables(text):
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


def stages_of(through):
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
            word = os.path.expanduser(home) + variables(bare[len(home):])
        else:
            word = (word or "") + (single or variables(double or bare or ""))
    stages[-1] += [] if word is None else [word]
    if not all(stages):
        raise Error("a stage of the pipeline is empty")
    return stages


def environment():
    """For the programs: PATH has those that are beside this Python, and first of
    all when it is that of a virtual environment."""
    here = [d for d in (os.path.dirname(sys.executable or ""),
                        os.path.join(sys.prefix, "bin")) if d]
    path = os.environ.get("PATH", os.defpath).split(os.pathsep)
    path = here + path if sys.prefix != sys.base_prefix else path + here
    return {**os.environ, "PATH": os.pathsep.join(path)}


def connection(stages):
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
def whole():
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


class Wait:
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


def ours(f):
    OURS.add(f)
    return f


os.register_at_fork(after_in_child=lambda: [[f.close() for f in list(OURS)],
                                            RUNS.clear()])


OWN = ("or give each device, and each model of a script, a checkpoint and a state of "
       "its own")


def claim(new):
    """Take the place of the same call before, as when a cell of a notebook is run
    again; raise where another run of this process has a file that this one needs."""
    def files(run):
        _, through, _, _, checkpoint = run.said
        return {("state", s) for s in states_of(stages_of(through))} | \
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


def rank_of():
    """Which process of how many this is, as torchrun and torch.distributed say."""
    d = torch.distributed
    if d.is_available() and d.is_initialized():
        return d.get_rank(), d.get_world_size()
    return int(os.environ.get("RANK") or 0), int(os.environ.get("WORLD_SIZE") or 1)


def alone(rank, size):
    return (f"process {rank} of {size} of this place: they are one device, for which "
            "process 0 alone speaks, see ace-pytorch(7), Several processes in one place")


def locked(path, what, mode="rb", seconds=10):
    """This file, open and locked; what a killed run left behind has time to go."""
    f, end = ours(open(path, mode)), time.monotonic() + seconds
    while True:
        try:
            fcntl.flock(f, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return f
        except BlockingIOError:
            if time.monotonic() > end:
                rank, size = rank_of()
                raise Error(f"{what} is in use by another process: stop that "
                            f"one, {OWN}" + (size > 1) *
                            f" (this is {alone(rank, size)})", 5) from None
        time.sleep(0.05)


def states_of(stages):
    """The states that the programs of these stages have."""
    words = [w for words in stages for w in words]
    return {b for a, b in zip(words, words[1:]) if a in ("-S", "--state")} | \
        {w[8:] for w in words if w.startswith("--state=")}


def listen(hear, said, wait):
    with open(hear, errors="replace") as f:
        for line in f:
            if not line.startswith("Try '"):
                said.append(line.rstrip())
            del said[:-200]
            w = wait()
            if w:               # else nobody waits any more
                w.heard(line.rstrip())
            del w


def feed(parts, into):
    """What is in the queue into the pipe: nobody else writes there.  When the
    programs have ended, who reads will see why."""
    with contextlib.suppress(OSError), into as f:
        for part in iter(parts.get, None):
            while part:
                part = part[os.write(f.fileno(), part):]


def reap(owner, processes, threads, seconds):
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


def forget(out, parts, *programs):
    """The end of a pipe, whatever is under way."""
    out.close()
    parts.put(None)
    reap(*programs)


class Pipe:
    """Programs that live for a whole run: a file of tensors goes in for each
    round, and one comes out."""

    def __init__(self, through, step, kind, device, run, weight, samples,
                 wait=None, ask=False, how=""):
        self.stages = stages_of(through)
        self.wait, self.how = wait or Wait(device), how
        # what is not sent to a cloud comes back as it is
        self.run = run
        self.kinds = ("mean",) if connection(self.stages) else ("mean", kind)
        self.far = " | ".join(" ".join(w) for w in connection(self.stages))
        if ask:                 # nothing is coded, and no state is touched
            self.stages = connection(self.stages) + [["ace-expand"]]
            kind = "model"
        self.states = states_of(self.stages)
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
                    locked(path, f"state '{s}'").close()
        # one pipe for what all of them say: who speaks first comes first
        self.hear, say = os.pipe()
        self.into, self.out = None, subprocess.PIPE
        try:
            for words in self.stages:
                p = subprocess.Popen(words, stdin=self.out, bufsize=0,
                                     stdout=subprocess.PIPE, stderr=say,
                                     env=environment())
                if self.processes:
                    self.out.close()
                self.into = self.into or ours(p.stdin)
                self.processes.append(p)
                self.out = ours(p.stdout)
        except OSError as e:
            os.close(say)
            os.close(self.hear)
            reap(*self.programs, 0)
            raise Error(f"cannot run '{words[0]}': {e.strerror}; is it in "
                        "PATH, or beside this Python?") from None
        os.close(say)
        self.poll = select.poll()       # not select, which ends at 1024 descriptors
        self.poll.register(self.out, select.POLLIN)
        with contextlib.suppress(OSError):
            for f in self.into, self.out:
                fcntl.fcntl(f, getattr(fcntl, "F_SETPIPE_SZ", 1031), 1 << 20)
        for f, *args in ((listen, self.hear, self.said, weakref.ref(self.wait)),
                         (feed, self.queue, self.into)):
            self.threads.append(threading.Thread(target=f, args=args, daemon=True))
            self.threads[-1].start()
        self.end = weakref.finalize(self, forget, self.out, self.queue,
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
        want = layout(tensors)
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
        self.send(header(tensors, note))

    def answer(self, step, tensors):
        """The values of the file of this step into these pairs, as of host."""
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
            self._fill(memory(t))
        self.heard = False
        sound(tensors, f"round {self.wait.round}: the answer")

    def leave(self, seconds=10):
        """Give the pipe up, whatever is under way."""
        self.end.detach()
        forget(self.out, self.queue, *self.programs, seconds)

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
        reap(*self.programs, max(0, end - time.monotonic()))
        # who goes because another one was ended has not failed
        if over and any(p.returncode and not hasattr(p, "ended")
                        for p in self.processes):
            raise self.failure()
        self.out.close()
