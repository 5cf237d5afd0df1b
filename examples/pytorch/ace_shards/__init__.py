"""Train one PyTorch model on several machines, through the programs of ace(7).

    with ace.join(model, optimizer, cloud="me@cloud:run", every=50) as run:
        ...                             # train as ever, until run.done

ace-pytorch(7) has the rest.  It needs torch, 1.13 or later, the standard library, and
the programs, in PATH or beside this Python.
"""
from .algorithms import Run
from .checkpoint import model
from .front import join
from .transport import Error

__all__ = ["Error", "Run", "join", "model"]

Error.__module__ = __name__
