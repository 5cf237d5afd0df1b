#!/usr/bin/env bash
# Measure which attacks the rules of ace-aggregate withstand.  Nine devices train the
# example's small model through real pipes; BAD of them are attackers (attack.c).  The
# result is the accuracy of the honest devices.
#
#	robust.sh [DIR]		writes DIR/robust-runs.tsv, a line for each run,
#				and DIR/robust.tsv, the table
#
# Variables, with their defaults:
#	SEEDS=3		seeds of each run; all runs with the first seed come first
#	STEPS=200	steps of a run
#	BAD="3 1"	numbers of attackers
#	RULES="..."	rules of ace-aggregate, as NAME=RULE; NAME= is the mean
#	ATTACKS="..."	attacks of attack.c, as KIND=FACTOR
#	CORPUS=FILE	the text; without it, the small one of corpus.sh
#
# Runs that are already in robust-runs.tsv are not repeated, so a stopped script
# continues.
name=robust
: "${PROGRESS:=60}"		# it takes hours
# shellcheck source=examples/pipes.sh
. "$(dirname "$0")/pipes.sh"

devices=9
STEPS=${STEPS:-200} steps=$STEPS
SEEDS=${SEEDS:-3}
# rules that take a number of attackers get 3, the largest number in BAD
RULES=${RULES:-mean= clip=clip:2 trim=trim:3 median=median
    norms=norm-ratio:2 tolerate=norm-ratio:3,center:3,finite}
ATTACKS=${ATTACKS:-sign=4 large=100 little=1.5 inner=0.5 loud=1.9 mimic=1 replay=10
    fixed=1 edge=1 free=0.001 label=1 sybil=1 heavy=4}
model=(--layers 1 --width 32 --heads 2 --context 32 --batch 4 --gradient
    --rate 0.02 --muon 0.02 --windows 256)

# ---- a run ----

# robust_edge K: send shards to attack, which writes the stream for the cloud
robust_edge() {
	local more=()
	case $kind in
	label | sybil) [ "$1" -le $((devices - bad)) ] || more=(--flip-labels) ;;
	esac
	edge "$1" "${more[@]}" >"$dir/up$1"
}

robust_back() { :; }

robust_cloud() {
	local up=() k
	for k in $(seq "$EDGES"); do
		up+=("$dir/up$k")
	done
	attack "$kind" "$bad" "$factor" "${up[@]}" |
	    ace-aggregate --devices "$devices" ${rule:+--rule "$rule"} |
	    tee "$dir"/apply* >/dev/null
	good "${PIPESTATUS[@]}"
}

# one: do the run of kind, factor, bad and rule.  Set line to its loss and top-1, and the
# top-1 of a model of byte frequencies.
one() {
	case $kind in
	none | sign | label | heavy) EDGES=$devices ;;
	sybil) EDGES=$((devices - bad + 1)) ;;
	*) EDGES=$((devices - bad)) ;;
	esac
	options=("${model[@]}" --of "$devices" --seed "$seed")
	run "$what" robust_edge robust_back robust_cloud
	line=$(awk -F '\t' -v OFS='\t' '$1 == "unigram" { u = $6 }
	    $1 == "end" { print $4, $6, u }' "$dir/log")
	rm -rf "$dir"
}

# told: print the settings that identify this run besides the columns
told() { echo "$setup, ${rule:-mean}, $kind $factor"; }

# known: succeed if the run was done before
known() {
	awk -F '\t' -v r="$rulename" -v k="$kind" -v b="$bad" -v s="$seed" -v setup="$(told)" '
	    $1 == r && $2 == k && $3 == b && $4 == s && $NF == setup { found = 1 }
	    END { exit !found }' "$out/robust-runs.tsv"
}

# attempt RULE ATTACK BAD SEED: do this run unless it is known
attempt() {
	rulename=${1%%=*} rule=${1#*=} kind=${2%%=*} factor=${2#*=}
	bad=$3 seed=$4
	what=$rulename-$kind-$bad-$seed
	! known || return 0
	one
	printf '%s\t%s\t%s\t%s\t%s\t%s\n' "$rulename" "$kind" "$bad" \
	    "$seed" "$line" "$(told)" >>"$out/robust-runs.tsv"
}

all() {
	local s r a b
	for s in $(seq "$SEEDS"); do
		for r in $RULES; do
			attempt "$r" none=0 0 "$s"
		done
		for b in $BAD; do
			for a in $ATTACKS; do
				for r in $RULES; do
					attempt "$r" "$a" "$b" "$s"
				done
			done
		done
	done
}

# ---- the table ----

# table: write a line for each attack and number of attackers: the least number of seeds of a
# rule, the mean top-1 of each rule over the seeds, in per cent, and the largest standard
# deviation over the seeds
table() {
	# shellcheck disable=SC2086 # word splitting is intended
	awk -F '\t' -v OFS='\t' -v rules="$(printf '%s ' $RULES)" \
	    -v attacks="none $(printf '%s ' $ATTACKS)" -v setup="$setup, " '
	NR == 1 || index($NF, setup) != 1 { next }
	{ key = $2 OFS $3; seen[key]
	    n[key, $1]++; x[key, $1] += $6; sq[key, $1] += $6 * $6 }
	END {
		k = split(rules, rule, " ")
		line = "attack" OFS "attackers" OFS "seeds"
		for (j = 1; j <= k; j++) {
			sub(/=.*/, "", rule[j])
			line = line OFS rule[j]
		}
		print line, "+-"
		last = split(attacks, attack, " ")
		for (i = 1; i <= last; i++) {
			sub(/=.*/, "", attack[i])
			for (bad = 0; bad < 9; bad++)
				if ((attack[i] OFS bad) in seen)
					row(attack[i] OFS bad)
		}
	}
	function row(key,	line, most, least, j, m, a, d) {
		for (j = 1; j <= k; j++) {
			m = n[key, rule[j]]
			if (m == 0) {
				line = line OFS "-"
				continue
			}
			line = line OFS sprintf("%.1f", x[key, rule[j]] / m)
			if (least == "" || m < least)
				least = m
			a = x[key, rule[j]] / m
			d = 0
			if (m > 1)
				d = (sq[key, rule[j]] - m * a * a) / (m - 1)
			if (d > most * most)
				most = sqrt(d)
		}
		most = least == 1 ? "-" : sprintf("%.1f", most)
		print key, least line, most
	}' "$out/robust-runs.tsv" >"$out/robust.tsv"
	awk -F '\t' '{ for (i = 1; i <= NF; i++) printf "%10s", $i; print "" }' \
	    "$out/robust.tsv"
}

need train attack ace-aggregate awk cmp mkfifo tee
# the largest number of attackers first
BAD=${BAD:-3 1}
out=${1:-.}
mkdir -p "$out"
find_text "$out/text/small" "$here/examples/corpus.sh" small "$out/text"
setup="$devices devices, text $(cksum <"$text" | tr ' ' /), $STEPS steps, ${model[*]},"
setup="$setup $(ace-aggregate --version | head -n 1)"
[ -s "$out/robust-runs.tsv" ] ||
    printf 'rule\tattack\tattackers\tseed\tloss\ttop1\tunigram\tsetup\n' \
    >"$out/robust-runs.tsv"
all
table
