#!/bin/bash
# A device's connection by netcat, to listen.sh:
#
#   ace edge HOST:run --through nc.sh -- COMMAND
#
# With spiped HOST is 127.0.0.1.  The device runs the spiped below; the cloud runs it with
# -d -s '[0.0.0.0]:7443' -t '[127.0.0.1]:7000' instead of -e, -s and -t:
#
#   spiped -F -e -s '[127.0.0.1]:7000' -t CLOUD:7443 -k ace.key
exec nc -N "$ACE_HOST" 7000 < <(echo "$@"; exec cat)
