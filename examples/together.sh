#!/bin/bash
# Measure the three papers together, on a link that changes: ACE-Sync's importance,
# budget and interval, DynaComm's cuts and DeCo-SGD's delay, each alone and combined.
#
#	together.sh [DIR]	writes DIR/together.tsv (default .)
#
# One device of the example trainer sends shards through a link that changes (LINKS), and
# gets them back immediately.  On each link it does a separate run, which begins with
# the previous run's model and knows the present link; states, residuals and moments begin
# at zero.  Every way takes the same steps.  The results are the seconds per step on each link
# and on all, from the least of several tries, the MB sent, and the final loss.
#
#	none	every gradient in f32, without delay
#	ace	(5), importance and the planner, error feedback
#	ace-9	as ace, but of differences; (9) sets their interval
#	cuts	DynaComm's cuts, in f16, without a state
#	deco	DeCo-SGD's delay and budget, by the same planner
#	all	cuts, delay and budget together; (9) needs differences, and cuts
#		need gradients, so that no run has both
#	all-9	delay, budget and interval together
#
# LINKS="MBIT/MS ..."	5/100 50/10 10/300
# COST=X	milliseconds that each transmission costs (10)
# STEPS=N	on each link (12)	TRIES=N  (2)	WAYS="..."
# MODEL="..."	the trainer's options
set -euo pipefail
here=$(cd "${0%/*}" && pwd)
build=${BUILD:-$here/../build}
PATH=$build:$build/examples:$build/tests:$PATH
export OPENBLAS_NUM_THREADS=1 LC_ALL=C
out=${1:-.}
mkdir -p "$out"
work=$(mktemp -d) || exit 4
trap 'rm -rf "$work"' EXIT
trap 'exit 130' INT
trap 'exit 143' TERM HUP

# note STATUSES PROGRAM...: record the programs of a pipeline that failed
note() {
	local status
	for status in $1; do
		shift
		[ "$status" -eq 0 ] || echo "$1 $status" >>"$work/failed"
	done
}

# failed WHEN: exit if a program failed, and name it.  Its failure gives other programs a
# closed pipe (141) or a truncated stream (3), so name one with another status first.
failed() {
	local who status
	[ -s "$work/failed" ] || return 0
	read -r who status <<<"$(awk '{ r = $2 == 141 ? 1 : $2 == 3 ? 2 : 3 }
	    r > best { best = r; line = $0 } END { print line }' "$work/failed")"
	echo "together.sh: $1: $who failed with status $status" >&2
	[ "$status" -le 5 ] || status=4
	exit "$status"
}
read -ra links <<<"${LINKS:-5/100 50/10 10/300}"
cost=$(awk "BEGIN { print ${COST:-10} / 1000 }")
steps=${STEPS:-12} tries=${TRIES:-2}
read -ra ways <<<"${WAYS:-none ace ace-9 cuts deco all all-9}"
read -ra model <<<"${MODEL:---layers 2 --width 64 --heads 2 --context 64 --batch 32}"
text=${CORPUS:-$work/text}
[ -n "${CORPUS:-}" ] || "$here/text.sh" >"$text"

# measure the computing time of a step
compute=$(train "${model[@]}" --steps 4 --clock "$text" | ace-inspect -v |
    sed -n 's/.*compute.seconds=//p' | sort -g | sed -n 1p
    note "${PIPESTATUS[*]}" train ace-inspect sed sort sed)
failed 'before all methods'

# coded WAY MBIT MS: run the programs between the trainer and the link
coded() {
	local s=$work/state policy=(--ratio "2,60,20Mbit")
	policy+=(--bandwidth "$2Mbit")
	case $1 in
	# all: with cuts, the first shard does not state its computing time, which auto needs
	deco | all) policy+=(--deco "${compute}s,$3ms") ;;
	all*) policy+=(--deco "auto,$3ms") ;;
	esac
	case $1 in
	*-9) policy+=(--target-divergence 0.04 --interval '5,4,10') ;;
	all) policy+=(--cuts "${cost}s") ;;
	esac
	case $1 in
	none) cat ;;
	cuts) ace-policy --cuts "${cost}s" --bandwidth "$2Mbit" --ratio 2,2 |
	    ace-compress -c f16 || note "${PIPESTATUS[*]}" ace-policy ace-compress ;;
	*) ace-expand -S "$s" | ace-score -S "$s" | ace-policy -S "$s" "${policy[@]}" |
	    ace-select --policy | ace-compress -S "$s" || note "${PIPESTATUS[*]}" \
	    ace-expand ace-score ace-policy ace-select ace-compress ;;
	esac
}

# part WAY MBIT MS STEPS SEED: train the model further, on other text; print the seconds
part() {
	local from=$EPOCHREALTIME how=(--gradient)
	case $1 in
	none | ace) ;;
	*-9) how=(--interval 5 --clock --policy) ;;
	deco) how+=(--clock --policy) ;;
	cuts | all) how+=(--cuts none --clock --policy) ;;
	esac
	[ ! -e "$work/model" ] || how+=(--load "$work/model")
	rm -rf "$work/back" "$work/state"
	mkfifo "$work/back"
	# open both ends of the circle before any program runs, so that when one program
	# ends all others see an end of input
	# shellcheck disable=SC2094 # the circle is intended
	train "${model[@]}" --seed "$5" --steps "$4" "${how[@]}" --rate 0.003 --warmup 0 \
	    --apply - --eval --windows 256 --log "$work/log" \
	    --save "$work/next" "$text" <"$work/back" | coded "$@" |
	    late -r "$2e6" -c "$cost" -l "$work/sent" \
	    -d "$(awk "BEGIN { print $3 / 1000 }")" | ace-expand >"$work/back" ||
	    note "${PIPESTATUS[*]}" train coded late ace-expand
	failed "$1 on $2/$3"
	mv "$work/next" "$work/model"
	awk '{ s += $1 } END { print s + 0 }' "$work/sent" >>"$work/bytes"
	awk "BEGIN { print $EPOCHREALTIME - $from }"
}

# run WAY STEPS: print seconds per link and in all, bytes, and the final loss
run() {
	local l seed=0
	rm -f "$work/model" "$work/bytes"
	for l in "${links[@]}"; do
		part "$1" "${l%/*}" "${l#*/}" "$2" $((seed += 1))
	done >"$work/parts"
	awk -v OFS='\t' -v b="$(awk '{ s += $1 } END { print s }' "$work/bytes")" \
	    -v loss="$(awk '$1 == "end" { print $4 }' "$work/log")" '
	    { t += $1; s = s $1 OFS } END { print s t, b, loss }' "$work/parts"
}

# run the ways in turn, since other work may slow the machine; a run of one step measures the
# time to start
for ((i = 0; i < tries; i++)); do
	for w in "${ways[@]}"; do
		run "$w" 1 >>"$work/$w.begin"
		run "$w" $((steps + 1)) >>"$work/$w.all"
	done
done
{
	printf 'way'
	printf '\t%s' "${links[@]}" all
	printf '\tMB\tloss\n'
	for w in "${ways[@]}"; do
		awk -v OFS='\t' -v w="$w" -v n="$steps" -v k=$((${#links[@]} + 1)) '
		FNR == 1 { file++ }
		{ for (i = 1; i <= k; i++) if (FNR == 1 || $i < t[file, i])
			t[file, i] = $i
		    bytes = $(k + 1); loss = $(k + 2) }
		END { printf "%s", w
		    for (i = 1; i <= k; i++)
			printf "\t%.3f", (t[2, i] - t[1, i]) / n / (i < k ? 1 : k - 1)
		    printf "\t%.2f\t%s\n", bytes / 1e6, loss }' \
		    "$work/$w.begin" "$work/$w.all"
	done
} >"$out/together.tsv"
cat "$out/together.tsv"
