# examples/table1.sh, frontier.sh and table1-sweep.sh with a very small model: their tables,
# the figures in them, and that no run is made twice.
# bats file_tags=long

load helper
patient

prepare() {
	command -v gnuplot >/dev/null || skip "no gnuplot here"
	awk 'BEGIN { for (i = 0; i < 9000; i++)
	    printf("the %d of %d is %d\n", i % 10, i % 7, i * i % 97) }' >text
	mkdir tmp
	export CORPUS=$PWD/text TMPDIR=$PWD/tmp STEPS=40 SEEDS=1 \
	    MODEL='--layers 1 --width 32 --heads 2 --context 32'
	unset EDGES TRACE ONLY STEP_MS SPLIT LOCAL
}

# table CODE NAME: run examples/NAME.sh, and check that it ends with status CODE and leaves no
# files
table() {
	exits "$1" timeout "$HANG" "$ROOT/examples/$2.sh" results
	[ -z "$(ls -A tmp)" ]
}

# cell TABLE WAY COLUMN: print the cell in the first line of WAY
cell() {
	awk -F '\t' -v w="$2" -v c="$3" 'NR == 1 { for (i = 1; i <= NF; i++)
	    col[$i] = i } $1 == w { print $col[c]; exit }' "results/$1.tsv"
}

# value "I=X; ..." EXPRESSION: check that the awk expression is true for these values
value() { awk "BEGIN { $(tr '\n' ' ' <<<"$1"); exit !($2) }"; }

@test "six methods: compression ratios, bytes and claims" {
	prepare
	ONLY='FullSync Top-k PowerSGD FedAvg DiLoCo ACE-Sync' table 0 table1
	value "f=$(cell table1 FedAvg ratio); k=$(cell table1 Top-k ratio);
	    a=$(cell table1 ACE-Sync ratio)" \
	    "f > 9.8 && f < 10.2 && k > 5 && a > 100"
	[ "$(cell table1 FullSync ratio)" = 1.0 ]
	[ "$(wc -l <results/table1.tsv)" -eq 7 ]
	grep -q '</svg>' results/table1.svg
	# FullSync: 4 bytes per value, edge, step and direction, and a few less downwards, where
	# values are zero
	value "n=$(cell table1-runs FullSync up) +
	    $(cell table1-runs FullSync down); s=$(cell table1 FullSync steps);
	    m=4*8*s*(256 * 32 + 32 * 32 + 12 * 32 * 32 + 3 * 32)" \
	    'n > 0.98 * m && n < 1.02 * m'
	# steps times batch, and so the text, are the same for all methods
	awk -F '\t' 'NR == 1 { next } $3 * $4 != 40 * 8 { bad = 1 } END {
	    exit bad }' results/table1.tsv
	[ "$(cell table1 ACE-Sync steps)" -lt "$(cell table1 FullSync steps)" ]
	# claims about these methods are judged, but one seed is too few to decide
	[ "$(cut -f 1 results/table1-claims.tsv | uniq | paste -sd ' ')" = \
	    'way ACE-Sync' ]
	! grep -q 'holds' results/table1-claims.tsv || false
	says '^table1: 0.1 MB of text to train on, of which 28 % is read, once$'
}

@test "the time of a run: bytes of the slowest edge, its latency, the computation" {
	prepare
	printf '0\t1\t8\t100\n0\t2\t80\t10\n' >trace
	EDGES=2 STEP_MS=50 STEPS=10 TRACE=trace \
	    ONLY=FullSync+--batch,4 table 0 table1
	# 20 steps, each with its bytes up and down at 8 Mbit/s, 0.1 s of latency and 0.05 s of
	# computation, and a little for the programs; a batch of 4 on four edges is one of 8 on each
	# of two
	awk -F '\t' 'NR == 2 { b = ($11 + $12) / 2 / 20 * 8 / 8e6
	    t = 20 * (b + 0.1 + 0.05); exit $15 < t - 0.1 || $15 > t + 2 }' \
	    results/table1-runs.tsv
	# the wait per step, and the bytes per pass over the text, of which 20 steps of a batch of 8
	# on 2 edges read 32 bytes each
	awk -F '\t' -v all="$(wc -c <text)" 'NR == 1 { for (i = 1; i <= NF; i++) c[$i] = i; next }
	FNR == NR { wait = $c["wait ms"]; pass = $c["MB a pass"]; next }
	FNR == 2 { w = 1000 * $15 / 20 - 50
	    p = ($11 + $12) / 1e6 * (all - int(all * 0.04)) / (20 * 8 * 2 * 32)
	    exit !(wait > 100 && wait < w + 1 && wait > w - 1 &&
		pass < p + 0.01 && pass > p - 0.01) }' \
	    results/table1.tsv results/table1-runs.tsv
	# the setup of the run contains the text's checksum
	awk -F '\t' -v sum="$(cksum <text | tr ' ' /)" '
	    NR == 2 { exit !index($NF, "2 edges") || !index($NF, sum) }' results/table1-runs.tsv
}

@test "the time of the coding programs is part of a round" {
	prepare
	mkdir bin bin/examples
	ln -s "$BUILD"/ace-* bin/
	ln -s "$BUILD/examples/train" bin/examples/
	rm bin/ace-expand
	cat >bin/ace-expand <<-END
	#!/bin/bash
	"$BUILD/ace-expand" "\$@"
	for ((i = 0; i < 2000000; i++)); do :; done
	END
	chmod +x bin/ace-expand
	export ONLY=ACE-Sync STEPS=10 EDGES=1 STEP_MS=0
	table 0 table1
	mv results quick
	BUILD=$PWD/bin table 0 table1
	value "a=$(awk -F '\t' 'NR == 2 { print $15 }' quick/runs.tsv);
	    b=$(awk -F '\t' 'NR == 2 { print $15 }' results/runs.tsv)" \
	    'b > a + 0.5'
}

@test "the scripts share their runs; ONLY may change a method" {
	prepare
	export STEPS=20
	ONLY='FullSync FullSync+--decay,3 ACE-Sync' table 0 table1
	[ "$(cell table1-runs FullSync loss)" != \
	    "$(cell table1-runs FullSync+--decay,3 loss)" ]
	ONLY='FullSync ACE-500 ACE-1000' table 0 frontier
	# one run under two names, and one new run
	[ "$(wc -l <results/runs.tsv)" -eq 5 ]
	[ "$(cell frontier-runs ACE-500 loss)" = \
	    "$(cell table1-runs ACE-Sync loss)" ]
	cut -f 1 results/frontier.tsv | tail -n 3 | paste -sd ' ' >got
	echo 'FullSync ACE-500 ACE-1000' | cmp - got
	grep -q '</svg>' results/frontier.svg
	# a method with other options in ONLY
	ONLY='ACE-Sync+--batch,8,--interval,5,--bits,3' table 0 table1
	[ "$(awk 'NR == 2 { print $2, $3, $4, $5 }' results/table1.tsv)" = \
	    '5 8 20 3' ]
	# different bits in the two directions
	ONLY='ACE-gradient+--bits,6/2' table 0 table1
	[ "$(awk 'NR == 2 { print $2, $3, $5 }' results/table1.tsv)" = '1 32 6/2' ]
	value "u=$(cell table1-runs ACE-gradient+--bits,6/2 up);
	    d=$(cell table1-runs ACE-gradient+--bits,6/2 down)" \
	    'u > 2 * d && u < 4 * d'
}

@test "a run is made once for each seed, text, split, model and number of steps" {
	prepare
	export STEPS=8 ONLY=FullSync
	table 0 frontier
	cp results/runs.tsv before
	table 0 frontier
	same before results/runs.tsv
	SEEDS=2 table 0 frontier
	[ "$(wc -l <results/runs.tsv)" -eq 3 ]
	[ "$(cell frontier FullSync seeds)" -eq 2 ]
	# changes of the text, the split, the model and the steps
	head -c 140000 text >other
	CORPUS=$PWD/other table 0 frontier
	SPLIT=interleaved table 0 frontier
	MODEL='--layers 1 --width 24 --heads 2 --context 32' table 0 frontier
	STEPS=12 table 0 frontier
	[ "$(wc -l <results/runs.tsv)" -eq 7 ]
	[ "$(cut -f 9 results/runs.tsv | sort -u | wc -l)" -eq 7 ]
	# the table has only the runs that were asked for
	[ "$(wc -l <results/frontier-runs.tsv)" -eq 2 ]
	# as if stopped when the run's curve was written, but not its line
	sed -i '$d' results/runs.tsv
	STEPS=12 table 0 frontier
	[ "$(cut -f 1,2,3 results/curves.tsv | sort | uniq -d | wc -l)" -eq 0 ]
	[ "$(wc -l <results/runs.tsv)" -eq 7 ]
}

@test "gossip: each edge sends to two neighbours, without a cloud" {
	prepare
	ONLY='FullSync-AdamW D-PSGD AdaSync FedProx' table 0 table1
	value "g=$(cell table1-runs D-PSGD up); d=$(cell table1-runs D-PSGD down);
	    f=$(cell table1-runs FullSync-AdamW up);
	    g1=$(cell table1-runs D-PSGD top1);
	    f1=$(cell table1-runs FullSync-AdamW top1)" \
	    'g > 1.98 * f && g <= 2 * f && d > 1.98 * f && d < 2.02 * f && g1 > f1 - 5'
	says '^table1: D-PSGD-1: .* the 4 edges hold models of their own$'
	says '^table1: FedProx-1: .* the 4 edges hold the same model$'
	# the interval is the policy's, at least half of 10
	value "r=$(cell table1-runs AdaSync rounds)" 'r >= 2 && r <= 4'
	EDGES=2 ONLY=D-PSGD table 1 table1
}

@test "DeMo and SparseLoCo: each edge gets the other edges' shards unchanged" {
	local way
	prepare
	ONLY='FullSync-AdamW DeMo SparseLoCo' table 0 table1
	for way in DeMo SparseLoCo; do
		value "u=$(cell table1-runs $way up); d=$(cell table1-runs $way down);
		    r=$(cell table1-runs $way rounds);
		    f=$(cell table1-runs FullSync-AdamW up)" \
		    'd == 3 * u && u * 5 < f && r == ("'$way'" == "DeMo" ? 40 : 3)'
		says "^table1: $way-1: .* the 4 edges hold the same model\$"
		value "a=$(cell table1-curves $way loss); b=$(cell table1-runs $way loss)" \
		    'b < a - 0.2'
	done
}

@test "1-bit Adam sends dense values, then signs; MuLoCo codes local steps in two bits" {
	local way
	prepare
	ONLY='FullSync-AdamW 1-bit-Adam MuLoCo' table 0 table1
	# of 40 rounds, 6 take the bytes of FullSync, and 34 at most 1/24 of that.  MuLoCo takes two
	# bits per value
	for way in up down; do
		value "x=$(cell table1-runs 1-bit-Adam $way); r=$(cell table1-runs 1-bit-Adam rounds);
		    f=$(cell table1-runs FullSync-AdamW $way) / 20" \
		    'r == 40 && x > 6 * f && x < (6 + 34 / 24) * f'
		value "x=$(cell table1-runs MuLoCo $way); r=$(cell table1-runs MuLoCo rounds);
		    f=$(cell table1-runs FullSync-AdamW $way) / 20" \
		    'r == 2 && x < r * f / 12'
	done
	for way in 1-bit-Adam MuLoCo; do
		says "^table1: $way-1: .* the 4 edges hold the same model\$"
		value "a=$(cell table1-curves $way loss); b=$(cell table1-runs $way loss)" \
		    'b < a - 0.2'
	done
}

@test "relays add and code the shards of their edges, and their bytes are counted" {
	prepare
	export STEPS=8
	ONLY='ACE-AdamW-4 ACE-AdamW-4+--relays,2 Paper-4 Paper-4+--relays,1' table 0 table1
	# with the same bytes on every link, two relays add half to those of four edges, one a quarter
	for k in up down; do
		value "a=$(cell table1-runs ACE-AdamW-4 $k);
		    b=$(cell table1-runs ACE-AdamW-4+--relays,2 $k);
		    c=$(cell table1-runs Paper-4 $k);
		    d=$(cell table1-runs Paper-4+--relays,1 $k)" \
		    'b > 1.4 * a && b < 1.6 * a && d > 1.15 * c && d < 1.35 * c'
	done
	# with eight bits per value the model is nearly the same
	value "a=$(cell table1-runs ACE-AdamW-4 ppl);
	    b=$(cell table1-runs ACE-AdamW-4+--relays,2 ppl)" \
	    'a != b && b < 1.02 * a && b > 0.98 * a'
	ONLY=ACE-AdamW-4+--relays,3 table 1 table1
	says "^table1: 'ACE-AdamW-4\+--relays,3': --relays needs a code paper:... or --bits, and a divisor of the 4 edges"
	ONLY=FullSync+--relays,2 table 1 table1
}

@test "edges of a cluster share a plan, edges of a tier a link" {
	prepare
	export STEPS=8
	ONLY='Paper-4 Paper-4+--clusters,0 Paper-4+--clusters,2 ACE-AdamW-4 ACE-AdamW-4+--link,tier' \
	    table 0 table1
	says '^table1: Paper-4\+--clusters,0-1: clusters edge[1-4](;edge[1-4]){3}$'
	says '^table1: Paper-4\+--clusters,2-1: clusters edge[1-4](,edge[1-4]){3}$'
	# a plan per cluster gives another model than one per edge
	[ "$(cell table1-runs Paper-4 loss)" != "$(cell table1-runs Paper-4+--clusters,2 loss)" ]
	[ "$(cell table1-runs ACE-AdamW-4 up)" -ne \
	    "$(cell table1-runs ACE-AdamW-4+--link,tier up)" ]
	ONLY=ACE-AdamW-4+--clusters,0 table 1 table1
	says "^table1: 'ACE-AdamW-4\+--clusters,0': --clusters needs a code paper:...\$"
}

@test "the sweep runs each setting once, in order, and lists the best of each method" {
	prepare
	unset SEEDS
	ONLY='ACE-Sync+--rate,0,--muon,0 ACE-Sync FullSync' table 0 table1-sweep
	cut -f 1,6 results/table1-sweep.tsv | tail -n +2 >got
	printf '%s\t1\n' ACE-Sync+--rate,0,--muon,0 ACE-Sync FullSync |
	    cmp - got
	[ "$(cut -f 1 results/table1-sweep-best.tsv | paste -sd ' ')" = \
	    'method ACE-Sync FullSync' ]
}

# listed LIST...: print name, batch, interval, steps, code and trainer options of each method
# in LIST, which a shell expands
listed() {
	cat >list <<-END
	name=x EDGES=4 SPLIT=parts common= model= valid= seed=1 points=25
	sequences=160000
	. "$ROOT/examples/ways.sh"
	$(sed -n '/^once()/,/^}/p; /^take()/,/^}/p; /^way()/,/^}/p' \
	    "$ROOT/examples/compare.sh")
	die() { echo "\$*"; exit 1; }
	for w in $*; do
		way "\$w"
		echo "\$w \$batch \$H \$steps \$code \$given"
	done
	END
	exits 0 bash list
}

@test "values of options in the name of a method may contain commas" {
	listed 'ACE-Sync+--bits,paper:count:0.2=f32,1=qsgd:4,--decay,0.3+--interval,5'
	grep -qE ' 5 [0-9]+ paper:count:0.2=f32,1=qsgd:4 .*--decay 0.3( |$)' out
	listed 'FullSync+--gradient,--rate,0.01'
	grep -qE ' --gradient( .*)? --rate 0.01( |$)' out
}

@test "the sweep's settings read the same text, differ, and vary batch and rate" {
	listed '$(grid)'
	awk '$2 * $4 != 40000 { print; bad = 1 } END { exit bad || NR < 50 }' out
	# no setting occurs twice, and each method has several batches and rates
	[ "$(cut -d ' ' -f 2- out | sort | uniq -d | wc -l)" -eq 0 ]
	for w in FullSync Top-k PowerSGD FedAvg DiLoCo ACE-Sync; do
		grep "^$w+" out >mine
		[ "$(cut -d ' ' -f 2 mine | sort -u | wc -l)" -ge 3 ]
		[ "$(grep -o -e '--rate [0-9.]*' mine | sort -u | wc -l)" -ge 3 ]
	done
}

@test "a message says that a text is read more than once" {
	prepare
	STEPS=200 ONLY='FullSync' LOCAL=1 table 0 table1
	says 'which is read 1.4 times \(fewer STEPS, or more with CORPUS=FILE,'
	[ "$(cell table1 FullSync batch)" -eq 16 ]
}

@test "an unknown method, split or model is refused before the first run" {
	prepare
	ONLY=Nothing table 1 frontier
	says "^frontier: method 'Nothing' is unknown: ways.sh lists all"
	ONLY=FullSync+--interval,5 table 1 table1
	says "^table1: 'FullSync\+--interval,5': --gradient exchanges at every step"
	for w in ACE-Sync+--bits,few ACE-Sync+--batch,0 FedAvg+--interval,x \
	    ACE-Sync+--bits,1/ ACE-Sync+--bits,1/dense; do
		ONLY=$w table 1 table1
		says "^table1: '${w/+/\\+}' has batch .*, code .*: expected a batch"
	done
	SPLIT=halves table 1 table1
	says "^table1: SPLIT 'halves' is unknown"
	MODEL="$MODEL --batch 4" table 1 table1
	says '^table1: MODEL has --batch, but each method has its own'
	STEPS=1 ONLY=FullSync+--batch,4096 table 1 table1
	says 'STEPS=[0-9]* is too small for one step with batch [0-9]* on [0-9]* edges: give more STEPS'
	[ "$(wc -l <results/runs.tsv)" -eq 1 ]
}

@test "examples/results/README.md has the rows of the results, and these fit their runs" {
	local r=$ROOT/examples/results all
	all=$(cd "$r" && grep -l ^method -- *-runs.tsv | sed 's/-runs.tsv$//' |
	    grep -vE -- '-(paper-parts|replay-less|effort)$')
	for t in $all; do
		[ ! -e "$r/$t.tsv" ] || awk -F '\t' -v OFS=' | ' '
		function with(x, y) { return y == "-" ? x : x " +- " y }
		NR > 1 { print "| " $1, $2, $3, $5, $6, $7, with($8, $9), $10,
		    with($11, $12), with($13, $14), $17, $20 \
		    (NF > 20 ? OFS $21 OFS $22 : "") " |" }' \
		    "$r/$t.tsv"
	done >rows
	[ "$(wc -l <rows)" -ge 11 ]
	awk -f "$ROOT/examples/tuned.awk" "$r"/frontier-rivals{,-rates}-runs.tsv >>rows
	has_lines examples/results/README.md <rows
	# each table is made again from its runs
	for t in $all; do
		[ -e "$r/$t.tsv" ] || continue
		awk -v list="$(tail -n +2 "$r/$t.tsv" | cut -f 1 | paste -sd ' ')" \
		    -f "$ROOT/examples/student.awk" -f "$ROOT/examples/paired.awk" \
		    "$r/$t-runs.tsv" "$r/$t-curves.tsv" | cmp - "$r/$t.tsv"
	done
	# the files of a text's list have the size of the runs' text
	for t in $all; do
		[ -e "$r/$t-text.tsv" ] || continue
		n=$(awk -F '\t' '{ n += $2 } END { print n }' "$r/$t-text.tsv")
		awk -F '\t' -v n="/$n," 'NR > 1 && !index($NF, n) { exit 1 }
		    NR > 1 { split($NF, f, ","); text[f[3]] }
		    END { for (k in text) all++; exit all != 1 }' "$r/$t-runs.tsv"
	done
	# the same for the pinned text, fresh.tsv
	awk -F '\t' 'NR == 1 { split($3, s, " "); next } { n += $2 }
	    END { exit n != s[2] }' "$r/fresh.tsv"
	text=$(awk -F '\t' 'NR == 1 { sub(" ", "/", $3); print $3 }' "$r/fresh.tsv")
	for t in table1 frontier frontier-{short,pinned-sixteen,sixtyfour-pinned,replay-less} \
	    frontier-{rivals,rivals-sixteen,rivals-rates,size-small,size-million,size-rates}; do
		[ "$(tail -n +2 "$r/$t-runs.tsv" | grep -vc "text $text,")" -eq 0 ]
	done
}

@test "claims.sh finds the figures of README.md in the results, and detects wrong ones" {
	exits 0 "$ROOT/examples/claims.sh"
	[ "$(grep -c '^    .*seeds: [0-9]' out)" -ge 20 ]
	grep -qxF '    0.46: mean of ACE-100+--form,moment,--realign,0.5 in frontier.tsv, seeds: 3' out
	# each row of the README's table is a claim, except the row of digits.py (docs.bats)
	grep '^| [0-9]* | [0-9,]* | ' "$ROOT/README.md" >rows
	[ "$(grep -c '^| ' "$ROOT/examples/results/claims.tsv")" -eq $(($(wc -l <rows) - 1)) ]
	sed 's/| 0\.46 (/| 0.22 (/' "$ROOT/README.md" >false.md
	exits 1 "$ROOT/examples/claims.sh" false.md
	[ "$(grep -c 'README does not say this' out)" -eq 1 ]
	exits 4 "$ROOT/examples/claims.sh" none.md
	# remove the sweep of one table's baseline, and the setup of another table's runs
	cp -r "$ROOT/examples/results" doctored
	rm doctored/frontier-size-rates-runs.tsv
	sed -i 's/^It gains 1\.17 points (0\.79 to/It gains 1.17 points (77.77 to/' doctored/README.md
	exits 1 "$ROOT/examples/claims.sh" "$ROOT/README.md" doctored
	[ "$(grep -c '^frontier-[a-z-]*: its baseline ' out)" -eq 2 ]
	[ "$(grep -c '^results/README.md, line .*: 77.77 is in no table that this part names$' out)" -eq 1 ]
	grep -q '^frontier-size-small: its baseline .* has 2 settings' out
	sed -i 's/\t[^\t]*$//' doctored/frontier-size-million-runs.tsv
	exits 3 "$ROOT/examples/claims.sh" "$ROOT/README.md" doctored
	says '^claims.sh: .* lacks frontier-size-million-runs.tsv with a column setup: make its runs again$'
}
