# ace-stream(5): its tables, and the filter in its example.

load helper
load values

# decode <STREAM: decode a stream of f32 records by the page's tables, without checksums;
# print the fields, and write the values to the file f32.
decode() {
	# shellcheck disable=SC2154 # of values.bash
	perl -we "$unlz4"'use strict; local $/; binmode STDIN; my $f = <STDIN>;
	my ($o, $seq, @n, @name, $g, %x, $run) = (0, 0);
	open(my $out, ">", "f32") or die;
	sub kv { my %h; for (my $i = 0; $i < length $_[0];) {
		my ($k, $v) = unpack("vv", substr($_[0], $i));
		$h{substr($_[0], $i + 4, $k)} = substr($_[0], $i + 4 + $k, $v);
		$i += 4 + $k + $v } join ",", map { "$_=$h{$_}" } sort keys %h }
	sub varint { my ($v, $s, $c) = (0, 0);
		do { $c = ord substr($_[0], $_[1]++, 1);
			$v |= ($c & 127) << $s; $s += 7 } while $c & 128; $v }
	while ($o < length $f) {
		my ($sync, $t, $fl, $ma, $hl, $no, $w, $r, $id, $key, $h, $at) =
		    unpack("a4a4vCCVVVQ<Q<Q<Q<", substr($f, $o, 56));
		$sync eq "\xacACE" && $hl == 8 && $ma == 1 && $no == $seq++ &&
		    $at == $o or die "frame at $o";
		my $p = substr($f, $o + 64, $w);
		$p = unlz4($p) if $fl & 1;
		length $p == $r or die "length at $o";
		$o += 64 + 8 * int(($w + 7) / 8);
		if ($t eq "\r\n\x1a\n") {
			my ($a, $b, $q, $op, $m, $c, $s, $n, $k) =
			    unpack("vvVVVQ<a16Q<V", $p);
			printf "HEAD %d %d\n", $a, $m;
		} elsif ($t eq "SCHM") {
			my ($n, $gs, $tot, $ns, $nd) = unpack("VVQ<VV", $p);
			$g = $gs;
			for my $i (0 .. $n - 1) {
				my ($ne, $ba, $no, $nl, $d, $dt, $d0) =
				    unpack("Q<Q<VvCCV", substr($p, 32 + 40 * $i));
				printf "tensor %s %d dims %s\n", substr($p,
				    32 + 40 * $n + 8 * $nd + $no, $nl), $ne,
				    join "x", unpack("Q<$d", substr($p,
				    32 + 40 * $n + 8 * $d0));
				push @n, $g x int($ne / $g) ? ($g) x int($ne / $g)
				    : (), $ne % $g ? $ne % $g : () }
		} elsif ($t eq "pROv") { print "pROv $p"
		} elsif ($t eq "SHRD") { $run = 0;
			my ($st, $sc, $we, $ki, $fg, $co, $fi, $kl) =
			    unpack("Q<a16d<VVVVV", substr($p, 32));
			my ($sa, $at) = (0, 88);
			for (0 .. 7) { next unless $fi >> $_ & 1;
				$sa = unpack("Q<", substr($p, $at)) if $_ == 3;
				$at += $_ == 1 || $_ == 2 || $_ == 6 ? 16 : 8 }
			printf "SHRD step %d weight %g samples %d %s\n", $st, $we,
			    $sa, kv(substr($p, $at, $kl));
		} elsif ($t eq "DATA") { my ($n, $dl, $g0) = unpack("VVV", $p);
			my ($i, $pa, $b) = (12, 0, 12 + $dl + (-12 - $dl) % 8);
			$run = $g0;
			for (1 .. $n) { my $c = ord substr($p, $i++, 1);
				my $gap = $c >> 5; $gap += varint($p, $i) if $gap == 7;
				$pa = ord substr($p, $i++, 1) unless $c & 16;
				my $l = varint($p, $i); $run += $gap;
				($c & 15) == 0 && $l == 4 * $n[$run] or die "record";
				$x{$run++} = substr($p, $b, $l); $b += $l }
			$b == length $p or die "bodies"
		} elsif ($t eq "SEND") {
			my ($nd, $nr, $nz, $ra, $wi, $dg, $su, $sq, $mx, $st, $dr) =
			    unpack("VVQ<Q<Q<a16d<d<f<VQ<", $p);
			print $out $x{$_} // "\0" x (4 * $n[$_]) for 0 .. $#n;
			%x = ();
			printf "SEND %d %d %d sum %.9g max %.9g %d\n", $nr, $nz,
			    $ra, $su, $mx, $st
		} elsif ($t eq "TAIL") { my ($nf, $ns, $by) = unpack("VVQ<", $p);
			$nf == $no && $by == $at or die "tail";
			print "TAIL $ns\n"
		} else { print "$t $p\n" } }'
}

@test "the count of values that were set to zero stays with the shard" {
	mkshards -H dropped=7 >in
	exits 0 ace-expand in
	[ "$(field dropped out)" -eq 7 ]
	exits 0 ace-expand -S state in
	[ "$(field dropped out)" -eq 7 ]
	exits 0 ace-compress -c q8 in
	[ "$(field dropped out)" -eq 7 ]
	ace-select -b 900 in >planned
	exits 0 ace-compress -S state planned
	[ "$(field dropped out)" -eq 7 ]
	exits 0 ace-step -S other --bits 32 in
	[ "$(field dropped out)" -eq 7 ]
}

@test "the page's tables are enough to read a stream" {
	mkshards -a -p -g 64 -s 41 -w 2.5 -N 2 >in
	decode <in >text
	cat >want <<-'EOT'
	HEAD 1 16777216
	tensor embed 192 dims 24x8
	tensor layer.weight 128 dims 8x16
	tensor layer.bias 16 dims 16
	pROv mkshards 1
	SHRD step 41 weight 2.5 samples 32 device=edge1,run=test
	xyZz hello
	SEND 6 336 1344 sum S max M 0
	SHRD step 42 weight 2.5 samples 32 device=edge1,run=test
	xyZz hello
	SEND 6 336 1344 sum S max M 0
	TAIL 2
	EOT
	perl -pe 's/sum \S+ max \S+/sum S max M/' text | diff -u want -
	mkshards -g 64 -s 41 | ace-export -f raw >a
	mkshards -g 64 -s 42 | ace-export -f raw >>a
	same f32 a
	# the sums, computed again
	perl -e 'local $/; binmode STDIN; $s = $m = 0;
	    for (unpack "f<336", <STDIN>) { $s += $_; $m = abs if abs > $m }
	    printf "SEND 6 336 1344 sum %.9g max %.9g 0\n", $s, $m' <a >want
	grep SEND text | head -n 1 | diff want -
}

# built SCALE: build the page's filter with only the installed header and library
built() {
	local san=
	mkdir -p include lib
	cp "$ROOT/lib/aceg.h" include/
	cp "$BUILD/libaceg.a" lib/
	sanitized && san=-fsanitize=address,undefined
	cp "$ROOT/examples/scale.c" .
	# shellcheck disable=SC2046,SC2086 # words are meant
	${CC:-cc} $san -Wall -Wextra -Iinclude -o "$1" scale.c lib/libaceg.a \
	    $(pkg-config --libs liblz4 libxxhash) -lm
}

@test "scale.c compiles against aceg.h and libaceg alone, and scales" {
	built scale
	# frames between shards pass in their place
	mkshards -A -N 2 >in
	exits 0 ./scale 2 <in
	[ "$(frames out | awk '$2 != "pROv" { printf("%s ", $2) }')" = \
	    "HEAD SCHM xyZz SHRD DATA SEND xyZz SHRD DATA SEND TAIL " ]
	mkshards -a -p -N 3 -c f16 -w 3 >in
	exits 0 ./scale 2 <in
	mv out twice
	exits 0 ./scale 0.5 <twice
	mv out back
	exits 0 ace-expand --omit provenance <in
	decode <out | grep -v pROv >want
	mv f32 values
	decode <back | grep -v 'scale 1 \|pROv' | diff want -
	same f32 values
	ace-export -f raw --step 2 twice >a
	ace-export -f raw --step 2 in >b
	perl -e 'local $/; for (@ARGV) { open F, $_; binmode F;
	    push @v, [unpack "f<*", <F>] } for (0 .. 335) {
	    $v[0][$_] == 2 * $v[1][$_] or die "$_" } @{$v[0]} == 336 or die' a b
	# annotations and keys that the filter does not know are kept, and provenance is in order
	grep -c hello twice
	decode <twice | grep -A2 pROv | diff - <(echo "pROv mkshards 1
	scale 1 2" | sed 's/^\t*//' && decode <twice | grep -m1 SHRD)
}

@test "scale.c passes no damage on" {
	built scale
	mkshards -N 2 >in
	for at in 0 63 64 700 1500 2000 $(($(wc -c <in) - 1)); do
		head -c "$at" in >part
		exits 3 ./scale 2 <part
		says '^scale: truncated: '
		mv out part
		exits 3 ace-expand part
	done
	flip in 800
	exits 3 ./scale 2 <in
	says '^scale: corrupt: '
	exits 2 ./scale x </dev/null
}

@test "scale.c says when its output does not go" {
	needs_full
	built scale
	mkshards >in
	got=0
	./scale 2 <in >/dev/full 2>err || got=$?
	[ "$got" -eq 4 ]
	says 'No space left'
}
