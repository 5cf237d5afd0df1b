# Attacks of a device that has a valid key, on the programs that a cloud runs.
load helper
load values

# sends DEVICE STEP VALUE ARGS...: send a shard of 64 values through ace-recv
sends() {
	flat "$3" 64 --name w -d "$1" -r test -s "$2" >in
	exits 0 ace-recv -v --spool spool --sync none --device "$1" "${@:4}" in
}

# coded STEP: average the step and code it as a cloud does; the residual takes the excess of
# values beyond 65504, the largest of f16
coded() {
	exits 0 ace-aggregate --spool spool --devices 3 --quorum 2 --rounds 1 \
	    --sync none
	mv out mean
	ace-expand -S state --allow-gap mean >expanded
	exits 0 ace-compress -S state -c f16 --sync none expanded
	[ -e spool/done/"$1" ]
}

@test "the largest permitted values do not make the residual overflow at any step" {
	local step d
	sends evil 0 3e38
	says "step 0: invalid: limit: 3e\+38 in tensor 'w' at index 0 is above 1e\+18 in magnitude"
	sends evil 1 -1.1e18
	says "step 1: invalid: limit: -1.1e\+18 in tensor"
	for step in 2 3 4 5 6 7; do
		sends evil $step 1e18
		says accepted
		for d in edge1 edge2; do sends $d $step 0.5; done
		coded $step
	done
}

@test "a device without model.norm does not disable the policy" {
	local d
	for d in edge1 edge2; do
		mkshards -d $d -K model.norm=10 >in
		exits 0 ace-recv --spool spool --sync none in
	done
	mkshards -d evil >in
	exits 0 ace-recv --spool spool --sync none in
	ace-aggregate --spool spool --devices 3 --rounds 1 --sync none >mean
	exits 0 ace-policy --target-divergence 0.04 --interval 5,4,10 mean
}

@test "a weight within the limits counts; --tolerate bounds its effect" {
	local d
	for d in edge1 edge2; do flat 1 64 -d $d -r test >$d; done
	flat 1000 64 -d evil -r test --weight 1000000000 >evil
	for d in edge1 edge2 evil; do
		limited 'weight 1000000000' exits 0 ace-recv --spool spool --sync none $d
	done
	cp -r spool other
	exits 0 ace-aggregate --spool spool --devices 3 --rounds 1 --sync none
	at() { ace-export -f raw "$1" | od -An -tf4 -N4 | tr -d ' '; }
	[ "$(at out)" = 999.9999 ] || [ "$(at out)" = 1000 ]
	exits 0 ace-aggregate --spool other --devices 3 --rounds 1 --sync none \
	    --tolerate 1
	[ "$(at out | cut -d. -f1)" -lt 345 ]
}

@test "a schema of another model is refused before it takes memory" {
	perl -e 'my $n = 60000; my @t = map { sprintf("\"%s%07d\":" .
	    "{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[%d,%d]}",
	    "a" x 243, $_, 4 * $_, 4 * $_ + 4) } 0 .. $n - 1;
	    my $h = "{" . join(",", @t) . "}"; $h .= " " while length($h) % 8;
	    print pack("Q<", length $h), $h, "\0" x (4 * $n)' >many
	ace-import -f safetensors -d evil -r test many >in
	[ "$(wc -c <in)" -lt 2000000 ]
	exits 3 peak kib ace-recv --spool spool in
	says "limit: the schema has [0-9]+ bytes, expected at most 16777216"
	sanitized || [ "$(cat kib)" -lt 65536 ]
}

@test "the values of another model are not decoded" {
	mkshards -d edge1 >in
	exits 0 ace-recv --spool spool --sync none in
	# the first value is a NaN, which would be the reason if values had been decoded
	mkshards -n 100k -k nan -i 0 -d evil -s 1 >in
	exits 0 ace-recv -v --spool spool --sync none in
	says "step 1: invalid: mismatch: the shard is of another model than run 'test'"
	mkshards -n 100k -k nan -i 0 -d evil -r other >in
	notes "invalid: non-finite value" ace-recv -v --spool new --sync none in
}
