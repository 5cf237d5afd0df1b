# examples/paired.awk compares runs of the same seed: means, differences, confidence
# intervals, and whether claims hold.
# bats file_tags=plain
load helper

paired() {
	exits 0 awk "$@" -f "$ROOT/examples/student.awk" \
	    -f "$ROOT/examples/paired.awk" runs curves
}

# cell WAY COLUMN: print a cell of the table in `out'; COLUMN +-2 is the second column +-
cell() {
	awk -F '\t' -v w="$1" -v c="$2" 'NR == 1 { for (i = 1; i <= NF; i++) {
	    k = ++n[$i]; col[k > 1 ? $i k : $i] = i } }
	    $1 == w { print $col[c] }' out
}

# runs: read lines of method, seed, top-1, perplexity, loss and bytes in each direction; print
# a table of runs
runs() {
	printf 'method\tseed\tH\tbatch\tsteps\tcode\ttop1\tppl\tloss\tup\tdown\tnear\ts_near\ts\n'
	while read -r m s t p l b; do
		printf '%s\t' "$m" "$s" 1 8 10 dense "$t" "$p" "$l" "$b" "$b" \
		    0.5 5
		echo 10
	done
}

# curves: read lines of method, seed, share and loss; print a table of curves
curves() {
	printf 'method\tseed\tshare\tloss\n'
	tr ' ' '\t'
}

@test "with the setup of the runs, the table has the wait per step and the bytes per pass" {
	echo 'A 1 50 5 1.5 3000000' | runs |
	    awk -v OFS='\t' 'NR == 1 { print $0, "setup"; next }
	    { print $0, "2 edges, parts, text 12345/10000, 0.1 kept, --layers 1 " \
	    "--context 32 --width 8, network 99/88, 25 ms, ace 1, batch 8, 10 steps" }' >runs
	curves </dev/null >curves
	paired -v list=A
	# wait: 10 s for 10 steps, less 25 ms per step to compute.  Bytes: 3 MB in each direction
	# for 10 steps of 8 x 32 bytes on two edges, of a text of 9000
	[ "$(cell A 'wait ms') $(cell A 'MB a pass')" = "975 10.55" ]
	[ "$(head -n 1 out | tr '\t' '\n' | wc -l)" -eq 22 ]
}

# sleepers: print the hours of sleep, plus 50, that ten patients gained with two drugs
# (Student 1908).  R's t.test gives a mean difference of 1.58, from 0.7001142 to 2.4598858.
sleepers() {
	set -- 0.7 1.9 -1.6 0.8 -0.2 1.1 -1.2 0.1 -0.1 -0.1 3.4 4.4 3.7 5.5 \
	    0.8 1.6 0 4.6 2 3.4
	for s in $(seq 10); do
		echo "A $s $(awk "BEGIN { print 50 + $1 }") 5 1.6 10"
		echo "FullSync $s $(awk "BEGIN { print 50 + $2 }") 4 1.5 1000"
		shift 2
	done
}

@test "a known answer: Student's data about sleep" {
	sleepers | runs >runs
	curves </dev/null >curves
	paired -v list='FullSync A'
	[ "$(cell A lost) $(cell A +-)" = '1.58 0.88' ]
	[ "$(cell A 'more %') $(cell A +-2) $(cell A ratio)" = \
	    '25.00 0.00 100.0' ]
	[ "$(cell FullSync lost) $(cell FullSync 'top-1 %')" = '0.00 52.33' ]
	# the same with the lines in another order
	{ head -n 1 runs; tail -n +2 runs | sort -r; } >other
	mv out first
	mv other runs
	paired -v list='FullSync A'
	same first out
	# one line per method of the list, in its order
	paired -v list='A FullSync B'
	[ "$(cut -f 1 out | paste -sd ' ')" = 'method A FullSync' ]
}

@test "Student's t for 11, 29 and 99 degrees of freedom, beyond its table" {
	curves </dev/null >curves
	# half of the differences are 1, half are -1; t is R's qt(0.975, n - 1)
	for n in '12 0.664' '30 0.380' '100 0.199'; do
		set -- $n
		seq "$1" | awk '{ print "FullSync", $1, 50, 5, 1, 1
		    print "A", $1, 50 + ($1 % 2 ? 1 : -1), 5, 1, 1 }' |
		    runs >runs
		paired -v list='FullSync A' -v claims='A top-1 1 1'
		[ "$(cell A mean) $(cell A from) $(cell A to)" = \
		    "0.000 -$2 $2" ]
	done
}

@test "only seeds that both methods have are compared; one pair has no interval" {
	curves </dev/null >curves
	runs >runs <<-END
	FullSync 1 60 5 1.5 10
	FullSync 2 70 5 1.5 10
	A 2 69 5 1.5 10
	A 3 10 5 1.5 10
	B 9 10 5 1.5 10
	END
	paired -v list='FullSync A B'
	[ "$(cell A lost) $(cell A +-) $(cell A seeds)" = '1.00 - 2' ]
	[ "$(cell B lost) $(cell B +-)" = '- -' ]
	paired -v list='FullSync A' -v claims='A top-1 2 2 C top-1 0 0'
	[ "$(cell A verdict)" = 'not decided' ]
	[ "$(wc -l <out)" -eq 2 ]
}

@test "the reference is the best FullSync, or the first method if there is none" {
	curves </dev/null >curves
	runs >runs <<-END
	FullSync+--batch,8 1 60 5 1.6 10
	FullSync+--batch,16 1 61 5 1.5 20
	FullSync+--batch,32 1 62 5 1.7 40
	A 1 58 5 1.4 2
	B 1 57 5 1.3 1
	END
	paired -v list='A FullSync+--batch,8 FullSync+--batch,16 FullSync+--batch,32'
	[ "$(cell A lost) $(cell A ratio)" = '3.00 10.0' ]
	paired -v list='A B'
	[ "$(cell B lost) $(cell B ratio)" = '1.00 2.0' ]
}

@test "the share of the text after which the reference's last loss is reached" {
	runs >runs <<-END
	FullSync 1 60 5 1.5 10
	FullSync 2 60 5 1.4 10
	A 1 60 5 1.4 10
	A 2 60 5 1.3 10
	B 1 60 5 1.4 10
	B 2 60 5 1.6 10
	END
	curves >curves <<-END
	A 1 0 5
	A 1 0.5 2
	A 1 0.75 1.6
	A 1 1 1.4
	A 2 0 5
	A 2 0.6 1.5
	A 2 0.7 1.3
	A 2 0.8 1.9
	A 2 1 1.3
	B 1 0 5
	B 1 1 1.4
	B 2 0 5
	B 2 1 1.6
	FullSync 1 0 5
	FullSync 1 1 1.5
	FullSync 2 0 5
	FullSync 2 1 1.4
	END
	# halfway between 0.75 and 1, and halfway between 0.6 and 0.7
	paired -v list='FullSync A B'
	[ "$(cell A 'text to its loss')" = 0.762 ] ||
	    [ "$(cell A 'text to its loss')" = 0.763 ]
	[ "$(cell FullSync 'text to its loss')" = 1.000 ]
	[ "$(cell B 'text to its loss')" = - ]
	paired -v list='FullSync A B' -v claims='A text 3 3 B text 3 3'
	[ "$(cell A verdict)" = holds ]
	[ "$(cell B verdict)" = 'does not hold: not reached' ]
}

@test "the interval decides whether a claim holds, does not hold, or is not decided" {
	curves </dev/null >curves
	sleepers | runs >runs
	# the mean is 1.58, the interval from 0.700 to 2.460
	for c in '1.6 2.5 holds' '1.5 2.5 not decided' '1.6 2.4 not decided' \
	    '0.71 9 not decided' '0.69 9 does not hold'; do
		set -- $c
		most=$1 end=$2
		shift 2
		paired -v list='FullSync A' -v claims="A top-1 $most $end"
		[ "$(cell A from) $(cell A to)" = '0.700 2.460' ]
		[ "$(cell A verdict)" = "$*" ] || { cat out; false; }
	done
}

@test "a diverged run has no mean, and claims about it do not hold" {
	curves </dev/null >curves
	runs >runs <<-END
	FullSync 1 60 5 1.5 10
	FullSync 2 60 5 1.5 10
	FullSync-AdamW 1 2 inf nan 10
	FullSync-AdamW 2 60 5 1.4 10
	A 1 60 5 1.5 10
	A 2 2 nan -nan 10
	END
	paired -v list='FullSync FullSync-AdamW A'
	[ "$(cell A lost) $(cell A 'top-1 %') $(cell A perplexity)" = '- - -' ]
	[ "$(cell FullSync lost)" = 0.00 ]
	paired -v list='FullSync A' -v claims='A top-1 90 90'
	[ "$(cell A verdict)" = 'does not hold: diverged' ]
}

# told: read lines of method, seed, loss, edges, batch, steps and further options; print a
# table of runs with their setup
told() {
	printf 'method\tseed\tloss\tsetup\n'
	while read -r m s l e b n more; do
		printf '%s\t' "$m" "$s" "$l"
		echo "$e edges, parts, text 12345/10000, 0.1 kept, --layers 1 --width 8," \
		    "network 99/88, 25 ms, ace 1, batch $b, $n steps, dense," \
		    "--gradient --rate $more, level"
	done
}

# swept: run swept.awk on the tables in this directory
swept() {
	exits 0 awk -f "$ROOT/examples/swept.awk" t.tsv ./*-runs.tsv
}

@test "swept.awk refuses a baseline without a sweep of settings at the length of its runs" {
	printf 'method\nFullSync\nA\n' >t.tsv
	told >t-runs.tsv <<-END
	FullSync 1 1.5 4 16 100 0.02 --muon 0.03
	FullSync 2 1.6 4 16 100 0.02 --muon 0.03
	END
	# no sweep at all
	swept
	grep -qx 't: its baseline FullSync has 1 settings and 1 batches at this length.*' out
	# runs of twice the length, another optimiser or another seed do not count
	told >rates-runs.tsv <<-END
	B 1 1.5 4 16 200 0.01 --muon 0.03
	B 1 1.5 4 8 400 0.01 --muon 0.03
	C 1 1.5 4 16 100 0.01
	C 1 1.5 4 8 200 0.02
	D 2 1.5 4 16 100 0.01 --muon 0.03
	D 2 1.5 4 8 200 0.01 --muon 0.03
	END
	swept
	grep -q '1 settings and 1 batches at this length.*, 6400 sequences' out
	# three settings in two files, of which FullSync is the best within noise
	told >rates-runs.tsv <<-END
	B 1 1.486 4 16 100 0.01 --muon 0.03
	END
	told >batch-runs.tsv <<-END
	B 1 1.7 4 8 200 0.01 --muon 0.03
	END
	swept
	[ ! -s out ]
	# another setting is better
	sed -i 's/1\.7/1.47/' batch-runs.tsv
	swept
	grep -qF 'FullSync has a loss of 1.5, but at this length batch 32, --rate 0.01' out
	# an impossible setting does not count: sixteen devices cannot share a batch of eight
	sed -i 's/\.47\t4 edges\(.*\) batch 8, 200/.47\t1 edges\1 batch 8, 800/' batch-runs.tsv
	sed -i 's/4 edges\(.*\) batch 16,/16 edges\1 batch 4,/' t-runs.tsv
	swept
	grep -q 'has 2 settings and 1 batches' out
	# the best FullSync of the table is the baseline
	printf 'FullSync-8\n' >>t.tsv
	echo 'FullSync-8 1 1.4 4 8 200 0.02 --muon 0.03' | told | tail -n 1 >>t-runs.tsv
	swept
	[ ! -s out ]
}
