# Simulated hosts for tests of network programs: namespaces for network, processes and
# mounts.  They and their processes end with the test, and no system file changes.

# need COMMAND...: skip the test if one is missing, or if namespaces are not permitted
need() {
	local p
	[ "$(id -u)" -eq 0 ] || skip 'name spaces need root'
	for p; do
		needs "$p"
	done
	unshare --net --mount --pid --fork --mount-proc true ||
	    skip 'no name spaces here'
}

# apart: make the namespaces.  `on CMD...' runs CMD in them, in this directory, for at most
# HANG seconds.
apart() {
	need unshare nsenter ip
	mkdir bin
	# names are looked up only if there is an address beside lo
	unshare --net --mount --pid --uts --fork --kill-child --mount-proc \
	    sh -ec 'mount -t tmpfs none /run
	    mount -t tmpfs none /srv
	    mkdir -m 755 /run/sshd
	    hostname localhost
	    ip link set lo up
	    ip link add net0 type veth peer name net1
	    ip addr add 192.0.2.1/24 dev net0
	    ip link set net0 up
	    ip link set net1 up
	    : >ready
	    exec sleep infinity' >/dev/null 2>&1 3>&- &
	keeper=$!
	disown
	wait_for test -e ready
	inside=$(ps -o pid= --ppid $keeper)
	inside=${inside// /}
}

on() {
	nsenter -t "$inside" -n -m -p -u --wd="$PWD" -- timeout "$HANG" \
	    env PATH="$PWD/bin:$ROOT/examples/hosts:$PATH" "$@"
}

teardown() {
	[ -z "${keeper:-}" ] || kill -9 "$inside" "$keeper"
}

# listens PORT: succeed if a process listens on PORT
listens() {
	on ss -Hltn "sport = :$1" | grep -q .
}

# script NAME: put the script on standard input into the PATH of all hosts
script() {
	{
		echo '#!/bin/bash'
		cat
	} >"bin/$1"
	chmod +x "bin/$1"
}

# host NAME ADDRESS [AUTHORIZED_KEYS]: start an sshd that ssh knows as NAME, and in whose
# sessions $HOST is NAME
host() {
	local d=$PWD/$1
	mkdir -p "$d"
	on ssh-keygen -q -t ed25519 -N '' -f "$d/key"
	cat >"$d/sshd_config" <<-END
		ListenAddress $2:22
		HostKey $d/key
		PidFile none
		AuthorizedKeysFile ${3:-$PWD/ssh/user.pub}
		StrictModes no
		UsePAM no
		PasswordAuthentication no
		KbdInteractiveAuthentication no
		PermitRootLogin prohibit-password
		SetEnv "PATH=$PWD/bin:$PATH" "HOME=$d" HOST=$1
	END
	printf 'Host %s\n\tHostName %s\n' "$1" "$2" >>ssh/hosts
	printf '%s %s\n' "$2" "$(cut -d ' ' -f 1,2 "$d/key.pub")" >>ssh/known
	on "$(command -v sshd)" -f "$d/sshd_config" -E "$d/log"
	wait_for on nc -z "$2" 22
}

# slurm_ready: start a controller and three nodes, with munge, in the directory slurm
slurm_ready() {
	local name n d=$PWD/slurm
	name=$(on hostname)
	mkdir -p slurm/state
	dd if=/dev/urandom bs=128 count=1 2>/dev/null >slurm/munge.key
	chmod 600 slurm/munge.key
	on munged --force --key-file="$d/munge.key" --socket=/run/munge.socket \
	    --pid-file=/run/munge.pid --log-file="$d/munge.log" \
	    --seed-file="$d/munge.seed"
	cat >slurm/slurm.conf <<-END
		ClusterName=test
		SlurmctldHost=$name(127.0.0.1)
		SlurmUser=root
		SlurmctldPort=16817
		SlurmdPort=16818
		AuthType=auth/munge
		AuthInfo=socket=/run/munge.socket
		CryptoType=crypto/munge
		ProctrackType=proctrack/pgid
		TaskPlugin=task/none
		MpiDefault=none
		MessageTimeout=100
		ReturnToService=2
		SlurmctldPidFile=/run/slurmctld.pid
		SlurmdPidFile=/run/slurmd.%n.pid
		SlurmctldLogFile=$d/slurmctld.log
		SlurmdLogFile=$d/%n.log
		SlurmdSpoolDir=$d/%n
		StateSaveLocation=$d/state
		SchedulerType=sched/backfill
		SelectType=select/cons_tres
		SelectTypeParameters=CR_Core
		NodeName=node[1-3] NodeHostname=$name NodeAddr=127.0.0.1 Port=[16821-16823] CPUs=1
		PartitionName=all Nodes=ALL Default=YES State=UP
	END
	export SLURM_CONF=$d/slurm.conf
	on slurmctld -c
	for n in 1 2 3; do on slurmd -N node$n; done
	wait_for idle
}

idle() { [ "$(on sinfo -h -N -t idle -o %N | wc -l)" -eq 3 ]; }
