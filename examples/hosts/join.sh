#!/bin/sh
# A device comes into a run that has begun:
#
#   join.sh HOST SPOOL RUN DEVICE >told
#
# From now on steps wait for it, and `told' is what the others know: the newest
# model that somebody put into the spool, if somebody did, and the aggregates of
# the steps after it.  train --catch-up told goes on from there; any other trainer
# applies them as it does those that come later.  What happens until its first
# shard is there comes back with that shard's answer.
#
# Before that the device's key has to be in HOST's authorized_keys (authorize.sh).
# This takes a login on HOST that may run ace-recv in the spool's account: not the
# key with a forced command.
set -eu
host=$1 spool=$2 run=$3 device=$4

. "$(dirname "$0")/plain.sh"
plain HOST "$host" @:
plain SPOOL "/$spool" /
plain RUN "$run"
plain DEVICE "$device"

exec ssh -T "$host" ace-recv --spool "$spool" --run "$run" \
    --device "$device" --join
