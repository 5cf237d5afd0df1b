#!/bin/sh
# The cloud's end of mutual TLS with socat: each edge has a certificate, and the
# name in it is its device, as with one forced command for each ssh key.
#
#   tls-cloud.sh SPOOL CERT KEY CA
#
# -t: how long the receipt may take
set -eu
spool=$1 cert=$2 key=$3 ca=$4
ace_spool=$spool
export ace_spool

exec socat -t 60 \
    "OPENSSL-LISTEN:8443,reuseaddr,fork,cert=$cert,key=$key,cafile=$ca,verify=1" \
    SYSTEM:'exec ace-recv --spool "$ace_spool" --device "$SOCAT_OPENSSL_X509_COMMONNAME"'
