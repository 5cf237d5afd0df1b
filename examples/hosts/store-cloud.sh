#!/bin/sh
# The cloud's end of an object store: takes what the devices put there into the
# spool, and puts their receipts there.
#
#   store-cloud.sh REMOTE SPOOL DIR DEVICE...
#
# Once; run it again and again, from cron or in a loop.  DIR keeps copies of what
# is in the store.  Who may write below REMOTE/up/DEVICE is the store's to say, and
# is who speaks for that device.  An object that is half there, or damaged, has no
# receipt yet, and is looked at again; one that is larger than eight shards may be, or
# has a name of more than 128 characters, is skipped, and that is said.
set -eu
remote=$1 spool=$2 dir=$3
shift 3
"$(dirname "$0")/limits.sh" "$spool"

. "$(dirname "$0")/plain.sh"

# most DEVICE: how many bytes an object may have, which is all that the device has
# under way (store-edge.sh: 8 shards), and 20 MB for a table of tensors
most() {
	awk -v device="$1" 'BEGIN { size = "256Mi" }
	    { sub(/#.*/, "") }
	    $1 == "shard" && NF == 2 { size = $2 }
	    $1 == "shard" && $3 == device { own = $2 }
	    END {
		unit = size = own ? own : size
		sub(/^[0-9.e+-]*/, "", unit)
		k = unit ? index("KMGT", toupper(substr(unit, 1, 1))) : 0
		printf "%.0f", 8 * size * (unit ~ /i/ ? 1024 : 1000) ^ k + 20e6
	    }' "$spool/limits"
}
# skipped WHAT: a line for each name of standard input, with what can be shown of it
skipped() {
	LC_ALL=C tr -c '\n -~' '?' | sed "s|^|store-cloud.sh: $1, skipped: |" >&2
}

# a device of which something cannot be had holds up no other
bad=0
for device; do
	plain DEVICE "$device"
	up=$dir/up/$device down=$dir/down/$device
	mkdir -p "$up" "$down"
	most=$(most "$device")
	rclone sync --max-size "${most}B" "$remote/up/$device" "$up" \
	    2>"$dir/log" || {
		# nothing was ever sent
		grep -q 'directory not found' "$dir/log" && continue
		cat "$dir/log" >&2
		bad=4
	}
	rclone lsf --files-only --min-size "$((most + 1))B" \
	    "$remote/up/$device" | skipped "$device: more than $most bytes"
	for f in "$up"/*.aceg; do
		name=${f##*/}
		[ -e "$f" ] || continue
		[ ! -e "$down/$name" ] || continue
		[ "${#name}" -le 128 ] || {
			echo "$name" | skipped "$device: a longer name"
			continue
		}
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
