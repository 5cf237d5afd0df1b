# ace.Replay of examples/pytorch/ace_shards.py: steps that are taken back, and the
# same ones taken by all.
# bats file_tags=plain
load helper
patient
load hosts
load pytorch

export WAY=Replay

@test "replay: the same weights and moments after each round, and what they are" {
	cloud 2 4 3>&- &
	train edge1 4 3>&- >said1 &
	train edge2 4 >said2
	wait
	[ "$(wc -l <edge1.log)" -eq 4 ]
	same edge1.log edge2.log
	[ "$(cut -d' ' -f2 edge1.log | sort -u | wc -l)" -eq 4 ]
	# each shard is a gradient, and says the model and moments that it began with
	for i in 1 2; do
		ace-inspect --json spool/train-replay3-*/3/edge$i.aceg >listing
		grep -q '"kind":"gradient"' listing
		grep -q "\"model.digest\":\"$(sed -n 's/^3 //p' edge1.log)\"" listing
	done
	# the same in one process: steps that are taken back, and the mean of all
	py - >want <<-'P'
	import copy
	from common import *

	common = mlp()
	optimizer = torch.optim.AdamW(common.parameters(), lr=1e-2)

	def step(o, number):
	    warm(o, number)
	    o.step()

	for r in range(4):
	    sums = [torch.zeros_like(p) for p in common.parameters()]
	    for device in "edge1", "edge2":
	        ahead = copy.deepcopy(common)
	        o = torch.optim.AdamW(ahead.parameters(), lr=1e-2)
	        o.load_state_dict(copy.deepcopy(optimizer.state_dict()))
	        for i in range(3):
	            o.zero_grad()
	            loss(ahead, device, 3 * r + i).backward()
	            for s, p in zip(sums, ahead.parameters()):
	                s += p.grad / 3 / 2
	            step(o, 3 * r + i)
	    for i in range(3):
	        for s, p in zip(sums, common.parameters()):
	            p.grad = s.clone()
	        step(optimizer, 3 * r + i)
	had = ace.load("edge1.pt")
	close = lambda a, b: torch.allclose(a, b, rtol=1e-4, atol=1e-6)
	for p, s, m in zip(common.parameters(), had["start"], had["optimizer"]["state"]):
	    print(close(p, s), *(close(optimizer.state[p][k], m[k]) and m[k].any().item()
	                         for k in ("exp_avg", "exp_avg_sq")), int(m["step"]))
	P
	[ "$(sort want | uniq -c | tr -s ' ')" = ' 4 True True True 12' ]
}
