# examples/dynacomm.sh: the networks it is about, and what it finds.
load helper

@test "the networks have the published parameters" {
	# as the authors' releases have them; GoogLeNet without side classifiers
	mkprofile | tail -n +2 | cut -f1,3 >got
	printf '%s\t%s\n' VGG-19 143667240 GoogLeNet 6998552 \
	    Inception-v4 42679816 ResNet-152 60192808 | cmp - got
	for net in VGG-19 GoogLeNet Inception-v4 ResNet-152; do
		mkprofile $net |
		    cmp - "$ROOT/examples/profiles/${net,,}.tsv"
	done
}

@test "the grid: 41 per cent at best, never worse than another schedule" {
	GRID=1 exits 0 "$ROOT/examples/dynacomm.sh" results
	[ "$(tail -n +2 results/dynacomm.tsv | wc -l)" -eq $((4 * 7 * 6)) ]
	awk -F'\t' 'NR > 1 && (NF != 8 || $7 < $5 || $7 < $6 || $7 < 0) {
	    bad = 1; print } END { exit bad }' results/dynacomm.tsv
	for net in vgg-19 resnet-152; do
		awk -v net=$net '$1 == net { found = $4 >= 41 }
		    END { exit !found }' out
	done
	if command -v gnuplot >/dev/null; then
		grep -q '</svg>' results/dynacomm.svg
	fi
}
