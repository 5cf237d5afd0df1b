# Clusters of devices whose updates have similar directions.
load helper
load values

# device NAME DIRECTION SEED [WEIGHT]: write a shard of 2,000 values: a direction, plus
# noise of half its size from SEED
device() {
	perl -e 'my ($d, $seed) = @ARGV; my $n = 2000;
	    sub noise { my $s = 0; $s += rand for 1 .. 12; $s - 6 }
	    srand($d); my @mean = map { noise } 1 .. $n;
	    srand($seed + 100); my @x = map { $_ + noise() / 2 } @mean;
	    print pack("f<*", @x)' "$2" "$3" |
	    ace-import -f raw -d "$1" -s 7 -w "${4:-1}" >"$1"
}

six() {
	device a 1 1 2
	device b 2 2
	device c 1 3
	device d 3 4
	device e 2 5 3
	device f 1 6
}

# clusters FILE: print each cluster on a line, sorted
clusters() {
	local line
	field clusters "$1" | tr ';' '\n' | while read -r line; do
		tr ',' '\n' <<<"$line" | sort | paste -sd, -
	done | sort
}

@test "similar devices are put into one cluster, whatever their order" {
	six
	notes 'step 7: clusters ' ace-aggregate -v --omit provenance --cluster 0.7 a b c d e f
	clusters out >got
	printf '%s\n' a,c,f b,e d | cmp - got
	mv out one
	exits 0 ace-aggregate --omit provenance --cluster 0.7 f e d c b a
	same out one
	exits 0 ace-aggregate --cluster 0 a b c d e f
	[ "$(field clusters out | tr -cd ';' | wc -c)" -eq 5 ]
	exits 0 ace-aggregate --cluster 2 a b c d e f
	[ "$(field clusters out | tr -cd ';' | wc -c)" -eq 0 ]
	# the aggregate itself is the same with and without clusters
	exits 0 ace-aggregate a b c d e f
	raw out >plain
	raw one | cmp - plain
}

@test "each cluster's mean is the aggregate of its members" {
	six
	exits 0 ace-aggregate --cluster 0.7:mean a b c d e f
	[ "$(field device out | tr '\n' ' ')" = \
	    "aggregate aggregate.0 aggregate.1 aggregate.2 " ]
	ace-expand out >all
	for k in 0 1 2; do
		raw all --device aggregate.$k >got
		members=$(field contributors all | sed -n "$((k + 2))p")
		ace-aggregate ${members//,/ } >want
		raw want | cmp - got
		[ "$(field weight want)" = \
		    "$(field weight all | sed -n "$((k + 2))p")" ]
	done
	field contributors all | sed 1d | sort >got
	printf '%s\n' a,c,f b,e d | cmp - got
}

@test "a device that a rule leaves out is in no cluster" {
	six
	flat 1e6 2000 -d z -s 7 >z
	exits 0 ace-aggregate --rule norm-ratio:99 --cluster 0.7:mean a b c d e f z
	[ "$(field left-out out)" = z:norm-ratio ]
	clusters out >got
	printf '%s\n' a,c,f b,e d | cmp - got
	raw out --device aggregate.0 >with
	ace-aggregate --cluster 0.7:mean a b c d e f >want
	raw want --device aggregate.0 | cmp - with
}

@test "invalid uses of --cluster are refused" {
	six
	exits 2 ace-aggregate --cluster :mean a b
	exits 2 ace-aggregate --cluster 0.7:mean --rule sum a b
	exits 2 ace-aggregate --cluster 0.7:mean --rule median a b
	exits 2 ace-aggregate --cluster -1 a b
	exits 2 ace-aggregate --cluster nan a b
	exits 2 ace-aggregate --cluster 0.7:offset a b
	exits 2 ace-aggregate -d "$(printf '%0255d' 7)" --cluster 0.7:mean a b
	says "--device has 255 bytes: with the cluster's suffix '.0' the name has more than 255 bytes"
	ace-aggregate --rule sum a b >sum
	exits 5 ace-aggregate --cluster 0.7 sum c
}
