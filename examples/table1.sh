#!/usr/bin/env bash
# Table 1 of ACE-Sync, and more: the same small model trained to where it learns
# little more, by several edges through real pipes, in four ways; and how many
# bytes can be saved for how much accuracy.
#
#	table1.sh [DIR]		writes DIR/table1.tsv, -curves.tsv, .svg
#	frontier.sh [DIR]	ACE-Sync from 10 to 1000 times fewer bytes
#	table1-sweep.sh [DIR]	each way with other rates, once: how they were found
#
# SEEDS=N EDGES=N STEPS=N	3 (table1-sweep: 1), 4, 5000
# TRACE=FILE	lines of second, edge, Mbit/s, ms; begins again at its end;
#		otherwise one that swings between 5 and 200 Mbit/s and 10 and
#		300 ms.  What a step takes on it is reckoned, not waited for.
# STEP_MS=X	what a step of training takes on an edge there (20)
# ONLY="..."	of the ways or points, these; with WAY+--decay,0.3 the trainer is
#		told more.  Two ways are run only when asked for: DiLoCo and PowerSGD
# CORPUS=FILE	text of your own; otherwise C headers of this machine
# MODEL="..."	the trainer's options for another model
name=${0##*/}
name=${name%.sh}
# shellcheck source=examples/pipes.sh
. "$(dirname "$0")/pipes.sh"

EDGES=${EDGES:-4}
STEPS=${STEPS:-5000}
[ "$name" != table1-sweep ] || : "${SEEDS:=1}"
SEEDS=${SEEDS:-3}
model=${MODEL:---layers 2 --width 64 --heads 2 --context 64 --batch 8}
# shellcheck disable=SC2034 # used in pipes.sh
size=800000 share=0.5		# two dozen epochs in all: where training ends
points=25			# of a curve

# ---- the ways; what was tried for them: $grid ----

# options WORDS: for every trainer of the next run.  Last: how many steps a
# round has.
set_options() {
	# shellcheck disable=SC2206 # words are meant
	options=($model --valid "$valid" --windows 1024 --seed "$seed" $1
	    ${more//,/ }
	    --every $((STEPS / ($2 * points) + 1)))
}

sparse=0.01			# share of the values that top-k sends

topk_edge() {
	local s=$dir/state$1
	edge "$1" | ace-expand -S "$s" |
	    ace-compress -S "$s" -c "topk:$sparse" --sync rename |
	    count "$dir/sent$1" >"$dir/up$1"
	good "${PIPESTATUS[@]}"
}

# At most so many values of the mean are not zero.
topk_cloud() {
	local all
	all=$(awk -v s="$sparse" -v n="$EDGES" 'BEGIN { s *= n
	    print s < 1 ? s : 1 }')
	ace-aggregate --expect "$EDGES" "$dir"/up* |
	    ace-compress -c "topk:$all" | broadcast
	good "${PIPESTATUS[@]}"
}

# PowerSGD: a matrix of few ranks for each tensor.  The sum of all has as many
# ranks as they have together.
rank=2

powersgd_edge() {
	local s=$dir/state$1
	edge "$1" | ace-expand -S "$s" |
	    ace-compress -S "$s" -c "lowrank:$rank" --sync rename |
	    count "$dir/sent$1" >"$dir/up$1"
	good "${PIPESTATUS[@]}"
}

powersgd_cloud() {
	ace-aggregate --expect "$EDGES" "$dir"/up* |
	    ace-compress -c "lowrank:$((rank * EDGES))" | broadcast
	good "${PIPESTATUS[@]}"
}

# The links of the edges, by which equation (5) sets each one's compression:
# 5 to 200 Mbit/s, in equal steps of their logarithm.
rate() {
	awk -v k="$1" -v n="$EDGES" 'BEGIN { printf "%.1fMbit\n",
	    5 * 40 ^ (n > 1 ? (k - 1) / (n - 1) : 0.5) }'
}

ace_edge() {
	local s=$dir/state$1
	edge "$1" | ace-expand -S "$s" | ace-score -S "$s" |
	    ace-policy -S "$s" "${factor[@]}" --bandwidth "$(rate "$1")" |
	    ace-select --policy | ace-compress -S "$s" --sync rename |
	    count "$dir/sent$1" >"$dir/up$1"
	good "${PIPESTATUS[@]}"
}

ace_cloud() {
	local s=$dir/state
	ace-aggregate --expect "$EDGES" "$dir"/up* | ace-expand -S "$s" |
	    ace-score -S "$s" |
	    ace-policy -S "$s" --cmin "$down" --cmax "$down" --bandwidth 1000Mbit |
	    ace-select --policy | ace-compress -S "$s" --sync rename |
	    broadcast
	good "${PIPESTATUS[@]}"
}

# ace H UP DOWN: so many local steps, then so many times fewer bytes
ace() {
	set_options "$ACE --interval $1" "$1"
	factor=(--cmin "$(awk "BEGIN { print $2 * 0.8 }")"
	    --cmax "$(awk "BEGIN { print $2 * 1.35 }")" --half 30Mbit)
	down=$3
	run "$what" ace_edge coded_back ace_cloud
}

FULL='--gradient --rate 0.007 --muon 0.02'
ADAMW='--gradient --rate 0.007'
TOPK='--gradient --rate 0.007 --muon 0.01'
POWERSGD='--gradient --rate 0.007 --muon 0.01'
DILOCO='--interval 20 --rate 0.007 --muon 0.02 --outer-rate 0.7
    --outer-momentum 0.6'
FEDAVG='--interval 10 --rate 0.007 --muon 0.02'
ACE='--rate 0.007 --muon 0.02'

way() {
	more=
	[ "${1%%+*}" = "$1" ] || more=${1#*+}
	case ${1%%+*} in
	FullSync) set_options "$FULL" 1 ;;
	FullSync-AdamW) set_options "$ADAMW" 1 ;;
	Top-k) set_options "$TOPK" 1
		run "$what" topk_edge coded_back topk_cloud
		return ;;
	PowerSGD) set_options "$POWERSGD" 1
		run "$what" powersgd_edge coded_back powersgd_cloud
		return ;;
	FedAvg) set_options "$FEDAVG" 10 ;;
	DiLoCo) set_options "$DILOCO" 20 ;;
	ACE-Sync) ace 20 26 25; return ;;
	ACE-[0-9]*) frontier_point "${1%%+*}"; return ;;
	*) die "no way is called '$1'" ;;
	esac
	run "$what" dense_edge dense_back dense_cloud
}

grid='FullSync FullSync+--muon,0.01 FullSync+--decay,0.3
    FullSync+--rate,0.01 FullSync-AdamW
    Top-k Top-k+--muon,0.02 Top-k+--rate,0.003
    FedAvg FedAvg+--muon,0.01 FedAvg+--decay,0.3
    ACE-Sync ACE-Sync+--muon,0.01 ACE-Sync+--muon,0.03
    ACE-Sync+--decay,0.3'

# H, and the factors up and down
frontier_point() {
	case $1 in
	ACE-10) ace 2 5 5 ;;
	ACE-30) ace 4 7.5 7.5 ;;
	ACE-100) ace 5 21 20 ;;
	ACE-250) ace 10 26 25 ;;
	ACE-500) ace 20 26 25 ;;
	ACE-1000) ace 40 26 25 ;;
	*) die "no point is called '$1'" ;;
	esac
}

# ---- the network ----

trace() {
	if [ -n "${TRACE:-}" ]; then
		cat "$TRACE"
		return
	fi
	awk -v n="$EDGES" 'BEGIN { for (t = 0; t < 1200; t++)
	    for (k = 1; k <= n; k++) {
		u = (sin(t / 95.5 + 2.1 * k) + sin(t / 19.1 + 1.3 * k) + 2) / 4
		v = (sin(t / 57.3 + 3.7 * k) + sin(t / 9.55 + k) + 2) / 4
		printf "%d\t%d\t%.2f\t%.1f\n", t, k, 5 * 40 ^ u, 10 * 30 ^ v
	    } }'
}

# clock: the log of a run, with the bytes and the time of the network until
# then.  A round is over when the slowest edge has its aggregate:
#
#	max over edges of  steps * STEP_MS + RTT + bits up and down / rate
clock() {
	local k
	for k in $(seq "$EDGES"); do
		echo "$k $(counted "$dir/sent$k") $(counted "$dir/got$k")"
	done >"$work/bytes"
	awk -v OFS='\t' -v method="$1" -v seed="$seed" \
	    -v step="${STEP_MS:-20}" '
	FILENAME == ARGV[1] { mbit[$1, $2] = $3; ms[$1, $2] = $4
	    last = $1 + 1; next }
	FILENAME == ARGV[2] { bits[$1] = 8 * ($2 + $3); all += $2 + $3; n++
	    next }
	$1 == "start" || $1 == "now" || $1 == "end" { line[++lines] = $0 }
	END {
		split(line[lines], f, "\t")
		rounds = f[2]; steps = f[3]
		for (i = 1; i <= lines; i++) {
			split(line[i], f, "\t")
			for (; r < f[2]; r++) {
				most = 0
				for (k = 1; k <= n; k++) {
					s = int(t) % last
					x = bits[k] / rounds / 1e6 / mbit[s, k]
					x += ms[s, k] / 1000
					most = x > most ? x : most
				}
				t += most + steps / rounds * step / 1000
			}
			print method, seed, f[2], f[3], f[4], f[5], f[6],
			    sprintf("%.0f", all * r / rounds),
			    sprintf("%.1f", t)
		}
	}' "$work/trace" "$work/bytes" "$dir/log"
}

# ---- tables ----

# result: a line for a run, from its curve; when it was within 1 % of its last
# accuracy is read off the line between two points.
result() {
	local up got
	up=$(counted "$dir"/sent*)
	got=$(counted "$dir"/got*)
	awk -v OFS='\t' -v up="$up" -v got="$got" -v epoch="$epoch" '
	{ step[NR] = $4; top[NR] = $7; time[NR] = $9; m = $1; s = $2
	    loss = $5; ppl = $6; rounds = $3 }
	END {
		near = 0.99 * top[NR]
		for (i = 1; top[i] < near; i++);
		x = i > 1 ? (top[i] - near) / (top[i] - top[i - 1]) : 0
		print m, s, top[NR], ppl, loss, rounds, up, got,
		    sprintf("%.2f",
		    (step[i] - x * (step[i] - step[i - 1])) / epoch),
		    sprintf("%.1f", time[i] - x * (time[i] - time[i - 1])),
		    time[NR]
	}' "$1"
}

# summary FILE WAY...: means over the seeds; the first way is what the others
# are held against.
summary() {
	local file=$1
	shift
	awk -F '\t' -v OFS='\t' -v list="$*" '
	NR == 1 { next }
	{ m = $1; n[m]++; top[m] += $3; sq[m] += $3 * $3; ppl[m] += $4
	    up[m] += $7; down[m] += $8; ep[m] += $9; t1[m] += $10; t[m] += $11 }
	END {
		print "method", "seeds", "top-1 %", "+-", "lost",
		    "perplexity", "MB up", "MB down", "ratio",
		    "epochs to 1 %", "s to 1 %", "s in all"
		ways = split(list, order, " ")
		a = order[1]
		for (i = 1; i <= ways; i++) {
			m = order[i]; k = n[m]
			d = k > 1 ? (sq[m] - top[m] * top[m] / k) / (k - 1) : 0
			dev = "-"
			if (k > 1)
				dev = sprintf("%.2f", sqrt(d > 0 ? d : 0))
			r = (up[a] + down[a]) / n[a] * k / (up[m] + down[m])
			print m, k, sprintf("%.2f", top[m] / k),
			    dev,
			    sprintf("%.2f", top[a] / n[a] - top[m] / k),
			    sprintf("%.3f", ppl[m] / k),
			    sprintf("%.2f", up[m] / k / 1e6),
			    sprintf("%.2f", down[m] / k / 1e6),
			    sprintf("%.1f", r), sprintf("%.2f", ep[m] / k),
			    sprintf("%.0f", t1[m] / k), sprintf("%.0f", t[m] / k)
		}
	}' "$file"
}

# all DIR/PREFIX WAY...: every way with every seed; lines are kept as they come
# and not run again, so that what was stopped goes on.
all() {
	local out=$1 w
	shift
	[ -s "$out-runs.tsv" ] || printf '%s\t' method seed top1 ppl loss \
	    rounds up down epochs s_to_1% s | sed 's/\t$/\n/' >"$out-runs.tsv"
	local run=0
	for seed in $(seq "$SEEDS"); do
		for w in "$@"; do
			run=$((run + 1))
			# shellcheck disable=SC2034 # used in pipes.sh
			part="run $run of $((SEEDS * $#))"
			awk -F '\t' -v w="$w" -v s="$seed" '$1 == w &&
			    $2 == s { f = 1 } END { exit f }' \
			    "$out-runs.tsv" || continue
			what=$w-$seed
			dir=$work/$what
			way "$w"
			clock "$w" >"$work/curve"
			cat "$work/curve" >>"$out-curves.tsv"
			result "$work/curve" >>"$out-runs.tsv"
			rm -rf "$dir"
		done
	done
	summary "$out-runs.tsv" "$@" >"$out.tsv"
	awk -F '\t' '{ printf "%-14s", $1
	    for (i = 2; i <= NF; i++) printf " %13s", $i
	    print "" }' "$out.tsv"
}

# What table1 has run in this directory is on the frontier too.
known() {
	[ -s "$out/table1-runs.tsv" ] && [ ! -e "$out/frontier-runs.tsv" ] ||
	    return 0
	awk -F '\t' -v OFS='\t' 'NR == 1 || $1 == "FullSync"
	    $1 == "ACE-Sync" { $1 = "ACE-500"; print }' \
	    "$out/table1-runs.tsv" >"$out/frontier-runs.tsv"
}

pictures() {
	gnuplot -e "curves='$1-curves.tsv'; ways='$2'; out='$1.svg'" \
	    "$here/examples/table1.gnuplot"
}

need train ace-aggregate ace-compress ace-expand ace-policy ace-score \
    ace-select awk cmp dd mkfifo tee gnuplot
out=${1:-.}
mkdir -p "$out"
find_text
trace >"$work/trace"
valid=$(awk "BEGIN { print 1 - $share }")
# steps in which the devices together see as many bytes as there are
epoch=$(wc -c <"$text" | awk -v k="$EDGES" -v m="$model" -v s="$share" '{
    n = split(m, f, " ")
    for (i = 1; i < n; i++) v[f[i]] = f[i + 1]
    print s * $1 / (k * v["--batch"] * v["--context"]) }')
case $name in
frontier)
	ways=${ONLY:-FullSync ACE-10 ACE-30 ACE-100 ACE-250 ACE-500 ACE-1000}
	known
	# shellcheck disable=SC2086 # words are meant
	all "$out/frontier" $ways
	gnuplot -e "table='$out/frontier.tsv'; out='$out/frontier.svg'" \
	    "$here/examples/frontier.gnuplot"
	;;
table1-sweep)
	# shellcheck disable=SC2086 # words are meant
	all "$out/table1-sweep" ${ONLY:-$grid}
	;;
*)
	ways=${ONLY:-FullSync Top-k FedAvg ACE-Sync}
	# shellcheck disable=SC2086 # words are meant
	all "$out/table1" $ways
	pictures "$out/table1" "$ways"
	;;
esac
