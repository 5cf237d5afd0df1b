#!/bin/sh
# One step of an edge through an object store, or anything else that rclone knows
# (store-cloud.sh is the other end):
#
#   store-edge.sh REMOTE DEVICE DIR [CODEC] <gradient.aceg
#   store-edge.sh REMOTE DEVICE DIR </dev/null        only look for receipts
#
# REMOTE is as rclone has it, such as s3:bucket/run.  What is sent is a file of
# DIR/out until its receipt is there, since an upload that broke has to be made
# again, and a pipe cannot.  Status 0: all of it is with the store, and receipts
# that were there are in DIR/state.  A step does not wait for its own: up to 8 may
# be under way, and one more is refused, status 5; run its line again once the cloud
# has been there.  At the end run the last line again until DIR/out is empty.
set -eu
remote=$1 device=$2 dir=$3 codec=${4:-topk:0.01}

. "$(dirname "$0")/plain.sh"
plain DEVICE "$device"

mkdir -p "$dir/out" "$dir/in"
rclone copy "$remote/down/$device" "$dir/in" 2>"$dir/log" ||
    grep -q 'directory not found' "$dir/log" || { cat "$dir/log" >&2; exit 4; }
for f in "$dir/in"/*.aceg; do
	[ -e "$f" ] || continue
	name=${f##*/}
	# rclone takes some characters for a pattern; the cloud has no such names
	case ${name%.aceg} in *[!A-Za-z0-9._-]*) continue ;; esac
	ace-ack -v -S "$dir/state" <"$f" >/dev/null
	# both are done with; the receipt goes last, so that none is missed
	rm -f "$dir/out/$name"
	rclone delete "$remote/up/$device" --include "/$name"
	rclone delete "$remote/down/$device" --include "/$name"
	rm "$f"
done

cat >"$dir/new"
bad=0
if [ -s "$dir/new" ]; then
	# all that is under way, and this one; receipts do not come meanwhile
	ace-compress -S "$dir/state" --window 8 --wait 0 -c "$codec" \
	    -o "$dir/coded" "$dir/new" || bad=$?
fi
if [ -e "$dir/coded" ]; then
	name=$(sha256sum <"$dir/coded" | cut -c 1-32)
	mv "$dir/coded" "$dir/out/$name.aceg"
fi
# what an earlier call could not put there, too
rclone copy "$dir/out" "$remote/up/$device"
exit "$bad"
