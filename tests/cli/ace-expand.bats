load helper
load values

@test "coded shards become dense: every group is present, with its decoded values" {
	mkshards -n 200k -c topk:0.1 -N 2 >in
	exits 0 ace-expand in
	[ ! -s err ]
	mv out dense
	[ "$(field records dense)" = "$(printf '4\n4')" ]
	[ "$(field nonzero dense)" = "$(field nonzero in)" ]
	for s in 0 1; do
		raw in --step "$s" >a
		raw dense --step "$s" >b
		same a b
	done
	# a dense shard is unchanged
	makes once ace-expand --omit provenance dense
	exits 0 ace-expand --omit provenance once
	same out once
}

@test "-S adds the residual, in f32; --gamma scales it" {
	mkshards -s 1 -x 5 >g1
	mkshards -s 2 -x 6 >g2
	exits 0 ace-compress -S st -c q8 -o c1 g1
	for g in 1 0.5 0; do
		makes e2 ace-expand -S st --gamma "$g" g2
		for f in g1 c1 g2 e2; do raw "$f" >"$f.f32"; done
		G=$g each '$v[3] == f($v[2] + f($ENV{G} * f($v[0] - $v[1])))' \
		    g1.f32 c1.f32 g2.f32 e2.f32
	done
	# the sums in the shard's end frame fit the new values
	makes e2 ace-expand -S st g2
	exits 0 ace-inspect verify e2
	exits 2 ace-expand -S st --gamma 1.5 g2
	exits 2 ace-expand -S st --gamma nan g2
	exits 2 ace-expand -S st --gamma -0.5 g2
}

@test "-S writes which residual was added into the shard" {
	mkshards -s 1 >g1
	exits 0 ace-expand -S st g1
	[ "$(field residual out)" = none ]
	[ "$(field flags out)" -eq 1 ]
	raw out >a
	raw g1 >b
	same a b
	exits 0 ace-compress -S st -c q8 g1
	mkshards -s 2 >g2
	exits 0 ace-expand -S st g2
	field residual out | grep -qxE '[0-9a-f]{32}'
	refuses 5 "shard 'edge1/2' has the residual already" ace-expand -S st out
	# without a state the shard has neither the key `residual' nor a flag
	exits 0 ace-expand g2
	[ -z "$(field residual out)" ]
	[ "$(field flags out)" -eq 0 ]
}

@test "a pipe of many steps: each step waits until the step before is coded" {
	mkshards -n 100k -N 12 >in
	ace-expand -S st --wait 10m in 2>err1 |
	    ace-compress -S st -c topk:0.05 >out 2>err2
	[ ! -s err1 ]
	[ ! -s err2 ]
	mv out long
	for s in 0 1 2 3 4 5 6 7 8 9 10 11; do
		mkshards -n 100k -s "$s" >one
		exits 0 ace-expand -S st2 -o e one
		exits 0 ace-compress -S st2 -c topk:0.05 e
		digest out
	done >steps
	digest long | diff - steps
	same st/residual st2/residual
}

@test "if the step before is not committed within --wait, the step is refused" {
	mkshards -N 2 >in
	exits 5 ace-expand -S st --wait 0 in
	says "state 'st': ace-compress committed no step before step 1"
	exits 3 ace-expand out
	mkshards -s 0 | ace-compress -S st -c q8 >c
	mkshards -s 3 >g3
	exits 5 ace-expand -S st --wait 10ms g3
	says "state 'st' is still at step 0 after 0.01 s, but the shard is of step 3"
	mkshards -s 2 >g2
	exits 5 ace-expand -S st --wait 0 g2
	says "state 'st' is still at step 0 after 0 s, but the shard is of step 2"
	mkshards -s 1 >g1
	exits 0 ace-expand -S st --wait 0 g1
	exits 0 ace-expand -S st --wait 0 --allow-gap g3
}

@test "a damaged residual is named" {
	mkshards | ace-compress -S st -c q8 >c
	mkshards -s 1 >in
	cp st/residual good
	for at in 70 200 600 900; do
		cp good st/residual
		flip st/residual "$at"
		refuses 3 "corrupt: .*'st/residual'" ace-expand -S st in
		exits 3 ace-expand out
	done
	for n in 0 100 640; do
		head -c "$n" good >st/residual
		refuses 3 "(truncated|corrupt): .*'st/residual'" ace-expand -S st in
	done
	rm st/residual
	ln -s ../good st/residual
	exits 4 ace-expand -S st in
}

@test "--cache decodes differences to a history; without it they are refused" {
	for s in 1 2; do
		mkshards -s "$s" -n 10k >"g$s"
		exits 0 ace-compress -S st --error-feedback cache \
		    -c topk:0.2 -o "c$s" "g$s"
	done
	refuses 3 "^ace-expand: mismatch: " ace-expand c2
	refuses 3 "^ace-aggregate: mismatch: " ace-aggregate c1
	exits 3 ace-export -f raw c1
	exits 5 ace-expand --cache st.here c2
	says 'is a difference to history [0-9a-f]*, but this receiver has no history'
	rm -rf st.here
	exits 0 ace-expand --omit provenance --cache before c1
	cp -r before after
	makes want ace-expand --omit provenance --cache after c2
	[ -z "$(field predict want)$(field history want)" ]
	exits 0 ace-expand --omit provenance --cache after c2
	same out want
	# the previous shard is no longer accepted
	exits 5 ace-expand --cache after c1
	says 'begins a history, but this receiver has history [0-9a-f]{8} of step 2: for a new run, give another --cache; for the same run, on the device, a new state or, .* ace-ack --restart begins a new history with step 3'
	# the sender keeps the same history
	raw want >r.f32
	raw st/history.2 >h.f32
	same r.f32 h.f32
	exits 0 ace-expand --omit provenance --cache before c2
	same out want
	mkshards -s 3 -n 10k |
	    ace-compress -S st --error-feedback cache -c topk:0.2 >c3
	exits 0 ace-expand --cache before c3
	[ "$(ls before)" = "$(printf 'history.2\nhistory.3\nlock')" ]
}

@test "a difference of an unknown kind, or without its history: status 3" {
	local how
	for how in other cache:x cache: cache:1.5 cache:-1 cache:nan; do
		mkshards -H flags=16 -K "predict=$how" -K history=0 >in
		exits 3 ace-expand --cache cache in
		says "^ace-expand: (unsupported|corrupt): .*'$how'"
	done
	mkshards -H flags=16 -K history=0 >in
	exits 3 ace-expand --cache cache in
	says "corrupt: step 0 of 'edge1' is a difference, but lacks key predict"
}

@test "an average with values beyond any device's is refused: status 3, and the state stays" {
	local k x
	mkshards -s 3 -x 1 -H kind=3 >mean
	exits 0 ace-expand --cache cache --feedback st mean
	cp -r cache cache.was
	cp -r st st.was
	refused() {
		exits 3 ace-expand --cache cache --feedback st "$2"
		says "^ace-expand: $1, shard 1 'edge1/4', at byte "
		diff -r cache cache.was
		diff -r st st.was
		ace-expand -q "$2" 2>/dev/null | exits 3 ace-export -f raw -o made
		[ ! -e made ]
	}
	for kind in 1 2 3; do
		for k in nan inf; do
			mkshards -s 4 -H kind=$kind -k $k >in
			refused "non-finite value in tensor 'embed' at index 3: $k" in
		done
		for x in 1e38 -1.1e18; do
			perl -e 'print pack "f<*", 1, 1, $ARGV[0], 1' -- $x |
			    ace-import -f raw --shape 4 --name w -s 4 -d edge1 >one
			ace-aggregate -d edge1 one >in
			refused "limit: ${x/e/e.} in tensor 'w' at index 2 is above 1e.18 in magnitude" in
		done
	done
	# a device's own gradient may have such values
	mkshards -s 4 -k nan >in
	exits 0 ace-expand in
}

@test "no spelling of -o and -T is in the provenance" {
	mkshards -c q8 >in
	makes want ace-expand in
	for o in "-o made" -omade "--output made" --output=made "-T 2 -o made" \
	    "-T2 -omade" "--threads 2 --output made" "--output=made --threads=2" \
	    "-omade -q" "-T2 -q -o made" "--output=made -q"; do
		rm -f made
		# -q is in the provenance, unlike -o and -T
		[[ $o != *-q* ]] || exits 0 ace-expand -q -o want in
		exits 0 ace-expand $o in
		same want made || { echo "$o"; false; }
	done
	exits 0 ace-expand --omit provenance in
	run ! cmp -s want out
}

@test "with --allow-gap, too, a step waits until the step before is coded" {
	for k in 0 1 2 5 6; do
		mkshards -s $k
	done >in
	for n in 1 2 3; do
		ace-expand -S st$n --allow-gap in | ace-compress -S st$n --allow-gap -c q8 >out
		[ "${PIPESTATUS[*]}" = "0 0" ]
	done
	exits 0 ace-step -S one --allow-gap -c q8 in
	ace-inspect stats one/residual >a
	ace-inspect stats st1/residual | cmp - a
}
