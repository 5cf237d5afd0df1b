load helper

count() { frames "$1" | grep -c " $2\$"; }

# shard_bytes FILE: print the bytes from the first SHRD to the TAIL
shard_bytes() {
	frames "$1" | awk '$2 == "SHRD" && !a { a = $1 }
	    $2 == "TAIL" { print $1 - a }'
}

# coded BUDGET FILE [OPTIONS]: print the size of the shard that ace-compress makes
coded() {
	local b=$1 f=$2
	shift 2
	exits 0 ace-select "$@" -b "$b" "$f" && mv out planned && cp err said &&
	    exits 0 ace-compress planned && mv out coded && shard_bytes coded
}

layered() { once layered make_layered; }

make_layered() {
	mkshards -n 1M -g 16384 -k layered >shard
	ace-score --form paper shard >scored
}

@test "the values and annotations pass; the plan follows them, with its budget" {
	layered
	exits 0 ace-select --omit provenance -b 100k scored
	[ ! -s err ]
	mv out planned
	[ "$(count planned pLAN)" -eq 1 ]
	[ "$(frames planned | awk '$2 ~ /pLAN|DATA|SEND/ { print $2 }' |
	    tail -n 2 | tr '\n' ' ')" = "pLAN SEND " ]
	[ "$(count planned DATA)" -eq "$(count scored DATA)" ]
	[ "$(count planned sTAT)" -eq "$(count scored sTAT)" ]
	makes back ace-export -f raw planned
	exits 0 ace-export -f raw scored
	same out back
}

@test "the shard is at most half a percent smaller than the budget, and never larger" {
	layered
	for b in 2000 5000 20k 60k 150k 400k 1M \
	    '20k --levels topk:0.01,q8,f16' '150k --levels topk:0.01,q8,f16'; do
		n=${b%% *}
		n=$(numfmt --from=si "${n^^}")
		got=$(coded ${b%% *} scored ${b#"${b%% *}"})
		[ "$got" -le "$n" ] || { echo "$b: $got"; false; }
		# 64 bytes more: frames are padded to multiples of 8, and bodies are whole bytes
		[ "$((got + 64 + n / 200))" -ge "$n" ] || { echo "$b: $got"; false; }
	done
}

@test "a plan as text may go to a terminal, a stream may not" {
	mkshards >in
	shows "^0 " pty ace-select --format text -b 1k in
	exits 2 pty ace-select -b 1k in
	# an error of the output does not have the place of a policy in the input
	ace-policy --deco 20ms,10ms --bandwidth 1Mbit in >pol
	refuses 4 "^ace-select: '<stdout>': No space left on device$" sh -c 'ace-select -b 1k pol >/dev/full'
}

@test "random and low-rank codecs are estimated and chosen, within the budget" {
	layered
	l=lowrank:2,lowrank:8,lowrank:16,qsgd:1,qsgd:7,qsgd:31
	for b in 20000 80000 150000; do
		got=$(coded $b scored --levels $l)
		[ "$got" -le $b ] || { echo "$b: $got"; false; }
		[ $((got + b / 10)) -ge $b ] || { echo "$b: $got"; false; }
	done
	exits 0 ace-select --format text -b 150000 --levels $l scored
	awk '{ n[$2]++ } END { for (c in n) k++; exit k < 3 }' out
}

@test "with codecs of fixed size the shard and its annotations are within the budget" {
	mkshards -n 8k -g 512 -a -P "why=$(seq 100 160 | tr -d '\n')" >in
	for b in 4500 4710 4920 9130 15000; do
		got=$(coded $b in --levels q8,f16,f32)
		[ "$got" -le $b ] && [ $((got + 600)) -ge $b ] ||
		    { echo "$b: $got"; false; }
	done
	# with many frames, too: with 150 bytes less, one group less is sent
	mkshards -n 1M -a -P "why=$(seq 100 160 | tr -d '\n')" >in
	got=$(coded 2M in --levels q8)
	exits 0 ace-select --format text -b "$got" --levels q8 in
	[ "$(grep -c ' q8 ' out)" -eq 16 ]
	exits 0 ace-select --format text -b $((got - 150)) --levels q8 in
	[ "$(grep -c ' q8 ' out)" -eq 15 ]
	mkshards -n 8k -g 512 >in
	# none is always among the codecs
	exits 0 ace-select --omit provenance --format text -b 6000 --levels q8 in
	[ "$(grep -v '^#' out | cut -d' ' -f2 | sort -u | paste -sd ' ')" = "none q8" ]
	mv out one
	exits 0 ace-select --omit provenance --format text -b 6000 --levels none,q8 in
	same one out
	many=$(seq -s, -f 'topk:%.2f' 0.01 0.01 0.32)
	exits 0 ace-select -b 6000 --levels "$many" in
	exits 2 ace-select -b 6000 --levels "$many,q8" in
	says '^ace-select: --levels: expected at most 32 codecs'
}

@test "the default codecs are ecq, q8, f16 and f32" {
	mkshards -t w:128,128 -t w_bias:128 -t v:11 >in
	for b in 6k 12k 20k 30k; do
		exits 0 ace-select --format text -b $b in
		cat out >>all
		mv out usual
		exits 0 ace-select --format text -b $b --levels ecq,q8,f16,f32 in
		same out usual
		mkshards -t w:128,128 -t u:128 -t v:11 >even
		exits 0 ace-select --format text -b $b --levels ecq even
		! grep -v '^#' out | grep -qvE '^[0-9]+ (ecq:[^ ]*|none) ' || false
	done
	[ "$(grep -v '^#' all | cut -d' ' -f2 | cut -d: -f1 | sort -u |
	    paste -sd ' ')" = "ecq f16 f32 q8" ]
	# -v says whether norms and biases are dense
	notes 'lambda [^,]*$' ace-select -v -b 6k in
	notes ', norms and biases dense$' ace-select -v -b 12k in
}

# error CODED: print the NMSE of CODED against `shard'
error() {
	ace-inspect diff --format json shard "$1" |
	    sed 's/.*"total":{[^}]*"nmse":\([0-9.e-]*\).*/\1/'
}

@test "--effort from 6 on uses tcq in place of ecq, with less error for the same bytes" {
	mkshards -t w:128,128 -t w_bias:128 -t v:11 >in
	for b in 6k 12k 30k; do
		makes usual ace-select --format text -b $b in
		exits 0 ace-select --format text -b $b --effort 5 in
		same out usual
		makes most ace-select --format text -b $b --effort 9 in
		exits 0 ace-select --format text -b $b --levels tcq,q8,f16,f32 in
		same out most
		exits 0 ace-select --format text -b $b --effort 6 in
		same out most
		! grep -q ecq: most || false
	done
	grep -q tcq: most
	layered
	for b in 20000 150000 400000; do
		coded $b scored >/dev/null
		was=$(error coded)
		got=$(coded $b scored --effort 9)
		[ "$got" -le $b ]
		[ $((got + 64 + b / 200)) -ge $b ]
		awk -v a="$was" -v b="$(error coded)" \
		    'BEGIN { exit !(b > 0 && b < 0.95 * a) }' ||
		    { echo "$b: $was, $(error coded)"; false; }
	done
	exits 2 ace-select -b 6k --effort 0 in
	exits 2 ace-select -b 6k --effort 10 in
	for how in '-p 0.5 --effort 9' '--plan usual --effort 9' '-p 0.5 --levels q8' \
	    '-b 6k --levels ecq --effort 9'; do
		exits 2 ace-select $how in
		says '--effort and --levels need -b, --bits or --policy, and exclude each other'
	done
	exits 2 ace-select -b 6k --levels ecq,q8,tcq in
	says '^ace-select: --levels: ecq and tcq both choose their own step: name one of them'
}

@test "-v prints the estimates" {
	layered
	exits 0 ace-select -v -b 30k scored
	says "of 64 groups, [0-9]+ of 30000 bytes estimated, distortion [0-9.e+-]+ of [0-9.e+-]+, step [0-9.e+-]+, lambda [0-9.e+-]+"
	got=$(sed -nE 's/.*groups, ([0-9]+) of 30000.*/\1/p' err)
	[ "$got" -gt 29000 ] && [ "$got" -le 30001 ]
}

@test "groups of the same weight get the same quantiser step" {
	layered
	exits 0 ace-select --format text -b 150k shard
	[ "$(grep -o 'ecq:[^ ]*' out | sort -u | wc -l)" -eq 1 ]
	[ "$(grep -c 'ecq:' out)" -ge 40 ]
	# different weights give different steps
	exits 0 ace-select --format text -b 150k scored
	[ "$(grep -o 'ecq:[^ ]*' out | sort -u | wc -l)" -gt 1 ]
}

@test "a budget too small for any group gives an empty shard and a message" {
	layered
	[ "$(coded 400 scored)" -le 400 ]
	grep -q "400 bytes is too small for any group: an empty shard is sent (ace-compress keeps the values only with -S)" said
	[ "$(count coded DATA)" -eq 0 ] || false
}

@test "a file and a pipe give the same plan, and the same coded shard" {
	layered
	makes file ace-select --omit provenance -b 50k scored
	exits 0 ace-select --omit provenance -b 50k <scored
	same out file
	cat scored | ace-select --omit provenance -b 50k >piped
	same piped file
	makes coded ace-compress --omit provenance file
	(dd bs=100 count=7; dd bs=777) <file 2>/dev/null |
	    ace-compress --omit provenance >piped
	same piped coded
}

@test "statistics of ace-score and those that ace-select calculates give the same plan" {
	mkshards -n 1M -g 16384 -k layered >shard
	makes scored ace-score --omit provenance shard
	makes bare ace-select --omit provenance -b 50k shard
	# without scores every group has a score of 1
	exits 0 ace-select --omit provenance -b 50k bare
	same out bare
	[ "$(count bare sTAT)" -eq 0 ] || false
}

@test "equation (2): -p sends the fewest groups that hold the share" {
	# four groups of equal size, energies far apart
	mkshards -t a:4096 -t b:4096 -t c:4096 -t d:4096 -k layered >shard
	makes scored ace-score --form paper shard
	notes "4 of 4 groups" ace-select -v -p 1 scored
	notes "1 of 4 groups" ace-select -v -p 0.01 scored
	mv out planned
	notes "groups sent: 1, not sent: 3" ace-compress -v planned
	exits 0 ace-select -p 1 --format text scored
	[ "$(grep -c ' f16 ' out)" -eq 4 ]
	# equally important groups are ordered by their mean square
	makes even ace-score shard
	exits 0 ace-select -p 0.25=f32,0.5=f16,0.75=q8 --format text even
	[ "$(grep -v '^#' out | cut -d ' ' -f 2 | paste -sd ' ')" = "f16 q8 f32 none" ]
	# without statistics they are ordered by their number
	exits 0 ace-select -p 0.5=q8 --format text shard
	[ "$(grep -v '^#' out | cut -d ' ' -f 2 | paste -sd ' ')" = "q8 q8 none none" ]
	makes planned ace-select -p 0 scored
	notes "groups sent: 0, not sent: 4" ace-compress -v planned
	makes planned ace-select -p 0.01=f32,1=q8 scored
	notes "groups sent: 4, not sent: 0" ace-compress -v planned
}

@test "-p with two shares makes three classes: f32, qsgd of equation (6), not sent" {
	mkshards -t a:4096 -t b:4096 -t c:4096 -t d:4096 -k layered >shard
	makes scored ace-score --form paper shard
	exits 0 ace-select -p 0.3=f32,0.8=qsgd:4 --format text scored
	[ "$(grep -v '^#' out | cut -d ' ' -f 2 | tr '\n' ' ')" = \
	    "qsgd:4 qsgd:4 f32 none " ] || { cat out; false; }
	for bad in '' ',' '0.5,' 0.5,0.5 0.9,0.8=q8 0.5=nonsense =q8 1.1; do
		exits 2 ace-select -p "$bad" scored
	done
	says "-p '1.1'"
}

# codecs STEP SHARES CODECS: check that -p SHARES gives the four groups CODECS at this step
codecs() {
	mkshards -s "$1" -t a:4096 -t b:8192 -t c:4096 -t d:4096 -g 8192 -k layered >step
	makes scored ace-score --form paper step
	exits 0 ace-select -p "$2" --format text scored
	[ "$(grep -v '^#' out | cut -d ' ' -f 2 | paste -sd ' ')" = "$3" ]
}

@test "-p count: a share of the number of values, as in the paper" {
	codecs 0 0.3=q8 "none none q8 none"
	codecs 0 0.5=q8 "q8 none q8 none"
	# the most important group has 4096 of 20480 values
	codecs 0 count:0.2=q8 "none none q8 none"
	codecs 0 count:0.21=q8 "q8 none q8 none"
	codecs 0 count:0.2=f32,0.7=q8 "q8 q8 f32 none"
	codecs 0 count:1=q8 "q8 q8 q8 q8"
	ace-select -v -p count:0.7=q8 scored 2>&1 >/dev/null |
	    grep -q '3 of 4 groups chosen, with at least 0.7 of the values'
	for bad in count: count:1.1 total:0.5 count:0.5,count:0.7; do
		exits 2 ace-select -p "$bad" scored
	done
}

@test "-p @N: groups of that class are sent every N steps, in turn" {
	for s in 0 2 4; do
		codecs $s count:0.2=f32,1=q8@2 "q8 none f32 none"
	done
	codecs 3 count:0.2=f32,1=q8@2 "none q8 f32 q8"
	codecs 3 1=q8@4 "none q8 none none"
	# until its turn a group stays in the residual
	for s in 0 1 2 3; do
		mkshards -s $s -n 4096 -g 1024 | ace-score
	done >in
	makes planned ace-select -p 1=f32@4 in
	makes coded ace-compress -S st planned
	[ "$(ace-expand coded | frames /dev/stdin | grep -c DATA)" -eq 4 ]
	for bad in 1=q8@0 1=q8@ 1=q8@x @ 1@-1 1=q8@4294967296; do
		exits 2 ace-select -p "$bad" planned
	done
	exits 0 ace-select -p 1@2 planned
	# the same step again gives the same shard
	mkshards -s 3 -n 4096 -g 1024 | ace-score >in
	for again in 1 2; do
		ace-select -p 1=f32@4 in | ace-compress -S st4 >sent$again
	done
	same sent1 sent2
	# without a residual, groups whose turn has not come would be lost
	refuses 2 '^ace-step: -p with @ needs -S DIR' ace-step -p 1=f32@4 in
	exits 0 ace-step -p 1=f32@1 in
	exits 0 ace-step -S st5 -p 0.1=q8,1=f32@4 in
}

@test "a plan as text is read again, may be edited, and is refused if invalid" {
	layered
	makes planned ace-select --omit provenance -b 50k scored
	makes text ace-select --format text -b 50k scored
	head -n 1 text | grep -qx "# shard 'edge1/0'"
	[ "$(grep -vc '^#' text)" -eq 64 ]
	# a plan that was given stands before the data and has no budget
	makes given ace-select --omit provenance --plan text scored
	[ "$(frames given | awk '$2 ~ /pLAN|DATA/ { print $2; exit }')" = pLAN ]
	cat scored | ace-select --omit provenance --plan text >piped
	same piped given
	exits 0 ace-select --format text --plan text scored
	same out text
	# only groups with a line are sent
	echo '5 q8' >few
	makes planned ace-select --plan few scored
	notes "groups sent: 1, not sent: 63" ace-compress -v planned
	exits 0 ace-select --format text -o file -b 50k scored
	same file text
	echo '64 q8' >long
	exits 3 ace-select --plan long scored
	says "mismatch: the plan of --plan names group 64, but shard .edge1.0. has 64 groups, numbered from 0"
	# a zero byte would hide the rest of its line
	printf '0 q8\n\0005 nonsense\n' >binary
	refuses 3 "corrupt: 'binary' has a zero byte: expected text" ace-select --plan binary scored
	# empty lines, and words after the codec
	printf '\n# of an editor\n\n5 q8 whatever it is\n\n7 f16\n' >loose
	exits 0 ace-select --format text --plan loose scored
	[ "$(awk '$2 != "none" && !/^#/ { print $1, $2 }' out | paste -sd ' ')" = "5 q8 7 f16" ]
	synced ace-select --format text -o file -b 50k scored
	grep -q 'file' synced
	for bad in '5' '5 nonsense' 'x q8' '-1 q8' '99999999999 q8'; do
		printf '# fine\n0 q8 w\n%s\n' "$bad" >bad
		refuses 2 "plan 'bad', line 3: " ace-select --plan bad scored
	done
	printf '5 q8\n5 f16\n' >bad
	exits 2 ace-select --plan bad scored
	head -c 100 scored >bad
	exits 3 ace-select --plan bad scored
	exits 4 ace-select --plan nowhere scored
}

@test "norms and biases stay dense if they take at most 1/50 of the budget" {
	mkshards -t w:256,256 -t w_bias:256 >shard
	notes "norms and biases dense" ace-select -v -b 20k shard
	mv out planned
	makes coded ace-compress planned
	exits 0 ace-export -f raw coded
	# the last 256 values, the biases, are all sent
	[ "$(tail -c 1024 out | od -An -v -t f4 -w4 | grep -cv ' 0$')" -eq 256 ]
	exits 0 ace-select --format text -b 20k shard
	grep -qE '^1 (q8|f16|f32) w_bias' out
	# if there are more, biases weigh four times as much, which halves their quantiser step
	mkshards -t w:256,256 -t w_bias:2560 >large
	exits 0 ace-select --format text -b 5k large
	awk '{ sub(/ecq:/, "", $2) } $1 == 0 { s = $2 } $1 == 1 { t = $2 }
	    END { exit !(s / t > 1.999 && s / t < 2.001) }' out || { cat out; false; }
	mkshards -t w:256,256 -t u:2560 >large
	exits 0 ace-select --format text -b 5k large
	awk '{ sub(/ecq:/, "", $2) } $1 == 0 { s = $2 } $1 == 1 { t = $2 }
	    END { exit s != t }' out || { cat out; false; }
}

@test "--policy takes the budget of the policy, and refuses a stream without one" {
	layered
	exits 2 ace-select --policy scored
	says "no policy sets a budget for the shard: put ace-policy before"
	[ -x "$BUILD/ace-policy" ] || skip "no ace-policy here"
	makes policed ace-policy --ratio 2,200,5Mbit --bandwidth 5Mbit scored
	notes "of 41527 bytes" ace-select -v --policy policed
	# a ratio alone is enough; budget_bytes counts before a ratio
	mkshards -n 64k -P ratio=4.5 >in
	notes "of 58254 bytes" ace-select -v --policy in
	mkshards -n 64k -P $'budget_bytes=9000\nratio=2' >in
	notes "of 9000 bytes" ace-select -v --policy in
}

@test "a policy's budget below the size of an empty shard gives an empty shard, with status 0" {
	mkshards -n 1k >small
	makes policed ace-policy --ratio 1000,1000 --bandwidth 5Mbit small
	exits 0 ace-select --policy policed
	says "too small for any group: an empty shard is sent \\(ace-compress keeps the values only with -S\\)"
	mv out planned
	exits 0 ace-compress -S st planned
	[ "$(count out DATA)" -eq 0 ] || false
}

@test "a value that is not finite is refused, with tensor and index" {
	mkshards -t a:64 -k nan -i 3 >bad
	refuses 5 "non-finite value in tensor 'a' at index 3" ace-select -b 1k bad
}

@test "options that exclude each other, or are out of range, are refused" {
	refuses 2 "the budget is missing" ace-select </dev/null
	echo '0 q8' >few
	# each option is in two of the pairs
	for how in "-p 0.5 -b 100" "-b 100 --bits 1" "--bits 1 --policy" \
	    "--policy --plan few" "--plan few -p 0.5"; do
		exits 2 ace-select $how </dev/null
		says "p, -b, --bits, --policy and --plan exclude each other"
	done
	exits 2 ace-select --bits -1 </dev/null
	# the last value of an option counts
	mkshards >in
	notes 'of 600 bytes' ace-select -v -b 1 -b 600 in
	# an empty shard of zeros gives no message
	mkshards -k zeros >in
	exits 0 ace-select -b 500 in
	[ ! -s err ]
	exits 2 ace-select -p 1.5 </dev/null
	exits 2 ace-select -b x </dev/null
	exits 2 ace-select -b 1k --levels nonsense </dev/null
	refuses 2 '--levels: no codec to choose' ace-select -b 1k --levels none </dev/null
	refuses 2 "codec '' is unknown" ace-select -b 1k --levels '' </dev/null
}

@test "numbers beyond the limits of the format are refused" {
	mkshards >in
	refuses 2 "'10000000000G': expected less than 9e18" ace-select -b 10000000000G in
	printf '67108864 q8\n' >table
	refuses 2 "group '67108864' is not a whole number from 0 to 67108863" ace-select --plan table in
	refuses 2 'at most [0-9]* shares' ace-select -p "$(seq -s, 0.01 0.01 0.40)" in
}

@test "memory does not grow with values of a group that are zero and take no bytes" {
	sanitized && skip "the sanitizer's own memory"
	perl -e '$g = pack("f", 1) . "\0" x (65535 * 4); print $g for 1 .. 400' |
	    ace-import -f raw --shape 26214400 -d edge1 -r test -s 0 - |
	    ace-compress -c nonzero >in
	exits 0 peak kib ace-select -b 1M -o out in
	[ "$(cat kib)" -le 49152 ]
}
