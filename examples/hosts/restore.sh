#!/bin/sh
# A state that came out of a backup, or was copied to another machine, asks what
# the cloud has had from it since.  Before anything else is done with it:
#
#   restore.sh HOST SPOOL STATE
#
# What is still under way of the state as it was is fenced from now on.  It takes
# a login on HOST that may run ace-recv in the spool's account: not the key with a
# forced command.
set -eu
host=$1 spool=$2 state=$3

# of the shard of kind residual, each on a line; a name may have blanks, and is then
# none that goes through a shell
{ read -r run; read -r device; read -r step; } <<END
$(ace-inspect "$state/residual" | awk '
	{ name = $1; sub(/^ *[a-z]+ +/, ""); value[name] = $0 }
	name == "kind" && $0 == "residual" {
		print value["run"]; print value["device"]; print value["step"]; exit }')
END
. "$(dirname "$0")/plain.sh"
plain HOST "$host" @:
plain SPOOL "/$spool" /
plain RUN "$run"
plain DEVICE "$device"
plain STEP "$step"

ssh -T "$host" ace-recv --spool "$spool" --run "$run" --device "$device" \
    --fence "$step" |
    ace-ack -S "$state" --fence
