#!/bin/sh
# The cloud's end of an object store: takes what the devices put there into the
# spool, and puts their receipts there.
#
#   store-cloud.sh REMOTE SPOOL DIR DEVICE...
#
# Once; run it again and again, from cron or in a loop.  DIR keeps copies of what
# is in the store.  Who may write below REMOTE/up/DEVICE is the store's to say, and
# is who speaks for that device.  An object that is half there, or damaged, has no
# receipt yet, and is looked at again.
set -eu
remote=$1 spool=$2 dir=$3
shift 3
limits='--max-shard 64M --max-weight 1 --max-contributors 1 --quota 1G
    --max-open 64'

for device; do
	up=$dir/up/$device down=$dir/down/$device
	mkdir -p "$up" "$down"
	rclone sync "$remote/up/$device" "$up" 2>"$dir/log" || {
		# nothing was ever sent
		grep -q 'directory not found' "$dir/log" && continue
		cat "$dir/log" >&2
		exit 4
	}
	for f in "$up"/*.aceg; do
		[ -e "$f" ] || continue
		[ ! -e "$down/${f##*/}" ] || continue
		# shellcheck disable=SC2086 # words are meant
		ace-recv $limits --spool "$spool" --device "$device" \
		    -o "$down/${f##*/}" "$f" || [ $? -eq 3 ]
	done
	# a receipt whose object is gone was read
	for f in "$down"/*.aceg; do
		[ -e "$up/${f##*/}" ] || rm -f "$f"
	done
	rclone copy "$down" "$remote/down/$device"
done
