"""train.py DEVICE ROUNDS [KEY=VALUE...]: train with ace.Local, or with the class WAY
of the environment.  The code below uses the keys."""
from common import *

device, rounds, *more = sys.argv[1:]
o = dict(m.split("=", 1) for m in more)


class Fused(torch.optim.AdamW):
    """The same class name and settings as AdamW, with different rounding."""
    def step(self, closure=None):
        super().step()
        with torch.no_grad():
            for p in self.param_groups[0]["params"]:
                p.mul_(1 + 2 ** -23)


Fused.__name__ = "AdamW"
if "die" in o:
    kill_at(o["die"])
torch.manual_seed(int(o.get("seed", 1)))
model = nn.Sequential(mlp()) if "inside" in o else mlp()
model.to(getattr(torch, o.get("type", "float32")))
inner = (Fused if "fused" in o else torch.optim.AdamW)(
    model.parameters(), lr=1e-2, foreach="foreach" in o)
opts = dict(checkpoint=o.get("checkpoint", f"{device}.pt"),
            patience=float(o.get("patience", 0)),
            timeout=float(o["timeout"]) if "timeout" in o else None)
if WAY is ace.Local:
    opts.update(outer_rate=float(o.get("outer_rate", 0.7)),
                outer_momentum=float(o.get("momentum", 0.5)))
else:
    opts.update(every=int(o.get("steps", 3)), schedule=lambda step: warm(inner, step))
local = WAY(model, inner, o.get("through") or
            through(device, o.get("code", "-c f32")), device, **opts)
while local.round < int(rounds):
    began = local.round
    if o.get("wrong") == str(began):    # change the common model
        for t in local.start if WAY is ace.Local else \
                [m["exp_avg"] for m in local.kept["state"]]:
            t.mul_(1 + 2 ** -20)
        local.crc = None
    for i in range(local.every or 3):
        inner.zero_grad()
        loss(model, device, (local.every or 3) * began + i).backward()
        inner.step()
    if WAY is ace.Local:
        local.sync()
    with open(f"{device}.log", "a") as f:
        print(local.round, local.digest(), file=f)
local.close()
print(device, local.round, local.digest())
