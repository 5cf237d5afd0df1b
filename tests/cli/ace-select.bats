load helper

count() { frames "$1" | grep -c " $2\$"; }

# shard_bytes FILE: from the first SHRD to the TAIL.
shard_bytes() {
	frames "$1" | awk '$2 == "SHRD" && !a { a = $1 }
	    $2 == "TAIL" { print $1 - a }'
}

# coded BUDGET FILE [OPTIONS]: the bytes ace-compress makes of it.
coded() {
	local b=$1 f=$2
	shift 2
	exits 0 ace-select "$@" -b "$b" "$f" && mv out planned
	cp err said
	exits 0 ace-compress planned && mv out coded
	shard_bytes coded
}

layered() {
	mkshards -n 1M -g 16384 -k layered >shard
	exits 0 ace-score shard
	mv out scored
}

@test "the values and annotations pass; the plan stands before the data" {
	layered
	exits 0 ace-select --no-provenance -b 100k scored
	[ ! -s err ]
	mv out planned
	[ "$(count planned pLAN)" -eq 1 ]
	[ "$(frames planned | awk '$2 ~ /pLAN|DATA/ { print $2; exit }')" = pLAN ]
	[ "$(count planned DATA)" -eq "$(count scored DATA)" ]
	[ "$(count planned sTAT)" -eq "$(count scored sTAT)" ]
	exits 0 ace-export -f raw planned
	mv out back
	exits 0 ace-export -f raw scored
	same out back
}

@test "never over the budget, and close below it, in two passes and in one" {
	layered
	for b in 2000 5000 20k 60k 150k 400k 1M; do
		n=$(numfmt --from=si "${b^^}")
		got=$(coded "$b" scored)
		[ "$got" -le "$n" ] || { echo "$b: $got"; false; }
		[ "$((got + 150 + n / 100))" -ge "$n" ] || { echo "$b: $got"; false; }
		got=$(coded "$b" scored --one-pass --memory 256Ki)
		[ "$got" -le "$n" ] || { echo "$b: $got in one pass"; false; }
	done
}

@test "codecs that draw or factor are foretold, chosen, and the budget met" {
	layered
	l=natural,tern,tern:mse,lowrank:2,lowrank:8:q8,eden:2,eden:0.5,qsgd:7
	for b in 20000 150000 250000; do
		got=$(coded $b scored --levels $l)
		[ "$got" -le $b ] || { echo "$b: $got"; false; }
		[ $((got + b / 50)) -ge $b ] || { echo "$b: $got"; false; }
		got=$(coded $b scored --levels $l --one-pass --memory 256Ki)
		[ "$got" -le $b ] || { echo "$b: $got in one pass"; false; }
		[ $((got + b / 5)) -ge $b ] || { echo "$b: $got in one pass"; false; }
	done
	exits 0 ace-select --text -b 150000 --levels $l scored
	awk '{ n[$2]++ } END { for (c in n) k++; exit k < 3 }' out
}

@test "what coding will take is foretold to the byte" {
	layered
	exits 0 ace-select -v -b 50k scored
	mv out planned
	want=$(sed -nE 's/.*groups, ([0-9]+) of 50000 bytes.*/\1/p' err)
	exits 0 ace-compress planned
	[ "$(shard_bytes out)" = "$want" ]
}

@test "the certified gap is printed, and small" {
	layered
	exits 0 ace-select -v -b 30k scored
	says "D [0-9.e+-]+ of [0-9.e+-]+, bound [0-9.e+-]+, gap [0-9.e-]+ %"
	gap=$(sed -nE 's/.*gap ([0-9.e-]+) %.*/\1/p' err)
	awk "BEGIN { exit !($gap < 2) }"
}

@test "a budget too small for anything sends nothing and says so" {
	layered
	[ "$(coded 400 scored)" -le 400 ]
	grep -q "400 bytes are too few for any group: nothing is sent, all is kept" said
	[ "$(count coded DATA)" -eq 0 ] || false
	[ "$(coded 0 scored)" -gt 0 ]
	[ "$(count coded DATA)" -eq 0 ]
}

@test "a file, a pipe and a pipe through memory give the same plan" {
	layered
	exits 0 ace-select --no-provenance -b 50k scored
	mv out file
	exits 0 ace-select --no-provenance -b 50k <scored
	same out file
	cat scored | ace-select --no-provenance -b 50k >piped
	same piped file
	# it does not fit: one pass
	cat scored | ace-select --no-provenance -b 50k --memory 1M >small
	exits 0 ace-select --no-provenance -b 50k --one-pass --memory 1M scored
	same small out
}

@test "statistics in the stream or made here: the same plan" {
	mkshards -n 1M -g 16384 -k layered >shard
	exits 0 ace-score --no-provenance shard
	mv out scored
	exits 0 ace-select --no-provenance -b 50k shard
	mv out bare
	# the same weights: a score of 1 for every group
	exits 0 ace-select --no-provenance -b 50k bare
	same out bare
	[ "$(count bare sTAT)" -eq 0 ] || false
}

@test "equation (2): the fewest groups that hold the share" {
	# four groups of equal size, energies far apart
	mkshards -t a:4096 -t b:4096 -t c:4096 -t d:4096 -k layered >shard
	exits 0 ace-score shard
	mv out scored
	exits 0 ace-select -v -p 1 scored
	says "4 of 4 groups"
	exits 0 ace-select -v -p 0.01 scored
	says "1 of 4 groups"
	mv out planned
	exits 0 ace-compress -v planned
	says "1 groups coded, 3 not sent"
	exits 0 ace-select -p 0 scored
	mv out planned
	exits 0 ace-compress -v planned
	says "0 groups coded, 4 not sent"
	exits 0 ace-select -p 0.01 --keep f32 --rest q8 scored
	mv out planned
	exits 0 ace-compress -v planned
	says "4 groups coded, 0 not sent"
}

@test "three classes: in full, by equation (6), not at all" {
	mkshards -t a:4096 -t b:4096 -t c:4096 -t d:4096 -k layered >shard
	exits 0 ace-score shard
	mv out scored
	exits 0 ace-select -p 0.3 --keep f32 --rest qsgd:4 --rest-share 0.8 --text scored
	[ "$(grep -v '^#' out | cut -d ' ' -f 2 | tr '\n' ' ')" = \
	    "qsgd:4 qsgd:4 f32 none " ] || { cat out; false; }
}

@test "the plan as text, given back, changed, and refused" {
	layered
	exits 0 ace-select --no-provenance -b 50k scored
	mv out planned
	exits 0 ace-select --text -b 50k scored
	mv out text
	head -n 1 text | grep -qx "# shard 'edge1/0'"
	[ "$(grep -vc '^#' text)" -eq 64 ]
	exits 0 ace-select --no-provenance --plan text scored
	same out planned
	# it does not matter how the shard comes
	cat scored | ace-select --no-provenance --plan text --one-pass >piped
	same piped planned
	exits 0 ace-select --text --plan text scored
	same out text
	# only what has a line is sent
	echo '5 q8' >few
	exits 0 ace-select --plan few scored
	mv out planned
	exits 0 ace-compress -v planned
	says "1 groups coded, 63 not sent"
	exits 0 ace-select --text -o file -b 50k scored
	same file text
	echo '64 q8' >long
	exits 3 ace-select --plan long scored
	says "mismatch: the plan has 65 groups, the shard 64"
	for bad in '5' '5 nonsense' 'x q8' '-1 q8' '99999999999 q8'; do
		printf '# fine\n0 q8 w\n%s\n' "$bad" >bad
		exits 2 ace-select --plan bad scored
		says "plan 'bad', line 3: "
	done
	printf '5 q8\n5 q4\n' >bad
	exits 2 ace-select --plan bad scored
	head -c 100 scored >bad
	exits 2 ace-select --plan bad scored
	exits 4 ace-select --plan nowhere scored
}

@test "what the link carries in a time" {
	layered
	exits 2 ace-select --seconds 2 scored
	says "no measured link"
	exits 2 ace-select --seconds 2 -S st scored
	exits 0 ace-policy --bandwidth 200kbit scored
	mv out policed
	exits 0 ace-select -v --seconds 2 policed
	says " of 50000 bytes"
}

@test "bits a value are the same as bytes" {
	layered
	exits 0 ace-select --no-provenance --bits 0.5 scored
	mv out bits
	exits 0 ace-select --no-provenance -b 65536 scored
	same out bits
}

@test "norms and biases stay dense until there are too few bytes" {
	mkshards -t w:256,256 -t w_bias:256 >shard
	exits 0 ace-select -b 5k shard
	mv out planned
	exits 0 ace-compress planned
	mv out coded
	exits 0 ace-export -f raw coded
	# the last 256 values: every one is there
	[ "$(tail -c 1024 out | od -An -v -t f4 -w4 | grep -cv ' 0$')" -eq 256 ]
	for pass in '' '--one-pass --memory 1k'; do
		exits 0 ace-select $pass --text -b 5k shard
		grep -qE '^1 (q8|f16|f32) w_bias' out
	done
	mkshards -t w:256,256 -t w_bias:2560 >large
	exits 0 ace-select --text -b 5k large
	grep -qE "^1 q8 w_bias" out
	exits 0 ace-select --text --roles ignore -b 5k large
	grep -qE '^1 (ecq|none).* w_bias' out
	exits 2 ace-select --roles what -b 5k shard
	exits 0 ace-select -b 550 shard
	says "too few"
}

@test "the policy's budget is obeyed, its absence is an error" {
	layered
	exits 2 ace-select --policy scored
	says "no policy in the stream: put ace-policy before"
	[ -x "$BUILD/ace-policy" ] || skip "no ace-policy here"
	exits 0 ace-policy --cmin 2 --cmax 200 --half 5Mbit --bandwidth 5Mbit scored
	mv out policed
	exits 0 ace-select -v --policy policed
	says "of 41527 bytes"
}

@test "one pass over what can be held is as good as two" {
	layered
	exits 0 ace-select --text -v -b 50k scored
	mv out two
	sed -nE 's/.*groups, ([0-9]+ of 50000 bytes, D [^ ]+) .*/\1/p' err >said
	exits 0 ace-select --text -v --one-pass -b 50k scored
	same out two
	[ -s said ] && grep -F "one pass, $(cat said) " err
}

@test "one pass: the price is carried from shard to shard, and in the state" {
	mkshards -n 1M -g 16384 -k layered -N 4 >shards
	one="ace-select --one-pass --memory 256Ki --no-provenance -b 50k"
	exits 0 $one -v shards
	mv out long
	for n in $(sed -nE 's/.*one pass, ([0-9]+) of.*/\1/p' err | tail -n 3); do
		[ "$n" -le 50000 ] && [ "$n" -ge 49000 ]
	done
	for s in 0 1 2 3; do
		mkshards -n 1M -g 16384 -k layered -s $s >shard
		exits 0 $one -S st shard
		mv out "part$s"
		ace-compress "part$s" >"coded$s"
	done
	ace-compress long >coded
	[ "$(shard_bytes coded)" -eq $(($(shard_bytes coded0) +
	    $(shard_bytes coded1) + $(shard_bytes coded2) +
	    $(shard_bytes coded3))) ]
	flip st/select 700
	exits 3 $one -S st shard
	says "corrupt: .*st/select"
}

@test "a value that is not finite is refused by name and place" {
	mkshards -t a:64 -k nan -i 3 >bad
	exits 5 ace-select -b 1k bad
	says "value 3 of tensor 'a' is not finite"
	exits 5 ace-select --one-pass -b 1k bad
}

@test "options that do not go together, or are out of range" {
	exits 2 ace-select </dev/null
	says "how much to send"
	exits 2 ace-select -p 0.5 -b 100 </dev/null
	exits 2 ace-select -p 1.5 </dev/null
	exits 2 ace-select -b x </dev/null
	exits 2 ace-select -b 1k --levels nonsense </dev/null
	exits 2 ace-select -b 1k --levels , </dev/null
}

@test "a share needs the whole shard" {
	layered
	exits 5 ace-select --one-pass -p 0.5 scored
	says "does not fit --memory"
}

@test "64 MiB are enough for one pass over a large stream" {
	sanitized && skip "the sanitizer's own memory"
	mkshards -n 64M -k fast | peak rss ace-select --one-pass -b 1M >/dev/null
	[ "$(cat rss)" -gt 0 ] && [ "$(cat rss)" -lt 65536 ]
}
