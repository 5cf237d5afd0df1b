"""Checkpoints: files that are on disk whole or not at all."""
from __future__ import annotations

import errno
import glob
import os
import pickle
import re
import stat
from typing import Any, BinaryIO, Callable

import torch

from .transport import Error, Room, header, log


class File:
    """A file for torch.save, which can end the process when a write fails: what
    failed is kept, and what comes after it goes nowhere."""

    def __init__(self, f: BinaryIO) -> None:
        self.f = f
        self.failed: OSError | None = None

    def write(self, part) -> int:
        try:
            if not self.failed:
                self.f.write(part)
        except OSError as e:
            self.failed = e
        return len(part)

    def flush(self) -> None:
        pass


def _sync_dir(path: str) -> None:
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


def write(path: str, fill: Callable[[File], Any]) -> None:
    """Write a file, as open to others as it was."""
    temp = f"{path}.new"
    try:
        with open(temp, "wb") as f:
            if os.path.exists(path):
                os.fchmod(f.fileno(), stat.S_IMODE(os.stat(path).st_mode))
            out = File(f)
            fill(out)
            if out.failed:
                raise out.failed
            f.flush()
            os.fsync(f.fileno())
        os.replace(temp, path)
        _sync_dir(path)
    except OSError as e:
        raise Error(f"checkpoint '{path}' cannot be written: {e.strerror}", 4) from e


def save(path: str, what: Any) -> None:
    write(path, lambda f: torch.save(what, f))


def load(path: str) -> Any:
    """Return what save wrote, or None if there is no such file.  A checkpoint holds
    tensors, numbers and words, but for what the script gave as state=."""
    def read(**how: Any) -> Any:
        return torch.load(path, map_location="cpu", **how)
    try:
        try:
            return read(weights_only=True)
        except pickle.UnpicklingError:
            log.debug("checkpoint '%s' holds more than tensors and numbers", path)
            return read(weights_only=False)
    except FileNotFoundError:
        return None
    except Exception as e:
        raise Error(f"checkpoint '{path}' cannot be read: {e}", 3) from e


def model(path: str) -> dict[str, torch.Tensor]:
    """Return the model in a checkpoint, as a state_dict: the parameters that are
    trained, those that were moved, and the buffers.  Nothing in the file is run: with
    torch 2, as that of before reads no numbers without it."""
    try:
        had = torch.load(path, map_location="cpu",
                         weights_only=torch.__version__ >= "2")
        return {**{n: s.to(getattr(torch, kind.split(".")[1])) for s, (n, (_, kind)) in
                   zip(had["start"], had["look"].items())},
                **had["moved"], **had["buffers"]}
    except Exception as e:
        raise Error(f"'{path}' is not a checkpoint of ace.join: {e}", 3) from e


def keep(path: str, round_: int, room: Room) -> None:
    """Write the average of a round to a file beside the checkpoint that is older."""
    write(f"{path}.{round_}", lambda f: [f.write(b) for b in
                                         (header(room.pairs), *room.bytes)])


def kept(path: str) -> list[int]:
    """Return the rounds whose averages are kept, in order."""
    return sorted(int(m[1]) for m in (re.fullmatch(r".*\.(\d+)", name) for name in
                                      glob.glob(f"{glob.escape(path)}.*")) if m)


def again(path: str, round_: int, room: Room) -> None:
    """Read an average that was kept."""
    path = f"{path}.{round_}"
    head = header(room.pairs)
    with open(path, "rb") as f:
        if f.read(len(head)) != head or \
                [f.readinto(b) for b in room.bytes] != list(map(len, room.bytes)):
            raise Error(f"'{path}' does not fit the model: remove this device's folder "
                        "and begin with a new name", 3)
