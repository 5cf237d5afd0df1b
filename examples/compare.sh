# shellcheck shell=bash disable=SC2154 # name, and what pipes.sh and ways.sh set
# Train the same small model in several ways on the same text, seed by seed, with edges
# and a cloud on this machine: the common part of table1.sh, frontier.sh and
# table1-sweep.sh.  These scripts set `name', call begin and all, and draw the results.
#
# Each script takes a DIR and writes DIR/NAME.tsv and more.  Every run is a line of
# DIR/runs.tsv and several lines of DIR/curves.tsv, and is not repeated: a stopped script
# continues, and the scripts share their runs.  The last column of runs.tsv has all settings
# of a run and the checksum of its text.  corpus.sh writes the text and the list of its files
# to DIR/text.
#
# SEEDS=N EDGES=N	8 (table1-sweep: 1), 4
# STEPS=N	amount of text: all ways read as much as N steps (5000) with a batch of 8
#		on each of 4 edges
# CORPUS=FILE	your own text, instead of 12 MB of C++ headers that are the same on
#		every machine; other headers are refused
# SPLIT=parts	each edge has its own part of the text; interleaved: stripes in turn
# LOCAL=1	train ways that exchange dense values with all edges in one process; the
#		models are the same, the bytes are computed, and the time of the
#		programs is not counted
# MODEL="..."	the trainer's options for another model
# ONLY="..."	only these ways.  WAY+--decay,0.3 gives the trainer an option.
#		WAY+--batch,16,--interval,5,--bits,2 (or 1/3: up and down; or
#		dense) replaces parts of the way's line in ways.sh.
#		--target,X: the policy sets the interval, between half and twice the
#		line's, so that the mean difference is X times the model's norm.
#		--feedback,none: without error feedback; ef:0.95: multiply each residual
#		by 0.95 in each round.  For paper:... and gather:..., other values are
#		those of ace-compress; ef:raw is the paper's.
#		--rule,X: an option of ace-aggregate.
#		--link,RATE: the rate that all edges assume, so that (5) is the same
#		for all; with tier, the mean rate of the edge's tier.
#		--clusters,X (only paper:...): after ten local steps, edges of a cluster
#		get one plan for the whole run; X is the largest distance in a cluster;
#		with 0 each edge has its own plan.
#		--effort,9: code with ace-step --effort 9, up and down.
#		--relays,2: two relays between the edges and the cloud, which code as
#		edges do; their bytes are counted, but not their time.
# TRACE=FILE	lines of second, edge, Mbit/s, ms, which are repeated; by default the
#		links swing between 5 and 200 Mbit/s and between 10 and 300 ms.  The
#		time of transmission is computed, not waited for.
# POINTS=N	points of a curve (25); each takes as long as some steps
# STEP_MS=X	milliseconds of a step with a batch of 8 on an edge (20)
here_is=$(dirname "$0")
: "${PROGRESS:=60}"		# a run takes hours
# shellcheck source=examples/pipes.sh
. "$here_is/pipes.sh"
# shellcheck source=examples/ways.sh
. "$here_is/ways.sh"

EDGES=${EDGES:-4}
STEPS=${STEPS:-5000}
SPLIT=${SPLIT:-parts}
SEEDS=${SEEDS:-8}
model=${MODEL:---layers 2 --width 64 --heads 2 --context 64}
points=${POINTS:-25}		# points of a curve
sequences=$((STEPS * 8 * 4))	# sequences that all edges read together
valid=0.04			# share of the text that is for validation

# ---- the text ----

# passes: print the size of the training text, and how often each way reads it
passes() {
	wc -c <"$text" | awk -v s="$sequences" -v c="$context" -v v="$valid" \
	    -v name="$name" '{
		train = $1 - int($1 * v)
		x = s * c / train
		printf "%s: %.1f MB of text to train on, ", name, train / 1e6
		if (x <= 1)
			printf "of which %.0f %% is read, once\n", 100 * x
		else
			printf "which is read %.1f times (fewer STEPS, or more " \
			    "with CORPUS=FILE, and nothing is repeated)\n", x
	}' >&2
}

# ---- a way ----

# once WORDS: print the options in WORDS, each once, with its last value
once() {
	awk -v list="$*" 'BEGIN {
		n = split(list, f, " ")
		for (i = 1; i <= n; i++) {
			if (f[i] !~ /^--/)
				continue
			v = i < n && f[i + 1] !~ /^--/ ? " " f[i + 1] : ""
			if (!(f[i] in value))
				order[++m] = f[i]
			value[f[i]] = f[i] v
		}
		for (i = 1; i <= m; i++)
			printf "%s%s", (i > 1 ? " " : ""), value[order[i]]
	}'
}

# take OPTION: move the option's value from `given' to `value'; fail if there is none
take() {
	value=
	[[ " $given " =~ (.*)" $1 "([^ ]+)" "(.*) ]] || return 1
	value=${BASH_REMATCH[2]}
	given="${BASH_REMATCH[1]} ${BASH_REMATCH[3]}"
}

# way NAME: set H, batch, steps, code and the way's other settings; and setup, which also has
# the settings that all ways share.  setup and seed identify a run.
way() {
	local line more=
	[ "${1%%+*}" = "$1" ] || more=${1#*+}
	line=$(all_ways | awk -v w="${1%%+*}" '$1 == w')
	[ -n "$line" ] || die "method '${1%%+*}' is unknown: ways.sh lists all"
	read -r _ H batch code given <<<"$line"
	# values may contain commas as well
	more=$(sed -E 's/[,+]--/ --/g; s/(^| )(--[a-z-]+),/\1\2 /g' <<<"$more")
	given=$(once "$given $more")
	! take --batch || batch=$value
	! take --interval || H=$value
	! take --bits || code=$value
	form=moment feedback=ef
	[[ $code != paper:* ]] || form=paper
	! take --form || form=$value
	! take --feedback || feedback=$value
	gamma=1
	[ "$feedback" != none ] || gamma=0
	[[ ! $feedback =~ ^ef:[0-9.]+$ ]] || gamma=${feedback#ef:}
	target=
	! take --target || target=$value
	link=
	! take --link || link=$value
	rule=
	! take --rule || rule=$value
	effort=
	! take --effort || effort=$value
	clusters=
	! take --clusters || clusters=$value
	[[ -z $clusters || $code = paper:* ]] || die "'$1': --clusters needs a code paper:..."
	relays=
	! take --relays || relays=$value
	[[ -z $relays || $relays =~ ^[1-9][0-9]*$ && $code =~ ^(paper:|[0-9.]) &&
	    $((EDGES % relays)) -eq 0 ]] ||
	    die "'$1': --relays needs a code paper:... or --bits, and a divisor of the" \
	    "$EDGES edges"
	[[ $batch$H =~ ^[1-9][0-9]*$ && $code =~ ^(dense|gossip|[0-9.]+(/[0-9.]+)?|[a-z]+:[0-9.]+|gather:[a-z0-9.:/]+|paper:[a-z0-9.:=,@]+)$ ]] ||
	    die "'$1' has batch $batch, interval $H, code $code: expected a batch and" \
	    "an interval from 1, and a code as in the head of ways.sh"
	batch=$(awk -v b="$batch" -v n="$EDGES" 'BEGIN {
	    b = int(b * 4 / n + 0.5); print (b > 1 ? b : 1) }')
	steps=$((sequences / (EDGES * batch)))
	[ "$steps" -ge 1 ] || die "'$1': STEPS=$STEPS is too small for one step with" \
	    "batch $batch on $EDGES edges: give more STEPS"
	# shellcheck disable=SC2086 # word splitting is intended
	given=$(once $given)
	if [[ " $given " = *" --gradient "* ]]; then
		[ "$H" -eq 1 ] || die "'$1': --gradient exchanges at every step, found interval $H"
	else
		given="--interval $H $given"
	fi
	setup="$EDGES edges, $SPLIT, $common, batch $batch, $steps steps"
	[ -z "$target" ] || given="$given --policy"
	setup="$setup, $code, $given, $form${target:+, drift $target}"
	setup=$setup${link:+, link $link}${effort:+, effort $effort}${relays:+, $relays relays}${clusters:+, clusters $clusters}
	[ -z "$rule" ] || setup="$setup, rule $rule"
	[ "$feedback" = ef ] || setup="$setup, feedback $feedback"
	id=$(cksum <<<"$setup" | cut -d ' ' -f 1)
	# shellcheck disable=SC2206 # word splitting is intended
	options=($model --batch "$batch" --valid "$valid" --windows 1024
	    --seed "$seed" $given --every $((steps / (H * points) + 1)))
	[ "$SPLIT" = parts ] || options+=(--interleaved)
}

# dense ROUNDS: make the streams of the edges, one step per round, and of the cloud, to
# measure their sizes.  The edges get no averages, and all read the first edge's text, since
# the cloud does not average models that differ.
dense() {
	local k short='' given=$given
	# --average-moments is only allowed with --local
	given=${given/--average-moments/}
	[ "$H" -eq 1 ] || short=--interval=1
	for k in $(seq "$EDGES"); do
		# shellcheck disable=SC2086 # word splitting is intended
		train --index 1 --device "edge$k" --of "$EDGES" $model --batch "$batch" \
		    --valid "$valid" $given $short --steps "$1" --run "$name" \
		    "$text" >"$dir/up$1-$k"
	done
	ace-aggregate --devices "$EDGES" "$dir/up$1"-* >"$dir/down$1"
}

# stretch ROUNDS ONE TWO: print the bytes of ROUNDS rounds, extrapolated from ONE, the bytes
# of one round, and TWO, those of two rounds
stretch() {
	echo "$(($2 + ($1 - 1) * ($3 - $2))) bytes"
}

# alone: train all edges in one process; extrapolate the size of their streams from one
# and two rounds.
alone() {
	local k rounds
	dir=$work/$what
	mkdir "$dir" || exit 4
	jobs=()
	start "$what" train --local --of "$EDGES" --steps "$steps" \
	    "${options[@]}" --eval --log "$dir/log" \
	    --progress "$dir/progress" "$text"
	show "$what"
	wait "${jobs[0]}" || die "$what failed"
	hide
	jobs=()
	rounds=$(of "$dir/log" end 2)
	dense 1 && dense 2 || die "$what: cannot measure its streams"
	# shellcheck disable=SC2046 # word splitting is intended
	set -- $(for k in up1-1 up2-1 down1 down2; do wc -c <"$dir/$k"; done)
	for k in $(seq "$EDGES"); do
		stretch "$rounds" "$1" "$2" >"$dir/sent$k"
		stretch "$rounds" "$3" "$4" >"$dir/got$k"
	done
	echo "$name: $what: $steps steps in $rounds rounds, in one process" >&2
}

go() {
	[ -z "$clusters" ] || clusters || die "$what: cannot find its clusters"
	case $code,${LOCAL:-} in
	dense,) run "$what" dense_edge dense_back dense_cloud ;;
	dense,*) alone ;;
	gossip,*) gossip='models of their own' run "$what" gossip_edge \
	    gossip_back gossip_cloud ;;
	gather:*)
		gather_plan || die "$what: cannot plan its codes"
		run "$what" gather_edge gather_back gather_cloud
		;;
	onebit:*) run "$what" onebit_edge onebit_back onebit_cloud ;;
	paper:*) run "$what" paper_edge coded_back paper_cloud ;;
	*:*) run "$what" code_edge coded_back code_cloud ;;
	*) run "$what" ace_edge ace_back ace_cloud ;;
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

# seconds WHAT: print the sum of the CPU seconds in the files seconds-WHAT
seconds() {
	cat "$dir/seconds-$1" 2>/dev/null | awk '{ t += $1 + $2 } END { print t + 0 }'
}

# curve: print the log of a run, with the bytes and the network's time up to each line.
# A round ends when the slowest edge has its average:
#
#	max over edges of  (steps * STEP_MS * batch / 8 + RTT +
#	    bits up and down / rate + seconds of the edge's programs)
#	+ seconds of the cloud's programs
curve() {
	local k
	for k in $(seq "$EDGES"); do
		echo "$k $(counted "$dir/sent$k") $(counted "$dir/got$k")" \
		    "$(seconds "edge$k") $(seconds "expand$k")"
	done >"$work/bytes"
	awk -v OFS='\t' -v id="$id" -v seed="$seed" \
	    -v step="$(awk "BEGIN { print ${STEP_MS:-20} * $batch / 8 }")" \
	    -v cloud="$(seconds 'cloud*')" '
	FILENAME == ARGV[1] { mbit[$1, $2] = $3; ms[$1, $2] = $4
	    last = $1 + 1; next }
	FILENAME == ARGV[2] { bits[$1] = 8 * ($2 + $3); all += $2 + $3; n++
	    code[$1] = $4 + $5; next }
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
					x += ms[s, k] / 1000 + code[k] / rounds
					most = x > most ? x : most
				}
				t += most + cloud / rounds
				t += steps / rounds * step / 1000
			}
			print id, seed, sprintf("%.4f", f[3] / steps), f[2],
			    f[4], f[5], f[6],
			    sprintf("%.0f", all * r / rounds),
			    sprintf("%.1f", t)
		}
	}' "$work/trace" "$work/bytes" "$dir/log"
}

# ---- tables ----

runs_head='id seed H batch steps code top1 ppl loss rounds up down near s_near s setup'
curves_head='id seed share round loss ppl top1 bytes s'

# result FILE: print the line of a run from its curve.  The time until 99 % of the last
# accuracy is interpolated between two points.
result() {
	awk -v OFS='\t' -v up="$(counted "$dir"/sent*)" \
	    -v got="$(counted "$dir"/got*)" -v setup="$setup" \
	    -v how="$H	$batch	$steps	$code" '
	{ share[NR] = $3; top[NR] = $7; time[NR] = $9; id = $1; seed = $2
	    rounds = $4; loss = $5; ppl = $6 }
	END {
		near = 0.99 * top[NR]
		for (i = 1; top[i] < near; i++);
		x = i > 1 ? (top[i] - near) / (top[i] - top[i - 1]) : 0
		print id, seed, how, top[NR], ppl, loss, rounds, up, got,
		    sprintf("%.3f", share[i] - x * (share[i] - share[i - 1])),
		    sprintf("%.1f", time[i] - x * (time[i] - time[i - 1])),
		    time[NR], setup
	}' "$1"
}

# lines FILE: remove from FILE the lines of this run, which FILE has if the script was
# stopped while it wrote them
lines() {
	[ ! -s "$1" ] || awk -F '\t' -v id="$id" -v s="$seed" \
	    '!($1 == id && $2 == s)' "$1" >"$1.new"
	[ ! -e "$1.new" ] || mv "$1.new" "$1"
}

# known: succeed if the run is already in runs.tsv
known() {
	awk -F '\t' -v id="$id" -v s="$seed" -v setup="$setup" '$1 == id &&
	    $2 == s && $NF == setup { f = 1 } END { exit !f }' "$out/runs.tsv"
}

# one WAY: do a run, unless it is known
one() {
	way "$1"
	known && return
	what=${1//\//:}-$seed		# also the name of a directory
	dir=$work/$what
	go
	lines "$out/curves.tsv"
	curve | tee -a "$out/curves.tsv" >"$work/curve"
	result "$work/curve" >>"$out/runs.tsv"
	rm -rf "$dir"
}

# named TABLE: print the table's lines of the requested ways, with their names
named() {
	awk -F '\t' -v OFS='\t' '
	FILENAME == ARGV[1] { name[$1] = name[$1] " " $2; next }
	FNR == 1 || $1 in name {
		line = $2
		for (i = 3; i <= NF; i++)
			line = line OFS $i
		k = FNR == 1 ? 1 : split(name[$1], f, " ")
		for (i = 1; i <= k; i++)
			print (FNR == 1 ? "method" : f[i]), line
	}' "$work/names" "$1"
}

show_table() {
	awk -F '\t' 'FNR == NR { for (i = 1; i <= NF; i++)
	    if (length($i) > w[i]) w[i] = length($i); next }
	{ printf "%-" w[1] "s", $1
	    for (i = 2; i <= NF; i++) printf "  %" w[i] "s", $i
	    print "" }' "$1" "$1"
}

# pairs ARG...: run paired.awk on the lines that `named' printed
pairs() {
	awk -v list="$ways" "$@" -f "$here/examples/student.awk" \
	    -f "$here/examples/paired.awk" "$table-runs.tsv" "$table-curves.tsv"
}

# begin DIR: prepare the text, the trace, and the common part of all runs
begin() {
	out=$1
	mkdir -p "$out" || exit 4
	need train ace-aggregate ace-compress ace-expand ace-step awk cksum cmp \
	    dd mkfifo tee gnuplot
	case $SPLIT in
	parts | interleaved) ;;
	*) die "SPLIT '$SPLIT' is unknown: expected parts or interleaved" ;;
	esac
	[[ " $model " != *" --batch "* ]] ||
	    die "MODEL has --batch, but each method has its own: leave it out"
	context=$(awk -v m="$model" 'BEGIN { n = split(m, f, " ")
	    for (i = 1; i < n; i++) if (f[i] == "--context") c = f[i + 1]
	    print c ? c : 64 }')
	find_text "$out/text/fresh" "$here/examples/corpus.sh" fresh "$out/text"
	passes
	trace >"$work/trace"
	common="text $(cksum <"$text" | tr ' ' /), $valid kept, $model, network"
	common="$common $(cksum <"$work/trace" | tr ' ' /), ${STEP_MS:-20} ms"
	common="$common, $(ace-step --version | head -n 1)"
	[ -s "$out/runs.tsv" ] || tr ' ' '\t' <<<"$runs_head" >"$out/runs.tsv"
	[ -s "$out/curves.tsv" ] ||
	    tr ' ' '\t' <<<"$curves_head" >"$out/curves.tsv"
	table=$out/$name
}

# all WAY...: do all runs with every seed, then make the tables
all() {
	local w run=0
	ways=$*
	for seed in $(seq "$SEEDS"); do
		for w; do
			run=$((run + 1))
			# shellcheck disable=SC2034 # used in pipes.sh
			part="run $run of $((SEEDS * $#))"
			one "$w"
		done
	done
	for w; do
		way "$w"
		printf '%s\t%s\n' "$id" "$w"
	done >"$work/names"
	named "$out/runs.tsv" >"$table-runs.tsv"
	named "$out/curves.tsv" >"$table-curves.tsv"
	pairs >"$table.tsv"
	show_table "$table.tsv"
}

# judge: print the claims, and whether these runs support them
judge() {
	pairs -v claims="$(claims | tr -s '\n\t' '  ')" >"$table-claims.tsv"
	[ "$(wc -l <"$table-claims.tsv")" -le 1 ] || {
		echo
		show_table "$table-claims.tsv"
	}
}
