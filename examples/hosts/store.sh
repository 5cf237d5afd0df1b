#!/bin/bash
# A connection through an object store, or anything else that rclone supports; REMOTE is
# a name for rclone, such as s3:bucket/run:
#
#   ace edge REMOTE --name NAME --through store.sh -- COMMAND
#   store.sh --cloud REMOTE DIR NAME...                     # on the cloud
#
# Whoever may write below REMOTE/NAME may act as that device.
. "$(dirname "$0")/mailbox.sh"
# put REMOTE together again if its colon was taken for the one after a host
remote=${ACE_HOST:+$ACE_HOST:}${ACE_CLOUD:-}
put() { rclone rcat "$remote/$1"; }
get() {
	local end=$((SECONDS + WAIT)) m size
	# shellcheck disable=SC2154 # mailbox.sh sets work
	m=$work/got.$BASHPID
	# an incomplete message has fewer bytes than its first line states, or no such line
	until rclone cat "$remote/$1" >"$m" 2>/dev/null && read -r size <"$m" &&
	    { [[ $1 = */session ]] || [ "$(tail -n +2 "$m" | wc -c)" -eq "$size" ]; }; do
		[ $SECONDS -lt $end ] || return
		sleep 0.3
	done
	cat "$m"
	rclone deletefile "$remote/$1"
}
if [ "${1:?expected --cloud REMOTE DIR NAME...}" = --cloud ]; then
	remote=$2
	cloud "${@:3}"
else
	edge "$@"
fi
