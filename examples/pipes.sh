# shellcheck shell=bash disable=SC2154 # name, options: set by who reads this
# One cloud and several edges on this machine, joined by named pipes in which
# every byte is counted: what demo.sh and compare.sh have in common, read by them
# with ".".  They set
#
#   name       of the program, for its messages
#   text, EDGES
#   steps      of every edge
#   options    array: what the trainer is told, on every edge
#
# and say with NAME_edge, NAME_back and NAME_cloud what stands between trainer
# and trainer; run does the rest.
set -um
export LC_ALL=C
here=$(cd "$(dirname "$0")/.." && pwd)
PATH=${BUILD:-$here/build}:${BUILD:-$here/build}/examples:$PATH
# shellcheck source=examples/progress.sh
. "${BASH_SOURCE[0]%/*}/progress.sh"

# one thread per process; and newer processors than the BLAS knows should get
# its AVX-512 loops all the same
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
	# as the shell has them: the last may have begun and not be in our list;
	# and a shell that waits for the other end of a named pipe heeds no TERM
	local p n=0
	for p in $(jobs -p); do
		kill -KILL -- "-$p"
	done
	wait
	# what they had started is killed, too, and may not have heard it yet
	until rm -rf "$work" || [ $((n += 1)) -gt 100 ]; do sleep 0.1; done
} 2>/dev/null

# One word for a trap and no $(...) in it: a second signal, while the shell still
# reads what the first one is to do, would end that with a syntax error.
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

# ---- how far it is ----

# progress WHAT: until it is killed.  part is what run it is of how many, if there
# are several.
progress() {
	local from=$SECONDS
	told=$from
	while sleep 0.5; do
		tell "$name: $1${part:+ ($part)}" "$dir/progress" "$from"
	done
}

# show WHAT, hide: that it comes and goes
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

# start NAME CMD...: in the background and in its own process group; when it
# fails, so do we, at once, whatever the others are waiting for.  What all that it
# ran took of a processor is left in a file: see took.
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

# timed WHAT CMD...: runs it, and adds its seconds of a processor to a file
timed() {
	local what=$1 TIMEFORMAT='%U %S'
	shift
	{ time "$@" 2>&3; } 3>&2 2>>"$dir/seconds-$what"
}

# took NAME: seconds of a processor, of what was started as that, or with a name
# that ends so
took() {
	awk -F '[ms ]+' 'FNR == 2 { t += 60 * ($1 + $3) + $2 + $4 }
	    END { print t }' "$dir/took"*"$1"
}

need() {
	local p
	for p; do
		command -v "$p" >/dev/null && continue
		die "program missing: $p (make, make examples)"
	done
}

# ---- the text ----

# find_text FILE CMD...: sets text: CORPUS, or FILE, which the command makes.
find_text() {
	text=${CORPUS:-$1}
	shift
	[ -n "${CORPUS:-}" ] || "$@" ||
	    status=$? die "there is no text to train on"
	[ -r "$text" ] || die "cannot read '$text'"
	[ "$(wc -c <"$text")" -ge 100000 ] ||
	    die "too little text in '$text': give some with CORPUS=FILE"
	echo "$name: matrix products by $(train --blas)" >&2
}

# ---- a run ----

# edge K OPTIONS...: the trainer of edge K, its stream to standard output.  It
# becomes the trainer: a shell that waited for it would hold the pipe open, and
# nobody would see the stream's end.
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

# Nothing between: dense values both ways.
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

# coded_back K OPTIONS...: whatever is coded on the way down is decoded.
coded_back() {
	count "$dir/got$1" <"$dir/down$1" | timed "expand$1" ace-expand "${@:2}" \
	    >"$dir/apply$1"
	good "${PIPESTATUS[@]}"
}

# run WHAT EDGE BACK CLOUD: with these three functions; leaves log, models and
# counts in the directory dir, which is called WHAT.  With gossip set the edges may
# hold different models, and that is what is said of them.
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

# of FILE WHAT COLUMN: from a log
of() {
	awk -v what="$2" -v n="$3" '$1 == what { print $n }' "$1"
}
