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
set -um
export LC_ALL=C
here=$(cd "$(dirname "$0")/.." && pwd)
PATH=${BUILD:-$here/build}:${BUILD:-$here/build}/examples:$PATH

EDGES=4
STEPS=${STEPS:-$([ -n "${SHORT:-}" ] && echo 120 || echo 800)}
RATE=${RATE:-0.007}		# FullSync's best: make sweep
INTERVAL=5			# local steps of the first round

# one thread per process; and newer processors than the BLAS knows should get
# its AVX-512 loops all the same
export OPENBLAS_NUM_THREADS=1
if [ -z "${OPENBLAS_CORETYPE:-}" ] &&
    grep -qs 'avx512f.*avx512bw.*avx512vl' /proc/cpuinfo; then
	export OPENBLAS_CORETYPE=SkylakeX
fi

work=$(mktemp -d "${TMPDIR:-/tmp}/ace-demo.XXXXXX") || exit 4
jobs=()

stop() {
	trap - EXIT
	trap '' USR1 INT TERM HUP
	local p
	for p in ${jobs[@]+"${jobs[@]}"}; do
		kill -TERM -- "-$p"
	done
	wait
	rm -rf "$work"
} 2>/dev/null

die() {
	echo "demo: $*" >&2
	[ ! -s "$work/stderr" ] || head -n 20 "$work/stderr" >&2
	exit 1
}

trap stop EXIT
trap 'die "$(head -n 1 "$work/failed") failed"' USR1
trap 'exit 130' INT
trap 'exit 143' TERM HUP

# start NAME CMD...: in the background and in its own process group; when it
# fails, so do we, at once, whatever the others are waiting for.
start() {
	local name=$1
	shift
	{
		"$@" 2>>"$work/stderr" || {
			echo "$name" >>"$work/failed"
			kill -USR1 $$
		}
	} &
	jobs+=($!)
}

# good "${PIPESTATUS[@]}": every stage of the last pipeline succeeded.
good() {
	local s
	for s; do
		[ "$s" -eq 0 ] || return 1
	done
}

# count FILE: passes everything on; dd says in FILE how much it was.
count() {
	dd bs=256k 2>"$1"
}

counted() {
	cat "$@" | awk '/bytes/ { n += $1 } END { printf "%.0f\n", n }'
}

need() {
	local p
	for p; do
		command -v "$p" >/dev/null && continue
		die "program missing: $p (make, make examples)"
	done
}

# ---- the text ----

# The files in an order that is no order, so that what is kept for validation
# (the end) is of the same kind; the training part sorted again, so that the
# four devices see different things.
corpus() {
	local size=3000000
	find /usr/include -name '*.h' -type f | sort |
	    awk '{ print (NR * 7919) % 10007 "\t" $0 }' | sort -n | cut -f 2- |
	    tr '\n' '\0' | xargs -0 wc -c | awk -v size=$size '
		$2 == "total" { next }
		{ n += $1; sub(/^ *[0-9]+ /, "") }
		n <= 0.9 * size { print | "sort"; next }
		!kept { close("sort"); kept = 1 }
		n <= size { print }' | tr '\n' '\0' | xargs -0 cat
}

# ---- the two ways ----

# edge K OPTIONS...: the trainer of edge K, its stream to standard output.  It
# becomes the trainer: a shell that waited for it would hold the pipe open, and
# nobody would see the stream's end.
edge() {
	local k=$1
	shift
	[ "$k" -ne 1 ] || set -- "$@" --eval --log "$dir/log"
	# shellcheck disable=SC2086 # words are meant
	exec train --index "$k" --of $EDGES --run demo --steps "$STEPS" \
	    --rate "$RATE" --delay "${DELAY:-0}" ${TRAIN:-} --apply "$dir/apply$k" --save "$dir/model$k" "$@" \
	    "$text"
}

full_edge() {
	edge "$1" | count "$dir/sent$1" >"$dir/up$1"
	good "${PIPESTATUS[@]}"
}

full_back() {
	count "$dir/got$1" <"$dir/down$1" >"$dir/apply$1"
}

full_cloud() {
	ace-aggregate --expect $EDGES "$dir"/up[1-$EDGES] | broadcast
	good "${PIPESTATUS[@]}"
}

# The links of the edges, by which equation (5) sets each one's compression.
rate=(- 2Mbit 5Mbit 10Mbit 20Mbit)
factor=(--cmin 12 --cmax 28 --half 10Mbit)

ace_edge() {
	local s=$dir/state$1
	edge "$1" --interval $INTERVAL --policy |
	    ace-expand -S "$s" |
	    ace-score -S "$s" |
	    ace-policy -S "$s" "${factor[@]}" --bandwidth "${rate[$1]}" |
	    ace-select --policy |
	    ace-compress -S "$s" --sync rename |
	    count "$dir/sent$1" >"$dir/up$1"
	good "${PIPESTATUS[@]}"
}

ace_back() {
	count "$dir/got$1" <"$dir/down$1" | ace-expand >"$dir/apply$1"
	good "${PIPESTATUS[@]}"
}

# The mean is coded again, with a residual of the cloud's own, and carries the
# next interval, by equation (9).
ace_cloud() {
	local s=$dir/state
	ace-aggregate --expect $EDGES "$dir"/up[1-$EDGES] |
	    ace-expand -S "$s" |
	    ace-score -S "$s" |
	    ace-policy -S "$s" "${factor[@]}" --bandwidth 20Mbit \
		--target-divergence 0.04 \
		--interval $INTERVAL --min-interval 4 --max-interval 10 |
	    ace-select --policy |
	    ace-compress -S "$s" --sync rename |
	    broadcast
	good "${PIPESTATUS[@]}"
}

broadcast() {
	tee "$dir"/down[2-$EDGES] >"$dir/down1"
}

# run WAY: full or ace; leaves log, models and counts in its directory.
run() {
	local way=$1 k p from=$SECONDS
	dir=$work/$way
	mkdir "$dir" || exit 4
	jobs=()
	for k in $(seq $EDGES); do
		mkfifo "$dir/up$k" "$dir/down$k" "$dir/apply$k" || exit 4
	done
	start "$way: cloud" "${way}_cloud"
	for k in $(seq $EDGES); do
		start "$way: edge $k" "${way}_edge" "$k"
		start "$way: the way back to edge $k" "${way}_back" "$k"
	done
	for p in "${jobs[@]}"; do
		wait "$p" || die "a process of $way failed"
	done
	jobs=()
	for k in $(seq 2 $EDGES); do
		cmp -s "$dir/model1" "$dir/model$k" ||
		    die "$way: edge 1 and edge $k hold different models"
	done
	echo "demo: $way: $STEPS steps in $(of "$dir/log" end 2) rounds," \
	    "$((SECONDS - from)) s; the $EDGES edges hold the same model" >&2
}

# ---- what came of it ----

# of FILE WHAT COLUMN: from a log
of() {
	awk -v what="$2" -v n="$3" '$1 == what { print $n }' "$1"
}

table() {
	local w f=$work/full/log up down all
	printf '%-10s %15s %8s %14s %14s %8s\n' method 'validation loss' \
	    'top-1 %' 'bytes up' 'bytes down' ratio
	for w in start unigram; do
		printf '%-10s %15s %8s\n' "${w/start/untrained}" \
		    "$(of "$f" $w 4)" "$(of "$f" $w 6)"
	done
	for w in full ace; do
		up=$(counted "$work/$w"/sent?)
		down=$(counted "$work/$w"/got?)
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

# one TEXT RATE: a line of the sweep
one() {
	# shellcheck disable=SC2086 # words are meant
	train --local --of $EDGES --steps "$STEPS" --rate "$2" ${TRAIN:-} \
	    --eval --log "$work/log" "$1" || exit
	printf '%s\t%s\t%s\n' "$2" "$(of "$work/log" end 4)" \
	    "$(of "$work/log" end 6)"
}

# The last line of the table holds the ratio.
saved() {
	awk 'END { exit !($NF >= 10) }' "$1" ||
	    die "the ratio of bytes is below 10"
}

sweep() {
	local r
	echo "FullSync, $EDGES devices, $STEPS steps"
	printf 'rate\tloss\ttop-1\n'
	for r in 0.001 0.002 0.003 0.005 0.007 0.01 0.014 0.02; do
		echo "$r"
	done | xargs -P 2 -n 1 "$0" --one "$text" | sort -n
}

need train ace-aggregate ace-compress ace-expand ace-policy ace-score \
    ace-select awk cmp dd mkfifo tee xargs
if [ "${1:-}" = --one ]; then
	one "$2" "$3"
	exit
fi
text=${CORPUS:-$work/text}
[ -n "${CORPUS:-}" ] || corpus >"$text" || die "cannot read the C headers"
[ -r "$text" ] || die "cannot read '$text'"
[ "$(wc -c <"$text")" -ge 100000 ] ||
    die "too little text in '$text': give some with CORPUS=FILE"
if [ "${1:-}" = --sweep ]; then
	sweep
	exit
fi
run full
run ace
table | tee "$work/table"
learnt full
learnt ace
saved "$work/table"
