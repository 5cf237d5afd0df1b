# Machines simulated on this one, for guides whose steps a person runs on several machines.
# Each has its own network, name, /root and /etc/hosts, and Debian's sshd as configured by
# default; they share one /usr/local, and each command has an empty /run.  They reach each
# other by name.  A test file loads helper and netns first.

# all commands there run as the user with this home
home=/root

# installed: installs the programs of $BUILD below $BATS_FILE_TMPDIR/usr without building
# them again.
installed() {
	make -s -C "$ROOT" -o all BUILD="${BUILD#"$ROOT"/}" DEPS=no \
	    DESTDIR="$BATS_FILE_TMPDIR/" PREFIX=usr install
}

# machines CLOUD EDGE...: makes them, with a cable from each EDGE to CLOUD.
machines() {
	local h to=$1
	netns_can || skip 'needs root and network namespaces'
	for h in ssh sshd ssh-keygen unshare tc; do
		needs "$h"
	done
	# each machine's own folders hide ours of that name
	case $PWD/ in
	"$home"/* | /usr/local/* | /run/*) skip "TMPDIR is in a folder that machines have of their own" ;;
	esac
	netns_up "$@"
	printf '127.0.0.1 localhost\n' >hosts
	for h in "$@"; do
		mkdir -p "$h/.ssh" "$h.etc"
		chmod 700 "$h" "$h/.ssh"
		ssh-keygen -q -t ed25519 -N '' -f "$h.etc/host_key"
		[ "$h" = "$to" ] || {
			netns_link "$to" "$h" 1000mbit
			printf '%s %s\n' "$(netns_ip "$h" "$to")" "$h" >>hosts
			cp hosts "$h.etc/"
			printf '%s %s\n' "$(netns_ip "$to" "$h")" "$to" >>"$h.etc/hosts"
		}
	done
	cp hosts "$to.etc/"
	cat >machine <<-'END'
		#!/bin/sh -e
		# machine NAME DIR USR CMD...
		name=$1 dir=$2 usr=$3
		shift 3
		hostname "$name"
		mount --make-rprivate /
		mount --bind "$usr" /usr/local
		mount --bind "$dir/$name.etc/hosts" /etc/hosts
		mount --bind "$dir/$name" /root
		mount -t tmpfs none /run
		mkdir -m 755 /run/sshd
		cd /root
		exec env -i HOME=/root USER=root LANG=C.UTF-8 TERM=dumb TMPDIR=/tmp \
		    PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin "$@"
	END
	chmod 755 machine
}

# on NAME CMD...: runs CMD on machine NAME, in /root.
on() {
	netns_on "$1" unshare --mount --uts ./machine "$1" "$PWD" \
	    "$BATS_FILE_TMPDIR/usr" "${@:2}"
}

# listens_ssh NAME [LINE of sshd_config...]: starts its sshd.
listens_ssh() {
	local h=$1
	shift
	printf '%s\n' "HostKey $PWD/$h.etc/host_key" 'PidFile none' 'UsePAM no' \
	    'PasswordAuthentication no' 'KbdInteractiveAuthentication no' \
	    "$@" >"$h.etc/sshd_config"
	on "$h" "$(command -v sshd)" -f "$PWD/$h.etc/sshd_config" -E "$PWD/$h.etc/sshd.log"
	wait_for on "$h" sh -c "ss -Hltn 'sport = :22' | grep -q ."
}

# knows EDGE CLOUD: gives EDGE the host key of CLOUD, so that ssh asks nothing.
knows() {
	printf '%s %s\n' "$2" "$(cut -d ' ' -f 1,2 "$2.etc/host_key.pub")" >>"$1/.ssh/known_hosts"
}
# logs_in EDGE CLOUD: gives EDGE a key that may run any command on CLOUD.
logs_in() {
	knows "$1" "$2"
	on "$1" ssh-keygen -q -t ed25519 -N '' -f .ssh/id_ed25519
	cat "$1/.ssh/id_ed25519.pub" >>"$2/.ssh/authorized_keys"
}

# halt NAME: stops the machine as a power failure would.
halt() {
	local p
	for p in $(ip netns pids "$NETNS-$1"); do
		kill -9 "$p" 2>/dev/null || true
	done
}
