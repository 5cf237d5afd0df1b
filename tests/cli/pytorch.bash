# Common part of the tests of examples/pytorch/ace_shards: the trainers in pytorch/, a cloud,
# and a directory per test.

setup_file() {
	export OMP_NUM_THREADS=1 PYTHONDONTWRITEBYTECODE=1
	export TRAINERS=$ROOT/tests/cli/pytorch
	export PYTHONPATH=$TRAINERS:$ROOT/examples/pytorch
	has_torch || :
	export PYTHON
}

setup() {
	cd "$BATS_TEST_TMPDIR" || return
	[ "$PYTHON" != none ] || skip "no torch here (Debian's python3-torch)"
}

teardown() {
	set +e
	for p in $(jobs -p); do
		kill -9 "$p" 2>/dev/null
	done
	true
}

py() { timeout "$HANG" "$PYTHON" "$@"; }
train() { py "$TRAINERS/train.py" "$@"; }

# cloud DEVICES STEPS [CODE [OPTION...]]: run a cloud; CODE codes its averages
cloud() {
	timeout "$HANG" ace-aggregate --spool spool --create --devices "$1" \
	    --rounds "$2" "${@:4}" --publish --sync none -q 3>&- |
	    timeout "$HANG" ace-step -S cloud ${3:--c f32} --sync none 3>&- |
	    timeout "$HANG" ace-recv --spool spool --publish --sync none 3>&-
}

# pair FILE [WORD...]: run python FILE edge1 WORD... and python FILE edge2 WORD... at the same
# time, for a cloud of two devices, and check that both print the same
pair() {
	py "$1" edge1 "${@:2}" >one 3>&- 2>err1 &
	py "$1" edge2 "${@:2}" >two 2>err2 || { cat err1 err2; false; }
	wait
	[ -s one ] || { cat err1; false; }
	same one two
}

# both ROUNDS: train edge1 and edge2, with output in said1 and said2
both() {
	train edge1 "$1" >said1 3>&- &
	train edge2 "$1" >said2
	wait
}

# undisturbed ROUNDS: run two devices in calm/ without any disturbance
undisturbed() {
	mkdir calm
	cd calm || return
	cloud 2 "$1" 3>&- &
	both "$1"
	cd ..
}

# unharmed: check that the result is that of `undisturbed'
unharmed() {
	cmp said1 calm/said1
	cmp said2 calm/said2
}
