# examples/robust.sh and attack.c: attacks among honest devices, in real pipes.
# bats file_tags=plain
load helper

PATH=$BUILD/examples:$PATH

@test "attack.c sends the values of each attack" {
	local i kind
	for i in 1 2 3 4; do
		mkshards -n 40 -k ramp -d "e$i" -N 2 >e$i
	done
	# all devices send 1 2 3 ... at step 1, so the mean is 1 2 3 ... and the deviation is 0
	for kind in sign:-2 inner:-2 little:1 mimic:1 label:1 sybil:1 heavy:-2; do
		makes all attack "${kind%:*}" 1 2 e1 e2 e3 e4
		ace-inspect verify all
		ace-cut --step 1 --device attacker1 all >one
		ace-export -f raw one | od -An -v -tf4 -w4 |
		    awk -v f="${kind#*:}" '{ if ($1 != f * NR) bad = 1 }
		    END { exit bad || NR != 40 }'
	done
	ace-inspect one >shown
	grep -qE '^ *weight *8$' shown
	# replay sends the values of the step before
	makes all attack replay 1 1 e1 e2 e3
	ace-cut --step 0 e1 | ace-export -f raw >want
	for i in 0 1; do
		ace-cut --step $i --device attacker1 all | ace-export -f raw >got
		same got want
	done
	# fixed has the norm of the honest values, edge their distance from the last honest mean
	columns() { od -An -v -tf4 -w4; }
	ace-cut --step 1 e1 | ace-export -f raw >now
	for kind in fixed edge; do
		makes all attack $kind 1 1 e1 e2 e3
		for i in 0 1; do
			ace-cut --step $i --device attacker1 all | ace-export -f raw >got$i
		done
		paste <(columns <want) <(columns <now) <(columns <got0) <(columns <got1) |
		    awk -v k=$kind '{ from = k == "edge" ? $1 : 0
			a += ($4 - from) ^ 2; b += ($2 - from) ^ 2; with += ($4 - from) * $2
			s += $3 * $4; p += $3 ^ 2; q += $4 ^ 2 }
			END { c = s / sqrt(p * q)
			exit !(a > 0.999 * b && a < 1.001 * b &&
			    (k == "edge" ? with < 0 : c > 0.999)) }'
	done
	makes all attack large 2 100 e1 e2 e3 e4
	for i in 1 2; do
		ace-cut --step 1 --device attacker$i all >one$i
	done
	exits 1 cmp -s one1 one2
	# honest shards pass unchanged
	ace-cut --step 1 --device e3 all | ace-export -f raw >got
	ace-cut --step 1 e3 | ace-export -f raw >want
	same want got
	exits 2 attack none 1 1 e1 e2
	exits 2 attack poetry 1 1 e1 e2
	refuses 2 "no honest device" attack sign 2 1 e1 e2
	head -c 300 e2 >short
	refuses 3 truncated attack mimic 1 1 e1 short
	[ ! -s out ] || exits 3 ace-inspect verify out
}

# bats test_tags=long
@test "robust.sh makes a table of runs, and continues where it was stopped" {
	awk 'BEGIN { for (i = 0; i < 9000; i++)
	    printf("the %d of %d is %d\n", i % 10, i % 7, i * i % 97) }' >text
	mkdir tmp
	export CORPUS=$PWD/text TMPDIR=$PWD/tmp STEPS=30 SEEDS=1 BAD=3 \
	    RULES='mean= norms=norm-ratio:2' ATTACKS='large=100 label=1 sybil=1'
	exits 0 timeout "$HANG" "$ROOT/examples/robust.sh" results
	[ -z "$(ls -A tmp)" ]
	# noise of a hundred times the norm ruins the mean, but not the rule norms
	awk -F '\t' '$2 == "large" { top[$1] = $6 } END {
	    exit !(top["norms"] > top["mean"] + 5) }' results/robust-runs.tsv
	[ "$(wc -l <results/robust.tsv)" -eq 5 ]
	cp results/robust-runs.tsv before
	exits 0 timeout "$HANG" "$ROOT/examples/robust.sh" results
	same before results/robust-runs.tsv
}

@test "examples/results/README.md has the rows of the results" {
	awk -F '\t' -v OFS=' | ' 'FNR > 1 { $1 = "| " $1; print $0 " |" }' \
	    "$ROOT/examples/results/robust.tsv" >rows
	[ "$(wc -l <rows)" -ge 20 ]
	has_lines examples/results/README.md <rows
}

# leaves WAY K F: print the error of --tolerate F of K devices under the worst attack, the
# error without one, and whether the mean was reversed
leaves() {
	bench-robust "$@" | awk '/ in all / { all = 1; for (i = 1; i <= NF; i++)
		if ($i == "tolerate") at = i; next }
	    all && NF > 3 { v = $(at - 2); if (v ~ /\+/) away = 1; sub(/\+/, "", v) }
	    all && $1 == "none" { none = v; next }
	    all && NF > 3 && v > most { most = v }
	    END { print most, none, away + 0 }'
}
# less WAY K F X: check that no attack gives an error above X or reverses the mean
less() {
	local most none away
	read -r most none away < <(leaves "$@")
	echo "$most of $4, $none of 0.1, $away"
	awk -v m="$most" -v x="$4" -v n="$none" -v a="$away" \
	    'BEGIN { exit !(m > 0 && m <= x && n <= 0.1 && a == 0) }'
}

@test "--tolerate bears three bad devices of eight" {
	less plain 8 3 0.6
}

# bats test_tags=long
@test "--tolerate bears bad devices with momenta, sparse shards and more devices" {
	less plain 8 1 0.35
	less momentum 8 3 0.35
	less plain 20 5 0.35
	less momentum 20 5 0.2
	less sparse 8 1 0.35
	less sparse 8 3 0.6
}
