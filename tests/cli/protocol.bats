# spin finds no error in the model of the delivery protocol (tests/ef_acc.pml), and an error
# in each wrong design.

# bats file_tags=long

load helper

# model BUG ARGS...: search design BUG (0: the right one); return 1 if an error is found; the
# output is in bugBUG.out.  Only the long search of design 0 is optimised.
model() {
	local d=bug$1 optimised=-O$((2 * ($1 == 0)))
	mkdir "$d"
	(cd "$d" && spin -a "-DBUG=$1" "${@:2}" "$ROOT/tests/ef_acc.pml" &&
	    ${CC:-cc} $optimised -w -DSAFETY -DCOLLAPSE -DMEMLIM=2000 -o pan pan.c &&
	    cpu 600 ./pan -m1000000) >"$d.out" 2>&1 || return 2
	grep -qE 'out of memory|depth too small' "$d.out" && return 2
	grep -q 'errors: 0' "$d.out" && return
	grep -qE 'errors: [1-9]' "$d.out" || return 2
	return 1
}

have_spin() {
	command -v spin >/dev/null || skip "no spin"
}

@test "three steps, two in flight, any losses, kills and power cuts: no error" {
	have_spin
	model 0 || { tail -n 40 bug0.out; return 1; }
	sed -n 's/^ *\(.* states, stored\)/# \1/p' bug0.out >&3
}

@test "each wrong design has an error" {
	local bug got
	have_spin

	for bug in 1 2 3 4 5 6 7 8 9 10 11; do
		got=0
		model $bug -DSTEPS=2 || got=$?
		[ $got -eq 1 ] || { echo "BUG=$bug: $got"; tail -n 40 "bug$bug.out"
		    return 1; }
		grep -q "assertion violated" "bug$bug.out"
	done
}
