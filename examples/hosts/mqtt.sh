#!/bin/bash
# A connection through an MQTT broker, which retains messages for devices that are away:
#
#   ace edge BROKER:run --name NAME --through mqtt.sh -- COMMAND
#   ACE_HOST=BROKER mqtt.sh --cloud DIR NAME...             # on the cloud
#
# The broker decides who may act as which device: `pattern readwrite ace/%u/#' in its
# acl_file lets each user act as the device of its name; the cloud's user has `topic
# readwrite ace/#'.  Users and passwords are in ~/.config/mosquitto_pub and _sub.
. "$(dirname "$0")/mailbox.sh"
put() { mosquitto_pub -h "$ACE_HOST" -q 1 -r -t "ace/$1" -s; }
get() {
	mosquitto_sub -h "$ACE_HOST" -q 1 -t "ace/$1" -C 1 -N -W "$WAIT" &&
	    mosquitto_pub -h "$ACE_HOST" -q 1 -r -t "ace/$1" -n
}
if [ "${1:?expected --cloud DIR NAME...}" = --cloud ]; then cloud "${@:2}"; else edge "$@"; fi
