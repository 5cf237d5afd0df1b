#!/bin/bash
# The cloud asks every edge for its step and writes the mean: the least there is.
#
#   ssh-gather.sh STEP HOST... >mean.aceg
#
# On each edge `edge-step STEP` writes one coded shard.  All are read at the same
# time.  One that breaks off is "truncated", status 3, and there is no mean.
set -eu
step=$1
shift

. "$(dirname "$0")/plain.sh"
plain STEP "$step"

# ace-aggregate <(ssh edge1 edge-step 7) <(ssh edge2 edge-step 7) ...
inputs=()
for host; do
	plain HOST "$host" @:
	exec {fd}< <(exec ssh -T "$host" edge-step "$step" </dev/null)
	inputs+=("/dev/fd/$fd")
done
exec ace-aggregate "${inputs[@]}"
