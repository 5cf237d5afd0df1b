#!/bin/bash
# The cloud of a training run:
#
#   train-cloud.sh DIR EDGES
#
# sshd runs ace-recv for each edge (authorize.sh ... --reply aggregate), which put
# what they get into DIR/spool.  This takes the mean of each round, codes it with
# a residual of the cloud's own, says when the next one is due, and hands it back
# through them.  An edge counts as one, a relay too.
set -uo pipefail
dir=$1 edges=$2 state=$1/state spool=$1/spool

. "$(dirname "$0")/plain.sh"
. "$(dirname "$0")/again.sh"
count EDGES "$edges"

# edit: when to go on without an edge, how much to send, how often.  More than
# half of them have to be there, so that no edge can run ahead of the others alone
rule=(--quorum "$((edges / 2 + 1))" --deadline 5s)
# of those who are there at least, so many may be broken or bad
[ "$edges" -lt 4 ] || rule+=(--tolerate "$((edges / 4))")
policy=(--cmin 8 --cmax 60 --half 20Mbit --bandwidth 50Mbit)
interval=(--target-divergence 0.04 --interval '5,4,10')

run() {
	ace-aggregate --spool "$spool" --create --expect "$edges" \
	    "${rule[@]}" --published |
	    ace-expand -S "$state" --allow-gap |
	    ace-score -S "$state" |
	    ace-policy -S "$state" "${policy[@]}" "${interval[@]}" |
	    ace-select --policy |
	    ace-compress -S "$state" |
	    ace-recv --spool "$spool" --publish
	ends "${PIPESTATUS[@]}"
}

mkdir -p "$dir" || exit 4
again "$@"
