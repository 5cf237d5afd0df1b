#!/bin/bash
# Train a small language model with four edges, a relay and a cloud, each in its own network
# namespace on this machine, over ssh with ace cloud, ace relay and ace edge.  The links have
# different rates.  During the run an edge and the relay are killed and started again.
# At the end check that all edges have the same model, and that no input was lost.
#
#             5 Mbit/s               100 Mbit/s
#     edge1 ----------.                              50 Mbit/s
#                      relay ------------- cloud ---------------- edge3
#     edge2 ----------'                      '------------------- edge4
#            20 Mbit/s                               200 Mbit/s
#
#   examples/demo-hosts.sh      make demo-hosts; as root
#
# CORPUS=FILE  text of your own; default: that of text.sh, the same everywhere
# STEPS=N      training steps        SHORT=1  a few, to see that it works
# PROGRESS=T   in a pipe, seconds between lines of progress (8)
# KEEP=DIR     keep all files, such as spools and states, in DIR
set -u
export LC_ALL=C
here=$(cd "$(dirname "$0")/.." && pwd)
bin=${BUILD:-$here/build}
export PATH=$PATH:/usr/sbin:/sbin

name=demo-hosts
# shellcheck source=examples/progress.sh
. "$here/examples/progress.sh"

# Run this script again in new namespaces: processes, mounts and networks end with it.
if [ "${1:-}" != inside ]; then
	[ "$(id -u)" -eq 0 ] || die 'making network namespaces needs root: run this as root'
	for p in ssh sshd ssh-keygen ip tc unshare "$bin/examples/train" \
	    "$bin/ace-recv"; do
		command -v "$p" >/dev/null || die "program missing: $p: run make and make examples, or install openssh, iproute2, util-linux"
	done
	if [ -n "${CORPUS:-}" ]; then
		CORPUS=$(realpath -e "$CORPUS") || exit 4
		export CORPUS
	fi
	if [ -n "${KEEP:-}" ]; then
		mkdir "$KEEP" && work=$(realpath "$KEEP") || exit 4
	else
		work=$(mktemp -d "${TMPDIR:-/tmp}/ace-hosts.XXXXXX") || exit 4
		trap 'rm -rf "$work"' EXIT
	fi
	trap 'kill $!; wait $!; exit 143' INT TERM HUP
	timeout -k 10 3600 unshare --mount --net --pid --fork --kill-child --mount-proc \
	    "$0" inside "$work" &
	wait $! || {
		code=$?
		[ "$code" -ne 124 ] || echo 'demo-hosts: ended after one hour without a result' >&2
		exit "$code"
	}
	exit
fi
# In the new namespaces, mount the folders that we read and write at paths that sshd accepts.
mount -t tmpfs none /run && mkdir -m 755 /run/sshd /run/work /run/tree /run/bin &&
    mount --bind "$2" /run/work && mount --bind "$here" /run/tree &&
    mount --bind "$bin" /run/bin && cd /run/work || exit 4
work=/run/work here=/run/tree bin=/run/bin
PATH=$bin:$bin/examples:$PATH

# for netns_up, netns_link, netns_ip, netns_on
NETNS=ace
# shellcheck source=tests/cli/netns.bash
. "$here/tests/cli/netns.bash"

steps=${STEPS:-$([ -n "${SHORT:-}" ] && echo 120 || echo 300)}
edges='edge1 edge2 edge3 edge4'
declare -A above=([edge1]=relay [edge2]=relay [edge3]=cloud [edge4]=cloud
    [relay]=cloud)
declare -A speaks=([relay]=2)
declare -A rate=([edge1]=5 [edge2]=20 [edge3]=50 [edge4]=200 [relay]=100)
export OPENBLAS_NUM_THREADS=1

# ---- the network ----

# connect HOST: connect it to the host above it with a cable, an ssh key and an ssh address
connect() {
	local h=$1 to=${above[$1]}
	mkdir -p "$h/bin" "$h/in" "$to"
	[ -e "$to/run" ] || mkdir -m 700 "$to/run"
	netns_link "$to" "$h" "${rate[$h]}mbit"
	ssh-keygen -q -t ed25519 -N '' -C "$h" -f "$h/key"
	ace add "$to/run" "$h" "$h/key.pub" --devices "${speaks[$h]:-1}" >>"$to/keys"
	[ -e "$to/host_key" ] ||
	    ssh-keygen -q -t ed25519 -N '' -f "$to/host_key"
	printf '%s %s\n' "$to" "$(cut -d ' ' -f 1,2 "$to/host_key.pub")" >"$h/known"
	cat >"$h/ssh_config" <<-END
		Host $to
			HostName $(netns_ip "$to" "$h")
			HostKeyAlias $to
			User root
			IdentitiesOnly yes
			UserKnownHostsFile $work/$h/known
			StrictHostKeyChecking yes
			BatchMode yes
			ConnectTimeout 5
			ServerAliveInterval 5
			ServerAliveCountMax 3
	END
	printf '#!/bin/sh\nexec %s -F %s -i %s/key "$@"\n' \
	    "$(command -v ssh)" "$work/$h/ssh_config" "$work/$h" >"$h/bin/ssh"
	chmod +x "$h/bin/ssh"
}

# on HOST CMD...: run CMD in HOST's network namespace, with HOST's ssh
on() {
	local h=$1
	shift
	netns_on "$h" env PATH="$work/$h/bin:$PATH" "$@"
}

# serve HOST: start sshd unless it runs
serve() {
	[ ! -e "$1/sshd.pid" ] || return 0
	cat >"$1/sshd_config" <<-END
		HostKey $work/$1/host_key
		AuthorizedKeysFile $work/$1/keys
		PidFile $work/$1/sshd.pid
		StrictModes no
		UsePAM no
		PasswordAuthentication no
		KbdInteractiveAuthentication no
		PermitRootLogin prohibit-password
		SetEnv "PATH=$PATH"
	END
	on "$1" "$(command -v sshd)" -f "$work/$1/sshd_config" -E "$work/$1/sshd.log"
}

# ---- the hosts ----

# boot HOST: start its programs as at boot
boot() {
	local h=$1
	case $h in
	cloud)
		serve cloud
		on cloud ace cloud cloud/run --devices 3 --rounds "$rounds" \
		    --quorum 2 --deadline 5s
		;;
	relay)
		serve relay
		on relay ace relay cloud:run relay/run --name relay --devices 2 \
		    --events relay/events
		;;
	*)
		on "$h" ace edge "${above[$h]}:run" --name "$h" --state "$h/run" \
		    --events "$h/events" -- \
		    train --index "${h#edge}" --of 4 --run demo \
		    --steps "$steps" --rate 0.007 --interval 10 \
		    --resume "$h/kept" --record "$h/in" --apply - \
		    --progress "$h/progress" --save "$h/model" --eval --windows 64 --log "$h/log" "$text"
		;;
	esac >>"$h/messages" 2>&1
}

declare -A pid=() born=()

start() {
	local h
	for h; do
		boot "$h" &
		pid[$h]=$!
		born[$h]=$((${born[$h]:-0} + 1))
	done
}

# crash HOST: kill all its processes, as when the power fails
crash() {
	local p
	for p in $(ip netns pids "$NETNS-$1"); do
		kill -9 "$p"
	done
	wait "${pid[$1]}"
	rm -f "$1/sshd.pid"
} 2>/dev/null

# reached N: succeed if the cloud has made the average of step N, counted from 0
reached() { [ -e "cloud/run/spool/$1/aggregate.aceg" ]; }

# until_reached N: wait for round N, or until the run makes no more progress
until_reached() {
	local n=1200 step was=
	until reached "$1"; do
		[ $((n -= 1)) -gt 0 ] ||
		    die "round $(($1 + 1)) was not reached: nothing changed for 2 minutes"
		if [ $((n % 5)) -eq 0 ]; then
			now
			[ ! -s edge1/progress ] || read -r step _ <edge1/progress
			[ "${step:-}" = "$was" ] || n=1200 was=$step
		fi
		sleep 0.1
	done
}

say() {
	untell
	told=$SECONDS what=$*
	echo "demo-hosts: ${SECONDS}s: $*" >&2
}

# now: print the progress since the training began
now() { tell "demo-hosts: ${SECONDS}s: $what" edge1/progress "${began:-0}"; }

# pause SECS: sleep; wait_for PID: wait, and return its status
pause() {
	local i
	for ((i = 0; i < $1; i++)); do
		now
		sleep 1
	done
}
wait_for() {
	while kill -0 "$1" 2>/dev/null; do
		now
		sleep 0.5
	done
	untell
	wait "$1"
}

# ---- the results ----

# wire HOST: print the bytes sent and received on its cable, with headers of ssh and TCP
wire() {
	ip -n "$NETNS-$1" -s link show "to-${above[$1]}" |
	    awk '/RX:/ { getline; down = $1 } /TX:/ { getline; up = $1 }
		END { print up, down }'
}

# verdicts HOST WORD: print the number of rounds that have a receipt with this result
verdicts() {
	sed -n 's/.*"event":"receipt".*"round":\([0-9]*\),"result":"'"$2"'".*/\1/p' \
	    "$1/events" | sort -u | wc -l
}

# balance HOST: check that all inputs of HOST are in its state or at the host above it
balance() {
	[ "$1" != relay ] || relay_inputs
	ace-inspect audit -S "$1/run/state" --spool "${above[$1]}/run/spool" \
	    "$1"/in/* || die "the audit of $1's state and ${above[$1]}'s spool failed, see above"
}

# relay_inputs: make the relay's inputs: the mean of the shards of each round in its spool
relay_inputs() {
	local d
	for d in relay/run/spool/[0-9]*; do
		now
		ace-aggregate --device relay -o "relay/in/${d##*/}" "$d"/edge*.aceg ||
		    die "cannot average the relay's shards in '$d'"
	done
	untell
}

of() { awk -v what="$1" -v n="$2" '$1 == what { print $n }' edge1/log; }

table() {
	local h up down was
	printf '%-6s %8s %11s %11s %8s %5s %4s %6s\n' host Mbit/s \
	    'bytes up' 'bytes down' accepted twice late starts
	for h in $edges relay; do
		read -r up down < <(wire "$h")
		read -r -a was <"$h/wire"
		printf '%-6s %8s %11s %11s %8s %5s %4s %6s\n' "$h" \
		    "${rate[$h]}" $((up - was[0])) \
		    $((down - was[1])) "$(verdicts "$h" accepted)" \
		    "$(verdicts "$h" duplicate)" "$(verdicts "$h" late)" \
		    "${born[$h]}"
	done
	printf 'validation loss %s, top-1 %s %%; untrained %s; a count of bytes %s\n' \
	    "$(of end 4)" "$(of end 6)" "$(of start 4)" "$(of unigram 4)"
	cat <<-'END'

	accepted: its shards in an average.
	twice: came once more, as the receipt was lost with a host that was killed, and
	were not added again.  late: came when their round was closed; went back into
	the residual, and left with a later one.  starts: how often the host began.
	END
}

# ---- the run ----

trap 'exit 143' INT TERM HUP
trap '[ $? -eq 0 ] || tail -n 5 */messages >&2' EXIT
text=${CORPUS:-text}
[ -n "${CORPUS:-}" ] || "$here/examples/text.sh" >text || exit
# shellcheck disable=SC2086 # word splitting is intended
netns_up cloud relay $edges || die 'cannot make the network namespaces'
for h in relay $edges; do
	connect "$h" || die "cannot set up ssh for host $h"
done
for h in relay $edges; do
	wire "$h" >"$h/wire"
done

say 'training'
began=$SECONDS
rounds=$(((steps + 9) / 10))
for h in cloud relay; do
	start $h
	for ((n = 600; n > 0; n--)); do
		[ ! -e $h/run/run ] || break
		sleep 0.1
	done
done
# shellcheck disable=SC2086
start $edges
until_reached $((rounds / 4))
crash edge3
say "edge3 is dead, after round $((rounds / 4 + 1))"
pause 7
start edge3
say 'edge3 is back'
until_reached $((rounds / 2))
crash relay
say "the relay is dead, after round $((rounds / 2 + 1))"
pause 7
start relay
say 'the relay is back'
for h in $edges; do
	wait_for "${pid[$h]}" || die "host $h failed: its messages follow"
done
say "done: $(of end 2) rounds"
for h in edge2 edge3 edge4; do
	cmp edge1/model $h/model || die "edge1 and $h have different models"
done
say 'all hold the same model; now checking that no value was lost'
for h in $edges relay; do
	balance "$h"
done
table >report && cat report || status=4 die 'the table cannot be written'
