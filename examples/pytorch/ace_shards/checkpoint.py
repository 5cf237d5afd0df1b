"""Files that are on disk whole or not at all."""
import errno
import os
import stat

import torch

from .transport import Error


class File:
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


def sync_dir(path):
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
            out = File(f)
            torch.save(what, out)
            if out.failed:
                raise out.failed
            f.flush()
            os.fsync(f.fileno())
        os.replace(temp, path)
        sync_dir(path)
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
