#!/bin/sh
# The cloud's end of an object store: takes what the devices put there into the
# spool, and puts their receipts there.
#
#   store-cloud.sh REMOTE SPOOL DIR DEVICE...
#
# Once; run it again and again, from cron or in a loop.  DIR keeps copies of what
# is in the store.  Who may write below REMOTE/up/DEVICE is the store's to say, and
# is who speaks for that device.  An object that is half there, or damaged, has no
# receipt yet, and is looked at again; one that is larger than a shard may be, or has a
# name of more than 128 characters, is not looked at.
set -eu
remote=$1 spool=$2 dir=$3
shift 3
"$(dirname "$0")/limits.sh" "$spool"

. "$(dirname "$0")/plain.sh"

# a device of which something cannot be had holds up no other
bad=0
most=$(awk '$1 == "shard" && NF == 2 { most = $2 } END { print most }' \
    "$spool/limits")
for device; do
	plain DEVICE "$device"
	up=$dir/up/$device down=$dir/down/$device
	mkdir -p "$up" "$down"
	rclone sync ${most:+--max-size "$most"} "$remote/up/$device" "$up" \
	    2>"$dir/log" || {
		# nothing was ever sent
		grep -q 'directory not found' "$dir/log" && continue
		cat "$dir/log" >&2
		bad=4
	}
	for f in "$up"/*.aceg; do
		name=${f##*/}
		[ -e "$f" ] && [ "${#name}" -le 128 ] || continue
		[ ! -e "$down/$name" ] || continue
		ace-recv --spool "$spool" --device "$device" \
		    -o "$down/$name" "$f" || [ $? -eq 3 ] || bad=4
	done
	# a receipt whose object is gone was read
	for f in "$down"/*.aceg; do
		[ -e "$up/${f##*/}" ] || rm -f "$f"
	done
	rclone copy "$down" "$remote/down/$device" || bad=4
done
exit "$bad"
