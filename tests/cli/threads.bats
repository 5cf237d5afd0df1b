# -T: the same bytes with any number of threads, and a clean end.
load helper

# each CMD: run CMD with @ replaced by 1, 3, 8 and 0 threads (0: one per processor), and check
# that the files made.@ that it writes are the same
each() {
	local n
	for n in 1 3 8 0; do
		exits 0 bash -e -o pipefail -c "${1//@/$n}"
		[ -s "made.$n" ]
		same made.1 "made.$n"
	done
}

model() { mkshards -n 900k -k layered "$@"; }

@test "ace-compress: -c, a plan before the data, a plan after it, a budget" {
	model >in
	each 'ace-compress -T @ -c ecq:1 in >made.@'
	each 'ace-compress --threads @ -c topk:0.05 in >made.@'
	each 'ace-compress --threads=@ -c exact in >made.@'
	each 'mkshards -n 900k -L ecq:1,none,q8,topk:0.1 | ace-compress -T@ >made.@'
	each 'mkshards -n 900k -l ecq:1,none,q8,topk:0.1 | ace-compress -T@ >made.@'
	each 'ace-score in | ace-select --bits 0.5 | ace-compress -T @ >made.@'
	# three shards of many small groups, each with an annotation before its values
	mkshards -n 300k -g 512 -k layered -a -N 3 >small
	each 'ace-score small | ace-select --bits 1 | ace-compress -T @ >made.@'
}

# bats test_tags=long
@test "several steps with a state: the same shards and residuals" {
	local s
	for s in 0 1 2; do
		mkshards -n 900k -s $s -x $s -k layered >"in$s"
		each "ace-compress -T @ -S S@ --omit provenance -c ecq:1 in$s \
		    >made.@; cat S@/residual >>made.@"
		# lowrank begins with the factors of the shard before
		each "ace-compress -T @ -S L@ --omit provenance -c lowrank:4 \
		    in$s >made.@; cat L@/residual >>made.@"
		each "ace-step -T @ -S B@ --omit provenance --bits 0.4 in$s \
		    >made.@; cat B@/residual >>made.@"
		each "ace-compress -T @ -S C@ --error-feedback cache \
		    --omit provenance -c q8 in$s >made.@"
		each "ace-expand -T @ --cache H@ --omit provenance made.@ >x;
		    mv x made.@"
	done
}

# large STEP: write a model so large that ace-step codes its groups as they arrive, with the
# quantiser steps of the step before
large() { mkshards -n 4300k -k layered -x "$1" -s "$1" >"in$1"; }

# bats test_tags=plain
@test "groups coded as they arrive: the same bytes with any threads or pace, and as in a pipe" {
	local s
	for s in 0 1 2; do
		large $s
		each "ace-step -T @ -S B@ --sync none --omit provenance --bits 0.4 \
		    in$s >made.@; cat B@/residual >>made.@"
	done
	# several steps in one process, with input in small pieces
	cat in0 in1 in2 | dd bs=3001 2>/dev/null |
	    ace-step -T 2 -S slow --sync none --omit provenance --bits 0.4 >all
	same slow/residual B1/residual
	for s in 0 1 2; do
		ace-expand -S four --omit provenance in$s |
		    ace-score -S four --omit provenance |
		    ace-select --bits 0.4 --omit provenance |
		    ace-compress -T 2 -S four --sync none --omit provenance >part
	done
	same four/residual B1/residual
	# lowrank begins with the factors of the shard before, also if its groups waited
	for s in 0 1; do
		ace-compress -S E --omit provenance -c lowrank:4 in$s >one
		ace-step -S F --omit provenance --levels lowrank:4 -b 400k in$s >two
		same one two
	done
}

# bats test_tags=plain
@test "an absurd quantiser step from the step before does not exceed the budget" {
	local bits n
	large 0
	large 1
	for n in 12 0.01; do
		ace-step -S "was$n" --sync none --bits $n in0 >rest
		for bits in 0.01 0.5 12; do
			rm -rf S
			cp -r "was$n" S
			exits 0 ace-step -S S --sync none --bits $bits in1
			# the shard has 4403200 values
			awk -v n="$(stat -c %s out)" -v b=$bits 'BEGIN {
			    most = b * 4403200 / 8
			    exit !(n <= most + 1500 && n >= 0.99 * most - 100) }'
			mv out got
			exits 0 ace-inspect verify got
		done
	done
}

# bats test_tags=long,asan
@test "ace-expand and ace-aggregate" {
	model -c ecq:1 >coded
	each 'ace-expand -qT@ coded >made.@'
	mkshards -n 300k -g 512 -c topk:0.1 >coded
	each 'ace-expand -T @ coded >made.@'
	mkdir d
	mkshards -n 200k -c topk:0.02 -d s -F d -N 40
	mkshards -n 200k -c q8 -d q -F d -N 7
	mkshards -n 200k -d f -F d -N 3
	each 'ace-aggregate -T @ d/* >made.@'
	each 'cat d/* | ace-aggregate -T @ --rule sum >made.@'
	each 'ace-aggregate -T @ --rule norm-ratio:4 d/* >made.@'
	each 'ace-aggregate -T @ --rule median d/q* d/f* >made.@'
}

@test "errors name the same place with any number of threads" {
	local n
	mkshards -n 900k -k nan -i 700000 >bad
	mkdir d
	mkshards -n 9000 -g 512 -c q8 -d e -F d -N 30
	for n in 11 12 19; do
		head -c 900 "d/e$n.aceg" >x
		mv x "d/e$n.aceg"
	done
	for n in 1 2 8; do
		exits 5 ace-compress -T $n -c ecq:1 bad
		says 'non-finite value in tensor .w. at index 700000'
		mv out bad.out
		exits 3 ace-inspect verify bad.out
		exits 3 ace-aggregate -T $n d/*
		cp err err.$n
		cmp err.1 err.$n
	done
}

@test "invalid numbers of threads are refused" {
	mkshards >in
	for how in "ace-compress -c q8" ace-expand "ace-step -c q8" ace-aggregate; do
		exits 2 $how -T 257 in
	done
	for n in -1 two ''; do
		exits 2 ace-expand -T "$n" in
	done
}

@test "a signal ends all threads, and the output has no end" {
	mkfifo gate
	model >in
	ace-compress -T 4 -c f32 <gate >out.part &
	local pid=$!
	exec 7>gate
	head -c 3000000 in >&7
	wait_for test -s out.part
	kill -TERM $pid
	local got=0
	wait $pid || got=$?
	exec 7>&-
	[ $got -eq 143 ]
	exits 3 ace-inspect verify out.part
}

@test "input that ends while groups are coded: status 3, and the state stays" {
	large 0
	large 1
	ace-step -S S --sync none --bits 0.4 in0 >rest
	cp -r S was
	head -c 9000000 in1 >in.cut
	refuses 3 'truncated' ace-step -T 4 -S S --sync none --bits 0.4 in.cut
	same S/residual was/residual
	exits 0 ace-step -T 4 -S S --sync none --bits 0.4 in1
}
