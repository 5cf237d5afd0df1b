#!/bin/sh
# One step of an edge over mutual TLS (tls-cloud.sh is the other end):
#
#   tls-edge.sh HOST CERT KEY CA STATE [CODEC] <gradient.aceg
set -eu
. "$(dirname "$0")/plain.sh"
host=$1 cert=$(socat_word "$2") key=$(socat_word "$3") ca=$(socat_word "$4")
state=$5 codec=${6:-topk:0.01}
plain HOST "$host" :

ace-compress -S "$state" --window 1 -c "$codec" |
    socat -t 60 - "OPENSSL:$host:8443,cert=$cert,key=$key,cafile=$ca,verify=1" |
    ace-ack -v -S "$state" >/dev/null
