#!/bin/bash
# A device's connection by netcat, to listen.sh:
#
#   ace edge HOST:run --through nc.sh -- COMMAND
#
# With spiped HOST is 127.0.0.1, and this runs on the device, its counterpart (-d,
# -s '[0.0.0.0]:7443' -t '[127.0.0.1]:7000') on the cloud:
#
#   spiped -F -e -s '[127.0.0.1]:7000' -t CLOUD:7443 -k ace.key
exec nc -N "$ACE_HOST" 7000 < <(echo "$@"; exec cat)
