"""Train in PyTorch and, after every few steps, send the weights in bf16 as an exact patch to
a host that serves them:

    python3 train.py 'ssh -T host receive.sh /srv/model sglang http://127.0.0.1:30000'

The host must have the first model, which this program writes to base/.  The model is a
small network; copy class Publisher into your own trainer."""
import json
import os
import subprocess
import sys

import torch
from torch import nn


class Publisher:
    """Writes the weights of `model` in bf16 to DIR, and sends changes to the receiver.

    base/ is the first model, to copy to the host once; old/ is the model that the host
    has, and new/ is its next model."""

    def __init__(self, model, directory, receiver):
        self.model, self.dir, self.receiver, self.step = model, directory, receiver, 0
        self.base, self.patch = 0, os.path.join(directory, "patch.aceg")
        if os.path.exists(self.patch):
            os.remove(self.patch)
        self.write("base")
        self.write("old")

    def write(self, name):
        """Write a directory as on Hugging Face; the file gets its name when complete."""
        os.makedirs(os.path.join(self.dir, name), exist_ok=True)
        head, parts, at = {}, [], 0
        for tensor, t in self.model.state_dict().items():
            t = t.detach().to("cpu", torch.bfloat16).contiguous()
            parts.append(bytes(t.view(torch.int16).flatten().numpy().tobytes()))
            head[tensor] = {"dtype": "BF16", "shape": list(t.shape),
                            "data_offsets": [at, at + len(parts[-1])]}
            at += len(parts[-1])
        text = json.dumps(head).encode()
        text += b" " * (-len(text) % 8)
        path = os.path.join(self.dir, name, "model.safetensors")
        with open(path + ".tmp", "wb") as f:
            f.write(len(text).to_bytes(8, "little") + text + b"".join(parts))
        os.replace(path + ".tmp", path)

    def publish(self):
        """Send the changes since the receiver's last success.  Return False if the receiver
        failed.  It may have the model nevertheless, so the next call sends that patch first."""
        if os.path.exists(self.patch) and not self.deliver():
            return False
        self.step += 1
        self.write("new")
        subprocess.run(["ace-diff", "--step", str(self.step), "--base-version", str(self.base),
                        "-o", self.patch, os.path.join(self.dir, "old"),
                        os.path.join(self.dir, "new")], check=True)
        return self.deliver()

    def deliver(self):
        with open(self.patch, "rb") as f:
            if subprocess.run(self.receiver, shell=True, stdin=f).returncode != 0:
                return False
        os.replace(os.path.join(self.dir, "new", "model.safetensors"),
                   os.path.join(self.dir, "old", "model.safetensors"))
        os.remove(self.patch)
        self.base = self.step
        return True


def main():
    torch.manual_seed(1)
    torch.set_num_threads(1)
    model = nn.Sequential(nn.Linear(64, 256), nn.ReLU(), nn.Linear(256, 8))
    teacher = torch.randn(64, 8)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
    publisher = Publisher(model, os.environ.get("DIR", "."), sys.argv[1])
    for step in range(20):
        x = torch.randn(64, 64)
        loss = nn.functional.cross_entropy(model(x), (x @ teacher).argmax(1))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 4 == 3:
            print(f"step {step + 1}: {'sent' if publisher.publish() else 'not sent'}",
                  flush=True)


if __name__ == "__main__":
    main()
