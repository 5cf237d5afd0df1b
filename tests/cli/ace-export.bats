load helper

@test "--step and --device choose one shard of many; without them the choices are listed" {
	for d in a b; do for s in 1 2; do
		mkshards -d $d -s $s
	done; done >all
	exits 2 ace-export -o x.npz all
	says "ace-export: 'all' has more than one shard, 'a/1' \(gradient\) and 'a/2' \(gradient\): choose one"
	[ ! -e x.npz ]
	refuses 2 "'a/1' .gradient. and 'b/1'" ace-export --step 1 -o x.npz all
	refuses 2 "'b/1' .gradient. and 'b/2'" ace-export --device b -o x.npz all
	exits 0 ace-export --device b --step 2 -o x.npz all
	[ -s x.npz ]
	refuses 1 "the input has no such shard .--step, --device, --kind.: " ace-export --step 9 -o y.npz all
	exits 1 ace-export --device c -o y.npz all
	[ ! -e y.npz ]
}

@test "--tensor chooses tensors by name; * matches dots and slashes, too" {
	mkshards -t a/b.w:4 -t a/c:8 -t b/w:2 >in
	ace-export -f raw in >all
	exits 0 ace-export -f raw --tensor 'a*w' in
	head -c 16 all | cmp - out
	exits 0 ace-export --tensor '[ab]/?' -o x.safetensors in
	[ "$(grep -aoE '"[ab]/[^"]*"' x.safetensors | paste -sd' ')" = '"a/c" "b/w"' ]
	tail -c 40 x.safetensors | cmp - <(tail -c 40 all)
	exits 1 ace-export -f raw --tensor w in
}

@test "a stream that is truncated after the chosen shard is refused" {
	mkshards -N 2 >in
	head -c -300 in >part
	exits 3 ace-export --step 0 -o y.safetensors part
	[ ! -e y.safetensors ]
}

@test "ace-import --many takes the steps from the metadata that ace-export --many writes" {
	for s in 3 9; do mkshards -s $s; done >in
	ace-export --many in >files
	exits 0 ace-import --many -s 2 --base-version 1 <files
	[ "$(ace-inspect list --format json out | grep -oE '"(step|base_version)": *[0-9]+' | tr -dc '0-9\n' | paste -sd ' ')" = '3 2 9 8' ]
	! grep -aq safetensors.step out || false
	refuses 2 "--many: '-' has step '3' in its metadata, expected a whole number from 4 " ace-import --many -s 4 <files
}

@test "--many writes each shard as one file after another, as soon as the shard is whole" {
	mkshards -s 3 -N 3 -n 100000 >in
	for s in 3 4 5; do
		ace-export --many --step $s in
	done >want
	exits 0 ace-export --many in
	same out want
	# the same values as a single file, and metadata with the step
	makes want ace-export --many --step 4 in
	ace-export --step 4 in >alone
	same <(tail -c 400000 want) <(tail -c 400000 alone)
	head -c 200 want | grep -aqE '"__metadata__":\{"kind":"gradient",("run":"[^"]*",)?"step":"4"\}'
	! head -c 200 alone | grep -aq '"step"' || false
	exits 0 ace-export --many --step 9 in
	[ ! -s out ]
	refuses 2 'safetensors' ace-export --many -f npz in
	exits 2 ace-export --many -o x.npy in
	# the first file is complete while the second one is not
	mkfifo p
	ace-export --many <p >got 3>&- &
	exec 9>p
	size=$(wc -c <want)
	frames in | awk '$2 == "SEND" { print $1 }' >ends
	head -c $(($(sed -n 1p ends) + 1000)) in >&9
	wait_of $! larger got $((size - 1))
	exec 9>&-
	status=0
	wait $! || status=$?
	[ "$status" -eq 3 ]
	[ "$(wc -c <got)" -lt $((2 * size)) ]
}

@test "--many: the file of a shard with a damaged end stays incomplete" {
	mkshards -N 2 -n 100000 >in
	ace-export --many --step 0 in >one
	ace-export --many --step 1 in >two
	cat one two >want
	for at in $(frames in | awk '$2 == "SEND" { print $1 }'); do
		cp in bad
		flip bad $((at + 70))
		refuses 3 '^ace-export: corrupt: ' ace-export --many bad
		n=$(wc -c <out)
		[ "$n" -lt "$(wc -c <want)" ]
		head -c "$n" want | cmp - out
		# the file before the failed one is complete
		[ "$at" -lt $(($(wc -c <in) / 2)) ] || [ "$n" -ge "$(wc -c <one)" ]
	done
}

@test "groups that were not sent are zeros" {
	mkshards -n 1000 -c none >none
	exits 0 ace-export -f raw none
	head -c 4000 /dev/zero >want
	same out want
}

@test "the format comes from -f or the file's name, or is safetensors" {
	mkshards -t w:4 >in
	exits 0 ace-export -o x.npy in
	[ "$(head -c 6 x.npy | tail -c 5)" = NUMPY ]
	exits 0 ace-export -o x.f32 in
	[ "$(wc -c <x.f32)" -eq 16 ]
	exits 0 ace-export -o x.npz in
	[ "$(head -c 2 x.npz)" = PK ]
	exits 0 ace-export in
	[ "$(head -c 9 out | tail -c 1)" = '{' ]
	exits 0 ace-export -f npy -o y.npz in
	same x.npy y.npz
}

@test "a model without tensors" {
	{ printf '\2\0\0\0\0\0\0\0{}'; } >in.safetensors
	exits 0 ace-import -o in.aceg in.safetensors
	exits 0 ace-export -o x.npz in.aceg
	[ "$(wc -c <x.npz)" -eq 22 ]
	exits 0 ace-import --omit provenance -o x.aceg x.npz
	exits 0 ace-export -o y.npz x.aceg
	same x.npz y.npz
	exits 3 ace-export -f npy x.aceg
}

@test "npy holds one tensor" {
	mkshards -t a:4 -t b:4 >in
	exits 3 ace-export -f npy in
	says "unsupported: npy holds one tensor, not 2: "
}

@test "values have the dtypes of the model, or f32 with --f32" {
	perl -e 'binmode STDOUT; $h = q({"h":{"dtype":"F16","shape":[2],"data_offsets":[0,4]},)
	    . q("b":{"dtype":"BF16","shape":[2],"data_offsets":[4,8]}});
	    print pack("Q<", length $h), $h, pack("v4", 0x3c00, 0xc100, 0x3f80, 0xc020)' \
	    >in.safetensors
	ace-import -o in.aceg in.safetensors
	exits 0 ace-export -f raw in.aceg
	perl -e 'binmode STDOUT; print pack("f<4", 1, -2.5, 1, -2.5)' >want
	same out want
	exits 0 ace-export --f32 in.aceg
	[ "$(grep -ao '"F32"' out | wc -l)" -eq 2 ]
	tail -c 16 out >got
	same got want
	exits 0 ace-export in.aceg
	tail -c 8 in.safetensors >want
	tail -c 8 out >got
	same got want
}

@test "a value beyond the range of its dtype is refused, with tensor and index" {
	perl -e 'binmode STDOUT; $h = q({"h":{"dtype":"F16","shape":[2],"data_offsets":[0,4]}});
	    print pack("Q<", length $h), $h, pack("v2", 0, 0x7bff)' >in.safetensors
	ace-import -d a -o a.aceg in.safetensors
	ace-import -d b -o b.aceg in.safetensors
	exits 0 ace-aggregate --rule sum -o sum.aceg a.aceg b.aceg
	exits 3 ace-export -o x.safetensors sum.aceg
	says "unsupported: tensor 'h' at index 1: 131008 does not fit f16"
	[ ! -e x.safetensors ]
	exits 0 ace-export --f32 -o x.safetensors sum.aceg
}

@test "metadata of safetensors is kept" {
	# the header has a multiple of 8 bytes, as if exported
	local h='{"__metadata__":{"format":"pt","run":"x"},'
	h+='"w":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}} '
	st "$h" 4 >in.safetensors
	ace-import -o in.aceg in.safetensors
	exits 0 ace-export in.aceg
	same out in.safetensors
	! ace-export --many in.aceg | grep -aq '"run"' || false
}
