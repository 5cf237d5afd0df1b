# The limits of options, and their defaults.
load helper

# takes CMD...: check for status 0; refuses WORD CMD...: check for a usage error that names WORD
takes() { exits 0 "$@"; }
refuses() { exits 2 "${@:2}" && says "$1"; }

@test "ace-advise: the limits and the default of each number" {
	takes ace-advise ratio --ratio 1,1
	refuses ratio ace-advise ratio --ratio 0.99
	refuses ratio ace-advise ratio --ratio 1,0.99
	refuses 'MIN 3 is above MAX 2.9' ace-advise ratio --ratio 3,2.9
	takes ace-advise ratio --ratio 3,3
	takes ace-advise ratio --ratio 2,1e9
	refuses ratio ace-advise ratio --ratio 2,1.1e9
	takes ace-advise ratio
	mv out plain
	takes ace-advise ratio --ratio 2,300,10Mbit
	same out plain
}

@test "ace-aggregate: the limits of its numbers" {
	mkshards >a
	mkshards -d edge2 >b
	takes ace-aggregate --cluster 2 a b
	refuses cluster ace-aggregate --cluster 2.01 a b
	refuses cluster ace-aggregate --cluster 00000000000000000000000000000000.5x a b
	takes ace-aggregate --delay 1000 a b
	takes ace-aggregate --delay 0 a b
	for o in --rounds --keep --quorum --devices; do
		refuses "$o" ace-aggregate $o 0 a b
	done
	refuses quorum ace-aggregate --quorum 1048577 a b
	refuses deadline ace-aggregate --deadline -1s a b
	refuses '--quorum needs --spool' ace-aggregate --quorum 2 a b
	refuses '--deadline needs --spool' ace-aggregate --deadline 1s a b
	takes ace-aggregate --devices 2 a b
	refuses "--spool reads no FILE, found 'a'" ace-aggregate --spool s a
	[ ! -e s ]
	takes ace-aggregate --omit provenance a b
	mv out mean
	# the default name of an aggregate
	grep -q '"device":"aggregate"' < <(ace-inspect --format json mean)
	grep -q '"device":"cloud"' < <(ace-aggregate -d cloud a b | ace-inspect --format json)
}

@test "ace-import: the fields of a shard without options" {
	head -c 400000 /dev/zero >v.f32
	takes ace-import v.f32
	mv out in
	takes ace-inspect --format json in
	perl -MJSON::PP -e '$j = decode_json(<STDIN>); $j->{step} == 0 && $j->{weight} == 1 &&
	    $j->{samples} == 0 && $j->{kind} eq "gradient" && $j->{base_version} == 0 &&
	    $j->{group_size} == 65536 && $j->{tensors}[0]{name} eq "data" &&
	    $j->{contributors} == 1 && !%{$j->{keys}} or die %$j' <out
	for k in gradient delta model; do
		takes ace-import -k $k v.f32
		mv out in
		grep -q "\"kind\":\"$k\"" < <(ace-inspect --format json in)
	done
	takes ace-import --shape 1,1,1,1,1,1,1,100000 v.f32
	refuses shape ace-import --shape '' v.f32
	refuses shape ace-import --shape 100000, v.f32
	takes ace-import -w 1e30 --model-norm 0 v.f32
	mv out in
	grep -q '"model.norm":"0"' < <(ace-inspect --format json in)
	for x in -1 nan inf 1.1e300; do
		refuses model-norm ace-import --model-norm $x v.f32
	done
	for x in -1 0 inf 1.1e300; do
		refuses weight ace-import -w $x v.f32
	done
	takes ace-import --base-version 18446744073709551615 v.f32
	takes ace-import -g 100 v.f32
	mv out in
	grep -q '"group_size":100,' < <(ace-inspect --format json in)
}

@test "ace-export: an npz is not compressed; --step 0 chooses step 0" {
	mkshards -k zeros -n 10000 >in
	takes ace-export -f npz in
	[ "$(wc -c <out)" -gt 40000 ]
	mkshards -N 2 -n 10 >two
	takes ace-export -f raw --step 0 two
	mv out first
	same first <(ace-cut --step 0 two | ace-export -f raw)
	takes ace-export -f raw --step 1 two
	if cmp -s out first; then false; fi
	takes ace-export -f raw --max-elements 10 --step 1 two
	exits 3 ace-export -f raw --max-elements 9 --step 1 two
}

@test "ace-meter: -L is at least 8 bit/s; the wait for receipts at the end" {
	head -c 3000000 /dev/zero >in
	exits 0 pty sh -c 'ace-meter in 2>&1 >/dev/null'
	[ ! -s out ]
	refuses bandwidth ace-meter -L 0 in
	refuses wait ace-meter -S st --wait -1 in
	takes ace-meter -S st --wait 0 in
}

@test "ace-ack writes nothing for --restart, nor for a receipt alone" {
	mkshards >in
	ace-compress -S S -c q8 in >sent
	ace-recv --spool D sent >receipt
	takes ace-ack -S S receipt
	mv out rest
	takes ace-inspect --format json rest
	[ ! -s out ]
	takes ace-ack -S S --restart 1
	[ ! -s out ]
	refuses 'option .* is unknown' ace-ack -S S --device edge1 receipt
}

@test "ace-compress and ace-select: an output file is complete or absent" {
	mkshards >in
	ace-score in >scored
	takes ace-select --bits 8 --format text -o plan scored
	[ ! -s out ]
	takes ace-select --bits 8 --format text scored
	same out plan
	head -c 1500 scored >part
	exits 3 ace-select --bits 8 --format text -o none part
	[ ! -e none ]
	refuses '--resend needs --state' ace-compress --resend
	mkdir -m 700 S
	takes ace-compress -S S --resend
	mv out none
	takes ace-inspect --format json none
	[ ! -s out ]
}

@test "ace has its own --version and --help; -q and -v need a command" {
	takes ace --version
	grep -qE '^ace \(ace\) [0-9.]+' out
	grep -q 'xxhash' out
	grep -q '^kernels ' out
	takes ace -V
	takes ace -h
	grep -q '^usage: ace COMMAND' out
	takes ace -q --help
	takes ace -v --help
	exits 2 ace -q
	exits 2 ace -v inspect
	ACE_KERNEL=ref takes ace --version
	grep -q '^kernels ref' out
	# `ace COMMAND' ends with the status of its program
	mkshards >a
	mkshards -x 2 >b
	exits 1 ace inspect diff -q a b
}
