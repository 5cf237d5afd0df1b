#!/bin/sh
# One step of an edge through plain netcat (nc-cloud.sh, and its warning):
#
#   nc-edge.sh HOST STATE [CODEC] <gradient.aceg
set -eu
host=$1 state=$2 codec=${3:-topk:0.01}

. "$(dirname "$0")/plain.sh"
plain HOST "$host" @:

ace-compress -S "$state" --window 1 -c "$codec" |
    nc -N "$host" 7000 |
    ace-ack -v -S "$state" >/dev/null
