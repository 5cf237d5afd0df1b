# examples/table1.sh, frontier.sh and table1-sweep.sh on a very small model: what they print, and
# that the reckoning is right.
# bats file_tags=long

load helper
patient

prepare() {
	awk 'BEGIN { for (i = 0; i < 9000; i++)
	    printf("the %d of %d is %d\n", i % 10, i % 7, i * i % 97) }' >text
	mkdir tmp
	export CORPUS=$PWD/text TMPDIR=$PWD/tmp STEPS=40 SEEDS=1 \
	    MODEL='--layers 1 --width 32 --heads 2 --context 32 --batch 4'
	unset EDGES TRACE ONLY STEP_MS
}

# table CODE NAME: its status; in time, and nothing left behind
table() {
	exits "$1" timeout "$HANG" "$ROOT/examples/$2.sh" results
	[ -z "$(ls -A tmp)" ]
}

@test "four ways: what each learns and costs" {
	command -v gnuplot >/dev/null || skip "no gnuplot"
	prepare
	table 0 table1
	awk -F '\t' 'NR == 1 { next } { n++; top[$1] = $3; ratio[$1] = $9 }
	    NF != 12 || $3 <= 0 || $8 <= 0 || $12 <= 0 { bad = 1; print }
	    END { exit bad || n != 4 || ratio["FullSync"] != 1 ||
	    ratio["FedAvg"] < 9.8 || ratio["FedAvg"] > 10.2 ||
	    ratio["Top-k"] < 5 || ratio["ACE-Sync"] < 100 }' \
	    results/table1.tsv
	grep -q '</svg>' results/table1.svg
	# as many bytes as values: 4 for each, both ways, for every edge and step
	awk -F '\t' '$1 == "FullSync" { n = $7 + $8 }
	    END { m = 256 * 32 + 32 * 32 + 12 * 32 * 32 + 3 * 32
	    m *= 40 * 4 * 8
	    exit n < m || n > 1.02 * m }' results/table1-runs.tsv
}

@test "the clock: the slowest edge's bytes, its round trip, the computation" {
	command -v gnuplot >/dev/null || skip "no gnuplot"
	prepare
	printf '0\t1\t8\t100\n0\t2\t80\t10\n' >trace
	EDGES=2 STEP_MS=50 STEPS=10 TRACE=trace ONLY=FullSync table 0 table1
	# a megabit and more up and down at 8 Mbit/s, 0.1 s, 0.05 s; ten times
	awk -F '\t' 'NR == 2 { b = ($7 + $8) / 2 / 10 * 8 / 8e6
	    t = 10 * (b + 0.1 + 0.05); exit $11 < t - 0.1 || $11 > t + 0.1 }' \
	    results/table1-runs.tsv
}

@test "the frontier begins with what the table has; more may be told" {
	command -v gnuplot >/dev/null || skip "no gnuplot"
	prepare
	export STEPS=20
	ONLY='FullSync FullSync+--decay,3 ACE-Sync' table 0 table1
	awk -F '\t' '{ v[$1] = $5 } END { exit !(v["FullSync"] > 0 &&
	    v["FullSync"] != v["FullSync+--decay,3"]) }' \
	    results/table1-runs.tsv
	ONLY='FullSync ACE-500 ACE-1000' table 0 frontier
	cut -f 1 results/frontier.tsv | tail -n 3 | paste -sd ' ' >got
	echo 'FullSync ACE-500 ACE-1000' | cmp - got
	[ "$(sed -n '/^ACE-Sync/p' results/table1-runs.tsv | cut -f 2-)" = \
	    "$(sed -n '/^ACE-500/p' results/frontier-runs.tsv | cut -f 2-)" ]
	grep -q '</svg>' results/frontier.svg
}

@test "what was run is not run again; another seed is" {
	command -v gnuplot >/dev/null || skip "no gnuplot"
	prepare
	export STEPS=4
	ONLY='FullSync ACE-1000' table 0 frontier
	cp results/frontier-runs.tsv before
	ONLY='FullSync ACE-1000' table 0 frontier
	same before results/frontier-runs.tsv
	ONLY='FullSync' SEEDS=2 table 0 frontier
	[ "$(wc -l <results/frontier-runs.tsv)" -eq 4 ]
	ONLY=Nothing table 1 frontier
	says "^frontier: no way is called 'Nothing'"
}

@test "the sweep: once, whatever else is told, in the order asked for" {
	command -v gnuplot >/dev/null || skip "no gnuplot"
	prepare
	unset SEEDS
	ONLY='ACE-Sync ACE-Sync+--muon,0.1 ACE-Sync+--rate,0' \
	    table 0 table1-sweep
	cut -f 1,2 results/table1-sweep.tsv | tail -n +2 >got
	printf '%s\t1\n' ACE-Sync ACE-Sync+--muon,0.1 ACE-Sync+--rate,0 |
	    cmp - got
	[ "$(cut -f 3 results/table1-sweep.tsv | sort -u | wc -l)" -gt 2 ]
}

@test "the rows in examples/results/README.md are those of the results" {
	awk -F '\t' -v OFS=' | ' '
	FNR == 1 { next }
	{ top = $4 == "-" ? $3 : $3 " +- " $4 }
	FILENAME ~ /table1/ { print "| " $1, top, $5, $6, $7, $8, $9, $10,
	    $12 " |"; next }
	{ print "| " $1, $2, top, $5, $6, $9, $12 " |" }' \
	    "$ROOT"/examples/results/table1.tsv \
	    "$ROOT"/examples/results/frontier.tsv >rows
	[ "$(wc -l <rows)" -ge 11 ]
	while read -r row; do
		grep -qxF "$row" "$ROOT/examples/results/README.md" || {
			echo "not in examples/results/README.md: $row"
			return 1
		}
	done <rows
	# in short, with a word on what each method does
	tail -n +2 "$ROOT/examples/results/table1.tsv" >short
	while IFS=$'\t' read -r way _ top _ lost _ _ _ ratio _; do
		grep -qE "^\| $way \| [^|]* \| $top \| $lost \| $ratio \|$" \
		    "$ROOT/README.md" || { echo "not in README.md: $way"; return 1; }
	done <short
}
