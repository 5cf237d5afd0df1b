# examples/pytorch/ace_shards in difficult scripts: forks, many descriptors, Ctrl-C, models
# that change during a run, and several processes.
# bats file_tags=long,plain
load helper
patient
load pytorch

@test "the programs of a round end although a forked child lives, as a DataLoader's worker" {
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

	# end the test if an operation hangs
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
	# the workers have closed their copies of the lock, but this process still holds it
	with fails("is in use by another process"):
	    ace.locked("edge1.pt.lock", "it", "wb", 0)
	local.close()
	# the programs end even if a child has inherited their pipes
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

@test "more than 1024 descriptors; a second try after a constructor that failed" {
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
	# keep the error, and with it the failed object, as an interactive prompt does
	try:
	    ace.Local(mlp(), None, "no-such-program", "edge1", checkpoint="edge1.pt")
	except ace.Error as e:
	    kept = e
	ace.Local(mlp(), None, "cat", "edge1", checkpoint="edge1.pt").close()
	E
	py many.py
}

@test "after Ctrl-C anywhere in sync(), the same call continues, and each value counts once" {
	cat >stop.py <<-'E'
	from common import *
	import signal

	def interrupted(n, function, *args):
	    """Send SIGINT at the n-th line of ace_shards; return whether it came to that."""
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

	@torch.no_grad()
	def add(x):
	    for p in model.parameters():
	        p.add_(x)

	def join():
	    """Join as the script's next start does, with the initial weights."""
	    nn.init.zeros_(model.weight), nn.init.zeros_(model.bias)
	    return ace.Local(model, None, through("edge1"), "edge1", outer_rate=0.5,
	                     checkpoint="edge1.pt")

	local, came = join(), 0
	for n in range(1, 25):
	    add(1)
	    came += interrupted(3 * n, local.sync)
	    if local.gone:
	        with fails("an earlier round of this run failed: call ace.join again"):
	            local.sync()
	        local = join()
	        assert local.round in (n - 1, n)
	        for p in model.parameters():
	            assert p.eq(local.round / 2).all(), (n, local.round, p)
	        add(local.round < n)
	    if local.round < n:
	        local.sync()
	for p in model.parameters():
	    assert p.eq(12).all(), p
	local.close()
	assert 8 < came < 24, came
	E
	cloud 1 24 3>&- &
	py stop.py
	wait
}

@test "parameters without gradient and buffers: a new order is a change, and a buffer may grow" {
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
	first.seen = torch.arange(10.).reshape(5, 2)        # the buffer grew
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

@test "a device with another outer step, number of steps, model or moments is refused" {
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
			says "ace_shards.Error: ace-recv: mismatch: the shard is of run 'train-.*, but spool '.*' is of run 'train-"
			says 'different models, types of parameters, modes or numbers of steps'
		done
		exits 1 train edge2 4 wrong=2
		says 'ace_shards.Error: mismatch: in round 3 this device has model [0-9a-f]{8}, but the others have [0-9a-f]{8}, so the average was not applied: .* Copy a checkpoint that another device wrote after round 3 or later; see ace-pytorch'
		# edge1 and edge3 have sent their shards of round 4 and wait for edge2
		wait_for eval 'test -e spool/3/edge1.aceg'
		cp edge1.pt edge2.pt
		for o in $other; do
			exits 1 train edge2 4 $o
			says "ace_shards.Error: $why: give the old value again"
		done
		exits 0 train edge2 4
		wait
		[ "$(cut -d' ' -f2- one three out | sort | uniq -c | awk '{ print $1, $2 }')" = '3 4' ]
		cd ..
	done <<-'END'
	Local|outer_rate=1 momentum=0.4|outer_(rate|momentum) is (1\.0|0\.4), but checkpoint 'edge2.pt' has 0\.[57]
	Replay|steps=2|mode is replay of AdamW, every=2, but checkpoint 'edge2.pt' has replay of AdamW, every=3
	END
}

@test "of several processes of a device, only process 0 may join" {
	cat >ranks.py <<-'E'
	from common import *

	rank = int(sys.argv[1])
	torch.distributed.init_process_group(
	    "gloo", init_method=f"file://{os.getcwd()}/meet", rank=rank, world_size=2)
	model = mlp()
	ddp = nn.parallel.DistributedDataParallel(model)
	ace.locked.__defaults__ = ("rb", 0.2)
	one = "process 0 may call ace.join: see ace-pytorch(7), Several processes in"
	local = None
	for way in (lambda m: ace.Local(m, None, "cat", "edge1", checkpoint="x.pt"),
	            lambda m: ace.Replay(m, torch.optim.SGD(m.parameters(), lr=.1), "cat",
	                                 "edge2", 1, checkpoint="y.pt")):
	    if rank == 0:
	        local = way(ddp), local
	    torch.distributed.barrier()
	    if rank == 1:
	        with fails("this is process 1 of the 2 processes of one device, but only " + one):
	            way(ddp)
	        # without DDP the second process finds the checkpoint in use
	        with fails("is in use by another process: stop that") as f:
	            way(model)
	        assert "(this is process 1 of the 2 processes of one device" in f.error and one in f.error
	    torch.distributed.barrier()
	print("good")
	E
	py ranks.py 1 >one 3>&- 2>err1 &
	py ranks.py 0 >zero || { cat err1; false; }
	wait $! || { cat err1; false; }
	same one zero
}
