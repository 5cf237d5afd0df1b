#!/bin/sh
# A host that missed steps, came back from a backup, or joins and has nothing yet, brings
# its model to the newest that a trainer keeps with ace-diff -S.
#
#	catch-up.sh NAME MODEL SENT FROM [ssh -T trainer]
#
# NAME is what the trainer knows the host by, MODEL the directory here, SENT that of
# ace-diff -S, and FROM any model of the run, a directory, there.  After them comes what
# reaches a shell of the trainer, nothing where that is this machine; it gets the line
# that is to run as one more word.
#
# The host says by its hash what it has, and gets what leads from there to the newest
# with the fewest bytes: patches, or a whole model and patches.  Where MODEL is not there,
# FROM's headers come first, with holes for the values, and the files beside them that are
# no programs: *.safetensors, *.json, *.txt, *.model, *.jinja.  The trainer cannot put
# anything else here, nor anything elsewhere.
#
# Status 0: MODEL is the newest there is.  It is changed where it is, or by a reflink, so
# this is for before a server starts; one that runs has receive.sh.  Whatever ends it, the
# next call goes on; kill -9 leaves MODEL.joins.XXXXXX.
set -eu
[ $# -ge 4 ] || { echo 'catch-up.sh: NAME MODEL SENT FROM [COMMAND...]' >&2; exit 2; }
name=$1 model=${2%/} sent=$3 from=$4
shift 4
[ $# -gt 0 ] || set -- sh -c

fail() {
	echo "catch-up.sh: $2" >&2
	exit "$1"
}
case $name in
'' | *[\"\\[:cntrl:]]*) fail 2 'NAME: no quotes, backslashes or line ends' ;;
esac
case $model in
-*) model=./$model ;;
esac

# quoted WORD...: a line that a shell reads as these words
quoted() {
	for word; do
		printf '%s.' "$word" | sed "s/'/'\\\\''/g; 1s/^/'/; \$s/\\.\$/' /"
	done
}

# headers: for each file a line, its name, how many bytes come and how many it has; then
# these bytes.  A line with a dot is the end.
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
			*) echo "catch-up.sh: '$f' stays on the trainer" >&2; continue ;;
			esac
			echo "$f $k $n"
			head -c "$k" "./$f"
		done
		echo .
	END
}

# take DIR: makes the files of `headers', which the other side may have made up
take() {
	while read -r file bytes size more; do
		[ "$file" != . ] || return 0
		case $file in
		[.-]* | *[!A-Za-z0-9._-]*) fail 3 'the trainer sends a name that is none' ;;
		*.safetensors | *.json | *.txt | *.model | *.jinja) ;;
		*) fail 3 "the trainer sends '$file', which is no part of a model" ;;
		esac
		case $bytes,$size,$more in
		*[!0-9,]* | ,* | *,, | ??????????*,*,) more=bad ;;
		esac
		# a second file of a name is none
		if [ -n "$more" ] || [ -e "$1/$file" ] ||
		    ! head -c "$bytes" >"$1/$file" ||
		    [ "$(stat -c %s "$1/$file")" != "$bytes" ] ||
		    ! truncate -s "$size" "$1/$file"; then
			fail 3 "the trainer sends no whole '$file'"
		fi
	done
	fail 3 'what the trainer sends has no end'
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

# a round where nobody knows what it has, which asks; one that brings it; and one more
# where the trainer thought that it had another
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
