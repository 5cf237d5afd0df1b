# Make a table of runs that are paired by their seed: the mean of every way, and its
# differences to a reference with their 95 % intervals.
#
#	awk -v list="A B C" -f student.awk -f paired.awk RUNS CURVES
#
# RUNS and CURVES are tables of compare.sh, whose columns are found by name; list has
# the ways in order.  The reference is the FullSync... way with the least mean loss, or
# else the first way.  A difference is over the seeds that both ways have; its interval
# is Student's, with n - 1 degrees of freedom.
#
# If the runs have the column setup, there are two more columns: "wait ms", the time of
# a step besides its computation (the bytes counted, over the simulated network); and
# "MB a pass", of all edges, both ways, for one pass over the text.
#
# With -v claims="WAY WHAT MEAN END ..." the table lists claims instead of ways: whether
# the mean is at most MEAN and the upper end of the interval at most END, printed with
# `digits' decimals (3).

BEGIN { FS = OFS = "\t"; infinite = 1e300 }

FNR == 1 {
	file++
	for (i = 1; i <= NF; i++)
		col[$i] = i
	next
}

function at(name) { return $(col[name]) }

# the runs
file == 1 {
	w = at("method")
	s = at("seed")
	seeds[w, ++n[w]] = s
	has[w, s] = 1
	last[w, s] = at("loss") at("ppl") ~ /^[0-9.]+$/ ? at("loss") : infinite
	top[w, s] = at("top1")
	ppl[w, s] = at("ppl")
	loss[w] += last[w, s]
	up[w] += at("up")
	down[w] += at("down")
	near[w] += at("near")
	snear[w] += at("s_near")
	all[w] += at("s")
	setup[w] = at("H") OFS at("batch") OFS at("steps") OFS at("code")
	if ("setup" in col) {
		told = 1
		settle(at("setup"))
		wait[w] += 1000 * at("s") / at("steps") - ms * at("batch") / 8
		pass[w] += (at("up") + at("down")) / 1e6 / (at("steps") * \
		    at("batch") * edges * context / text)
	}
}

# Set edges, ms (of a step with a batch of 8), text (bytes of the training text) and
# context from a setup of compare.sh.
function settle(setup,   i, k, f, x) {
	context = 64
	k = split(setup, f, ", ")
	for (i = 1; i <= k; i++) {
		split(f[i], x, "[ /]")
		if (x[2] == "edges")
			edges = x[1]
		else if (x[1] == "text")
			text = x[3]
		else if (x[2] == "kept")
			text -= int(text * x[1])
		else if (x[2] == "ms")
			ms = x[1]
		else if (match(f[i], "--context [0-9]+"))
			context = substr(f[i], RSTART + 10, RLENGTH - 10)
	}
}

# the curves: find the first share of the text after which a way is as good as the
# reference at its end (known from the runs)
file == 2 {
	if (!ref)
		ref = reference()
	w = at("method")
	s = at("seed")
	if (!((ref, s) in last) || (w, s) in reached)
		next
	x = at("share")
	y = at("loss")
	if (y <= last[ref, s])
		reached[w, s] = (w, s) in x0 ? x0[w, s] + (x - x0[w, s]) * \
		    (y0[w, s] - last[ref, s]) / (y0[w, s] - y) : x
	x0[w, s] = x
	y0[w, s] = y
}

function reference(   i, k, f, best) {
	k = split(list, f, " ")
	for (i = 1; i <= k; i++)
		if (f[i] ~ /^FullSync/ && n[f[i]] && (!best ||
		    loss[f[i]] / n[f[i]] < loss[best] / n[best]))
			best = f[i]
	return best ? best : f[1]
}

# Return what way w loses with seed s: points, per cent, or the share of the text it needs.
function lost(w, s, what) {
	if (what == "top-1")
		return top[ref, s] - top[w, s]
	if (what == "perplexity")
		return 100 * (ppl[w, s] / ppl[ref, s] - 1)
	return reached[w, s]
}

# Set pairs, mean and half of what w loses; half is -1 for a single pair.  Return 0 if
# there is no difference: no pair, a loss that diverged, or a level never reached.
function paired(w, what,   i, s, d, q) {
	pairs = mean = half = q = 0
	for (i = 1; i <= n[w]; i++) {
		s = seeds[w, i]
		if (!((ref, s) in has))
			continue
		if (last[w, s] >= infinite || last[ref, s] >= infinite ||
		    (what == "text" && !((w, s) in reached)))
			return 0
		d[++pairs] = lost(w, s, what)
		mean += d[pairs]
	}
	if (!pairs)
		return 0
	mean /= pairs
	for (i = 1; i <= pairs; i++)
		q += (d[i] - mean) ^ 2
	half = pairs > 1 ? student(pairs - 1) * sqrt(q / (pairs - 1) / pairs) : -1
	return 1
}

# Print a number with n digits, never as -0.
function number(x, n) {
	x = sprintf("%." n "f", x)
	return x ~ /^-[0.]*$/ ? substr(x, 2) : x
}

# Return the mean of what w loses, and the half width of its interval, as two columns.
function columns(w, what, n) {
	if (!paired(w, what))
		return "-" OFS "-"
	return number(mean, n) OFS (half < 0 ? "-" : number(half, n))
}

# Return the mean of x over all seeds of way w, or - if a run diverged.
function average(x, w, digits,   i, sum) {
	if (loss[w] >= infinite)
		return "-"
	for (i = 1; i <= n[w]; i++)
		sum += x[w, seeds[w, i]]
	return sprintf("%." digits "f", sum / n[w])
}

function line(w,   bytes) {
	bytes = (up[w] + down[w]) / n[w]
	print w, setup[w], n[w], average(top, w, 2),
	    columns(w, "top-1", 2), average(ppl, w, 3),
	    columns(w, "perplexity", 2), columns(w, "text", 3),
	    sprintf("%.2f", up[w] / n[w] / 1e6),
	    sprintf("%.2f", down[w] / n[w] / 1e6),
	    sprintf("%.1f", (up[ref] + down[ref]) / n[ref] / bytes),
	    sprintf("%.2f", near[w] / n[w]), sprintf("%.0f", snear[w] / n[w]),
	    sprintf("%.0f", all[w] / n[w]) (!told ? "" : \
	    OFS sprintf("%.0f", wait[w] / n[w]) OFS sprintf("%.2f", pass[w] / n[w]))
}

# A claim holds when the mean and the interval's upper end are within its bounds.  It does
# not hold when the whole interval is above the bound of the mean, or paired returns 0.
function claim(w, what, most, end,   verdict) {
	if (!paired(w, what)) {
		print w, what, most, end, n[w], "-", "-", "-", "does not hold: " \
		    (what == "text" ? "not reached" : "diverged")
		return
	}
	verdict = "not decided"
	if (half >= 0 && mean <= most && mean + half <= end)
		verdict = "holds"
	else if (half >= 0 && mean - half > most)
		verdict = "does not hold"
	print w, what, most, end, pairs, number(mean, digits),
	    (half < 0 ? "-" : number(mean - half, digits)),
	    (half < 0 ? "-" : number(mean + half, digits)), verdict
}

END {
	if (!ref)
		ref = reference()
	ways = split(list, order, " ")
	if (claims) {
		digits = digits ? digits : 3
		print "way", "what", "at most", "interval to at most", "seeds",
		    "mean", "from", "to", "verdict"
		k = split(claims, f, " ")
		for (i = 1; i <= k; i += 4)
			if (index(" " list " ", " " f[i] " ") && n[f[i]])
				claim(f[i], f[i + 1], f[i + 2], f[i + 3])
		exit
	}
	print "method", "H", "batch", "steps", "coded", "seeds", "top-1 %",
	    "lost", "+-", "perplexity", "more %", "+-", "text to its loss",
	    "+-", "MB up", "MB down", "ratio", "text to 1 %", "s to 1 %",
	    "s in all" (told ? OFS "wait ms" OFS "MB a pass" : "")
	for (i = 1; i <= ways; i++)
		if (n[order[i]])
			line(order[i])
}
