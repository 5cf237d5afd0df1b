#!/bin/bash
# A region's relay: the edges' cloud, and the cloud's edge.
#
#   train-relay.sh HOST DIR NAME EDGES
#
# It takes the mean of what its EDGES edges send to its spool DIR/spool, codes it
# with a residual of its own, sends it on to HOST, and hands back what comes from
# there.  It may be ended at any time and started again: TERM, INT and HUP end all that
# it started; after kill -9 end that, which holds state and spool, before.
# HOST has to let it speak for them: limits.sh SPOOL contributors EDGES+1 NAME, there.
set -uo pipefail
host=$1 dir=$2 name=$3 edges=$4 state=$2/state spool=$2/spool

. "$(dirname "$0")/plain.sh"
. "$(dirname "$0")/again.sh"
plain HOST "$host" @:
plain NAME "$name"
count EDGES "$edges"

# edit: when to go on without an edge, and how much to send.  More than
# half of them have to be there, so that no edge can run ahead of the others alone
rule=(--quorum "$((edges / 2 + 1))" --deadline 3s)
# of those who are there at least, so many may be broken or bad
[ "$edges" -lt 4 ] || rule+=(--tolerate "$((edges / 4))")
policy=(--cmin 8 --cmax 60 --half 20Mbit)

run() {
	ace-aggregate --spool "$spool" --create --expect "$edges" \
	    "${rule[@]}" --published --device "$name" |
	    ace-expand -S "$state" --allow-gap |
	    ace-score -S "$state" |
	    ace-policy -S "$state" "${policy[@]}" |
	    ace-select --policy |
	    ace-compress -S "$state" --window 1 |
	    ace-meter -S "$state" |
	    ssh -T -oBatchMode=yes "$host" |
	    ace-ack -v -S "$state" |
	    ace-recv --spool "$spool" --publish
	status=("${PIPESTATUS[@]}")
	# refused: another model, or two states act for this device; a person has
	# to look
	[ "${status[-2]}" -ne 5 ] || exit 5
	ends "${status[@]}"
}

mkdir -p "$dir" || exit 4
again "$@"
