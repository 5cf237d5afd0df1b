#!/bin/sh
# The cloud's end of nc.sh: every connection to port 7000 is a device of the run in DIR.
#
#   listen.sh DIR [ADDRESS]
#
# Whoever can connect may speak for any device, and whoever is on the way may read and
# change what passes.  So ADDRESS is 127.0.0.1 unless it is given: for spiped, which
# lets in who has its key, or for the address of a wire that nobody else can reach.
set -eu
ACE_DIR=$(realpath -e "$1")
export ACE_DIR
# -t: how long an answer may take; keepalive: a device that is gone without a word is
# noticed after two minutes; || exit 0: socat would drop the answer of a child that
# fails
exec socat -t 60 "TCP-LISTEN:7000,bind=${2:-127.0.0.1},reuseaddr,fork,max-children=256,keepalive,keepidle=60,keepintvl=15,keepcnt=4" \
    SYSTEM:'ace-cloud serve "$ACE_DIR" || exit 0'
