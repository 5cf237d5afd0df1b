#!/usr/bin/env bash
# One cloud and four edges on this machine train a small language model: once
# with a dense gradient every step (FullSync), once with local steps and coded
# differences (ACE-Sync).  Every byte between edge and cloud is counted.
#
#   examples/demo.sh            make demo
#   examples/demo.sh --sweep    make sweep: FullSync's loss by learning rate
#
# CORPUS=FILE  text of your own; otherwise C headers of this machine
# STEPS=N      training steps        SHORT=1  a few, to see that it works
# DELAY=T      averages are applied T rounds later
# TRAIN="..."  further options of the trainer (train --help)
name=demo
# shellcheck source=examples/pipes.sh
. "$(dirname "$0")/pipes.sh"

EDGES=4
steps=${STEPS:-$([ -n "${SHORT:-}" ] && echo 120 || echo 800)}
RATE=${RATE:-0.007}		# FullSync's best: make sweep
MUON=${MUON:-0.02}		# likewise
INTERVAL=8			# local steps of the first round
# shellcheck disable=SC2206 # words are meant
options=(--rate "$RATE" --muon "$MUON" --delay "${DELAY:-0}" ${TRAIN:-})

# The links of the edges, by which equation (5) sets each one's compression.
rate=(- 2Mbit 5Mbit 10Mbit 20Mbit)
factor=(--cmin 16.5 --cmax 43 --half 10Mbit)

ace_edge() {
	local s=$dir/state$1
	edge "$1" --interval $INTERVAL --policy |
	    ace-step -S "$s" --policy "${factor[@]}" \
		--bandwidth "${rate[$1]}" --sync rename |
	    count "$dir/sent$1" >"$dir/up$1"
	good "${PIPESTATUS[@]}"
}

# The mean is coded again, with a residual of the cloud's own, and carries the
# next interval, by equation (9).
ace_cloud() {
	local s=$dir/state
	ace-aggregate --expect $EDGES "$dir"/up[1-$EDGES] |
	    ace-step -S "$s" --policy "${factor[@]}" --bandwidth 20Mbit \
		--target-divergence 0.04 \
		--interval $INTERVAL,8,14 \
		--sync rename |
	    broadcast
	good "${PIPESTATUS[@]}"
}

# ---- what came of it ----

table() {
	local w f=$work/full/log up down all
	printf '%-10s %15s %8s %14s %14s %8s\n' method 'validation loss' \
	    'top-1 %' 'bytes up' 'bytes down' ratio
	for w in start unigram; do
		printf '%-10s %15s %8s\n' "${w/start/untrained}" \
		    "$(of "$f" $w 4)" "$(of "$f" $w 6)"
	done
	for w in full ace; do
		up=$(counted "$work/$w"/sent*)
		down=$(counted "$work/$w"/got*)
		[ $w = ace ] || all=$((up + down))
		ratio=$(awk "BEGIN { printf \"%.1f\", $all / ($up + $down) }")
		printf '%-10s %15s %8s %14s %14s %8s\n' "${w/#full/FullSync}" \
		    "$(of "$work/$w/log" end 4)" "$(of "$work/$w/log" end 6)" \
		    "$up" "$down" "$ratio"
	done | sed 's/^ace     /ACE-Sync/'
}

# learnt WAY: better than before and than a count of bytes
learnt() {
	awk -v end="$(of "$work/$1/log" end 4)" \
	    -v start="$(of "$work/$1/log" start 4)" \
	    -v unigram="$(of "$work/$1/log" unigram 4)" \
	    'BEGIN { exit !(end + 0 > 0 && end < start && end < unigram) }' ||
	    die "$1: nothing was learnt"
}

# one TEXT RATE MUON: a line of the sweep
one() {
	# shellcheck disable=SC2086 # words are meant
	train --local --of $EDGES --steps "$steps" --rate "$2" --muon "$3" \
	    ${TRAIN:-} --eval --log "$work/log" "$1" || exit
	printf '%s\t%s\t%s\t%s\n' "$2" "$3" "$(of "$work/log" end 4)" \
	    "$(of "$work/log" end 6)"
}

# The last line of the table holds the ratio.
saved() {
	awk 'END { exit !($NF >= 10) }' "$1" ||
	    die "the ratio of bytes is below 10"
}

sweep() {
	local r m
	echo "FullSync, $EDGES devices, $steps steps (muon 0: AdamW everywhere)"
	printf 'rate\tmuon\tloss\ttop-1\n'
	for m in 0 0.01 0.02 0.04; do
		for r in 0.0035 0.007 0.014; do
			echo "$r $m"
		done
	done | xargs -P 2 -L 1 "$0" --one "$text" | sort -k 2,2n -k 1,1n
}

need train ace-aggregate ace-expand ace-step awk cmp dd mkfifo tee xargs
if [ "${1:-}" = --one ]; then
	one "$2" "$3" "$4"
	exit
fi
find_text
if [ "${1:-}" = --sweep ]; then
	sweep
	exit
fi
run full dense_edge dense_back dense_cloud
run ace ace_edge coded_back ace_cloud
table | tee "$work/table"
learnt full
learnt ace
saved "$work/table"
