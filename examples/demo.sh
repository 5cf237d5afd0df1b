#!/usr/bin/env bash
# Train a small language model with one cloud and four edges on this machine: first with
# a dense gradient at every step (FullSync), then with local steps and coded differences
# (ACE-Sync).  Every byte between edge and cloud is counted, and its time on slow links
# is computed.  This script builds the pipes itself, since ace-cloud and ace-edge have no
# options to code for the link of each edge (--ratio, --bandwidth) or to let the cloud set
# the interval (--interval).
#
#   examples/demo.sh            make demo
#   examples/demo.sh --sweep    make sweep: FullSync's loss by learning rate
#
# CORPUS=FILE  text of your own; default: that of text.sh, the same everywhere
# STEPS=N      training steps        SHORT=1  a few, to see that it works
# DELAY=T      averages are applied T rounds later
# PROGRESS=T   in a pipe, seconds between lines of progress (8)
# TRAIN="..."  further options of the trainer (train --help)
name=demo
# shellcheck source=examples/pipes.sh
. "$(dirname "$0")/pipes.sh"

EDGES=4
[[ ${STEPS:-1} =~ ^[1-9][0-9]*$ ]] || die "STEPS is '$STEPS', expected a whole number from 1"
steps=${STEPS:-$([ -n "${SHORT:-}" ] && echo 120 || echo 800)}
RATE=${RATE:-0.007}		# FullSync's best, for C headers: make sweep
MUON=${MUON:-0.02}		# FullSync's best rate of Muon, found in the same way
INTERVAL=8			# local steps of the first round
# shellcheck disable=SC2206 # word splitting is intended
options=(--rate "$RATE" --muon "$MUON" --delay "${DELAY:-0}" ${TRAIN:-})

# Rates of the edges' links, from which equation (5) computes each edge's compression
rate=(- 2 5 10 20)		# Mbit/s
factor=(--ratio "16.5,43,10Mbit")

ace_edge() {
	local s=$dir/state$1
	edge "$1" --interval $INTERVAL --policy |
	    ace-step -S "$s" --policy "${factor[@]}" \
		--bandwidth "${rate[$1]}Mbit" --sync rename |
	    count "$dir/sent$1" >"$dir/up$1"
	good "${PIPESTATUS[@]}"
}

# The cloud codes the mean again, with its own residual, and sends with it the next interval
# by equation (9).
ace_cloud() {
	local s=$dir/state
	ace-aggregate --devices $EDGES "$dir"/up[1-$EDGES] |
	    ace-step -S "$s" --policy "${factor[@]}" --bandwidth 20Mbit \
		--target-divergence 0.04 \
		--interval $INTERVAL,8,14 \
		--sync rename |
	    broadcast
	good "${PIPESTATUS[@]}"
}

# ---- the results ----

# result WAY: print loss, top-1, bytes up and down, exchanges and seconds.  The seconds
# assume that each edge has its own processor and link, and that all wait for the slowest.
# They are the CPU seconds of the slowest edge's programs, with the trainer, the time of its
# bytes up and down on its link, and the CPU seconds of the cloud's programs.
result() {
	local k dir=$work/$1
	for k in $(seq "$EDGES"); do
		echo "${rate[$k]} $(counted "$dir/sent$k" "$dir/got$k")" \
		    "$(took "edge $k")"
	done | awk -v OFS='\t' -v cloud="$(took cloud)" \
	    -v up="$(counted "$dir"/sent*)" -v down="$(counted "$dir"/got*)" \
	    -v loss="$(of "$dir/log" end 4)" -v top="$(of "$dir/log" end 6)" \
	    -v rounds="$(of "$dir/log" end 2)" '
		{ t = 8 * $2 / ($1 * 1e6) + $3; most = t > most ? t : most }
		END { print loss, top, up, down, rounds, most + cloud }'
}

# table FILE: print the results, and each way's ratio of the first way's bytes to its own
table() {
	awk -F '\t' 'BEGIN { line = "%-10s %15s %8s %12s %12s %7s %8s\n"
	    printf line, "method", "validation loss", "top-1 %", "bytes up",
		"bytes down", "ratio", "seconds" }
	NF < 4 { printf "%-10s %15s %8s\n", $1, $2, $3; next }
	{ all = all ? all : $4 + $5
	    printf line, $1, $2, $3, $4, $5,
		sprintf("%.1f", all / ($4 + $5)), sprintf("%.0f", $7) }' "$1"
}

# words FILE: print the last two lines as sentences
words() {
	tail -n 2 "$1" | awk -F '\t' -v steps="$steps" '
	{ top[NR] = $3; all[NR] = $4 + $5; rounds[NR] = $6 }
	END {
		ratio = all[1] / all[2]
		often = rounds[1] / rounds[2]
		printf "ACE-Sync moves %.1f times fewer bytes than FullSync, " \
		    "and is right about the next byte of text that it has not " \
		    "seen in %s instead of %s %% of the places. ", ratio,
		    top[2], top[1]
		printf "It exchanges every %.1f steps (%.1f times fewer " \
		    "bytes), and codes each value in %.2f bits instead of 32 " \
		    "(%.1f times). ", steps / rounds[2], often,
		    32 * often / ratio, ratio / often
		print "Both cost accuracy: between two exchanges every edge " \
		    "goes its own way, and what the coding leaves out is " \
		    "sent later."
	}' | fold -s -w 80 | sed 's/ *$//'
	local links=${rate[*]:1}
	cat <<-END
	Seconds are computed, not waited for: what an edge and the cloud took of a
	processor here, and the bytes of the edge over its link (${links// /, } Mbit/s,
	one each); the slowest edge counts.  Round trips are left out.
	END
}

# learnt WAY: check that the loss is below the first one and below that of byte frequencies
learnt() {
	local end start unigram
	end=$(of "$work/$1/log" end 4)
	start=$(of "$work/$1/log" start 4)
	unigram=$(of "$work/$1/log" unigram 4)
	awk -v end="$end" -v start="$start" -v unigram="$unigram" \
	    'BEGIN { exit !(end + 0 > 0 && end < start && end < unigram) }' ||
	    die "$1: too little was learnt: the loss is ${end:-unknown}, expected less" \
	    "than $start (at the start) and $unigram (byte frequencies): give more STEPS"
}

# one TEXT RATE MUON: print a line of the sweep
one() {
	# shellcheck disable=SC2086 # word splitting is intended
	train --local --of $EDGES --steps "$steps" --rate "$2" --muon "$3" \
	    ${TRAIN:-} --eval --log "$work/log" "$1" || exit
	printf '%s\t%s\t%s\t%s\n' "$2" "$3" "$(of "$work/log" end 4)" \
	    "$(of "$work/log" end 6)"
}

saved() {
	local ratio
	ratio=$(tail -n 2 "$1" | awk -F '\t' '{ all[NR] = $4 + $5 }
	    END { printf "%.2f", all[2] ? all[1] / all[2] : 0
	    exit !(all[1] >= 10 * all[2]) }') ||
	    die "the compression ratio is ${ratio:-unknown}: expected 10 or more"
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

need train ace-aggregate ace-expand ace-step awk cmp dd fold mkfifo tee xargs
if [ "${1:-}" = --one ]; then
	one "$2" "$3" "$4"
	exit
fi
unpack() { "$here/examples/text.sh" >"$work/text"; }
find_text "$work/text" unpack
if [ "${1:-}" = --sweep ]; then
	sweep
	exit
fi
run full dense_edge dense_back dense_cloud
run ace ace_edge coded_back ace_cloud
for w in start unigram; do
	printf '%s\t%s\t%s\n' "${w/start/untrained}" \
	    "$(of "$work/full/log" $w 4)" "$(of "$work/full/log" $w 6)"
done >"$work/results"
printf '%s\t%s\n' FullSync "$(result full)" ACE-Sync "$(result ace)" \
    >>"$work/results"
{ table "$work/results" && echo && words "$work/results"; } >"$work/report" &&
    cat "$work/report" || status=4 die 'the table cannot be written'
learnt full
learnt ace
saved "$work/results"
