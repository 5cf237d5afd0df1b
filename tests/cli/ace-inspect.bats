load helper
load values

@test "list: one line per tensor, with sizes from the shard's directory" {
	mkshards -t wide.weight:50,30 -t b:7 -t s: -t none:0,4 -g 512 -c q8 -s 5 -w 2.5 >in
	exits 0 ace-inspect in
	[ ! -s err ]
	grep -qx 'device        edge1' out
	grep -qx 'run           test' out
	grep -qx 'step          5' out
	grep -qx 'weight        2.5' out
	grep -qx 'tensors       4, 1508 elements, 5 groups of 512' out
	# 1500 values of q8 in groups of 512: 34 bytes for each 32 values, 30 for the last 28
	grep -qE '^wide.weight  f32    50x30 +1500 +3/3 +1594 +8.5013  q8$' out
	grep -qE '^b            f32    7 +7 +1/1 +9 +10.2857  q8$' out
	grep -qE '^s            f32    scalar +1 +1/1 +3 +24.0000  q8$' out
	grep -qE '^none         f32    0x4 +0 +0/0 +0 +0.0000  -$' out
	grep -qE '^total +1508 +5/5 +1606 +8.5199  q8$' out
}

@test "values of groups that were not sent are counted as zeros" {
	mkshards -c none >none
	exits 0 ace-inspect none
	grep -qE '^total +336 +0/3 +0 +0.0000  -$' out
	exits 0 ace-inspect stats none
	grep -qE '^total +336 +0 +0 +0 +0 +336 +0 +0 +0.00$' out
}

@test "shards with several codecs, provenance, keys and annotations" {
	mkshards -g 64 -p -a >dense
	makes scored ace-score dense
	makes planned ace-select -p 0.5 scored
	makes coded ace-compress planned
	shows '^provenance    mkshards 1$' ace-inspect -v coded
	grep -q '^provenance    ace-compress ' out
	grep -q '^key           device=edge1$' out
	grep -q '^annotation    xyZz, 1 frames, 5 bytes$' out
	exits 0 ace-inspect --format json coded
	json '$j->{provenance}[0] eq "mkshards 1" && $j->{keys}{device} eq "edge1"'
	json '$j->{total}{codecs}{f16} == $j->{total}{groups_sent}'
	json '$j->{total}{groups_sent} > 0 && $j->{total}{groups_sent} < 6'
	# of seventeen types, the first sixteen
	mkshards -aaaaaaaaaaaaaaaaa >many
	[ "$(ace-inspect many | grep -c '^annotation')" -eq 16 ]
}

@test "stats: NaN and infinity are counted, null in JSON; an unknown parameter is refused" {
	mkshards -k nan -t w:100 -i 5 >nan
	mkshards -k inf -t w:100 -i 5 >inf
	exits 0 ace-inspect stats --format json nan
	json '$j->{total}{nan} == 1 && $j->{total}{inf} == 0 && $j->{total}{max} < 5'
	exits 0 ace-inspect stats --format json inf
	json '$j->{total}{nan} == 0 && $j->{total}{inf} == 1 && $j->{total}{max} < 5'
	exits 1 ace-inspect diff --format json inf nan
	json '$j->{total}{differ} == 1 && $j->{total}{nmse} == 0'
	exits 0 ace-inspect diff nan nan
	refuses 3 'unsupported: parameter 77 of codec exact' \
	    ace-inspect stats "$ROOT/tests/golden/bad-unsupported-exact-parameter.aceg"
}

@test "--tensor: tables and totals have only the tensors that match" {
	mkshards >in
	exits 0 ace-inspect --tensor 'layer.*' in
	run ! grep -q '^embed' out
	grep -qE '^total +144 ' out
	exits 0 ace-inspect stats --tensor embed in
	grep -qE '^total +192 ' out
	exits 1 ace-inspect --tensor 'nothing*' in
}

@test "verify: one line per file; the highest status; a message for damage" {
	mkshards >a
	mkshards -N 3 -c q8 >b
	cat a b >c
	exits 0 ace-inspect verify a b c
	echo "a: ok, 1 shards, $(wc -c <a) bytes
b: ok, 3 shards, $(wc -c <b) bytes
c: ok, 4 shards, $(wc -c <c) bytes" >want
	same out want
	exits 0 ace-inspect verify -q a b c
	[ ! -s out ]
	cp b bad
	flip bad 700
	exits 3 ace-inspect verify a bad b
	[ "$(grep -c ': ok, ' out)" -eq 2 ]
	says "^ace-inspect: corrupt: .*at byte [0-9]+, file 'bad'$"
	[ "$(wc -l <err)" -eq 1 ]
	exits 4 ace-inspect verify a nowhere bad
	exits 3 ace-inspect verify --format json a bad
	json '$j->{ok} ? $j->{status} == 0 : $j->{status} == 3 && $j->{error} =~ /^corrupt/'
}

@test "diff: status 0 if equal, 1 if different; the NMSE of q8" {
	mkshards -n 1M >x
	mkshards -n 1M -c q8 >q8
	exits 0 ace-inspect diff x x
	makes dense ace-expand q8
	exits 0 ace-inspect diff dense q8
	exits 1 ace-inspect diff --format json x q8
	json '$j->{total}{nmse} < 3e-5 && $j->{total}{nmse} > 1e-5 && $j->{total}{cosine} > 0.99998'
	exits 0 ace-inspect diff --tolerance 3e-5 x q8
	exits 1 ace-inspect diff --tolerance 1e-5 x q8
	exits 1 ace-inspect diff -q q8 x
	[ ! -s out ]
	[ ! -s err ]
	exits 1 ace-inspect diff - x <q8
}

@test "diff: known values, also if one side sent nothing" {
	# x = i, y = i + 1 for i = 0..99: |x-y|^2 = 100, |y|^2 = 338350
	mkshards -k ramp -t w:100 -g 17 -s 0 >x
	mkshards -k ramp -t w:100 -g 17 -s 1 >y
	exits 1 ace-inspect diff --format json y x
	json '$j->{total}{max_abs_difference} == 1 && $j->{total}{differ} == 100'
	json 'abs($j->{total}{nmse} - 100 / 338350) < 1e-15'
	json 'abs($j->{total}{cosine} - 333300 / sqrt(328350 * 338350)) < 1e-12'
	mkshards -k ramp -t w:100 -g 17 -c none >none
	exits 1 ace-inspect diff --format json x none
	json '$j->{total}{nmse} == 1 && $j->{total}{cosine} == 0 && $j->{total}{differ} == 99'
	exits 1 ace-inspect diff --format json none x
	json '!defined $j->{total}{nmse}'
	mkshards -k zeros -t w:100 -g 17 >zeros
	exits 0 ace-inspect diff zeros none
}

@test "diff: another schema is a mismatch that names the first difference" {
	mkshards -t w:10,10 >a
	mkshards -t w:10,11 >b
	mkshards -t v:10,10 >c
	refuses 3 "^ace-inspect: mismatch: .*'a' and 'b'.*tensor 'w'" ace-inspect diff b a
	refuses 3 "mismatch: .*'w' and 'v'" ace-inspect diff c a
}

@test "diff: a shard in one file only is a difference; a selection counts for both; damage has its own status" {
	mkshards -N 2 >two
	mkshards -N 3 >three
	for what in 'three two' 'two three' '--step 1- two three'; do
		exits 1 ace-inspect diff $what
		grep -qx 'only in three: 1 shards' out
	done
	exits 0 ace-inspect diff --step 1 two three
	head -c 4000 three >part
	exits 3 ace-inspect diff part two
	exits 3 ace-inspect diff two part
}

@test "tables fit 80 columns; a long name gets its own line" {
	local name=transformer.layers.10.self_attention.query_key_value.weight
	mkshards -t $name:100 -t b:7 >a
	mkshards -t $name:100 -t b:7 -c q8 >b
	for args in 'stats a' 'list a' 'diff a b'; do
		ace-inspect $args >out || [ $? = 1 ]
		[ "$(awk 'length > 80' out)" = "" ]
		grep -qx $name out
	done
	exits 0 ace-inspect stats a
	[ "$(grep -A 1 -x $name out | tail -n 1 | awk '{ print $1, NF }')" = '100 9' ]
}

@test "bits per value of a partly sent tensor count all of its values" {
	# groups 0, 4 and 8 of ten, 300 of 1000 values of 32 bits
	mkshards -g 100 -t a:1000 -t b:100 -L f32,none,none,none |
	    ace-compress -o part
	exits 0 ace-inspect stats --format json part
	json 'abs($j->{tensors}[0]{bits_per_value} - 9.6) < 1e-9'
	json 'abs($j->{total}{bits_per_value} - 9600 / 1100) < 1e-9'
}

@test "JSON: hostile names are escaped, and truncated input gives a complete object" {
	mkshards -t 'a"b\c:4' -t "$(printf '\303\251'):4" >in
	exits 0 ace-inspect --format json in
	json '$j->{tensors}[0]{name} eq "a\"b\\c" && $j->{tensors}[1]{name} eq "\x{e9}"'
	mkshards -n 1M >big
	head -c 1000000 big >part
	exits 3 ace-inspect --format json part
	json '$j->{error} =~ /^truncated: /'
	exits 3 ace-inspect stats --format json part
	json '$j->{error} =~ /^truncated: /'
	exits 3 ace-inspect brief --format json part
	json '$j->{error} =~ /^truncated: / && !exists $j->{elements}'
	cp in "$(printf 'a\033b\377')"
	exits 0 ace-inspect verify --format json a*
	json '$j->{file} eq "a\x{1b}b\x{fffd}"'
	shows '^a?b?: ok' ace-inspect verify a*
}

@test "a file with the name of a command" {
	mkshards -d edge7 >verify
	exits 0 ace-inspect ./verify
	grep -qx 'device        edge7' out
	exits 0 ace-inspect -- verify
	grep -qx 'device        edge7' out
	exits 0 ace-inspect --format json verify
	json '$j->{device} eq "edge7"'
	# `verify' is a command, which reads standard input, and also the name of a file here
	shows ': ok, 1 shards' ace-inspect verify <verify
	shows '^verify: ok' ace-inspect verify verify
	refuses 4 "'verfy'" ace-inspect verfy
}

@test "the page names each field" {
	mkshards -P bandwidth=5e6 -a >in
	for c in list brief stats "diff in"; do
		exits 0 ace-inspect ${c%% *} --format json ${c#"${c%% *}"} in
		grep -oE '"[a-z_0-9]+":' out | tr -d '":'
	done >names
	for c in '' stats; do
		exits 0 ace-inspect $c --format tsv in
		head -n 1 out | tr '\t' '\n'
	done >>names
	sed -n '/^\.Sh DESCRIPTION/,/^\.Sh ENVIRONMENT/p' "$ROOT/man/ace-inspect.1" |
	    tr -c 'a-z_0-9' '\n' | sort -u >page
	sort -u names >said
	[ "$(wc -l <said)" -gt 50 ]
	# allow names of codecs and keys of the shard
	comm -23 said page | grep -vxE 'f32|q8|run|device' >missing || :
	diff /dev/null missing
}

@test "invalid calls are refused" {
	mkshards >in
	exits 2 ace-inspect --format xml in
	says "^ace-inspect: --format 'xml': expected text, json or tsv$"
	for call in '' - 'in in in' '--tolerance -1 in in' '--tolerance nan in in'; do
		exits 2 ace-inspect diff $call <in
	done
	exits 4 ace-inspect diff nowhere in
}

# bats test_tags=long
@test "memory does not grow with the stream" {
	sanitized && skip "the sanitizer's own memory"
	for o in list stats verify "stats --format json"; do
		mkshards -n 32M -k fast | {
			exits 0 peak kib ace-inspect $o
		}
		[ "$(cat kib)" -le 65536 ] || { echo "$o: $(cat kib) KiB"; false; }
	done
	mkfifo x y
	mkshards -n 32M -k fast >x &
	mkshards -n 32M -k fast >y &
	exits 0 peak kib ace-inspect diff y x
	[ "$(cat kib)" -le 65536 ] || { cat kib; false; }
}

@test "a receipt as text has device, step, verdict and reason" {
	mkshards -d edge1 -s 7 >one
	mkshards -d 'ed.ge 2' -s 7 >two
	for f in one two; do ace-recv --spool spool "$f" >"$f.rcpt"; done
	ace-aggregate --spool spool --rounds 1 >/dev/null
	exits 0 ace-inspect spool/done/7
	[ "$(sort out)" = "receipt       ed.ge 2 step 7: accepted
receipt       edge1 step 7: accepted" ]
	mkshards -d edge3 -s 7 | ace-recv --spool spool >late
	exits 0 ace-inspect late
	grep -qx 'receipt       [0-9a-f]\{32\} step 7: late: step 7 is closed' out
	ace-ack -S state one.rcpt >/dev/null
	exits 0 ace-inspect -v state/receipts
	grep -qx 'receipt       [0-9a-f]\{32\} step 7: accepted' out
	grep -qE '^ +digest [0-9a-f]{32}, version 0, at [0-9]+$' out
	exits 0 ace-inspect --format json spool/done/7 late
	[ "$(wc -l <out)" -eq 3 ]
	for d in edge1 'ed.ge 2'; do
		grep -q "^{\"file\":\"spool/done/7\",\"verdict\":\"accepted\",\"reason\":\"\",\"device\":\"$d\",\"step\":7,.*}$" out
	done
	tail -n 1 out | grep -q '"verdict":"late","reason":"step 7 is closed","step":7,'
}

@test "it reads the files of a spool and of a state" {
	for s in 0 1; do
		mkshards -d edge1 -s $s |
		    ace-compress -S state -c q8 |
		    ace-recv --spool spool | ace-ack -S state >/dev/null
	done
	ace-aggregate --spool spool --rounds 2 --rule center:0 >/dev/null
	find spool -type f ! -name '.*' >files
	[ "$(wc -l <files)" -ge 8 ]
	while read -r f; do
		case $f in
		*.incarnation | *.open)
			! grep -vE '^[0-9]+( [0-9.e+-]+)?$' "$f" || false ;;
		*)	exits 0 ace-inspect "$f" ;;
		esac
	done <files
	exits 0 ace-inspect state/receipts
	truncate -s 300 state/residual
	refuses 3 "no end \(ace-ack --restart N .* empty residual\), at .*, file 'state/residual'" ace-inspect brief state
	: >state/residual
	exits 3 ace-inspect brief state
}

@test "a shard that is a difference to a history is shown as one" {
	mkshards -s 0 | ace-compress -S state --error-feedback cache -c q8 >/dev/null
	mkshards -s 1 | ace-compress -S state --error-feedback cache -c q8 >second
	exits 0 ace-inspect second
	grep -qE '^flags .*predicted' out
	shows '"flags":\[.*"predicted".*\]' ace-inspect --format json second
}

@test "a patch: its two models, and the changes by tensor and by type" {
	mkmodel old -n 1000
	mkmodel new -n 1000 -s 1
	makes step.aceg ace-diff -v -s 7 old new
	from=$(sed -n 's/.*from \([0-9a-f]*\) to .*/\1/p' err)
	to=$(sed -n 's/.* to \([0-9a-f]*\):.*/\1/p' err)
	grep -q '45 of 3281 values' err
	exits 0 ace-inspect step.aceg
	grep -qx "models        from $from to $to" out
	grep -qE '^layer.03.f32 +f32 +10 +1.0000 +1000 +0\.[12][0-9]{3}$' out
	grep -qE '^layer.98.scalar +bf16 +1 +100.0000 +1 +[0-9]+\.0000$' out
	# both bf16 tensors count together; two f4 values count as one
	grep -qE '^all +bf16 +11 +1.0989 +1001 +0\.[12][0-9]{3}$' out
	grep -qE '^all +f4 +1 +10.0000 +10 +[0-9]\.[0-9]{4}$' out
	grep -qE '^all +45 +1.3757 +3271 +0\.[34][0-9]{3}$' out
	exits 0 ace-inspect --format json step.aceg
	from=$from to=$to json '$j->{patch}{before} eq $ENV{from} && $j->{patch}{after} eq $ENV{to}'
	json '$j->{patch}{changed} == 45 && $j->{patch}{values} == 3271'
	json '@{$j->{patch}{tensors}} == 18 && @{$j->{patch}{dtypes}} == 17'
	json '$j->{patch}{tensors}[3]{name} eq "layer.03.f32" && $j->{patch}{tensors}[3]{changed} == 10'
	exits 0 ace-inspect --tensor 'layer.0[01]*' step.aceg
	grep -qE '^all +11 +1.0784 +1020 ' out
	# a whole model has no model before it, and no count of changes
	makes whole ace-diff new
	exits 0 ace-inspect whole
	grep -qx "models        from nothing to $to" out
	grep -qE '^all +- +- +3271 +16.2666$' out
	exits 0 ace-inspect --format json whole
	json '!exists $j->{patch}{before} && !exists $j->{patch}{changed}'
	makes same ace-diff new new
	exits 0 ace-inspect same
	grep -qE '^all +0 +0.0000 +3271 +0.0000$' out
}

@test "a named pipe is read once" {
	mkshards >in
	mkfifo once
	cat in >once 3>&- &
	makes got ace-inspect once
	exits 0 ace-inspect in
	same got out
}
