# Draw the loss of accuracy over the compression ratio, with the 95 % intervals of the paired
# differences (none with one seed): one curve for ACE-Sync, and points for each other
# method.  frontier.sh sets table and out, and loads style.gnuplot first.
set output out
set datafile missing '-'
set logscale x
set xrange [0.4:3000]
set yrange [*:*] reverse
set xlabel 'times fewer bytes than the best FullSync, both directions'
set xzeroaxis lc rgb '#888888'
# names: the methods in the table, except ACE-Sync's budgets, which are the curve ''
names = system(sprintf("awk -F '\\t' 'NR > 1 && $1 !~ /^ACE-[0-9]+$/ && !n[$1]++ { print $1 }' '%s'", table))
shown(w) = system(sprintf("echo '%s' | sed 's/^ACE-[0-9]*+--/ACE-Sync, /; s/bits,dense/f32/; s/interval,1$/every step/; s/,--/, /g; s/-/ /2'", w))
rows(w, y) = sprintf("< awk -F '\\t' -v OFS='\\t' -v w='%s' 'NR > 1 && (w == \"\" ? $1 ~ /^ACE-[0-9]+$/ : $1 == w) && $%d != \"-\" { print $17, $%d, $%d == \"-\" ? 0 : $%d }' '%s' | sort -g", w, y, y, y + 1, y + 1, table)
set multiplot layout 1,2 margins 0.055,0.74,0.14,0.95 spacing 0.07
do for [y in '8 11'] {
	set ylabel int(y) == 8 ? 'top-1 accuracy lost, points' : 'perplexity, % more'
	plot rows('', int(y)) using 1:2 with lines lt 1 notitle, \
	    rows('', int(y)) using 1:2:3 with yerrorbars lt 1 title int(y) == 8 ? 'ACE-Sync' : '', \
	    for [i = 1:words(names)] rows(word(names, i), int(y)) using 1:2:3 \
	    with yerrorbars lt place(word(names, i), i + 3) title int(y) == 8 ? shown(word(names, i)) : ''
}
unset multiplot
