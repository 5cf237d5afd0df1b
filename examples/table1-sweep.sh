#!/usr/bin/env bash
# Run the sweep from which the lines of ways.sh were chosen: each way with several
# rates, batches (and so numbers of steps) and intervals, on the same text.
#
#	table1-sweep.sh [DIR]	writes DIR/table1-sweep.tsv, -best.tsv
#
# For the variables see compare.sh; for the settings, grid in ways.sh.  There are many
# runs, of minutes each; a stopped sweep continues.
name=table1-sweep
SEEDS=${SEEDS:-1}
# shellcheck source=examples/compare.sh
. "$(dirname "$0")/compare.sh"

begin "${1:-.}"
# shellcheck disable=SC2046,SC2086 # word splitting is intended
all ${ONLY:-$(grid)}

# Print for each way the line with the least perplexity.
awk -F '\t' 'NR == 1 { for (i = 1; i <= NF; i++) if ($i == "perplexity") c = i
	    print; next }
    $c !~ /^[0-9.]+$/ { next }
    { w = $1; sub(/\+.*/, "", w)
	if (!(w in best)) order[++n] = w
	if (!(w in best) || $c < best[w]) { best[w] = $c; line[w] = $0 } }
    END { for (i = 1; i <= n; i++) print line[order[i]] }' "$table.tsv" \
    >"$table-best.tsv"
echo
show_table "$table-best.tsv"
