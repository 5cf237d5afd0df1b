load helper

# verdict FILE: what ace-ack says of the receipts in it, one line each.
verdict() {
	rm -rf scratch
	ace-ack -S scratch -v <"$1" 2>&1 >/dev/null | sed 's/^ace-ack: //'
}

# recv VERDICT ARGS...: standard input into the spool, one receipt.
recv() {
	local want=$1
	shift
	exits 0 ace-recv --spool spool "$@"
	verdict out >said
	grep -qE "$want" said || { cat said; return 1; }
}

shard() { mkshards -d "${2:-edge1}" -s "$1" "${@:3}"; }

@test "a shard: accepted, in the spool as it came, then a duplicate" {
	shard 3 >in
	recv '^step 3: accepted$' <in
	ace-inspect --verify spool/test/3/edge1.aceg
	ace-inspect --diff in spool/test/3/edge1.aceg
	cp spool/test/3/edge1.aceg before
	recv '^step 3: duplicate$' <in
	recv '^step 3: duplicate$' <in
	same before spool/test/3/edge1.aceg
	[ "$(find spool -name '*.new-*')" = "" ]
}

@test "other bytes under the same name: equivocation, the first stay" {
	shard 0 edge1 -x 1 >one
	shard 0 edge1 -x 2 >other
	recv '^step 0: accepted$' <one
	recv '^step 0: equivocation' <other
	ace-inspect --diff one spool/test/0/edge1.aceg
	exits 0 ace-recv --spool spool other
	mv out receipt
	exits 5 ace-ack -S state receipt
	says "equivocation"
}

@test "many shards, one connection: a receipt each, in order" {
	mkshards -N 20 >in
	exits 0 ace-recv --spool spool in
	[ "$(verdict out | grep -c accepted)" -eq 20 ]
	verdict out | sort -c -k2n
	exits 0 ace-recv --spool again --once in
	[ "$(verdict out | wc -l)" -eq 1 ]
}

@test "a value that is not finite: invalid, named, the same for ever" {
	shard 0 edge1 -k nan >in
	recv "^step 0: invalid: non-finite value in tensor 'embed' at index 3" <in
	recv "^step 0: invalid: non-finite" <in
	shard 0 >good
	recv "^step 0: equivocation" <good
	[ ! -e spool/test/0/edge1.aceg ]
}

@test "a value that is not finite is seen wherever it is in a group" {
	local at
	# groups of 100 and a last one of 37
	for at in 0 1 63 64 98 99 100 199 936; do
		rm -rf spool
		mkshards -t w:937 -g 100 -k nan -i $at >in
		recv "^step 0: invalid: non-finite value in tensor 'w' at index $at$" <in
	done
}

@test "another device than the key's: no receipt, and the other one is not harmed" {
	shard 0 edge2 >in
	exits 3 ace-recv --spool spool --device edge1 <in
	says "mismatch: a shard of device 'edge2' where 'edge1' sends"
	[ "$(ls spool)" = "" ]
	recv "^step 0: accepted" --device edge2 <in
}

@test "a device that is refused may finish its sentence, not go on and on" {
	shard 0 edge2 >in
	(cat in; sleep 0.3; cat in; sleep 0.3; cat in) |
	    ace-recv --spool spool --device edge1 >out 2>err &&
	    status=("${PIPESTATUS[@]}") || status=("${PIPESTATUS[@]}")
	[ "${status[*]}" = '0 3' ]
	(cat in; exec yes) | ace-recv --spool spool --device edge1 >out 2>err &&
	    status=("${PIPESTATUS[@]}") || status=("${PIPESTATUS[@]}")
	[ "${status[*]}" = '141 3' ]
	# and one that holds the line and is silent is left after a while
	mkfifo line
	(cat in; exec sleep "$HANG") >line 3>&- &
	exits 3 timeout "$HANG" ace-recv --spool spool --device edge1 <line
	says "mismatch: a shard of device 'edge2'"
	kill $!
}

@test "another run than asked for: no receipt" {
	shard 0 >in
	exits 3 ace-recv --spool spool --run x <in
	says "mismatch: a shard of run 'test', not 'x'"
	[ "$(ls spool)" = "" ]
	recv "^step 0: accepted" --run test <in
}

@test "another model than the run's: invalid" {
	shard 0 >in
	recv accepted <in
	mkshards -d edge2 -t other:7 >in
	recv "^step 0: invalid: mismatch: run 'test' is of another model: .*other" <in
	mkshards -d edge2 -r run2 -t other:7 >in
	recv accepted --run run2 <in
}

@test "larger than --max-shard: invalid" {
	mkshards -n 10k >in
	recv "^step 0: invalid: limit: larger" --max-shard 10k <in
	mkshards -n 10k -s 1 >in
	recv "^step 1: accepted" --max-shard 100k <in
	# to the byte: its frames behind the head and before the end
	mkshards -n 10k -s 2 >in
	bytes=$(frames in | awk '$2 == "SEND" { print $1 - at }
	    !at && $2 == "DATA" { at = $1 }')
	[ "$bytes" -gt 40000 ]
	recv "^step 2: accepted" --max-shard "$bytes" <in
	mkshards -n 10k -s 3 >in
	recv "^step 3: invalid: limit: larger" --max-shard $((bytes - 1)) <in
	# eight times that is not read to its end
	recv "^step 3: invalid: limit: larger" --max-shard $((bytes / 8 + 1)) <in
	exits 3 ace-recv --spool spool --max-shard $((bytes / 8 - 1)) in
	says "limit: a shard of more than 8 times --max-shard"
}

@test "a closed step: accepted if it is in the manifest, else late" {
	shard 0 edge1 >one
	shard 0 edge2 >two
	recv accepted <one
	exits 0 ace-aggregate --spool spool --steps 1
	recv '^step 0: accepted$' <one
	recv '^step 0: late: step 0 is closed$' <two
	[ ! -e spool/test/0/edge2.aceg ]
}

@test "cut in the middle of a shard: those before it count, it does not" {
	{ shard 0; shard 1; } >in
	head -c "$(($(wc -c <in) - 300))" in >part
	exits 3 ace-recv --spool spool <part
	says truncated
	[ -e spool/test/0/edge1.aceg ]
	[ ! -e spool/test/1/edge1.aceg ]
	mv out receipts
	exits 3 ace-ack -S state -v <receipts
	says "step 0: accepted"
	says "truncated"
	[ "$(find spool -name '*.new-*')" = "" ]
}

@test "names that are no file names" {
	local n
	for n in a/../b ../../x "$(printf 'new\nline')" "$(printf '\033[31mred')" \
	    . .. - "sp ace" "$(printf '%0255d' 7)" "x%2Fy" a.b; do
		rm -rf spool
		mkshards -d "$n" -r "$n" >in || { [[ $n = *[[:cntrl:]]* ]] && continue; }
		recv accepted <in
		recv duplicate <in
		[ "$(find . -name '*.aceg' -newer in | grep -vc '^./spool/')" -eq 0 ]
		find spool | LC_ALL=C grep -q '[^ -~]' && return 1
		exits 0 ace-aggregate --spool spool --steps 1
		ace-inspect --verify out
	done
	[ -z "$(ls -d ../x ../../x 2>/dev/null)" ]
}

@test "--reply aggregate: nobody waits for one that cannot come" {
	shard 0 >in
	recv accepted <in
	shard 0 edge1 -x 9 >other
	mkshards -d edge2 -t other:7 >model
	shard 0 edge3 -k inf >inf
	for f in other model inf; do
		exits 0 timeout "$HANG" ace-recv --spool spool \
		    --reply aggregate $f
		mv out back
		exits 5 ace-ack -S state back
		says '^ace-ack: step 0: (equivocation|invalid): '
	done
}

@test "--reply aggregate: the receipt, then the step's aggregate" {
	shard 0 edge1 >one
	shard 0 edge2 -x 2 >two
	ace-recv --spool spool --reply aggregate one >back &
	recv accepted <two
	ace-aggregate --spool spool --expect 2 --steps 1 |
	    ace-recv --spool spool --publish
	wait
	exits 0 ace-ack -S state back
	mv out got
	ace-aggregate one two >want
	ace-inspect --diff want got
}

@test "in any order, again and again: each once, and the same bytes" {
	local seed d s
	for d in 1 2 3; do
		for s in 0 1 2; do
			shard $s "edge$d" -x "$d" >"in$d$s"
		done
	done
	for seed in 1 2 3 4; do
		rm -rf spool
		# each of nine three times, as the seed has it
		perl -e 'srand $ARGV[0]; my @f = (glob "in??") x 3;
		    while (@f) { print splice(@f, rand @f, 1), "\n" }' $seed |
		    xargs cat >all
		exits 0 ace-recv --spool spool --sync none all
		verdict out >said
		[ "$(grep -c ': accepted$' said)" -eq 9 ]
		[ "$(grep -c ': duplicate$' said)" -eq 18 ]
		exits 0 ace-aggregate --no-provenance --spool spool --expect 3 \
		    --steps 3 --sync none
		[ $seed -eq 1 ] && mv out want || same out want
		# replayed when all is closed: the same answer, nothing new
		exits 0 ace-recv --spool spool --sync none all
		verdict out >said
		[ "$(grep -c ': accepted$' said)" -eq 27 ]
		[ "$(find spool -name 'edge*.aceg' | wc -l)" -eq 9 ]
	done
	# other bytes of what is closed
	shard 1 edge2 -x 9 >other
	recv '^step 1: equivocation' <other
}

@test "a spool that others can write is refused" {
	mkdir -m 777 spool
	shard 0 >in
	exits 5 ace-recv --spool spool in
	says "can be changed by other users"
}

@test "no --spool: status 2" {
	exits 2 ace-recv </dev/null
	says "spool"
}

@test "no memory: said, wherever it is, and nothing is left of it" {
	shard 1 >in
	recv '^step 1: accepted$' <in
	shard 2 >in
	# beside one that somebody else is writing
	arrives() {
		: >spool/test/edge1.new-abc123
		flock spool/test/edge1.new-abc123 ace-recv --spool spool in
	}
	starves arrives
	ace-inspect --verify spool/test/2/edge1.aceg
	# nor of one that is refused: it is, once there is memory to write that down
	shard 3 edge1 -k nan >in
	refused() {
		rm -rf spool/test/3
		ace-recv --spool spool in
	}
	starves refused
	recv '^step 3: invalid: ' <in
}
