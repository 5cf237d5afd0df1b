#!/bin/sh
# The cloud's end of tls.sh: the name in a device's certificate is its name in the run.
#
#   tls-cloud.sh DIR NAME
#
# NAME.pem, NAME.key and ca.pem (tls-keys.sh) are in the directory ACE_KEYS, or here;
# NAME is the name by which devices reach this host.  setsockopt: since anybody may
# connect, a client has 20 s to authenticate (SO_RCVTIMEO, seconds and microseconds).
# The other options are as in listen.sh.
set -eu
name=${2:?expected DIR NAME}
ACE_DIR=$(realpath -e "$1")
export ACE_DIR
cd "${ACE_KEYS:-.}"
exec socat -t 60 "OPENSSL-LISTEN:8443,reuseaddr,fork,max-children=256,keepalive,keepidle=60,keepintvl=15,keepcnt=4,setsockopt=1:20:x14000000000000000000000000000000,cert=$name.pem,key=$name.key,cafile=ca.pem,verify=1" \
    SYSTEM:'ace-cloud serve \"$ACE_DIR\" \"$SOCAT_OPENSSL_X509_COMMONNAME\" || exit 0'
