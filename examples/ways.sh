# shellcheck shell=bash disable=SC2034,SC2154 # read and set by compare.sh
# The ways of training that table1.sh, frontier.sh and table1-sweep.sh compare: the
# options of each trainer, and the programs between edges and cloud.

# A line per way: its name; the steps between two exchanges; the sequences of a step on
# each of four edges (fewer with more edges, so that all edges together have the same
# number); the code of an exchange; and options of the trainer.  The code is dense,
# topk:SHARE, lowrank:RANKS or a number of bits per value, by ace-step (UP/DOWN if the
# cloud uses another number than the edges); or paper:SHARES, by ace-select -p with the
# paper's importance; gossip, dense models to two neighbours; gather:CODEC, each edge's
# code to all edges; or onebit:SHARE, dense for that share of the steps, then signs.
# All ways read the same text: with twice the batch, half the steps.  The ACE ways are
# as they were measured: --form sensitivity is moment:1 of ace-score, and even is
# moment:0.  For your own runs, --form moment is better at few bits, and so are --realign
# 0.5 with Muon and, below half a bit, --factored (examples/results/README.md).
all_ways() {
	cat <<-'END'
	FullSync        1 16 dense     --gradient --rate 0.02 --muon 0.03
	FullSync-32     1 32 dense     --gradient --rate 0.03 --muon 0.04
	FullSync-AdamW  1 16 dense     --gradient --rate 0.01
	Top-k           1  8 topk:0.01 --gradient --rate 0.007 --muon 0.01
	PowerSGD        1  8 lowrank:2 --gradient --rate 0.007 --muon 0.01
	FedAvg         10 16 dense     --rate 0.02 --muon 0.03
	DiLoCo         10 16 dense     --rate 0.02 --muon 0.03 --outer-rate 0.9 --outer-momentum 0.3
	ACE-Sync       10 32 1.28      --rate 0.03 --muon 0.04 --form sensitivity
	ACE-10          2 16 6.4       --rate 0.02 --muon 0.03 --form sensitivity
	ACE-30          4 16 4.27      --rate 0.02 --muon 0.03 --form sensitivity
	ACE-100         5 32 3.2       --rate 0.03 --muon 0.04 --form sensitivity
	ACE-250         5 32 1.28      --rate 0.03 --muon 0.04 --form sensitivity
	ACE-500        10 32 1.28      --rate 0.03 --muon 0.04 --form sensitivity
	ACE-1000       20 32 1.28      --rate 0.03 --muon 0.04 --form sensitivity
	ACE-policy     10 32 1.28      --rate 0.03 --muon 0.04 --form sensitivity --target 0.06
	Replay-100      3 32 1.54/2.3  --rate 0.03 --muon 0.04 --momentum 0.9 --replay --form even
	ACE-gradient    1 32 0.64      --gradient --rate 0.03 --muon 0.04 --form even
	QSGD            1 16 paper:1=qsgd:64 --gradient --rate 0.01 --form even --feedback none
	Paper-2         1 16 paper:count:0.31=f32,1=qsgd:64 --gradient --rate 0.01 --feedback ef:raw
	Paper-4         1 16 paper:count:0.12=f32,1=qsgd:64 --gradient --rate 0.01 --feedback ef:raw
	Paper-10        1 16 paper:count:0.02=f32,0.5=qsgd:64,1=qsgd:64@4 --gradient --rate 0.01 --feedback ef:raw
	Paper-coarse    1 16 paper:count:0.2=f32,1=qsgd:4 --gradient --rate 0.01 --feedback ef:raw
	Uniform-4       1 16 paper:1=q8    --gradient --rate 0.01 --form even
	ACE-AdamW-2     1 16 12.8      --gradient --rate 0.01 --form even
	ACE-AdamW-4     1 16 8         --gradient --rate 0.01 --form even
	ACE-AdamW-10    1 16 3.2       --gradient --rate 0.01 --form even
	ACE-AdamW-20    1 16 1.6       --gradient --rate 0.01 --form even
	AdaSync        10 16 16        --rate 0.01 --form even --feedback none --target 0.06
	FedProx        10 16 dense     --rate 0.01 --prox 0.01
	ACE-local       9 16 8         --rate 0.01 --form even
	Paper-local     9 16 paper:count:0.12=f32,1=qsgd:64 --rate 0.01 --feedback ef:raw
	D-PSGD          1 16 gossip    --rate 0.01 --gossip
	1-bit-Adam      1  8 onebit:0.15 --gradient --rate 0.007
	MuLoCo         30  8 paper:1=topk:1:q2 --rate 0.01 --muon 0.014 --outer-rate 0.7 --outer-momentum 0.6 --form even --feedback ef
	DeMo            1  8 gather:chunk:32/4096 --gradient --dct --rate 0.006 --feedback ef:0.999
	DeMo-4          1  8 gather:chunk:4/4096:mag --gradient --dct --rate 0.003 --feedback ef:0.995
	SparseLoCo     15  8 gather:chunk:64/4096:q2 --rate 0.014 --muon 0.02 --outer-rate 0.4 --feedback ef:0.95 --rule trim:0:senders
	SparseLoCo-30  30  8 gather:chunk:64/4096:q2 --rate 0.014 --muon 0.02 --outer-rate 0.4 --feedback ef:0.95 --rule trim:0:senders
	END
}

# claims: print a line per claim: the way; the measure, which is its loss against FullSync
# (points of top-1, per cent of perplexity) or the share of the text that it reads until it
# has FullSync's last loss; and the limits of the mean and of the interval's upper end
claims() {
	[ "$EDGES" -le 4 ] || {
		cat <<-'END'
		ACE-500  top-1 0.5 0.5
		ACE-Sync top-1 0.5 0.5
		END
		return
	}
	cat <<-'END'
	ACE-100  top-1      0.2  0.2
	ACE-100  text       0.95 0.95
	ACE-500  top-1      0.3  0.5
	ACE-500  perplexity 1    1
	ACE-Sync top-1      0.3  0.5
	ACE-Sync perplexity 1    1
	ACE-1000 top-1      0.6  0.6
	END
}

# ---- what the sweep tries ----

# rates BATCH FACTOR [MUON]: print the rates of AdamW and Muon, which grow with the root
# of the batch; MUON is a further factor for Muon's
rates() {
	awk -v b="$1" -v f="$2" -v m="${3:-1}" 'BEGIN { f *= sqrt(b / 8)
	    printf "--rate,%.2g,--muon,%.2g\n", 0.007 * f, 0.02 * f * m }'
}

# grid: print names with the settings to try.  Ways that exchange at every step have as
# many exchanges as steps.  The others have the same number of exchanges for every
# batch; ACE-Sync also has the same bytes in half and twice as many.
grid() {
	local b f w
	for f in 0.7 1 1.4; do
		for b in 8 16 32; do
			echo "FullSync+--batch,$b,$(rates $b $f)"
			echo "Top-k+--batch,$b,$(rates $b $f 0.5)"
			echo "PowerSGD+--batch,$b,$(rates $b $f 0.5)"
		done
		for b in 8 16 32 64; do
			for w in FedAvg,160 DiLoCo,160 ACE-Sync,320; do
				[ $((${w#*,} % b)) -eq 0 ] || continue
				echo "${w%,*}+--batch,$b,--interval,$((${w#*,} /
				    b)),$(rates $b $f)"
			done
		done
	done
	for w in 0.7,0.3 0.9,0.3 0.9,0.6 0.7,0.8; do
		echo "DiLoCo+--outer-rate,${w%,*},--outer-momentum,${w#*,}"
	done
	for w in 5,0.64 20,2.56; do
		echo "ACE-Sync+--interval,${w%,*},--bits,${w#*,}"
	done
	echo "FullSync-AdamW"
	echo "FullSync+--decay,0.3"
	echo "ACE-Sync+--decay,0.3"
}

# ---- between the edges and the cloud ----

# down: send standard input to all edges; a relay gets it once and passes it on unchanged
down() {
	local r
	[ -n "$relays" ] || {
		broadcast
		return
	}
	count "$dir/got-down" | broadcast
	good "${PIPESTATUS[@]}" || return
	for r in $(seq "$relays"); do
		cp "$dir/got-down" "$dir/got-relay$r" || return
	done
	rm "$dir/got-down"
}

# relay R CODE...: sum the shards of its edges, and code the sum as an edge does.  Each
# relay has the same number of edges, with consecutive numbers.
relay() {
	local r=$1 each=$((EDGES / relays)) k up=()
	shift
	for ((k = (r - 1) * each + 1; k <= r * each; k++)); do
		up+=("$dir/up$k")
	done
	ace-aggregate --devices "$each" --rule sum -d "relay$r" "${up[@]}" | "$@" |
	    count "$dir/sent-relay$r" >"$dir/relay$r"
	good "${PIPESTATUS[@]}"
}

# gathered: print the average of the streams of all edges or relays.  The function named in
# relay_code, which gets a state directory, codes for a relay.
gathered() {
	local r p jobs=()
	[ -n "$relays" ] || {
		ace-aggregate --devices "$EDGES" "$dir"/up*
		return
	}
	for r in $(seq "$relays"); do
		mkfifo "$dir/relay$r" || return
		relay "$r" "$relay_code" "$dir/state-relay$r" &
		jobs+=($!)
	done
	ace-aggregate --devices "$relays" "$dir"/relay* || return
	for p in "${jobs[@]}"; do
		wait "$p" || return
	done
}

code_edge() {
	local s=$dir/state$1
	edge "$1" | ace-expand -S "$s" |
	    timed "edge$1" ace-compress -S "$s" -c "$code" --sync rename |
	    count "$dir/sent$1" >"$dir/up$1"
	good "${PIPESTATUS[@]}"
}

# paper_code STATE [PLAN]: ACE-Sync as its text describes it: (3) and (4) without our
# third feature; a share of the parameters in full precision and the next ones by (6);
# error feedback by (7).  The shares replace the choice of (5), and --target gives (9).
# The same code is used in both directions.  Without feedback, the codes are unbiased, as
# in their papers.
paper_code() {
	local state=(-S "$1") how=(--error-feedback "$feedback" --sync rename)
	local choose=(-p "${code#paper:}")
	[ "$feedback" != none ] || state=() how=()
	[ $# -lt 2 ] || choose=(--plan "$2")
	ace-expand "${state[@]}" | ace-score -S "$1" --form "$(weigh)" |
	    ace-select "${choose[@]}" | ace-compress "${state[@]}" "${how[@]}"
	good "${PIPESTATUS[@]}"
}
# often: with a target, set the interval by (9), between half and twice H
often() {
	[ -n "$target" ] || exec cat
	ace-policy -S "$dir/state" --target-divergence "$target" \
	    --interval "$H,$(((H + 1) / 2)),$((2 * H))"
}
paper_edge() {
	edge "$1" | paper_code "$dir/state$1" ${clusters:+"$work/plan-edge$1"} |
	    count "$dir/sent$1" >"$dir/up$1"
	good "${PIPESTATUS[@]}"
}
paper_cloud() {
	local relay_code=paper_code
	gathered | often | paper_code "$dir/state" | down
	good "${PIPESTATUS[@]}"
}

# With clusters, ace-aggregate groups the edges by the changes of their first ten local
# steps.  The mean of a cluster gives one plan for its edges and the whole run:
# $work/plan-EDGE.
first() {
	# shellcheck disable=SC2086 # word splitting is intended
	train --index "$1" --device "edge$1" --of "$EDGES" $model --batch "$batch" \
	    --valid "$valid" --seed "$seed" --rate 0.01 --interval 10 --steps 10 \
	    --run "$name" "$text"
}
clusters() {
	local k c=0 members
	for k in $(seq "$EDGES"); do
		first "$k" >"$work/first$k" || return
	done
	ace-aggregate --devices "$EDGES" --cluster "$clusters:mean" "$work"/first* \
	    >"$work/clusters" || return
	members=$(ace-inspect -v "$work/clusters" | sed -n 's/^key *clusters=//p')
	echo "$name: $what: clusters $members" >&2
	for members in ${members//;/ }; do
		ace-cut --device "aggregate.$c" "$work/clusters" |
		    ace-score -S "$work/scored$seed-$c" --form "$(weigh)" |
		    ace-select -p "${code#paper:}" --format text >"$work/plan$c"
		good "${PIPESTATUS[@]}" || return
		for k in ${members//,/ }; do
			cp "$work/plan$c" "$work/plan-$k" || return
		done
		c=$((c + 1))
	done
}

# D-PSGD on a ring, without a cloud: each edge sends its model to its two neighbours, through
# a named pipe each, and takes the mean of the three models.  The bytes are counted once
# for each neighbour.
beside() {
	left=$((($1 + EDGES - 2) % EDGES + 1)) right=$(($1 % EDGES + 1))
	mkfifo "$dir/own$1" 2>/dev/null || [ -p "$dir/own$1" ]
}
gossip_edge() {
	local left right
	beside "$1" || return
	edge "$1" | tee "$dir/own$1" "$dir/up$1" | count "$dir/sent$1" >"$dir/down$1"
	good "${PIPESTATUS[@]}" && sed -i p "$dir/sent$1"
}
# All edges read their three pipes in the order of edge numbers, which prevents a deadlock.
gossip_back() {
	local left right
	beside "$1" || return
	# shellcheck disable=SC2046 # names of ours, without blanks
	ace-aggregate --devices 3 $(printf '%s\n' "$1 $dir/own$1" "$left $dir/down$left" \
	    "$right $dir/up$right" | sort -n | cut -d ' ' -f 2-) |
	    count "$dir/got$1" >"$dir/apply$1"
	good "${PIPESTATUS[@]}" && sed -i p "$dir/got$1"
}
gossip_cloud() { [ "$EDGES" -gt 2 ]; }

# DeMo and SparseLoCo as their authors describe them: an edge's state keeps a residual,
# which decays by --feedback and is added to the edge's next shard.  The largest values of
# each chunk go unchanged through the cloud to all other edges, and each edge sums them.
# DeMo's chunks are blocks of 64 x 64 if the width is a multiple of 64; gains have chunks of
# 64.  SparseLoCo's clipping at the median norm, which is for unknown edges, is left out.
gather_plan() {
	# shellcheck disable=SC2086 # word splitting is intended
	train --index 1 $model --batch 1 --valid "$valid" --steps 1 "$text" |
	    ace-select -p "1=${code#gather:}" --format text |
	    sed '/norm[0-9]*$/s|/4096|/64|' >"$work/plan"
	good "${PIPESTATUS[@]}"
}
gather_edge() {
	edge "$1" | ace-select --plan "$work/plan" |
	    timed "edge$1" ace-compress -S "$dir/state$1" \
	    --error-feedback "$feedback" --sync rename |
	    count "$dir/sent$1" >"$dir/up$1"
	good "${PIPESTATUS[@]}"
}
# Every edge would decode the same shards of all others to the same bits.  Here the
# first edge decodes them for all, and its seconds are counted for each edge.
gather_back() {
	[ "$1" -eq 1 ] || return 0
	passable && timed expand1 ace-aggregate --devices "$EDGES" \
	    ${rule:+--rule "$rule"} "$dir"/from* | tee "$dir"/apply* >/dev/null
	good "${PIPESTATUS[@]}" || return
	seq 2 "$EDGES" |
	    xargs -I{} cp "$dir/seconds-expand1" "$dir/seconds-expand{}"
}
passable() {
	local k
	for k in $(seq "$EDGES"); do
		mkfifo "$dir/from$k" 2>/dev/null || [ -p "$dir/from$k" ] || return
	done
}
# gather_cloud: pass the shards on; bytes of an edge's own shards are not counted for it
gather_cloud() {
	local k p jobs=()
	passable || return
	for k in $(seq "$EDGES"); do
		count "$dir/passed$k" <"$dir/up$k" >"$dir/from$k" &
		jobs+=($!)
	done
	for p in "${jobs[@]}"; do
		wait "$p" || return
	done
	for k in $(seq "$EDGES"); do
		find "$dir" -name 'passed*' ! -name "passed$k" -exec cat {} + \
		    >"$dir/got$k" || return
	done
}
# 1-bit Adam: dense values until the second moments are frozen, then signs with error
# feedback, up and down.  The first part has its own pipes, named warm-*, and the trainers of
# the second part continue from its state.
warm() {
	local k
	warm=$(awk "BEGIN { print int(${code#*:} * $steps + 0.5) }")
	for k in $(seq "$EDGES"); do
		mkfifo "$dir/warm-up$k" 2>/dev/null || [ -p "$dir/warm-up$k" ] || return
		mkfifo "$dir/warm-down$k" 2>/dev/null || [ -p "$dir/warm-down$k" ] || return
	done
}
onebit_edge() {
	warm || return
	edge "$1" --apply "$dir/warm-down$1" --resume "$dir/kept$1" --until "$warm" \
	    --warmup $((warm / 10)) |
	    count "$dir/sent$1" >"$dir/warm-up$1"
	good "${PIPESTATUS[@]}" || return
	edge "$1" --resume "$dir/kept$1" --one-bit "$warm" |
	    timed "edge$1" ace-compress -S "$dir/state$1" -c sign --sync rename |
	    count "$dir/cold$1" >"$dir/up$1"
	good "${PIPESTATUS[@]}" && cat "$dir/cold$1" >>"$dir/sent$1"
}
onebit_back() { coded_back "$1" && cat "$dir/warm-got" >>"$dir/got$1"; }
onebit_cloud() {
	warm || return
	timed cloud ace-aggregate --devices "$EDGES" "$dir"/warm-up* |
	    count "$dir/warm-got" | tee "$dir"/warm-down* >/dev/null
	good "${PIPESTATUS[@]}" || return
	timed cloud ace-aggregate --devices "$EDGES" "$dir"/up* |
	    timed cloud2 ace-compress -S "$dir/state" -c sign --sync rename | broadcast
	good "${PIPESTATUS[@]}"
}

# code_cloud: code the average with as many values, or ranks, as the edges' codes have together
code_cloud() {
	local all
	all=$(awk -v c="$code" -v n="$EDGES" 'BEGIN { split(c, f, ":")
	    all = f[2] * n
	    print f[1] ":" (f[1] == "topk" && all > 1 ? 1 : all) }')
	timed cloud ace-aggregate --devices "$EDGES" "$dir"/up* |
	    timed cloud2 ace-compress -c "$all" | broadcast
	good "${PIPESTATUS[@]}"
}

# link K: print the rate of edge K's link, from which equation (5) computes its compression:
# 5 to 200 Mbit/s, in equal steps of the logarithm
link() {
	awk -v k="$1" -v n="$EDGES" 'BEGIN { printf "%.1fMbit\n",
	    5 * 40 ^ (n > 1 ? (k - 1) / (n - 1) : 0.5) }'
}

# link_of K: print the rate that edge K assumes: its own, or that of --link; with tier, the
# geometric mean of its tier, which ace-advise cluster finds
link_of() {
	local k n
	[ "$link" = tier ] || {
		echo "${link:-$(link "$1")}"
		return
	}
	n=$(elements) || return
	for k in $(seq "$EDGES"); do
		echo "edge$k $(awk "BEGIN { print ${STEP_MS:-20} * $batch / 8e3 }")" \
		    "$(link "$k" | sed s/Mbit/e6/) 0.1 $((4 * n))"
	done | { echo device compute bandwidth rtt bytes && cat; } >"$work/links$1"
	ace-advise cluster "$work/links$1" | awk -v k="edge$1" '
	    FNR == NR { rate[$1] = $3; next }
	    $3 in rate { tier[$3] = $1 }
	    END { for (d in tier) if (tier[d] == tier[k]) {
		    n++
		    sum += log(rate[d]) }
		printf "%.0fbit\n", exp(sum / n) }' "$work/links$1" -
}

# factor BITS X: print X times the compression ratio 32 / BITS
factor() {
	awk -v b="$1" -v x="$2" 'BEGIN { print 32 / b * x }'
}

# policy BITS LEAST MOST LINK: set the options of ace-policy for ratios of LEAST to MOST
# times that of BITS
policy() {
	policy=(--ratio "$(factor "$1" "$2"),$(factor "$1" "$3"),30Mbit"
	    --bandwidth "$4")
}

# elements: print the number of the model's values
elements() {
	# shellcheck disable=SC2086 # word splitting is intended
	train --index 1 $model --batch 1 --valid "$valid" --steps 1 "$text" |
	    ace-inspect | awk '$1 == "tensors" { print $3 }'
}

# weigh: print the argument of ace-score --form for the way's form
weigh() {
	case $form in
	even) echo moment:0 ;;
	sensitivity) echo moment:1 ;;
	*) echo "$form" ;;
	esac
}
# With form moment or sensitivity, the trainer measures moments; the cloud uses those of edge 1.
ace_edge() {
	local s=$dir/state$1 sense=() policy
	policy "${code%/*}" 0.8 1.35 "$(link_of "$1")"
	if [[ $form =~ ^(moment|sensitivity) ]]; then
		(umask 77 && mkdir -p "$s" "$dir/state")
		sense=(--moment "$s/moment")
		[ "$1" -ne 1 ] || sense+=(--moment "$dir/state/moment")
	fi
	edge "$1" "${sense[@]}" |
	    timed "edge$1" ace-step -q -S "$s" --form "$(weigh)" --policy \
	    "${policy[@]}" ${effort:+--effort "$effort"} --gamma "$gamma" --sync rename |
	    count "$dir/sent$1" >"$dir/up$1"
	good "${PIPESTATUS[@]}"
}

# With --form paper, the weights are learnt from the averages.
ace_back() {
	[ "$form" != paper ] || set -- "$1" --feedback "$dir/state$1"
	coded_back "$@"
}

ace_relay() {
	local policy
	policy "${code%/*}" 1 1 1000Mbit
	ace-step -q -S "$1" --form "$(weigh)" --policy "${policy[@]}" \
	    ${effort:+--effort "$effort"} --gamma "$gamma" --sync rename
}
ace_cloud() {
	local often=() policy relay_code=ace_relay
	policy "${code#*/}" 1 1 1000Mbit
	[ -z "$target" ] || often=(--target-divergence "$target"
	    --interval "$H,$(((H + 1) / 2)),$((2 * H))")
	timed cloud gathered |
	    timed cloud2 ace-step -q -S "$dir/state" --form "$(weigh)" --policy \
	    "${policy[@]}" ${effort:+--effort "$effort"} --gamma "$gamma" --sync rename \
	    "${often[@]}" |
	    down
	good "${PIPESTATUS[@]}"
}
