#!/bin/sh
# Print the text on which demo.sh and demo-hosts.sh train: the C sources and the pages
# of this project at one commit, 3 MB.  So the demos print the same on every machine and
# after every later commit.
#
#	text.sh			from text.xz beside this script
#	text.sh --make		from the git history, as text.xz was made:
#				text.sh --make | xz -9e -C sha256 >text.xz
#
# The trainer keeps the last tenth for validation.  Every tenth file is therefore at the
# end, so that the validation text is of the same kind.
set -u
export LC_ALL=C
commit=a0ef64962a31afc9f40ce10480bdb8751d29d4a2
sum='2207103352 3020259'	# from cksum

die() {
	echo "text.sh: $2" >&2
	exit "$1"
}

files() {
	git ls-tree -r --name-only $commit lib cmd tests man examples |
	    grep -e '\.[ch]$' -e '^man/.*\.[157]$'
}

cd "$(dirname "$0")" || exit 4
case ${1:-} in
'')
	command -v xz >/dev/null || die 4 'program missing: xz (package xz-utils)'
	[ -r text.xz ] || die 4 "cannot read '$PWD/text.xz'"
	# verify all of it before any of it is printed
	[ "$(xz -dc text.xz | cksum)" = "$sum" ] ||
	    die 3 "bad checksum: '$PWD/text.xz' is damaged, or is another text"
	xz -dc text.xz || die 4 'the text cannot be written'
	;;
--make)
	cd .. || exit 4
	{ files | awk 'NR % 10'; files | awk 'NR % 10 == 0'; } |
	    sed "s/^/$commit:/" | xargs git show
	;;
*) die 2 "usage: text.sh [--make]" ;;
esac
