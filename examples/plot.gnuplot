# Draw tables of ace-inspect.  Tables of shards (--format tsv) give curves over the steps;
# a table of tensors (stats --format tsv) gives the bits of each tensor.
#
#	ace-inspect --format tsv run >run.tsv
#	gnuplot -c plot.gnuplot OUT.svg run.tsv [OTHER.tsv ...]
#
# Each table is a run, and has a curve in each diagram.  OUT - prints text for a terminal.
if (ARGC < 2) {
	print 'usage: gnuplot -c plot.gnuplot OUT.svg|- TABLE...'
	exit status 2
}
set datafile separator "\t"
set datafile columnheaders
set encoding utf8
# similar to style.gnuplot, which is not installed
colours = '0072b2 d55e00 009e73 cc79a7 e69f00 56b4e9 666666 000000 8c564b'
do for [i = 1:words(colours)] { set linetype i lc rgb '#'.word(colours, i) lw 2 }
set linetype cycle words(colours)
set key noenhanced outside right top Left reverse samplen 2
set grid lc rgb '#dddddd'
set border 3
set tics nomirror
set lmargin 10
set rmargin 18

# out(n): the terminal settings for n pictures below one another
out(n) = ARG1 eq '-' ? sprintf('set terminal dumb size 79,%d noenhanced', 14 * n) : \
    sprintf("set terminal svg size 900,%d dynamic noenhanced background 'white' font 'sans,12'", 60 + 220 * n)
begin = "if (ARG1 ne '-') { set output ARG1 }; set multiplot layout pictures,1"

# If a column is missing, gnuplot prints an error with its name.
is_tensors = 0
set table $none
plot ARG2 using (is_tensors = columnhead(6) eq 'name', 0) with table
unset table

# ---- tensors of the first table: bits and largest magnitude of each ----
if (is_tensors) {
	pictures = 2
	eval out(pictures)
	eval begin
	set style data boxes
	set style fill solid 0.6
	set boxwidth 0.8
	set xtics rotate by -30 noenhanced
	set yrange [0:*]
	set offsets 0.5, 0.5, 0, 0
	set title 'bits per value, a colour per step'
	plot ARG2 using 0:(column('bits_per_value')):(column('step') + 1):xtic(strcol('name')) lc variable notitle
	set title 'values'
	set logscale y
	set yrange [*:*]
	plot ARG2 using 0:(column('max_abs')):xtic(strcol('name')) with points pt 7 title 'largest', \
	    '' using 0:(column('std')) with points pt 5 title 'deviation'
	unset multiplot
	exit
}

# ---- shards: a curve for each run ----
# Draw the shards that devices sent, and aggregates only if there are no such shards.
sent(kind) = kind eq 'gradient' || kind eq 'delta'
# has(name): the row has a cell here; for a missing last cell gnuplot gives the heading
has(name) = strlen(strcol(name)) != 0 && strcol(name) ne name
number(name) = has(name) ? real(strcol(name)) : NaN
# "q8:120,f32:64": return a codec's share of all bytes, in per cent
first(s) = strstrt(s, ',') ? s[1:strstrt(s, ',') - 1] : s
rest(s) = strstrt(s, ',') ? s[strstrt(s, ',') + 1:*] : ''
name(s) = s[1:strstrt(s, ':') - 1]
bytes(s) = real(s[strstrt(s, ':') + 1:*])
all(s) = strlen(s) == 0 ? 0 : bytes(first(s)) + all(rest(s))
of(s, c) = strlen(s) == 0 ? 0 : (name(first(s)) eq c ? bytes(first(s)) : 0) + of(rest(s), c)
part(s, c) = strstrt(s, ':') == 0 ? NaN : 100 * of(s, c) / all(s)
codecs = ''; low = 1e300; high = -1; links = 0; intervals = 0; residuals = 0
put(c) = strstrt(' '.codecs.' ', ' '.c.' ') ? 0 : (codecs = codecs.' '.c, 0)
add(s) = strstrt(s, ':') == 0 ? 0 : (put(name(first(s))), add(rest(s)))
look(kind, step) = (any = any || sent(kind), residuals = residuals || kind eq 'residual', \
    low = step < low ? step : low, high = step > high ? step : high, 0)
counts(kind) = any ? sent(kind) : kind ne 'residual'
see(kind) = counts(kind) == 0 ? 0 : (rows = rows + 1, links = links || has('bandwidth'), \
    intervals = intervals || has('interval'), add(strcol('codecs')))

# Find which rows of each table to draw, and which columns any table has.
do for [i = 2:ARGC] {
	file = value(sprintf('ARG%d', i))
	any = 0; rows = 0
	set table $none
	plot file using (look(strcol('kind'), column('step'))) with table
	plot file using (see(strcol('kind'))) with table
	unset table
	if (rows == 0) {
		print sprintf("plot.gnuplot: no shard of a device in '%s'", file)
		exit status 3
	}
	eval sprintf('set table $run%d', i)
	plot file using (column('step')):(column('bytes')):(number('bandwidth') / 1e6):(number('interval')):(strcol('codecs')) \
	    with table if (counts(strcol('kind')))
	unset table
	eval sprintf('set table $kept%d', i)
	plot file using (column('step')):(strcol('kind') eq 'residual' ? column('norm') : NaN) with table
	unset table
}

unset datafile
set datafile missing NaN
pictures = 1 + residuals + links + intervals + words(codecs)
eval out(pictures)
eval begin
set style data linespoints
set xrange [low - (low == high):high + (low == high)]
set yrange [0:*]
data(name, i) = sprintf('$%s%d', name, i)
draw = "plot for [i = 2:ARGC] data(from, i) using "
title = " title value(sprintf('ARG%d', i)) noenhanced"
set xlabel 'step'
set title 'bytes of all devices'; from = 'run'
eval draw.'1:2 smooth frequency'.title
title = ' notitle'
if (residuals) { set title 'norm of the residual'; from = 'kept'; eval draw.'1:2 smooth unique'.title }
from = 'run'
if (links) { set title 'bandwidth, Mbit/s'; eval draw.'1:3 smooth unique'.title }
if (intervals) { set title 'interval, local steps'; eval draw.'1:4 smooth unique'.title }
set yrange [0:100]
do for [c in codecs] {
	set title sprintf('%s, %% of the bytes', c) noenhanced
	eval draw.'1:(part(strcol(5), c)) smooth unique'.title
}
unset multiplot
