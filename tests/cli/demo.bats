# examples/demo.sh with a very small model: it prints a table, and leaves no files or processes,
# whichever process dies.  And examples/text.sh, which gives the text.
# bats file_tags=plain
load helper
patient

demo=$ROOT/examples/demo.sh

# prepare: write a text that even this model learns quickly
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

# replace PROGRAM: replace PROGRAM by the script on standard input
replace() {
	rm -f "bin/$1"
	{
		echo '#!/bin/sh'
		cat
	} >"bin/$1"
	chmod +x "bin/$1"
}

# demo CODE ARG...: check that the demo ends with status CODE, in time, and leaves nothing behind
demo() {
	local want=$1
	shift
	exits "$want" env PATH="${SYSTEM:-/usr/local/bin:/usr/bin:/bin}" BUILD="$PWD/bin" \
	    timeout "$HANG" "$demo" "$@"
	[ -z "$(ls -A tmp)" ]
}

@test "the model learns with a tenth of the bytes or less, and the table says so" {
	prepare
	demo 0
	awk '$1 == "unigram" { u = $2 } NF != 7 { next }
	    $1 == "FullSync" { f = $2; up = $4
	    down = $5; t = $7 } $1 == "ACE-Sync" { a = $2; au = $4; ad = $5
	    r = $6; at = $7 }
	    END { print u, f, a, r; exit !(f > 0 && f < u && a > 0 &&
	    a < u && r >= 10 && (up + down) / (au + ad) - r < 0.1 &&
	    (up + down) / (au + ad) - r > -0.1 &&
	    t >= int(8 * (up + down) / 4 / 2e6) && at ~ /^[0-9]+$/) }' out
	grep -q "^ACE-Sync moves $(awk '$1 == "ACE-Sync" && NF == 7 { print $6 }' out) times" out
	! grep -q '.\{81\}' out || false
}

# way NAME LOSS TOP1 ROUNDS SENT GOT: write the results of a run, in which each edge and the
# cloud used three CPU seconds, and the fourth edge a minute more
way() {
	local k
	mkdir -p work/$1
	printf 'end\t%s\t800\t%s\t-\t%s\n' "$4" "$2" "$3" >work/$1/log
	for k in 1 2 3 4; do
		echo "$5 bytes (x) copied" >work/$1/sent$k
		echo "$6 bytes (x) copied" >work/$1/got$k
		printf '0m9.0s 0m9.0s\n0m1.750s 0m0.250s\n' >"work/$1/took edge $k"
		printf '0m9.0s 0m9.0s\n%dm0.5s 0m0.5s\n' $((k / 4)) \
		    >"work/$1/took the way back to edge $k"
	done
	printf '0m9.0s 0m9.0s\n0m1.0s 0m2.0s\n' >"work/$1/took cloud"
}

@test "the figures of the table and of its sentences fit the files of the runs" {
	way full 1.5000 60.00 800 100000000 100000000
	way ace 1.6000 58.50 80 1000000 2000000
	{
		echo "name=demo; . '$ROOT/examples/pipes.sh'"
		sed -n '/^EDGES=/p; /^rate=/p' "$demo"
		for f in result table words saved; do
			sed -n "/^$f()/,/^}/p" "$demo"
		done
		cat <<-'END'
		rm -r "$work"
		work=work steps=800
		printf '%s\t%s\n' FullSync "$(result full)" ACE-Sync "$(result ace)" >results
		table results
		words results
		saved results
		sed 's/400000000/40000000/g' results >few
		saved few
		END
	} >figures
	refuses 1 '^demo: the compression ratio is 6[.]67: expected 10 or more' bash figures
	# FullSync: 1600 Mbit at 2 Mbit/s, 3 CPU seconds of an edge and 3 of the cloud; ACE-Sync:
	# 24 Mbit at 20 Mbit/s, 63 CPU seconds of the fourth edge and 3 of the cloud
	head -n 3 out >columns
	cat columns
	same columns - <<-'END'
	method     validation loss  top-1 %     bytes up   bytes down   ratio  seconds
	FullSync            1.5000    60.00    400000000    400000000     1.0      806
	ACE-Sync            1.6000    58.50      4000000      8000000    66.7       67
	END
	tail -n +4 out | tr '\n' ' ' >words
	for f in '66.7 times fewer bytes than FullSync' \
	    'in 58.50 instead of 60.00 % of the places' \
	    'every 10.0 steps (10.0 times fewer bytes)' \
	    '4.80 bits instead of 32 (6.7 times)' '(2, 5, 10, 20 Mbit/s, one each)'; do
		grep -qF "$f" words
	done
}

# tree: copy the examples to a path with spaces
tree() {
	mkdir -p 'a tree/examples'
	cp "$ROOT"/examples/*.sh "$ROOT/examples/text.xz" 'a tree/examples/'
	demo="$PWD/a tree/examples/demo.sh"
	unset CORPUS
}

@test "text.sh gives the text of the repository's history, or says what is wrong" {
	prepare
	tree
	exits 0 'a tree/examples/text.sh'
	[ "$(cksum <out)" = "$(sed -n "s/^sum='\(.*\)'.*/\1/p" "$ROOT/examples/text.sh")" ]
	# only if the repository has its history
	if git -C "$ROOT" cat-file -e \
	    "$(sed -n 's/^commit=//p' "$ROOT/examples/text.sh")" 2>/dev/null; then
		"$ROOT/examples/text.sh" --make | same - out
	fi
	exits 4 sh -c "'a tree/examples/text.sh' >/dev/full"
	says '^text.sh: the text cannot be written'
	exits 2 'a tree/examples/text.sh' --other
	mv 'a tree/examples/text.xz' right
	demo 4
	says "cannot read '.*/text.xz'"
	# a changed byte, a truncated file, another text
	for n in 10 300000 660000; do
		cp right 'a tree/examples/text.xz'
		printf x | dd of='a tree/examples/text.xz' bs=1 seek=$n conv=notrunc
		demo 3
		says "^text.sh: bad checksum: '.*/a tree/examples/text.xz' is damaged"
		says '^demo: there is no text to train on'
	done
	head -c 300000 right >'a tree/examples/text.xz'
	demo 3
	xz <"$ROOT/Makefile" >'a tree/examples/text.xz'
	demo 3
	! grep -q 'matrix products\|steps' err || false
}

@test "a second make in the same tree waits for the first, and says so" {
	command -v flock >/dev/null || skip 'no flock'
	local make=(env -u MAKEFLAGS -u MAKELEVEL timeout "$HANG" make -n -C "$ROOT"
	    DEPS=no BUILD="$PWD/made" demo)
	mkdir made
	exits 0 "${make[@]}"
	! grep -q 'waiting$' out || false
	exec 8>made/lock
	flock 8
	"${make[@]}" >out 2>err 8>&- &
	wait_for grep -q '^another make builds here: waiting$' out
	exec 8>&-
	wait $!
	grep -q 'examples/demo.sh' out
}

@test "make passes the variables of the scripts to them" {
	local v vars
	vars=$(sed -n 's/^# \([A-Z_]*\)=.*/\1/p' "$ROOT"/examples/*.sh | sort -u)
	[ "$(wc -l <<<"$vars")" -ge 10 ]
	for v in $vars; do
		env -u MAKEFLAGS -u MAKELEVEL "$v=mine" make -s -C "$ROOT" DEPS=no \
		    --eval='show: ; @env' show >out
		grep -qx "$v=mine" out || { echo "$v is make's"; return 1; }
	done
}

@test "a table that cannot be written is an error" {
	prepare
	exits 4 env BUILD="$PWD/bin" sh -c "'$demo' >&-"
	says '^demo: standard output is closed'
	exits 4 env BUILD="$PWD/bin" timeout "$HANG" sh -c "'$demo' >/dev/full"
	says '^demo: the table cannot be written'
	[ -z "$(ls -A tmp)" ]
}

@test "a model that learns nothing is a failure" {
	prepare
	STEPS=0 demo 1
	RATE=0 MUON=0 STEPS=5 demo 1
	says '^demo: full: too little was learnt: the loss is [0-9.]*, expected less than [0-9.]* .at the start. and [0-9.]* '
}

@test "any program that dies ends the demo" {
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

@test "a truncated stream ends the demo" {
	prepare
	replace ace-step <<<"case \$* in
	*state3*) dd bs=1000 count=300000 iflag=count_bytes | '$BUILD/ace-step' \"\$@\" ;;
	*) exec '$BUILD/ace-step' \"\$@\" ;;
	esac"
	demo 1
	says '^demo: ace: .* failed'
	says 'truncated: '
}

@test "two failures at the same time give one message" {
	cat >both <<-END
	name=two
	. "$ROOT/examples/pipes.sh"
	# the second edge fails while the progress line is being erased
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
	refuses 1 '^two: one: edge 1 failed' bash both
}

@test "a missing program and a missing text are named" {
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
	says "^demo: 'few' has less than 100 kB of text"
}

@test "TERM ends the demo and all its programs" {
	prepare
	STEPS=100000 PATH="/usr/local/bin:/usr/bin:/bin" BUILD=$PWD/bin \
	    "$demo" >out 2>err &
	local pid=$!
	wait_for compgen -G 'tmp/*/full/got1'
	kill -TERM $pid
	wait $pid && false
	[ -z "$(ls -A tmp)" ]
	# the last program may not have received its signal yet
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
@test "progress: one changing line on a terminal, several lines in a pipe" {
	prepare
	export STEPS=300
	BUILD=$PWD/bin TERM=xterm exits 0 timeout "$HANG" pty sh -c "'$demo' 2>&1"
	tr '\r' '\n' <out >lines
	grep -qE '^demo: full: step [0-9]+ of 300, loss [0-9.]+, [0-9]+ s left' lines
	grep -qE '^demo: ace: step ' lines
	[ -z "$(ls tmp)" ]
	PROGRESS=1000000 BUILD=$PWD/bin TERM=dumb exits 0 timeout "$HANG" pty sh -c "'$demo' 2>&1"
	! grep -q ' of 300' out || false
}
