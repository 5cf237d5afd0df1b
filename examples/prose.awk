# Check that each figure in the prose of results/README.md is in one of its tables.
#
#	awk -f student.awk -f prose.awk README.md TABLE.tsv... README.md
#
# A block begins with a heading, or with a paragraph that begins in bold.  Its tables are
# those inside it and each TABLE.tsv and TABLE-runs.tsv that it names as `TABLE` or
# `TABLE.tsv`; `-more` names a table with the first part of the previous name.  A figure
# with a decimal point must be, rounded to its digits, a cell, a number in a cell, or an
# end of an interval.  It may also be the difference of two ways in points of top-1 or per
# cent of perplexity: of one seed, the mean of all pairs, or an end of the mean's interval.
# In a table without seeds it may be the difference of two cells of a column.  Code in
# backquotes, indented lines and rows of tables in README.md are skipped.
#
# Prints a line for each figure that is not found.

function put(b, v,   d) {
	if (v < 0)
		v = -v
	for (d = 1; d <= 4; d++)
		has[b, sprintf("%.*f", d, v)]
}

# Add the numbers in cell s to block b.
function numbers(b, s) {
	while (match(s, /[0-9]+\.[0-9]+/)) {
		put(b, substr(s, RSTART, RLENGTH))
		s = substr(s, RSTART + RLENGTH)
	}
}

# Add the tables that line s names to block b.
function tables(b, s,   t) {
	while (match(s, /`-?[a-z0-9-]+(\.tsv)?`/)) {
		t = substr(s, RSTART + 1, RLENGTH - 2)
		sub(/(-runs)?(\.tsv)?$/, "", t)
		if (t ~ /^-/)
			t = base t
		else
			base = t
		if (!((t, b) in named))
			of[t] = of[t] " " b
		named[t, b]
		s = substr(s, RSTART + RLENGTH)
	}
}

# Add row r of a table to block b, with its differences to earlier rows.
function row(b, r,   i, k) {
	for (i = 1; i <= NF; i++) {
		numbers(b, $i)
		if (head[i] == "+-" && $i != "-") {
			put(b, $(i - 1) - $i)
			put(b, $(i - 1) + $i)
		}
		for (k = 1; k < r && head[2] != "seed" && i > 1; k++)
			if ($i ~ number && cell[k, i] ~ number)
				put(b, $i - cell[k, i])
	}
}

# Add the differences of ways w and v over all common seeds; what: top1 or ppl.
function differ(b, w, v, what,   s, i, d, n, mean, q, half) {
	for (i = 1; i <= seeds; i++) {
		s = seed[i]
		if (!((w, s, what) in got) || !((v, s, what) in got))
			continue
		d[++n] = what == "top1" ? got[w, s, what] - got[v, s, what] : \
		    100 * (got[w, s, what] / got[v, s, what] - 1)
		put(b, d[n])
		mean += d[n]
	}
	if (n < 2)
		return
	mean /= n
	for (i = 1; i <= n; i++)
		q += (d[i] - mean) ^ 2
	half = student(n - 1) * sqrt(q / (n - 1) / n)
	put(b, mean)
	put(b, mean - half)
	put(b, mean + half)
}

# Add all differences between ways of the table read last.
function finish(   i, v, w) {
	for (i = 1; i <= blocks; i++)
		for (w in ways)
			for (v in ways)
				if (v != w) {
					if (v < w)
						differ(list[i], w, v, "top1")
					differ(list[i], w, v, "ppl")
				}
	blocks = 0
}

BEGIN { number = "^-?[0-9]+([.][0-9]+)?$" }

FNR == 1 {
	finish()
	files++
	prose = FILENAME ~ /README\.md$/
	block = 0
	FS = prose ? "\n" : "\t"
	$0 = $0
}

prose && /^(#|\*\*)/ { block++ }

prose && files == 1 {
	tables(block, $0)
	if (/^\|/)
		numbers(block, $0)
	next
}

prose {
	if (/^    |^\|/)
		next
	s = $0
	gsub(/`[^`]*`/, "", s)
	while (match(s, /[0-9]+\.[0-9]+/)) {
		v = substr(s, RSTART, RLENGTH)
		if (!((block, v) in has))
			print "results/README.md, line " FNR ": " v \
			    " is in no table that this part names"
		s = substr(s, RSTART + RLENGTH)
	}
	next
}

FNR == 1 {
	table = FILENAME
	sub(/.*\//, "", table)
	sub(/(-runs)?\.tsv$/, "", table)
	blocks = split(of[table], list, " ")
	seeds = 0
	split("", cell)
	split("", ways)
	split("", got)
	split("", known)
	split($0, head)
	next
}

blocks && head[2] == "seed" {
	ways[$1]
	if (!($2 in known))
		seed[++seeds] = $2
	known[$2]
	for (i = 3; i <= NF; i++)
		if (head[i] ~ /^(top1|ppl)$/ && $i ~ number)
			got[$1, $2, head[i]] = $i
}

blocks {
	for (i = 1; i <= blocks; i++)
		row(list[i], FNR - 1)
	for (i = 1; i <= NF; i++)
		cell[FNR - 1, i] = $i
}
