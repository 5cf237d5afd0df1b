#!/bin/bash
# Measure DynaComm's cuts in real pipes: the example trainer sends gradients, the last
# layer first, while it computes the others.
#
#	overlap.sh [DIR]	writes DIR/overlap.tsv (default .)
#
# One device sends gradients through ace-compress and a link with a given rate and cost
# per transmission, and gets them back immediately.  The trainer measures the time of each
# layer, and this script the time of each transmission; ace-advise dynacomm computes the
# cuts from both.  For the last row of the table, ace-policy --cuts computes them during
# the run, from the shards so far, and the trainer obeys them.
#
# Variables, with their defaults:
#	RATE=25		the link's Mbit/s
#	COST=10		the milliseconds that each transmission costs besides its bytes
#	BUDGET=SIZE	send SIZE bytes per step with ace-step and a state, and write
#			DIR/overlap-state.tsv; without it, 16 bits per value and no state
#	STEPS=6		steps of a run
#	TRIES=5		runs of each row; the fastest one counts
#	MODEL="..."	the trainer's options
set -euo pipefail
here=$(cd "${0%/*}" && pwd)
build=${BUILD:-$here/../build}
PATH=$build:$build/examples:$build/tests:$PATH
export OPENBLAS_NUM_THREADS=1 LC_ALL=C
out=${1:-.}
mkdir -p "$out"
work=$(mktemp -d) || exit 4
trap 'rm -rf "$work"' EXIT
rate=${RATE:-25} cost=${COST:-10} steps=${STEPS:-6} tries=${TRIES:-5}
read -ra model <<<"${MODEL:---layers 4 --width 96 --heads 3 --context 64 --batch 48}"
cat "$here"/../lib/*/*.c >"$work/text"

table=overlap share=0.5
[ -z "${BUDGET:-}" ] || table=overlap-state

coder() {
	if [ -n "${BUDGET:-}" ]; then
		ace-step -S "$work/state" -b "$BUDGET"
	else
		ace-compress -c f16
	fi
}

decides() { ace-policy --cuts "${dt}s" --bandwidth "${bits}bit" --ratio 2,2 |
    tee "$work/decided"; }

# run CUTS STEPS: print the seconds; CUTS `policy': the policy decides the cuts from step 3 on
run() {
	local from cuts=(--cuts "$1") policy=cat
	if [ "$1" = policy ]; then
		cuts=(--cuts none --clock --policy)
		policy=decides
	fi
	rm -rf "$work/back" "$work/state"
	mkfifo "$work/back"
	from=$EPOCHREALTIME
	# open both ends of the circle before any program runs, so that when one program
	# ends all others see an end of input
	# shellcheck disable=SC2094 # the circle is intended
	train "${model[@]}" --steps "$2" "${cuts[@]}" --rate 0.001 \
	    --profile "$work/profile" --apply - --clip 0 \
	    "$work/text" <"$work/back" | $policy | coder |
	    late -r "${rate}e6" -c "$(awk "BEGIN { print $cost / 1000 }")" \
	    -l "$work/sent" >"$work/back"
	awk "BEGIN { print $EPOCHREALTIME - $from }"
}

# fit: fit a line to seconds over bytes; print bit/s and the seconds per transmission
fit() {
	awk '{ n++; x += $1; y += $2; xx += $1 * $1; xy += $1 * $2 }
	    END { b = (n * xy - x * y) / (n * xx - x * x)
		printf("%.0f %.6f\n", 8 / b, (y - b * x) / n) }' "$work/sent"
}

# measure the link and the layers in a run with one transmission per layer
run all "$steps" >"$work/all"
[ -z "${BUDGET:-}" ] || share=$(awk -v sent="$(tail -n +2 "$work/sent" | awk '{ n += $1 }
    END { print n }')" -v n="$((steps - 1))" 'NR > 1 { all += $2 }
    END { print sent / n / all }' "$work/profile")
awk -v share="$share" 'NR > 1 { $2 = $2 * share } { print $1, $2, $3 }' \
    "$work/profile" >"$work/table"
read -r bits dt <<<"$(fit)"
echo "link: $bits bit/s, ${dt} s a transmission, as measured"
ace-advise dynacomm --bandwidth "${bits}bit" --cuts "${dt}s" "$work/table" |
    grep '^backward' >"$work/plan"

cuts() { awk -v way="$1" '$2 == way { print $6 }' "$work/plan"; }

ways='sequential layers ibatch optimal'
# run the rows in turn, and take the fastest of several tries, since other work may slow the
# machine; a run of one step (policy: three) measures the time to start
for ((i = 0; i < tries; i++)); do
	run none 1 >>"$work/begin"
	for w in $ways; do run "$(cuts "$w")" $((steps + 1)) >>"$work/$w"; done
	run policy 3 >>"$work/begin.policy"
	run policy $((steps + 3)) >>"$work/policy"
done
# the last cuts of the policy, as a line of the plan
ace-inspect -v "$work/decided" | awk '{ sub(/^pOLi */, "") }
    sub(/^cuts=/, "") { k = $0; n = gsub(/,/, "", k) + 1; cuts = $0 }
    sub(/^cuts.seconds=/, "") { t = $0 }
    END { print "backward", "policy", t, "-", n, cuts }' >>"$work/plan"
least() { sort -g "$1" | head -n 1; }

{
	printf 'cuts\tsegments\tbackward s\tstep s\tsaved s\tpredicted s\n'
	base=$(echo "$(least "$work/sequential") $(least "$work/begin")" |
	    awk -v n="$steps" '{ print ($1 - $2) / n }')
	for w in $ways policy; do
		begin=$work/begin
		[ "$w" != policy ] || begin=$begin.policy
		awk -v w="$w" -v n="$steps" -v begin="$(least "$begin")" \
		    -v t="$(least "$work/$w")" -v base="$base" '
		    $2 == "sequential" { whole = $3 }
		    $2 == w { printf("%s\t%s\t%.4f\t%.4f\t%.4f\t%.4f\n", w,
			$5, $3, (t - begin) / n, base - (t - begin) / n,
			whole - $3) }' \
		    "$work/plan"
	done
} >"$out/$table.tsv"
cat "$out/$table.tsv"
