# The style of all pictures: the same colour and symbol for the same place in the
# legend, which is to the right of the axes.
set terminal svg size 1200,440 dynamic font 'sans,12' background 'white'
colours = '0072b2 d55e00 009e73 cc79a7 e69f00 56b4e9 666666 000000 8c564b'
symbols = '7 5 9 11 13 15 6 4 8'
do for [i = 1:words(colours)] {
	set linetype i lc rgb '#'.word(colours, i) lw 2 pt int(word(symbols, i)) ps 0.8
}
set linetype cycle words(colours)
# place(w, n): the place of method w, the same in all pictures, or n for other methods
methods = 'ACE-Sync FullSync FullSync-32 Top-k FedAvg PowerSGD DiLoCo'
place(w, n) = (at = 0, sum [i = 1:words(methods)] (word(methods, i) eq w ? (at = i) : 0), \
    at > 0 ? at : n)
set border 3
set tics nomirror
set grid lc rgb '#dddddd'
set datafile separator '\t'
set key at screen 0.995,0.95 right top Left reverse noenhanced samplen 2
