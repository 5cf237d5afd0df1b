#!/bin/sh
# The limits of a spool to which devices send that nobody controls: each speaks for
# itself, weighs 1, and has at most so much waiting.  Where the spool has limits,
# they stay.
#
#   limits.sh SPOOL [NAME VALUE [DEVICE]]
#
# Then it adds a line, of all or of one device: a relay speaks for N, and has
# `weight N relay' and `contributors N relay'.  SPOOL/limits says what else there
# is, and the last line counts.
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
[ -e "$spool/limits" ] || {
	mkdir -p "$(dirname "$spool")"
	ace-recv --spool "$spool" --create
	sed -i -e 's/^shard .*/shard 64M/' -e 's/^weight .*/weight 1/' \
	    -e 's/^contributors .*/contributors 1/' -e 's/^quota .*/quota 1G/' \
	    -e 's/^open .*/open 64/' -e 's/^time .*/time 12h/' "$spool/limits"
}
[ $# -eq 0 ] || printf '%s\n' "$*" >>"$spool/limits"
