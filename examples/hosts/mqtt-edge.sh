#!/bin/sh
# One step of an edge through an MQTT broker (mqtt-cloud.sh is the other end):
#
#   mqtt-edge.sh BROKER DEVICE STATE [CODEC] <gradient.aceg
#
# Status 0 when its receipt is there.  Anything else: run the same line again.  The
# broker may repeat messages and lose them: nothing is counted twice, and what has
# no receipt is sent again.  WAIT is how many seconds a receipt may take.
set -eu
broker=$1 device=$2 state=$3 codec=${4:-topk:0.01}

. "$(dirname "$0")/plain.sh"
plain BROKER "$broker" :
plain DEVICE "$device"

receipts() {
	mosquitto_sub -h "$broker" -i "$device-down" -c -q 1 \
	    -t "ace/down/$device" "$@"
}
shards=$(mktemp)
trap 'rm -f "$shards"' EXIT
trap 'exit 143' INT TERM HUP

# from now on the broker keeps receipts for us
receipts -E
ace-compress -S "$state" --window 1 -c "$codec" >"$shards"
mosquitto_pub -h "$broker" -q 1 -t "ace/up/$device" -f "$shards"
# those of earlier steps may come first, and any of them twice
until ace-status --json "$state" | grep -q '"verdict":'; do
	receipts -C 1 -N -W "${WAIT:-60}" | ace-ack -v -S "$state" >/dev/null
done
