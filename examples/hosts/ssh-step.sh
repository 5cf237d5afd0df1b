#!/bin/sh
# One step of an edge: code a dense shard, send it to the cloud, take the receipt.
#
#   ssh-step.sh HOST STATE [CODEC] <gradient.aceg
#
# The cloud's authorized_keys say what runs there (authorize.sh).  Status 0 when
# there is a receipt.  Anything else: run the same line again, at any time, as
# often as needed; nothing is computed twice, nothing is taken twice.
set -eu
host=$1 state=$2 codec=${3:-topk:0.01}

. "$(dirname "$0")/plain.sh"
plain HOST "$host" @:

ace-compress -S "$state" --window 1 -c "$codec" |
    ssh -T "$host" |
    ace-ack -v -S "$state" >/dev/null
