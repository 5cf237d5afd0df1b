#!/bin/bash
# Sourced by mqtt.sh and store.sh: a connection made of messages that a server stores
# until they are taken.  Those scripts define `put NAME', which sends standard input as
# one message, and `get NAME', which waits at most $WAIT seconds for a message, prints it
# and removes it.  The names of a device's messages begin with the device's name, so
# whoever may write there may act as the device.
set -u
WAIT=${WAIT:-600}
work=$(mktemp -d) || exit 4
trap 'rm -rf "$work"' EXIT
trap 'exit 143' INT TERM HUP

# Print the number of bytes that have come, about 8 MB at most, 0 at the end; then these bytes.
piece='vec($r, 0, 1) = 1;
    do { $n = sysread(STDIN, $b, 1 << 20, length $b) }
    while ($n && length $b < 8 << 20 && select($q = $r, undef, undef, 0.1));
    print length $b, "\n", $b'

# up NAME: send standard input as messages NAME/0, NAME/1, ...
up() {
	local n=0 size="" m=$work/up
	while [ "$size" != 0 ]; do
		perl -e "$piece" >"$m" && read -r size <"$m" || return
		until put "$1/$n" <"$m"; do sleep 1; done
		n=$((n + 1))
	done
}

# down NAME: receive the messages of `up' and print their contents
down() {
	local n=0 size="" m=$work/down
	while [ "$size" != 0 ]; do
		get "$1/$n" >"$m" && read -r size <"$m" || return
		tail -n +2 "$m"
		n=$((n + 1))
	done
}

# edge NAME WHAT [ID]: connect device NAME to the cloud
edge() {
	local session
	session=$(date +%s)-$$
	echo "$session" | put "$1/session" || return
	{ echo "$@"; exec cat; } | up "$1/$session/up" &
	down "$1/$session/down"
}

# serve DIR DEVICE: serve the device; a new session of the device ends its previous one.  Call
# it with &.  `get' runs in the background, since a signal would be handled only after it.
serve() {
	local session last="" got="" job
	work=$(mktemp -d "$work/XXXXXX") || exit
	set -m
	trap 'for job in $last $got; do kill -- "-$job"; done 2>/dev/null; exit 143' INT TERM HUP
	while :; do
		get "$2/session" >"$work/session" &
		got=$!
		wait "$got" || { sleep 1; continue; }
		session=$(cat "$work/session")
		[ -z "$last" ] || kill -- "-$last" 2>/dev/null
		down "$2/$session/up" | ace-cloud serve "$1" "$2" |
		    up "$2/$session/down" &
		last=$!
	done
}

# cloud DIR DEVICE...: serve these devices until a signal comes
cloud() {
	local dir=$1 device
	for device in "${@:2}"; do
		serve "$dir" "$device" &
	done
	trap 'kill $(jobs -p); exit 143' INT TERM HUP
	wait
}
