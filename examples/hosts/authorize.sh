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
#
# A device speaks for itself: the spool gets limits by which it weighs 1, where it
# has none (limits.sh, which also says them for a relay).  --run NAME and --schema
# FILE say which training it is; without them the first shard says it.
set -eu
device=$1 key=$2 spool=$3
shift 3

# one word each, that neither sshd nor a shell reads as more
. "$(dirname "$0")/plain.sh"
plain DEVICE "$device"
plain SPOOL "/$spool" /
case $spool in
-*) plain SPOOL "$spool" / ;;
esac
for word; do
	plain OPTION "_$word" /
	# of two that say whose it is, where it goes or what is done the last would count
	case $word in
	--reply | --run | --schema | --sync | --max-* | --sandbox | -[vq]) ;;
	-*)
		echo "authorize.sh: OPTION: not '$word'" >&2
		exit 2
		;;
	esac
done

refuse() {
	echo "authorize.sh: $key: $1" >&2
	exit 2
}
# one line, a key, no options of its own
[ "$(grep -c '' "$key")" -eq 1 ] || refuse "not one line"
LC_ALL=C grep -qE '^(ssh-|ecdsa-|sk-)[a-z0-9@.-]+ [A-Za-z0-9+/=]+( [^"[:cntrl:]]*)?$' "$key" ||
    refuse "not a public key"

"$(dirname "$0")/limits.sh" "$spool"
set -- ace-recv --spool "$spool" --device "$device" "$@"
printf 'restrict,command="%s" %s\n' "$*" "$(cat "$key")"
