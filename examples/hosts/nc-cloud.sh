#!/bin/sh
# The cloud's end of plain netcat.  ONLY on a wire that nobody else can reach:
# anyone who can connect can speak for any device, anyone on the way can read and
# change what passes.
#
#   nc-cloud.sh SPOOL [ADDRESS]
#
# The edges have netcat; we need socat, because no netcat that listens can answer
# once the other end has said its last byte.  Neither of them can tell an end from
# a break: when a sender is killed, all end with status 0.  The shard can: it has
# an end of its own, and ace-recv says "truncated", status 3, and takes nothing.
set -eu
. "$(dirname "$0")/plain.sh"
spool=$1 address=${2:-0.0.0.0}
plain ADDRESS "$address"
"$(dirname "$0")/limits.sh" "$spool"
ace_spool=$spool
export ace_spool

# -t: how long the receipt may take; keepalive: an edge that is gone without a
# word is noticed after two minutes; || exit 0: socat leaves at once on hearing that
# its child has failed, and would take the answer with it that the child gave before
alive=keepalive,keepidle=60,keepintvl=15,keepcnt=4
exec socat -t 60 \
    "TCP-LISTEN:7000,bind=$address,reuseaddr,fork,max-children=256,$alive" \
    SYSTEM:'ace-recv --spool "$ace_spool" || exit 0'
