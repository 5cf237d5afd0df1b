# The fields that ace-inspect prints for a shard.  All values are different, so that a
# field with the name of another is noticed.
load helper
load values

# told KEY VALUE: check that out has a line with KEY and VALUE
told() {
	grep -qx "$(printf '%-13s %s' "$1" "$2")" out ||
	    { cat out; echo "not there: $1 $2"; return 1; }
}

# fields: print a shard with a different number in each field
fields() {
	mkshards -d edge7 -r big -s 90 -w 2.5 -t w:100 -t b:7 -g 40 -k ramp \
	    -H flags=23 -H samples=640 -H contributors=3 -H incarnation=5 \
	    -H base=81 -H dropped=9 -K color=red -a "$@"
}

@test "every field of a shard's first and last frame, as text and as JSON" {
	fields >in
	exits 0 ace-inspect -v in
	told run big
	told device edge7
	told step 90
	told kind gradient
	told weight 2.5
	told samples 640
	told 'base version' 81
	told contributors 3
	told flags 'error-feedback, clipped, predicted'
	told tensors '2, 107 elements, 4 groups of 40'
	told incarnation 5
	told key color=red
	grep -qE '^annotation    [a-zA-Z]+, 1 frames, [0-9]+ bytes$' out
	# the values are 90, 91, ... 196
	for end in dropped:9 sum:15301 'sum of squares:2290121' 'max abs:196' nonzero:107; do
		told "${end%:*}" "${end#*:}"
	done
	sum=$(sed -n 's/^framed  *\([0-9]*\) bytes, .*/\1/p' out)
	grep -qx "framed        $sum bytes, $(perl -e 'printf "%.4f", 8 * $ARGV[0] / 107' "$sum") bits/value" out
	exits 0 ace-inspect --format json in
	json '$j->{run} eq "big" && $j->{device} eq "edge7" && $j->{step} == 90'
	json '$j->{weight} == 2.5 && $j->{samples} == 640 && $j->{base_version} == 81'
	json '$j->{contributors} == 3 && $j->{incarnation} == 5'
	json '"@{$j->{flags}}" eq "error-feedback clipped predicted"'
	json '$j->{group_size} == 40'
	json '$j->{keys}{color} eq "red" && $j->{shard} == 1 && $j->{kind} eq "gradient"'
	json '$j->{nonzero} == 107 && $j->{dropped} == 9 && $j->{sum} == 15301'
	json '$j->{sum_of_squares} == 2290121 && $j->{max_abs} == 196'
	json '$j->{total}{elements} == 107 && $j->{total}{groups} == 4'
	json '$j->{total}{groups_sent} == 4 && $j->{total}{bytes} == 428'
	json '$j->{tensors}[0]{groups_sent} == 3 && $j->{tensors}[1]{groups} == 1'
	json '$j->{annotations}[0]{frames} == 1 && $j->{annotations}[0]{bytes} == 5'
	json "\$j->{framed_bytes} == $sum"
	# ids are hashes of names: another device or run has another id
	cp out one
	mkshards -d edge8 -r big >other
	exits 0 ace-inspect --format json other
	hash() { sed "s/.*\"$1_id\":\"\\([0-9a-f]*\\)\".*/\\1/" "$2"; }
	[ "$(hash run out)" = "$(hash run one)" ]
	[ "$(hash device out)" != "$(hash device one)" ]
	[ "$(hash run out)" != "$(hash device out)" ]
}

@test "each column of --format tsv and member of brief --format json has its own value" {
	fields -c q8 >in
	exits 0 ace-inspect list --format json in
	bytes=$(sed 's/.*"framed_bytes":\([0-9]*\).*/\1/' out)
	body=$(sed 's/.*"total":{[^}]*"bytes":\([0-9]*\).*/\1/' out)
	exits 0 ace-inspect --format tsv in
	[ "$(head -n 1 out | tr '\t' ' ')" = "file run step device kind weight samples base_version contributors elements bytes bits_per_value norm max_abs nonzero codecs error bandwidth interval" ]
	[ "$(sed -n 2p out | cut -f 2-11 | tr '\t' ' ')" = \
	    "big 90 edge7 gradient 2.5 640 81 3 107 $bytes" ]
	[ "$(sed -n 2p out | cut -f 15-17 | tr '\t' '|')" = "107|q8:$body|" ]
	sed -n 2p out | cut -f 12-14 | awk -v b="$bytes" '{ d = $1 - 8 * b / 107
	    exit !(d * d < 1e-6 && $2 > 1500 && $2 < 1525 && $3 > 195 && $3 < 197) }'
	exits 0 ace-inspect brief --format json in
	json "\$j->{elements} == 107 && \$j->{bytes} == $bytes && \$j->{nonzero} == 107"
	json '$j->{max_abs} > 195 && $j->{max_abs} < 197 && $j->{norm} > 1500 && $j->{norm} < 1525'
	json "\$j->{codecs}{q8} == $body && keys %{\$j->{codecs}} == 1"
	json '!exists $j->{bandwidth} && !exists $j->{interval} && !exists $j->{error}'
	for v in bandwidth=5e6 interval=7; do
		fields -P $v >said
		exits 0 ace-inspect --format tsv said
		cut -f 18,19 out | tail -n 1 | tr '\t' '|'
		exits 0 ace-inspect brief --format json said
		grep -o '"codecs":{[^}]*}.*' out | cut -d, -f 2-
	done >policy
	printf '%s\n' '5000000|' '"bandwidth":5000000}' '|7' '"interval":7}' | diff - policy
}

@test "brief lists codecs by their bytes, and prints a heading for each run" {
	mkshards -g 100 -t a:1000 -L q8,none,f32,none -s 1 | ace-compress >in
	exits 0 ace-inspect brief in
	grep -qE ' f32 [0-9]+,q8 [0-9]+$' out
	[ "$(head -n 1 out)" = 'run test' ]
	mkshards -r other -s 2 >second
	ace-recv --spool spool in >receipts
	cat receipts in second in >mixed
	exits 0 ace-inspect brief mixed
	# receipts are not listed as shards
	[ "$(grep -E '^run |^$' out | paste -sd,)" = 'run test,,run other,,run test' ]
	[ "$(grep -c ' gradient ' out)" -eq 3 ]
	[ "$(wc -l <out)" -eq 11 ]
}

@test "files are shown in full, and a folder in one line per shard, if no option says otherwise" {
	mkdir nine
	for s in {1..9}; do mkshards -s "$s" >"nine/$s"; done
	cat nine/* >file
	exits 0 ace-inspect file
	[ "$(grep -c '^shard ' out)" -eq 9 ]
	exits 0 ace-inspect nine
	[ "$(wc -l <out)" -eq 11 ]
	exits 0 ace-inspect -v nine
	[ "$(grep -c '^shard ' out)" -eq 9 ]
	exits 0 ace-inspect --format json nine
	[ "$(grep -c '"tensors":' out)" -eq 9 ]
}

@test "diff: values that are not finite always differ; an NMSE equal to the tolerance passes" {
	perl -e 'print pack("f<*", 1, 2, 3, 9 ** 9 ** 9)' >x
	perl -e 'print pack("f<*", 1, 2, 3, -9 ** 9 ** 9)' >y
	perl -e 'print pack("f<*", 1, 2, 4, 0)' >z
	perl -e 'print pack("f<*", 1, 2, 3, -0.0)' >m
	local step=1
	for f in x y z m; do
		ace-import -f raw --name w --shape 4 -d dev$f -s $((++step)) -r run$f $f >$f.aceg
	done
	# a pair of infinities of different signs is left out of the sums
	exits 1 ace-inspect diff --tolerance 1 --format json y.aceg x.aceg
	json '$j->{total}{differ} == 1 && $j->{total}{nmse} == 0 && $j->{other_device} eq "devy"'
	exits 1 ace-inspect diff --tolerance 1e9 z.aceg x.aceg
	exits 0 ace-inspect diff x.aceg x.aceg
	# m and z differ only in one value, 3 and 4: NMSE 1 / 21
	exits 1 ace-inspect diff --format json z.aceg m.aceg
	json '$j->{total}{differ} == 1 && abs($j->{total}{nmse} - 1 / 21) < 1e-15'
	json '$j->{device} eq "devm" && $j->{other_step} == 4 && $j->{step} == 5 && $j->{total}{max_abs_difference} == 1'
	nmse=$(sed 's/.*"total":{[^}]*"nmse":\([0-9.e-]*\).*/\1/' out)
	exits 0 ace-inspect diff --tolerance "$nmse" z.aceg m.aceg
	exits 1 ace-inspect diff --tolerance 0.0476 z.aceg m.aceg
	exits 1 ace-inspect diff z.aceg m.aceg
	grep -qx "shard 1 'devm/5' and 'devz/4'" out
	# the tolerance may exceed 1
	mkshards -k ramp -t w:4 -s 9 >far
	mkshards -k ramp -t w:4 -s 0 >near
	exits 0 ace-inspect diff --tolerance 100 near far
	exits 1 ace-inspect diff --tolerance 1 near far
	exits 1 ace-inspect diff --format json near <(cat far far)
	tail -n 1 out | grep -qE '^\{"only_in":".*","shards":1\}$'
	# two shards of zeros are equal, with cosine 1
	mkshards -k zeros -t w:4 >zeros
	exits 0 ace-inspect diff --format json zeros zeros
	json '$j->{total}{cosine} == 1 && $j->{total}{nmse} == 0'
	# the largest difference counts over all tensors
	perl -e '$h = q({"a":{"dtype":"F32","shape":[3],"data_offsets":[0,12]},) .
	    q("b":{"dtype":"F32","shape":[3],"data_offsets":[12,24]}}); binmode STDOUT;
	    print pack("Q<", length $h), $h, pack("f<*", 5, 6, 17, 8, 9, 11)' |
	    ace-import -d d >right
	mkshards -k ramp -t a:3 -t b:3 -s 5 >left
	exits 1 ace-inspect diff --format json left right
	json '$j->{total}{max_abs_difference} == 10 && $j->{total}{differ} == 2'
}

@test "a receipt as JSON has its device, shard, time and model" {
	mkshards -d edge1 -r demo >one
	SOURCE_DATE_EPOCH=1234567890 ace-recv --spool spool one >first
	ace-aggregate --spool spool --rounds 1 >mean
	for s in 1 2; do
		mkshards -d edge1 -r demo -s $s | ace-recv --spool spool >receipt
		ace-aggregate --spool spool --rounds 1 >mean
	done
	mkshards -d edge1 -r demo -s 3 >three
	SOURCE_DATE_EPOCH=99 ace-recv --spool spool three >last
	makes head ace-inspect --format json three
	exits 0 ace-inspect --format json last
	json '$j->{verdict} eq "accepted" && $j->{step} == 3 && $j->{version} == 2'
	json '$j->{clock} == 99000000000 && $j->{reason} eq "" && !exists $j->{device}'
	for k in run_id device_id digest; do
		[ "$(grep -o "\"$k\":\"[0-9a-f]*\"" out)" = "$(grep -o "\"$k\":\"[0-9a-f]*\"" head)" ]
	done
	exits 0 ace-inspect -v last
	grep -qE '^ +digest [0-9a-f]{32}, version 2, at 99000000000$' out
	exits 0 ace-inspect last
	[ "$(wc -l <out)" -eq 1 ]
	exits 0 ace-inspect list -q last
	[ ! -s out ]
}

@test "audit as JSON: each number has its own name" {
	for s in 0 1 2; do
		mkshards -s $s -x $s -t w:40 >in$s
		ace-compress -S state -c q8 --window 4 in$s >sent$s
	done
	ace-recv --spool spool sent0 | ace-ack -S state >rest
	ace-recv --spool spool sent1 | ace-ack -S state >rest
	exits 0 ace-inspect audit --format json -S state --spool spool in0 in1 in2
	json '$j->{ok} && $j->{status} == 0 && !exists $j->{error} && $j->{device} eq "edge1"'
	json '$j->{step} == 2 && $j->{inputs} == 3 && $j->{accepted} == 2 && $j->{pending} == 1'
	json '$j->{elements} == 40 && $j->{violated} == 0 && $j->{inexact} > 0'
	json '$j->{largest} > 0 && $j->{largest} < 1e-5'
	exits 3 ace-inspect audit --format json -S state --spool spool in1 in2
	json '!$j->{ok} && $j->{status} == 3 && $j->{violated} == 40 && $j->{inexact} == 40'
	json '$j->{inputs} == 2 && $j->{error} =~ /^mismatch: tensor .w. at index 0/ && $j->{largest} > 0.01'
	refuses 2 'audit needs both -S DIR' ace-inspect audit -S state in0
	refuses 2 'audit needs both -S DIR' ace-inspect audit --spool spool in0
	exits 3 ace-inspect audit -S state --spool spool in0 in1 in2 in0
	says "the inputs have step 0 of 'edge1' twice"
	exits 3 ace-inspect audit -S state --spool spool in0 in2 in1 in2
	says "the inputs have step 2 of 'edge1' twice"
	# a step after the last one in the state is ignored
	mkshards -s 3 -x 9 -t w:40 >in3
	exits 0 ace-inspect audit -S state --spool spool in0 in1 in2 in3
}

@test "options that exclude each other; the status of several files is the highest" {
	mkshards >in
	for o in '-o x' '--omit schema' '-S x' '--tolerance 1'; do
		refuses 2 '^ace-inspect: option ' ace-inspect $o in
	done
	exits 2 ace-inspect verify --format tsv in
	exits 0 ace-inspect brief --format tsv in
	head -c 300 in >part
	exits 4 ace-inspect verify nowhere part in
	exits 4 ace-inspect verify part nowhere in
	exits 3 ace-inspect verify in part in
	exits 2 ace-inspect diff --tolerance 1e301 in in
	exits 0 ace-inspect diff --tolerance 1e300 in in
	exits 2 ace-inspect --max-elements 0 in
	exits 0 ace-inspect --max-elements 336 in
	exits 3 ace-inspect --max-elements 335 in
}
