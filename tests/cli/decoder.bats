# tests/decoder is an independent decoder, written from ace-stream(5); it must read the same
# values as the programs.  DECODER_SHARDS: number of shards of each kind.

# bats file_tags=plain
load helper

export PYTHONDONTWRITEBYTECODE=1
decode() { python3 "$ROOT/tests/decoder/decode" "$@"; }
SHARDS=${DECODER_SHARDS:-4}

@test "it reads every golden file" {
	for f in "$ROOT"/tests/golden/good-*.f32; do
		exits 0 decode "${f%.f32}.aceg"
		same out "$f"
	done
}

shapes() {
	codecs=ecq:0.01,ecq:0.3,ecq:0.002,ecq:1e-9,tcq:0.01,tcq:0.2,tcq:0.001,tcq:1e-9
	codecs=$codecs,lowrank:2,lowrank:5,topk:0.1
	codecs=$codecs,topk:0.2:q2,topk:0.1:mag,chunk:4/64:q2
	codecs=$codecs,topk:1,qsgd:3,qsgd:127,exact,q8,sign
	codecs=$codecs,f16,f32,nonzero
	i=0
	for kind in layered gauss ramp; do
		for shape in "-g 300 -t a:61,16 -t b:7,33 -t c:5 -t d: -t e:3,1" \
		    "-g 512 -t a:40,24 -t b:30,100 -t c:1000" \
		    "-g 97 -t a:33,40 -t b:2,800" \
		    "-g 4096 -t a:170,48 -t b:12288"; do
			i=$((i + 1))
			# each time begin at another codec of the list
			codecs=${codecs#*,},${codecs%%,*}
			each_of 3 || continue
			mkshards $shape -k $kind -N "$SHARDS" -x $i -L "$codecs" |
			    ace-compress -q -o coded
			makes dense ace-expand coded
			makes want decode dense
			[ -s want ]
			exits 0 decode coded
			same out want || { echo "$kind $shape $codecs"; false; }
		done
	done
}

@test "it reads random shards of every codec and many shapes" {
	shapes
}

# bats test_tags=long
@test "it reads random shards of every kind of values and shape" {
	shapes
}

@test "it reads ecq with prediction between rows, for rows of many lengths" {
	# rows of fewer than 16 values, of some more, and of many; three rows and many; groups
	# that begin inside a row
	for shape in "-t a:900,3 -t b:40,7 -t c:200,15" \
	    "-t a:100,17 -t b:3,100 -t c:60,77" \
	    "-t a:9,333 -t b:40,130 -t c:5,67" \
	    "-g 1500 -t a:40,93 -t b:100,71 -t c:700,5"; do
		mkshards $shape -k columns -N "$SHARDS" |
		    ace-compress -q -c ecq:0.05 -o coded
		makes want ace-expand coded
		makes want decode want
		exits 0 decode coded
		same out want || { echo "$shape"; false; }
	done
}

@test "it reads shards of ace-step with --effort 6 and more" {
	local e=5 kind
	for kind in layered gauss columns; do
		e=$((e + 1))
		mkshards -g 1500 -t a:40,93 -t b:100,71 -t c:700,5 -k $kind -N "$SHARDS" |
		    ace-step -q --bits 1.28 --effort $e -o coded
		ace-inspect list coded >listing
		grep -qw tcq listing
		makes want ace-expand coded
		makes want decode want
		exits 0 decode coded
		same out want || { echo "$kind $e"; false; }
	done
}

@test "it refuses damage" {
	mkshards -n 1000 -c f32 >good
	cp good bad
	# change a byte among the values
	printf '\377' |
	    dd of=bad bs=1 seek=$(($(wc -c <good) - 2000)) conv=notrunc 2>/dev/null
	decode good >want
	exits 0 decode bad
	run ! cmp out want
	head -c 3000 good >bad
	run ! decode bad
}
