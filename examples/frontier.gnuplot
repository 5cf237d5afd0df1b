# Points of top-1 lost by times fewer bytes.  table, out: set by table1.sh.
set terminal svg size 640,420 dynamic font 'sans,12' background 'white'
set output out
set datafile separator '\t'
set grid lc rgb '#dddddd'
set logscale x
set xrange [1:2000]
set yrange [*:*] reverse
set xlabel 'times fewer bytes than FullSync, both ways'
set ylabel 'points of top-1 lost'
unset key
plot table every ::1 using 9:5 with linespoints lw 2 pt 7, \
    '' every ::1 using 9:5:1 with labels offset 0,1 font ',10'
