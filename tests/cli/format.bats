# Version 1 of the format, ace-stream(5): frames that filters pass on, streams that readers
# refuse, and whole numbers.

load helper
load values

# kinds FILE: print its frames' types in one line
kinds() { frames "$1" | cut -d' ' -f2 | paste -sd' '; }

@test "every filter reads unknown frames between shards, and drops them" {
	mkshards -A -N 2 -n 4000 >in
	[ "$(kinds in)" = "HEAD SCHM xyZz SHRD DATA SEND xyZz SHRD DATA SEND TAIL" ]
	exits 0 ace-inspect verify in
	for how in ace-score "ace-policy --bandwidth 1Mbit" \
	    "ace-select --bits 8" "ace-compress -c q8" ace-expand \
	    "ace-ack -S ack" \
	    "ace-step -S step --bits 8"; do
		exits 0 $how --omit provenance in
		[ "$(kinds out | grep -o 'SHRD' | wc -l)" -eq 2 ]
		! kinds out | grep -q xyZz || { echo "$how: $(kinds out)"; false; }
	done
}

@test "provenance has a line per program, in their order" {
	mkshards -p >in
	for how in "ace-score" "ace-policy --bandwidth 1Mbit" "ace-select --bits 8" \
	    "ace-expand" "ace-compress -c q8" "ace-compress -S st -c q8" "ace-cut" \
	    "ace-ack -S ack"; do
		exits 0 $how in
		ace-inspect -v out | sed -n 's/^provenance *//p' >lines
		[ "$(wc -l <lines)" -eq 2 ] || { echo "$how"; cat lines; false; }
		[ "$(head -n 1 lines)" = "mkshards 1" ]
		tail -n 1 lines | grep -qE "^${how/ / [0-9.]+ }$|^$how [0-9.]+$"
		mv out next
		exits 0 $how --omit provenance next
		! ace-inspect -v out | grep '^provenance' || false
	done
	# control characters are replaced in the lines
	exits 0 ace-compress -S $'s\e\tt' -c q8 in
	grep -aqF -e '-S s??t -c q8' out
}

@test "filters keep or drop an annotation by the last letter of its type" {
	local all kept how
	all='sCOR pLAN sTAT mEMb tIMe pOLi lINk tEXt xyZZ xyZz sIGN'
	openssl genpkey -algorithm ed25519 -out key.pem
	chmod 600 key.pem
	[ "$(kinds "$ROOT/tests/golden/good-annotated.aceg" | tr ' ' '\n' | grep -c '^[a-z]')" -eq 12 ]
	while IFS=: read -r kept how; do
		makes got $how --omit provenance "$ROOT/tests/golden/good-annotated.aceg"
		exits 0 ace-inspect verify got
		got=$(kinds got | tr ' ' '\n' | grep '^[a-z]' | sort -u | paste -sd' ')
		[ "$got" = "$(tr ' ' '\n' <<<"$kept" | sort | paste -sd' ')" ] ||
		    { echo "$how: $got"; false; }
	done <<-END
	$all:ace-cut
	$all:ace-sign -k key.pem
	$all:ace-ack -S ack
	${all% sIGN}:ace-score
	${all% sIGN}:ace-policy --bandwidth 1Mbit
	${all% sIGN}:ace-select --bits 32
	mEMb tIMe pOLi lINk tEXt xyZz:ace-expand
	mEMb tIMe pOLi lINk tEXt xyZz:ace-compress
	mEMb tIMe pOLi lINk tEXt xyZz:ace-compress -c q8
	mEMb tIMe pOLi lINk tEXt xyZz:ace-compress -S state -c q8
	mEMb tIMe pOLi lINk tEXt xyZz:ace-cut --tensor w
	mEMb pOLi:ace-aggregate
	END
}

# every: print one call of each program that reads and writes a stream
every() {
	openssl genpkey -algorithm ed25519 -out key.pem
	chmod 600 key.pem
	printf '%s\n' ace-score "ace-policy --bandwidth 1Mbit" "ace-select --bits 8" \
	    "ace-compress -c q8" ace-expand "ace-ack -S ack" ace-cut "ace-sign -k key.pem" \
	    "ace-step --bits 8" ace-aggregate "ace-aggregate --rule clip:1" \
	    "ace-export -f raw"
}

@test "every program obeys --schema and --max-elements" {
	mkshards >in
	ace-expand --omit schema in >bare
	mkshards -t w:336 >other
	every >programs
	while read -r how; do
		refuses 3 'mismatch: the stream has no schema: add one' $how bare
		exits 0 $how --schema in bare
		exits 0 $how --schema in in
		refuses 3 '^ace-[a-z]*: mismatch: ' $how --schema other in
		exits 0 $how --max-elements 336 in
		refuses 3 'limit: the schema has 336 elements, expected at most 335' $how --max-elements 335 in
	done <programs
}

@test "-o syncs the file before it renames it" {
	mkshards >in
	every >programs
	while read -r how; do
		rm -f file
		synced $how -o file in >/dev/null
		[ -s file ]
		[ "$(grep -c '^file' synced)" -eq 1 ] && [ "$(tail -n 1 synced)" = . ] ||
		    { echo "$how"; cat synced; false; }
	done <programs
}

@test "an input that cannot be opened: the next program in the pipe says that the stream was aborted" {
	for how in ace-score ace-expand "ace-compress -c q8" "ace-step -c q8"; do
		$how nowhere 2>said | exits 3 ace-expand
		says '^ace-expand: truncated: the stream was aborted: .*$'
		grep -qE "^${how%% *}: 'nowhere': No such file" said
		exits 4 $how -o file nowhere
		[ ! -e file ]
	done
}

@test "2^31 groups in a few hundred bytes take no program much time or memory" {
	sanitized && skip "the sanitizer's own memory"
	for w in groups groups-most elements; do
		bad=$ROOT/tests/golden/bad-limit-$w.aceg
		[ "$(wc -c <"$bad")" -le 1200 ]
		for how in ace-score "ace-policy --bandwidth 1Mbit" \
		    "ace-select --bits 8" "ace-compress -c q8" ace-expand \
		    "ace-step -S step --bits 8" "ace-ack -S ack" \
		    ace-aggregate "ace-aggregate --rule median" "ace-recv --spool spool" \
		    "ace-export -f raw" "ace-inspect stats"; do
			ms=$(date +%s%N)
			exits 3 cpu 5 peak kib $how "$bad"
			ms=$((($(date +%s%N) - ms) / 1000000))
			echo "# $w: ${how%% *} $ms ms, $(cat kib) KiB" >&3
			says "^${how%% *}: limit: " || { echo "$how"; false; }
			[ "$(cat kib)" -le 65536 ] || { echo "$how"; false; }
		done
	done
}

@test "3,000,000,000 values need no option" {
	mkshards -t w:3000,1000,1000 -c none >in
	exits 0 ace-inspect verify in
	exits 3 ace-inspect verify --max-elements 2000000000 in
	says 'limit: the schema has 3000000000 elements'
}

@test "the largest group fits a frame" {
	mkshards -n 1M -g 1M -c f32 >in
	exits 0 ace-inspect verify in
	exits 0 ace-expand in
	[ "$(wc -c <out)" -gt 4194304 ]
}

@test "tensors of a whole-number type are not quantised, and stay the same to the bit" {
	mkshards -D 6 -k ramp -n 64 >in
	makes coded ace-compress --omit provenance -c exact in
	[ "$(wc -c <coded)" -lt "$(wc -c <in)" ]
	raw in >a
	raw coded >b
	same a b
	for c in q8 topk:0.1 ecq:0.1 f16 none; do
		exits 0 ace-compress --omit provenance -c "$c" in
		same out coded
	done
	exits 0 ace-export -f safetensors -o x.safetensors in
	grep -aq '"U8"' x.safetensors
	makes again ace-import x.safetensors
	exits 0 ace-export -f raw again
	same out a
}

# whole N FILE: write a model of 4096 floats and of whole numbers that depend on N
whole() {
	perl -e 'binmode STDOUT; srand $ARGV[0]; $at = 0;
	    @t = (["bn.num_batches_tracked", "I64", "", pack("q<", $ARGV[0])],
	    ["position_ids", "I64", 512, pack("q<512", 0 .. 511)], ["mask", "BOOL", 70,
	    pack("C70", map { $_ % 3 == 0 } 0 .. 69)], ["i", "I32", 2, pack("l<2",
	    -$ARGV[0], 1 << 24)], ["w", "F32", 4096, pack("f<4096", map { rand() - 0.5 }
	    1 .. 4096)]);
	    for (@t) { $e = $at + length $_->[3]; $d .= $_->[3];
		push @h, qq("$_->[0]":{"dtype":"$_->[1]","shape":[$_->[2]],"data_offsets":[$at,$e]});
		$at = $e; }
	    $h = "{" . join(",", @h) . "}"; $h .= " " while length($h) % 8;
	    print pack("Q<", length $h), $h, $d' "$1" >"$2"
}

# still STREAM MODEL: check that STREAM and MODEL have the same whole numbers, to the bit
still() {
	local t
	for t in bn.num_batches_tracked position_ids mask i; do
		ace-export -f raw --tensor $t -o is "$1"
		ace-import -f safetensors "$2" | ace-export -f raw --tensor $t -o was
		same is was
	done
}

@test "whole numbers are the same after every codec, plan and budget" {
	whole 123456 m.safetensors
	ace-import m.safetensors >in
	for c in q8 f16 sign topk:0.01 ecq:0.5 tcq:0.5 qsgd:4 none; do
		exits 0 ace-compress -c "$c" -o coded in
		still coded m.safetensors
	done
	ace-score in >scored
	for b in '-b 1200' '-b 3k' '--bits 2' '-p 0.5=q8' '-p count:0.1' \
	    '--bits 3 --levels sign,q8' '-b 1200 --levels f16'; do
		ace-select $b scored | ace-compress -o coded
		still coded m.safetensors
	done
	# a plan with another codec for the whole numbers, and a budget that they exceed
	ace-select -p 0 --format text scored | sed 's/none/q8/' >plan
	ace-select --plan plan in | ace-compress -o coded
	still coded m.safetensors
	ace-select -b 400 scored >planned
	exits 5 ace-compress planned
	says "shard '.*': a budget of 400 bytes is too small: with the tensors that are sent without loss, the shard takes [0-9]+ bytes$"
	# a whole number that has the bits of 2.5 stays the same
	perl -e 'print pack "f<", 2.5' >half.raw
	ace-import half.raw | ace-export -f safetensors -o h.safetensors
	sed 's/F32/I32/' h.safetensors >i.safetensors
	ace-import i.safetensors >i.aceg
	exits 0 ace-export -f safetensors -o o.safetensors i.aceg
	same o.safetensors i.safetensors
}

@test "whole numbers have no residual and no difference to a history" {
	for f in ef cache; do
		rm -rf st h
		for s in 1 2 3; do
			whole $((1000 + 7 * s)) m.safetensors
			ace-import -d e -s $s m.safetensors |
			    ace-compress -S st -c q8 --error-feedback $f >coded
			case $f in
			ef) cp coded dense ;;
			*) ace-expand --cache h coded >dense ;;
			esac
			still dense m.safetensors
		done
	done
	# with a budget, in ace-step
	for s in 1 2 3; do
		whole $((1000 + 7 * s)) m.safetensors
		ace-import -d e -s $s m.safetensors
	done | ace-step -S one --bits 3 >coded
	ace-export --step 3 -f safetensors -o coded3 coded
	ace-import -f safetensors coded3 >dense
	still dense m.safetensors
}

@test "no tolerance applies to whole numbers" {
	whole 5 m.safetensors
	ace-import m.safetensors >in
	whole 6 n.safetensors
	ace-import n.safetensors | ace-inspect diff --tolerance 9 - in >said && false
	grep '^total' said
}

@test "an average has the first device's whole numbers; a message names those that differ" {
	for i in 1 2 3; do
		whole 77 same.$i
		whole $i odd.$i
		for k in same odd; do
			ace-import -f safetensors -d e$i $k.$i >$k.$i.aceg
		done
	done
	for o in '' '--rule sum' '--rule median' '--rule trim:1' '--tolerate 1'; do
		exits 0 ace-aggregate $o -o mean same.?.aceg
		[ ! -s err ]
		still mean same.1
		exits 0 ace-aggregate $o -o mean odd.?.aceg
		says "step 0: tensor 'bn.num_batches_tracked' is i64, which cannot be averaged, and differs in the shard of 'e[123]'"
		[ "$(wc -l <err)" -eq 1 ]
		n=$(ace-export -f raw --tensor bn.num_batches_tracked mean | perl -e 'print unpack "f<", <>')
		still mean odd.$n
	done
}

@test "device names may contain commas" {
	mkshards -d 'a,b' >one
	mkshards -d c >two
	makes mid ace-aggregate -d mid one two
	mkshards -d d >three
	makes all ace-aggregate mid three
	exits 0 ace-inspect -v all
	[ "$(grep '^mEMb' out | sed 's/^mEMb *//' | paste -sd'|')" = 'a,b|c|d' ]
}
