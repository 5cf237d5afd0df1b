load helper
load values

# npy DESCR SHAPE <DATA: print an .npy file, made without our programs
npy() {
	perl -e 'binmode STDIN; binmode STDOUT; local $/;
	    $h = "{\x27descr\x27: $ARGV[0], \x27fortran_order\x27: False, " .
	      "\x27shape\x27: $ARGV[1], }";
	    $h .= " " while (11 + length $h) % 64;
	    print "\x93NUMPY\1\0", pack("v", 1 + length $h), "$h\n", <STDIN> // ""' \
	    "$1" "$2"
}
# pack TEMPLATE VALUES...: print packed values
pack() { perl -e 'binmode STDOUT; print pack(shift, @ARGV)' "$@"; }
# shrd STREAM TEMPLATE: print a field of each shard's SHRD frame, by a template of Perl's unpack
shrd() {
	frames "$1" | awk '$2 == "SHRD" { print $1 }' | while read -r o; do
		tail -c +$((o + 65)) "$1" | perl -e 'local $/; binmode STDIN;
		    print unpack($ARGV[0], <STDIN>), "\n"' "$2"
	done | paste -sd ' '
}
@test "values, names, shapes and dtypes are the same after ace-import and ace-export" {
	safetensors >in.safetensors
	exits 1 ace-import --tensor typo -o s.aceg in.safetensors
	says "^ace-import: no tensor of 'in.safetensors' matches 'typo': "
	[ ! -e s.aceg ]
	exits 0 ace-import -d edge1 -s 3 -o s.aceg in.safetensors
	exits 0 ace-export -o out.safetensors s.aceg
	same in.safetensors out.safetensors
}

# noted FILE METADATA: write a safetensors file of one tensor with this metadata
noted() {
	local w='"w":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}'
	st "{\"__metadata__\":$2,$w}" 4 >"$1"
}

@test "a message says which metadata is lost" {
	noted a.safetensors '{"format":"pt","step":"7"}'
	noted b.safetensors "{\"format\":\"pt\",\"Step\":\"7\",\"x\":\"$(printf 'y%.0s' {1..300})\"}"
	exits 0 ace-import a.safetensors
	[ ! -s err ]
	exits 0 ace-import b.safetensors
	says "^ace-import: 'b.safetensors': entries of its metadata that were left out: 2, "
	exits 0 ace-import -q b.safetensors
	[ ! -s err ]
	exits 0 ace-diff a.safetensors b.safetensors
	says "^ace-diff: 'a.safetensors' and 'b.safetensors' differ in metadata, which a patch does not"
	exits 0 ace-diff a.safetensors
	says "'a.safetensors' has metadata, which a whole model's shard does not carry"
	noted c.safetensors '{"step":"7","format":"np"}'
	exits 0 ace-diff a.safetensors c.safetensors
	[ ! -s err ]
}

@test "npz: the message for a trailing comment says that it may be one" {
	safetensors >in.safetensors
	ace-import in.safetensors | ace-export -o c.npz
	python3 -c "import zipfile
with zipfile.ZipFile('c.npz', 'a') as z: z.comment = b'words'"
	exits 3 ace-import c.npz
	says "truncated: 'c.npz' does not end with the end record of a zip file, or has a zip comment"
}

@test "from safetensors to npz and back, stored and deflated" {
	safetensors >in.safetensors
	exits 0 ace-import -o a.aceg in.safetensors
	for how in stored deflated; do
		exits 0 ace-export -o mid.npz a.aceg
		[ $how = stored ] || python3 - <<-'END'
		import zipfile
		with zipfile.ZipFile('mid.npz') as z:
		    files = [(n, z.read(n)) for n in z.namelist()]
		with zipfile.ZipFile('mid.npz', 'w', zipfile.ZIP_DEFLATED) as z:
		    for n, data in files:
		        z.writestr(n, data)
		END
		exits 0 ace-import --omit provenance -o b.aceg mid.npz
		exits 0 ace-export -o back.safetensors b.aceg
		same in.safetensors back.safetensors
		exits 0 ace-import --omit provenance -f npz -o c.aceg < <(cat mid.npz)
		same b.aceg c.aceg
	done
}

@test "the format comes from the file's name or -f; a pipe is taken for safetensors" {
	safetensors >in
	exits 0 ace-import in
	exits 0 ace-import -f safetensors in
	exits 0 ace-import <in
	exits 3 ace-import -f npz in
	says "corrupt: 'in' is not an npz file: this is a safetensors file"
	exits 3 ace-import -f npy in
	says "corrupt: 'in' is not an npy array: this is a safetensors file"
	exits 2 ace-import -f hdf5 in
	mkdir folder
	refuses 4 "'folder': Is a directory" ace-import folder
}

@test "several files are steps of one stream" {
	for i in 1 2 3; do pack 'f<4' "$i" 0 0 "$i" >"$i.f32"; done
	exits 0 ace-import -d e -r run -s 41 --shape 2,2 --base-version 7 \
	    -o all.aceg 1.f32 2.f32 3.f32
	for i in 1 2 3; do
		raw all.aceg --step $((40 + i)) >"got$i"
		same "got$i" "$i.f32"
	done
	refuses 2 "'e/41' .gradient. and 'e/42'" ace-export all.aceg
	[ "$(shrd all.aceg 'x88 Q<')" = "7 8 9" ]
	# without --base-version the version is 0, unknown
	exits 0 ace-import -d e -s 41 --shape 2,2 1.f32 2.f32
	[ "$(ace-inspect list --format json out | grep -c '"base_version":0,')" -eq 2 ]
	pack 'f<5' 1 2 3 4 5 >5.f32
	exits 3 ace-import 1.f32 5.f32
	says "mismatch: '1.f32' and '5.f32' have different tensors: tensor 'data'"
	exits 2 ace-import -s 18446744073709551615 1.f32 2.f32
	exits 2 ace-import --base-version 18446744073709551615 1.f32 2.f32
	says "base-version is too large: for a later file it would exceed"
	# steps have 64 bits
	exits 0 ace-import -s 18446744073709551613 1.f32
	[ "$(ace-inspect list --format json out |
	    grep -c '"step":18446744073709551613,')" -eq 1 ]
}

@test "--many: the files of a whole run in one pipe, a step each" {
	safetensors >one
	safetensors | perl -pe 'BEGIN { binmode STDIN; binmode STDOUT; $/ = \336 }
	    $_ = reverse $_ if $. > 1 && length == 336' >two
	cat one two one >many
	exits 0 ace-import --many -d e -s 5 --base-version 7 -o all.aceg <many
	ace-import -f safetensors -d e -s 5 --base-version 7 -o want.aceg one two one
	exits 0 ace-inspect diff want.aceg all.aceg
	[ "$(shrd all.aceg 'x88 Q<')" = "7 8 9" ]
	# with --base-version versions count from there; else they are 0, unknown
	for o in '0 1 2 --base-version 0' '0 0 0'; do
		ace-import --many -d e ${o:6} <many | ace-inspect -v - >is
		[ "$(sed -n 's/^base version *//p' is | paste -sd ' ')" = "${o::5}" ]
	done
	# a named file and standard input, with three models each
	cp many a.safetensors
	exits 0 ace-import --many -s 5 -d e -o twice.aceg a.safetensors - <many
	[ "$(frames twice.aceg | grep -c SHRD)" -eq 6 ]
	makes none ace-import --many </dev/null
	exits 0 ace-inspect verify none
	# messages for a model that differs from the first one, and for a truncated model
	head -c $(($(wc -c <many) - 1)) many >part
	exits 3 ace-import --many <part
	says "^ace-import: truncated: '<stdin>' ends inside tensor 'layer.bias'"
	head -c $(($(wc -c <one) + 5)) many >part
	refuses 3 "^ace-import: truncated: '<stdin>' has 5 of the 8 bytes .*, in file 2 of the stream" \
	    ace-import --many <part
	{ cat one; safetensors 3; } >other
	exits 3 ace-import --many <other
	says "^ace-import: mismatch: '.*' has other tensors than the first file: .*, in file 2 of the stream$"
	refuses 2 "safetensors" ace-import --many -f npz <many
}

@test "--many: a shard is written as soon as its file is whole" {
	mkfifo p
	timeout "$HANG" ace-import --many <p >steps 3>&- &
	exec 9>p
	for i in 1 2 3; do
		safetensors >&9
		wait_for sent steps $i
	done
	exec 9>&-
	wait $!
	exits 0 ace-inspect verify steps
}

@test "options set the fields of a shard: device, run, step, weight, kind" {
	pack 'f<4' 1 2 3 4 >v.raw
	exits 0 ace-import -d 'edge 7' -r big -s 9 -w 2.5 -k delta \
	    --name layer.w --shape 2,2 -o s.aceg v.raw
	[ "$(shrd s.aceg 'x32 Q<')" = 9 ]		# step
	[ "$(shrd s.aceg 'x56 d<')" = 2.5 ]		# weight
	[ "$(shrd s.aceg 'x64 V')" = 1 ]		# kind: delta
	for word in 'edge 7' big layer.w; do
		grep -qaF -e "$word" s.aceg || { echo "$word"; false; }
	done
	exits 2 ace-import -w nan v.raw
	exits 2 ace-import -g 0 v.raw
	# the largest size of a group
	exits 0 ace-import -g 1048576 v.raw
	exits 2 ace-import -g 1048577 v.raw
	grep -q '^Values per group, at most 1048576, default 65536\.$' \
	    "$ROOT/man/ace-import.1"
	exits 2 ace-import -k sum v.raw
	exits 2 ace-import --shape 2,x v.raw
	exits 2 ace-import --shape 1,1,1,1,1,1,1,1,4 v.raw
	exits 2 ace-import -d "$(printf 'a\nb')" v.raw
	for x in $'\n5' ' 5' 0x1p3; do
		exits 2 ace-import --model-norm "$x" v.raw
	done
}

@test "values that f32 cannot hold are refused, with tensor and index, or rounded on request" {
	pack 'd<3' 0.5 0.1 2 | npy "'<f8'" '(3,)' >d.npy
	exits 3 ace-import --name w d.npy
	says "unsupported: tensor 'w' at index 1 in 'd.npy': f64 0.10000000000000001 is not exact in f32 \(--f32 rounds it\)$"
	notes "'d.npy': 1 of 3 values rounded to f32" ace-import -v --f32 -o d.aceg d.npy
	raw d.aceg >got
	pack 'f<3' 0.5 0.1 2 >want
	same got want
	pack 'l<2' 16777216 16777217 | npy "'<i4'" '(2,)' >i.npy
	refuses 3 "unsupported: .*'data' at index 1 in 'i.npy': i32 16777217" ace-import i.npy
	pack 'q<2' -5 9007199254740993 | npy "'<i8'" '(2,)' >l.npy
	for round in '' --f32; do
		exits 3 ace-import $round l.npy
		says "unsupported: .* at index 1 .*i64 9007199254740993 is not exact in f32 \(--tensor can select other tensors\)$"
	done
	pack 'd<1' 1e39 | npy "'<f8'" '(1,)' >big.npy
	exits 3 ace-import --f32 big.npy
	says "unsupported: .* at index 0 .*f64 .*e\+38 is beyond the range of f32, 3.4e38$"
	refuses 3 "is beyond the range of f32, 3.4e38$" ace-import big.npy
	printf '\1\2' | npy "'|b1'" '(2,)' >b.npy
	refuses 3 "unsupported: .* index 1 .* bool 2 is neither 0 nor 1$" ace-import --f32 b.npy
}

@test "Fortran order of several dimensions is refused, with what to do" {
	pack 'f<6' 1 2 3 4 5 6 | npy "'<f4'" '(2, 3)' >c.npy
	ace-import --name w c.npy | ace-export -f npz -o c.npz
	for f in c.npy c.npz; do
		perl -pe 's/False, /True,  /' $f >f.${f#*.}
	done
	exits 3 ace-import -o f.aceg f.npy
	says "^ace-import: unsupported: 'f.npy' is in Fortran order: save it in C order .numpy.ascontiguousarray."
	exits 3 ace-import -o f.aceg f.npz
	says "^ace-import: unsupported: 'f.npz', entry 'w.npy' is in Fortran order: save it in C order "
	for f in npy npz; do
		exits 3 ace-import -f $f -o f.aceg < <(cat f.$f)
		says "^ace-import: unsupported: '<stdin>'.* is in Fortran order: save it in C order "
	done
	[ ! -e f.aceg ]
	# with one dimension both orders are the same
	pack 'f<2' 1 2 | npy "'<f4'" '(2,)' >c.npy
	perl -pe 's/False, /True,  /' c.npy >f.npy
	exits 0 ace-import --omit provenance --name w -o c.aceg c.npy
	exits 0 ace-import --omit provenance --name w -o f.aceg f.npy
	same c.aceg f.aceg
}

@test "an npz from a pipe is copied to TMPDIR, and the copy is removed" {
	safetensors >in.safetensors
	ace-import in.safetensors | ace-export -o a.npz
	mkdir spool
	exits 0 env TMPDIR="$PWD/spool" ace-import -f npz < <(cat a.npz)
	[ -z "$(ls spool)" ]
	exits 0 env TMPDIR= ace-import -f npz < <(cat a.npz)
	exits 4 env TMPDIR="$PWD/none" ace-import -f npz < <(cat a.npz)
	says "no file can be made in '$PWD/none': No such file or directory: TMPDIR names"
	# a regular file needs no temporary space
	exits 0 env TMPDIR="$PWD/none" ace-import -f npz <a.npz
}

@test "raw: the number of values is the file's, or must fit --shape" {
	pack 'f<6' 1 2 3 4 5 6 >v.raw
	exits 0 ace-import -o a.aceg v.raw
	exits 0 ace-export -o a.npy a.aceg
	grep -aq "'shape': (6,)" a.npy
	exits 0 ace-import --shape 3,2 -o b.aceg v.raw
	exits 0 ace-export -o b.npy b.aceg
	grep -aq "'shape': (3, 2)" b.npy
	refuses 3 truncated ace-import --shape 7 v.raw
	exits 3 ace-import --shape 5 v.raw
	says "corrupt: 'v.raw' has bytes after the last value of its tensors"
	# an empty tensor keeps its shape
	: >empty.raw
	exits 0 ace-import --shape 0,4 -o none.aceg empty.raw
	exits 0 ace-export -o none.npy none.aceg
	grep -aq "'shape': (0, 4)" none.npy
	head -c 5 v.raw >odd.raw
	refuses 3 truncated ace-import odd.raw
}

# bats test_tags=long
@test "memory: 64 MiB are enough for 256 MiB of values or 50,000 tensors" {
	sanitized && skip "the sanitizer's own memory"
	st '{"w":{"dtype":"F32","shape":[67108864],"data_offsets":[0,268435456]}}' \
	    >large.safetensors
	truncate -s $(($(wc -c <large.safetensors) + 268435456)) large.safetensors
	peak rss ace-import large.safetensors | peak rss2 ace-export -f npz >/dev/null
	for f in rss rss2; do [ "$(cat $f)" -gt 0 ] && [ "$(cat $f)" -lt 65536 ]; done
	perl -e 'binmode STDOUT; $h = "{" . join(",", map { $b = 4 * (49999 - $_);
	    qq("layer.$_.weight":{"dtype":"F32","shape":[1],"data_offsets":[$b,)
	    . ($b + 4) . "]}" } 0 .. 49999) . "}";
	    print pack("Q<", length $h), $h, "\0" x 200000' >many.safetensors
	peak rss ace-import -o many.aceg many.safetensors
	peak rss2 ace-export -o many.npz many.aceg
	peak rss3 ace-import -o again.aceg many.npz
	for f in rss rss2 rss3; do [ "$(cat $f)" -gt 0 ] && [ "$(cat $f)" -lt 65536 ]; done
	# the largest number of tensors, with the longest names
	perl -e 'binmode STDOUT; $h = "{" . join(",", map { sprintf("\"%06d%s\":", $_,
	    "x" x 249) . q({"dtype":"F32","shape":[0],"data_offsets":[0,0]}) }
	    0 .. 131071) . "}"; print pack("Q<", length $h), $h' >most.safetensors
	peak rss ace-import -o most.aceg most.safetensors
	[ "$(cat rss)" -gt 65536 ] && [ "$(cat rss)" -lt 196608 ]
}

@test "a header that is one huge entry is refused before it is parsed" {
	perl -e 'binmode STDOUT; $h = q({"w":{"dtype":"F32","shape":[) .
	    join(",", (1) x 400000) . q(],"data_offsets":[0,4]}});
	    print pack("Q<", length $h), $h, "\0" x 4' >x.safetensors
	exits 3 peak rss ace-import x.safetensors
	says "limit: 'x.safetensors' has an entry of more than 4096 bytes"
	sanitized || [ "$(cat rss)" -lt 16384 ]
}

@test "a message names the format of a file that is no input, and what to do" {
	mkshards >in.aceg
	gzip -k in.aceg
	tar -cf in.tar in.aceg
	ace-export -f npz -o in.npz in.aceg
	# the first bytes of a file of torch.save
	perl -e 'print pack("VvvvvvVVVvv", 0x04034b50, 0, 0, 0, 0, 0, 0, 0, 0, 16, 0),
	    "archive/data.pkl", "x" x 600' >in.pt
	safetensors >in.safetensors
	while read -r f want; do
		# a stream in a compressed file or an archive is read
		if [[ $f = in.aceg.gz || $f = in.tar ]]; then
			exits 0 ace-inspect "$f"
			exits 0 ace-inspect <"$f"
		else
			exits 3 ace-inspect "$f"
			says "^ace-inspect: corrupt: (no entry of the archive|the input is not a gradient-shard stream: (this|it) is $want)"
			refuses 3 "(no entry of the archive|(this|it) is $want)" ace-inspect <"$f"
		fi
		[ "$f" = in.safetensors ] && continue
		exits 3 ace-import -f safetensors "$f"
		says "^ace-import: corrupt: '$f' is not a safetensors file: this is $want"
	done <<-E
	in.aceg.gz a gzip file .unpack it with gzip -dc.
	in.tar a tar archive
	in.npz a zip archive
	in.pt a torch.save file
	in.safetensors a safetensors file .ace-import.
	E
}

@test "safetensors: f8 and whole numbers travel as they are, other dtypes by name" {
	perl -e 'binmode STDOUT; @c = grep { ($_ & 127) < 120 } 0 .. 255; $n = @c;
	    @t = (["F8_E4M3", 1], ["F8_E5M2", 1], ["U8", 1], ["I8", 1], ["I16", 2]);
	    for (($at = 0, @t)[1 .. 5]) { $m = $n / $_->[1]; $e = $at + $n;
		push @h, qq("$_->[0]":{"dtype":"$_->[0]","shape":[$m],"data_offsets":[$at,$e]});
		$at = $e; $d .= pack("C*", @c); }
	    $h = "{" . join(",", @h) . "}"; $h .= " " while length($h) % 8;
	    print pack("Q<", length $h), $h, $d' >in.safetensors
	ace-import in.safetensors | ace-compress -c exact >coded.aceg
	ace-inspect coded.aceg | grep -q exact
	ace-export -f safetensors coded.aceg >out
	same out in.safetensors
	ace-import in.safetensors | ace-compress -c q8 | ace-export -f safetensors >out
	same out in.safetensors
	for t in U16 U64 F4; do
		st '{"w":{"dtype":"'$t'","shape":[1],"data_offsets":[0,8]}}' 8 >bad.safetensors
		exits 3 ace-import bad.safetensors
		says "unsupported: tensor 'w' in 'bad.safetensors' has dtype '$t', which only ace-diff and ace-patch read: convert it to F32"
	done
}

@test "a file whose name says raw is refused if it begins like another format" {
	safetensors >a.safetensors
	ace-import a.safetensors >a.aceg
	ace-export -f npz -o a.npz a.aceg
	pack 'f<2' 1 2 | npy "'<f4'" '(2,)' >a.npy
	seq 100 >a.txt
	while read -r f n want; do
		cp a.$f in.$n
		exits 3 ace-import in.$n
		says "^ace-import: corrupt: 'in.$n' is not the raw f32 that its name says: $want.*; to read its bytes as values, give -f raw$"
		refuses 3 "'in.$n' is not the raw f32" ace-import --shape 1 in.$n
	done <<-E
	safetensors bin this is a safetensors file
	npz raw this is a zip archive
	txt f32 it begins with '1'
	E
	truncate -s %4 in.raw
	exits 0 ace-import -f raw in.raw
	# the format of a file without a suffix is detected from its first bytes
	refuses 2 "--name: 'a.npz' is read as npz, which has its own" ace-import --name w a.npz
	refuses 2 "--shape: 'a.npy' is read as npy" ace-import --shape 2 a.npy
	for f in a.safetensors a.npz '--name data a.npy'; do
		cp ${f##* } model
		exits 0 ace-import --omit provenance -o b.aceg ${f/a.*/model}
		exits 0 ace-import --omit provenance -o c.aceg $f
		same b.aceg c.aceg
	done
}

# test_magic tests every format
@test "messages name a Git LFS pointer, an index or a text in place of a model" {
	printf 'version https://git-lfs.github.com/spec/v1\noid sha256:4d7a\nsize 484192\n' >lfs
	printf '{"metadata": {"total_size": 8}, "weight_map": {"w": "a.safetensors"}}' >index
	mkshards >stream
	printf 'hello, world, this is what a shell prints\n' >words
	printf 'GGUF\3\0\0\0' >gguf
	head -c 600 /dev/zero >zeros
	while read -r f want; do
		for format in safetensors npz npy; do
			exits 3 ace-import -f $format $f
			says "^ace-import: corrupt: '$f' is not an? $format (file|array): $want|^ace-import: corrupt: '$f' is not an? (safetensors|npz) file: $want"
		done
		[ $f != stream ] || continue
		exits 3 ace-inspect $f
		says "^ace-inspect: corrupt: the input is not a gradient-shard stream: $want"
		refuses 3 "not a gradient-shard stream: $want" ace-expand <$f
	done <<-E
	lfs this is a Git LFS pointer
	index this is the index of a model in several files
	stream this is a stream of shards
	gguf this is a GGUF file, which no program of ace reads
	words it begins with 'hello, world, this is what a shell prints'
	E
	exits 3 ace-inspect zeros
	says "not a gradient-shard stream: it begins with the bytes 00 00 00 00 00 00 00 00"
	refuses 3 "'gguf' is not a safetensors file: this is a GGUF file" ace-diff gguf gguf
	(echo 'Last login: Fri'; cat stream) >late
	safetensors >model
	for p in ace-expand 'ace-compress -c q8' 'ace-recv --spool sp' ace-export \
	    'ace-patch model' ace-aggregate; do
		exits 3 $p <late
		says "it begins with 'Last login: Fri'(, at byte 0.*)?$"
		exits 3 $p < <(cat late)
		says "it begins with 'Last login: Fri' \(if the stream comes by ssh, 'ssh HOST true' must print nothing\)"
	done
}

@test "metadata null, macOS's ._ files in folders, a skippable zstd frame" {
	st '{"__metadata__":null,"a":{"dtype":"F32","shape":[4],"data_offsets":[0,16]}}' 16 >n.safetensors
	exits 0 ace-import n.safetensors
	for bad in nul 7 '"x"' '[]'; do
		st '{"__metadata__":'"$bad"',"a":{"dtype":"F32","shape":[4],"data_offsets":[0,16]}}' 16 >n.safetensors
		exits 3 ace-import n.safetensors
	done
	mkdir -p run/.hidden
	mkshards >run/a.aceg
	printf '\0\5\26\7\0\2\0\0Mac OS X        ' | tee run/._a.aceg >run/.hidden/b.aceg
	tar -cf run.tar run
	exits 0 ace-inspect verify run
	cp out folder
	exits 0 ace-inspect verify run.tar
	exits 0 ace-inspect verify <run.tar
	(printf '\x50\x2a\x4d\x18\4\0\0\0abcd\x5f\x2a\x4d\x18\0\0\0\0'; zstd -qc run/a.aceg) >a.aceg.zst
	exits 0 ace-inspect verify a.aceg.zst
	exits 0 ace-inspect verify < <(cat a.aceg.zst)
	printf '\x50\x2a\x4d\x18\377\0\0\0abcd' >cut.zst
	exits 3 ace-inspect verify cut.zst
	says 'truncated: .* ends inside a skippable frame of zstd or lz4'
}

# part FILE NAME DTYPE [NAME DTYPE]...: write a safetensors file of these tensors, 4 values each
part() {
	local f=$1 h='' at=0 e
	shift
	while [ $# -gt 0 ]; do
		case $2 in I64) e=$((at + 32)) ;; F32) e=$((at + 16)) ;; *) e=$((at + 8)) ;; esac
		h+="${h:+,}\"$1\":{\"dtype\":\"$2\",\"shape\":[4],\"data_offsets\":[$at,$e]}"
		at=$e
		shift 2
	done
	h='{"__metadata__":{"format":"pt"},'"$h}"
	perl -e 'binmode STDOUT; print pack("Q<", length $ARGV[0]), $ARGV[0],
	    map { pack "v", $_ % 9 * 16 } 1 .. $ARGV[1] / 2' "$h" $at >"$f"
}

@test "tensors that --tensor does not choose may have any type" {
	part m.safetensors a F32 q C64 b BF16 r U16 c F32 s I64
	exits 3 ace-import m.safetensors
	says "tensor 'q' in 'm.safetensors' has dtype 'C64', which cannot be read: convert it"
	part abc.safetensors a F32 q BF16 b BF16 r BF16 c F32 s I64
	for f in m.safetensors - ; do
		makes got ace-import --omit provenance --tensor '[abc]' -f safetensors $f <m.safetensors
		exits 0 ace-import --omit provenance --tensor '[abc]' abc.safetensors
		same out got
	done
	exits 0 ace-import --tensor b m.safetensors
	exits 0 ace-import --tensor a m.safetensors
	truncate -s -1 m.safetensors
	exits 3 ace-import --tensor a m.safetensors
	says 'truncated: .* ends inside a tensor that --tensor excludes'
	ace-import --tensor '[abc]' abc.safetensors | ace-export -f npz -o x.npz
	printf 'no' | npy "'<U5'" '(1,)' >labels.npy
	more() { python3 -c 'import sys, zipfile
zipfile.ZipFile(sys.argv[1], "a").write(sys.argv[2], sys.argv[3])' "$@"; }
	cp x.npz labels.npz
	more labels.npz labels.npy labels.npy
	refuses 3 "entry 'labels.npy' has dtype '<U5'" ace-import labels.npz
	exits 0 ace-import --omit provenance --tensor '[abc]' -o y.aceg labels.npz
	ace-import x.npz | ace-export -f raw -o x
	ace-export -f raw -o y y.aceg
	same x y
	# the files that macOS adds to a zip
	printf '\0\5\26\7' >mac
	more x.npz mac __MACOSX/._a.npy
	exits 0 ace-import -o y.aceg x.npz
	ace-export -f raw -o y y.aceg
	same x y
}

@test "npy: Fortran order that equals C order, and other spellings of f32" {
	pack 'f<6' 1 2 3 4 5 6 | npy "'<f4'" '(6,)' >want.npy
	ace-import want.npy | ace-export -f raw -o want
	for shape in '(6, 1)' '(1, 6)' '(1, 6, 1, 1)' '(6,)'; do
		pack 'f<6' 1 2 3 4 5 6 | npy "'<f4'" "$shape" | perl -pe 's/False, /True,  /' >f.npy
		exits 0 ace-import -o f.aceg f.npy
		ace-export -f raw -o got f.aceg
		same got want
	done
	pack 'f<6' 1 2 3 4 5 6 | npy "'<f4'" '(1, 2, 3)' | perl -pe 's/False, /True,  /' >f.npy
	exits 3 ace-import f.npy
	: | npy "'<f4'" '(0, 3, 2)' | perl -pe 's/False, /True,  /' >f.npy
	exits 0 ace-import f.npy
	for d in "'=f4'" "'f4'" "'float32'" '"<f4"'; do
		pack 'f<6' 1 2 3 4 5 6 | npy "$d" '(6,)' >d.npy
		exits 0 ace-import -o d.aceg d.npy
		ace-export -f raw -o got d.aceg
		same got want
	done
	for d in "'|f4'" "'f3'" "'float'" "'=>f4'" "''"; do
		pack 'f<6' 1 2 3 4 5 6 | npy "$d" '(6,)' >d.npy
		exits 3 ace-import d.npy
	done
}
