#!/bin/bash
# A device's connection over TLS, to tls-cloud.sh.  NAME.pem, NAME.key and ca.pem
# (tls-keys.sh) are in $ACE_KEYS or, if that is unset, in the current directory.
#
#   ace edge HOST:run --name NAME --through tls.sh -- COMMAND
cd "${ACE_KEYS:-.}" || exit
exec socat -t 60 - "OPENSSL:$ACE_HOST:8443,cert=$1.pem,key=$1.key,cafile=ca.pem,verify=1" \
    < <(echo "$@"; exec cat)
