#!/bin/sh
# The cloud's end of mutual TLS with socat: each edge has a certificate, and the
# name in it is its device, as with one forced command for each ssh key.
#
#   tls-cloud.sh SPOOL CERT KEY CA
#
# A device weighs 1, and has at most so much waiting (limits.sh).  -t: how long the
# receipt may take; keepalive: an edge that is gone without a word is noticed after two
# minutes; setsockopt: so is one that says nothing while it has to show who it is, after
# 20 s (SO_RCVTIMEO, seconds and microseconds), since anybody may connect.  || exit 0:
# when ace-recv gives a stream up it says so, to the edge, too; socat would leave at
# once on hearing that its child has failed, and take that answer with it
set -eu
. "$(dirname "$0")/plain.sh"
spool=$1 cert=$(socat_word "$2") key=$(socat_word "$3") ca=$(socat_word "$4")
"$(dirname "$0")/limits.sh" "$spool"
ace_spool=$spool
export ace_spool
alive=keepalive,keepidle=60,keepintvl=15,keepcnt=4
alive=$alive,setsockopt=1:20:x14000000000000000000000000000000
exec socat -t 60 \
    "OPENSSL-LISTEN:8443,reuseaddr,fork,max-children=256,$alive,cert=$cert,key=$key,cafile=$ca,verify=1" \
    SYSTEM:'ace-recv --spool "$ace_spool" --device "$SOCAT_OPENSSL_X509_COMMONNAME" || exit 0'
