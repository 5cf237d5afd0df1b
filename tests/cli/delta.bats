# Directories in the formats in which other programs send changes of a model: ace-diff reads
# them, ace-patch writes them.  tests/mkdelta stands in for the other program.
load helper

mkdelta() { "$ROOT/tests/mkdelta" "$@"; }

setup() {
	cd "$BATS_TEST_TMPDIR" || return
	needs zstd
	once models models
}

models() {
	mkmodel old -n 1000
	mkmodel new -n 1000 -s 1
	mkmodel olds -n 1000 -f 3 --reverse
}

# plain: print the patch without its provenance
plain() { ace-diff --omit provenance "$@"; }

@test "a directory of each coding and checksum gives the same patch as the two models" {
	plain -s 7 --base-version 6 old new >want
	for coding in xor overwrite; do
		for sum in xxh3-128 adler32; do
			mkdelta make old new d -e $coding -s $sum -n 3
			for m in old olds; do
				exits 0 plain $m d
				same out want
			done
			rm -r d
		done
	done
	# a step given by an option is kept
	mkdelta make old new d
	exits 0 plain -s 9 --base-version 6 old d
	plain -s 9 --base-version 6 old new | cmp - out
	# a zstd frame that does not say its length
	mkdelta make old new e --lie silent --size 2000
	exits 0 plain old e
	same out want
}

@test "another program and ace-diff read the directories of ace-patch" {
	plain -s 7 --base-version 6 old new >7.aceg
	cp old m
	cp old theirs
	cp -r olds theirses
	exits 0 ace-patch -o d m <7.aceg
	same m new
	[ "$(echo d/*)" = "d/model-00000-of-00001.safetensors d/model.safetensors.index.json" ]
	[ "$(mkdelta apply d theirs)" = "000006 000007 xor 18" ]
	same theirs new
	mkdelta apply d theirses
	mkmodel --list theirses/*.safetensors >is
	mkmodel --list new >want
	same is want
	plain old d | cmp - 7.aceg
	# the same call again, as after a kill between writing the directory and the model
	mv d first
	cp old again
	mkdir d
	cp first/model-*.safetensors d
	exits 0 ace-patch -o d again <7.aceg
	diff -r first d
	cp old again
	exits 0 ace-patch --stage -o d again <7.aceg
	same again old
	diff -r first d
	ace-patch --commit again
	same again new
	rm -r d first m* again* theirs*
}

@test "in the sandbox, too, the directory may be anywhere, and may exist or not" {
	plain -s 7 --base-version 6 old new >7.aceg
	mkdir -p here/m there/d
	for d in there/d there/new; do
		cp old here/m/old
		exits 0 ace-patch -o $d here/m/old <7.aceg
		same here/m/old new
		[ -s $d/model.safetensors.index.json ]
		exits 0 plain old $d
		same out 7.aceg
	done
	cp old here/m/old
	exits 4 ace-patch -o absent/d here/m/old <7.aceg
	same here/m/old old
}

@test "unchanged tensors are absent; if nothing changed, there is only an index" {
	perl -e 'print pack("Q<", length($ARGV[0])), $ARGV[0], "a" x 8, $ARGV[1] x 8' \
	    '{"v":{"dtype":"F32","shape":[2],"data_offsets":[0,8]},"w":{"dtype":"F32","shape":[2],"data_offsets":[8,16]}}' b >a
	sed 's/bbbbbbbb/bbbbbbbc/' a >b
	plain -s 2 --base-version 1 a b >2.aceg
	cp a m
	exits 0 ace-patch -o d m <2.aceg
	grep -q '"weight_map":{"w":"model-00000-of-00001.safetensors"}' d/*.json
	[ "$(mkdelta apply d a)" = "000001 000002 xor 1" ]
	same a b
	plain -s 3 --base-version 2 a b >3.aceg
	exits 0 ace-patch -o none m <3.aceg
	[ "$(ls none)" = model.safetensors.index.json ]
	[ "$(mkdelta apply none a)" = "000002 000003 xor 0" ]
	same a b
	mkdir empty
	echo '{"metadata":{"version":"000003","base_version":"000002","delta_encoding":"xor","compression_format":"zstd","checksum_format":"adler32"},"weight_map":{}}' >empty/model.safetensors.index.json
	exits 0 plain a empty
	plain -s 3 --base-version 2 a b | cmp - out
}

# refused RE WHAT...: check that ace-diff refuses `mkdelta make old new d WHAT' with 3 and RE
refused() {
	local re=$1
	shift
	rm -rf d
	if [ "$1" = made ]; then mv "$2" d; else mkdelta make old new d "$@"; fi
	refuses 3 "$re" ace-diff -o patch old d
	[ ! -e patch ]
}

@test "invalid frames: status 3, with the tensor's name" {
	local t="tensor 'layer.00.bf16' of 'd'"
	local lies=cut,head,empty,none,skip,two,window,wide,bits,short,long,bomb,sum,nosum
	mkdelta make old new xor -e xor --lie $lies
	mkdelta make old new overwrite -e overwrite --lie $lies,beyond,order,twice,count,more
	for c in xor overwrite; do
		refused "truncated: the zstd frame.*$t" made $c.cut
		refused "(truncated|corrupt): .*zstd frame.*$t" made $c.head
		refused "corrupt: the data is not a zstd frame.*$t" made $c.empty
		refused "corrupt: the data is not a zstd frame.*$t" made $c.none
		refused "corrupt: the data is not a zstd frame.*$t" made $c.skip
		refused "corrupt: bytes follow the zstd frame.*$t" made $c.two
		refused "limit: .* window larger than 8 MiB.*$t" made $c.window
		refused "limit: .* window larger than 8 MiB.*$t" made $c.wide
		refused "corrupt: .*$t" made $c.bits
		for lie in short long bomb; do
			refused "corrupt: the.* frame is not as long.*$t" made $c.$lie
		done
		refused "corrupt: the result's checksum.*tensor 'layer" made $c.sum
		refused "corrupt: the tensor has no checksum.*tensor 'layer" made $c.nosum
	done
	refused "corrupt: position 2000 is beyond the tensor.*$t" made overwrite.beyond
	refused "corrupt: position [0-9]* is not after the one before.*$t" made overwrite.order
	refused "corrupt: position [0-9]* is not after the one before.*$t" made overwrite.twice
	refused "corrupt: the frame has [0-9]* positions, but its tensor [0-9]* bytes.*$t" made overwrite.count
	refused "corrupt: the.* frame is not as long.*$t" made overwrite.more
}

@test "invalid indexes are refused" {
	refused "corrupt: .*names file 'model-00009-of-00009.safetensors', which is absent" --lie file
	refused "corrupt: tensor 'absent' of index .* is in none of the files" --lie nowhere
	refused "mismatch: the tensor is absent from 'old', tensor 'other'" --lie name
	refused "unsupported: checksum_format is blake3" -a checksum_format=blake3
	refused "unsupported: checksum_format is absent or neither" -a checksum_format=md5
	refused "unsupported: compression_format is lz4, expected zstd" -a compression_format=lz4
	refused "unsupported: compression_format is absent, expected zstd" -a compression_format=
	refused "unsupported: delta_encoding is 'add'" -a delta_encoding=add
	refused "corrupt: base_version is absent" -a base_version=six
	refused "corrupt: version is absent" -a version=
	refused "corrupt: base_version 8 is not before version 7" -a base_version=000008
	refused "corrupt: base_version 7 is not before version 7" -a base_version=000007
	refused "corrupt: the result's checksum.*tensor" -a checksum_format=adler32
	# without delta_encoding the directory counts as a whole model, which it is not
	mkdelta make old new e
	sed -i 's/delta_encoding/x_encoding/' e/*.json
	refuses 3 "mismatch: 'e' and 'old' have different tensors" ace-diff old e
}

@test "a directory for another model, or for another version of it, is refused" {
	mkmodel third -n 1000 -s 2
	for c in xor overwrite; do
		mkdelta make old new $c -e $c
		exits 3 ace-diff third $c
		says "corrupt: the result's checksum is .* or is for another model than 'third', tensor"
		exits 3 ace-diff --base-version 5 old $c
		says "mismatch: '$c' changes version 6, but --base-version is 5"
		exits 2 ace-diff $c
		says "describes changes to a model: give that model as well"
	done
}

@test "patches that such a directory cannot express are refused; existing models are not overwritten" {
	cp old m
	plain old new >0.aceg
	exits 3 ace-patch -o d m <0.aceg
	says "mismatch: the patch is from step 0 to 0: for --output give ace-diff a --base-version below its --step"
	plain -s 7 --base-version 6 new >whole.aceg
	refuses 3 "mismatch: the patch holds a whole model" ace-patch -o d m <whole.aceg
	same m old
	plain -s 7 --base-version 6 old new >7.aceg
	mkmodel served -n 1000 -f 2
	mkdelta make old new other -v 8
	cp -r served was
	cp -r other other.was
	mkdir single
	cp old single/model.safetensors
	for d in served other single; do
		exits 5 ace-patch -o $d m <7.aceg
		says "'$d' holds another version or a whole model: give a new directory"
		same m old
	done
	diff -r served was
	diff -r other other.was
	[ "$(ls single)" = model.safetensors ]
	exits 2 ace-patch -o d --commit m
	[ ! -e d ]
	# a patch for another model
	mkmodel m2 -n 1000 -s 2
	exits 5 ace-patch -o d m2 <7.aceg
	[ ! -e d ]
}

# bats test_tags=plain
@test "memory is bounded if one byte of 25 MB changes, or all of them" {
	perl -e 'print pack("Q<", length($h)), $h, "\1" x 25_000_000 for $h = q({"w":{"dtype":"U8","shape":[25000000],"data_offsets":[0,25000000]}})' >a
	perl -pe 's/\x01\z/\x02/' a >b
	perl -e 'print pack("Q<", length($h)), $h, "\3" x 25_000_000 for $h = q({"w":{"dtype":"U8","shape":[25000000],"data_offsets":[0,25000000]}})' >c
	for new in b c; do
		each_of 2 || continue
		plain -s 2 --base-version 1 a $new >2.aceg
		cp a m
		exits 0 peak kib ace-patch -o xor m <2.aceg
		same m $new
		[ "$(cat kib)" -lt 65536 ] || [ -n "$ACE_SANITIZED" ]
		mkdelta make a $new overwrite -e overwrite -v 2
		for d in xor overwrite; do
			exits 0 peak kib ace-diff --omit provenance a $d
			same out 2.aceg
			[ "$(cat kib)" -lt 65536 ] || [ -n "$ACE_SANITIZED" ]
		done
		rm -r m m.ace-patch xor overwrite
	done
}
