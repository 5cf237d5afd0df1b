# Draw the seconds to a target loss for each link.  deco.sh sets table and out, and loads
# style.gnuplot first.
set terminal svg size 1200,480
set output out
set style data histogram
set style fill solid
set boxwidth 0.9
set logscale y
set margins 9, 24, 6, 1
set ylabel 'seconds to the target loss'
set xlabel 'Mbit/s, ms of the link; where there are seconds, of the next one after them' offset 0,-1.5
set xtics noenhanced font ',10'
label(s) = system("echo '".s."' | sed -E 's/^(([0-9]+_[0-9]+_[0-9]+_)*[0-9]+_[0-9]+)_[0-9]+$/\\1/; s/([0-9]+)_([0-9]+)_([0-9]+)_/\\1, \\2; \\3 s\\n/g; s/_/, /'")
array shown[6] = ['synchronous', 'delay only (DGA)', 'best compression', 'best fixed pair', 'DeCo-SGD', 'DeCo-SGD, own at once']
columns = '2 3 4 5 8 9'
plot for [i = 1:6] table using int(word(columns, i)):xtic(label(strcol(1))) lw 0 title shown[i]
