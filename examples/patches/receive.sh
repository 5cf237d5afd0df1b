#!/bin/sh
# Apply the next patch to the model that this host serves: from standard input to a
# model beside the served one, then into its place, and tell the server to read it
# again.
#
#	receive.sh MODEL sglang|vllm URL <patch.aceg
#
# From a trainer (train.py) that is
#
#	ace-diff ... | ssh -T host receive.sh /srv/model sglang http://127.0.0.1:30000
#
# Status 0: the server has read the new model, and the trainer may forget the old one.
# After any other status send the same patch again; only the missing part is done.  The
# server answers before the next patch is put in place, so that it never opens files of
# two models.  MODEL is the directory, by its full name, with which the server was
# started.
set -eu
[ $# -eq 3 ] || { echo 'usage: receive.sh MODEL sglang|vllm URL' >&2; exit 2; }
model=${1%/} url=$3
case $model in
/*[[:cntrl:]]* | [!/]* | '')
	echo 'receive.sh: MODEL must be an absolute path without line ends' >&2
	exit 2
	;;
esac
case $2 in
sglang)
	post=update_weights_from_disk
	body="{\"model_path\": \"$(printf %s "$model" | sed 's/[\\"]/\\&/g')\"}"
	;;
# for a server that was started with VLLM_SERVER_DEV_MODE=1
vllm)	post=collective_rpc body='{"method": "reload_weights"}' ;;
*)	echo "receive.sh: server '$2' is unknown: expected sglang or vllm" >&2; exit 2 ;;
esac

# One call at a time, the server's answer included.  The lock is ace-patch's directory: a
# lock file could be held by others, or be a link to a file that would be truncated.
state=$model.ace-patch
mkdir -m 700 "$state" 2>/dev/null || :
if [ -h "$state" ] || [ ! -d "$state" ] || [ ! -O "$state" ]; then
	[ -e "$model" ] || { echo "receive.sh: model '$model' is absent" >&2; exit 4; }
	echo "receive.sh: '$state' is a link, not a directory, or of another user:" \
	    "remove it, or run this as that user" >&2
	exit 5
fi
exec 9<"$state"
flock 9
# stage the patch, so that the files that the server has mapped do not change; a patch
# that came earlier is not staged again, and then there is nothing to commit
ace-patch --stage "$model"
[ ! -e "$state/ready" ] || ace-patch --commit "$model"
curl -gfsS --max-time 600 -H 'Content-Type: application/json' -d "$body" \
    --url "$url/$post" >/dev/null || exit 4
