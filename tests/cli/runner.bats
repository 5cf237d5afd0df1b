# tests/run and tests/prove, which run the tests: they end tests that hang, and leave no
# process.
# bats file_tags=plain
load helper

# alone CODE CMD...: run CMD without the environment of the bats that runs this file
alone() {
	exits "$1" timeout "$HANG" env -i PATH="${PATH//$BATS_LIBEXEC:/}" \
	    TMPDIR="$PWD" HALF=all EVERY=1 "${@:2}"
}

# bats_file NAME: write NAME from standard input, in which TEST stands for @test
bats_file() { sed 's/^TEST/@test/' >"$1"; }

# stays: find processes that were left, which are copies of sleep
stays() { grep -lzsx "$BATS_TEST_TMPDIR/sleep" /proc/[0-9]*/cmdline; }

setup() {
	cd "$BATS_TEST_TMPDIR" || return
	cp "$(command -v sleep)" sleep
	for f in good hangs first spins leaves holds; do
		mkfile $f | bats_file $f.bats
	done
}

mkfile() {
	local s=$PWD/sleep
	case $1 in
	good) cat <<-E ;;
		TEST "one" { true; }
		TEST "two" { skip "no reason"; }
		E
	hangs) cat <<-E ;;
		TEST "one" { true; }
		TEST "it waits for what does not come" {
			x=\$($s 100000 & $s 100000)
		}
		TEST "three" { true; }
		E
	first) cat <<-E ;;
		setup_file() { $s 100000; }
		TEST "one" { true; }
		E
	spins) cat <<-E ;;
		TEST "round and round" { : >'$PWD/round'; while :; do :; done; }
		E
	leaves) cat <<-E ;;
		TEST "one" {
			setsid $s 100000 3>&- 4>&- >/dev/null 2>&1 &
			setsid sh -c 'env -i $s 100000; :' 3>&- 4>&- >/dev/null 2>&1 &
		}
		E
	holds) cat <<-E ;;
		TEST "one" { setsid $s 100000 & }
		E
	esac
}

@test "tests/run prints the TAP of a file, and ends with its status" {
	alone 0 "$ROOT/tests/run" good.bats
	diff out - <<-END
	1..2
	ok 1 one
	ok 2 two # skip no reason
	END
	bats_file bad.bats <<<'TEST "one" { false; }'
	alone 1 "$ROOT/tests/run" bad.bats
	grep -q '^not ok 1 one$' out
	printf '#!/bin/sh\necho ok 1 - a\necho 1..1\nexit 7\n' >seven
	chmod +x seven
	alone 7 "$ROOT/tests/run" ./seven
	# the last line may lack a newline
	printf '#!/bin/sh\necho ok 1 - a\nprintf "1..2\\nnot ok 2 - b"\n' >seven
	alone 0 "$ROOT/tests/run" ./seven
	[ "$(tail -n 1 out)" = 'not ok 2 - b' ]
}

# ends FILE NAME CMD...: run FILE, end the time limit when CMD succeeds, and check that the
# test NAME fails and no process stays
ends() {
	local got=0
	: >out		# CMD must not find the output of the call before
	env -i PATH="${PATH//$BATS_LIBEXEC:/}" TMPDIR="$PWD" "$ROOT/tests/run" "$1" >out 2>err &
	wait_for "${@:3}"
	kill -USR1 $!
	wait $! || got=$?
	[ $got -eq 1 ]
	grep -qE "^not ok [0-9]+ - $2\$" out || { cat out; return 1; }
	grep -qE '^# ended after [0-9]+ s, and so is ' out
	[ -z "$(stays)" ] || { stays; return 1; }
}

@test "a test that hangs is ended, and its name and processes are printed" {
	ends hangs.bats 'it waits for what does not come' stays
	grep -q "^# was running: $PWD/sleep 100000" out
	grep -q '^ok 1 one' out
	ends first.bats 'what first.bats does first' stays
	ends spins.bats 'round and round' test -e round
}

@test "tests/prove works in a path with blanks and quotes" {
	mkdir "it's a  dir"
	cp "$ROOT/tests/run" "$ROOT/tests/prove" "it's a  dir"
	cp good.bats "it's a  dir"
	mkdir "tmp dir"
	cd "it's a  dir"
	alone 0 TMPDIR="$PWD/../tmp dir" "$PWD/prove" "$PWD/good.bats"
	[ "$(tail -n 1 out)" = 'Result: PASS' ]
	grep -q '^Files=1, Tests=2' out
}

@test "a process that a file leaves running is ended, and the file fails" {
	alone 1 LEAVES=1 "$ROOT/tests/run" leaves.bats
	grep -q '^ok 1 one' out
	grep -q '^not ok 2 - leaves.bats leaves nothing running' out
	[ "$(grep -c "^# was running: .*$PWD/sleep 100000" out)" -ge 2 ]
	[ -z "$(stays)" ]
	# a process that keeps the standard output of bats open
	ends holds.bats 'what holds.bats does after: one' grep '^ok 1 one' out
}

@test "a signal that ends tests/run or tests/prove also ends the tests" {
	for s in 'INT run' 'TERM run' 'HUP run' 'INT prove' 'TERM prove'; do
		perl -e '@SIG{qw(INT TERM HUP)} = ("DEFAULT") x 3; exec @ARGV' \
		    env -i PATH="${PATH//$BATS_LIBEXEC:/}" TMPDIR="$PWD" \
		    "$ROOT/tests/${s#* }" hangs.bats >out 2>err &
		wait_for stays
		kill "-${s% *}" $!
		wait $! && false
		[ -z "$(stays)" ]
	done
	[ -z "$(ls -d ace-tests.*)" ]
}
