# examples/pytorch/ace_shards in difficult scripts: threads, forks, Ctrl-C in the middle, and
# models that change meanwhile.
# bats file_tags=long,plain
load helper
patient
load hosts
load pytorch

@test "a forked child that lives, as a worker of a DataLoader: no end waits for it" {
	cat >fork.py <<-'E'
	from common import *
	import threading
	import time
	from multiprocessing import get_context
	from torch.utils.data import DataLoader, TensorDataset

	if sys.argv[1:] == ["killed"]:
	    local = ace.Local(mlp(), None, "cat", "edge1", checkpoint="killed.pt")
	    child = get_context("fork").Process(target=time.sleep, args=(600,))
	    child.start()
	    print(child.pid, *(p.pid for p in local.pipe.processes), flush=True)
	    os.kill(os.getpid(), 9)

	# an operation that hangs here would hang for ever
	ace.Pipe.close.__defaults__ = 600,
	stuck = threading.Timer(40, lambda: os._exit(9))
	stuck.daemon = True
	stuck.start()
	model = mlp()
	local = ace.Local(model, None, "cat", "edge1", checkpoint="edge1.pt")
	data = DataLoader(TensorDataset(torch.zeros(16, 20)), batch_size=8,
	                  num_workers=2, persistent_workers=True)
	for _ in range(2):
	    for x, in data:
	        model(x)
	    local.sync()
	# the workers have closed their copies of the lock, and ours still holds it
	with fails("is in use by another process"):
	    ace.locked("edge1.pt.lock", "it", "wb", 0)
	local.close()
	# a child that inherits them nevertheless: the programs end
	ace.OURS.clear()
	pipe = ace.Local(model, None, "cat", "edge1").pipe
	ace.OURS.clear()
	child = get_context("fork").Process(target=time.sleep, args=(600,), daemon=True)
	child.start()
	pipe.close(1)
	E
	exits 0 py fork.py
	exits 137 py fork.py killed
	read -r child programs <out
	for p in $programs; do
		wait_for eval "! kill -0 $p 2>/dev/null"
	done
	kill -0 "$child"
	status=0
	flock -n killed.pt.lock true || status=$?
	kill -9 "$child"
	[ "$status" -eq 0 ]
}

@test "more than 1024 descriptors, and a constructor that failed, tried again" {
	[ "$(ulimit -Hn)" = unlimited ] || [ "$(ulimit -Hn)" -gt 1200 ] ||
	    skip 'not so many descriptors here'
	cat >many.py <<-'E'
	from common import *
	import resource

	hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
	resource.setrlimit(resource.RLIMIT_NOFILE, (1200, hard))
	files = [os.open("/dev/null", os.O_RDONLY) for _ in range(1050)]
	local = ace.Local(mlp(), None, "cat", "edge1")
	local.sync()
	local.close()
	# an interactive prompt keeps the last error, and through it the object that raised it
	try:
	    ace.Local(mlp(), None, "no-such-program", "edge1", checkpoint="edge1.pt")
	except ace.Error as e:
	    kept = e
	ace.Local(mlp(), None, "cat", "edge1", checkpoint="edge1.pt").close()
	E
	py many.py
}

@test "Ctrl-C anywhere in sync: the model is a common one, and nothing is lost or sent twice" {
	cat >stop.py <<-'E'
	from common import *
	import signal

	def interrupted(n, function, *args):
	    """Is it before its end that SIGINT comes at line n of the module?"""
	    seen = []

	    def line(frame, event, _):
	        if event == "line":
	            seen.append(1)
	            if len(seen) == n:
	                os.kill(os.getpid(), signal.SIGINT)
	        return line

	    def call(frame, event, _):
	        return line if frame.f_code.co_name in (
	            "sync", "_round", "_part", "_apply", "_outer", "_reset") else None
	    sys.settrace(call)
	    try:
	        function(*args)
	        return len(seen) >= n
	    except KeyboardInterrupt:
	        return True
	    finally:
	        sys.settrace(None)

	model = nn.Linear(3, 1)
	with torch.no_grad():
	    for p in model.parameters():
	        p.zero_()
	local, came = ace.Local(model, None, through("edge1"), "edge1", outer_rate=0.5), 0
	for n in range(1, 71):
	    with torch.no_grad():
	        for p in model.parameters():
	            p.add_(1)
	    came += interrupted(n, local.sync)
	    # either the common model, or nothing had begun
	    now = [p.unique().tolist() for p in model.parameters()]
	    assert now in ([[local.round / 2]] * 2, [[n / 2 + 0.5]] * 2), (n, now)
	    if local.round < n:
	        local.sync()
	    for p in model.parameters():
	        assert local.round == n and p.eq(n / 2).all(), (n, local.round, p)
	local.close()
	assert 20 < came < 70, came
	E
	cloud 1 70 3>&- &
	py stop.py
	wait
	rm -r spool edge1 cloud
	cat >middle.py <<-'E'
	from common import *
	import signal
	import threading
	import time

	model = nn.Linear(2000, 1, bias=False)
	with torch.no_grad():
	    model.weight.fill_(1)
	local = ace.Local(model, None, through("edge1"), "edge1")
	write = os.write

	def slow(fd, part):
	    """Ctrl-C comes when the values are about to go into the pipe."""
	    if len(part) > 4096:
	        os.write = write
	        signal.pthread_kill(threading.main_thread().ident, signal.SIGINT)
	        end = time.monotonic() + 0.5
	        while time.monotonic() < end and model.weight[0, 0] != 1:
	            time.sleep(0.01)
	    return write(fd, part)

	os.write = slow
	with torch.no_grad():
	    model.weight.add_(0.5)
	try:
	    local.sync()
	    assert False, "no Ctrl-C"
	except KeyboardInterrupt:
	    assert model.weight.eq(1).all()
	# the state may have the round, and sends it again unchanged
	with torch.no_grad():
	    model.weight.add_(0.25)
	with fails("steps were taken between a sync() that failed and this one", 2):
	    local.sync()
	assert model.weight.eq(1).all()
	local.sync()
	assert model.weight.eq(1.5).all(), model.weight.unique()
	with torch.no_grad():
	    model.weight.add_(0.25)
	local.sync()
	assert model.weight.eq(1.75).all(), model.weight.unique()
	local.close()
	E
	cloud 1 2 3>&- &
	py middle.py
	wait
	rm -r spool edge1 cloud
	cat >cut.py <<-'E'
	from common import *

	device = sys.argv[1]
	model = nn.Linear(1000, 1, bias=False)
	with torch.no_grad():
	    model.weight.zero_()
	local = ace.Local(model, None, through(device), device)
	for r in range(2):
	    with torch.no_grad():
	        model.weight.add_(1)
	    if device == "edge1" and r == 0:
	        # the data of this round does not reach the state
	        for p in local.pipe.processes:
	            p.kill()
	            p.wait()
	        with fails("was killed by signal 9", 4):
	            local.sync()
	        assert model.weight.eq(0).all()
	    local.sync()
	    assert model.weight.eq(r + 1).all(), (r, model.weight)
	# a refused value is not kept
	with torch.no_grad():
	    model.weight[0, 0] = float("nan")
	with fails("non-finite value", 5):
	    local.sync()
	assert local.unsent == [] and model.weight.eq(2).all()
	E
	cloud 2 2 3>&- &
	py cut.py edge2 3>&- &
	py cut.py edge1
	wait
}

@test "what needs no gradient: the same values in another order are other ones, and a buffer may grow" {
	cat >order.py <<-'E'
	from common import *

	for t in (torch.randn(1000, 64), torch.arange(3 << 20), torch.randn(9).half(),
	          torch.randn(5, 3).t(), torch.tensor([1., 0, 0, 1, 1, 0, 0, 1])):
	    seen = set(ace.marks([t, t.clone(), t.contiguous()]))
	    assert len(seen) == 1, seen
	    for x in t.roll(1), t.flip(0), torch.cat((t[1:2], t[:1], t[2:])), \
	            1 - t if len(t) == 8 else t.roll(1 << 20):
	        assert t.eq(x).all() or ace.marks([x])[0] not in seen, (t.shape, x)
	assert ace.marks([torch.zeros(0, 4)]) == ace.marks([torch.ones(0, 4)])

	class Queue(nn.Module):
	    def __init__(self):
	        super().__init__()
	        self.queue = nn.Parameter(torch.arange(8.), requires_grad=False)
	        self.register_buffer("seen", torch.zeros(3, 2))
	        self.out = nn.Linear(2, 2)

	def local(model):
	    return ace.Local(model, None, "cat", "edge1", checkpoint="edge1.pt")

	first, again = Queue(), Queue()
	l = local(first)
	first.queue.copy_(first.queue.roll(1))
	first.seen = torch.arange(10.).reshape(5, 2)        # the parameter grew
	l.sync()
	l.close()
	l = local(again)
	assert torch.equal(first.queue, again.queue), again.queue
	assert l.round == 1 and torch.equal(again.seen, first.seen), again.seen
	l.sync()
	l.close()
	E
	py order.py
}

@test "another outer step, number of steps, model or moments in the middle of a run are told" {
	local way other why
	while IFS='|' read -r way other why; do
		export WAY=$way
		mkdir $way
		cd $way
		cloud 3 4 3>&- &
		train edge1 4 >one 3>&- &
		train edge3 4 >three 3>&- &
		wait_for eval 'test -e spool/0/edge1.aceg'
		for o in $other; do
			exits 1 train edge2 4 $o
			says "ace_shards.Error: ace-recv: mismatch: a shard of run 'train-.*, and the spool is of run 'train-"
			says 'another model or type of parameters, mode, optimiser or number of steps'
		done
		exits 1 train edge2 4 wrong=2
		says 'ace_shards.Error: mismatch: in round 3 this device has model [0-9a-f]{8}, and the others have [0-9a-f]{8}: weights, moments, .* It has to begin again after round 3 with theirs: give it the checkpoint of another device; see ace-pytorch'
		# edge1's shard is enough: the others wait for it in round 4
		wait_for eval 'test -e spool/3/edge1.aceg'
		cp edge1.pt edge2.pt
		for o in $other; do
			exits 1 train edge2 4 $o
			says "ace_shards.Error: checkpoint 'edge2.pt' was made with $why: go on as before"
		done
		exits 0 train edge2 4
		wait
		[ "$(cut -d' ' -f2- one three out | sort | uniq -c | awk '{ print $1, $2 }')" = '3 4' ]
		cd ..
	done <<-'END'
	Local|outer_rate=1 momentum=0.4|outer_(rate=0\.7|momentum=0\.5), and this is outer_(rate=1\.0|momentum=0\.4)
	Replay|steps=2|run='train-replay3', and this is run='train-replay2'
	END
}

@test "processes of one place: all but the first are told that one speaks for them" {
	cat >ranks.py <<-'E'
	from common import *

	rank = int(sys.argv[1])
	torch.distributed.init_process_group(
	    "gloo", init_method=f"file://{os.getcwd()}/meet", rank=rank, world_size=2)
	model = mlp()
	ddp = nn.parallel.DistributedDataParallel(model)
	ace.locked.__defaults__ = ("rb", 0.2)
	one = "for which process 0 alone speaks, see ace-pytorch(7), Several processes in"
	local = None
	for way in (lambda m: ace.Local(m, None, "cat", "edge1", checkpoint="x.pt"),
	            lambda m: ace.Replay(m, torch.optim.SGD(m.parameters(), lr=.1), "cat",
	                                 "edge2", 1, checkpoint="y.pt")):
	    if rank == 0:
	        local = way(ddp), local
	    torch.distributed.barrier()
	    if rank == 1:
	        with fails("this is process 1 of 2 of this place: they are one device, " + one):
	            way(ddp)
	        # without the wrapper, where both use one checkpoint
	        with fails("is in use by another process: stop that") as f:
	            way(model)
	        assert "(this is process 1 of 2 of this place" in f.error and one in f.error
	    torch.distributed.barrier()
	print("good")
	E
	py ranks.py 1 >one 3>&- 2>err1 &
	py ranks.py 0 >zero || { cat err1; false; }
	wait $! || { cat err1; false; }
	same one zero
}
