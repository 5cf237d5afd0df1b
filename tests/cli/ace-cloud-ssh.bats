# ace cloud and ace edge on several machines, over ssh: network name spaces with real
# sshd, machine names and absolute paths.
# shellcheck disable=SC2154 # front.bash sets train and last
load helper
load netns
load front
load machines
eval "front_$(declare -f setup_file)"

setup_file() {
	front_setup_file
	installed
}
teardown() {
	[ ! -e pids ] || xargs kill <pids 2>/dev/null || true
	netns_down
	wait
}

# world: make a cloud, and two devices with a trainer
world() {
	machines cloud edge1 edge2
	for h in edge1 edge2; do
		cp "$BATS_FILE_TMPDIR/trainer" $h/
	done
}
# start NAME CMD...: run CMD in the background; its messages go to NAME.err
start() {
	begin on "$@" >>"$1.out" 2>>"$1.err"
	eval "pid_$1=$last"
}
got() { averaged "$1/$1" "$2" "$3"; }

@test "one cloud and two devices over ssh, killed and started again" {
	world
	listens_ssh cloud
	for h in edge1 edge2; do
		logs_in $h cloud
	done
	start cloud ace cloud run --devices 2 --rounds 60 --bits 8
	wait_for grep -q "on each device: ace edge cloud:$home/run" cloud.err
	start edge1 ace edge root@cloud:run -- ./trainer 1 60
	start edge2 ace edge cloud:run -- "$home/trainer" 3 60
	wait_for has edge1/edge1.got 4
	# the cloud is down for a while, and the devices reconnect
	halt cloud
	wait_for grep -q 'failed: [^a]' edge1.err
	wait_for grep -q 'failed: [^a]' edge2.err
	listens_ssh cloud
	start cloud ace cloud run
	wait_for has edge1/edge1.got 8
	# the power fails on all three machines, and the same commands are run again
	halt cloud
	halt edge1
	halt edge2
	wait
	[ "$(lines edge1/edge1.got)" -lt 60 ]
	listens_ssh cloud
	start cloud ace cloud run
	start edge1 ace edge root@cloud:run -- ./trainer 1 60
	start edge2 ace edge cloud:run -- "$home/trainer" 3 60
	ends edge1 edge2 cloud
	got edge1 60 2
	got edge2 60 2
	# each side names the host, and the path on that host
	grep -qF "ace-cloud: run in cloud:$home/run: 2 devices" cloud.err
	for h in edge1 edge2; do
		grep -qF "ace-edge: device '$h' of the run in cloud:$home/run: 2 devices, 8 bits per value; its folder is $home/ace-$h" $h.err
	done
}

@test "a key that is restricted to one device, and a banner of sshd" {
	world
	printf 'Authorized use only.\n\nround 1: 9 of 9 devices\n' >cloud.etc/banner
	listens_ssh cloud "Banner $PWD/cloud.etc/banner"
	start cloud ace cloud run --devices 2 --rounds 3 --bits 8
	wait_for grep -q 'on each device' cloud.err
	for h in edge1 edge2; do
		knows $h cloud
		on $h ssh-keygen -q -t ed25519 -N '' -f .ssh/id_ed25519
		cp $h/.ssh/id_ed25519.pub cloud/$h.pub
		on cloud sh -c "ace add run $h $h.pub >>.ssh/authorized_keys"
	done
	# the server takes the device's name from the key, not from the client's command
	exits 2 on edge1 ssh cloud touch planted
	exits 0 on edge1 ace edge cloud:elsewhere --name edge2 --state no --print -- true
	grep -q -e '--bits 8 ' out
	rm -r edge1/no
	exits 0 on cloud ace remove run edge1
	on cloud sh -c 'ace add run edge1'
	[ ! -e cloud/planted ]
	start edge1 ace edge cloud:run -- ./trainer 1 3
	start edge2 ace edge cloud:run -- ./trainer 3 3
	ends edge1 edge2 cloud
	got edge1 3 2
	# ssh's banner is shown at the first connection only, and is not taken for the run's data
	[ "$(grep -c 'Authorized use only' edge1.err)" -eq 1 ]
	! grep -q '^ace-edge: .*9 of 9' edge1.err || false
}

@test "a failed connection to the cloud is reported with the host's name" {
	world
	exits 4 on edge1 ace edge cloud:run -- ./trainer 1 1
	says "the cloud 'cloud' was not reached"
	listens_ssh cloud
	logs_in edge1 cloud
	exits 4 on edge1 ace edge nowhere:run -- ./trainer 1 1
	says "the cloud 'nowhere' was not reached"
	exits 2 on edge1 ace edge cloud:run -- ./trainer 1 1
	says "folder 'cloud:$home/run' is absent"
	echo 'echo Hello and welcome' >cloud/.bashrc
	start cloud ace cloud run --devices 1 --rounds 1
	wait_for grep -q 'on each device' cloud.err
	exits 3 on edge1 ace edge cloud:run -- ./trainer 1 1
	says "'cloud' answers 'Hello and welcome', expected"
}

@test "ace-quickstart(7): its commands work on two machines; README has the same commands" {
	/usr/bin/python3 -c 'import numpy' || skip 'no numpy here'
	literals <"$ROOT/man/ace-quickstart.7" | grep . >lines
	[ "$(wc -l <lines)" -eq 5 ]
	has_lines README.md <lines
	machines cloud laptop
	listens_ssh cloud
	logs_in laptop cloud
	sed -n 1,3p lines >cloud/typed
	sed -n 4,5p lines >laptop/typed
	begin on cloud bash -eu typed >cloud.out 2>cloud.err
	wait_for grep -q 'on each device' cloud.err
	start laptop bash -eu typed
	ends laptop
	wait_for grep -q 'ace-edge: done: 50 rounds' cloud.err
	grep -ohE '(cloud|laptop): 50 rounds, .*model [0-9a-f]{8}' cloud.err laptop.err |
	    sed 's/.*model //' | sort | uniq -c | grep -qE '^ *2 '
}
