#!/bin/sh
# A host that serves a model takes the next patch of it: from standard input into the
# model beside the one that is served, into its place, and to the server, which is told
# to read it again.
#
#	receive.sh MODEL sglang|vllm URL <patch.aceg
#
# From a trainer (train.py) that is
#
#	ace-diff ... | ssh -T host receive.sh /srv/model sglang http://127.0.0.1:30000
#
# Status 0: the server has read the new model, and the trainer may forget the old one.
# After any other the same patch may come again, and does what was not done yet.  The
# server has answered before the next patch is put in place, so that it never opens
# files of two models.  MODEL is a directory, by its full name, and the one that the
# server was started with.
set -eu
[ $# -eq 3 ] || { echo 'receive.sh: MODEL sglang|vllm URL' >&2; exit 2; }
model=${1%/} url=$3
case $model in
/*[[:cntrl:]]* | [!/]* | '')
	echo 'receive.sh: MODEL: a full name, without line ends' >&2
	exit 2
	;;
esac
case $2 in
sglang)
	post=update_weights_from_disk
	body="{\"model_path\": \"$(printf %s "$model" | sed 's/[\\"]/\\&/g')\"}"
	;;
# of a server that was started with VLLM_SERVER_DEV_MODE=1
vllm)	post=collective_rpc body='{"method": "reload_weights"}' ;;
*)	echo "receive.sh: '$2' is neither sglang nor vllm" >&2; exit 2 ;;
esac

# one at a time, the server's answer included: the lock is ace-patch's own directory,
# which stays.  Another's would keep us waiting, and a file of that name be emptied
state=$model.ace-patch
mkdir -m 700 "$state" 2>/dev/null || :
if [ -h "$state" ] || [ ! -d "$state" ] || [ ! -O "$state" ]; then
	[ -e "$model" ] || { echo "receive.sh: no '$model'" >&2; exit 4; }
	echo "receive.sh: '$state' is a link, no directory, or another user's:" \
	    "remove it, or run this as that user" >&2
	exit 5
fi
exec 9<"$state"
flock 9
# staged, so that what the server has mapped does not change; what has come already
# is not staged again, and there is nothing to commit
ace-patch --stage "$model"
[ ! -e "$state/ready" ] || ace-patch --commit "$model"
curl -gfsS --max-time 600 -H 'Content-Type: application/json' -d "$body" \
    --url "$url/$post" >/dev/null || exit 4
