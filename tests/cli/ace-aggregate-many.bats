# More devices than a process may have open files: files, a stream and a spool give the
# same bytes, and relays the same values up to rounding.
load helper
load values

# few CMD...: run CMD with a limit of 64 open files, some of which are open already
few() { (ulimit -n 64 && exec "$@"); }

# fleet N OPTION...: write d/e0.aceg ..., one shard of the same step for each of N devices
fleet() {
	mkdir -p d
	mkshards -d e -F d -N "$@"
}

# bats test_tags=long,asan
@test "600 devices and 64 open files: from files, a stream, a spool, a tree" {
	fleet 600 -n 3000 -g 512 -c topk:0.1
	makes files few ace-aggregate --omit provenance d/*
	[ "$(ace-inspect --format json files | grep -o 'contributors":600' | head -n 1)" ]
	cat d/* >all
	exits 0 few ace-aggregate --omit provenance all
	same out files
	# the reference: a limit under which all shards are open at the same time
	exits 0 bash -c 'ulimit -n 4096 2>/dev/null || exit 0
	    ace-aggregate --omit provenance all'
	[ ! -s out ] || same out files
	ace-recv -q --spool s --sync none all >receipts
	exits 0 few ace-aggregate --omit provenance --spool s --sync none \
	    --devices 600 --rounds 1
	same out files
	# two relays, of 223 and 377 devices, and a root; sums, so that values are rounded only once
	cat d/e[0-2]*.aceg >west
	cat d/e[3-9]*.aceg >east
	few ace-aggregate --rule sum -d west west >w
	few ace-aggregate --rule sum -d east east >e
	few ace-aggregate -d aggregate w e >root
	ace-inspect diff --format json files root >differs || [ $? -eq 1 ]
	perl -ne '/"nmse":([^,}]*)/ and $1 > 1e-12 and die "$_"' differs
}

@test "devices whose shards were clipped are named while the names take less than 16 KiB" {
	local n
	for n in 200 300; do
		rm -rf d
		mkdir d
		mkshards -d "$(printf 'e%055d-' 0)" -F d -N $n -n 64
		exits 0 ace-aggregate --rule clip:0.001 d/*
		field clipped out | tr , '\n' | grep -c ':clipped$' >named.$n || :
	done
	[ "$(cat named.200)" -eq 200 ]
	[ "$(cat named.300)" -eq 0 ]
}

# bats test_tags=long,asan
@test "200 files with several steps each, one of them short or damaged" {
	local i
	fleet 200 -n 64
	mv d one
	fleet 200 -n 64 -s 1 -x 5
	for i in one/*; do
		cat "$i" "d/${i#one/}" >"$i.two"
		mv "$i.two" "$i"
	done
	makes both few ace-aggregate --omit provenance one/*
	exits 0 few ace-aggregate d/*
	for i in 0 1; do ace-export -q -f raw --step $i both >step$i; done
	ace-export -q -f raw out >alone
	same step1 alone
	[ "$(cmp step0 step1 | wc -l)" -eq 1 ]
	mkshards -d e7 -n 64 >one/e7.aceg
	exits 5 few ace-aggregate one/*
	says "^ace-aggregate: 'one/e7.aceg' has fewer shards than others: found [0-9]+, inputs with more: 199 of 200"
	head -c 700 d/e9.aceg >short
	cp short d/e9.aceg
	refuses 3 "truncated: .*'d/e9.aceg'" few ace-aggregate d/*
}

@test "limits, clusters and rules by element need no more open files either" {
	fleet 300 -n 2000 -g 512
	cat d/* >all
	for o in '--rule norm-ratio:3,finite' '--rule clip:20' \
	    '--cluster 0.5' '--rule median'; do
		makes files few ace-aggregate --omit provenance $o d/*
		exits 0 ace-aggregate --omit provenance $o all
		same out files
	done
	fleet 300 -n 64
	! sanitized || return 0		# needs more than the limit
	exits 5 bash -c 'ulimit -v 300000; exec ace-aggregate --rule median "$@"' \
	    aggregate d/*
	says "limit: step 0: rule 'median' needs a group of each shard in memory: 300 groups take 150 MiB, expected at most [0-9]* MiB, half of the memory limit"
}

@test "differences to a history, more than can be open" {
	fleet 70 -n 64 -H flags=16 -K predict=cache:1 -K history=none
	cat d/* >all
	agg=(ace-aggregate --omit provenance --sync none --devices 70 --rounds 1)
	ace-recv -q --spool s --sync none all >receipts
	for o in mean median; do
		cp -r s wide
		cp -r s narrow
		makes want "${agg[@]}" --rule $o --spool wide
		exits 0 few "${agg[@]}" --rule $o --spool narrow
		same out want
		rm -r wide narrow
	done
}

# bats test_tags=long,asan
@test "more names of contributors than fit one frame" {
	local long
	long=$(printf 'x%.0s' {1..200})
	mkdir d
	mkshards -n 4 -d "$long" -F d -N 6000
	find d -type f -exec cat {} + >all
	makes west ace-aggregate -d west all
	ace-inspect --format json west >j
	grep -q '"type":"mEMb","frames":2,' j
	# a relay at the next level reads all names
	exits 0 ace-aggregate west
	ace-inspect --format json out >j
	grep -q '"contributors":6000,.*"type":"mEMb","frames":2,' j
	[ "$(grep -o "\"${long}[0-9]*\"" j | sort -u | wc -l)" -eq 6000 ]
}
