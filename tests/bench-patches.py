#!/usr/bin/env python3
"""bench-patches.py DIR TEXT: train in PyTorch as bench-patches does; write in bf16 DIR/old and
new0 to new3, each trained from old: 1 step of rate 1e-6, 1 of 1e-5, 4 of 3e-6, 8 of 1e-5."""
import copy
import os
import sys

sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)),
                             "../examples/pytorch"))
import torch  # noqa: E402
from torch.nn import functional  # noqa: E402

from ace_shards import transport as ace  # noqa: E402

CONTEXT, BATCH, DIM = 32, 16, 128
LATER = [(1e-6, 1), (1e-5, 1), (3e-6, 4), (1e-5, 8)]


class Bytes(torch.nn.Module):
    """Predicts the next byte of a text."""

    def __init__(self):
        super().__init__()
        self.token = torch.nn.Embedding(256, DIM)
        self.place = torch.nn.Embedding(CONTEXT, DIM)
        layer = torch.nn.TransformerEncoderLayer(
            DIM, 4, 4 * DIM, dropout=0, batch_first=True, norm_first=True)
        self.layers = torch.nn.TransformerEncoder(layer, 4)
        self.norm = torch.nn.LayerNorm(DIM)
        self.out = torch.nn.Linear(DIM, 256, bias=False)
        self.register_buffer("behind", torch.ones(
            CONTEXT, CONTEXT, dtype=torch.bool).triu(1), persistent=False)

    def forward(self, x):
        x = self.token(x) + self.place.weight
        return self.out(self.norm(self.layers(x, self.behind)))


def steps(model, optimizer, text, rate, n):
    for group in optimizer.param_groups:
        group["lr"] = rate
    for _ in range(n):
        at = torch.randint(len(text) - CONTEXT, (BATCH,)).tolist()
        x = torch.stack([text[i:i + CONTEXT + 1] for i in at]).long()
        optimizer.zero_grad()
        functional.cross_entropy(model(x[:, :-1]).flatten(0, 1),
                                 x[:, 1:].flatten()).backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1)
        optimizer.step()


def put(path, model):
    tensors = [(name, p.detach().bfloat16().contiguous())
               for name, p in model.state_dict().items()]
    with open(path, "wb") as f:
        room = ace.Room(tensors)
        ace.store(room, [t for _, t in tensors])
        f.write(ace.header(room.pairs))
        f.writelines(room.bytes)


def main():
    torch.set_num_threads(1)
    torch.manual_seed(1)
    with open(sys.argv[2], "rb") as f:
        text = torch.tensor(list(f.read(500000)), dtype=torch.uint8)
    model = Bytes()
    optimizer = torch.optim.AdamW(model.parameters(), betas=(0.9, 0.95),
                                  weight_decay=0.1)
    steps(model, optimizer, text, 3e-3, 150)
    steps(model, optimizer, text, 1e-5, 20)
    put(sys.argv[1] + "/old", model)
    was = copy.deepcopy((model.state_dict(), optimizer.state_dict()))
    random = torch.get_rng_state()
    for i, (rate, n) in enumerate(LATER):
        model.load_state_dict(was[0])
        optimizer.load_state_dict(copy.deepcopy(was[1]))
        torch.set_rng_state(random)
        steps(model, optimizer, text, rate, n)
        put(f"{sys.argv[1]}/new{i}", model)


main()
