# examples/pytorch/ace_shards: trainers in PyTorch with a cloud.
# bats file_tags=plain
load helper
patient
load pytorch

# two KIND: run two devices; check that they have the same bits after every round, and that
# their shards are of kind KIND and have the digest of the model before the round
two() {
	cloud 2 4 3>&- &
	both 4
	[ "$(wc -l <edge1.log)" -eq 4 ]
	same edge1.log edge2.log
	[ "$(cut -d' ' -f2 edge1.log | sort -u | wc -l)" -eq 4 ]
	[ "$(cut -d' ' -f2- said1)" = "$(cut -d' ' -f2- said2)" ]
	for i in 1 2; do
		ace-inspect --format json spool/3/edge$i.aceg >listing
		grep -q "\"kind\":\"$1\"" listing
		grep -q "\"model.digest\":\"$(sed -n 's/^3 //p' edge1.log)\"" listing
	done
}

@test "Local: local steps, then Nesterov's step with the mean difference" {
	two delta
	py - >want <<-'E'
	import copy
	from common import *

	common = mlp()
	devices = {}
	for d in "edge1", "edge2":
	    m = copy.deepcopy(common)
	    devices[d] = m, torch.optim.AdamW(m.parameters(), lr=1e-2)
	v = [torch.zeros_like(p) for p in common.parameters()]
	for r in range(4):
	    for d, (m, inner) in devices.items():
	        for i in range(3):
	            inner.zero_grad()
	            loss(m, d, 3 * r + i).backward()
	            inner.step()
	    with torch.no_grad():
	        for i, s in enumerate(common.parameters()):
	            mean = sum(list(m.parameters())[i].double() - s.double()
	                       for m, _ in devices.values()) / 2
	            v[i] = 0.5 * v[i] + mean
	            s += (0.7 * (mean + 0.5 * v[i])).float()
	            for m, _ in devices.values():
	                list(m.parameters())[i].copy_(s)
	got = ace.load("edge1.pt")
	for (n, s), g in zip(common.named_parameters(), got["start"]):
	    print(n, torch.allclose(s, g, rtol=1e-5, atol=1e-6), got["round"])
	E
	[ "$(sort -u <want | cut -d' ' -f2- | uniq -c | tr -s ' ')" = " 4 True 4" ]
}

@test "Replay: local steps are undone, then all devices take the same steps" {
	WAY=Replay two gradient
	py - >want <<-'E'
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
	E
	[ "$(sort want | uniq -c | tr -s ' ')" = ' 4 True True True 12' ]
}

# bats test_tags=long
@test "models that cannot be sent are refused, with the parameter's name and what to do" {
	py - <<-'E'
	from common import *

	for why, p in (("is sparse", torch.eye(3).to_sparse()),
	               ("has no values yet", torch.ones(3, device="meta")),
	               ("has elements that share their memory (expand)", torch.ones(1).expand(4)),
	               ("is in memory shared with other processes", torch.ones(3).share_memory_())):
	    m = mlp()
	    m.x = nn.Parameter(p)
	    with fails(f"parameter 'x' {why}"):
	        ace.Local(m, None, "ace-compress -c f32 | ace-expand", "edge1")
	q = torch.quantize_per_tensor(torch.ones(3), 0.1, 0, torch.quint8)
	assert "quantised" in ace.refuse(q)
	m = mlp()
	m.x = nn.Parameter(torch.ones(10))
	m.y = nn.Parameter(m.x.detach()[4:6])
	with fails("'x' and 'y' share memory"):
	    ace.Local(m, None, "ace-expand", "edge1")
	# wrappers' prefixes are removed; a submodule `module' beside others keeps its name
	m = nn.Module()
	m.module, m.head = nn.Linear(2, 2), nn.Linear(2, 2)
	assert list(ace.named(m)[0]) == ["module.weight", "module.bias",
	                                  "head.weight", "head.bias"]
	assert list(ace.named(nn.DataParallel(m.head))[0]) == ["weight", "bias"]
	m = nn.Module()
	m._orig_mod, m.weight = nn.Linear(2, 2), nn.Parameter(torch.ones(2))
	with fails("two parameters or buffers are named 'weight' when"):
	    ace.Local(m, None, "ace-expand", "edge1")
	for bad, why in (("ace-expand || true", "empty"), ("", "empty"),
	                 ("ace-expand 'x", "No closing quotation in the pipeline"), ("ace-expand |", "empty"),
	                 ("ace-nothing", "cannot run 'ace-nothing'")):
	    with fails(why):
	        ace.Local(mlp(), None, bad, "edge1")

	class FullyShardedDataParallel(nn.Module):
	    def __init__(self, m):
	        super().__init__()
	        self._fsdp_wrapped_module = m

	class DTensor(nn.Parameter):
	    pass

	# stand-ins for torch's classes, which need several processes
	import types
	for module, kind in ("fsdp", FullyShardedDataParallel), ("tensor", DTensor):
	    stand_in = types.ModuleType(module)
	    setattr(stand_in, kind.__name__, kind)
	    sys.modules["torch.distributed." + module] = stand_in
	one = mlp()
	one[0].weight = DTensor(one[0].weight.detach())
	for m, name in ((FullyShardedDataParallel(mlp()), "FullyShardedDataParallel"),
	                (nn.Sequential(mlp(), FullyShardedDataParallel(mlp())),
	                 "FullyShardedDataParallel"), (one, "DTensor")):
	    for what in (lambda: ace.Local(m, None, "ace-expand", "edge1"),
	                 lambda: ace.Gradients(m, None, "ace-expand", "edge1")):
	        with fails(f"the model has a {name}, so each process has only parts of"):
	            what()
	E
}

# bats test_tags=long
@test "a model that changed is refused with the parameter's name, in a run and with a checkpoint" {
	cloud 1 3 3>&- &
	train edge1 2
	py - <<-'E'
	from common import *

	def refused(why, m, change=None):
	    local = None
	    with fails(why):
	        local = ace.Local(m, None, through("edge1"), "edge1",
	                          checkpoint="edge1.pt", outer_rate=0.7,
	                          outer_momentum=0.5)
	        change(m)
	        local.sync()
	    if local:
	        local.leave()

	m = mlp()
	m.new = nn.Parameter(torch.ones(3))
	refused("parameter 'new' is [(3,), 'torch.float32'], but checkpoint 'edge1.pt' has none", m)
	m = mlp()
	m[0] = nn.Linear(20, 30, bias=False)
	refused("parameter '0.bias' is absent or frozen, but checkpoint 'edge1.pt' has [(30,)", m)
	m = mlp()
	m[0] = nn.Linear(20, 40)
	refused("parameter '0.weight' is [(40, 20), 'torch.float32'], but checkpoint", m)
	refused("parameter 'new' is [(3,), 'torch.float32'], but the run's first model has none", mlp(),
	        lambda m: setattr(m, "new", nn.Parameter(torch.ones(3))))

	model = mlp()
	local = ace.Local(model, None, "cat", "edge1")
	grads = ace.Gradients(model, None, "cat", "edge1")
	model[2] = nn.Linear(30, 5)
	for call in local.sync, grads.sync:
	    with fails("parameter '2.weight' was replaced by another object after the run began", 2):
	        call()
	# new values, and a dtype that changes and returns, are accepted
	model = mlp()
	local = ace.Local(model, None, "cat", "edge1")
	model.load_state_dict(mlp().state_dict())
	model.double().float()
	local.sync()
	model.half()
	with fails("parameter '0.weight' is [(30, 20), 'torch.float16'], but the run"):
	    local.sync()

	with fails("run is new, but checkpoint 'edge1.pt' has train: give the old value again"):
	    ace.Local(mlp(), None, through("edge1"), "edge1", run="new",
	              checkpoint="edge1.pt", outer_rate=0.7, outer_momentum=0.5)
	for plain in mlp().state_dict(), [1]:
	    torch.save(plain, "plain.pt")
	    with fails("checkpoint 'plain.pt' was not written by ace.join", 3):
	        ace.Local(mlp(), None, "ace-expand", "edge1", checkpoint="plain.pt")
	os.symlink("/dev/full", "full.pt.new")
	for n in 9, 1 << 20:        # with the larger one, torch.save alone aborts the process
	    with fails("checkpoint 'full.pt' cannot be written: No space left on device: "
	               "correct the cause, then start this device again", 4):
	        ace.save("full.pt", {"x": torch.ones(n)})
	E
	# without the checkpoint, the state refuses to begin again
	exits 1 train edge1 3 checkpoint=other.pt
	says "ace_shards.Error: ace-compress: step 0 of 'edge1' is not after step 1"
	# the run continues from its checkpoint
	exits 0 train edge1 3
	wait
}

# bats test_tags=long
@test "a program that is killed in a round is named, and no value is lost" {
	undisturbed 6
	cloud 2 6 3>&- &
	for victim in ace-compress ace-recv ace-ack ace-expand ace-export ace-import; do
		"$PYTHON" "$TRAINERS/train.py" edge1 6 >said1 2>err 3>&- &
		pid=$!
		# the programs of round 1 wait for edge2, which is absent
		wait_for eval 'test -e spool/0/edge1.aceg'
		# the six programs of the round run, and none that was called before it
		wait_for eval '[ "$(pgrep -c -P $pid ^ace-)" -eq 6 ]'
		pkill -9 -P $pid -x $victim
		status=0
		wait $pid || status=$?
		[ "$status" -eq 1 ]
		says "ace_shards.Error: $victim was killed by signal 9"
		says 'start this device again'
	done
	both 6
	unharmed
}

# bats test_tags=long
@test "patience: a broken connection is tried again" {
	undisturbed 6
	cloud 2 6 3>&- &
	"$PYTHON" "$TRAINERS/train.py" edge1 6 patience=600 >said1 2>err 3>&- &
	trainer=$!
	wait_for eval 'test -e spool/0/edge1.aceg'
	kill -9 "$(pgrep -P "$trainer" -x ace-recv)"
	wait_for grep -q 'round 1: trying again' err
	train edge2 6 >said2
	wait
	unharmed
}

# bats test_tags=long
@test "the error has the message of the program that failed first" {
	py - <<-'E'
	from common import *

	def cause(why, pipe, status, spoil=None):
	    m = mlp()
	    with fails(why, status) as f:
	        local = ace.Local(m, None, pipe, "edge1")
	        before = local.digest()
	        with torch.no_grad():
	            m[0].weight[0, 0] = float("nan") if spoil else 1
	        local.sync()
	    assert f.error.startswith(why), f.error
	    assert local.digest() == before     # the last common model

	cause("ace-compress: non-finite value in tensor '0.weight' at index 0",
	      through("s1"), 5, spoil=True)
	cause("ace-expand: option '--x' is unknown",
	      "ace-score | ace-select -b 10k | ace-compress | ace-expand --x", 2)
	cause("false ended with status 1", "ace-compress -c f32 | false", 1)
	cause("ace-compress: non-finite value in tensor '0.weight' at index 0",
	      through("s2").replace("ace-", os.environ["BUILD"] + "/ace-"), 5, spoil=True)
	# ace-expand, whose input ends, may print its message first
	cause("late: the reason", """sh -c 'exec >&-; sleep 1
	    echo "late: the reason" >&2; exit 5' | ace-expand""", 5)
	cause("ace-export: truncated: the input is empty", "ace-compress -c f32 | true", 3)
	# the same if both programs have status 3
	cause("mismatch: the reason", """sh -c 'exec >&-; sleep 1
	    echo "mismatch: the reason" >&2; exit 3' | ace-expand""", 3)
	E
}

# bats test_tags=long
@test "a checkpoint older than its state, and two processes with one state, are refused" {
	cloud 1 4 3>&- &
	train edge1 2
	cp edge1.pt old.pt
	train edge1 4
	wait
	cp edge1.pt new.pt
	cp old.pt edge1.pt
	cp edge1/residual residual
	exits 1 train edge1 4
	says "ace_shards.Error: ace-compress: step 2 of 'edge1' is not after step 3, the last one in the state: the trainer is older than its state"
	says 'WHEN SOMETHING FAILS'
	cmp edge1/residual residual
	cmp edge1.pt old.pt
	cp new.pt edge1.pt
	cloud 1 6 3>&- &
	exec 9>edge1/lock
	flock -n 9
	exits 1 train edge1 6
	exec 9>&-
	says "ace_shards.Error: state 'edge1' is in use by another process: stop that process"
	exec 9>edge1.pt.lock
	flock -n 9
	exits 1 train edge1 6
	exec 9>&-
	says "ace_shards.Error: checkpoint 'edge1.pt' is in use by another process"
	exits 0 train edge1 6
	echo 'not a checkpoint' >edge1.pt
	refuses 1 "ace_shards.Error: checkpoint 'edge1.pt' cannot be read" train edge1 7
	kill %% 2>/dev/null || true
}

# bats test_tags=long
@test "a model on a device other than the CPU: one copy each way per round, and the same bits" {
	cat >far.py <<-'E'
	"""far.py DEVICE METHOD: edge2 uses PyTorch's lazy device in place of a GPU."""
	from common import *
	import torch._lazy.ts_backend

	torch._lazy.ts_backend.init()
	device, how = sys.argv[1:]
	where = {"edge1": "cpu", "edge2": "lazy"}[device]
	copies = {"to": 0, "back": 0, "copy_": 0}

	def counted(name):
	    old = getattr(torch.Tensor, name)

	    def new(t, *args):
	        copies[name] += t.device.type == "lazy"
	        copies["back"] += t.device.type == "cpu" and args == (torch.device("lazy", 0),)
	        return old(t, *args)
	    setattr(torch.Tensor, name, new)

	model = mlp().to(where)
	sgd = torch.optim.SGD(model.parameters(), lr=0.1)
	way, more = {"local": (ace.Local, {"outer_momentum": 0.5, "every": 1}),
	             "replay": (ace.Replay, {"every": 2}),
	             "gradients": (ace.Gradients, {"every": 1})}[how]
	ours = way(model, sgd, through(device), device, **more)
	for name in "to", "copy_":
	    counted(name)
	for step in range(3 * more["every"]):
	    x, y = (t.to(where) for t in batch(device, step))
	    sgd.zero_grad()
	    F.cross_entropy(model(x), y).backward()
	    copies.update(to=0, back=0, copy_=0)
	    sgd.step()
	    if where == "lazy" and ours.count == 0 and ours.round > 1:
	        assert (copies["to"], copies["back"]) == (1, 1), copies     # one each way
	ours.close()
	for p in model.parameters():
	    assert p.device.type == where
	print([p.detach().cpu().tolist() for p in model.parameters()])
	E
	for how in local gradients; do
		cloud 2 3 3>&- &
		pair far.py $how
		rm -r spool edge1 edge2 cloud
	done
	cloud 1 3 3>&- &
	py far.py edge2 replay
	wait
}

# copies OWN MOST WORD...: run the script peak.py with two sizes of model; check that, above
# OWN f32 copies of the parameters, it takes memory for MOST more copies
copies() {
	(py peak.py 4 "${@:3}"; py peak.py 12 "${@:3}") | awk -v own="$1" -v most="$2" '
	    { n = $1 - n }
	    END { n = n / 32e6 - own; print n; exit !(n > most - 0.25 && n < most + 0.25) }'
}

# bats test_tags=long
@test "memory: two copies of the parameters, and three with outer momentum" {
	cat >peak.py <<-'E'
	"""peak.py MILLIONS MODE OPTIMISER [ARGUMENT...]: print this process's peak memory."""
	from common import *

	model = nn.Sequential(*[nn.Linear(1000, 1000, bias=False)
	                        for _ in range(int(sys.argv[1]))])
	way, optimizer = getattr(ace, sys.argv[2]), getattr(torch.optim, sys.argv[3])
	optimizer = optimizer(model.parameters(), lr=1e-3)
	more = eval(f"dict({','.join(sys.argv[4:])})")
	n = more.pop("steps")
	way = way(model, optimizer, "ace-compress -c q8 | ace-expand", "edge1", **more)
	for step in range(n):
	    for p in model.parameters():
	        p.grad = torch.full_like(p, 0.01) if p.grad is None else p.grad.fill_(0.01)
	    optimizer.step()
	way.close()
	with open("/proc/self/status") as f:
	    print(next(int(l.split()[1]) * 1024 for l in f if l.startswith("VmHWM")))
	E
	# return what is freed to the system, whatever its size
	export MALLOC_MMAP_THRESHOLD_=65536
	# the model and its gradients, and with Adam two moments, are the script's own
	copies 2 2 Local SGD steps=4 every=1
	copies 4 3 Local Adam steps=4 every=1 outer_momentum=0.5 moment=\"moment\"
	# a copy of the moments, too, to which the steps return
	copies 4 4 Replay Adam steps=4 every=2
	copies 4 1 Gradients Adam steps=4 every=1
	# the second call continues from the checkpoint of the first, without gradients
	for n in 4 12; do
		py peak.py $n Local Adam steps=2 every=1 checkpoint=\"$n.pt\" >/dev/null
	done
	copies 3 3 Local Adam steps=0 every=1 checkpoint='f"{sys.argv[1]}.pt"'
}

# bats test_tags=long
@test "the EXAMPLES of ace-pytorch(7) run as printed" {
	digits=/usr/lib/python3/dist-packages/sklearn/datasets/data/digits.csv.gz
	[ -f $digits ] || skip "no digits here (Debian's python3-sklearn)"
	examples "$ROOT/man/ace-pytorch.7" |
	    sed "s|/usr/local/share/ace/|$ROOT/examples/|; s|python3|$PYTHON|" >page.sh
	grep -q '^    .* digits.py run --device' page.sh
	timeout "$HANG" bash -eu page.sh >out 2>err 3>&- || { cat err; false; }
	# four devices with accuracies above 90 %, and one model
	[ "$(awk '$1 ~ /^edge[1-4]$/ && $2 > 90 && $3 == 55 { print $1 }' out | sort -u | wc -l)" -eq 4 ]
	[ "$(awk '{ print $4 }' out | sort -u | wc -l)" -eq 1 ]
	# with another number of rounds, all devices end after that
	rm -rf run
	sed -i 's/rounds 55/rounds 3/; s/--index/--dir few$k &/' page.sh
	timeout "$HANG" bash -eu page.sh >out 2>err 3>&- || { cat err; false; }
	[ "$(awk '$1 ~ /^edge[1-4]$/ { print $3, $4 }' out | sort | uniq -c | awk '{ print $1, $2 }')" = '4 3' ]
}

# bats test_tags=long
@test "pytorch.sh trains a language model and digits, with the module and synchronously" {
	seq 2999 >text
	[ -f /usr/lib/python3/dist-packages/sklearn/datasets/data/digits.csv.gz ] || skip "no digits"
	SYNC='--rate 0.03' ACE='--rate 0.03' ONLY='text digits' TEXT=text SEEDS=1 \
	    MODEL='--batch 4 --width 8 --layers 1 --heads 1 --context 16' \
	    timeout "$HANG" "$ROOT/examples/pytorch.sh" results >out 2>err 3>&- || { cat err; false; }
	awk '$2 == ($1 == "text" ? 5368 : 33738) && $6 > 10 && $7 > 10 && $11 > 10 { n++ }
	    END { exit n != 2 }' results/pytorch.tsv
}
