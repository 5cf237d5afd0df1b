load helper

# A training run: STEPS shards of one device, gradients and differences of the
# example trainer where it is built.
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

# as_pipe OPTIONS...: what ace-step --print says, with its states under pipe/
as_pipe() {
	ace-step "$@" --print >line
	bash -o pipefail -c "$(cat line)"
}

# alike OPTIONS...: in is the same to ace-step and to the pipe, bytes and state
alike() {
	rm -rf S pipe.S step.S pipe step
	as_pipe "$@" <in >pipe
	[ ! -d S ] || mv S pipe.S
	ace-step "$@" <in >step
	[ ! -d S ] || mv S step.S
	same pipe step
	[ ! -d pipe.S ] || diff -r pipe.S step.S
}

@test "a whole training run: the same bytes and the same state as the pipe" {
	run_of 24 >in
	alike -S S --bits 0.3
	ace-inspect --verify step
}

@test "the same with every way to say how much" {
	run_of 6 >in
	alike -S S -b 4k
	alike -S S -p 0.5
	alike -S S --policy --bandwidth 5Mbit
	alike -S S --policy --bandwidth 5Mbit --target-divergence 0.1 \
	    --model-norm 20
	alike -S S -c q8
	alike --bits 1
	alike -c topk:0.1
}

@test "the options of its programs go to all that have one of that name" {
	run_of 4 >in
	alike -S S --gamma 0.5 --bits 0.5 --sync none --alpha 0.25
	exits 0 ace-step -S 'a b' --gamma 0.5 --bits 0.5 --alpha 1 --print
	[ "$(cat out)" = "ace-expand -S 'a b' --gamma 0.5 | ace-score -S 'a b' \
--alpha 1 | ace-select --bits 0.5 | ace-compress -S 'a b'" ]
}

@test "one process for a run, or one for each step" {
	mkshards -n 300k -k layered -N 5 >in
	exits 0 ace-step --no-provenance -S long --bits 0.5 in
	for k in 0 1 2 3 4; do
		mkshards -n 300k -k layered -s "$k" >one
		exits 0 ace-step --no-provenance -S many --bits 0.5 one
	done
	same long/residual many/residual
	same long/score many/score
}

@test "run again, it sends what was committed, and counts nothing twice" {
	mkshards -n 300k -k layered >in
	exits 0 ace-step -S S --bits 0.5 in
	mv out first
	cp S/residual residual
	exits 0 ace-step -S S --bits 0.5 in
	same out first
	same S/residual residual
}

@test "what is refused" {
	mkshards -n 300k -k layered >in
	exits 2 ace-step in
	says 'how much to send'
	exits 2 ace-step -c q8 --bits 1 in
	exits 2 ace-step -c q8 --alpha 0.5 in
	says 'there is no ace-score'
	exits 2 ace-step --tiers 3 in
	head -c 1000 in >short
	exits 3 ace-step -S S --bits 1 short
	[ ! -e S/residual ]
}
