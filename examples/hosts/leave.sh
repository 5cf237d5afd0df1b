#!/bin/sh
# A device has left a run, or is dead and will not come back: its operator writes
# it off, and no step waits for it any more, the open one included.
#
#   leave.sh HOST SPOOL RUN DEVICE
#
# What it sent counts, and what is in its residual is lost with it.  To keep it out,
# take its line out of HOST's authorized_keys too; to let it come back, join.sh.
# This takes a login on HOST that may run ace-recv in the spool's account.
set -eu
host=$1 spool=$2 run=$3 device=$4

. "$(dirname "$0")/plain.sh"
plain HOST "$host" @:
plain SPOOL "/$spool" /
plain RUN "$run"
plain DEVICE "$device"

exec ssh -T "$host" ace-recv --spool "$spool" --run "$run" \
    --device "$device" --leave
