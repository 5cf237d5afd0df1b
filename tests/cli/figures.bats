# Promised figures about the size of streams; make bench measures speed.

# bats file_tags=plain
load helper

# json EXPRESSION FILE: print the value of a Perl expression over ace-inspect's JSON, $j
json() {
	ace-inspect --format json "$2" | perl -MJSON::PP -e '$j = decode_json(<STDIN>);
	    print eval $ARGV[0], "\n"; die $@ if $@' "$1"
}

size() {
	wc -c <"$1"
}

@test "the frames of a dense stream take at most 0.1 %" {
	mkshards -n 4M -k fast >dense
	extra=$(($(size dense) - 4 * (4 << 20)))
	echo "# $extra bytes of $(size dense)" >&3
	[ $((extra * 1000)) -le $((4 * (4 << 20))) ]
}

@test "the frames of a coded shard take at most 1 KiB and 4 bytes per group" {
	# many small groups; then few groups, all in one frame
	for g in 256 65536; do
		mkshards -n 1M -g $g |
		    ace-compress -c topk:0.01 --omit provenance,schema >coded
		mkshards -n 1M -g $g | ace-compress -c topk:0.01 >whole
		bodies=$(json '$j->{total}{bytes}' whole)
		groups=$((1048576 / g))
		extra=$(($(size coded) - bodies))
		echo "# $groups groups: $extra bytes besides the $bodies coded" >&3
		[ "$extra" -le $((1024 + 4 * groups)) ]
	done
	mkshards -n 64 | ace-compress -c q8 --omit provenance,schema >one
	[ "$(size one)" -le $((1024 + 68)) ]
}

# framed FILE: print the size of each frame; a DATA frame counts without its coded values
framed() {
	perl -we 'use strict; local $/; binmode STDIN; my $s = <STDIN>;
	my ($o, $n, $all) = (0, 0, 0);
	for (; $o + 64 <= length $s; $o += 64 + 8 * int(($n + 7) / 8)) {
		$n = unpack "V", substr $s, $o + 16, 4;
		my ($t, $k) = (substr($s, $o + 4, 4), 8 * int(($n + 7) / 8));
		if ($t eq "DATA") {
			my ($m, $d) = unpack "VV", substr $s, $o + 64;
			$k = 8 * int((12 + $d + 7) / 8) }
		$t = "HEAD" if $t =~ /\n/;
		$all += 64 + $k;
		print "# $t 64 + $k\n" }
	print "$all\n"' <"$1"
}

@test "the frames of a small model at q8 take at most 1250 bytes, 950 without provenance and policy" {
	model="-t embed:64,32 -t hidden.weight:32,96 -t hidden.bias:96"
	model="$model -t out.weight:64,74 -t out.bias:24"
	mkshards $model | ace-score | ace-policy --bandwidth 1Mbit |
	    ace-compress -c q8 >whole
	framed whole >&3
	[ "$(framed whole | tail -n 1)" -le 1250 ]
	mkshards $model | ace-compress --omit provenance -c q8 >bare
	framed bare >&3
	[ "$(framed bare | tail -n 1)" -le 950 ]
}

# gradient: write a real gradient of a small model, the same in each call
gradient() {
	awk 'BEGIN { for (i = 0; i < 9000; i++)
	    printf("%x: the %d of %d is %d, not %s\n", i * i % 8191, i, i % 7,
	    i * i % 97, substr("abcdefghijklmnopqrstuvwxyz", i % 23, 4)) }' >text
	OPENBLAS_NUM_THREADS=1 "$BUILD/examples/train" --gradient --steps 10 \
	    text >gradient 2>/dev/null
}

# bats test_tags=long
@test "ecq takes at most 1 % more bytes than the order-0 entropy" {
	gradient
	bench-codecs -l <gradient >cells
	cat cells >&3
	[ "$(wc -l <cells)" -eq 8 ]
	[ "$(grep -c '<= 1  *met' cells)" -eq 8 ]
}

# bats test_tags=long
@test "a plan has at most 1 % more error than the best single quantiser step of the same bytes" {
	gradient
	{ bench-planner gradient 5 <gradient
	mkshards -n 500k -k layered | bench-planner layered 5; } >cells
	sed 's/  plan.*//; s/ MISSED//' cells >&3
	[ "$(wc -l <cells)" -eq 14 ]
	[ "$(awk '/DOES NOT FIT/ || !/error x [0-9.]+/ { exit 3 }
	    { sub(/.*error x /, "") } $1 <= 1.01 { n++ }
	    END { print n + 0 }' cells)" -eq 14 ]
}

@test "examples/results/README.md has the figures of the files of deco, dynacomm, overlap and together" {
	local r=$ROOT/examples/results
	# 200_10_8_5_300 in a row's name means 200 Mbit/s and 10 ms for 8 s, then 5 Mbit/s and 300 ms
	awk -F '\t' 'NR == 1 { for (i = 1; i <= NF; i++) c[$i] = i; next }
	{ n = split($1, f, "_")
	    line = "| " f[1] ", " f[2] (n > 2 ? " for " f[3] " s" : "")
	    for (i = 4; i <= n; i += 3)
		line = line "; " f[i] ", " f[i + 1] (i + 2 <= n ? \
		    " for " f[i + 2] " s" : " from then on")
	    printf "%s | %.1f | %.1f | %.1f | %.1f | **%.1f** | %.1fx | %.2fx" \
		" | %.2fx | %.1f | **%.1f** |\n", line, $c["sync s"],
		$c["compressed s"], $c["fixed s"], $c["hindsight s"],
		$c["deco s"], $c["by sync"], $c["by fixed"], $c["by kept"],
		$c["dga s"], $c["deco-ahead s"] }' "$r/deco.tsv" >rows
	[ "$(wc -l <rows)" -eq 12 ]
	# the rows in which optimal cuts save most
	awk -F '\t' 'NR > 1 && $7 > most[$1] { most[$1] = $7
	    row[$1] = $7 " % | " $5 " % | " $6 " % |" }
	    END { for (net in row) print net " | " row[net] }' \
	    "$r/dynacomm.tsv" >best
	[ "$(wc -l <best)" -eq 4 ]
	sed 's/^vgg-19/VGG-19/; s/^googlenet/GoogLeNet/
	    s/^resnet/ResNet/; s/^inception/Inception/
	    s/^/| /' best >>rows
	awk -F '\t' 'FNR > 1 { name["sequential"] = "none"
	    name["layers"] = "every tensor"; name["ibatch"] = "iBatch"
	    name["optimal"] = $1; name["policy"] = "by the policy, in the stream"
	    printf "| %s | %s | %.3f |\n", name[$1], $2, $4 }' \
	    "$r/overlap-50.tsv" "$r/overlap-state.tsv" >>rows
	tail -n +2 "$r/together.tsv" | sed 's/\t/ | /g; s/.*/| & |/' >>rows
	[ "$(wc -l <rows)" -eq 33 ]
	while IFS= read -r row; do
		grep -qF -e "$row" "$r/README.md" ||
		    { echo "not in README.md: $row"; return 1; }
	done <rows
}
