#!/bin/sh
# The cloud's end of netcat inside spiped: one secret, shared by all edges.
#
#   head -c 32 /dev/urandom >ace.key         # once, and a copy for each edge
#   spiped-cloud.sh SPOOL ace.key
#
# spiped encrypts and lets in who has the key; whoever has it may speak for any
# device.  What comes out of it goes to nc-cloud.sh, which nobody else reaches.
set -eu
spool=$1 key=$2

pids=
trap 'kill $pids || :' EXIT
trap 'exit 143' INT TERM HUP
spiped -F -d -s '[0.0.0.0]:7443' -t '[127.0.0.1]:7000' -k "$key" &
pids=$!
"$(dirname "$0")/nc-cloud.sh" "$spool" 127.0.0.1 &
pids="$pids $!"
wait "$!"
