load helper

mkmodel() { "$ROOT/tests/mkmodel" "$@"; }
export PYTHONDONTWRITEBYTECODE=1

# st TEXT [BYTES]: a safetensors file with this header, on standard output
st() {
	perl -e 'print pack("Q<", length $ARGV[0]), $ARGV[0], "\1" x ($ARGV[1] // 0)' "$@"
}
one() { st "{\"$1\":{\"dtype\":\"$2\",\"shape\":[$3],\"data_offsets\":[0,$4]}}" "$4"; }

@test "the same tensors in other files are the same model" {
	mkmodel a
	mkmodel b -f 3 --reverse
	exits 0 ace-diff -v a b
	says "0 of 18 groups"
	mkmodel c -s 1
	mkmodel d -s 1 -f 5
	exits 0 ace-diff -v a c
	mv out step.aceg
	mv err said
	exits 0 ace-diff -v b d
	same out step.aceg
	same err said
}

@test "every type of safetensors; a few bytes for a few bits" {
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

@test "whole, without an old model" {
	mkmodel a
	mkmodel b -s 1
	exits 0 ace-diff -v b
	says "from nothing to"
	mv out step.aceg
	exits 0 ace-patch a <step.aceg
	same a b
}

@test "who knows the page alone makes the same model" {
	mkmodel a -n 6000
	mkmodel b -n 6000 -s 1
	exits 0 ace-diff a b
	mv out step.aceg
	exits 0 python3 "$ROOT/tests/decoder/patch" a step.aceg c
	same b c
	exits 0 ace-diff b
	mv out whole
	exits 0 python3 "$ROOT/tests/decoder/patch" a whole c
	same b c
}

@test "the same of words that are anything, level after level" {
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
	exits 0 ace-diff a b
	mv out step.aceg
	exits 0 ace-inspect verify step.aceg
	exits 0 python3 "$ROOT/tests/decoder/patch" a step.aceg c
	mkmodel --list b >want
	mkmodel --list c >is
	same is want
	exits 0 ace-patch a <step.aceg
	same a b
}

@test "the same bytes by however many threads" {
	mkmodel a -f 2
	mkmodel b -f 2 -s 1
	exits 0 ace-diff --no-provenance a b
	mv out want
	for t in 1 2 3 8; do
		exits 0 ace-diff --no-provenance -T $t a b
		same out want
	done
}

@test "who reads values refuses a patch" {
	mkshards -s 0 -k ramp | ace-export -o a
	mkshards -s 1 -k ramp | ace-export -o b
	one w BF16 40000 80000 >bf16.old
	perl -pe 's/\x01\x01\x01\x01\z/\x02\x01\x02\x01/' bf16.old >bf16.new
	one w F32 40000 160000 >f32.old
	perl -pe 's/\x01\x01\x01\x01\z/\x02\x01\x02\x01/' f32.old >f32.new
	exits 0 ace-diff a b
	mv out step.aceg
	for c in ace-expand ace-export "ace-compress -c q8" ace-aggregate; do
		# shellcheck disable=SC2086
		exits 3 $c <step.aceg
		says "mismatch: .*difference to a history|mismatch: .*history"
	done
	exits 0 ace-inspect verify step.aceg
	exits 0 ace-inspect step.aceg
	# and one of groups that are values to nobody, and to everybody
	for m in bf16 f32; do
		exits 0 ace-diff $m.old $m.new
		mv out step.aceg
		exits 0 ace-inspect verify step.aceg
		exits 0 ace-diff $m.new
		mv out step.aceg
		exits 0 ace-inspect verify step.aceg
	done
}

@test "other tensors, types or shapes: status 3, the tensor's name" {
	one w F32 4 16 >a
	for other in "v F32 4 16" "w BF16 8 16" "w F32 2,2 16" "w F32 3 12"; do
		# shellcheck disable=SC2086
		one $other >b
		exits 3 ace-diff a b
		says "mismatch: 'b' is not like 'a': .*'[vw]'"
	done
	st '{"w":{"dtype":"F32","shape":[1],"data_offsets":[0,4]},"x":{"dtype":"F32","shape":[1],"data_offsets":[4,8]}}' 8 >b
	exits 3 ace-diff a b
	exits 3 ace-diff b a
}

@test "headers that lie" {
	one w F32 4 16 >a
	one w F32 4 12 >b
	exits 3 ace-diff a b
	says "tensor 'w' in 'b' has bytes 0 to 12, its shape needs 16"
	head -c -1 a >b
	exits 3 ace-diff a b
	says "truncated: 'b'"
	{ cat a; echo; } >b
	exits 3 ace-diff a b
	says "corrupt: 'b'"
	st '{"w":{"dtype":"F32","shape":[1],"data_offsets":[0,4]},"x":{"dtype":"F32","shape":[1],"data_offsets":[2,6]}}' 8 >b
	exits 3 ace-diff a b
	says "overlap before tensor 'x'"
	st '{"w":{"dtype":"F32","shape":[1],"data_offsets":[0,4]},"x":{"dtype":"F32","shape":[1],"data_offsets":[6,10]}}' 10 >b
	exits 3 ace-diff a b
	says "hole before tensor 'x'"
	st '{"w":{"dtype":"F32","shape":[9223372036854775807,4],"data_offsets":[0,4]}}' 4 >b
	exits 3 ace-diff a b
	says "limit: tensor 'w'"
	st '{"w":{"dtype":"F32","shape":[1],"data_offsets":[9223372036854775807,9223372036854775808]}}' 4 >b
	exits 3 ace-diff a b
	st '{"w":{"dtype":"F4","shape":[3],"data_offsets":[0,2]}}' 2 >b
	exits 3 ace-diff a b
	says "odd number of f4"
	st '{"w":{"dtype":"C64","shape":[1],"data_offsets":[0,8]}}' 8 >b
	exits 3 ace-diff a b
	says "unsupported: tensor 'w' in 'b' has dtype 'C64'"
	printf '\377\377\377\377\377\377\377\177{}' >b
	exits 3 ace-diff a b
	says "limit: header of 'b'"
}

@test "an index that lies" {
	mkmodel d -f 2
	mkmodel a
	i=d/model.safetensors.index.json
	cp $i was
	exits 0 ace-diff a d
	for f in ../a /etc/passwd sub/x .. ''; do
		f=$f perl -pe 's|"model-00001-of-00002.safetensors"|"$ENV{f}"|' <was >$i
		exits 3 ace-diff a d
		says "corrupt: 'd/model.safetensors.index.json' names a file"
	done
	sed 's/layer.99.empty/layer.99.other/' was >$i
	exits 3 ace-diff a d
	says "corrupt: tensor 'layer.99"
	sed 's/00001-of-00002/00002-of-00002/' was >$i
	exits 3 ace-diff a d
	says "corrupt: tensor 'layer..*' is in .*, not where 'd/model.safetensors.index.json' says"
	# the same tensor in two files
	cp was $i
	cp d/model-00001-of-00002.safetensors d/model-00002-of-00002.safetensors
	exits 3 ace-diff a d
	says "corrupt: tensor 'layer"
	cp was $i
	rm d/model-00002-of-00002.safetensors
	exits 3 ace-diff a d
	says "names a file 'model-00002-of-00002.safetensors' that is not there"
	for text in '' '{' '{}' '[]' '{"weight_map":{}}' '{"weight_map":[]}' \
	    '{"weight_map":{"a":1}}' '{"weight_map":{"a":"b"},"weight_map":{}}'; do
		echo "$text" >$i
		exits 3 ace-diff a d
	done
	rm $i
	exits 3 ace-diff a d
	says "neither model.safetensors.index.json nor model.safetensors in 'd'"
}

@test "neither a file nor a directory; no model at all" {
	mkmodel a
	exits 4 ace-diff a gone
	exits 2 ace-diff
	exits 2 ace-diff a a a
	mkshards >s
	exits 3 ace-diff a s
	mkfifo pipe
	exits 3 ace-diff a pipe
	says "is no file"
}

@test "a model that changes while it is read is refused" {
	# more than the pipe holds, so that it waits in the middle
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

@test "memory does not grow with the model" {
	header='{"w":{"dtype":"BF16","shape":[200000000],"data_offsets":[0,400000000]}}'
	st "$header" >a
	truncate -s $(($(wc -c <a) + 400000000)) a
	cp --sparse=always a b
	printf 'x' | dd of=b bs=1 seek=300000000 conv=notrunc 2>/dev/null
	exits 0 peak kib ace-diff -T 4 -o step.aceg a b
	[ "$(cat kib)" -lt 65536 ]
	exits 0 peak kib ace-patch -T 4 a <step.aceg
	[ "$(cat kib)" -lt 65536 ]
	same a b
}

# five: models 0 to 4, in which a few bf16 change, all bytes of one tensor in the first two
# steps, others in each, and one tensor in none; and patches 1 to 4
five() {
	python3 - <<-'END'
	import json, random, struct
	random.seed(7)
	bf16 = [random.choice((0x3f80, 0xbc12, 0x3a00)) + random.getrandbits(7) for _ in range(4000)]
	rest = {'a': bf16, 'b': [random.getrandbits(8) for _ in range(900)],
	    'c': [3] * 50, 'd': [random.getrandbits(32) for _ in range(300)]}
	size = {'a': ('BF16', 2, 'H'), 'b': ('U8', 1, 'B'), 'c': ('I16', 2, 'H'), 'd': ('F32', 4, 'I')}
	for step in range(5):
	    head, data = {}, b''
	    for k, (name, n, code) in size.items():
	        raw = struct.pack('<%d%s' % (len(rest[k]), code), *rest[k])
	        head[k] = {'dtype': name, 'shape': [len(rest[k])],
	            'data_offsets': [len(data), len(data) + len(raw)]}
	        data += raw
	    head = json.dumps(head).encode()
	    with open(str(step), 'wb') as f:
	        f.write(struct.pack('<Q', len(head)) + head + data)
	    for i in random.sample(range(4000), 40):
	        bf16[i] ^= 1
	    for i in range(900 if step < 2 else 3):
	        rest['b'][i] = random.getrandbits(8)
	    rest['d'] = [random.getrandbits(32) for _ in range(300)] if step != 3 else rest['d']
	END
	local k
	for k in 1 2 3 4; do
		ace-diff -r demo -d trainer -s $k --base-version $((k - 1)) $((k - 1)) $k >$k.aceg
	done
}

# models FILE: the hashes that a patch is between
between() { ace-inspect "$1" | sed -n 's/^models *//p'; }

@test "--fold: one patch of several, to the same model, in hardly more bytes than the last ones need" {
	local way
	five
	exits 0 ace-diff -v --fold {1,2,3,4}.aceg
	says "4 patches, from [0-9a-f]{32} to [0-9a-f]{32}: 3 of 4 groups"
	mv out folded
	cat {1,2,3,4}.aceg >all
	for way in copy in-place; do
		cp 0 m
		exits 0 ace-patch -v --way $way m <folded
		says "becomes .*, step 4$"
		same m 4
		exits 0 ace-patch -v m <folded
		says "is that model already"
		rm -r m.ace-patch
	done
	ace-diff 0 4 >ends
	[ "$(between folded)" = "$(between ends)" ]
	exits 0 ace-inspect -v folded
	grep -qE '^run +demo$' out
	grep -qE '^device +trainer$' out
	grep -qE '^base version +0$' out
	exits 0 ace-inspect verify folded
	[ "$(wc -c <folded)" -lt "$(wc -c <all)" ]
	# what the second patch has whole the first one need not have had
	ace-diff --no-provenance --fold {2,3,4}.aceg >three
	[ $(($(wc -c <folded) - $(wc -c <three))) -lt $(($(wc -c <1.aceg) - 900)) ]
	# by any number of threads, in files or in a stream, at once or one by one
	ace-diff --no-provenance --fold {1,2,3,4}.aceg >want
	for t in 1 2 7; do
		exits 0 ace-diff --no-provenance -T $t --fold <all
		same out want
	done
	cat 2.aceg 3.aceg >some
	exits 0 ace-diff --no-provenance --fold 1.aceg some - <4.aceg
	same out want
	ace-diff --fold 1.aceg 2.aceg >a
	ace-diff --fold a 3.aceg >b
	exits 0 ace-diff --no-provenance -o c --fold b 4.aceg
	same c want
	ace-diff --fold {2,3,4}.aceg >b
	exits 0 ace-diff --no-provenance --fold 1.aceg b
	same out want
	# of one it is that one, but for how many values changed, which it leaves out
	exits 0 ace-diff --fold 3.aceg
	mv out three
	cp 2 m
	exits 0 ace-patch m <three
	same m 3
	exits 0 "$ROOT/tests/decoder/patch" 0 folded got
	same got 4
	exits 0 "$ROOT/tests/decoder/patch" 0 all got
	same got 4
	# an archive knows it for what it is, and it may be signed
	ace-diff -r demo -s 0 0 >first
	ace-archive create -o a.tar first folded
	ace-archive get --step 4 a.tar >way
	cp 2 m
	rm -r m.ace-patch
	exits 0 ace-patch m <way
	same m 4
	cp 0 m
	cat folded 4.aceg >longer
	exits 3 ace-patch m <longer
	ace-diff -r demo -s 5 --base-version 4 4 1 >5.aceg
	cat folded 5.aceg >longer
	exits 0 ace-patch m <longer
	same m 1
}

@test "--fold: behind a whole model it is one, and its values are readable" {
	five
	ace-diff -r demo -d trainer -s 1 1 >whole
	exits 0 ace-diff -v --fold 4.aceg whole {2,3,4}.aceg
	says "5 patches, from nothing to [0-9a-f]{32}: 4 of 4 groups"
	mv out folded
	cp 3 m
	exits 0 ace-patch m <folded
	same m 4
	rm -r m.ace-patch
	exits 0 ace-patch m <4.aceg
	same m 4
	# as what is made of the model itself
	ace-diff --no-provenance -r demo -d trainer -s 4 4 >want
	ace-diff --no-provenance --fold whole {2,3,4}.aceg | cmp - want
	exits 0 ace-inspect verify folded
	# of f32 alone it is values to everybody
	mkshards -s 0 -k ramp | ace-export -o a
	mkshards -s 1 -k ramp | ace-export -o b
	ace-diff a >whole
	ace-diff -s 1 a b >1.aceg
	ace-diff --fold whole 1.aceg >folded
	exits 0 ace-export -o c folded
	exits 0 ace-diff -v b c
	says ": 0 of "
	# a receiver of whom nothing is known is asked
	ace-diff -S sent a b
	ace-diff -S sent --to host | exits 0 ace-diff --fold
	ace-patch --receipt host a <out | ace-ack -S sent >rest
	ace-diff -S sent --to host | ace-diff --fold | exits 0 ace-patch a
	exits 0 ace-diff -v a b
	says ": 0 of "
}

@test "--fold refuses what makes no one step: in another order, twice, of another run, of ranks" {
	local p
	five
	for p in "2 1" "1 3" "1 1" "1 2 2" "1 2 4" "4 3"; do
		# shellcheck disable=SC2046,SC2086 # words
		exits 3 ace-diff -o folded --fold $(printf '%s.aceg ' $p)
		says "mismatch: the patch to step [1-4] is not of the model that the one before it makes: it is for [0-9a-f]{32}, that one makes [0-9a-f]{32}, of '[1-4].aceg'"
		[ ! -e folded ]
	done
	exits 3 ace-diff --fold 1.aceg 3.aceg
	says "it is for $(between 3.aceg | cut -d ' ' -f 2), that one makes $(between 1.aceg | cut -d ' ' -f 4)"
	ace-diff -r other -s 2 1 2 >other
	exits 3 ace-diff -o folded --fold 1.aceg other
	says "mismatch: the patch to step 2 is of run 'other', the one before it of 'demo'"
	mkmodel old
	mkmodel new -s 1
	ace-diff -r demo old new >other
	exits 3 ace-diff -o folded --fold 1.aceg other
	says "mismatch: the patch is not of a model like '1.aceg': .*'other'"
	echo '{"__metadata__": {"rank": 0, "ranks": 2}}' >index
	ace-diff -r demo --part index 0 1 >other
	exits 3 ace-diff -o folded --fold other
	says "unsupported: a patch of one rank"
	mkshards >other
	exits 3 ace-diff -o folded --fold other
	says "mismatch: this is no patch"
	mkshards -H kind=5 >other
	exits 3 ace-diff -o folded --fold other
	exits 3 ace-diff -o folded --fold 1
	ace-diff --omit-schema 0 1 >other
	exits 3 ace-diff -o folded --fold other
	exits 3 ace-diff --fold </dev/null
	says truncated
	exits 4 ace-diff --fold absent
	for p in "-s 3" "--base-version 1" "-r demo" "-d x" "-S dir" "--part index"; do
		# shellcheck disable=SC2086 # words
		exits 2 ace-diff $p --fold 1.aceg
		says "fold takes patches"
	done
	[ ! -e folded ]
}

@test "--fold: cut or flipped anywhere there is nothing" {
	local at
	five
	cat {1,2,3}.aceg >all
	for at in $(seq 1 61 $(($(wc -c <all) - 1))); do
		each_of 5 || continue
		head -c "$at" all >bad
		exits 3 ace-diff -o folded --fold bad 4.aceg
		[ ! -e folded ]
		cp all bad
		flip bad "$at"
		exits 3 ace-diff -o folded --fold bad 4.aceg
		[ ! -e folded ]
	done
	# and what is folded is damaged as any patch is
	ace-diff --fold all >folded
	cp 0 m
	for at in $(seq 1 61 $(($(wc -c <folded) - 1))); do
		each_of 5 || continue
		cp folded bad
		flip bad "$at"
		exits 3 ace-patch m <bad
		same m 0
	done
}
