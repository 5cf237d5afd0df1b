#!/bin/sh
# How fast is the way to HOST?  Five seconds of zeros say it, once, before a run;
# ace-policy then finds it in the state, and ace-meter in the run keeps it right.
#
#   measure.sh HOST STATE
#
# It takes a login on HOST that may run cat: not the key with a forced command.
set -eu
host=$1 state=$2

# what is measured is in the state every two seconds
timeout 5 ace-meter -S "$state" /dev/zero |
    ssh -T "$host" 'cat >/dev/null'
ace-inspect -v "$state/link" | grep bandwidth
