#!/bin/sh
# Bring the model of a host that missed steps, was restored from a backup, or joins
# without a model, to the newest that a trainer keeps with ace-diff -S.
#
#	catch-up.sh NAME MODEL SENT FROM [ssh -T trainer]
#
# NAME is the trainer's name for the host, MODEL the directory here, SENT the directory
# of ace-diff -S, and FROM the directory there of any model of the run.  The other words
# are a command that reaches a shell of the trainer, none if that is this machine; it
# gets the line to run as one more word.
#
# The host tells by a hash what it has, and gets the files with the fewest bytes that
# lead to the newest model: patches, or a whole model and patches.  If MODEL does not
# exist, FROM's headers come first, with holes for the values, and the files beside them
# that are not programs: *.safetensors, *.json, *.txt, *.model, *.jinja.  The trainer
# cannot put anything else here, nor anything elsewhere.
#
# Status 0: MODEL is the newest.  It is changed in place or by a reflink, so use this
# before a server starts; for a running server there is receive.sh.  After any
# interruption the next call continues; kill -9 leaves MODEL.joins.XXXXXX.
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
'' | *[\"\\[:cntrl:]]*) fail 2 'NAME must have no quotes, backslashes or line ends' ;;
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

# headers: print a line per file with its name, the bytes that follow and the bytes it
# has; then these bytes.  A line with a dot is the end.
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
		*) fail 3 "the trainer sends '$file', which does not belong to a model" ;;
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

# at most three rounds: one to ask, if the host's model is unknown; one for the patches;
# and one more if the trainer was wrong about the host's model
for _ in 1 2 3; do
	"$@" "ace-diff -q $(quoted -S "$sent" --to "$name")" |
	    { ace-patch -q --receipt "$name" "$model" || :; } |
	    "$@" "ace-ack -q $(quoted -S "$sent")" >/dev/null || :
	if "$@" "ace-status --format json $(quoted -- "$sent")" |
	    grep -qF "\"receiver\":\"$name\",\"is\":\"newest\""; then
		exit 0
	fi
done
fail 4 "'$model' is not the newest"
