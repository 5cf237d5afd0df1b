load helper

mkgguf() { "$ROOT/tests/mkgguf" "$@"; }

# models: write old, new and third, with all types of blocks, and step.aceg from old to new
models() { once models make_models; }

make_models() {
	mkgguf old
	mkgguf new -s 1
	mkgguf third -s 2
	ace-diff -s 7 --base-version 6 old new >step.aceg
}

@test "GGUF: every type, with every --way and --stage; the same patch again changes nothing" {
	models
	for way in copy in-place; do
		cp old m
		exits 0 ace-patch -v --way $way m <step.aceg
		same m new
		exits 0 ace-patch -v --way $way m <step.aceg
		says "is already the model that the patches make"
		rm -r m.ace-patch
		exits 0 ace-patch -v m <step.aceg
		says "is already the model that the patches make"
		same m new
	done
	cp old m
	exec 9<m
	exits 0 ace-patch --stage m <step.aceg
	same m old
	exits 0 ace-patch --commit m
	same m new
	cat <&9 | cmp - old
	exec 9<&-
	grep -q "^step 7$" m.ace-patch/marker
	exits 5 ace-patch third <step.aceg
	says "the patch to step 7 is for model [0-9a-f]{32}, step 6, but 'third' is model [0-9a-f]{32}\$"
	ace-diff new >whole
	exits 0 ace-patch third <whole
	same third new
}

@test "GGUF: any order of tensors, alignment and version" {
	models
	mkgguf other --reverse --align 256 --version 2
	mkgguf want --reverse --align 256 --version 2 -s 1
	exits 0 ace-patch other <step.aceg
	same other want
	exits 0 ace-diff old other
	mkgguf wide --align 64
	notes "0 of [0-9]+ groups" ace-diff -v old wide
	# without the padding after the last tensor
	head -c -31 wide >m
	notes "0 of [0-9]+ groups" ace-diff -v wide m
}

@test "GGUF: the same tensors in a safetensors file are the same model" {
	mkgguf old --plain --as olds
	mkgguf new --plain -s 1 --as news
	notes "from ([0-9a-f]+) to \1: 0 of" ace-diff -v old olds
	makes step.aceg ace-diff olds news
	exits 0 ace-patch old <step.aceg
	same old new
}

@test "GGUF: models of other metadata or types of blocks are refused, since a patch has only values" {
	models
	mkgguf named --key other -s 1
	exits 3 ace-diff old named
	says "mismatch: 'old' and 'named' differ in key 'general.name', which no patch changes"
	# blocks of q4_0 and iq4_nl have the same length
	cp old other
	at=$(grep -obUa 'blk.02.q4_0' other | cut -d: -f1)
	printf '\24' | dd of=other bs=1 seek=$((at + 11 + 4 + 16)) conv=notrunc status=none
	refuses 3 "tensor 'blk.02.q4_0' is of kind q4_0 and iq4_nl" ace-diff old other
	exits 3 ace-patch other <step.aceg
	says "tensor 'blk.02.q4_0' is of kind iq4_nl and q4_0"
	# a receiver keeps its own metadata
	mkgguf named --key other
	mkgguf want --key other -s 1
	exits 0 ace-patch named <step.aceg
	same named want
}

@test "GGUF: invalid headers are refused" {
	cat >lies <<-'END'
	dim-huge corrupt: tensor 'blk.00.F32' of 'bad' ends after the end of the file
	dim-product corrupt: tensor 'blk.00.F32' of 'bad' ends after the end of the file
	dim-more corrupt: 'bad' has an overlap before tensor 'blk.01.F16'
	dims limit: tensor 'blk.00.F32' of 'bad' has 9 dimensions, at most 8
	type unsupported: tensor 'blk.00.F32' of 'bad' has unknown type 43
	type-old unsupported: tensor 'blk.00.F32' of 'bad' has unknown type 4
	type-huge unsupported: tensor 'blk.00.F32' of 'bad' has unknown type 2147483648
	misaligned corrupt: tensor 'blk.00.F32' of 'bad' does not begin at a multiple of
	offset-huge corrupt: tensor 'blk.00.F32' of 'bad' ends after the end of the file
	offset-past corrupt: tensor 'blk.00.F32' of 'bad' ends after the end of the file
	overlap corrupt: 'bad' has a hole before tensor 'blk.02.q4_0'
	hole corrupt: 'bad' has a hole before tensor 'blk.00.F32'
	rows corrupt: tensor 'blk.00.F32' of 'bad' has rows that are not whole blocks of 32 values
	name-twice corrupt: two tensors are named 'blk.00.F32'
	name-long limit: the name of tensor 0 of 'bad' has 256 bytes, expected 1 to 255
	name-none limit: the name of tensor 0 of 'bad' has 0 bytes
	name-zero corrupt: tensor 0 of 'bad' has a name that is not text
	name-huge limit: the name of tensor 0 of 'bad' has 9223372036854775808 bytes
	name-no-text corrupt: tensor 0 of 'bad' has a name that is not text
	tensors-huge limit: 'bad' has 9223372036854775808 tensors, at most 131072
	tensors-more limit: the name of tensor 36 of 'bad' has 0 bytes
	keys-huge limit: 'bad' has 9223372036854775808 keys, at most 4096
	keys-more limit: the name of tensor 0 of 'bad' has
	version-1 unsupported: 'bad' has GGUF version 1
	version-4 unsupported: 'bad' has GGUF version 4
	big-endian unsupported: 'bad' is a big-endian GGUF file
	behind corrupt: 'bad' has 64 bytes after its last tensor
	align-0 corrupt: key 'general.alignment' of 'bad' is not a power of two: 0
	align-3 corrupt: key 'general.alignment' of 'bad' is not a power of two: 48
	align-type corrupt: key 'general.alignment' of 'bad' is not a u32
	key-twice corrupt: key 'test.tokens' occurs twice in 'bad'
	key-long limit: the name of key 2 of 'bad' has 2000 bytes
	value-type corrupt: key 'test.odd' of 'bad' has a value of unknown type
	string-huge corrupt: key 'test.odd' of 'bad' is longer than the rest of the file
	array-huge corrupt: key 'test.odd' of 'bad' is longer than the rest of the file
	array-strings corrupt: key 'test.odd' of 'bad' is longer than the rest of the file
	array-type corrupt: key 'test.odd' of 'bad' has a value of unknown type
	array-deep corrupt: key 'test.odd' of 'bad' nests arrays too deeply
	END
	mkgguf bad --lie "$(cut -d ' ' -f 1 lies | paste -sd ,)"
	while read -r lie what; do
		mv "$lie" bad
		cp bad was
		refuses 3 "$what" ace-diff bad
		exits 3 ace-patch bad </dev/null
		same bad was
	done <lies
}

@test "GGUF: a header with a changed bit is refused, or read as an independent reader does" {
	mkgguf old -n 1 --plain
	mkgguf --mutants old 300
	for bad in bad.*; do
		each_of 4 || continue
		exits 3 ace-diff "$bad"
	done
	for good in good.*.as; do
		each_of 4 || continue
		notes "from ([0-9a-f]+) to \1: 0 of" ace-diff -v "${good%.as}" "$good"
	done
	[ "$(ls -d bad.* | wc -l)" -gt 30 ]
	[ "$(ls -d good.*.as | wc -l)" -gt 30 ]
}

@test "GGUF: 64 MiB of memory are enough for long metadata and many tensors" {
	# an array of 3 million strings, and 30000 tensors
	perl -e '
		sub text { pack("Q</a*", $_[0]) }
		my $n = 30000;
		my $head = "GGUF" . pack("LQ<Q<", 3, $n, 1) . text("test.tokens") .
		    pack("LLQ<", 9, 8, 3000000) . text("token") x 3000000;
		$head .= text("blk.$_.weight") . pack("LQ<LQ<", 1, 8, 0, 32 * ($_ - 1))
		    for 1 .. $n;
		$head .= "\0" x (-length($head) % 32);
		print $head, "\1\2\3\4" x (8 * $n)' >many
	exits 0 peak kib ace-diff many many
	sanitized || [ "$(cat kib)" -le 65536 ]
	cp many m
	ace-diff many >whole
	exits 0 peak kib ace-patch m <whole
	sanitized || [ "$(cat kib)" -le 65536 ]
}
