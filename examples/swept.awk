# Check that the baseline of each table was swept at the length of its runs.
#
#	awk -f swept.awk TABLE.tsv... TABLE-runs.tsv...
#
# The baseline is the method (column 1) FullSync... with the least mean loss.  A setting is the
# batch of all devices together and the trainer's options.  Settings are comparable if text,
# model, optimiser and length of the run are equal.  Only runs with seed 1 that exchange dense
# gradients at every step count.  The baseline must be the best of at least three settings with
# at least two batches.  Another setting may be better by 0.015 nats (about 0.3 points of
# top-1), the difference between two processors.  Batches with less than one sequence for
# each device of the table do not count.
#
# Prints a line per table that breaks this rule.  Tables with no other method are skipped, and
# those whose runs lack the column setup: claims.sh refuses figures from them.

BEGIN { FS = "\t"; noise = 0.015 }

FNR == 1 {
	name = FILENAME
	sub(/.*\//, "", name)
	sub(/\.tsv$/, "", name)
	runs = sub(/-runs$/, "", name)
	delete col
	for (i = 1; i <= NF; i++)
		col[$i] = i
	next
}

# a table: its ways
!runs {
	listed[name, $1]
	if ($1 !~ /^FullSync/)
		compared[name]
	next
}

"setup" in col && parse($(col["setup"])) {
	loss = $(col["loss"])
	if ($(col["seed"]) == 1) {
		if (!((problem, setting) in first))
			order[problem] = order[problem] "\n" setting
		if (!((problem, setting) in first) || loss < first[problem, setting])
			first[problem, setting] = loss
		size[setting] = batch
	}
	if ($1 ~ /^FullSync/ && (name, $1) in listed && name in compared) {
		if (!((name, $1) in n))
			ways[name] = ways[name] "\n" $1
		n[name, $1]++
		sum[name, $1] += loss
		what[name, $1] = problem
		how[name, $1] = setting
		devices[name] = edges
	}
}

# Set edges, batch (of all edges), part (text, model and optimiser), problem (part and length)
# and setting from a setup; return 0 unless dense gradients are exchanged at every step.
function parse(s,   f, k, i, x, steps, given) {
	if (!index(s, ", dense, --gradient"))
		return 0
	k = split(s, f, ", ")
	given = part = ""
	for (i = 1; i <= k; i++) {
		split(f[i], x, " ")
		if (x[2] == "edges")
			edges = x[1]
		else if (x[1] == "text" || x[2] == "kept" || f[i] ~ /^--layers/ ||
		    f[i] == "interleaved")
			part = part f[i] ", "
		else if (x[1] == "batch")
			batch = x[2] * edges
		else if (x[2] == "steps")
			steps = x[1]
		else if (f[i] ~ /^--gradient/)
			given = f[i]
	}
	part = part (given ~ /--muon/ ? "Muon" : "AdamW")
	problem = part ", " batch * steps " sequences"
	setting = "batch " batch ", " substr(given, 12)
	return 1
}

# Of problem p, with batches that table t could use, set settings and batches, the numbers of
# both, and least, the best setting.
function sweep(t, p,   f, k, i, seen) {
	settings = batches = 0
	least = ""
	k = split(substr(order[p], 2), f, "\n")
	for (i = 1; i <= k; i++) {
		if (size[f[i]] < devices[t])
			continue
		settings++
		batches += !seen[size[f[i]]]++
		if (least == "" || first[p, f[i]] < first[p, least])
			least = f[i]
	}
}

END {
	for (t in ways) {
		k = split(substr(ways[t], 2), w, "\n")
		best = w[1]
		for (i = 2; i <= k; i++)
			if (sum[t, w[i]] / n[t, w[i]] < sum[t, best] / n[t, best])
				best = w[i]
		p = what[t, best]
		is = how[t, best]
		sweep(t, p)
		if (settings < 3 || batches < 2)
			print t ": its baseline " best " has " settings " settings and " \
			    batches " batches at this length, instead of 3 and 2: " p
		else if (!((p, is) in first))
			print t ": its baseline " best " has no run with seed 1"
		else if (first[p, is] > first[p, least] + noise)
			print t ": its baseline " best " has a loss of " first[p, is] \
			    ", but at this length " least " has " first[p, least]
	}
}
