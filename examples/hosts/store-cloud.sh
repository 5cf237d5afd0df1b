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
"$(dirname "$0")/limits.sh" "$spool"

# plain WHAT WORD [MORE]: a name that no shell reads as more, here or there
plain() {
	case $2 in
	'' | [-.]* | *[!A-Za-z0-9._${3-}-]*)
		echo "${0##*/}: $1: letters, digits, '.', '_' and '-' only" >&2
		exit 2
		;;
	esac
}

for device; do
	plain DEVICE "$device"
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
		ace-recv --spool "$spool" --device "$device" \
		    -o "$down/${f##*/}" "$f" || [ $? -eq 3 ]
	done
	# a receipt whose object is gone was read
	for f in "$down"/*.aceg; do
		[ -e "$up/${f##*/}" ] || rm -f "$f"
	done
	rclone copy "$down" "$remote/down/$device"
done
