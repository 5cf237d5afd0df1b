#!/bin/bash
# The same for many edges, with GNU parallel: a file with a host on each line.
#
#   parallel-gather.sh STEP HOSTS >mean.aceg
#
# parallel keeps each host's output together and writes it when the host is done,
# so what comes out is one shard after another, in any order: the mean is the same
# bytes.  A host that broke off is "truncated", status 3; one that said nothing is
# missing, which --expect sees, status 5.
set -euo pipefail
step=$1 hosts=$2

# plain WHAT WORD [MORE]: a name that no shell reads as more, here or there
plain() {
	case $2 in
	'' | [-.]* | *[!A-Za-z0-9._${3-}-]*)
		echo "${0##*/}: $1: letters, digits, '.', '_' and '-' only" >&2
		exit 2
		;;
	esac
}
plain STEP "$step"

parallel --will-cite --nonall --slf "$hosts" --ssh 'ssh -T' --timeout 600 \
    edge-step "$step" |
    ace-aggregate --expect "$(grep -c . "$hosts")"
