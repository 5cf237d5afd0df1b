# Make the table of pytorch.sh from its runs: the means of each data set, and the mean loss
# of accuracy, paired by seed, with its 95 % interval.
#
#	awk -f student.awk -f pytorch.awk pytorch-runs.tsv

BEGIN {
	FS = OFS = "\t"
	print "data", "parameters", "H", "bits", "seeds", \
	    "synchronous", "ace", "lost", "from", "to", "ratio"
}

FNR == 1 {
	for (i = 1; i <= NF; i++)
		col[$i] = i
	next
}

{
	w = $col["data"] OFS $col["parameters"] OFS $col["H"] OFS \
	    $col["bits"]
	if (!n[w]++)
		name[++ways] = w
	sync[w] += $col["synchronous"]
	ace[w] += $col["ace"]
	ratio[w] += $col["ratio"]
	d = $col["synchronous"] - $col["ace"]
	lost[w] += d
	square[w] += d * d
}

END {
	for (i = 1; i <= ways; i++) {
		w = name[i]
		k = n[w]
		m = lost[w] / k
		half = k > 1 ? student(k - 1) * sqrt((square[w] - k * m * m) / \
		    (k - 1) / k) : 0
		print w, k, sprintf("%.2f\t%.2f\t%.2f", sync[w] / k, ace[w] / k, m), \
		    (k > 1 ? sprintf("%.2f\t%.2f", m - half, m + half) : "-\t-"), \
		    sprintf("%.1f", ratio[w] / k)
	}
}
