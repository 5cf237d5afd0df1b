# Draw the share of iteration time that each schedule saves, at 2 ms per transmission.
# dynacomm.sh sets table, nets and out, and loads style.gnuplot first.
set terminal svg size 1200,640
set output out
set datafile missing NaN
set style data linespoints
set xlabel 'bandwidth, Gbit/s'
set ylabel 'iteration time saved, %'
array shown[3] = ['optimal', 'iBatch', 'layer by layer']
set multiplot layout 2,2 margins 0.06,0.85,0.09,0.93 spacing 0.08,0.17
do for [n = 1:words(nets)] {
	set title word(nets, n)
	plot for [i = 1:3] table using (strcol(1) eq word(nets, n) && $3 == 2 ? $2 : NaN):(column(8 - i)) \
	    lt i title n == 1 ? shown[i] : ''
}
unset multiplot
