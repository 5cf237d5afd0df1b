load helper

export PYTHONDONTWRITEBYTECODE=1

one() { st "{\"$1\":{\"dtype\":\"$2\",\"shape\":[$3],\"data_offsets\":[0,$4]}}" "$4"; }

@test "the same tensors in other files are the same model" {
	mkmodel a
	mkmodel b -f 3 --reverse
	mv b blobs && mkdir b && ln -s "$PWD"/blobs/* b	# as in Hugging Face's cache
	notes "0 of 18 groups" ace-diff -v a b
	mkmodel c -s 1
	mkmodel d -s 1 -f 5
	makes step.aceg ace-diff -v a c
	mv err said
	exits 0 ace-diff -v b d
	same out step.aceg
	same err said
}

@test "a patch of every type of safetensors, of a few bytes if few bits changed" {
	mkmodel a -n 200000
	mkmodel b -n 200000 -s 1
	exits 0 ace-diff a b
	[ "$(($(wc -c <out) * 30))" -lt "$(wc -c <b)" ]
	mv out step.aceg
	exits 0 ace-patch a <step.aceg
	mkmodel --list a >is
	mkmodel --list b >want
	same is want
	[ "$(wc -l <is)" -eq 19 ]
}

@test "without an old model, the patch has the whole model" {
	mkmodel a
	mkmodel b -s 1
	notes "from nothing to" ace-diff -v b
	mv out step.aceg
	exits 0 ace-patch a <step.aceg
	same a b
}

@test "a decoder that was written from the page alone makes the same model" {
	mkmodel a -n 6000
	mkmodel b -n 6000 -s 1
	makes step.aceg ace-diff a b
	exits 0 python3 "$ROOT/tests/decoder/patch" a step.aceg c
	same b c
	makes whole ace-diff b
	exits 0 python3 "$ROOT/tests/decoder/patch" a whole c
	same b c
}

@test "that decoder reads random words of every pattern, too" {
	python3 - <<-'END'
	import json, random, struct
	random.seed(1)
	old = [random.getrandbits(32) if random.random() < .002 else 0x3f800000
	    for i in range(65536)]
	new = [w ^ 1 if random.random() < .01 else w for w in old]
	for name, words in ('a', old), ('b', new):
	    head = json.dumps({'w': {'dtype': 'F32', 'shape': [256, 256],
	        'data_offsets': [0, 4 * 65536]}}).encode()
	    with open(name, 'wb') as f:
	        f.write(struct.pack('<Q', len(head)) + head + struct.pack('<65536I', *words))
	END
	makes step.aceg ace-diff a b
	exits 0 ace-inspect verify step.aceg
	exits 0 python3 "$ROOT/tests/decoder/patch" a step.aceg c
	mkmodel --list b >want
	mkmodel --list c >is
	same is want
	exits 0 ace-patch a <step.aceg
	same a b
}

@test "the same bytes with any number of threads" {
	mkmodel a -f 2
	mkmodel b -f 2 -s 1
	makes want ace-diff --omit provenance a b
	for t in 1 3 8; do
		exits 0 ace-diff --omit provenance -T $t a b
		same out want
	done
}

@test "programs that read values refuse a patch" {
	mkshards -s 0 -k ramp | ace-export -o a
	mkshards -s 1 -k ramp | ace-export -o b
	one w BF16 40000 80000 >bf16.old
	perl -pe 's/\x01\x01\x01\x01\z/\x02\x01\x02\x01/' bf16.old >bf16.new
	one w F32 40000 160000 >f32.old
	perl -pe 's/\x01\x01\x01\x01\z/\x02\x01\x02\x01/' f32.old >f32.new
	makes step.aceg ace-diff a b
	for c in ace-expand ace-export "ace-compress -c q8" ace-aggregate; do
		exits 3 $c <step.aceg
		says "mismatch: .*difference to a model: apply it with ace-patch|mismatch: .*history"
	done
	exits 0 ace-inspect verify step.aceg
	exits 0 ace-inspect step.aceg
	# ace-inspect accepts patches and whole models, of bf16 and of f32
	for m in bf16 f32; do
		makes step.aceg ace-diff $m.old $m.new
		exits 0 ace-inspect verify step.aceg
		makes step.aceg ace-diff $m.new
		exits 0 ace-inspect verify step.aceg
	done
}

@test "two models with other tensors, types or shapes: status 3, with the tensor's name" {
	one w F32 4 16 >a
	for other in "v F32 4 16" "w BF16 8 16" "w F32 2,2 16" "w F32 3 12"; do
		one $other >b
		exits 3 ace-diff a b
		says "mismatch: 'a' and 'b' have different tensors: .*'[vw]'"
	done
	st '{"w":{"dtype":"F32","shape":[1],"data_offsets":[0,4]},"x":{"dtype":"F32","shape":[1],"data_offsets":[4,8]}}' 8 >b
	exits 3 ace-diff a b
	exits 3 ace-diff b a
}

# test_safetensors tests every invalid header
@test "invalid headers of safetensors files are refused" {
	one w F32 4 16 >a
	one w F32 4 12 >b
	exits 3 ace-diff a b
	says "tensor 'w' in 'b' has 12 B .data_offsets 0,12., but its shape needs 16 B"
	head -c -1 a >b
	refuses 3 "truncated: 'b'" ace-diff a b
	{ cat a; echo; } >b
	refuses 3 "corrupt: 'b'" ace-diff a b
	one w F4 3 2 >b
	refuses 3 "tensor 'w' in 'b' has an odd number of f4 values, 3" ace-diff a b
}

@test "an invalid index of a model directory is refused" {
	mkmodel d -f 2
	mkmodel a
	i=d/model.safetensors.index.json
	cp $i was
	exits 0 ace-diff a d
	for f in ../a /etc/passwd sub/x .. ''; do
		f=$f perl -pe 's|"model-00001-of-00002.safetensors"|"$ENV{f}"|' <was >$i
		refuses 3 "corrupt: 'd/model.safetensors.index.json' names file" ace-diff a d
	done
	{ cat was && echo '{}'; } >$i
	refuses 3 "corrupt: index: text follows the last entry, .*file '$i'" ace-diff a d
	for bad in layer.99.empty/layer.99.other 00001-of-00002/00002-of-00002; do
		sed "s/$bad/" was >$i
		refuses 3 "corrupt: '$i' does not name exactly the tensors" ace-diff a d
	done
	# the same tensor is in two files
	cp was $i
	cp d/model-00001-of-00002.safetensors d/model-00002-of-00002.safetensors
	refuses 3 "corrupt: '$i' does not name exactly the tensors" ace-diff a d
	rm d/model-00002-of-00002.safetensors
	refuses 3 "names file 'model-00002-of-00002.safetensors': No such file" ace-diff a d
	for text in '' '{' '{}' '[]' '{"weight_map":{}}' '{"weight_map":[]}' \
	    '{"weight_map":{"a":1}}' '{"weight_map":{"a":"b"},"weight_map":{}}'; do
		echo "$text" >$i
		exits 3 ace-diff a d
	done
	rm $i
	exits 3 ace-diff a d
	says "'d' has neither model.safetensors.index.json nor model.safetensors"
}

@test "a missing file, a shard, a pipe, or a wrong number of models is refused" {
	mkmodel a
	exits 4 ace-diff a gone
	exits 2 ace-diff
	exits 2 ace-diff a a a
	mkshards >s
	exits 3 ace-diff a s
	mkfifo pipe
	refuses 3 "is not a regular file" ace-diff a pipe
}

@test "a model that changes while it is read is refused" {
	# more than a pipe holds, so that ace-diff blocks while it writes
	mkmodel a -n 600000
	mkfifo hold
	timeout "$HANG" ace-diff a 2>err >hold &
	pid=$!
	exec 8<hold
	head -c 100 <&8 >/dev/null
	touch -d 2001-01-01 a
	cat <&8 >part
	got=0
	wait $pid || got=$?
	exec 8<&-
	[ "$got" -eq 5 ]
	says "'a' changed while it was read"
	exits 3 ace-inspect verify part
}

# many N VALUE: write a model of N tensors, with names of 40 bytes
many() {
	perl -e '($n, $v) = @ARGV; $h = join(",", map { sprintf(
	    "\"%040d\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[%d,%d]}",
	    $_, 4 * $_, 4 * $_ + 4) } 0 .. $n - 1); $h = "{$h}";
	    print pack("Q<", length $h), $h, pack("f<", $v) x $n' "$@"
}

@test "memory grows with the number of tensors as the pages say" {
	sanitized && skip "the sanitizer's own memory"
	local n p most kib
	for n in 1000 41000; do
		many $n 1 >a$n
		many $n 2 >b$n
		exits 0 peak diff$n ace-diff -o step$n a$n b$n
		exits 0 peak patch$n ace-patch a$n <step$n
	done
	for p in diff patch; do
		most=$(tr '\n' ' ' <"$ROOT/man/ace-$p.1" |
		    sed -n 's/.* \([0-9]*\) bytes [a-z ]* *tensor with a *name of 40 bytes.*/\1/p')
		kib=$(($(cat ${p}41000) - $(cat ${p}1000)))
		echo "$p: $((kib * 1024 / 40000)) of $most"
		[ $((kib * 1024)) -le $((most * 40000)) ]
		[ $((kib * 1024 * 3 / 2)) -ge $((most * 40000)) ]
	done
}

@test "memory does not grow with the model" {
	header='{"w":{"dtype":"BF16","shape":[100000000],"data_offsets":[0,200000000]}}'
	st "$header" >a
	truncate -s $(($(wc -c <a) + 200000000)) a
	cp --sparse=always a b
	printf 'x' | dd of=b bs=1 seek=150000000 conv=notrunc 2>/dev/null
	exits 0 peak kib ace-diff -T 4 -o step.aceg a b
	[ "$(cat kib)" -lt 65536 ]
	exits 0 peak kib ace-patch -T 4 a <step.aceg
	[ "$(cat kib)" -lt 65536 ]
	same a b
}
