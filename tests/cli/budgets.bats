# The memory and file sizes that programs need, and what happens at their limits.
load helper

# limited KIB CMD...: run CMD with at most KIB KiB of address space
limited() {
	local kib=$1
	shift
	[ -z "${ACE_SANITIZED:-}" ] || skip "sanitizers want all of it"
	bash -c 'ulimit -v "$0" && exec "$@"' "$kib" "$@"
}

# bats test_tags=long
@test "with little memory values wait in files, and the bytes are the same" {
	mkshards -n 10M -x 3 >in
	ace-score in | ace-select --budget 300k >planned
	ace-compress --omit provenance planned >want
	limited 90000 ace-compress --omit provenance planned >got
	same want got
	# the smaller peak shows that values waited in files
	peak free ace-compress --omit provenance planned >/dev/null
	limited 90000 peak tight ace-compress --omit provenance planned >/dev/null
	echo "KiB: $(cat free) free, $(cat tight) limited"
	[ "$(cat tight)" -lt $(($(cat free) * 2 / 3)) ]
}

@test "values wait in a file in the state or in TMPDIR" {
	mkshards -n 5M -k fast -l q8 >in
	export TMPDIR=$PWD/nowhere
	refuses 4 "nowhere" limited 60000 ace-compress in
	exits 0 limited 60000 ace-compress -S st in
	[ "$(cd st && printf '%s ' *)" = 'code lock residual ' ]
}

@test "values that wait in the file of the new residual give the same residual and shard" {
	local s how plan
	for how in '5M -g 65536' '2600k -g 64'; do
		for s in 0 1; do
			mkshards -n $how -k layered -s $s -x $s >in$s
		done
		for plan in '--bits 0.5' '-p 0.5=q8'; do
			each_of 3 || continue
			rm -rf free tight
			for s in 0 1; do
				ace-expand -S free in$s | ace-score -q |
				    ace-select -q $plan >planned
				ace-compress --sync none --omit provenance -S free \
				    planned >want
				exits 0 limited 60000 ace-compress -T 1 --sync none \
				    --omit provenance -S tight planned
				same want out
				same free/residual tight/residual
			done
			ace-inspect verify tight/residual >/dev/null
		done
	done
}

# bats test_tags=long
@test "with little memory a sum of many shards has the same bytes" {
	local i
	for i in $(seq 60); do
		mkshards -n 200k -d e$i -x "$i" >f$i
	done
	ace-aggregate --omit provenance f* >want
	limited 90000 ace-aggregate --omit provenance f* >got
	same want got
}

# bats test_tags=long
@test "a rule that needs all values at once says how much memory is missing before it begins" {
	local i
	for i in $(seq 150); do
		mkshards -n 70k -d e$i -x "$i"
	done >in
	ace-recv --spool spool --sync none in >/dev/null
	cp -R spool free
	exits 0 ace-aggregate --spool free --rounds 1 --sync none --rule median
	ace-inspect verify out
	exits 0 limited 90000 timeout "$HANG" ace-aggregate --spool spool \
	    --rounds 1 --sync none --rule median
	says "limit: rule 'median' needs a group of each shard in memory: 150 groups take [0-9]+ MiB, expected at most 43 MiB, half of"
}

@test "ace-recv(1), ace-security(7) and ace-cloud name the limits of the file" {
	ace-recv --spool spool --create
	sed -n 's/^\([a-z]*\) [^ ]*$/\1/p' spool/limits >names
	sed -n '/^\.Ss Limits/,/^\.El/s/^\.It Cm \([a-z]*\) Ar.*/\1/p' \
	    "$ROOT/man/ace-recv.1" | cmp - names
	exits 0 ace-cloud strict --devices 2 --print
	exits 0 ace-cloud add strict relay1 --devices 16
	[ "$(tail -n 2 strict/spool/limits)" = 'weight 16 relay1
contributors 16 relay1' ]
	grep -Pzq 'sets\n\.Cm weight\nand\n\.Cm contributors\nto 1,' "$ROOT/man/ace-security.7"
	[ "$(grep -E '^(weight|contributors) [^ ]*$' strict/spool/limits | tr '\n' ' ')" = 'weight 1 contributors 1 ' ]
}

@test "each kind of feedback waits for a receipt for --wait only" {
	local how
	ace-compress --help | grep -q 'wait TIME .*60s'
	mkshards -N 2 >in
	for how in ef cache; do
		# the first shard is sent; the second one has to wait for its receipt
		exits 5 timeout "$HANG" ace-compress -S $how \
		    --error-feedback $how --window 1 --wait 200ms -c q8 in
		says "shards without a receipt in state '$how': 1 after a wait of 0.2 s, expected fewer than 1"
	done
}

@test "a budget of the size of an empty shard is met; one byte less is refused" {
	mkshards >in
	ace-select -q -b 336 in >planned
	exits 0 ace-compress planned
	frames out | awk '$2 == "SHRD" { a = $1 } $2 == "TAIL" { exit $1 - a != 336 }'
	[ "$(ace-select -b 335 in 2>&1 >planned)" = "" ]
	refuses 5 "shard 'edge1/0': a budget of 335 bytes is too small: an empty shard takes 336" ace-compress planned
}

@test "if --bits is too small for a small model, the message says how many bits are enough" {
	local n bits
	for n in 1 11 90 100 400 3000; do
		mkshards -t w:$n >in
		exits 5 ace-step -S s$n --bits 0.1 in
		says "and this shard has $n values? \(--bits [0-9]+ is enough\)$"
		bits=$(sed -n 's/.*--bits \([0-9]*\) is.*/\1/p' err)
		exits 0 ace-step -S s$n --bits "$bits" in
		[ "$(ace-inspect --format tsv out | awk -F '\t' 'NR == 1 {
		    for (i = 1; i <= NF; i++) if ($i == "nonzero") k = i }
		    NR == 2 { print ($k > 0) }')" = 1 ] || { ace-inspect out; false; }
	done
}
