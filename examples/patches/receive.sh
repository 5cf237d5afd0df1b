#!/bin/sh
# Apply the patch on standard input to the model that this host serves: make the new model
# beside the served one, put it in the served one's place, and tell the server to read it.
#
#	receive.sh MODEL sglang|vllm URL <patch.aceg
#
# A trainer (train.py) calls it like this:
#
#	ace-diff ... | ssh -T host receive.sh /srv/model sglang http://127.0.0.1:30000
#
# Status 0: the server has read the new model, and the trainer may forget the old one.
# After any other status send the same patch again; only the missing part is done.  The
# server must answer before the next patch is put in place, so that it never opens files of
# two models.  MODEL is the absolute name of the directory with which the server was
# started.
set -eu
[ $# -eq 3 ] || { echo 'usage: receive.sh MODEL sglang|vllm URL' >&2; exit 2; }
model=$(printf %s "$1" | sed 's|/*$||') url=$3
case $model in
/*[[:cntrl:]]* | [!/]* | '')
	echo 'receive.sh: MODEL must be an absolute path without control characters' >&2
	exit 2
	;;
esac
case $2 in
sglang)
	post=update_weights_from_disk
	body="{\"model_path\": \"$(printf %s "$model" | sed 's/[\\"]/\\&/g')\"}"
	;;
# the server needs VLLM_SERVER_DEV_MODE=1
vllm)	post=collective_rpc body='{"method": "reload_weights"}' ;;
*)	echo "receive.sh: server '$2' is unknown: expected sglang or vllm" >&2; exit 2 ;;
esac

# Allow one call at a time, until the server has answered.  Lock ace-patch's directory, since
# others could hold a lock file, or make it a link to a file that would be truncated.
# it is beside the model that a link leads to
absent="receive.sh: model '$model' is absent, or this user may not read its folder"
real=$(readlink -f -- "$model") || { echo "$absent" >&2; exit 4; }
state=$real.ace-patch
why=$(mkdir -m 700 "$state" 2>&1) || :
if [ -h "$state" ] || [ ! -d "$state" ] || [ ! -O "$state" ]; then
	[ -e "$model" ] || { echo "$absent" >&2; exit 4; }
	[ -e "$state" ] || [ -h "$state" ] ||
	    { echo "receive.sh: $why: run receive.sh as the model's owner" >&2; exit 4; }
	echo "receive.sh: '$state' must be a directory of this user, and no link:" \
	    "remove it, or run receive.sh as its owner" >&2
	exit 5
fi
exec 9<"$state"
flock 9
# stage the patch, so that the files that the server has mapped do not change; ace-patch
# does not stage a patch twice, so there may be nothing to commit
ace-patch --stage "$model"
[ ! -e "$state/ready" ] || ace-patch --commit "$model"
curl -gfsS --max-time 600 -H 'Content-Type: application/json' -d "$body" \
    --url "$url/$post" >/dev/null || exit 4
