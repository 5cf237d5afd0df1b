# The keys of a policy: the table of ace-stream(5), and programs that refuse invalid values.
load helper

# table: print the keys of the table, each with values that are invalid for it
table() {
	cat <<-'END'
	bandwidth       -1 -0.5 1.1e30 1e31
	budget_bytes    -1 1.5 9000000000000000001 18446744073709551616
	compute         -1 -1e-9 1.1e15 1e300
	compute.seconds -1 -1e-9 1.1e15 1e300
	cuts            0 5,3 1048577,1 3,3,1 1,2 5,,1 5,1, ,1 5,-1 18446744073709551617,1
	cuts.seconds    -1 -1e-9 1.1e9 1e300
	delay           -1 0.5 1001 18446744073709551617
	divergence      -1 -1e-9 1.1e300 1e301
	force           -1 0.5 2 01x
	interval        0 -1 1000001 1.5
	kc              -1 -1e-9 1.1e9 1e300
	latency         -1 -1e-9 1.1e15 1e300
	model.norm      -1 -1e-9 1.1e300 1e301
	ratio           0 -2 1.1e12 1e300
	END
}

# refused KEY CMD...: check that CMD refuses KEY's value and writes no complete stream
refused() {
	local key=$1
	shift
	exits 3 "$@"
	says "^${1##*/}: corrupt: key $key: '.*, shard 1 'edge1/0', at byte [0-9]+"
	! ace-inspect verify out >/dev/null 2>&1
}

@test "the tables of this file, the program and the page have the same keys" {
	"$BUILD/unit/format/test_keys" page >page
	sed -n 's/^\.It Cm \([a-z_.]*\) Pq .*/\1/p' page |
	    cmp - <(table | cut -d ' ' -f 1)
	sed -n '/^\.It Cm bandwidth Pq/,/^\.El/{/^\.It/p}' \
	    "$ROOT/man/ace-stream.5" | diff - page
}

# bats test_tags=long
@test "programs that use a policy refuse invalid values, others pass them" {
	mkshards >in
	while read -r key values; do
		for v in $values nan -nan inf -inf x 1x '' 0x; do
			mkshards -P "$key=$v" >bad
			refused $key ace-policy bad
			refused $key ace-select --policy bad
			refused $key ace-aggregate bad
		done
		# a program that uses libaceg refuses them, too
		refuses 3 "corrupt: key $key: " "$BUILD/examples/scale" 2 <bad
		# a program that does not use the policy passes it on
		exits 0 ace-expand bad
	done < <(table)
}

@test "keys interval.DEVICE have the range of interval" {
	mkshards >in
	for v in 0 1000001 1.5 x; do
		mkshards -P "interval.edge7=$v" >bad
		refused interval.edge7 ace-aggregate bad
		exits 0 ace-expand bad
	done
	mkshards -P interval.edge7=1000000 >good
	exits 0 ace-aggregate good
	mkshards -P intervals=x >good
	exits 0 ace-aggregate good
}

@test "invalid keys model.norm and compute.seconds are refused by programs that use them" {
	for v in nan inf -1 x 1e301; do
		mkshards -K model.norm=$v >bad
		exits 3 ace-policy --target-divergence 0.01 bad
		says "^ace-policy: corrupt: key model.norm of shard 'edge1/0': '$v'"
		exits 3 ace-aggregate bad
		says "^ace-aggregate: corrupt: step 0: key model.norm of edge1: '$v'"
		mkshards -K compute.seconds=$v >bad
		exits 3 ace-policy --deco auto,1ms --bandwidth 1Mbit bad
		says "^ace-policy: corrupt: key compute.seconds of shard 'edge1/0': '$v'"
	done
	# the norm 0 of a model of zeros is valid, but a drift relative to it is not
	mkshards -K model.norm=0 >zero
	exits 0 ace-aggregate zero
	refuses 3 "is 0, expected a norm above 0: give --model-norm" ace-policy --target-divergence 0.01 zero
}

@test "the drift is relative to the norm in each shard, or to --model-norm" {
	drift() { ace-inspect -v out | grep -o 'divergence=.*'; }
	mkshards -n 1k -K model.norm=1000 >in
	exits 0 ace-policy --target-divergence 0.01 in
	drift >key
	exits 0 ace-policy --target-divergence 0.01 --model-norm 1000 in
	drift | cmp - key
	exits 0 ace-policy --target-divergence 0.01 --model-norm 1e9 in
	drift | grep -q 'e-08$'
	mkshards -K model.norm=0 >in
	exits 3 ace-policy --target-divergence 0.01 in
	says "mismatch: key model.norm of shard 'edge1/0' is 0, expected a norm above 0: give --model-norm"
}
