# examples/dynacomm.sh: its networks, and its results.
# bats file_tags=plain
load helper

@test "the networks have the published parameters" {
	# the numbers in the authors' releases, GoogLeNet without its side classifiers
	mkprofile | tail -n +2 | cut -f1,3 >got
	printf '%s\t%s\n' VGG-19 143667240 GoogLeNet 6998552 \
	    Inception-v4 42679816 ResNet-152 60192808 | cmp - got
	for net in VGG-19 GoogLeNet Inception-v4 ResNet-152; do
		mkprofile $net |
		    cmp - "$ROOT/examples/profiles/${net,,}.tsv"
	done
}

@test "the grid: the optimal schedule saves up to 41 %, and none is better" {
	GRID=1 exits 0 "$ROOT/examples/dynacomm.sh" results
	[ "$(tail -n +2 results/dynacomm.tsv | wc -l)" -eq $((4 * 7 * 6)) ]
	awk -F'\t' 'NR > 1 && (NF != 8 || $7 < $5 || $7 < $6 || $7 < 0) {
	    bad = 1; print } END { exit bad }' results/dynacomm.tsv
	for net in vgg-19 resnet-152; do
		awk -v net=$net '$1 == net { found = $4 >= 41 }
		    END { exit !found }' out
	done
	if command -v gnuplot >/dev/null; then
		grep -q '</svg>' results/dynacomm.svg
	fi
}

# said KEY FILE: print this key of each shard's policy
said() { ace-inspect -v "$2" | sed -n "s/^pOLi *$1=//p"; }

# five: write the five layers of ace-advise.bats, the last one first.  On a link of 32 bit/s,
# a value per second, they transmit for 3 1 4 1 5 s and compute for 2 7 1 8 2 s, which takes
# 26 s at best.
five() {
	mkshards -t e:5 -t d:1 -t c:4 -t b:1 -t a:3 -T 2,8,1,7,2 "$@"
}
link='--cuts 2s --bandwidth 32bit --ratio 1,1'

@test "cuts in the stream are optimal for the times of the shard's layers" {
	five -N 2 >in
	notes 'cuts: now 3 of 5 layers. ends, 26 s to the last' ace-policy -v $link in
	says 'cuts: still 3 of 5'
	[ "$(said cuts out)" = "$(printf '5,3,1\n5,3,1')" ]
	[ "$(said cuts.seconds out)" = "$(printf '26\n26')" ]
	mv out decided
	printf '%s %s %s\n' layer bytes bc a 12 2 b 4 7 c 16 1 d 4 8 e 20 2 >table
	ace-advise dynacomm --cuts 2s --bandwidth 32bit table | grep -q \
	    '^backward  optimal *26.000000000 *27.78 *3  5,3,1$'
	# --cuts replaces the cuts; without it they are kept
	exits 0 ace-policy $link --cuts 1000s decided
	[ "$(said cuts out | head -n 1)" = 1 ]
	exits 0 ace-policy decided
	[ "$(said cuts out | head -n 1)" = 5,3,1 ]
	# with ratio 2, layers take half of their bytes
	exits 0 ace-policy $link --ratio 2,2 in
	awk 'NR > 1 { $2 /= 2 } 1' table |
	    ace-advise dynacomm --cuts 2s --bandwidth 32bit |
	    awk '$1 == "backward" && $2 == "optimal" { print $6 }' |
	    cmp - <(said cuts out | head -n 1)
}

@test "cuts in the stream: times are smoothed, and small gains do not change the cuts" {
	five >in0
	mkshards -s 1 -t e:5 -t d:1 -t c:4 -t b:1 -t a:3 \
	    -T 2,8,1.02,7,2.02 >in1
	mkshards -s 2 -t e:5 -t d:1 -t c:4 -t b:1 -t a:3 \
	    -T 2,8,1,7,400 >in2
	for s in 0 1 2; do cat in$s; done >in
	notes 'edge1/1.*cuts: still 3' ace-policy -v $link in
	says 'edge1/2.*cuts: now'
}

@test "cuts in the stream: times lose half their weight in ten shards; a gain must exceed 1 %" {
	# one layer: 1 s to compute, 1 s for its bytes, 1 s for the transmission
	mkshards -t a:1 -T 1 >in
	mkshards -t a:1 -T 2 -s 1 >>in
	exits 0 ace-policy $link --cuts 1s in
	[ "$(said cuts.seconds out)" = "$(printf '3\n3.06696701')" ]
	[ "$(frames out | grep -c tIMe)" -eq 2 ]
	# two layers.  The second layer's smoothed time is 0.5 s plus 1/15 of the difference: with
	# 17.1 s two transmissions gain 0.5 %, and the cuts stay; with 45 s 2 %, and they change
	for what in 17.1:1 45:2,1; do
		mkshards -t b:10 -t a:10 -T 100,0.5 >in
		mkshards -t b:10 -t a:10 -T "100,${what%:*}" -s 1 >>in
		exits 0 ace-policy $link --cuts 1s in
		[ "$(said cuts out)" = "$(printf '1\n%s' "${what#*:}")" ]
	done
}

@test "cuts in the stream: with a state, the bytes are those of the last coded shard" {
	five >in
	exits 0 ace-policy $link --ratio 2,2 in
	said cuts out >want
	said cuts.seconds out >>want
	mkdir -m 700 st
	mkshards -H kind=6 -K share=0.5 -K contraction=0.9 >st/code
	exits 0 ace-policy -S st $link in
	(said cuts out && said cuts.seconds out) | cmp - want
	# a shard that sent nothing does not count
	mkshards -H kind=6 -K share=0 -K contraction=0 >st/code
	exits 0 ace-policy -S st $link in
	[ "$(said cuts.seconds out)" = 26 ]
	# a shard without values has a policy as well
	five -c none >none
	exits 0 ace-policy $link none
	[ "$(said ratio out)" = 1 ]
	[ "$(said cuts out)" = 5,3,1 ]
}

@test "cuts in the stream: -v says what is unknown; invalid times are refused" {
	five >in
	notes 'cuts: bandwidth not known yet' ace-policy -v --cuts 1ms in
	notes 'cuts: bandwidth not known yet' ace-policy -v --cuts 1ms --bandwidth 0bit in
	# without times before the values the option has no effect, nor on the next shard:
	# the first shard says so, also without -v
	mkshards -N 2 -T +1,1,1 >without
	exits 0 ace-policy --cuts 1ms --bandwidth 1Mbit without
	says 'edge1/0.*cuts: none are chosen: the shard has no times of its layers .annotation tIMe'
	[ "$(wc -l <err)" -eq 1 ]
	[ -z "$(said cuts out)" ]
	notes 'takes more than .* s' ace-policy -v $link --bandwidth 1e-6bit in
	# shellcheck disable=SC2046 # word splitting is intended
	mkshards $(printf -- '-t %d:1 ' {1..7000}) -T "$(printf '1,%.0s' {1..7000})" >many
	notes 'cuts: none are chosen: the list of 7000 cuts takes more' ace-policy -v $link --cuts 0s many
	[ -z "$(said cuts out)" ]
	refuses 2 "^ace-policy: --cuts 'in' is not a time" ace-policy --cuts in
	for bad in 1 1,2,3,4 1,2,3,4,5,6 1,2,-3,4,5 1,2,nan,4,5 \
	    1,2,inf,4,5 1,2,1e9,4,5; do
		mkshards -t e:5 -t d:1 -t c:4 -t b:1 -t a:3 \
		    -T $bad >bad
		refuses 3 'corrupt: the times of tensors: expected 5 numbers from 0 ' ace-policy $link bad
	done
	# times, a tensor and options of 0 are accepted
	mkshards -t e:5 -t d:0 -T 0,0 >zero
	exits 0 ace-policy --cuts 0s --bandwidth 1bit zero
}

@test "an aggregate has the cuts of the device with the longest time" {
	five -d fast | ace-policy $link >fast
	five -d slow | ace-policy $link --bandwidth 6bit >slow
	five -d asleep >none
	exits 0 ace-aggregate fast slow none
	[ "$(said cuts out)" = "$(said cuts slow)" ]
	[ "$(said cuts.seconds out)" = "$(said cuts.seconds slow)" ]
	[ "$(said cuts out)" != "$(said cuts fast)" ]
	mv out one
	exits 0 ace-aggregate none slow fast
	same out one
	# if two plans take equally long, the device of the smaller name counts
	five -d one -P $'cuts=5,1\ncuts.seconds=7' >one
	five -d two -P $'cuts=5,2,1\ncuts.seconds=7' >two
	exits 0 ace-aggregate two one
	[ "$(said cuts out)" = 5,1 ]
	exits 0 ace-aggregate one two
	[ "$(said cuts out)" = 5,1 ]
	# a time of four times the median is accepted, more is not; a device without cuts is ignored
	five -d d1 -P $'cuts=5,2,1\ncuts.seconds=1' >d1
	five -d d3 -P $'cuts=5,3,1\ncuts.seconds=1' >d3
	five -d d4 -P $'cuts=5,4,1\ncuts.seconds=4' >d4
	exits 0 ace-aggregate d1 d3 d4
	[ "$(said cuts out)" = 5,4,1 ]
	five -d d2 -P cuts.seconds=9 >d2
	exits 0 ace-aggregate d1 d2 d3
	[ "$(said cuts.seconds out)" = 1 ]
	five -d d3 -P cuts.seconds=9 >d3
	exits 0 ace-aggregate d1 d2 d3
	[ -z "$(said cuts.seconds out)" ]
	mkshards -d bad -t e:5 -t d:1 -t c:4 -t b:1 -t a:3 -P cuts=1 >bad
	exits 0 ace-aggregate bad
	[ -z "$(said cuts out)" ]
	ace-policy $link bad >out
	[ -z "$(said cuts out)" ]
}

@test "the trainer sends its gradients at the cuts that the policy derives from its times" {
	export OPENBLAS_NUM_THREADS=1
	awk 'BEGIN { for (i = 0; i < 1200; i++)
	    printf("the %d of %d is %d\n", i, i % 7, i * i % 97) }' >text
	mkfifo back
	small="--layers 1 --width 32 --heads 2 --context 16 --batch 4 --windows 16"
	# transmissions cost so much that one is best; the first shards have one per layer.  The
	# trainer waits for the end of all programs, so timeout runs outside of the pipe
	timeout "$HANG" bash -o pipefail -c "'$BUILD/examples/train' $small \
	    --steps 5 --cuts all --clock --policy --apply back text |
	    tee made | ace-policy --cuts 1000s --bandwidth 1Mbit |
	    tee back >sent"
	[ "$(said cuts sent | sort -u)" = 1 ]
	# the second shard has the first times, and the third one has the new cuts
	[ "$(frames made | awk '$2 == "DATA" { n++ }
	    $2 == "SEND" { printf("%d ", n); n = 0 }')" = "9 9 1 1 1 " ]
	# the first shard has no times
	[ "$(ace-inspect -v made | grep -c 'compute.seconds=')" -eq 4 ]
	[ "$(ace-inspect -v made | grep -c '^annotation *tIMe')" -eq 4 ]
	# the programs pass on each segment before the next one comes
	at=$(frames made | awk '$2 == "DATA" && ++n == 3 { print $1 }')
	mkfifo slow
	for how in "ace-policy --bandwidth 1Mbit" "ace-compress -c q8"; do
		two() { [ "$(frames got | grep -c DATA)" -ge 2 ]; }
		$how <slow >got 3>&- &
		exec 9>slow
		head -c "$at" made >&9
		wait_of $! two
		exec 9>&-
		wait $! || true
	done
}

# layer_by_layer CUTS: print three steps of the trainer; CUTS `all' sends each of 9 tensors alone
layer_by_layer() {
	awk 'BEGIN { for (i = 0; i < 1200; i++)
	    printf("the %d of %d is %d\n", i, i % 7, i * i % 97) }' >text
	OPENBLAS_NUM_THREADS=1 "$BUILD/examples/train" --layers 1 --width 32 --heads 2 \
	    --context 16 --batch 4 --steps 3 --cuts "$1" text
}
# place N: print the offset of the N-th DATA frame in made
place() { frames made | awk -v n="$1" '$2 == "DATA" && ++k == n { print $1 }'; }

# taken_up: check that the interrupted step is repeated, with the same output and state
taken_up() {
	exits 3 ace-inspect verify got
	cmp st/residual before/residual
	exits 0 $how made
	same out whole
	cmp st/residual want/residual
	rm -rf before
}

@test "with a state, a segment is sent before the next one comes, and SEND after the commit" {
	layer_by_layer all >made
	mkfifo slow
	for how in "ace-compress --omit provenance -S st -c q8" "ace-step --omit provenance -S st -c q8" \
	    "ace-step --omit provenance -T 1 -S st -c topk:0.1"; do
		rm -rf st want
		makes whole ${how/ st / want } made
		ace-inspect verify whole
		# input: seven segments of the second step; output: six of them, after the five of the
		# first step that are not zero, while the state is still that of the first step
		$how <slow >got 3>&- &
		exec 9>slow
		head -c "$(place 17)" made >&9
		six() { [ "$(frames got | grep -c DATA)" -ge 11 ]; }
		wait_of $! six
		sent got 1
		[ "$(ace-inspect st/residual | grep -c 'step *0')" -ge 1 ]
		[ "$(ace-inspect st/residual | grep -c 'step *1')" -eq 0 ]
		cp -r st before
		exec 9>&-
		local r=0
		wait $! || r=$?
		[ "$r" -eq 3 ]
		taken_up
	done
}

@test "with a state, a shard in segments has the same values as a shard in one frame" {
	layer_by_layer all >made
	layer_by_layer none >one
	for how in "-c q8" "-c qsgd:7" "-c lowrank:2" \
	    "-c q8 --error-feedback cache --wait 0s"; do
		case $how in *cache*) keep=1 ;; *) keep=3 ;; esac
		ace-cut --step "0-$((keep - 1))" made >a
		ace-cut --step "0-$((keep - 1))" one >b
		rm -rf s1 s2
		makes cut ace-compress -S s1 $how a
		exits 0 ace-compress -S s2 $how b
		ace-inspect diff cut out
		ace-inspect diff s1/residual s2/residual
	done
}

to_full() { "$@" >/dev/full; }

@test "a segment that cannot be written does not change the state" {
	needs_full
	layer_by_layer all | ace-cut --step 0 >made
	makes whole ace-compress --omit provenance -S want -c q8 made
	exits 4 to_full ace-compress --omit provenance -S st -c q8 made
	[ ! -e st/residual ]
	exits 0 ace-compress --omit provenance -S st -c q8 made
	same out whole
}

# sizes FILE: print the bytes of each shard, from its SHRD frame to the end of its SEND frame
sizes() {
	frames "$1" | awk 'end { print $1 - from; end = 0 } $2 == "SHRD" { from = $1 }
	    $2 == "SEND" { end = 1 }'
}
# within BUDGET FILE SHARDS: check that FILE has that many shards, and that none exceeds BUDGET
within() { sizes "$2" | awk -v b="$1" '$1 > b { bad = 1 }
    END { exit bad || NR != '"$3"' }'; }
@test "a shard in segments never exceeds its budget, however small" {
	local b segments
	layer_by_layer all >made
	for b in 700 900 1200 1777 2500 3001 4096 6k 9999 20k 40k 100k; do
		rm -rf st
		exits 0 ace-step -S st -b $b made
		case $b in *k) b=$((${b%k} * 1000)) ;; esac
		within "$b" out 3
		ace-inspect verify out
		segments=$(frames out | grep -c DATA)
		case $b in
		[1-4]0000) [ "$segments" -ge 6 ] ;;
		700) [ "$segments" -eq 3 ] ;;
		esac
	done
}

@test "with a budget, segments are sent before the next one comes, from the second step on" {
	layer_by_layer all >made
	mkfifo slow
	for how in "ace-step --omit provenance -S st -b 12k" \
	    "ace-step --omit provenance -T 1 -S st --bits 7" \
	    "ace-step --omit provenance -S st --policy --ratio 5,5"; do
		rm -rf st want
		makes whole ${how/ st / want } made
		ace-inspect verify whole
		# the first step is sent in one frame, since no step before gives shares of the budget.
		# The input then has seven of the nine segments of the second step
		$how <slow >got 3>&- &
		exec 9>slow
		head -c "$(place 17)" made >&9
		early() { [ "$(frames got | awk '$2 == "SHRD" { n++ }
		    $2 == "DATA" && n == 2' | wc -l)" -ge 2 ]; }
		wait_of $! early
		[ "$(frames got | grep -c SEND)" -eq 1 ]
		[ "$(ace-inspect st/residual | grep -c 'step *1')" -eq 0 ]
		cp -r st before
		# a kill between two segments leaves the state of the first step
		kill -9 $!
		wait $! || true
		exec 9>&-
		taken_up
	done
}

@test "segments with a budget: any number of threads, the pipe, and a repeated step give the same bytes" {
	layer_by_layer all >made
	makes want ace-step --omit provenance -T 1 -S s1 -b 12k made
	exits 0 ace-step --omit provenance -T 4 -S s2 -b 12k made
	same out want
	for s in 0 1 2; do
		ace-cut --step $s made >in
		makes one ace-step --omit provenance -S s3 -b 12k in
		# the shard is in the state already: the same output again
		exits 0 ace-step --omit provenance -S s3 -b 12k in
		same out one
		ace-cut --step $s want | ace-inspect diff one
		ace-expand -S s4 in | ace-score -S s4 | ace-select -b 12k |
		    ace-compress --omit provenance -S s4 >out
		same out one
	done
	cmp s1/residual s3/residual
	cmp s1/residual s4/residual
	# shares of a step that was not committed are not used
	rm -rf s5
	exits 0 ace-step --omit provenance -S s5 -b 12k <(ace-cut --step 0-1 made)
	cp s5/residual residual
	makes third ace-step --omit provenance -S s5 -b 12k <(ace-cut --step 2 made)
	cp residual s5/residual
	exits 0 ace-step --omit provenance -S s5 -b 12k <(ace-cut --step 2 made)
	same out third
}

@test "segments with a budget: stored shares may be absurd, of another model, or absent" {
	local k s n
	layer_by_layer all >made
	ace-cut --step 0 made >first
	ace-cut --step 1 made >second
	exits 0 ace-step -S st -b 12k first
	for k in gauss ramp zeros layered other none; do
		rm -rf s2
		cp -r st s2
		rm s2/plan
		n=9
		[ "$k" != other ] || n=10
		case $k in
		none) ;;
		*) mkshards -H kind=6 -k "${k/other/ramp}" -t "codec:$n" \
		    -t "param:$n" -t "rate:$n" -t "bytes:$n" >s2/plan ;;
		esac
		exits 0 ace-step -S s2 -b 12k second
		within 12000 out 1
		ace-inspect verify out s2/residual
	done
	# shares of another budget
	exits 0 ace-step -S s3 -b 2k first
	exits 0 ace-step -S s4 -b 80k first
	for s in s3 s4; do
		rm -rf s2
		cp -r st s2
		cp $s/plan s2/plan
		exits 0 ace-step -S s2 -b 12k second
		within 12000 out 1
	done
}

@test "overlap.sh prints the seconds of each method, also with a state and a budget" {
	export STEPS=2 TRIES=1 RATE=200 COST=1
	export MODEL="--layers 1 --width 16 --heads 2 --context 8 --batch 2"
	for table in overlap overlap-state; do
		[ $table = overlap ] || export BUDGET=9k
		exits 0 timeout "$HANG" "$ROOT/examples/overlap.sh" .
		[ "$(cut -f 1 $table.tsv | paste -sd ' ')" = \
		    "cuts sequential layers ibatch optimal policy" ]
		awk -F '\t' 'NR > 1 && !($2 >= 1 && $4 == $4 + 0) { exit 1 }' $table.tsv
	done
}

@test "together.sh: each method takes its steps over a changing link" {
	awk 'BEGIN { for (i = 0; i < 1200; i++)
	    printf("the %d of %d is %d\n", i, i % 7, i * i % 97) }' >text
	CORPUS=$PWD/text STEPS=2 TRIES=1 LINKS='50/5 200/1' COST=1 \
	    MODEL='--layers 1 --width 32 --heads 2 --context 16 --batch 4' \
	    exits 0 timeout "$HANG" "$ROOT/examples/together.sh" .
	[ "$(cut -f 1 together.tsv | paste -sd ' ')" = \
	    'way none ace ace-9 cuts deco all all-9' ]
	awk -F '\t' 'NF != 6 || (NR > 1 && $6 !~ /^[0-9.]+$/) { bad = 1 } { mb[$1] = $5 }
	    END { exit bad || !(mb["cuts"] < 0.6 * mb["none"] &&
	    mb["cuts"] > 0.4 * mb["none"] && mb["ace"] < mb["cuts"]) }' together.tsv
}
