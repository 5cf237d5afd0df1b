#!/bin/bash
# A whole training run of one edge, over one ssh connection:
#
#   train-edge.sh HOST DIR COMMAND...
#
# COMMAND writes a shard for each round to standard output, reads the aggregate of
# each round from standard input, and can go on where it was killed, as
# train --apply - --resume FILE does.  The state is in DIR/state.  When the
# connection breaks, or the other end is not there, everything is started again;
# when this machine breaks, or this script was ended, start it again.
set -uo pipefail
host=$1 dir=$2 state=$2/state
shift 2

. "$(dirname "$0")/plain.sh"
. "$(dirname "$0")/again.sh"
plain HOST "$host" @:

# edit: how much to send, by what the link is worth
policy=(--cmin 8 --cmax 60 --half 20Mbit)

run() {
	rm -f "$dir/back"
	mkfifo "$dir/back" || exit 4
	# shellcheck disable=SC2094 # the circle is meant
	"$@" <"$dir/back" |
	    ace-expand -S "$state" |
	    ace-score -S "$state" |
	    ace-policy -S "$state" "${policy[@]}" |
	    ace-select --policy |
	    ace-compress -S "$state" --window 1 |
	    ace-meter -S "$state" |
	    ssh -T -oBatchMode=yes "$host" |
	    ace-ack -v -S "$state" |
	    ace-expand --feedback "$state" >"$dir/back"
	status=("${PIPESTATUS[@]}")
	# refused: another model, or two states act for this device; a person has
	# to look
	[ "${status[-2]}" -ne 5 ] || exit 5
	ends "${status[@]}"
}

mkdir -p "$dir" || exit 4
again "$@"
