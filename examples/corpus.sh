#!/bin/sh
# Make the texts on which table1.sh, frontier.sh, table1-sweep.sh and robust.sh train:
# C++ headers of one Debian package that does not change, so that everybody with Debian
# 12 has the same bytes.  Nothing is installed: the package is fetched and unpacked.
#
#	corpus.sh KIND DIR	write DIR/KIND, the text, and DIR/KIND.tsv, which has
#				the package, its version, the checksum of the text,
#				and then each file in order with its checksum and
#				size; do nothing if both exist, with the right text
#
# fresh	12 MB, of which the last 4 % are for validation
# small	800 kB, the last tenth
#
# The text has headers of 4 to 256 KiB, each once, but no preprocessed ones.  They are taken
# in a shuffled order until the size is reached, so that the validation text is of the same
# kind as the rest.  The headers for training are then sorted by name, so that the devices
# see different kinds of code.
set -u
export LC_ALL=C
package=libboost1.74-dev version=1.74.0+ds1-21

die() {
	status=$1
	shift
	echo "corpus.sh: $*" >&2
	exit "$status"
}

[ $# -eq 2 ] || die 2 'usage: corpus.sh KIND DIR'
kind=$1 out=$2
case $kind in	# the checksums are those of cksum
fresh) size=12000000 share=0.96 sum='477617608 11976906' ;;
small) size=800000 share=0.9 sum='3898855858 768470' ;;
*) die 2 "text '$kind' is unknown: expected fresh or small" ;;
esac

# right: succeed if the text exists and has the right checksum
right() { [ -r "$out/$kind" ] && [ "$(cksum <"$out/$kind")" = "$sum" ]; }

# fetch: put the package's files into $work/tree
fetch() {
	for p in apt-get dpkg-deb; do
		command -v $p >/dev/null || die 4 "program missing: $p: run this on" \
		    "Debian 12, or give your own text with CORPUS=FILE"
	done
	(cd "$work" && apt-get -q download "$package=$version" >log 2>&1 &&
	    dpkg-deb -x $package*.deb tree >>log 2>&1) || {
		cat "$work/log" >&2
		die 4 "cannot fetch package $package $version: on Debian 12 run apt-get" \
		    "update as root, else give another text with CORPUS=FILE"
	}
}

# choose: print the files of the text in order, each with its checksum and size
choose() {
	find usr/include/boost -type f | sort | tr '\n' '\0' | xargs -0 cksum |
	    awk '$2 >= 4096 && $2 < 262144 && !/\/preprocessed\// &&
		!seen[$1, $2]++ { print (++n * 7919) % 10007 "\t" $0 }' |
	    sort -t "$(printf '\t')" -k 1,1n -k 2 | cut -f 2- |
	    awk -v size=$size -v share=$share '
		{ sum = $1; bytes = $2; sub(/^[0-9]+ [0-9]+ /, "")
		    n += bytes
		    if (n <= share * size) {
			print $0 "\t" sum "\t" bytes | "sort"
			next
		    }
		    if (!kept++)
			close("sort")
		    if (n <= size)
			print $0 "\t" sum "\t" bytes }' |
	    awk -F '\t' -v OFS='\t' '{ print $2, $3, $1 }'
}

right && [ -r "$out/$kind.tsv" ] && exit
work=$(mktemp -d "${TMPDIR:-/tmp}/ace-corpus.XXXXXX") || exit 4
trap 'rm -rf "$work"' EXIT
trap 'exit 130' INT
trap 'exit 143' TERM HUP
fetch
mkdir -p "$out" && (cd "$work/tree" && choose) >"$work/files" &&
    (cd "$work/tree" && cut -f 3 "$work/files" | tr '\n' '\0' | xargs -0 cat) \
    >"$work/text" || die 4 'the text cannot be made'
is=$(cksum <"$work/text")
[ "$is" = "$sum" ] || die 3 "the text differs from that of the tables: its sum and" \
    "size are $is, expected $sum; or give another text with CORPUS=FILE"
{ printf '%s\t%s\t%s\n' $package $version "$sum" && cat "$work/files"; } \
    >"$work/list" && cp "$work/list" "$out/$kind.tsv" &&
    cp "$work/text" "$out/$kind.new" && mv "$out/$kind.new" "$out/$kind" ||
    die 4 "cannot write the text into '$out'"
