#!/bin/sh
# The limits of a spool to which devices send that nobody controls: each speaks for
# itself, weighs 1, and has at most so much waiting.  Where the spool has limits,
# they stay.
#
#   limits.sh SPOOL [NAME VALUE [DEVICE]]
#
# Then it adds a line, of all or of one device: a relay speaks for N, and has
# `weight N relay' and `contributors N relay'.  SPOOL/limits says what else there
# is, and the last line counts; one that is wrong is not added, status 2.
set -eu
spool=$1
shift
# a second line in a name would be a limit of all
case $* in
*[[:cntrl:]]*)
	echo "limits.sh: one line" >&2
	exit 2
	;;
esac
[ $# -gt 0 ] || [ ! -e "$spool/limits" ] || exit 0

# beside it first: without limits, or with some that are none, a spool lets in too much
# or nothing
[ -d "$spool" ] || {
	mkdir -p "$(dirname "$spool")"
	mkdir -m 700 "$spool"
}
new=$(mktemp -d "$spool/.limits.XXXXXX")
trap 'rm -rf "$new"' EXIT
trap 'exit 143' INT TERM HUP
if [ -e "$spool/limits" ]; then
	cp "$spool/limits" "$new"
else
	ace-recv --spool "$new" --create
	sed -i -e 's/^shard .*/shard 64M/' -e 's/^weight .*/weight 1/' \
	    -e 's/^contributors .*/contributors 1/' -e 's/^quota .*/quota 1G/' \
	    -e 's/^open .*/open 64/' -e 's/^out .*/out 4G/' \
	    -e 's/^time .*/time 12h/' "$new/limits"
fi
line=
if [ $# -gt 0 ]; then
	end=$(tail -c 1 "$new/limits")
	# in a name # begins no comment
	line="${end:+
}$(printf %s "$*" | sed 's/#/\\#/g')
"
	printf %s "$line" >>"$new/limits"
	said=$(ace-recv --spool "$new" </dev/null 2>&1) || [ $? -ne 2 ] || {
		echo "$said" >&2
		exit 2
	}
fi
if [ -e "$spool/limits" ]; then
	printf %s "$line" >>"$spool/limits"
else
	ln "$new/limits" "$spool/limits"
fi
