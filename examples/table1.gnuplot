# Draw the convergence, as in the ACE-Sync paper's figure 2: over the share of the text, over
# the bytes, and over the time on the emulated network.  table1.sh sets curves, ways and
# out, and loads style.gnuplot first.
set output out
set style data lines
set yrange [*:*]
set ylabel 'top-1 accuracy, %'
set multiplot layout 1,3 margins 0.055,0.885,0.14,0.95 spacing 0.055
# the first seed only; a column of curves is chosen by its name
pick(w, x) = sprintf("< awk -F '\\t' -v OFS='\\t' -v w='%s' -v x='%s' 'NR == 1 { for (i = 1; i <= NF; i++) c[$i] = i } $1 == w && $2 == 1 { print $c[x], $c[\"top1\"] }' '%s'", w, x, curves)
set xlabel 'share of the text that was read'
plot for [i=1:words(ways)] pick(word(ways, i), 'share') \
    using 1:2 lt place(word(ways, i), 8) title word(ways, i)
set logscale x
set xlabel 'bytes sent and received'
set format x '10^{%T}'
plot for [i=1:words(ways)] pick(word(ways, i), 'bytes') \
    using 1:2 lt place(word(ways, i), 8) notitle
set xlabel 'seconds on the emulated network'
plot for [i=1:words(ways)] pick(word(ways, i), 's') \
    using 1:2 lt place(word(ways, i), 8) notitle
unset multiplot
