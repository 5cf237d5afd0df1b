"""Read and write checkpoints: files that are on disk whole or not at all."""
from __future__ import annotations

import contextlib
import glob
import os
import pickle
import stat
from typing import Any

import torch

from .transport import SEE, Error, log


def save(path: str, what: Any) -> None:
    """Write a file whole or not at all; keep the permissions of an existing one."""
    try:
        with open(f"{path}.new", "wb") as f:
            if os.path.exists(path):
                os.fchmod(f.fileno(), stat.S_IMODE(os.stat(path).st_mode))
            # a failed write in the zip format would end the process
            torch.save(what, f, _use_new_zipfile_serialization=False)
            f.flush()
            os.fsync(f.fileno())
        os.replace(f"{path}.new", path)
    except (OSError, RuntimeError) as e:        # torch raises RuntimeError
        why = getattr(e, "strerror", None) or e
        raise Error(f"checkpoint '{path}' cannot be written: {why}: correct the cause, then "
                    "start this device again", 4) from e
    with contextlib.suppress(OSError):      # not all systems can sync a folder
        folder = os.open(os.path.dirname(path) or ".", os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)


def load(path: str) -> Any:
    """Return what save wrote, or None if the file does not exist.  A checkpoint has only
    tensors, numbers and strings, except for the objects that the script gave as state=."""
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
        raise Error(f"checkpoint '{path}' cannot be read ({e!r}): if it is damaged, copy "
                    f"the checkpoint of another device; {SEE}", 3) from e


def model(path: str) -> dict[str, torch.Tensor]:
    """Return the model in a checkpoint as a state_dict: the trained parameters, others
    that changed, and the buffers.  torch 2 executes no code in the file; older versions
    cannot read numbers with weights_only=True."""
    try:
        had = torch.load(path, map_location="cpu",
                         weights_only=torch.__version__ >= "2")
        return {**{n: s.to(getattr(torch, kind.split(".")[1]))
                   for s, (n, kind) in zip(had["start"], had["names"])},
                **had["moved"], **had["buffers"]}
    except Exception as e:
        raise Error(f"'{path}' cannot be read as a checkpoint of ace.join: "
                    f"{type(e).__name__}: {e}", 3) from e


def kept(path: str) -> dict[int, str]:
    """Return the files beside the checkpoint with the averages of later rounds, by the
    number of the round."""
    files = glob.glob(f"{glob.escape(path)}.*")
    return {int(n): f for f in files for n in [f.rpartition(".")[2]] if n.isdigit()}
