#!/bin/bash
# Check what README.md says about accuracy against the runs:
#
#	claims.sh [README [RESULTS]]	make claims
#
# results/claims.tsv has the sentences, with @ for each figure, and the places of the
# figures: TABLE WAY KEY DIGITS, separated by semicolons.  KEY is mean (points of top-1
# lost against the table's reference), from or to (the ends of the mean's 95 % interval),
# ratio (of bytes) or seeds.  All figures are computed again from results/TABLE-runs.tsv.
# Print each sentence, and below it each figure with its seeds.  The status is 1 if README
# lacks the sentence, if the baseline of a table in RESULTS was not swept at the length of
# its runs (swept.awk), or if a figure in the prose of RESULTS/README.md is in none of the
# tables that the prose names (prose.awk).
set -u
export LC_ALL=C
here=$(cd "$(dirname "$0")/.." && pwd)
results=${2:-$here/examples/results}

# figure TABLE WAY KEY DIGITS: print the figure and its seeds
figure() {
	local t=$results/$1 claims=
	[ "$3" = ratio ] || claims="$2 top-1 0 0"
	awk -v list="$(tail -n +2 "$t.tsv" | cut -f 1 | paste -sd ' ')" \
	    -v claims="$claims" -v digits=9 -f "$here/examples/student.awk" \
	    -f "$here/examples/paired.awk" "$t-runs.tsv" "$t-curves.tsv" |
	    awk -F '\t' -v way="$2" -v key="$3" -v digits="$4" '
		NR == 1 { for (i = 1; i <= NF; i++) at[$i] = i }
		NR > 1 && $1 == way && $at[key] != "-" {
			printf "%.*f\t%s\n", digits, $at[key], $at["seeds"] }'
}

folded=$(tr '\n' ' ' <"${1:-$here/README.md}") || exit 4
bad=0
while IFS=$'\t' read -r sentence figures; do
	below=
	while read -r table way key digits; do
		head -n 1 "$results/$table-runs.tsv" | grep -q 'setup$' || {
			echo "claims.sh: '$results' lacks $table-runs.tsv with a column" \
			    "setup: make its runs again" >&2
			exit 3
		}
		got=$(figure "$table" "$way" "$key" "$digits")
		[ -n "$got" ] || {
			echo "claims.sh: $table.tsv and its runs give no '$key' of method '$way'" >&2
			exit 3
		}
		sentence=${sentence/@/${got%$'\t'*}}
		below+="    ${got%$'\t'*}: $key of $way in $table.tsv, seeds: ${got#*$'\t'}"$'\n'
	done < <(tr ';' '\n' <<<"$figures")
	printf '%s\n%s' "$sentence" "$below"
	[[ "$folded" == *"$sentence"* ]] || {
		echo '    README does not say this'
		bad=1
	}
done < <(tail -n +2 "$results/claims.tsv")
tables=()
for t in "$results"/*-runs.tsv; do
	[ ! -e "${t%-runs.tsv}.tsv" ] || tables+=("${t%-runs.tsv}.tsv")
done
unswept=$(awk -f "$here/examples/swept.awk" "${tables[@]}" "$results"/*-runs.tsv)
all=()
for t in "$results"/*.tsv; do
	[[ $t = *-curves.tsv ]] || all+=("$t")
done
unnamed=$(awk -f "$here/examples/student.awk" -f "$here/examples/prose.awk" \
    "$results/README.md" "${all[@]}" "$results/README.md")
for t in "$unswept" "$unnamed"; do
	[ -z "$t" ] || {
		printf '%s\n' "$t"
		bad=1
	}
done
exit $bad
