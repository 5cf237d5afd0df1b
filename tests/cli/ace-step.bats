load helper

# run_of STEPS: print the shards of one device's run, by the example trainer if it is built, else
# by mkshards
run_of() {
	if [ -x "$BUILD/examples/train" ]; then
		yes 'the quick brown fox jumps over the lazy dog, and then some' |
		    head -c 200000 >text
		train=$BUILD/examples/train
		OPENBLAS_NUM_THREADS=1 "$train" -H 2 --steps "$1" --group 4096 \
		    text 2>/dev/null
	else
		mkshards -n 300k -k layered -N "$1"
	fi
}

# as_pipe OPTIONS...: run the pipe that ace-step --print prints, with its states in pipe/
as_pipe() {
	ace-step "$@" --print >line
	bash -o pipefail -c "$(cat line)"
}

# alike OPTIONS...: check that ace-step and the pipe give the same bytes and states for `in'
alike() {
	rm -rf S pipe.S step.S pipe step
	as_pipe "$@" <in >pipe
	[ ! -d S ] || mv S pipe.S
	ace-step "$@" <in >step
	[ ! -d S ] || mv S step.S
	same pipe step
	[ ! -d pipe.S ] || diff -r pipe.S step.S
}

@test "a training run: the same bytes and state as the pipe of programs" {
	run_of 24 >in
	alike -S S --bits 0.3
	ace-inspect verify step
}

# bats test_tags=long,asan
@test "the same with each option that sets a budget" {
	run_of 6 >in
	alike -S S -b 4k
	alike -S S -p 0.5
	alike -S S --policy --bandwidth 5Mbit
	alike -S S --bits 1 --effort 9
	alike -S S --policy --bandwidth 5Mbit --target-divergence 0.1 \
	    --model-norm 20
	alike -S S -c q8
	# the policy is long enough that the pipe packs it
	alike --policy --bandwidth 9Mbit --deco 2ms,1ms
	alike --bits 1
	alike -c topk:0.1
}

@test "an option goes to every program that has it" {
	run_of 4 >in
	alike -S S --gamma 0.5 --bits 0.5 --sync none --form paper:0.25
	# options in other spellings
	alike -SS -cq8
	exits 0 ace-step -S 'a b' --gamma 0.5 --bits 0.5 --form moment:1 --print
	[ "$(cat out)" = "ace-expand -S 'a b' --gamma 0.5 | ace-score -S 'a b' \
--form moment:1 | ace-select --bits 0.5 | ace-compress -S 'a b'" ]
}

@test "the pipe has a program if it needs the state or has an option of its own" {
	exits 0 ace-step --cache H --bits 0.5 --print
	[ "$(cat out)" = \
	    'ace-expand --cache H | ace-score | ace-select --bits 0.5 | ace-compress' ]
	exits 0 ace-step --bits 0.5 --print
	[ "$(cat out)" = 'ace-score | ace-select --bits 0.5 | ace-compress' ]
	exits 0 ace-step -T 2 -S S --policy --print
	[ "$(cat out)" = "ace-expand -T 2 -S S | ace-score -S S | ace-policy -S S | \
ace-select --policy | ace-compress -T 2 -S S" ]
	exits 0 ace-step --ratio 4 --bits 1 --print in
	[ "$(cat out)" = "ace-score in | ace-policy --ratio 4 | \
ace-select --bits 1 | ace-compress" ]
	exits 0 ace-step -c q8 --print
	[ "$(cat out)" = 'ace-compress -c q8' ]
}

@test "--schema goes to the first program, options about the output to the last" {
	mkshards -n 3000 >in
	set -- --schema in --print
	exits 0 ace-step -c q8 "$@"
	[ "$(cat out)" = 'ace-compress -c q8 --schema in' ]
	exits 0 ace-step --bits 1 "$@"
	[ "$(cat out)" = 'ace-score --schema in | ace-select --bits 1 | ace-compress' ]
	exits 0 ace-step -S S --policy "$@"
	[ "$(cat out)" = 'ace-expand -S S --schema in | ace-score -S S | ace-policy -S S | ace-select --policy | ace-compress -S S' ]
	# ace-step reads a stream without a schema only with --schema
	ace-cut --omit schema in >bare
	exits 3 ace-step -c q8 bare
	makes step ace-step -c q8 --schema in bare
	ace-compress -c q8 --schema in bare >pipe
	same step pipe
	# the printed pipe also reads a stream without a schema
	mkshards -n 3000 >model
	mv bare in
	for with in '' '-S S'; do
		alike $with --bits 8 --schema model
	done
	exits 3 ace-step --bits 8 --max-elements 2999 model
	says 'limit: the schema has 3000 elements, expected at most 2999'
	exits 0 ace-step --bits 1 -o out.aceg --omit provenance,schema \
	    --max-elements 900 -T 2 --sync none --print "it's"
	[ "$(cat out)" = "ace-score --max-elements 900 'it'\\''s' | \
ace-select --bits 1 --max-elements 900 | ace-compress -o out.aceg \
--omit provenance,schema --max-elements 900 -T 2 --sync none" ]
	# shellcheck disable=SC2046 # word splitting is intended
	exits 2 ace-step -S S -c q8 $(printf -- '--gamma 1 %.0s' {1..40}) --print
	says 'ace-[a-z]* has more than [0-9]* words of options'
}

@test "one process per run and one per step give the same bytes" {
	mkshards -n 300k -k layered -N 5 >in
	exits 0 ace-step --omit provenance -S long --bits 0.5 in
	for k in 0 1 2 3 4; do
		mkshards -n 300k -k layered -s "$k" >one
		exits 0 ace-step --omit provenance -S many --bits 0.5 one
	done
	same long/residual many/residual
	same long/code many/code
	# one stream per shard, concatenated
	for k in 0 1 2 3 4; do mkshards -n 300k -k layered -s "$k"; done >streams
	exits 0 ace-step --omit provenance -S each --bits 0.5 - <streams
	diff -r each many
}

# five: write five steps to in0 ... in4, code each in a process of its own, and copy the
# state after step K to after.K
five() {
	for k in 0 1 2 3 4; do
		mkshards -n 30k -k layered -s "$k" >"in$k"
		ace-step -q --omit provenance -S one --bits 0.5 "in$k" >"one$k"
		cp -r one "after.$k"
	done
}

@test "one process writes each step when it is committed; a kill leaves the state of the last step" {
	five
	mkfifo steps
	ace-step -q --omit provenance -S S --bits 0.5 steps >answers 3>&- &
	pid=$!
	exec 4>steps
	for k in 0 1 2; do
		cat "in$k" >&4
		wait_for sent answers $((k + 1))
		diff -r S "after.$k"
	done
	# the process is killed in the middle of a step
	head -c 20000 in3 >&4
	kill -9 $pid
	wait $pid || true
	exec 4>&-
	diff -x '*new-*' -r S after.2
	for k in 3 4; do
		exits 0 ace-step -q --omit provenance -S S --bits 0.5 "in$k"
		same out "one$k"
	done
	diff -r S one
}

@test "a step that was killed and is repeated counts once, in policies and in the growing of a residual" {
	local n got how
	mkshards -n 30k -N 2 >two
	mkshards -n 30k -s 2 >in
	for how in "--form paper --policy --target-divergence 1e9 --model-norm 1 --bandwidth 1Mbit --ratio 8,8" \
	    "-c qsgd:1 --error-feedback ef:raw"; do
		set -- -q --sync none $how
		rm -rf base want
		exits 0 ace-step -S base "$@" two
		cp -r base want
		exits 0 ace-step -S want "$@" in
		for n in {1..100}; do
			rm -rf S
			cp -r base S
			got=0
			killed $n ace-step -S S "$@" in >out 2>err || got=$?
			exits 0 ace-step -S S "$@" in
			diff -x '*lock' -x spare -r want S
			[ $got -ne 0 ] || break
		done
		[ "$n" -gt 5 ]
	done
	shows 'growing=3$' ace-inspect -v S/code
}

@test "a step that fails is named; the steps before are committed and sent" {
	five
	mkshards -n 30k -k nan -i 0 -s 3 >bad
	exits 5 ace-step -q --omit provenance -S S --bits 0.5 - < <(cat in0 in1 in2 bad in4)
	says "non-finite value .* 'edge1/3', at byte"
	diff -r S after.2
	cp out sent
	cat one0 one1 one2 >want
	exits 3 ace-inspect diff want sent
	[ "$(awk '$1 == "total" { print $3 }' out)" = $'0\n0\n0' ]
	# after the failure, the remaining steps are coded as without it
	exits 0 ace-step -q --omit provenance -S S --bits 0.5 - < <(cat in3 in4)
	diff -r S one
}

@test "no space after two steps: status 4; the two are sent, and the rest in the next call" {
	five
	# a limit on file sizes acts as a full disk
	mkfifo steps
	(trap '' XFSZ; exec ace-step -q --omit provenance -S S --bits 0.5 <steps >out 2>err) 4>&- &
	pid=$!
	exec 4>steps
	for k in 0 1; do
		cat "in$k" >&4
		wait_for sent out $((k + 1))
	done
	prlimit --pid $pid --fsize=100:100
	cat in2 >&4 || true
	exec 4>&-
	got=0
	wait $pid || got=$?
	[ "$got" -eq 4 ]
	says 'File too large'
	diff -x '*.new-*' -r S after.1
	for k in 2 3 4; do
		exits 0 ace-step -q --omit provenance -S S --bits 0.5 "in$k"
		same out "one$k"
	done
	diff -r S one
}

@test "the same step again is sent as it was committed, and counted once" {
	mkshards -n 300k -k layered >in
	makes first ace-step -S S --bits 0.5 in
	cp S/residual residual
	exits 0 ace-step -S S --bits 0.5 in
	same out first
	same S/residual residual
}

@test "invalid calls are refused" {
	mkshards -n 300k -k layered >in
	for what in in --print; do refuses 2 'the budget is missing' ace-step -S new "$what"; done
	exits 2 ace-step -c q8 --bits 1 in
	refuses 2 '^ace-step: -c CODEC works without ace-score: leave out -c, or all options of ace-score' ace-step -c q8 --form paper:0.5 in
	exits 2 ace-step --cluster 3 in
	head -c 1000 in >short
	exits 3 ace-step -S S --bits 1 short
	[ ! -e S/residual ] && [ ! -e new ]
}

# shares: print the bytes of tensors a and b in the coded shard `out'
shares() {
	ace-inspect out | awk '$1 == "a" || $1 == "b" { print $6 }' | paste -sd ' '
}

@test "--form moment: a tensor with larger moments gets more bytes" {
	mkshards -t a:64,64 -t b:64,64 >in
	set -- -S S --form moment --bits 2 --sync none
	exits 0 ace-step -v "$@" in
	says "^ace-step: 'S/moment' is absent: all groups have the same weight$"
	cp out without
	shares | awk '{ print; exit !($1 > 0.95 * $2 && $1 < 1.05 * $2) }'
	# the moments are 0 to 8191 in order: b's mean square is 7 times a's
	rm -r S
	mkdir -m 700 S
	mkshards -k ramp -t a:64,64 -t b:64,64 -H kind=6 >S/moment
	cp -r S pipe.S
	exits 0 ace-step "$@" in
	[ ! -s err ]
	shares | awk '{ print; exit !($2 > 1.1 * $1) }'
	# bytes move from tensor a to tensor b; their sum stays the same
	awk -v a="$(wc -c <without)" -v b="$(wc -c <out)" \
	    'BEGIN { print a, b; exit !(b < 1.01 * a && b > 0.99 * a) }'
	mv out step
	mv S step.S
	mv pipe.S S
	as_pipe "$@" <in >pipe
	same step pipe
	diff -r S step.S
}

@test "a budget too small for any group: the message says that values are lost without -S" {
	mkshards -n 64k >in
	exits 0 ace-step -b 400 in
	says "400 bytes is too small for any group: an empty shard is sent, and without -S nothing is kept$"
	exits 0 ace-step -S state -b 400 in
	says "400 bytes is too small for any group: an empty shard is sent, and the residual keeps all$"
}

@test "values and residuals near the largest f32 are coded, or refused by tensor and index" {
	perl -e 'print pack("f<*", (3e38, -3e38) x 2048)' >w
	for s in 0 1; do ace-import --name w -d edge1 -s $s -g 1024 -f raw w >$s; done
	# no step is long enough for 700 bytes
	notes 'groups of the plan that are not sent: 4, and without -S they are lost' ace-step -b 700 0
	makes first ace-step -q -S st --bits 16 0
	cp -r st was
	for how in 'ace-step --bits 16' 'ace-compress -c f16'; do
		refuses 5 "limit: in tensor 'w' the value at index [0-9]* and its residual" $how -S st 1
		diff -r st was
	done
}

@test "a step reads the residual once, writes it once, and syncs it once" {
	[ -z "$ACE_SANITIZED" ] || skip "the sanitizer must be first"
	mkshards -n 1M -g 65536 -N 2 >two
	mkshards -n 1M -g 65536 -s 2 >in
	for p in "ace-step --bits 0.3" "ace-compress -c q8"; do
		dir=once-${p%% *}
		exits 0 $p -S "$dir" two
		: >calls
		LD_PRELOAD=$(preload) ACE_READS=$PWD/calls \
		    CLIP_LOG=/dev/null exits 0 $p -S "$dir" in
		size=$(wc -c <"$dir/residual")
		awk -v size="$size" '
		$1 == "read" && $3 ~ /residual$/ { read += $2 }
		$1 == "fsync" && $3 ~ /residual/ { synced++ }
		$1 == "fsync" && $3 !~ /residual/ && system("test -d " $3) {
			other++
		}
		END {
			print read, "read of", size, synced, other + 0
			exit !(read >= 0.9 * size && read <= 1.1 * size &&
			    synced == 1 && other + 0 == 0)
		}' calls || { cat calls; return 1; }
	done
}
