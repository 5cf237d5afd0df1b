# A run of ace-cloud and ace-edge whose trainer only sends a number.

# The trainer: in each round it sends a shard of 4,096 times the device's number, and appends
# the average to NAME.got.
setup_file() {
	cat >"$BATS_FILE_TMPDIR/trainer" <<'END'
#!/usr/bin/env python3
# trainer VALUE ROUNDS: continue after the rounds in NAME.got
import os, struct, subprocess, sys
value, rounds, name = float(sys.argv[1]), int(sys.argv[2]), os.environ["ACE_NAME"]
try:
    begun = sum(1 for _ in open(name + ".got"))
except FileNotFoundError:
    begun = 0
def shard(step):
    raw = struct.pack("<4096f", *[value] * 4096)
    head = b'{"w":{"dtype":"F32","shape":[4096],"data_offsets":[0,16384]}}'
    head += b" " * (-len(head) % 8)
    return len(head).to_bytes(8, "little") + head + raw
into = subprocess.Popen(["ace-import", "--many", "-k", "delta", "-d", name, "-s",
    str(begun)], stdin=subprocess.PIPE, stdout=1)
back = subprocess.Popen(["ace-export", "--many"], stdin=0, stdout=subprocess.PIPE)
for step in range(begun, rounds):
    into.stdin.write(shard(step))
    into.stdin.flush()
    n = int.from_bytes(back.stdout.read(8), "little")
    if n == 0:
        sys.exit(1)
    back.stdout.read(n)
    got = struct.unpack("<4096f", back.stdout.read(16384))
    with open(name + ".got", "a") as f:
        f.write("%g\n" % got[0])
into.stdin.close()
sys.exit(into.wait())
END
	chmod 755 "$BATS_FILE_TMPDIR/trainer"
}

setup() {
	cd "$BATS_TEST_TMPDIR" || return
	export train=$BATS_FILE_TMPDIR/trainer
}

# begin CMD...: start CMD in the background until the test ends
begin() {
	"$@" 3>&- &
	echo $! >>pids
	last=$!
}
teardown() {
	[ ! -e pids ] || xargs kill <pids 2>/dev/null || true
	wait
}

cloud() {
	begin ace cloud "$@" >cloud.out 2>cloud.err
	export pid_cloud=$last
	wait_for test -e "$1/run"
}
edge() {
	local name=$1 value=$2 rounds=$3
	shift 3
	begin ace edge run --name "$name" "$@" -- "$train" "$value" "$rounds" \
	    >"$name.out" 2>"$name.err"
	eval "pid_$name=$last"
}
# ends NAME...: wait until these devices end, and check that they print that they are done
ends() {
	local name pid
	for name; do
		pid=pid_$name
		wait_for eval "! kill -0 ${!pid}"
		grep -q 'done: ' "$name.err" || { tail "$name.err"; return 1; }
	done
}
lines() { [ ! -e "$1" ] && echo 0 || grep -c '' "$1"; }
has() { [ "$(lines "$1")" -ge "$2" ]; }
# averaged NAME ROUNDS VALUE: check that NAME got ROUNDS averages, all equal to VALUE
averaged() {
	[ "$(lines "$1.got")" -eq "$2" ]
	awk -v want="$3" '{ d = $1 - want; if (d * d > 0.01) exit 1 }' "$1.got"
}
