# ace.join of examples/pytorch/ace_shards: each row of the table SITUATIONS in ace-pytorch(7),
# with two devices and a cloud; and runs that are killed.
# bats file_tags=long,plain
load helper
patient
load pytorch

@test "ace-pytorch(7), SITUATIONS: each row is true" {
	py "$TRAINERS/situations.py" page >said 2>err || { cat said err; false; }
	sed 's/^/# /' said >&3
	# statistics that stay local differ between the devices
	[ "$(sort -u own | wc -l)" -eq 2 ]
	# the page has exactly these rows
	sed 's/^ok //; s/ *$//' said | sort >have
	sed -n '/^\.Sh SITUATIONS/,/^\.Sh /p' "$ROOT/man/ace-pytorch.7" |
	    sed -n '/^\.It$/{n;p;}' | sort >page
	diff page have
}

# starts [OPTION...]: start a cloud for two devices in the folder `run'
starts() {
	timeout "$HANG" ace-cloud run --devices 2 --bits 8 -q "$@" 3>&- &
	wait_for test -e run/run
}

# as_command K: run resumed.py as COMMAND of ace edge for device edgeK; write outK and errK
as_command() {
	timeout "$HANG" ace-edge run --name edge$1 -- "$PYTHON" resumed.py edge$1 \
	    >out$1 2>err$1 3>&-
}

@test "the devices of runs that are killed, resumed or unusual end with the same model" {
	py "$TRAINERS/situations.py" others >said 2>err || { cat said err; false; }
	sed 's/^/# /' said >&3
}

# trainer: write resumed.py, which takes a device's name
trainer() {
	cat >resumed.py <<-'E'
	import time
	from common import *

	ace = ace_shards
	name = sys.argv[1]
	m = nn.Sequential(nn.Linear(20, 30), nn.BatchNorm1d(30), nn.ReLU(), nn.Linear(30, 5))
	o = torch.optim.AdamW(m.parameters(), lr=1e-2)
	print("what the script prints goes elsewhere")
	with ace.join(m, o, "run", name=name, every=3) as run:
	    n = 3 * run.round
	    while not run.done:
	        while "LATE" in os.environ and not os.path.exists("run/spool/3"):
	            open("here", "w").close()
	            time.sleep(0.1)
	        o.zero_grad()
	        loss(m, name, n).backward()
	        o.step()
	        n += 1
	if run.last or name == "edge1":         # ace-edge reports the bytes of a round
	    assert min(run.last[k] for k in ("bytes", "received")) > 99, run.last
	    assert run.last["participants"] in (1, 2), run.last
	with open(f"{name}.end", "w") as f:
	    print(run.round, run.digest(), [p.sum().item() for p in m.parameters()], file=f)
	E
}

@test "a script as COMMAND of ace edge: from the first round, late, and slow in the middle" {
	trainer
	starts --rounds 6 --quorum 1 --deadline 0.2s
	as_command 1 &
	wait_for eval 'test -e run/spool/2'
	as_command 2 || { cat err1 err2; false; }
	wait
	same edge1.end edge2.end
	grep -q 'passed without this device: .* with the model of the others' err2
	grep -qx 'what the script prints goes elsewhere' err1
	[ ! -s out1 ]
	[ ! -s out2 ]
	rm -rf run ace-* ./*.end
	starts --rounds 6 --quorum 1 --deadline 0.2s
	LATE=1 as_command 2 &
	wait_for test -e here
	as_command 1
	wait $! || { cat err2; false; }
	same edge1.end edge2.end
	grep -q 'the average of round 1 is without this device.s shard' err2
	grep -q 'rounds 2 to [3-6] passed without this device' err2
}

@test "moment=True gives a layer with large gradients more bits, from the second round on" {
	cat >moment.py <<-'E'
	from common import *

	ace = ace_shards
	# the layers' gradients differ by a factor of 100, but Adam's steps do not
	m = nn.ParameterDict({n: nn.Parameter(torch.randn(64, 64)) for n in ("large", "small")})
	o = torch.optim.AdamW(m.parameters(), 1e-2)
	with ace.join(m, o, sys.argv[1], dir=f"ace-{sys.argv[1]}", name="edge1", every=4,
	              moment=sys.argv[1] == "moment") as run:
	    while not run.done:
	        o.zero_grad()
	        x, y = torch.randn(2, 32, 64)
	        (x @ (m["large"] + m["small"] / 100) - y).square().sum().backward()
	        o.step()
	E
	for how in plain moment; do
		timeout "$HANG" ace-cloud $how --devices 1 --rounds 2 --bits 2 -q 3>&- &
		wait_for eval "test -e $how/run"
		py moment.py $how
		wait
		for round in 0 1; do
			ace-inspect $how/spool/$round/edge1.aceg |
			    awk '$1 == "large" { large = $6 } $1 == "small" { print large / $6 }'
		done >$how.shares
	done
	# the first round has no moments yet
	paste -d' ' plain.shares moment.shares | tee shares
	awk 'NR == 1 && $1 != $2 || NR == 2 && !($1 < 1.2 && $2 > 2) { exit 1 }' shares
}
