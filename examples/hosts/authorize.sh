#!/bin/sh
# The line for authorized_keys that lets one key send the shards of one device
# and do nothing else.
#
#   authorize.sh DEVICE KEY.pub SPOOL [OPTION...] >>~/.ssh/authorized_keys
#
# OPTION is one of ace-recv, such as --reply aggregate.  Who speaks is said by the
# key.  A shard that says it is another device's is a mismatch, ends the connection
# and leaves no trace in the spool; whatever command the other end asks for, it
# gets this one.
set -eu
device=$1 key=$2 spool=$3
shift 3

case $device$spool$* in
*[!\ A-Za-z0-9._/-]*)
	echo "authorize.sh: letters, digits, '.', '_', '/' and '-' only" >&2
	exit 2
	;;
esac
set -- ace-recv --spool "$spool" --device "$device" --max-shard 64M "$@"
printf 'restrict,command="%s" %s\n' "$*" "$(cat "$key")"
