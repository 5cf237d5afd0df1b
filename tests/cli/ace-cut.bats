load helper

# spool: make directory spool with two devices and steps 9 and 10 of run r
spool() {
	local d s
	for s in 9 10; do
		for d in a b; do
			mkshards -r r -d $d -s $s -x $s
		done
	done | ace-recv --spool spool >/dev/null
}

# shards [FILE]: print "step device digest" of each shard
shards() {
	ace-inspect list --format json "${1:--}" | sed -E 's/.*"device":"([^"]*)","step":([0-9]+).*"digest":"([0-9a-f]+)".*/\2 \1 \3/'
}

@test "shards are chosen by step, device and kind, and keep their digests" {
	for s in 1 2 3 12; do
		for d in edge1 edge2 cloud; do
			mkshards -d $d -s $s -x $s -a
		done
	done >all
	mkshards -d edge1 -s 4 -H kind=1 >>all
	shards all >want
	[ "$(wc -l <want)" -eq 13 ]
	while read -r re call; do
		ace-cut $call all >out
		shards out >got
		grep -E "$re" want | diff - got
	done <<-'E'
	^2. --step 2
	^(2|3). --step 2-3
	^(3|4|12). --step 3-
	^[12].(edge|cloud) --step -2
	edge --device edge*
	^4. --kind delta
	^12.edge2 --step 12 --device edge2
	E
	makes two ace-cut --step 2 all
	exits 0 ace-inspect verify two
	# the annotations of the chosen shards are kept
	exits 0 ace-cut --step 2 --device cloud all
	[ "$(frames out | grep -c xyZz)" -eq 1 ]
}

@test "no such shard: status 1, and no output file; invalid calls are refused" {
	mkshards -s 1 >in
	refuses 1 'ace-cut: the input has no such shard .--step, --device, --kind.: ' ace-cut --step 2 -o out2 in
	[ ! -e out2 ]
	for call in '--step 3-2' '--step x' '--step -' '--kind sums' '--step 1-x'; do
		exits 2 ace-cut $call in
	done
}

@test "--kind takes each name; --step one step; * matches slashes and dots" {
	local k n=0
	for k in gradient delta sum mean residual model history; do
		mkshards -d $k -H kind=$n >>all
		n=$((n + 1))
	done
	for k in gradient delta sum mean residual model history; do
		exits 0 ace-cut --kind $k all
		[ "$(shards out | cut -d' ' -f2)" = $k ]
	done
	mkshards -s 1 -N 4 >in
	exits 0 ace-cut --step 2-2 in
	[ "$(shards out | cut -d' ' -f1)" = 2 ]
	exits 0 ace-cut --step 3- --tensor embed in
	[ "$(shards out | cut -d' ' -f1 | paste -sd ' ')" = "3 4" ]
	exits 1 ace-cut --step 0 in
	# names of devices and tensors with slashes and dots, some with a leading dot
	mkshards -d a/b.c -t a/b.c:3 -t .a:4 -t b:5 >in
	exits 0 ace-cut --device 'a*c' in
	exits 1 ace-cut --device 'a' in
	for k in 'a*c:3' '*:12' '*a*:7' '?a:4' '[b]:5'; do
		makes cut ace-cut --tensor "${k%:*}" in
		exits 0 ace-inspect list --format json cut
		[ "$(grep -oE '"elements":[0-9]+,"groups":1,"groups_sent":1' out |
		    awk -F '[:,]' '{ n += $2 } END { print n }')" = "${k#*:}" ]
	done
}

@test "frames between shards are left out, and provenance is kept" {
	mkshards -A -p -N 2 >in
	[ "$(frames in | grep -c xyZz)" -gt 0 ]
	makes cut ace-cut in
	[ "$(frames cut | grep -c xyZz)" -eq 0 ]
	[ "$(shards cut)" = "$(shards in)" ]
	shows '^provenance .*ace-cut' ace-inspect -v cut
	[ "$(grep -c ^provenance out)" -gt 1 ]
	makes cut ace-cut --omit provenance in
	! ace-inspect -v cut | grep ace-cut || false
	# the output is complete or absent, and the message names the bad file
	head -c 2000 in >short
	refuses 3 "^ace-cut: truncated: .*'short'" ace-cut -o both in short
	[ ! -e both ]
	exits 3 ace-cut -o both short in
	exits 4 ace-cut -o both in nowhere
	[ ! -e both ]
}

@test "some tensors of a shard: a spool that has the whole shard refuses them as an equivocation" {
	mkshards -c q8 >in
	exits 0 ace-recv --spool S in
	makes cut ace-cut --tensor embed in
	[ "$(shards cut | cut -d' ' -f1,2)" = "$(shards in | cut -d' ' -f1,2)" ]
	[ "$(shards cut)" != "$(shards in)" ]
	ace-recv --spool S cut >receipt
	ace-inspect receipt | grep -q '^receipt .* step 0: equivocation'
	# with all tensors chosen the values are the same
	exits 0 ace-cut --tensor '*' in
	ace-export -f raw out | cmp - <(ace-export -f raw in)
}

@test "chosen tensors are copied as they are, and the others are absent" {
	mkshards -c q8 >in
	makes cut ace-cut --tensor 'layer.*' in
	exits 0 ace-inspect verify cut
	exits 0 ace-inspect list cut
	grep -qE '^embed .* 0/1 ' out
	grep -qE '^layer.bias .* 1/1 ' out
	ace-export -f raw cut >cut.raw
	ace-export -f raw in >in.raw
	# embed has 192 values, now zeros; all others are unchanged
	cmp <(head -c 768 cut.raw) <(head -c 768 /dev/zero)
	cmp <(tail -c +769 cut.raw) <(tail -c +769 in.raw)
	refuses 1 "no tensor of the input matches 'nothing': " ace-cut --tensor nothing in
	# annotations about the whole shard are dropped, others are kept
	mkshards -c q8 -a | ace-score >scored
	exits 0 ace-cut --tensor embed scored
	frames scored | grep -q sTAT
	frames out | grep sTAT && return 1
	frames out | grep -q xyZz
	# a tensor that exists but was not sent is no error
	mkshards -c none >absent
	exits 0 ace-cut --tensor embed absent
}

@test "shards that are not chosen are not read from a file" {
	mkshards -n 2M -k fast -N 20 >in
	shards in | sed -n 7p >want
	ace-cut --step 6 in | shards >got
	diff want got
	sanitized && return	# a leak checker cannot run under strace
	# the file has 160 MiB; ace-cut reads little more than one shard of 8 MiB
	needs strace
	strace -f -e trace=read,pread64 -o trace ace-cut --sandbox off --step 6 -o out in
	awk '/^[0-9]+ +p?read/ { n += $NF } END { exit !(n > 8e6 && n < 2e7) }' trace
}

@test "tensors that are not chosen are skipped, in a file and in a pipe" {
	mkshards -t a:300000 -t b:70000 -t c:300000 -c q8 >in
	ace-cut --tensor b in | ace-export --tensor b -f raw >got
	ace-export --tensor b -f raw in >want
	[ "$(wc -c <got)" -eq 280000 ]
	cmp got want
	# from a pipe, where ace-cut cannot seek, the output is the same
	ace-cut --omit provenance --tensor b in >one
	ace-cut --omit provenance --tensor b <in | cat >two
	ace-cut --omit provenance --tensor b < <(cat in) >three
	cmp one two
	cmp one three
	# damage in a shard that was skipped is reported when that shard is read
	flip in $(($(frames in | grep -m1 DATA | cut -d' ' -f1) + 100000))
	refuses 3 "the payload's checksum does not match" ace-cut in
}

@test "folders may be eight deep; the order of their names is that of bytes, a slash before all" {
	local d at=deep/1/2/3/4/5/6/7/8
	mkdir -p $at
	mkshards -s 1 >$at/x.aceg
	exits 0 ace-cut deep
	[ "$(shards out | cut -d' ' -f1)" = 1 ]
	mkdir $at/9
	mkshards -s 2 >$at/9/y.aceg
	refuses 3 "limit: 'deep/.*/9' is more than 8 folders below 'deep'" ace-cut deep
	for d in a-b a a.b a0 a/c; do
		mkdir -p many/$d
		mkshards -d $d >many/$d/x.aceg
	done
	exits 0 ace-cut many
	[ "$(shards out | cut -d' ' -f2 | paste -sd ' ')" = "a/c a a-b a.b a0" ]
	exits 0 ace-cut many/a0 many/a.b many/a/c
	[ "$(shards out | cut -d' ' -f2 | paste -sd ' ')" = "a0 a.b a/c" ]
}

@test "in a folder, files named *.aceg are read; temporary and hidden files are not" {
	mkshards -r r -d a >a.aceg
	mkdir -p box elsewhere
	cp a.aceg box
	cp a.aceg box/b.aceg.new-aBcDeF
	cp a.aceg box/.hidden.aceg
	cp a.aceg box/schema.aceg
	mkshards -r r -d b >elsewhere/b.aceg
	ln -s ../elsewhere box/folder
	ln -s ../elsewhere/b.aceg box/b.aceg
	[ "$(shards box)" = "$(shards a.aceg)" ]
	# a file that is named like a stream but is none is an error
	for end in aceg aceg.gz aceg.xz aceg.zst aceg.bz2 aceg.lz4; do
		echo 'no stream, whatever it was' >"box/c.$end"
		refuses 3 "'box/c.$end'" ace-cut box
		rm "box/c.$end"
	done
	echo 'nor does it say so' >box/.aceg
	echo 'nor does it say so' >box/aceg
	exits 0 ace-cut box
}

@test "from spools, folders and archives, in order" {
	needs python3
	spool
	makes whole ace-cut spool
	[ "$(shards whole | cut -d' ' -f1,2 | paste -sd,)" = '9 a,9 b,10 a,10 b' ]
	exits 0 ace-cut --step 10 spool
	[ "$(shards out | wc -l)" -eq 2 ]
	tar -cf spool.tar spool
	gzip -k spool.tar
	python3 -m zipfile -c spool.zip spool
	for f in spool.tar spool.tar.gz spool.zip; do
		exits 0 ace-cut "$f"
		diff <(shards out | sort) <(shards whole | sort)
		exits 0 ace-cut <"$f"
		diff <(shards out | sort) <(shards whole | sort)
	done
	for z in gzip xz zstd bzip2 lz4; do
		command -v $z >/dev/null || continue
		$z -c whole >whole.packed
		exits 0 ace-cut whole.packed
		diff <(shards out) <(shards whole)
		exits 0 ace-cut < <(cat whole.packed)
		diff <(shards out) <(shards whole)
	done
}

@test "a patch of a model can be chosen as a shard, but not some of its tensors" {
	mkmodel old -n 100
	mkmodel new -n 100 -s 1
	ace-diff -s 1 old new >1.aceg
	ace-diff -s 2 new >2.aceg
	refuses 3 "mismatch: the shard is a patch, which needs all of its" ace-cut --tensor 'layer.0*' 1.aceg
	exits 3 ace-cut --tensor 'layer.00*' 2.aceg
	says "mismatch: --tensor cannot cut 'layer.00.bf16' of a whole model: its type is bf16, expected f32"
	refuses 3 'unsupported: parameter 77' ace-cut --tensor w "$ROOT/tests/golden/bad-unsupported-exact-parameter.aceg"
	makes one ace-cut --step 1 1.aceg 2.aceg
	ace-patch old <one
	same old new
}
