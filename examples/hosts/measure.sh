#!/bin/sh
# How fast is the way to HOST?  Five seconds of zeros say it, once, before a run;
# ace-policy then finds it in the state, and ace-meter in the run keeps it right.
#
#   measure.sh HOST STATE
#
# It takes a login on HOST that may run cat: not the key with a forced command.
set -eu
host=$1 state=$2

. "$(dirname "$0")/plain.sh"
plain HOST "$host" @:

# the time counts from where the other side answers: keys and names may take
# longer than the measuring
dir=$(mktemp -d)
trap 'rm -r "$dir"' EXIT
trap 'exit 143' INT TERM HUP
mkfifo "$dir/up"

# what is measured is in the state every two seconds
{ read -r _ <"$dir/up" && timeout 5 ace-meter -S "$state" /dev/zero; } |
    ssh -T "$host" 'echo up; exec cat >/dev/null' >"$dir/up"
ace-status "$state" | grep '^link .*bit/s'
