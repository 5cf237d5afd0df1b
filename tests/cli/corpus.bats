# examples/corpus.sh makes the text for the tables, the same bytes everywhere.  No test uses
# the network: stand-ins for apt-get and dpkg-deb give a tree that the test makes.
load helper

# prepare: make the tree.  Six headers count; a copy, a generated, a short and a long one
# do not.
prepare() {
	local i d=tree/usr/include/boost
	mkdir -p bin $d/a $d/B $d/preprocessed
	for i in 'a/x y.hpp' a/1.hpp B/2.hpp c.hpp C.hpp d.hpp; do
		yes "in $i" | head -c 5000 >"$d/$i"
	done
	cp $d/c.hpp $d/e.hpp
	yes made | head -c 5000 >$d/preprocessed/f.hpp
	yes short | head -c 4095 >$d/g.hpp
	yes long | head -c 262144 >$d/h.hpp
	cat >bin/apt-get <<-'END'
	#!/bin/sh
	[ "$*" = '-q download libboost1.74-dev=1.74.0+ds1-21' ] || exit 1
	[ ! -e "$TREE/gone" ] || { echo 'E: no such package'; exit 100; }
	: >libboost1.74-dev_1_all.deb
	END
	cat >bin/dpkg-deb <<-'END'
	#!/bin/sh
	[ "$1" = -x ] || exit 1
	[ -e "$2" ] || exit 1
	mkdir "$3" || exit 1
	ln -s "$TREE/usr" "$3/usr"
	END
	chmod +x bin/*
	export TREE=$PWD/tree PATH=$PWD/bin:$PATH TMPDIR=$PWD
	cp "$ROOT/examples/corpus.sh" whole.sh
	sed "s/^fresh) .*/fresh) size=30000 share=0.5 sum='$1' ;;/" whole.sh >corpus.sh
	chmod +x corpus.sh
}

# want NAME...: check that the text consists of these files, in this order
want() {
	(cd tree/usr/include/boost && cat "$@") | cmp - out1/fresh
	printf 'usr/include/boost/%s\n' "$@" | cmp - <(tail -n +2 out1/fresh.tsv | cut -f 3)
}

@test "the text has the right files in the right order, and so has the list" {
	prepare ''
	exits 3 sh corpus.sh fresh out1
	[ ! -e out1/fresh ]
	prepare "$(sed -n 's/.*sum and size are \([0-9]* [0-9]*\),.*/\1/p' err)"
	exits 0 sh corpus.sh fresh out1
	# the sorted list is B/2, C, a/1, a/x y, c, d (without e, which equals c).  Ordered by index
	# times 7919 modulo 10007 it is a/x y, a/1, C, d, B/2, c: the first three, for training,
	# are sorted again, and the others keep this order
	want C.hpp a/1.hpp 'a/x y.hpp' d.hpp B/2.hpp c.hpp
	[ "$(head -n 1 out1/fresh.tsv)" = \
	    "libboost1.74-dev	1.74.0+ds1-21	$(cksum <out1/fresh)" ]
	tail -n +2 out1/fresh.tsv | while IFS=$'\t' read -r sum size file; do
		[ "$(cksum <"tree/$file")" = "$sum $size" ]
	done
	# no temporary directory is left, and an existing text is not made again
	[ "$(echo ace-corpus.*)" = 'ace-corpus.*' ]
	touch tree/gone
	exits 0 sh corpus.sh fresh out1
	rm out1/fresh
	refuses 4 '^E: no such package$' sh corpus.sh fresh out1
	says '^corpus.sh: cannot fetch package libboost1.74-dev 1.74.0\+ds1-21: .*CORPUS=FILE'
	[ "$(echo ace-corpus.*)" = 'ace-corpus.*' ]
}

@test "another text is refused, by corpus.sh and by the tables, except on request" {
	prepare '1 30000'
	exits 3 sh corpus.sh fresh out1
	says '^corpus.sh: the text differs from that of the tables: its sum and size are [0-9]+ 30000, expected 1 30000; .*CORPUS=FILE'
	[ ! -e out1 ] || [ -z "$(ls out1)" ]
	mkdir out2
	yes other | head -c 30000 >out2/fresh
	exits 3 sh corpus.sh fresh out2
	exits 2 sh corpus.sh old out1
	exits 2 sh corpus.sh fresh
	command -v gnuplot >/dev/null || skip "no gnuplot here"
	export STEPS=4 SEEDS=1 LOCAL=1 ONLY=FullSync \
	    MODEL='--layers 1 --width 32 --heads 2 --context 32'
	CORPUS='' exits 3 "$ROOT/examples/table1.sh" results
	says '^corpus.sh: the text differs from that of the tables'
	CORPUS='' exits 3 "$ROOT/examples/robust.sh" results
	[ ! -e results/runs.tsv ]
	yes 'a line of text' | head -c 100000 >text
	CORPUS=text exits 0 "$ROOT/examples/table1.sh" results
	awk -F '\t' -v sum="$(cksum <text | tr ' ' /)" \
	    'NR == 2 { exit !index($NF, "text " sum ",") }' results/runs.tsv
}

@test "Debian's package has the checksums of the script and of the results" {
	dpkg-query -W -f '${Version}\n' libboost1.74-dev 2>/dev/null |
	    grep -qxF 1.74.0+ds1-21 || skip "no libboost1.74-dev here"
	prepare ''
	export TREE=
	for k in fresh small; do
		exits 0 sh whole.sh $k out1
		[ "$(tail -n +2 out1/$k.tsv | awk '{ n += $2 } END { print n }')" -eq \
		    "$(wc -c <out1/$k)" ]
	done
	cmp out1/fresh.tsv "$ROOT/examples/results/fresh.tsv"
}
