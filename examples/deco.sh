#!/bin/bash
# Time to a target loss over links that stay and links that change: DeCo-SGD as
# ace-policy --deco does it, against fixed plans.
#
#	deco.sh [DIR]	writes DIR/deco.tsv and .svg (default .)
#
# The training is real, a small network on four devices; the network between
# them is computed, with the sizes and the pace of the example's transformer on
# a small device: 252384 values, 0.1 s a step (tests/emulate.c).
#
# Of each way, the plan that is best for a link is chosen with some seeds and
# measured with others, as DeCo is, so that luck does not count as skill.
set -euo pipefail
here=$(cd "${0%/*}" && pwd)
PATH=${BUILD:-$here/../build}/tests:$PATH
out=${1:-.}
mkdir -p "$out"
cores=$(nproc 2>/dev/null || echo 2)
work=$(mktemp -d) || exit 4
trap 'rm -rf "$work"' EXIT

read -ra choose <<<"${CHOOSE:-1 2 3}"		# seeds
read -ra measure <<<"${MEASURE:-11 12 13 14 15 16 17 18}"
shares='1 0.3 0.1 0.06 0.03 0.01'
delays='0 1 2 3 4'
rates='0.2 0.3 0.4 0.6'
same='5_10 5_100 5_300 50_10 50_100 50_300 200_10 200_100 200_300'
changing='200_10_8_5_300_8_50_100_8 5_300_8_50_100_8_200_10_8 200_10_8_5_300'

# runs WAY SEED...: a line on the input is a plan, run with each seed
runs() {
	local way=$1 s line
	shift
	while read -r line; do
		for s; do echo "$line $s"; done
	done | xargs -P "$cores" -L 1 nice emulate "$way"
}

# The rate that is best for a delay, of a dense gradient; all ways use it.
for t in $delays; do
	for r in $rates; do echo "1 $t $r"; done
done | runs fixed "${choose[@]}" >"$work/sweep"
awk -F'\t' '{ k = $2 FS $3; n[k]++; bad[k] += $5 == 0; s[k] += $5 }
    END { for (k in n) if (!bad[k]) { split(k, f, FS)
	if (!(f[1] in best) || s[k] / n[k] < best[f[1]]) {
	    best[f[1]] = s[k] / n[k]; rate[f[1]] = f[2] } }
	for (t in best) printf("%s %s %.0f\n", t, rate[t], best[t]) }' \
    "$work/sweep" | sort -n >"$work/rates"
echo 'delay, its best rate, steps to the target:'
cat "$work/rates"
read -ra by_delay <<<"$(cut -d' ' -f1,2 "$work/rates" | tr '\n' ' ')"

while read -r t r _; do
	for d in $shares; do echo "$d $t $r"; done
done <"$work/rates" | runs fixed "${choose[@]}" >"$work/fixed"
while read -r t r _; do
	for f in 1 2; do echo "$t $(awk "BEGIN { print $r / $f }")"; done
done <"$work/rates" | runs dga "${choose[@]}" >"$work/dga"

# mean LINK FILE [CONDITION]: share, delay, rate and mean seconds of each plan
# that reaches the target with every seed, the fastest first
mean() {
	emulate time "${1//_/ }" <"$2" | awk -F'\t' "${3:-1}"' {
	    k = $1 FS $2 FS $3; n[k]++; bad[k] += $5 == 0; s[k] += $NF }
	    END { for (k in n) if (!bad[k])
		printf("%s\t%.3f\n", k, s[k] / n[k]) }' | sort -t "$(printf '\t')" -k4,4g
}

# choice LINK WAY: its best plan; kept: what DeCo begins with, for ever
choice() {
	case $2 in
	sync) echo "1 0 ${by_delay[1]}" ;;
	dga) mean "$1" "$work/dga" | head -n 1 | cut -f2,3 ;;
	compressed) mean "$1" "$work/fixed" '$2 == 0' | head -n 1 | cut -f1-3 ;;
	fixed) mean "$1" "$work/fixed" | head -n 1 | cut -f1-3 ;;
	kept) emulate deco "$(cut -d_ -f1,2 <<<"$1" | tr _ ' ')" 1 \
	    "${by_delay[@]}" | awk -v rates="${by_delay[*]}" '{
		split(rates, r, " "); print $5, $4, r[2 * $4 + 2] }' ;;
	esac | tr '\t' ' '
}

ways='sync dga compressed fixed kept'
for l in $same $changing; do
	for w in $ways; do echo "$l $w $(choice "$l" "$w")"; done
done >"$work/choices"
for w in dga fixed; do
	awk -v dga=$w '($2 == "dga") == (dga == "dga") { $1 = $2 = ""; print }' \
	    "$work/choices" | sort -u | runs $w "${measure[@]}" >"$work/$w.2"
done

# measured LINK WAY PLAN...: its seconds, with the other seeds
measured() {
	local f=$work/fixed.2 l=$1 d=$3 t=$4
	[ "$2" != dga ] || f=$work/dga.2 d=1 t=$3
	mean "$l" "$f" "\$1 == $d && \$2 == $t" | head -n 1 | cut -f4
}

# adaptive LINK: seconds; how often the plan changed; share and delay at last
adaptive() {
	local s
	for s in "${measure[@]}"; do
		printf '"%s" %s %s\n' "${1//_/ }" "$s" "${by_delay[*]}"
	done | xargs -P "$cores" -L 1 nice emulate deco | awk -F'\t' '
	    { s += $1; n++; c += $3 - 1; bad += !$1; d += $5; t += $4 }
	    END { printf("%s\t%.1f\t%.2g\t%.2g\n",
		bad ? "-" : sprintf("%.3f", s / n), c / n, d / n, t / n) }'
}

{
	printf 'link'
	for w in $ways deco; do printf '\t%s s' $w; done
	printf '\tfixed plan\tdeco plan\tchanges\tby sync\tby kept\tby fixed\n'
	for l in $same $changing; do
		printf '%s' "$l"
		for w in $ways; do
			read -ra plan <<<"$(grep "^$l $w " "$work/choices" |
			    cut -d' ' -f3-)"
			printf '\t%s' "$(measured "$l" $w "${plan[@]}")"
		done
		printf '\t%s\t%s\n' "$(adaptive "$l")" "$(grep "^$l fixed " \
		    "$work/choices" | cut -d' ' -f3,4 | tr ' ' ',')"
	done | awk -F'\t' -v OFS='\t' '{ print $1, $2, $3, $4, $5, $6, $7, $11,
	    $9 "," $10, $8, sprintf("%.2f", $2 / $7), sprintf("%.3f", $6 / $7),
	    sprintf("%.3f", $5 / $7) }'
} >"$out/deco.tsv"

awk -F'\t' '{ printf "%-26s", $1; for (i = 2; i <= 7; i++) printf "%13s", $i
    printf "%12s%18s%9s%9s%9s%9s\n", $8, $9, $10, $11, $12, $13 }' \
    "$out/deco.tsv"

command -v gnuplot >/dev/null || { echo 'no gnuplot: no picture' >&2; exit; }
gnuplot <<END
set terminal svg size 900,420 font 'sans,12'
set output '$out/deco.svg'
set datafile separator tab
set title 'Seconds to the target loss (Mbit/s, ms)'
set style data histogram
set style fill solid border -1
set logscale y
set xtics rotate by -30 noenhanced
set key top right
plot for [i in '2 3 4 5 7'] '$out/deco.tsv' using int(i):xtic(1) \
    title columnheader(int(i)) noenhanced
END
