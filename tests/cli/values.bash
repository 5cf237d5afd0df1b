# Functions that write and read values, and read fields, of streams.

# flat VALUE N OPTION...: print a shard of N equal values, made by ace-import OPTION...
flat() {
	perl -e 'print pack("f<*", ($ARGV[0]) x $ARGV[1])' -- "$1" "$2" |
	    ace-import -f raw "${@:3}"
}

# raw FILE [OPTION...]: print its values as f32
raw() { ace-export -f raw "${@:2}" "$1"; }

# each EXPR FILE...: check that EXPR is true for every i; $v[0], $v[1]... are the i-th f32 of
# each file, f(x) rounds to f32, and $k starts at 0
each() {
	perl -we 'use strict; sub f { unpack "f<", pack "f<", $_[0] }
	my $e = shift; my ($k, @f, @v) = (0); local $/;
	for (@ARGV) { open my $h, "<", $_ or die; binmode $h;
		push @f, [unpack "f<*", <$h>] }
	my $n = @{$f[0]}; $n > 0 or die "no values\n";
	$_ != $n and die "not as many values\n" for map { scalar @$_ } @f;
	my $t = eval "sub { $e }" or die $@;
	for my $i (0 .. $n - 1) { @v = map { $_->[$i] } @f;
		&$t or die "value $i: @v\n" }' "$@"
}

# unlz4(BLOCK) for Perl: return the bytes of an LZ4 block
export unlz4='sub unlz4 { my ($p, $y, $i) = ($_[0], "", 0);
		while ($i < length $p) { my $t = ord substr($p, $i++, 1);
			my ($l, $m) = ($t >> 4, $t & 15); my $c;
			if ($l == 15) { do { $c = ord substr($p, $i++, 1);
				$l += $c } while $c == 255 }
			$y .= substr($p, $i, $l); $i += $l;
			last if $i >= length $p;
			my $d = unpack("v", substr($p, $i)); $i += 2;
			if ($m == 15) { do { $c = ord substr($p, $i++, 1);
				$m += $c } while $c == 255 }
			$y .= substr($y, -$d, 1) for 1 .. $m + 4 } $y }
'

# shards FILE: print a line per shard: [contributors=NAME,NAME...] from mEMb, NAME=VALUE for
#   every key and some fields of SHRD, then for some of SEND
shards() {
	perl -we "$unlz4"'use strict; local $/; binmode STDIN; my $s = <STDIN>;
	my ($o, $n, $line) = (0);
	for (; $o + 64 <= length $s; $o += 64 + 8 * int(($n + 7) / 8)) {
		$n = unpack "V", substr $s, $o + 16, 4;
		my ($t, $p) = (substr($s, $o + 4, 4), substr $s, $o + 64, $n);
		if ($t eq "SHRD") {
			$line = "";
			my ($f, $i, %f) = (unpack("V", substr $p, 76), 88);
			for (0 .. 7) {
				next unless $f >> $_ & 1;
				$f{$_} = unpack "Q<", substr $p, $i;
				$i += $_ == 1 || $_ == 2 || $_ == 6 ? 16 : 8 }
			while ($i < $n) {
				my ($k, $v) = unpack "vv", substr $p, $i, 4;
				$line .= substr($p, $i + 4, $k) . "=" .
				    substr($p, $i + 4 + $k, $v) . " ";
				$i += 4 + $k + $v }
			$line .= sprintf "step=%d base=%d weight=%.9g " .
			    "samples=%d kind=%d flags=%d n=%d ",
			    unpack("Q<", substr $p, 32), $f{0} // 0,
			    unpack("d<", substr $p, 56), $f{3} // 0,
			    unpack("VVV", substr $p, 64)
		} elsif ($t eq "mEMb") {
			$p = unlz4($p) if ord(substr $s, $o + 8, 1) & 1;
			$line = "contributors=" .
			    join(",", unpack "x8(v/a)*", $p) . " $line"
		} elsif ($t eq "SEND") {
			my @f = unpack "VVQ<Q<Q<a16d<d<f<VQ<", $p;
			print "${line}records=$f[1] nonzero=$f[2] " .
			    "dropped=$f[10] status=$f[9]\n" } }' <"$1"
}

# field NAME FILE: print that field of every shard
field() { shards "$2" | grep -oE "(^| )$1=[^ ]*" | sed 's/.*=//'; }

# digest FILE: print a digest of each shard's contents
digest() {
	perl -we 'use strict; local $/; binmode STDIN; my $s = <STDIN>;
	my ($o, $n) = (0);
	for (; $o + 64 <= length $s; $o += 64 + 8 * int(($n + 7) / 8)) {
		$n = unpack "V", substr $s, $o + 16, 4;
		print unpack("H32", substr $s, $o + 64 + 32, 16), "\n"
		    if substr($s, $o + 4, 4) eq "SEND" }' <"$1"
}

# json PERL: check that PERL is true for every document $j in `out'
json() {
	perl -MJSON::PP -e 'my $n = 0; while (<STDIN>) { my $j = decode_json($_); $n++;
	    eval($ARGV[0]) or die "not so: $ARGV[0]: $_$@" } $n or die "no document"' \
	    "$1" <out
}
