"""Train one PyTorch model on several machines, through the programs of ace(7).

Local averages what the devices' local steps changed; Replay averages the gradients
along steps that are taken back, and all devices take the same steps with the
average; Gradients averages gradients at every step, layer by layer as they are
computed or by a communication hook of DistributedDataParallel.  ace-pytorch(7) has
the rest.

It needs torch, 1.13 or later, the standard library, and the programs, in PATH or
beside this Python.
"""
from .algorithms import Gradients, Local, Replay
from .checkpoint import load, save
from .transport import Error

__all__ = ["Error", "Gradients", "Local", "Replay", "load", "save"]

for _c in Error, Gradients, Local, Replay:
    _c.__module__ = __name__
