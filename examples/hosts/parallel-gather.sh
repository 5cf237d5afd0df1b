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

. "$(dirname "$0")/plain.sh"
plain STEP "$step"

parallel --will-cite --nonall --slf "$hosts" --ssh 'ssh -T' --timeout 600 \
    edge-step "$step" |
    ace-aggregate --expect "$(grep -c . "$hosts")"
