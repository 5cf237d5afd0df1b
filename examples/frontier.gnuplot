# What is lost, by times fewer bytes, with the 95 % intervals of the paired
# differences (none with one seed).  table, out: set by frontier.sh.
set terminal svg size 1200,420 dynamic font 'sans,12' background 'white'
set output out
set datafile separator '\t'
set datafile missing '-'
set grid lc rgb '#dddddd'
set logscale x
set xrange [0.8:3000]
set yrange [*:*] reverse
set xlabel 'times fewer bytes than the best FullSync, both ways'
set xzeroaxis lc rgb '#888888'
unset key
# ACE-Sync's points, or the others; lost and its interval are columns y and y + 1
rows(only, y) = sprintf("< awk -F '\\t' -v OFS='\\t' 'NR > 1 && ($1 ~ /^ACE/) == %d && $%d != \"-\" { print $17, $%d, $%d == \"-\" ? 0 : $%d, $1 }' '%s' | sort -g", only, y, y, y + 1, y + 1, table)
set multiplot layout 1,2
do for [y in '8 11'] {
	set ylabel int(y) == 8 ? 'points of top-1 lost' : 'perplexity, % more'
	plot rows(1, int(y)) using 1:2 with lines lw 2 lc rgb '#1f77b4', \
	    rows(1, int(y)) using 1:2:3 with yerrorbars lw 2 pt 7 lc rgb '#1f77b4', \
	    rows(1, int(y)) using 1:2:4 with labels left offset 0.5,0.6 font ',10', \
	    rows(0, int(y)) using 1:2:3 with yerrorbars lw 2 pt 5 lc rgb '#666666', \
	    rows(0, int(y)) using 1:2:4 with labels left offset 0.5,0.6 font ',10'
}
unset multiplot
