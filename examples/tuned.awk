# Count the settings tried for each way, at the length of the runs in the first file:
#
#	awk -f tuned.awk TABLE-runs.tsv TABLE-rates-runs.tsv
#
# Only runs with the first seed count.  The ways of ACE-Sync count as one way.  Print rows
# of a table for results/README.md.

BEGIN { FS = "\t" }

FNR == 1 { next }

{
	read = $4 * $5	# sequences per device
	if (FILENAME == ARGV[1])
		lengths[read]
}

$2 == 1 && read in lengths && !seen[$NF]++ {
	way = $1
	sub(/\+.*/, "", way)
	sub(/^ACE-[0-9]+$/, "ACE-Sync", way)
	if (!(way in n))
		order[++ways] = way
	n[way]++
}

END {
	for (i = 1; i <= ways; i++)
		print "| " order[i] " | " n[order[i]] " |"
}
