#!/bin/bash
# Compute what DynaComm's cuts save for four networks, several links and costs per cut.
#
#	dynacomm.sh [DIR]	writes DIR/dynacomm.tsv and .svg (default .)
#
# GRID=1	only compute the table; do not measure pipes (overlap.sh)
#
# The profiles are for a batch of 32 at 4 TFLOP/s.  A line of the table has, for one network,
# link and cost, the time saved against one transmission per pass, in per cent.  The paper's
# best results are 41.10 on VGG-19 and 41.92 on ResNet-152.
set -euo pipefail
export LC_ALL=C
here=$(cd "${0%/*}" && pwd)
PATH=${BUILD:-$here/../build}:$PATH
out=${1:-.}
mkdir -p "$out"

nets='vgg-19 googlenet inception-v4 resnet-152'
gbit='1 2 3 4 5 7 10'
dt='0.1 0.5 1 2 5 10'

# row NET GBIT DT: print the line of a network, a link of GBIT Gbit/s and DT ms per transmission
row() {
	ace-advise dynacomm --bandwidth "$(($2 * 1000))Mbit" --cuts "$3ms" \
	    "$here/profiles/$1.tsv" | awk -v OFS='\t' -v net="$1" -v g="$2" \
	    -v dt="$3" '
		$1 == "both" { s[$2] = $4; t[$2] = $3 }
		$1 != "both" && $2 == "optimal" { k = k sep $5; sep = "+" }
		END { print net, g, dt, sprintf("%.1f", 1000 * t["sequential"]),
		    s["layers"], s["ibatch"], s["optimal"], k }'
}

{
	printf 'net\tGbit/s\tdt ms\tsequential ms\tlayers %%\tibatch %%\t'
	printf 'optimal %%\tsegments\n'
	for n in $nets; do
		for g in $gbit; do
			for d in $dt; do
				row "$n" "$g" "$d"
			done
		done
	done
} >"$out/dynacomm.tsv"

# print the best point of each network, beside the paper's; fail if `optimal' is not the best
awk -F'\t' '
	BEGIN { paper["vgg-19"] = "41.10"; paper["resnet-152"] = "41.92"
	    printf "%-14s %8s %8s %10s %10s %10s %8s\n", "net", "Gbit/s",
		"dt ms", "optimal %", "layers %", "ibatch %", "paper %" }
	NR > 1 && !($1 in best) { order[++n] = $1 }
	NR > 1 && $7 + 0 > best[$1] + 0 { best[$1] = $7; at[$1] = $0 }
	NR > 1 && ($7 + 0.005 < $5 || $7 + 0.005 < $6 || $7 < 0) {
	    print "worse than another schedule: " $0; bad = 1 }
	END { for (i = 1; i <= n; i++) { split(at[order[i]], f, "\t")
		printf "%-14s %8s %8s %10s %10s %10s %8s\n", f[1], f[2], f[3],
		    f[7], f[5], f[6],
		    (f[1] in paper) ? paper[f[1]] : "-" }
	    exit bad }' "$out/dynacomm.tsv"

# measure the same in real pipes
[ -n "${GRID:-}" ] || "$here/overlap.sh" "$out"

command -v gnuplot >/dev/null || { echo 'gnuplot is missing: no picture was made' >&2; exit; }
gnuplot -e "table='$out/dynacomm.tsv'; nets='$nets'; out='$out/dynacomm.svg'" \
    "$here/style.gnuplot" "$here/dynacomm.gnuplot"
