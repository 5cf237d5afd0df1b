# shellcheck shell=bash disable=SC2154 # name, options: set by scripts that source this
# One cloud and several edges on this machine, joined by named pipes in which every byte
# is counted: the common part of demo.sh and compare.sh, which source this file and set
#
#   name           name of the script, for its messages
#   text, EDGES    file of the text, and number of edges
#   steps          number of steps of every edge
#   options        array: options of the trainer on every edge
#
# They define functions NAME_edge, NAME_back and NAME_cloud with the programs between the
# trainers and the cloud; the function run does the rest.
set -um
export LC_ALL=C
here=$(cd "$(dirname "$0")/.." && pwd)
PATH=${BUILD:-$here/build}:${BUILD:-$here/build}/examples:$PATH
# shellcheck source=examples/progress.sh
. "${BASH_SOURCE[0]%/*}/progress.sh"

# use one thread per process, and AVX-512 kernels even if OpenBLAS does not know the processor
export OPENBLAS_NUM_THREADS=1
if [ -z "${OPENBLAS_CORETYPE:-}" ] &&
    grep -qs 'avx512f.*avx512bw.*avx512vl' /proc/cpuinfo; then
	export OPENBLAS_CORETYPE=SkylakeX
fi

work=$(mktemp -d "${TMPDIR:-/tmp}/ace-$name.XXXXXX") || exit 4
jobs=()

stop() {
	trap - EXIT
	trap '' USR1 INT TERM HUP
	# ask the shell for its jobs, since our list may lack the last one; a shell that
	# waits to open a named pipe ignores TERM
	local p n=0
	for p in $(jobs -p); do
		kill -KILL -- "-$p"
	done
	wait
	# programs that the jobs started are killed, too, but may still be writing
	until rm -rf "$work" || [ $((n += 1)) -gt 100 ]; do sleep 0.1; done
} 2>/dev/null

# A trap must be one word without $(...): a second signal while the shell reads a longer
# one would end it with a syntax error.
failed() {
	trap '' USR1
	local what
	read -r what <"$work/failed"
	die "${what:-a program} failed"
}

trap stop EXIT
trap failed USR1
trap 'exit 130' INT
trap 'exit 143' TERM HUP

# ---- progress ----

# progress WHAT: show the progress until killed.  `part' has the number of this run and of
# all runs, if there are several.
progress() {
	local from=$SECONDS
	told=$from
	while sleep 0.5; do
		tell "$name: $1${part:+ ($part)}" "$dir/progress" "$from"
	done
}

# show WHAT, hide: start and remove the progress line
bar=
show() {
	progress "$1" &
	bar=$!
}
hide() {
	[ -n "$bar" ] || return 0
	kill -KILL -- "-$bar"
	wait "$bar"
	bar=
	untell 2>&3
} 3>&2 2>/dev/null

# start NAME CMD...: run CMD in the background in its own process group; if CMD fails, this
# script fails immediately, even if other programs wait.  The CPU seconds of CMD and its
# programs are written to a file for `took'.
start() {
	local what=$1
	shift
	{
		"$@" 2>>"$work/stderr" || {
			echo "$what" >>"$work/failed"
			kill -USR1 $$
		}
		times >"$dir/took ${what#*: }"
	} &
	jobs+=($!)
}

# good "${PIPESTATUS[@]}": succeed if every stage of the last pipeline succeeded
good() {
	local s
	for s; do
		[ "$s" -eq 0 ] || return 1
	done
}

# count FILE: copy standard input to standard output; dd writes the number of bytes to FILE
count() {
	dd bs=256k 2>"$1"
}

counted() {
	cat "$@" | awk '/bytes/ { n += $1 } END { printf "%.0f\n", n }'
}

# timed WHAT CMD...: run CMD, and add its CPU seconds to the file seconds-WHAT
timed() {
	local what=$1 TIMEFORMAT='%U %S'
	shift
	{ time "$@" 2>&3; } 3>&2 2>>"$dir/seconds-$what"
}

# took NAME: print the CPU seconds of all commands started with a name that ends in NAME
took() {
	awk -F '[ms ]+' 'FNR == 2 { t += 60 * ($1 + $3) + $2 + $4 }
	    END { print t }' "$dir/took"*"$1"
}

need() {
	local p
	for p; do
		command -v "$p" >/dev/null && continue
		die "program missing: $p: run make and make examples, or install it"
	done
}

# ---- the text ----

# find_text FILE CMD...: set text to CORPUS, or else make FILE with CMD and set text to it
find_text() {
	text=${CORPUS:-$1}
	shift
	[ -n "${CORPUS:-}" ] || "$@" ||
	    status=$? die "there is no text to train on: give one with CORPUS=FILE"
	[[ -f $text && -r $text ]] || die "cannot read '$text': expected a file of text"
	[ "$(wc -c <"$text")" -ge 100000 ] ||
	    die "'$text' has less than 100 kB of text: give more with CORPUS=FILE"
	echo "$name: matrix products by $(train --blas)" >&2
}

# ---- a run ----

# edge K OPTIONS...: replace this shell by the trainer of edge K, which writes its stream to
# standard output.  A waiting shell would hold the pipe open, so that readers would not see
# the end of the stream.
edge() {
	local k=$1
	shift
	[ "$k" -ne 1 ] ||
	    set -- "$@" --eval --log "$dir/log" --progress "$dir/progress"
	exec train --index "$k" --of "$EDGES" --run "$name" --steps "$steps" \
	    "${options[@]}" --apply "$dir/apply$k" --save "$dir/model$k" \
	    "$@" "$text"
}

broadcast() {
	tee "$dir"/down* >/dev/null
}

# dense_edge K, ...: send dense values in both directions, without programs in between
dense_edge() {
	edge "$1" | count "$dir/sent$1" >"$dir/up$1"
	good "${PIPESTATUS[@]}"
}

dense_back() {
	count "$dir/got$1" <"$dir/down$1" >"$dir/apply$1"
}

dense_cloud() {
	timed cloud ace-aggregate --devices "$EDGES" "$dir"/up* | broadcast
	good "${PIPESTATUS[@]}"
}

# coded_back K OPTIONS...: decode the averages for edge K with ace-expand OPTIONS
coded_back() {
	count "$dir/got$1" <"$dir/down$1" | timed "expand$1" ace-expand "${@:2}" \
	    >"$dir/apply$1"
	good "${PIPESTATUS[@]}"
}

# run WHAT EDGE BACK CLOUD: run these three functions; write log, models and counts to
# the directory dir, which is named WHAT.  If gossip is set, the edges may have different
# models, and its words replace `the same model' in the last message.
run() {
	local what=$1 k p from=$SECONDS
	dir=$work/$what
	mkdir "$dir" || exit 4
	jobs=()
	for k in $(seq "$EDGES"); do
		mkfifo "$dir/up$k" "$dir/down$k" "$dir/apply$k" || exit 4
	done
	start "$what: cloud" "$4"
	for k in $(seq "$EDGES"); do
		start "$what: edge $k" "$2" "$k"
		start "$what: the way back to edge $k" "$3" "$k"
	done
	show "$what"
	for p in "${jobs[@]}"; do
		wait "$p" || die "a process of $what failed"
	done
	hide
	jobs=()
	for k in $(seq 2 "$EDGES"); do
		[ -z "${gossip:-}" ] || break
		cmp -s "$dir/model1" "$dir/model$k" ||
		    die "$what: edge 1 and edge $k hold different models"
	done
	echo "$name: $what: $steps steps in $(of "$dir/log" end 2) rounds," \
	    "$((SECONDS - from)) s; the $EDGES edges hold" \
	    "${gossip:-the same model}" >&2
}

# of FILE WHAT COLUMN: print a column of the lines of a log whose first column is WHAT
of() {
	awk -v what="$2" -v n="$3" '$1 == what { print $n }' "$1"
}
