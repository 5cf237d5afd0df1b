#!/bin/sh
# One step of an edge through netcat inside spiped (spiped-cloud.sh is the other
# end):
#
#   spiped-edge.sh HOST KEY STATE [CODEC] <gradient.aceg
#
# spiped listens on a socket that only we can open.  Status 0 when there is a
# receipt; anything else: run the same line again.
set -eu
host=$1 key=$2 state=$3 codec=${4:-topk:0.01}

. "$(dirname "$0")/plain.sh"
plain HOST "$host" :

dir=$(mktemp -d)
trap '[ ! -e "$dir/pid" ] || kill "$(cat "$dir/pid")" || :; rm -r "$dir"' EXIT
trap 'exit 143' INT TERM HUP
spiped -e -s "$dir/socket" -t "$host:7443" -k "$key" -p "$dir/pid"

# in the background, so that a signal is heard meanwhile
exec 3<&0
ace-compress -S "$state" --window 1 -c "$codec" <&3 |
    nc -N -U "$dir/socket" |
    ace-ack -v -S "$state" >/dev/null &
wait "$!"
