#!/bin/sh
# One step of an edge over mutual TLS (tls-cloud.sh is the other end):
#
#   tls-edge.sh HOST CERT KEY CA STATE [CODEC] <gradient.aceg
set -eu
host=$1 cert=$2 key=$3 ca=$4 state=$5 codec=${6:-topk:0.01}

. "$(dirname "$0")/plain.sh"
plain HOST "$host" :

ace-compress -S "$state" --window 1 -c "$codec" |
    socat -t 60 - "OPENSSL:$host:8443,cert=$cert,key=$key,cafile=$ca,verify=1" |
    ace-ack -v -S "$state" >/dev/null
