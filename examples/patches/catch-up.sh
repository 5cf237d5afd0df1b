#!/bin/sh
# A host that missed steps, came back from a backup, or joins and has nothing yet, brings
# its model to the newest that a trainer keeps with ace-diff -S.
#
#	catch-up.sh NAME MODEL SENT FROM [ssh -T trainer]
#
# NAME is what the trainer knows the host by, MODEL the directory here, SENT that of
# ace-diff -S, and FROM any model of the run, a directory, there; behind them is what
# reaches the trainer, nothing where that is this machine.
#
# The host says by its hash what it has, and gets what leads from there to the newest
# with the fewest bytes: patches, or a whole model and patches.  Where MODEL is not there,
# FROM's headers come first, and the files beside them, with holes for the values.
#
# Status 0: MODEL is the newest there is.  It is changed where it is, or by a reflink, so
# this is for before a server starts; one that runs has receive.sh.  Whatever ends it, the
# next call goes on.
set -eu
[ $# -ge 4 ] || { echo 'catch-up.sh: NAME MODEL SENT FROM [COMMAND...]' >&2; exit 2; }
name=$1 model=$2 sent=$3 from=$4
shift 4

if [ ! -e "$model" ]; then
	rm -rf "$model.joins"
	mkdir -p "$model.joins"
	"$@" sh -s -- "$from" <<-'END' | tar -xf - -C "$model.joins"
		set -eu
		to=$(mktemp -d)
		trap 'rm -rf "$to"' EXIT
		cd "$1"
		for f in *; do
			[ -f "$f" ] || continue
			case $f in
			*.safetensors)
				n=$(od -An -tu8 -N8 "$f")
				head -c "$((n + 8))" "$f" >"$to/$f"
				truncate -r "$f" "$to/$f"
				;;
			*) cp "$f" "$to" ;;
			esac
		done
		# not the directory, which is nobody else's to read
		cd "$to"
		tar -cSf - -- *
	END
	mv "$model.joins" "$model"
fi

# a round where nobody knows what it has, which asks; one that brings it; and one more
# where the trainer thought that it had another
for _ in 1 2 3; do
	"$@" ace-diff -q -S "$sent" --to "$name" |
	    { ace-patch -q --receipt "$name" "$model" || :; } |
	    "$@" ace-ack -q -S "$sent" >/dev/null || :
	if "$@" ace-status "$sent" | awk -v name="$name" \
	    '$1 == name && $2 == "newest" { is = 1 } END { exit !is }'; then
		exit 0
	fi
done
echo "catch-up.sh: '$model' is not the newest" >&2
exit 4
