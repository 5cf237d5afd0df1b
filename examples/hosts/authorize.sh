#!/bin/sh
# The line for authorized_keys that lets one key send the shards of one device
# and do nothing else.
#
#   authorize.sh DEVICE KEY.pub [SPOOL [MAX]] >>~/.ssh/authorized_keys
#
# Who speaks is said by the key.  A shard that says it is another device's is
# answered "invalid: mismatch" and leaves no trace in the spool; whatever
# command the other end asks for, it gets this one.
set -eu
device=$1 key=$2 spool=${3:-/srv/ace} max=${4:-64M}

case $device in
*[!A-Za-z0-9._-]* | '')
	echo "authorize.sh: '$device': letters, digits, '.', '_' and '-' only" >&2
	exit 2
	;;
esac
printf 'restrict,command="ace-recv --spool %s --device %s --max-shard %s" %s\n' \
    "$spool" "$device" "$max" "$(cat "$key")"
