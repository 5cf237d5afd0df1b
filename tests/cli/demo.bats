# examples/demo.sh on a very small model: what it prints, and that it ends, and
# leaves nothing, whatever dies.
# bats file_tags=plain
load helper
patient

demo=$ROOT/examples/demo.sh

# text that even this model learns, quickly
prepare() {
	awk 'BEGIN { for (i = 0; i < 9000; i++)
	    printf("the %d of %d is %d\n", i % 10, i % 7, i * i % 97) }' >text
	mkdir tmp bin bin/examples
	ln -s "$BUILD"/ace-* bin/
	ln -s "$BUILD/examples/train" bin/examples/
	export CORPUS=$PWD/text TMPDIR=$PWD/tmp STEPS=40 \
	    TRAIN='--layers 1 --width 32 --heads 2 --context 32 --batch 4'
	unset SHORT RATE MUON
}

# replace PROGRAM: by the script on standard input
replace() {
	rm -f "bin/$1"
	{
		echo '#!/bin/sh'
		cat
	} >"bin/$1"
	chmod +x "bin/$1"
}

# demo CODE ARG...: its status; in time, and nothing left behind
demo() {
	local want=$1
	shift
	exits "$want" env PATH="${SYSTEM:-/usr/local/bin:/usr/bin:/bin}" BUILD="$PWD/bin" \
	    timeout "$HANG" "$demo" "$@"
	[ -z "$(ls -A tmp)" ]
}

@test "the table: something is learnt, with a tenth of the bytes or less" {
	prepare
	demo 0
	awk '$1 == "unigram" { u = $2 } $1 == "FullSync" { f = $2; up = $4
	    down = $5 } $1 == "ACE-Sync" { a = $2; au = $4; ad = $5; r = $6 }
	    END { print u, f, a, r; exit !(f > 0 && f < u && a > 0 && a < u &&
	    r >= 10 && (up + down) / (au + ad) - r < 0.1 &&
	    (up + down) / (au + ad) - r > -0.1) }' out
}

@test "nothing learnt is a failure" {
	prepare
	RATE=0 MUON=0 STEPS=5 demo 1
	says '^demo: full: nothing was learnt'
}

@test "bytes that are not saved are a failure" {
	prepare
	replace ace-step <<<"exec '$BUILD/ace-compress' -c f32"
	demo 1
	says '^demo: the ratio of bytes is below 10'
}

@test "a program that dies ends the demo, whoever waits for it" {
	prepare
	for p in ace-aggregate ace-step ace-expand; do
		replace $p <<<"head -c 1000 >/dev/null; exit 3"
		demo 1
		says '^demo: .* failed'
		ln -sf "$BUILD/$p" bin/$p
	done
	replace examples/train <<<'exit 4'
	demo 1
	says '^demo: .* failed'
}

@test "a trainer that is killed in the middle ends the demo" {
	prepare
	replace examples/train <<<"case \$* in
	*'--index 3 '*) '$BUILD/examples/train' \"\$@\" &
		sleep 1; kill -9 \$!; wait \$! ;;
	*) exec '$BUILD/examples/train' \"\$@\" ;;
	esac"
	STEPS=100000 demo 1
	says '^demo: full: .* failed'
}

@test "a stream that is cut without a word ends the demo" {
	prepare
	replace ace-step <<<"case \$* in
	*state3*) dd bs=1000 count=300000 iflag=count_bytes | '$BUILD/ace-step' \"\$@\" ;;
	*) exec '$BUILD/ace-step' \"\$@\" ;;
	esac"
	demo 1
	says '^demo: ace: .* failed'
	says 'truncated: '
}

@test "two that fail at once: said, whichever comes in between" {
	cat >both <<-END
	name=two
	. "$ROOT/examples/pipes.sh"
	# the second fails while the line on the screen is taken away
	hide() {
		[ ! -e once ] || return
		: >once
		kill -USR1 \$\$
		sleep 0.2
	} 2>/dev/null
	echo 'one: edge 1' >"\$work/failed"
	kill -USR1 \$\$
	sleep 5
	END
	exits 1 bash both
	says '^two: one: edge 1 failed'
}

@test "a program that is missing, a text that is missing, are named" {
	prepare
	rm bin/ace-step
	SYSTEM=$(system) demo 1
	says '^demo: program missing: ace-step'
	CORPUS=nowhere demo 1
	says '^demo: '
	ln -s "$BUILD/ace-step" bin/
	CORPUS=nowhere demo 1
	says "^demo: cannot read 'nowhere'"
	echo few >few
	CORPUS=few demo 1
	says "^demo: too little text in 'few'"
}

@test "stopped from outside, it stops everything" {
	prepare
	STEPS=100000 PATH="/usr/local/bin:/usr/bin:/bin" BUILD=$PWD/bin \
	    "$demo" >out 2>err &
	local pid=$!
	wait_for compgen -G 'tmp/*/full/got1'
	kill -TERM $pid
	wait $pid && false
	[ -z "$(ls -A tmp)" ]
	# the last one may not have heard yet that it was killed
	gone() { ps -ef >all && ! grep -q "train .*$PWD/text" all; }
	wait_for gone
}

# bats test_tags=long
@test "the sweep prints a loss for every rate" {
	prepare
	STEPS=5 demo 0 --sweep
	[ "$(grep -cE '^0\.[0-9]+	[0-9.]+	[0-9.]+	[0-9.]+$' out)" -ge 6 ]
}

# bats test_tags=long
@test "on a terminal one line says what step, what loss, what is left; in a pipe none" {
	prepare
	export STEPS=300
	BUILD=$PWD/bin TERM=xterm exits 0 timeout "$HANG" pty sh -c "'$demo' 2>&1"
	tr '\r' '\n' <out >lines
	grep -qE '^demo: full: step [0-9]+ of 300, loss [0-9.]+, [0-9]+ s left' lines
	grep -qE '^demo: ace: step ' lines
	[ -z "$(ls tmp)" ]
	BUILD=$PWD/bin TERM=dumb exits 0 timeout "$HANG" pty sh -c "'$demo' 2>&1"
	! grep -q ' of 300' out || false
	STEPS=40 BUILD=$PWD/bin TERM=xterm exits 0 timeout "$HANG" "$demo"
	[ "$(grep -c ' of 40' out err | grep -c ':0$')" -eq 2 ]
}
