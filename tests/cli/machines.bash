# Simulated machines, for guides whose commands a person types on several machines.  Each has
# its own network, name, /root and /etc/hosts, and Debian's sshd, without passwords.  They
# share /usr/local and reach each other by name; each command has an empty /run.  A test file
# loads helper and netns first.

# the home of the user who runs all commands there
home=/root

# installed: install the programs of $BUILD below $BATS_FILE_TMPDIR/usr, without a build
installed() {
	make -s -C "$ROOT" -o all BUILD="${BUILD#"$ROOT"/}" DEPS=no \
	    DESTDIR="$BATS_FILE_TMPDIR/" PREFIX=usr install
}

# machines CLOUD EDGE...: make these machines, with a cable from each EDGE to CLOUD
machines() {
	local h to=$1
	netns_can || skip 'needs root and network namespaces'
	for h in ssh sshd ssh-keygen unshare tc; do
		needs "$h"
	done
	# the machines' own folders would hide this test's
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

# on NAME CMD...: run CMD on machine NAME, in /root
on() {
	netns_on "$1" unshare --mount --uts ./machine "$1" "$PWD" \
	    "$BATS_FILE_TMPDIR/usr" "${@:2}"
}

# listens_ssh NAME [LINE...]: start its sshd, with these lines of sshd_config
listens_ssh() {
	local h=$1
	shift
	printf '%s\n' "HostKey $PWD/$h.etc/host_key" 'PidFile none' 'UsePAM no' \
	    'PasswordAuthentication no' 'KbdInteractiveAuthentication no' \
	    "$@" >"$h.etc/sshd_config"
	on "$h" "$(command -v sshd)" -f "$PWD/$h.etc/sshd_config" -E "$PWD/$h.etc/sshd.log"
	wait_for on "$h" sh -c "ss -Hltn 'sport = :22' | grep -q ."
}

# knows EDGE CLOUD: give EDGE the host key of CLOUD, so that ssh asks nothing
knows() {
	printf '%s %s\n' "$2" "$(cut -d ' ' -f 1,2 "$2.etc/host_key.pub")" >>"$1/.ssh/known_hosts"
}
# logs_in EDGE CLOUD: give EDGE a key that may run any command on CLOUD
logs_in() {
	knows "$1" "$2"
	on "$1" ssh-keygen -q -t ed25519 -N '' -f .ssh/id_ed25519
	cat "$1/.ssh/id_ed25519.pub" >>"$2/.ssh/authorized_keys"
}

# halt NAME: kill all processes of the machine, as a power failure does
halt() {
	local p
	for p in $(ip netns pids "$NETNS-$1"); do
		kill -9 "$p" 2>/dev/null || true
	done
}
