#!/bin/bash
# Measure the time to a target loss over constant and changing links: DeCo-SGD as in
# ace-policy --deco, compared with fixed plans.
#
#	deco.sh [DIR]	writes DIR/deco.tsv and .svg (default .)
#
# The training is real: a small model on four devices.  The links between them are
# simulated, for messages of the size of the example's transformer, 252384 values, and its
# speed on a small device, 0.1 s per step (tests/emulate.c).
#
# The best plan of each way, and the learning rate of each delay, are chosen with some seeds
# and measured with others, so that luck does not look like skill.  Hindsight is the measured
# pair of share and delay that was fastest on this link, which no plan could know.
#
# Plans have two forms: as in DeCo-SGD, and ahead, where each device applies its own update
# immediately and the average corrects it later.  Without compression the second form is
# delayed gradient averaging (DGA).
set -euo pipefail
export LC_ALL=C
here=$(cd "${0%/*}" && pwd)
PATH=${BUILD:-$here/../build}/tests:$PATH
out=${1:-.}
mkdir -p "$out"
cores=$(nproc 2>/dev/null || echo 2)
work=$(mktemp -d) || exit 4
trap 'rm -rf "$work"' EXIT

read -ra choose <<<"${CHOOSE:-1 2 3 4 5}"		# seeds
read -ra measure <<<"${MEASURE:-11 12 13 14 15 16 17 18}"
shares='1 0.3 0.1 0.06 0.03 0.01'
delays='0 1 2 3 4'
rates='0.2 0.3 0.4 0.6'
same='5_10 5_100 5_300 50_10 50_100 50_300 200_10 200_100 200_300'
changing='200_10_8_5_300_8_50_100_8 5_300_8_50_100_8_200_10_8 200_10_8_5_300'

# runs WAY SEED...: run each plan on standard input with each seed
runs() {
	local way=$1 s line plans
	shift
	mapfile -t plans
	for line in "${plans[@]}"; do
		for s; do echo "$line $s"; done
	done | xargs -P "$cores" -L 1 nice emulate "$way" |
	    counted "$way" $((${#plans[@]} * $#))
}

# counted WAY N: pass on lines; on a terminal, show how many of N have come
counted() {
	if [ ! -t 2 ] || [ "${TERM:-dumb}" = dumb ]; then
		cat
		return
	fi
	awk -v way="$1" -v all="$2" '{ print; fflush()
		printf("\r%s: run %d of %d\033[K", way, NR, all) >"/dev/stderr" }
	    END { printf("\r\033[K") >"/dev/stderr" }'
}

# Find each delay's best learning rate with dense gradients; all plans of that delay use it.
for w in fixed ahead; do
	for t in $delays; do
		for r in $rates; do echo "1 $t $r"; done
	done | runs $w "${choose[@]}" >"$work/sweep"
	awk -F'\t' '{ k = $2 FS $3; n[k]++; bad[k] += $5 == 0; s[k] += $5 }
	    END { for (k in n) if (!bad[k]) { split(k, f, FS)
		if (!(f[1] in best) || s[k] / n[k] < best[f[1]]) {
		    best[f[1]] = s[k] / n[k]; rate[f[1]] = f[2] } }
		for (t in best) printf("%s %s %.0f\n", t, rate[t], best[t]) }' \
	    "$work/sweep" | sort -n >"$work/rates.$w"
	echo "$w: delay, its best rate, steps to the target:"
	cat "$work/rates.$w"
	while read -r t r _; do
		for d in $shares; do echo "$d $t $r"; done
	done <"$work/rates.$w" | runs $w "${choose[@]}" >"$work/$w"
done
by_delay() { cut -d' ' -f1,2 "$work/rates.$1" | paste -sd' '; }

# mean LINK FILE [CONDITION]: print share, delay, rate and mean seconds of each plan
# that reaches the target with every seed, the fastest first
mean() {
	emulate time "${1//_/ }" <"$2" | awk -F'\t' "${3:-1}"' {
	    k = $1 FS $2 FS $3; n[k]++; bad[k] += $5 == 0; s[k] += $NF }
	    END { for (k in n) if (!bad[k])
		printf("%s\t%.3f\n", k, s[k] / n[k]) }' | sort -t "$(printf '\t')" -k4,4g
}

# choice LINK WAY: print the way's best plan; for the way `kept', DeCo's first plan
choice() {
	case $2 in
	sync) mean "$1" "$work/fixed" "\$1 == 1 && \$2 == 0" ;;
	dga) mean "$1" "$work/ahead" "\$1 == 1" ;;
	compressed) mean "$1" "$work/fixed" "\$2 == 0" ;;
	kept) xargs -L 1 emulate deco "$(cut -d_ -f1,2 <<<"$1" | tr _ ' ')" 1 \
	    <<<"$(by_delay fixed)" | awk -v rates="$(by_delay fixed)" '{
		split(rates, r, " "); print $5, $4, r[2 * $4 + 2] }' ;;
	*) mean "$1" "$work/$2" ;;
	esac | head -n 1 | cut -f1-3 | tr '\t' ' '
}

# how WAY: print the form of the way: fixed or ahead
how() { [[ $1 =~ dga|ahead ]] && echo ahead || echo fixed; }

ways='sync dga compressed fixed ahead kept'
for l in $same $changing; do
	for w in $ways; do echo "$(how "$w") $l $w $(choice "$l" "$w")"; done
done >"$work/choices"
for h in fixed ahead; do
	awk -v h=$h '$1 == h { print $4, $5, $6 }' "$work/choices" | sort -u |
	    runs $h "${measure[@]}" >"$work/$h.2"
done

hindsight() { mean "$1" "$work/fixed.2" | head -n 1 | cut -f4; }

# measured LINK WAY SHARE DELAY: print the seconds of this plan with the seeds that measure
measured() {
	mean "$1" "$work/$(how "$2").2" "\$1 == $3 && \$2 == $4" |
	    head -n 1 | cut -f4
}

# adaptive WAY LINK: print the means over the seeds of the seconds, the number of changes of
# plan, and the last share and delay
adaptive() {
	local s h=fixed
	[ "$1" = deco ] || h=ahead
	for s in "${measure[@]}"; do
		printf '"%s" %s %s\n' "${2//_/ }" "$s" "$(by_delay $h)"
	done | xargs -P "$cores" -L 1 nice emulate "$1" | awk -F'\t' '
	    { s += $1; n++; c += $3 - 1; bad += !$1; d += $5; t += $4 }
	    END { printf("%s\t%.1f\t%.2g\t%.2g\n",
		bad ? "-" : sprintf("%.3f", s / n), c / n, d / n, t / n) }'
}

{
	printf 'link'
	for w in $ways deco deco-ahead; do printf '\t%s s' "$w"; done
	printf '\tfixed plan\tdeco plan\tchanges'
	printf '\tby sync\tby kept\tby fixed\tahead by dga\tby ahead\thindsight s\n'
	for l in $same $changing; do
		printf '%s' "$l"
		for w in $ways; do
			read -ra plan <<<"$(grep "^[a-z]* $l $w " \
			    "$work/choices" | cut -d' ' -f4-)"
			printf '\t%s' "$(measured "$l" "$w" "${plan[@]}")"
		done
		printf '\t%s\t%s\t%s\t%s\n' "$(adaptive deco-ahead "$l" |
		    cut -f1)" "$(adaptive deco "$l")" "$(grep "fixed $l fixed" \
		    "$work/choices" | cut -d' ' -f4,5 | tr ' ' ',')" \
		    "$(hindsight "$l")"
	done | awk -F'\t' -v OFS='\t' '{ print $1, $2, $3, $4, $5, $6, $7, $9,
	    $8, $13, $11 "," $12, $10, sprintf("%.2f", $2 / $9),
	    sprintf("%.3f", $7 / $9), sprintf("%.3f", $5 / $9),
	    sprintf("%.3f", $3 / $8), sprintf("%.3f", $6 / $8),
	    $14 }'
} >"$out/deco.tsv"

awk -F'\t' '{ printf "%-26s", $1; for (i = 2; i <= 9; i++) printf "%13s", $i
    printf "%12s%18s%9s", $10, $11, $12
    for (i = 13; i <= 18; i++) printf "%13s", $i; print "" }' "$out/deco.tsv"

command -v gnuplot >/dev/null || { echo 'gnuplot is missing: no picture was made' >&2; exit; }
gnuplot -e "table='$out/deco.tsv'; out='$out/deco.svg'" \
    "$here/style.gnuplot" "$here/deco.gnuplot"
