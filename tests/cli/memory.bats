# No filter keeps the model in memory: for any input each takes at most 64 MiB, or $most KiB
# where a test sets it, and writes before the end of its input.
#
# ACE_BIG: number of values, by default 1G (4 GiB) under CI, else 64M.

# bats file_tags=long

load helper

: "${ACE_BIG:=$([ "${CI:-}" = true ] && echo 1G || echo 64M)}"
case $ACE_BIG in
*G) count=$((${ACE_BIG%G} << 30)) ;;
*M) count=$((${ACE_BIG%M} << 20)) ;;
esac

# bounded CMD...: run CMD, discard its output, and check that its memory is at most $most KiB
bounded() {
	sanitized && skip "the sanitizer's own memory"
	local start=$SECONDS
	exits 0 peak kib sh -c 'exec "$@" >/dev/null' sh "$@"
	echo "# $1 $2 $3: $(cat kib) KiB, $((SECONDS - start)) s" >&3
	[ "$(cat kib)" -le "${most:-65536}" ]
}

@test "ace-expand" {
	bounded ace-expand < <(mkshards -n "$ACE_BIG" -k fast)
}

@test "ace-score" {
	bounded ace-score < <(mkshards -n "$ACE_BIG" -k fast)
}

@test "ace-select" {
	bounded ace-select -b 1M < <(mkshards -n "$ACE_BIG" -k fast)
}

@test "ace-compress: values wait for a plan with a budget" {
	mkshards -n 64M -k fast | ace-select -b 4M >planned
	# 64 MiB of values and 16 MiB of coded groups are in memory, the rest in a file
	most=98304 bounded ace-compress <planned
	most=98304 bounded ace-compress -S s --sync none <planned
}

@test "ace-compress: q8, topk, exact" {
	bounded ace-compress -T 16 -c q8 < <(mkshards -n "$ACE_BIG" -k fast)
	bounded ace-compress -c topk:0.01 < <(mkshards -n "$ACE_BIG" -k fast)
	bounded ace-compress -c exact < <(mkshards -n 64M -k fast)
}

@test "ace-compress -S and ace-expand -S" {
	bounded ace-compress -S s -c q8 --sync none < <(mkshards -n 64M -k fast)
	bounded ace-expand -S s < <(mkshards -n 64M -s 1 -k fast)
}

@test "ace-aggregate of eight shards and of one" {
	n=$((count >> 23))M
	bounded ace-aggregate \
	    <(mkshards -n $n -k fast -d a) <(mkshards -n $n -k fast -d b) \
	    <(mkshards -n $n -k fast -d c) <(mkshards -n $n -k fast -d d) \
	    <(mkshards -n $n -k fast -d e -c q8) <(mkshards -n $n -d f -c none) \
	    <(mkshards -n $n -k fast -d g -c f16) <(mkshards -n $n -k fast -d h)
	bounded ace-aggregate < <(mkshards -n 64M -k fast)
}

@test "ace-recv, ace-ack, ace-meter" {
	most=16384
	bounded ace-recv --sync none --spool spool < <(mkshards -n 64M -k fast)
	bounded ace-ack -S s < <(mkshards -n "$ACE_BIG" -k fast)
	bounded ace-meter < <(mkshards -n "$ACE_BIG" -k fast)
}

# unlike N: print N shards of one model, in streams of ten, with 700 bytes to 80 KB per shard
unlike() {
	local s
	for ((s = 0; s < $1; s += 40)); do
		mkshards -n 20k -s $s -N 10 -k fast
		mkshards -n 20k -s $((s + 10)) -N 10 -c none
		mkshards -n 20k -s $((s + 20)) -N 10 -c topk:0.001
		mkshards -n 20k -s $((s + 30)) -N 10 -c q8
	done
}

@test "ace-recv: ten thousand shards of different sizes in one connection" {
	most=16384
	mkshards -n 20k -s 9999 >last
	exits 0 ace-recv --spool spool --sync none last
	exits 0 timeout "$HANG" ace-aggregate --spool spool --rounds 1 --sync none
	# all are late, so that they are read but not stored
	bounded ace-recv --spool spool --sync none < <(unlike 40)
	mv kib few
	bounded ace-recv -v --spool spool --sync none < <(unlike 10000)
	[ "$(grep -c 'late: step' err)" -ge 9999 ]
	# the heap varies by up to 1.3 MiB, but does not grow with the number of shards
	[ "$(cat kib)" -le $(($(cat few) + 1536)) ]
}

@test "ace-policy" {
	bounded ace-policy < <(mkshards -n "$ACE_BIG" -k fast)
}

@test "ace-import and ace-export, raw" {
	bounded ace-import -f raw --shape "$count" < <(head -c $((4 * count)) /dev/zero)
	bounded ace-export -f raw < <(mkshards -n "$ACE_BIG" -k fast)
}

@test "a thousand shards take no more memory than one" {
	for p in "ace-expand" "ace-score" "ace-compress -c q8" "ace-aggregate"; do
		bounded $p < <(mkshards -N 1000)
		[ "$(cat kib)" -le 16384 ]
	done
}

# early PROG...: check that PROG writes after it got half of the input
early() {
	local half
	half=$(($(wc -c <big) / 2))
	{
		head -c $half big
		wait_for test -s early && touch seen
		tail -c +$((half + 1)) big
	} | "$@" >early
	[ -f seen ] || { echo "$*: nothing before the end"; return 1; }
	rm seen early
}

@test "the first output comes before the end of the input" {
	mkshards -n 4M -k fast >big
	early ace-expand
	early ace-score
	early ace-compress -c q8
	early ace-policy
	early ace-export -f raw
}

@test "reading xz takes the dictionary that the file was packed with in addition" {
	mkshards -n 32M -k fast | xz -T1 --lzma2=preset=0,dict=64MiB >packed.xz
	most=$((65536 + 66560)) bounded ace-inspect packed.xz
	# with a limit on memory such a file is refused
	mkshards | xz -T1 --lzma2=preset=0,dict=500MiB >greedy.xz
	exits 0 ace-inspect greedy.xz
	ulimit -v 300000
	refuses 4 "^ace-inspect: 'greedy.xz': .*memory" ace-inspect greedy.xz
}
