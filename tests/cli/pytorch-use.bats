# examples/pytorch/ace_shards in realistic scripts: further state in checkpoints, wrong
# options, several models.
# bats file_tags=long,plain
load helper
patient
load pytorch

@test "a checkpoint that has less or more state than the script" {
	cloud 1 2 3>&- &
	cat >two.py <<-'E'
	from common import *

	class Odd:
	    """Its state is refused by torch.load(weights_only=True)."""
	    def __init__(self):
	        self.seen = []

	    def state_dict(self):
	        return {"seen": self.seen, "what": {1, 2}, "who": complex(1, 2)}

	    def load_state_dict(self, s):
	        assert s["what"] == {1, 2} and s["who"] == complex(1, 2)
	        self.seen = s["seen"]

	def local(**more):
	    return ace.Local(mlp(), None, through("edge1"), "edge1",
	                     checkpoint="edge1.pt", **more)

	with fails("state: 'x' is of type int, expected an object with state_dict() and load_state_dict()"):
	    local(state={"x": 1})
	odd = Odd()
	l = local(state={"odd": odd})
	odd.seen.append("here")
	l.sync()
	l.close()
	for more, why in (({}, "state is [], but checkpoint 'edge1.pt' has ['odd']: give the old value"),
	                  ({"state": {"odd": Odd(), "new": Odd()}}, "state is ['new', 'odd'], but")):
	    with fails(why):
	        local(**more)
	# weights_only=True, the default since torch 2.6
	load = torch.load
	torch.load = lambda f, *a, weights_only=True, **k: load(
	    f, *a, weights_only=weights_only, **k)
	odd = Odd()
	l = local(state={"odd": odd})
	assert odd.seen == ["here"] and l.round == 1
	l.sync()
	l.close()
	# the random states of GPUs, on a simulated machine with two of them
	states = [torch.ones(16, dtype=torch.uint8), torch.zeros(16, dtype=torch.uint8)]
	given = {}
	torch.cuda.is_available = torch.cuda.is_initialized = lambda: True
	torch.cuda.get_rng_state_all = lambda: states
	torch.cuda.set_rng_state = lambda s, i: given.update({i: s.tolist()})
	l = local(state={"odd": Odd()})
	l._save()
	l.leave()
	for n in 2, 1, 0:
	    given.clear()
	    torch.cuda.device_count = lambda: n
	    l = local(state={"odd": Odd()})
	    l.leave()
	    assert given == {i: states[i].tolist() for i in range(n)}, given
	os._exit(0)
	E
	py two.py
	wait
}

@test "a device with wrong options is refused, and may try again with the right ones" {
	cloud 2 1 3>&- &
	train edge1 1 >one 3>&- &
	wait_for eval 'test -e spool/0/edge1.aceg'
	first=$(ace-status spool | sed -n "s/^run '\(.*\)' in.*/\1/p")
	exits 1 train edge2 1 type=bfloat16
	says 'ace_shards.Error: ace-recv: mismatch: the shard is of run .* began with different models, types of parameters, modes'
	exits 1 train edge2 1 seed=2
	[ ! -e edge2 ]
	# the first line of the error has the cause and what to do
	grep -m1 Error err >line
	grep -q "^ace_shards.Error: ace-recv: mismatch: the shard is of run 'train-.*of run '$first'" line
	grep -q 'correct this device and remove the state of the earlier run; see' line
	[ -z "$(grep 'ended with status' err)" ]
	# with the state of an earlier try
	rm -rf edge2
	train edge2 1 seed=2 checkpoint=alone.pt \
	    through='ace-compress -S edge2 -c f32 --window 1 --sync none | ace-expand'
	exits 1 train edge2 1
	says "ace_shards.Error: ace-compress: mismatch: .*remove the state of the earlier run"
	# a model with other parameter names has the same run's name, but the cloud refuses it
	rm -r edge2
	exits 1 train edge2 1 inside=1
	grep -m1 Error err | grep -q "^ace_shards.Error: ace-ack: step 0: invalid: mismatch: the shard is of another model than run '$first': tensor 0 differs in name: '0.0.weight' and '0.weight'"
	[ -z "$(grep 'ended with status' err)" ]
	rm -r edge2
	exits 0 train edge2 1
	wait
	[ "$(cut -d' ' -f2- one)" = "$(cut -d' ' -f2- out)" ]
}

@test "after a kill in the first round, the device does not continue without its state" {
	"$PYTHON" "$TRAINERS/train.py" edge1 1 3>&- 2>err1 &
	wait_for eval 'test -e spool/0/edge1.aceg'
	kill -9 %%
	wait || true
	rm -r edge1
	# it is taken for another device with the same name
	exits 1 train edge1 1 code='-c q8'
	grep -m1 Error err | grep -q "^ace_shards.Error: ace-ack: step 0: equivocation: .*or its state 'edge1' was removed after something was sent"
	[ -z "$(grep 'ended with status' err)" ]
}

@test "two models in one script, each in its own run" {
	cat >gan.py <<-'E'
	"""gan.py DEVICE ROUNDS [die=N]: die=N kills it at its N-th checkpoint."""
	from common import *

	device, rounds, *die = sys.argv[1:]
	if die:
	    kill_at("_save:" + die[0][4:])
	nets = {"generator": nn.Linear(6, 20), "critic": mlp()}

	def local(name):
	    inner = torch.optim.SGD(nets[name].parameters(), lr=0.05)
	    return ace.join(nets[name], inner, f"run-{name}", name=device,
	                    dir=f"{device}-{name}", every=99)

	generator, critic = local("generator"), local("critic")
	while critic.round < int(rounds):
	    for i in range(2 if generator.round == critic.round else 0):
	        x, y = batch(device, 2 * critic.round + i)
	        made = nets["generator"](x[:, :6])
	        for l, sign in (critic, 1), (generator, -1):
	            l.optimizer.zero_grad()
	            (sign * F.cross_entropy(nets["critic"](made.detach() if sign > 0
	             else made), y)).backward()
	            l.optimizer.step()
	    (generator if generator.round <= critic.round else critic).sync()
	generator.close()
	critic.close()
	print(generator.round, generator.digest(), critic.round, critic.digest())
	E
	clouds() {
		timeout "$HANG" ace-cloud run-generator --devices 2 --rounds 4 --bits 32 -q 3>&- &
		timeout "$HANG" ace-cloud run-critic --devices 2 --rounds 4 --bits 32 -q 3>&- &
	}
	clouds
	pair gan.py 4
	[ "$(find run-*/spool -name '*.aceg' -path '*/3/*' | wc -l)" -eq 6 ]
	[ "$(cut -d' ' -f1,3 one)" = '4 4' ]
	[ "$(cut -d' ' -f2 one)" != "$(cut -d' ' -f4 one)" ]
	# kill edge1 when one of its two runs is a round ahead of the other
	rm -r run-* edge*
	clouds
	py gan.py edge2 4 >two 3>&- 2>err2 &
	for n in 2 3 4; do
		exits 137 "$PYTHON" gan.py edge1 4 die=$n
	done
	py gan.py edge1 4 >one
	wait
	same one two
}
