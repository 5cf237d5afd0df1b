"""Send tensors to the cloud and receive averages, through programs that run until the
end of the run."""
from __future__ import annotations

import contextlib
import fcntl
import itertools
import json
import logging
import os
import queue
import select
import shlex
import subprocess
import sys
import threading
import time
import weakref
from typing import Any, Callable, IO, Iterable, Iterator, List, NamedTuple, Tuple

import torch
from torch import Tensor

Pairs = List[Tuple[str, Tensor]]    # names and tensors, in the order of a shard
Words = List[List[str]]             # the argument lists of a pipeline's programs

log = logging.getLogger("ace_shards")

BATCH = 1 << 26     # most bytes of a transfer between two devices, unless one tensor has more
NAMES = {torch.float32: "F32", torch.float16: "F16", torch.bfloat16: "BF16"}
SEE = "see ace-pytorch(7), WHEN SOMETHING FAILS"
ASK = "check the cloud and which users can write to its spool, then start again"
HOW = f" (this device has torch {torch.__version__})"
AGAIN = "start this device again"
# Advice for errors that a retry cannot mend.  The key is the kind in an error event or the
# result in a receipt event.
MISMATCH = ("this device, {state} and the cloud began with different models, types of "
            "parameters, modes or numbers of steps, or compute differently" + HOW +
            ".  If neither model has a majority, give all devices the same torch and "
            "settings, and copy a checkpoint of one half to the other half.  Otherwise "
            "correct this device and remove the state of the earlier run; " + SEE)
OTHER = ("two devices have this name, or {state} was removed after something was sent: " + SEE)
ADVICE = {"mismatch": MISMATCH, "invalid": MISMATCH, "equivocation": OTHER, "fenced": OTHER}
UNUSABLE = "nothing was applied; " + ASK        # advice if ace-expand refuses an average
CUT = {"truncated": 1, "upstream": 2}   # kinds of error that another program caused
STATUS = {2: "see the page of that program", 3: AGAIN, 4: AGAIN,
          5: f"a retry will be refused too: {SEE}",
          255: f"check the connection, then {AGAIN}"}


class Error(RuntimeError):
    """An error that states the first failure and advice.  status is an exit status."""

    def __init__(self, text: str, status: int = 2, final: bool = False) -> None:
        super().__init__(text)
        self.status = status
        self.final = final      # do not try the connection again


# ---- tensors in memory that programs can read and write ----

class Room:
    """Tensors on the CPU with given names and shapes, and the bytes of each."""

    def __init__(self, like: Pairs, dtype: torch.dtype | None = None) -> None:
        self.pairs: Pairs = []
        self.bytes: list[bytearray] = []
        for name, t in like:
            kind = dtype or t.dtype
            b = bytearray(t.numel() * (4 if kind == torch.float32 else 2))
            new = torch.frombuffer(b, dtype=kind) if b else \
                torch.empty(0, dtype=kind, device="cpu")
            self.pairs.append((name, new.view(t.shape)))
            self.bytes.append(b)

    def __iter__(self) -> Iterator[Tensor]:
        return (t for _, t in self.pairs)


def carried(tensors: Iterable[Tensor], to: Iterable[torch.device]) -> Iterator[Tensor]:
    """Yield each tensor on its device in `to`: the tensor itself if it is there, else a copy.
    Consecutive tensors with at most BATCH bytes in all, or one larger tensor, are copied in one
    transfer for each type, source and destination.  So few copies are in memory together."""
    batch: list[tuple[Tensor, Any]] = []
    size = 0

    def moved() -> Iterator[Tensor]:
        flat = {}
        for key in {k for t, k in batch if t.device != k[0]}:
            same = [t.reshape(-1) for t, k in batch if k == key]
            flat[key] = (same[0] if len(same) == 1 else torch.cat(same)).to(key[0])
        at = dict.fromkeys(flat, 0)
        for t, key in batch:
            if key in flat:
                at[key] += t.numel()
                t = flat[key][at[key] - t.numel():at[key]].view(t.shape)
            yield t
        batch.clear()

    for t, where in zip(tensors, to):
        t = t.detach()
        more = t.numel() * t.element_size()
        if batch and size + more > BATCH:
            yield from moved()
        if not batch and t.device == where:
            yield t
        else:
            size = size + more if batch else more
            batch.append((t, (where, t.device, t.dtype)))
    yield from moved()


def fetch(tensors: Iterable[Tensor]) -> Iterator[Tensor]:
    return carried(tensors, itertools.repeat(torch.device("cpu")))


@torch.no_grad()
def store(into: Iterable[Tensor], values: Iterable[Tensor]) -> None:
    """Write values into tensors, on whatever devices both are."""
    into = list(into)
    for t, v in zip(into, carried(values, [t.device for t in into])):
        t.copy_(v)


def layout(tensors: Pairs) -> dict[str, Any]:
    """Return the types, shapes and offsets of the tensors in a safetensors file."""
    head, at = {}, 0
    for name, t in tensors:
        end = at + t.numel() * t.element_size()
        head[name] = {"dtype": NAMES[t.dtype], "shape": list(t.shape),
                      "data_offsets": [at, end]}
        at = end
    return head


def header(tensors: Pairs, note: dict[str, str] | None = None) -> bytes:
    """Return the header of a safetensors file with these tensors."""
    text = json.dumps({"__metadata__": note or {}, **layout(tensors)}).encode()
    text += b" " * (-len(text) % 8)
    return len(text).to_bytes(8, "little") + text


# ---- the programs between a device and the cloud ----

def stages_of(through: str) -> Words:
    """Return the argument lists of the programs of a pipeline, separated by '|'."""
    line = " ".join(through.split())
    try:
        stages = [shlex.split(text) for text in through.split("|")]
    except ValueError as e:
        raise Error(f"{e} in the pipeline (through=), cut at every |: {line}") from None
    if not all(stages):
        raise Error(f"the pipeline (through=) has an empty stage: {line}")
    return [[os.path.expanduser(word) for word in words] for words in stages]


def connection_of(stages: Words) -> Words:
    """Return the stages that connect to the cloud: the last ones before ace-ack that do not
    code, with ace-sign if it signs before them."""
    names = [os.path.basename(words[0]) for words in stages]
    end = at = names.index("ace-ack") if "ace-ack" in names else 0
    while at and (not names[at - 1].startswith("ace-") or
                  names[at - 1] in ("ace-recv", "ace-cloud") or
                  names[at - 1] == "ace-sign" and at < end):
        at -= 1
    return stages[at:end]


def states_of(stages: Words) -> set[str]:
    """Return the state directories that the programs of these stages use."""
    words = [w for stage in stages for w in stage]
    return {b for a, b in zip(words, words[1:]) if a in ("-S", "--state")} | \
        {w[8:] for w in words if w.startswith("--state=")}


class Way(NamedTuple):
    """The programs or descriptors by which shards go to the cloud and averages return."""

    stages: Words                       # programs that this process starts
    connection: Words                   # programs to ask for missed rounds
    ends: tuple[int, int] | None = None     # descriptors from ace-edge, instead of programs
    events: int | None = None               # descriptor of the events of ace-edge

    @classmethod
    def through(cls, text: str) -> Way:
        stages = stages_of(text)
        return cls(stages, connection_of(stages))


def _inherit() -> Way | None:
    """Return the Way of a process that ace-edge started as its COMMAND: shards go to
    standard output, averages come from standard input, and print writes to standard
    error from here on."""
    connect = os.environ.pop("ACE_CONNECT", None)
    if connect is None:
        return None
    ends = os.dup(0), os.dup(1)
    os.dup2(2, 1)
    with open(os.devnull, "rb") as f:
        os.dup2(f.fileno(), 0)
    return Way([], stages_of(connect), ends, int(os.environ.pop("ACE_EVENTS")))


INHERITED = _inherit()      # on import, before the script prints


def environment() -> dict[str, str]:
    """Return the environment of the programs: PATH also has the folders of this Python, at
    the beginning in a virtual environment."""
    here = [os.path.dirname(sys.executable or ""), os.path.join(sys.prefix, "bin")]
    path = [os.environ.get("PATH", os.defpath)]
    path = here + path if sys.prefix != sys.base_prefix else path + here
    return {**os.environ, "PATH": os.pathsep.join(filter(None, path))}


def unstarted(word: str, e: OSError) -> Error:
    """Return the error for a program that did not start."""
    return Error(f"cannot run '{word}': {e.strerror}" + (
        ": install it in PATH, or beside this Python" if isinstance(e, FileNotFoundError)
        else ""))


def output(words: list[str], *given: bytes | bytearray) -> str:
    """Run a program with these bytes as input, and return its output, which must be short."""
    pipe = subprocess.PIPE
    try:
        p = subprocess.Popen(words, stdin=pipe, stdout=pipe, stderr=pipe, env=environment())
    except OSError as e:
        raise unstarted(words[0], e) from None
    with p:
        try:
            with contextlib.suppress(BrokenPipeError):  # its message says why it ended
                for part in given:
                    p.stdin.write(part)
            out, err = p.communicate()
        except BaseException:
            p.kill()
            raise
    if p.returncode:
        said = [s for s in err.decode(errors="replace").splitlines()
                if not s.startswith("Try '")]
        said.sort(key=lambda s: not s.startswith("ace-"))       # the cause first
        raise Error("\n".join(said) or f"{words[0]} " + (
            f"was killed by signal {-p.returncode}" if p.returncode < 0 else
            f"ended with status {p.returncode}"), p.returncode)
    return out.decode()


def _talks(words: list[str]) -> list[str]:
    """Add the option that lets one of our programs write events on standard error."""
    says = os.path.basename(words[0]) in ("ace-ack", "ace-compress", "ace-expand",
                                          "ace-recv", "ace-step")
    return words + ["--events", "2"] * (says and "--events" not in words)


class Wait:
    """Collects the events of the programs about the rounds, and limits a round's time."""

    SILENT = 9.5    # seconds before the run logs what it waits for

    def __init__(self, device: str, timeout: float | None = None,
                 quiet: bool = False) -> None:
        self.device, self.timeout, self.quiet = device, timeout, quiet
        self.late: set[int] = set()
        self.behind = True      # this device may have missed rounds
        self.facts: dict[int, dict[str, int]] = {}
        self.kinds: dict[str, str] = {}     # the kind of error of each failed program
        self.begin(0)

    def begin(self, step: int, command: str = "") -> None:
        self.round, self.command = step + 1, command    # rounds count from 1
        self.text = ""
        self.began = self.spoke = time.monotonic()
        self.since = time.strftime("%H:%M:%S")
        for k in list(self.facts):      # one step for the thread that adds to it
            if k <= step:
                self.facts.pop(k, None)

    def heard(self, line: str) -> bool:
        """Return whether a program's line is an event, and note the event."""
        if not line.startswith('{"event":'):
            return False
        try:
            event = json.loads(line)
            at, kind = int(event.get("round", 0)), event["event"]
        except (ValueError, KeyError, TypeError):   # cut by a broken connection
            return False
        facts = self.facts.setdefault(at, {})
        if kind == "sent":
            facts.update(bytes=event["bytes"], values=event["values"])
        elif kind == "average":
            facts.update(participants=event["participants"], received=event["bytes"])
        elif kind == "waits" and at >= self.round:
            self.text = event["text"]
        elif kind == "error":       # a refused shard has a receipt, and then an error
            program = event["program"]
            self.kinds[program] = event["kind"] or self.kinds.get(program, "")
        elif kind == "receipt" and event["result"] in ADVICE:
            self.kinds[event["program"]] = event["result"]
        elif kind == "receipt" and event["result"] == "late" and at not in self.late:
            self.late.add(at)
            self.behind = True
            log.log(logging.DEBUG if self.quiet else logging.WARNING,
                    "%s: the average of round %d is without this device's shard: the "
                    "update is kept for a later round, if any", self.device, at)
        return True

    def known(self, round: int) -> dict[str, int]:
        """Return the numbers in a round's events; wait up to 1 s for the event `average'."""
        end = time.monotonic() + 1
        while "participants" not in self.facts.get(round, {}) and \
                time.monotonic() < end:
            time.sleep(0.002)
        return self.facts.pop(round, {})

    def says(self) -> str:
        if self.text:
            return f"{self.text} (since {self.since})"
        return (f"no answer since {self.since} from '{self.command}': check that the "
                "cloud runs and can be reached")

    def left(self, most: float) -> float:
        """Return the seconds until the timeout, but no more than `most`."""
        if self.timeout is None:
            return most
        return max(0, min(most, self.began + self.timeout - time.monotonic()))

    def look(self, silent: bool) -> None:
        """Raise after the timeout, even while an answer arrives; log a long wait."""
        if not self.left(1):
            raise Error(f"round {self.round} took more than {self.timeout:g} s: "
                        + (self.says() if silent else "the answer was still arriving: "
                           "give a longer timeout") +
                        " (start this device again: its state, if any, keeps what "
                        "was sent)", 4, True)
        self.tell(logging.WARNING, self.round,
                  self.says() if silent else "receiving the average")

    def tell(self, level: int, round: int, text: str) -> None:
        """Log what the run waits for, unless something was logged in the last seconds."""
        if time.monotonic() - self.spoke > self.SILENT:
            self.spoke = time.monotonic()
            log.log(logging.DEBUG if self.quiet else level, "%s: round %d: %s",
                    self.device, round, text)


# Files that a forked child, such as a DataLoader's worker, must close: otherwise the
# programs' input could not end, and locks would be held, until the child ends.
OURS: weakref.WeakSet = weakref.WeakSet()
RUNS: weakref.WeakSet = weakref.WeakSet()   # runs of this process that are not closed
os.register_at_fork(after_in_child=lambda: [[f.close() for f in list(OURS)],
                                            RUNS.clear()])


def ours(f: IO[bytes]) -> IO[bytes]:
    OURS.add(f)
    return f


def alone() -> str | None:
    """Return a message unless this is process 0 by the numbers of torch.distributed or
    torchrun; then return 0."""
    d = torch.distributed
    if d.is_available() and d.is_initialized():
        rank, size = d.get_rank(), d.get_world_size()
    else:
        rank, size = (int(os.environ.get(k) or 0) for k in ("RANK", "WORLD_SIZE"))
    return rank and (
        f"this is process {rank} of the {size} processes of one device, but only "
        "process 0 may call ace.join: see ace-pytorch(7), Several processes in one place")


def locked(path: str, what: str, mode: str = "rb", seconds: float = 10) -> IO[bytes]:
    """Open and lock a file; wait, since programs of a killed run may still hold the lock."""
    f, end = ours(open(path, mode)), time.monotonic() + seconds
    while True:
        try:
            fcntl.flock(f, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return f
        except BlockingIOError:
            if time.monotonic() > end:
                more = alone()
                raise Error(f"{what} is in use by another process: stop that process, "
                            "or give each device, and each model of a script, its own "
                            "folder" + (f" ({more})" if more else ""), 5) from None
        time.sleep(0.05)


def listen(hear: int, said: list[str], wait: Callable[[], Wait | None]) -> None:
    with open(hear, errors="replace") as f:
        for line in f:
            w = wait()
            if (not w or not w.heard(line)) and not line.startswith("Try '"):
                said.append(line.rstrip())
            del said[:-200], w


def _feed(parts: queue.SimpleQueue, into: IO[bytes]) -> None:
    """Write the bytes in the queue into the pipe; no other thread writes there.  Errors are
    ignored, since the reader of the programs' output reports why they ended."""
    with contextlib.suppress(OSError), into as f:
        for part in iter(parts.get, None):
            while part:
                part = part[os.write(f.fileno(), part):]


def _end(owner: int, processes: dict, threads: list, seconds: float) -> None:
    """Wait for all programs; kill those that still run after `seconds`, and note them."""
    if os.getpid() != owner:
        return
    end = time.monotonic() + seconds
    for p in processes:
        try:
            p.wait(max(0, end - time.monotonic()))
        except subprocess.TimeoutExpired:
            p.terminate()
            processes[p] = True
    for p in processes:
        try:
            p.wait(2)
        except subprocess.TimeoutExpired:
            p.kill()
            p.wait()
    for t in threads:
        if t is not threading.current_thread():
            t.join(seconds + 1)


def _forget(out: IO[bytes], parts: queue.SimpleQueue, *programs: Any) -> None:
    """End a pipe in any state."""
    out.close()
    parts.put(None)
    _end(*programs)


class Pipe:
    """The programs between this device and the cloud.  They run until the run ends, and
    take and give a file of tensors in each round.  ask: only request missed rounds."""

    def __init__(self, way: Way, kind: str, device: str, run: str, step: int,
                 wait: Wait, weight: float = 1, ask: bool = False) -> None:
        self.wait, self.run = wait, run
        wait.kinds.clear()
        self.far = " | ".join(" ".join(w) for w in way.connection) or "the pipeline"
        # without a cloud, the shard itself comes back, of its own kind
        self.kinds = ("mean",) if way.connection else ("mean", kind)
        middle = way.connection + [["ace-expand"]] if ask else way.stages
        self.ends = None if ask else way.ends
        self.states = states_of(middle)
        self.stages = [
            ["ace-import", "--many", "-k", "model" if ask else kind, "-d", device, "-r",
             run, "-s", str(step), "--base-version", str(step), "-w", str(weight)],
            *map(_talks, middle), ["ace-export", "--many"]]
        self.said: list[str] = []       # messages, in the order of writing
        self.processes: dict[Any, bool] = {}    # True: we ended the program
        self.threads: list[threading.Thread] = []
        self.programs = os.getpid(), self.processes, self.threads
        self.queue: queue.SimpleQueue = queue.SimpleQueue()     # safe in a finalizer
        self.heard = False      # True: an answer was partly read, and cannot be read again
        self.answered = False
        self.model: str | None = None   # the digest of the common model, from the answer
        for s in self.states:
            for path in f"{s}/lock", f"{s}/ack-lock":
                if os.path.exists(path):
                    locked(path, f"state '{s}'").close()
        # one pipe for the messages of all programs, so that their order is kept
        hear, say = os.pipe()
        try:
            self._start(say)
        except OSError as e:
            os.close(hear)
            _end(*self.programs, 0)
            raise unstarted(self.stages[len(self.processes)][0], e) from None
        finally:
            os.close(say)
        self.poll = select.poll()       # select cannot handle descriptors from 1024 on
        self.poll.register(self.out, select.POLLIN)
        with contextlib.suppress(OSError):
            for f in self.into, self.out:
                fcntl.fcntl(f, getattr(fcntl, "F_SETPIPE_SZ", 1031), 1 << 20)
        for f, *args in ((listen, hear, self.said, weakref.ref(wait)),
                         (_feed, self.queue, self.into)):
            self.threads.append(threading.Thread(target=f, args=args, daemon=True))
            self.threads[-1].start()
        self.end = weakref.finalize(self, _forget, self.out, self.queue,
                                    *self.programs, 1)

    def _start(self, say: int) -> None:
        pipe, last = subprocess.PIPE, len(self.stages) - 1
        source: Any = pipe
        for i, words in enumerate(self.stages):
            p = subprocess.Popen(
                words, bufsize=0, stderr=say, env=environment(),
                stdin=self.ends[0] if self.ends and i == last else source,
                stdout=self.ends[1] if self.ends and i < last else pipe)
            if i and source:
                source.close()
            self.processes[p] = False
            if i == 0:
                self.into = ours(p.stdin)
            source = p.stdout and ours(p.stdout)
        self.out = source

    def send(self, *parts: bytes | bytearray) -> None:
        for p in parts:
            self.queue.put(memoryview(p))

    def _fill(self, into: bytearray) -> None:
        room, at = memoryview(into), 0
        while at < len(room):
            # check the programs, since those after a dead one may wait for other devices
            # and keep the output open
            while not self.poll.poll(200):
                if any(p.poll() for p in self.processes):
                    raise self.failure()
                self.wait.look(True)
            self.wait.look(False)
            n = self.out.readinto(room[at:])
            if not n:
                raise self.failure()
            # programs with a state send their data again, however much was read
            self.heard = not self.states
            at += n

    def head(self) -> tuple[dict[str, Any], int]:
        """Return the header of the next file, and its round.  The file must be of this run,
        and of a kind in self.kinds or the end of the requested rounds."""
        size = bytearray(8)
        self._fill(size)
        text = bytearray(int.from_bytes(size, "little"))
        self._fill(text)
        got = json.loads(text)
        note = got.pop("__metadata__", {})
        self.model = note.get("model.digest")
        for what, want in (("run", (self.run,)),
                           ("kind", self.kinds if got else ("model",))):
            if note.get(what) not in want:
                raise self.unfit(f"is of {what} '{note.get(what)}'", f"'{want[0]}'")
        return got, int(note.get("step", -1))

    def unfit(self, found: str, expected: str) -> Error:
        """Return the Error for an answer other than the expected one."""
        return Error(f"round {self.wait.round}: the answer {found}, expected "
                     f"{expected}: nothing more was applied; {ASK}", 3, True)

    def exchange(self, step: int, room: Room, note: dict[str, str]) -> None:
        """Send the file of a round, and read the average into the same room."""
        self.wait.begin(step, self.far)
        if self.answered and self.poll.poll(0) and self.out.read(1):
            raise self.unfit("to the round before has bytes left over", "no more bytes")
        self.send(header(room.pairs, note), *room.bytes)
        while True:
            got, at = self.head()
            if not 0 <= at <= step or self.answered and at < step:
                raise self.unfit(f"is of round {at + 1}", f"round {step + 1}")
            if at == step:
                break
            # skip the answer to a shard that the state sent again; not into the room,
            # whose values are still being sent
            left = max((v["data_offsets"][1] for v in got.values()), default=0)
            while left > 0:
                part = bytearray(min(left, 1 << 20))
                self._fill(part)
                left -= len(part)
        self.body(got, room)
        self.answered = True

    def body(self, got: dict[str, Any], room: Room) -> None:
        """Read into the room the tensors of a file with this header, which must match."""
        want = layout(room.pairs)
        for name in {**want, **got}:
            if got.get(name) != want.get(name):
                raise self.unfit(f"does not fit the model: '{name}' is "
                                 f"{got.get(name, 'absent')}",
                                 want.get(name, "no tensor of that name"))
        for b in room.bytes:
            self._fill(b)
        self.heard = False

    def leave(self, seconds: float = 10) -> None:
        """Abandon the pipe in any state."""
        self.end.detach()
        _forget(self.out, self.queue, *self.programs, seconds)

    def failure(self) -> Error:
        """Return the Error of the program that failed first in a pipe that ended too early.
        A program that fails because of another one reports a truncated stream, nothing, or
        something later.  A broken pipe (status 141 of a shell) is the fault of the program
        that stopped reading."""
        self.leave()
        names = [os.path.basename(w[0]) for w in self.stages]
        # lines with other prefixes come from foreign programs and from other hosts
        own = {n for n in names if n.startswith("ace-") and n != "ace-cloud"}
        found = []
        for name, (p, ended) in zip(names, self.processes.items()):
            status, at = p.returncode, len(self.said) if name in own else -1
            if status in (0, -13, 141) or ended:
                continue
            line, cut = f"{name} ended with status {status}", 2 * (status == 3)
            if status < 0:
                line, at = f"{name} was killed by signal {-status}", -2
                status = 4
            for k, text in enumerate(self.said):
                who = text.split(":")[0]
                if at != -2 and (who == name or name not in own and who not in own):
                    line, at = text, k
                    cut = CUT.get(self.wait.kinds.get(who, ""), 0)
                    if status == 3 and who in own - {*self.wait.kinds}:
                        # without events, assume that ace-export failed because of others
                        cut = 2 if who == "ace-export" else 1
            found.append((cut, at, len(found), line, status))
        if not found:
            return Error("the pipeline ended without an answer: " + " | ".join(names) +
                         f" ({AGAIN})", 4)
        *_, line, status = min(found)
        who = line.split(":")[0]
        kind = self.wait.kinds.get(who, "")
        final = ADVICE.get(kind, "")
        if who == "ace-expand" and kind in ("", "limit") and status == 3:
            final = UNUSABLE
        advice = final or STATUS.get(
            status, f"status {status}: see the messages of that program, then {AGAIN}")
        state = " ".join(["its state", *(f"'{s}'" for s in sorted(self.states))])
        return Error(f"{line} ({advice.format(state=state)})", status,
                     bool(final))

    def close(self, seconds: float = 60) -> None:
        """End the pipe between two rounds: wait for all programs, and kill those that still
        run after `seconds`."""
        self.end.detach()
        self.queue.put(None)
        if self.ends:
            os.close(self.ends[1])
        end = time.monotonic() + seconds
        over = self.poll.poll(1000 * seconds)
        if over and self.out.read(1):
            self.leave(1)
            raise self.unfit("has bytes left over", "no more bytes")
        _end(*self.programs, max(0, end - time.monotonic()))
        # if we killed a program, failures of the others do not count
        if over and any(p.returncode and not ended for p, ended in
                        self.processes.items()):
            raise self.failure()
        self.out.close()
