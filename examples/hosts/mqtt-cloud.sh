#!/bin/bash
# The cloud's end of MQTT: what each device publishes goes into the spool, and its
# receipt back to it.
#
#   mqtt-cloud.sh BROKER SPOOL DEVICE...
#
# One topic a device, ace/up/DEVICE, and its receipts on ace/down/DEVICE.  Who may
# publish where is the broker's to say: `pattern write ace/up/%u' and `pattern read
# ace/down/%u' in its acl_file let each user speak for the device of that name.
# Users, passwords and certificates are in ~/.config/mosquitto_pub and _sub.
#
# A message is a whole stream.  The broker keeps those that come while we are not
# there (-c, -i, -q 1), as many as it is told to; it may repeat one, which is a
# duplicate, and lose one, which has no receipt and comes again.
set -u
broker=$1 spool=$2
shift 2
"$(dirname "$0")/limits.sh" "$spool" || exit

work=$(mktemp -d) || exit 4
# each device's is a process group
set -m
finish() {
	local job
	for job in $(jobs -p); do kill -- "-$job"; done
	rm -rf "$work"
}
trap finish EXIT
trap 'exit 143' INT TERM HUP

serve() {
	local device=$1 in=$work/$1.in out=$work/$1.out
	while :; do
		mosquitto_sub -h "$broker" -i "cloud-$device" -c -q 1 \
		    -t "ace/up/$device" -C 1 -N >"$in" || { sleep 1; continue; }
		# what is damaged, or another device's, has no receipt
		ace-recv --spool "$spool" --device "$device" <"$in" >"$out" ||
		    continue
		mosquitto_pub -h "$broker" -q 1 -t "ace/down/$device" -f "$out"
	done
}

. "$(dirname "$0")/plain.sh"

plain BROKER "$broker" :
for device; do
	plain DEVICE "$device"
done
for device; do
	serve "$device" &
done
wait
