#!/bin/sh
# Bring the model of a host that missed steps to the newest of a trainer.
#
#	catch-up.sh MODEL SENT [ssh -T trainer]
#
# MODEL is the model on this host.  SENT is the trainer's directory of patches: 000007.aceg
# makes step 7 of the model of the step before, and 000007.whole, which ace-diff wrote without
# an old model, makes step 7 of any model with the same tensors.  The other words are a
# command that reaches a shell of the trainer, and gets the line to execute as its last word;
# without them SENT is on this machine.
#
# The marker of ace-patch says which step the host has.  The patch to that step is sent again,
# so that ace-patch compares the model with it.  The newest whole model and the patches after
# it are sent if no patch fits the host's model, as after a restored backup, or if the newest
# patch is older than the whole model and the host does not have that model.
#
# Status 0: MODEL is the newest.  For a running server call receive.sh with one file after
# another instead.
set -eu
[ $# -ge 2 ] || { echo 'usage: catch-up.sh MODEL SENT [COMMAND...]' >&2; exit 2; }
sent=$2
model=$(readlink -f -- "${1%/}") || {
	echo "catch-up.sh: model '$1' is absent, or this user may not read its folder" >&2
	exit 4
}
shift 2
[ $# -gt 0 ] || set -- sh -c
# quote SENT for the trainer's shell
folder="cd -- '$(printf %s "$sent" | sed "s/'/'\\\\''/g")'"

fail() {
	echo "catch-up.sh: $2" >&2
	exit "$1"
}

# from STEP SUFFIX: print the names of the trainer's files of STEP and later steps, in order, in
# one line
from() {
	printf '%s\n' "$files" | LC_ALL=C sort -n | awk -v n="$1" -v s="[.]$2\$" \
	    '/^[0-9]+[.][a-z]+$/ && $0 ~ s && $0 + 0 >= n + 0' | tr '\n' ' '
}

step() { sed -n 's/^step //p' "$model.ace-patch/marker" 2>/dev/null || :; }

# apply COMMAND...: apply the files in $list, whose names may be too many for one command line
apply() { printf '%s\n' "$list" | "$@" "$folder && xargs cat" | ace-patch "$model"; }

# held COMMAND...: apply and print messages, except that no patch fits, which goes to standard
# output, since a whole model may fit; then print the status there
held() {
	{ apply "$@" 2>&1 && echo 0 || echo $?; } | while IFS= read -r line; do
		case $line in
		[0-9] | [0-9][0-9]* | *' or a whole model'*) printf '%s\n' "$line" ;;
		*) printf '%s\n' "$line" >&2 ;;
		esac
	done
}

files=$("$@" "$folder && ls") ||
    fail 4 "cannot list folder '$sent': check its name and the connection, then try again"
has=$(step) got=5 said=
list=$(from "${has:-0}" aceg)
whole=$(from 0 whole)
whole=${whole% } whole=${whole##* }
# patches that end before the whole model's step do not make the newest model
[ -z "$whole" ] || [ -n "$(from "${whole%.*}" aceg)" ] || list=
# the host has the newest whole model, and nothing changed it since: do not send it again
[ -n "$list" ] || [ -z "$whole" ] || [ "${has:-0}" -ne "${whole%.*}" ] ||
    [ -n "$(find -L "$model" -cnewer "$model.ace-patch/marker" 2>&1)" ] || exit 0
if [ -n "$list" ]; then
	said=$(held "$@")
	got=${said##*
} said=${said%"$got"}
fi
if [ "$got" -eq 5 ]; then	# ace-patch passes over patches that do not fit
	list=$(from 0 aceg)
	[ -z "$whole" ] || list="$whole $(from "${whole%.*}" aceg)"
	[ -z "$list" ] || { got=0 said= && apply "$@" || got=$?; }
fi
printf %s "$said" >&2
[ -n "$list" ] || fail 4 "'$sent' of the trainer has no patch for step ${has:-0}: expected files such as 000007.aceg"
[ "$got" -eq 0 ] || exit "$got"
# the connection may have ended between two files
last=${list% } last=${last##* }
[ "$(step)" -ge "${last%.*}" ] || fail 4 "'$model' has step $(step), not ${last%.*}: try again"
