#!/bin/sh
# How fast is the way to HOST?  Five seconds of zeros say it, once, before a run;
# ace-policy then finds it in the state, and ace-meter in the run keeps it right.
#
#   measure.sh HOST STATE
#
# It takes a login on HOST that may run cat: not the key with a forced command.
set -eu
host=$1 state=$2

timeout 5 cat /dev/zero |
    ace-meter -v -S "$state" |
    ssh -T "$host" 'cat >/dev/null'
