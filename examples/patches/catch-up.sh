#!/bin/sh
# Bring the model of a host that missed steps, was restored from a backup, or joins
# without a model, to the newest that a trainer keeps with ace-diff -S.
#
#	catch-up.sh NAME MODEL SENT FROM [ssh -T trainer]
#
# NAME is the trainer's name for this host, MODEL a directory here.  On the trainer, SENT is
# the directory of ace-diff -S, and FROM that of any model of the run.  The other words are
# a command that reaches a shell of the trainer, and gets the line to execute as its last
# word; without them the trainer is on this machine.
#
# The host sends a hash of its model, and gets the fewest bytes that lead to the newest
# model: patches, or a whole model and patches.  If MODEL does not exist, it is first made
# from FROM's headers, with holes for the values, and from FROM's other files that are not
# programs: *.safetensors, *.json, *.txt, *.model, *.jinja.  The trainer can write no other
# files, and only in MODEL.
#
# Status 0: MODEL is the newest.  MODEL is changed in place or by a reflink, so call this
# before a server starts; use receive.sh for a running server.  After an interruption the
# next call continues; kill -9 leaves MODEL.joins.XXXXXX behind.
set -eu
[ $# -ge 4 ] || { echo 'usage: catch-up.sh NAME MODEL SENT FROM [COMMAND...]' >&2; exit 2; }
name=$1 model=${2%/} sent=$3 from=$4
shift 4
[ $# -gt 0 ] || set -- sh -c

fail() {
	echo "catch-up.sh: $2" >&2
	exit "$1"
}
case $name in
'' | *[\"\\[:cntrl:]]*) fail 2 'NAME must not be empty or have quotes, backslashes, control characters' ;;
esac
case $model in
-*) model=./$model ;;
esac

# quoted WORD...: print a line that a shell reads as these words
quoted() {
	for word; do
		printf '%s.' "$word" | sed "s/'/'\\\\''/g; 1s/^/'/; \$s/\\.\$/' /"
	done
}

# headers: print for each file a line with its name, the number of bytes that follow and its
# size, and then these bytes.  The last line is a dot.
headers() {
	cat <<-'END'
		set -eu
		cd -- "$1"
		for f in *; do
			[ -f "$f" ] || continue
			n=$(stat -L -c %s "./$f")
			case $f in
			*.safetensors) k=$(($(od -An -tu8 -N8 "./$f") + 8)) ;;
			*.json | *.txt | *.model | *.jinja) k=$n ;;
			*) echo "catch-up.sh: file '$f' is not copied to the receiver" >&2; continue ;;
			esac
			echo "$f $k $n"
			head -c "$k" "./$f"
		done
		echo .
	END
}

# take DIR: make the files that `headers' printed; its output may be forged
take() {
	while read -r file bytes size more; do
		[ "$file" != . ] || return 0
		case $file in
		[.-]* | *[!A-Za-z0-9._-]*) fail 3 "the trainer sends the file name '$file', which is not valid" ;;
		*.safetensors | *.json | *.txt | *.model | *.jinja) ;;
		*) fail 3 "the trainer sends '$file', expected *.safetensors, *.json, *.txt, *.model or *.jinja" ;;
		esac
		case $bytes,$size,$more in
		*[!0-9,]* | ,* | *,, | ??????????*,*,) more=bad ;;
		esac
		# refuse a second file of the same name
		if [ -n "$more" ] || [ -e "$1/$file" ] ||
		    ! head -c "$bytes" >"$1/$file" ||
		    [ "$(stat -c %s "$1/$file")" != "$bytes" ] ||
		    ! truncate -s "$size" "$1/$file"; then
			fail 3 "the trainer sends '$file' incompletely: run this again"
		fi
	done
	fail 3 'the list of the trainer is incomplete: run this again'
}

if [ ! -e "$model" ]; then
	mkdir -p "$(dirname "$model")"
	new=$(mktemp -d "$model.joins.XXXXXX")
	trap 'rm -rf "$new"' EXIT
	trap 'exit 143' INT TERM HUP
	headers | "$@" "sh -s -- $(quoted "$from")" | take "$new"
	chmod "$(umask -S)" "$new"
	mv -T "$new" "$model"
fi

# up to three calls: to learn the host's model if the trainer does not know it; for the
# patches; and once more if the trainer was wrong about the host's model
for _ in 1 2 3; do
	"$@" "ace-diff -q $(quoted -S "$sent" --to "$name")" |
	    { ace-patch -q --receipt "$name" "$model" || :; } |
	    "$@" "ace-ack -q $(quoted -S "$sent")" >/dev/null || :
	if "$@" "ace-status --format json $(quoted -- "$sent")" |
	    grep -qF "\"receiver\":\"$name\",\"is\":\"newest\""; then
		exit 0
	fi
done
fail 4 "'$model' is not the newest: see the messages above, and run this again"
