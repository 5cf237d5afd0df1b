#!/bin/sh
# The cloud's end of nc.sh: every connection to port 7000 is a device of the run in DIR.
#
#   listen.sh DIR [ADDRESS]
#
# Whoever can connect may act as any device, and anyone on the network path may read and
# change the data. So ADDRESS is 127.0.0.1 by default, for spiped, which admits only
# holders of its key.  Give another address only for a wire that nobody else can reach.
set -eu
ACE_DIR=$(realpath -e "${1:?expected DIR [ADDRESS]}")
export ACE_DIR
# -t: seconds to answer after the device has sent all; keepalive: notice after two minutes
# that a device is gone; || exit 0: socat would drop the answer of a child that fails
exec socat -t 60 "TCP-LISTEN:7000,bind=${2:-127.0.0.1},reuseaddr,fork,max-children=256,keepalive,keepidle=60,keepintvl=15,keepcnt=4" \
    SYSTEM:'ace-cloud serve \"$ACE_DIR\" || exit 0'	# socat removes other quotes
