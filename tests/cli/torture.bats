# Programs that are killed, or whose system calls fail (tests/torture.c and others): KILLS
# kills from SEED on, each FAULTS-th call, each POWER-th tree on the disk.

load helper

torture_env() {
	CLIP_PRELOAD=$(preload)
	export CLIP_PRELOAD
}

# bats test_tags=long,asan
@test "kill -9 anywhere: nothing lost, nothing twice, nobody hangs" {
	torture_env
	exits 0 torture -s "${SEED:-1}" \
	    -n "$(sanitized && echo 40 || echo "${KILLS:-200}")" || { cat out; return 1; }
	grep -q '^ok 1' out
}

# bats test_tags=long,asan
@test "every call that can fail fails: said or tolerated, the state old or new" {
	torture_env
	exits 0 fault -e "$(sanitized && echo 211 || echo "${FAULTS:-53}")" || { cat out; return 1; }
	[ "$(grep -c '^ok' out)" -eq 49 ]
}

# not run under sanitizers: the two tests above reach the same code
# bats test_tags=long
@test "the power fails: each POWER-th tree that may be left holds what it should" {
	torture_env
	local every=${POWER:-3}
	# a build for coverage writes its counts, which are changes as well
	[ -z "$REACHED" ] || every=997
	exits 0 power -e "$every" || { cat out; return 1; }
	[ "$(grep -c '^ok' out)" -eq 21 ]
}
