# Only the listed values of sparse shards are added.  The result is written sparse if few
# of its values are not zero, and has the same bits as with dense shards.

load helper
load values

# edges N OPTION...: write the same step of N devices to e1 ... eN, and dense copies of
# these shards to d1 ... dN
edges() {
	local i
	for i in $(seq "$1"); do
		mkshards -d "edge$i" -x "$i" "${@:2}" >"e$i"
		ace-expand --omit provenance -o "d$i" "e$i"
	done
}

# codecs FILE: print the codecs of the groups of FILE, each once
codecs() {
	ace-inspect "$1" | awk '$1 == "total" { print $NF }'
}

# alike A B: check that A and B have the same values, to the bit, and the same keys
alike() {
	raw "$1" >x.f32
	raw "$2" >y.f32
	same x.f32 y.f32
	[ "$(shards "$1")" = "$(shards "$2")" ]
}

@test "sparse shards and dense copies have the same average, sum, median and trimmed mean" {
	for codec in topk:0.02 topk:0.05:q2 \
	    topk:0.05:mag chunk:2/64 nonzero; do
		edges 3 -n 70000 -g 4096 -k layered -c "$codec" -w 0.3
		mkshards -d edge4 -x 4 -n 70000 -g 4096 -c q8 -w 0.7 >e4
		for how in "" "--rule sum" \
		    "--rule clip:0.5" "--rule norm-ratio:9"; do
			each_of 5 || continue
			makes sparse ace-aggregate $how e1 e2 e3
			exits 0 ace-aggregate $how d1 d2 d3
			alike sparse out
			makes sparse ace-aggregate $how e1 e4 d2 e3
			exits 0 ace-aggregate $how d1 e4 d2 d3
			alike sparse out
		done
	done
}

@test "zeros of both signs, and the smallest values of f32" {
	perl -e 'binmode STDOUT; print pack("V*", 0, 1 << 31, 1, (1 << 31) + 1,
	    (0) x 60)' >f
	for i in 1 2 3; do
		ace-import -f raw --name w --shape 64 -d "edge$i" -s 1 f >"d$i"
		ace-compress -q -c nonzero -o "e$i" "d$i"
		[ "$(codecs "e$i")" = nonzero ]
	done
	makes sparse ace-aggregate e1 e2 e3
	exits 0 ace-aggregate d1 d2 d3
	alike sparse out
	makes one ace-aggregate e1
	raw one >one.f32
	perl -e 'binmode STDOUT; print pack("V*", 0, 0, 1, (1 << 31) + 1,
	    (0) x 60)' >want
	same one.f32 want
}

@test "sparse if at most a quarter is not zero, else dense; groups that nobody sent are absent" {
	for k in 0 1 16 17 64; do
		perl -e 'binmode STDOUT; print pack("f<*", (1.5) x $ARGV[0],
		    (0) x (64 - $ARGV[0]))' "$k" >f
		ace-import -f raw --name w --shape 64 -d edge1 -s 1 f >in
		exits 0 ace-aggregate in
		want=nonzero
		[ "$k" -le 16 ] || want=f32
		[ "$(codecs out)" = "$want" ] || { codecs out; false; }
		raw out >back
		same back f
	done
	mkshards -d edge1 -n 1000 -c none >none
	exits 0 ace-aggregate none
	[ "$(field records out)" = 0 ]
	# at most 6 bytes for each of the 4,000 values that were sent, and 2,000 bytes
	edges 4 -n 100000 -k gauss -c topk:0.01
	exits 0 ace-aggregate e1 e2 e3 e4
	[ "$(codecs out)" = nonzero ]
	[ "$(wc -c <out)" -lt $((4000 * 6 + 2000)) ]
}

@test "every program that reads dense aggregates reads sparse ones" {
	edges 4 -n 70000 -k layered -c topk:0.03
	exits 0 ace-aggregate -o sparse e1 e2 e3 e4
	[ "$(codecs sparse)" = nonzero ]
	exits 0 ace-inspect verify sparse
	exits 0 ace-expand -o dense sparse
	[ "$(codecs dense)" = f32 ]
	alike sparse dense
	for f in sparse dense; do
		ace-inspect stats $f | grep -v "^$f\|bytes" >"$f.stats"
		makes $f.npz ace-export -f npz $f
	done
	exits 0 ace-inspect diff sparse dense
	same sparse.npz dense.npz
	# downstream the average is scored, planned and coded again
	for f in sparse dense; do
		ace-score --omit provenance $f |
		    ace-select --omit provenance -b 3000 |
		    ace-compress --omit provenance -S "st.$f" -o "$f.coded"
	done
	same sparse.coded dense.coded
	# feedback that sends differences to what the receiver has
	for f in sparse dense; do
		ace-compress --omit provenance -S "st.cache.$f" \
		    --error-feedback cache -c topk:0.2 -o c $f
		exits 0 ace-expand --omit provenance --cache "h.$f" c
		mv out "$f.cache"
	done
	same sparse.cache dense.cache
}

@test "a relay's sum is sparse, too, and has the same weight" {
	edges 6 -n 70000 -k ramp -c topk:0.02 -w 0.5
	exits 0 ace-aggregate --rule sum -d west -o w e1 e2 e3
	exits 0 ace-aggregate --rule sum -d east -o e e4 e5 e6
	for f in w e; do
		[ "$(codecs $f)" = nonzero ]
		ace-compress -q -c nonzero -S "rs.$f" -o "up.$f" $f
		[ "$(codecs "up.$f")" = nonzero ]
		ace-compress -q -c f32 -S "rf.$f" -o "flat.$f" $f
		alike "up.$f" "flat.$f"
		[ "$(wc -c <"up.$f")" -lt $(($(wc -c <"flat.$f") / 8)) ]
		# an exact code leaves a residual of zeros
		raw "rs.$f/residual" --kind residual >left
		[ -s left ]
		[ "$(tr -d '\0' <left | wc -c)" -eq 0 ]
	done
	makes deep ace-aggregate up.w up.e
	exits 0 ace-aggregate d1 d2 d3 d4 d5 d6
	raw deep >x.f32
	raw out >y.f32
	each 'abs($v[0] - $v[1]) <= 2 ** -22 * abs($v[1])' x.f32 y.f32
	[ "$(field weight deep)" = 3 ]
}

@test "from a spool, and in the reply of ace-recv: the same bytes" {
	edges 3 -n 70000 -k layered -c topk:0.02
	makes want ace-aggregate --omit provenance e1 e2 e3
	for i in 2 3; do exits 0 ace-recv --spool spool "e$i"; done
	ace-recv --spool spool --reply aggregate e1 >back &
	ace-aggregate --spool spool --devices 3 --rounds 1 |
	    ace-recv --spool spool --publish
	wait
	[ "$(codecs back)" = nonzero ]
	alike back want
}
