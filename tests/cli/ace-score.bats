load helper
load values

# count FILE TYPE: print the number of its frames of that type
count() { frames "$1" | grep -c " $2\$"; }

@test "values pass unchanged; annotations come after the data" {
	mkshards -n 300k >in
	exits 0 ace-score --form paper in
	[ ! -s err ]
	mv out scored
	frames scored | awk '{ print $2 }' | uniq -c | awk '{ print $2 }' >order
	grep -qx SHRD order
	[ "$(count scored DATA)" -eq "$(count in DATA)" ]
	[ "$(count scored sTAT)" -eq "$(count in DATA)" ]
	# the first shard of a run is scored at its end
	[ "$(count scored sCOR)" -eq 1 ]
	makes back ace-export -f raw scored
	exits 0 ace-export -f raw in
	same out back
}

@test "scores that need no history, or have one, come with the data" {
	mkshards -n 300k -N 2 >in
	exits 0 ace-score in
	[ "$(count out sCOR)" -eq "$(count in DATA)" ]
	exits 0 ace-score --form paper in
	[ "$(count out sCOR)" -eq $((1 + $(count in DATA) / 2)) ]
}

@test "one process for all shards and one per shard give the same scores and state" {
	mkshards -n 300k -k layered -N 3 >all
	makes long ace-score --omit provenance --form paper -S one all
	for s in 0 1 2; do
		mkshards -n 300k -k layered -s "$s" >shard
		makes "part$s" ace-score --omit provenance --form paper -S many shard
	done
	same one/score many/score
	for t in sTAT sCOR; do
		[ "$(count long $t)" -eq $(($(count part0 $t) +
		    $(count part1 $t) + $(count part2 $t))) ]
	done
}

@test "a second ace-score replaces the scores of the first" {
	mkshards >in
	makes once ace-score --omit provenance in
	exits 0 ace-score --omit provenance once
	same out once
}

@test "a value that is not finite is refused, with tensor and index" {
	mkshards -k nan -i 70 -t a:64 -t b:8,8 >in
	exits 5 ace-score in
	says "ace-score: non-finite value in tensor 'b' at index 6: correct the training, shard 1"
	mkshards -k inf >in
	exits 5 ace-score --form paper -S st in
	[ ! -e st/score ]
}

@test "a history of another model, and a damaged one, are refused" {
	mkshards -t a:64 >a
	mkshards -t b:64 >b
	exits 0 ace-score --form paper -S st a
	exits 3 ace-score --form paper -S st b
	says "mismatch: the score history in 'st' is of another model: schema [0-9a-f]{32}, but"
	flip st/score 700
	refuses 3 "corrupt: .*st/score" ace-score --form paper -S st a
}

@test "--form paper gives other scores than the default, moment, and keeps a history" {
	mkshards -n 300k -k layered -N 2 >in
	makes moment ace-score --omit provenance -S st in
	[ ! -e st/score ]
	exits 0 ace-score --omit provenance --form moment in
	same out moment
	makes paper ace-score --omit provenance --form paper -S st in
	[ -e st/score ]
	! cmp -s paper moment || false
	refuses 2 "form" ace-score --form other in
}

@test "--form: the defaults and limits of its number" {
	for s in 0 1 2; do mkshards -n 300k -k layered -N 2 -s $s -x $s; done >in
	makes paper ace-score --omit provenance --form paper -S st in
	exits 0 ace-score --omit provenance --form paper:0.5 -S two in
	same out paper
	same two/score st/score
	exits 0 ace-score --omit provenance --form paper:0.4 -S three in
	run ! cmp -s out paper
	for f in paper:2 paper:-1 paper:x paper: paper:0.5:0.2 paper:nan \
	    moment:2 moment:-0.1 moment:nan moment: moment:0.25:1; do
		refuses 2 '^ace-score: --form' ace-score -S st --form $f in
	done
}

# near RATIO: plan `out', and check that its two groups' quantiser steps have this ratio
near() {
	mv out scored
	exits 0 ace-select --bits 2 --format text scored
	awk -F '[: ]' -v want="$1" '$2 == "ecq" { x[n++] = $3 }
	    END { r = x[0] / x[1] / want; exit !(r > 0.999 && r < 1.001) }' out
}

# column DIR NAME: print tensor NAME of the last step in the history in DIR
column() { ace-export -f raw --step "$(field step "$1/score" | sort -n |
    tail -n 1)" --tensor "$2" "$1/score" | od -An -v -tf4 -w4; }

# energy FROM TO: print the mean square of the numbers from FROM to TO - 1
energy() { awk -v a="$1" -v b="$2" 'BEGIN { for (i = a; i < b; i++) s += i * i
    printf("%.9g", s / (b - a)) }'; }

# are DIR NAME NUMBER...: check that the column begins with these numbers, up to 5e-6
are() {
	column "$1" "$2" | head -n $(($# - 2)) | paste -sd ' ' >got
	awk -v want="${*:3}" '{ n = split(want, w, " "); for (i = 1; i <= n; i++) {
	    d = $i - w[i]; m = w[i] > 1 ? w[i] : 1
	    if (NF != n || d > 5e-6 * m || d < -5e-6 * m) exit 1 } }' got ||
	    { echo "$2: $(cat got), not ${*:3}"; return 1; }
}

# learn STATE FILE: learn from the aggregate FILE
learn() {
	exits 0 ace-expand --omit provenance --feedback "$1" -o expanded "$2"
	ace-expand --omit provenance "$2" | cmp - expanded
}

# lessons STATE: print how many shards were scored and how many aggregates were learned
# from; `weights' has these numbers after W, u, means and deviations
lessons() {
	column "$1" weights | sed -n '12,13p' | paste -sd ' ' | tr -s ' '
}

@test "feedback: each new aggregate is learned from once, with its energies as labels" {
	set -- -k ramp -t a:64,8 -t b:8,64 -t c:64,64 -H kind=3
	mkshards "$@" >in
	mkshards "$@" -s 1 >later
	# before the first scores there is nothing to learn
	learn st in
	exits 0 ace-score --form paper:0 -S st in
	[ "$(lessons st)" = " 1 0" ]
	exits 0 ace-score --form paper:0 -S st in
	[ "$(lessons st)" = " 2 1" ]
	cp -r st two
	# the same aggregate again is not a lesson
	exits 0 ace-score --form paper:0 -S two in
	[ "$(lessons two)" = " 3 1" ]
	learn two later
	exits 0 ace-score --form paper:0 -S two in
	[ "$(lessons two)" = " 4 2" ]
	# test_score checks what is learned; here the labels are the groups' mean squares
	are st benefit "$(energy 0 512)" "$(energy 512 1024)" "$(energy 1024 5120)"
}

@test "the fourth root of the second moment that a trainer measured is the importance" {
	mkshards -t a:64,64 -t b:64,64 >in
	# without a measurement all groups have the same weight
	exits 0 ace-score -S st in
	near 1
	# the moments are 0 to 8191 in order; want comes from the mean squares of both tensors
	mkshards -k ramp -t a:64,64 -t b:64,64 -H kind=6 >st/moment
	want=$(awk 'BEGIN { for (i = 0; i < 8192; i++) s[i >= 4096] += i * i
	    print (s[1] / s[0]) ^ 0.125 }')
	exits 0 ace-score -S st in
	near "$want"
	exits 0 ace-score -S st --form moment:1 in
	near "$(awk "BEGIN { print $want ^ 4 }")"
	exits 0 ace-score -S st --form moment:0 in
	near 1
	# one process, two shards: each uses the file `moment' that exists when the shard begins
	mv st/moment later
	mkshards -t a:64,64 -t b:64,64 -N 2 >two
	# size: the offset of the second shard
	size=$(frames two | awk '$2 == "SHRD" { n++ } n == 2 { print $1; exit }')
	mkfifo pipe
	ace-score -S st --form moment <pipe >scored &
	exec 7>pipe
	head -c "$size" two >&7
	wait_for sent scored 1
	mv later st/moment
	tail -c +$((size + 1)) two >&7
	exec 7>&-
	wait $!
	exits 0 ace-select --bits 2 --format text scored
	awk -v want="$want" '/^#/ { n++ } $2 ~ /^ecq/ { split($2, f, ":")
	    x[n, $1] = f[2] } END { a = x[1, 0] / x[1, 1]; b = x[2, 0] / x[2, 1]
	    exit !(a > 0.999 && a < 1.001 && b / want > 0.999 &&
	    b / want < 1.001) }' out
}

@test "moment: the mean square per value of a group; -v says that the file is absent" {
	mkshards -t a:64,64 -t b:64,32 -N 2 >in
	exits 0 ace-score -S st in
	[ ! -s err ]
	exits 0 ace-score -v -S st in
	says "'st/moment' is absent: all groups have the same weight"
	mkshards -k ramp -t a:64,64 -t b:64,32 >st/moment
	exits 0 ace-score -v -S st in
	run ! grep -q weigh err
	near "$(awk 'BEGIN { for (i = 0; i < 6144; i++) s[i >= 4096] += i * i
	    print (s[1] / 2048 / (s[0] / 4096)) ^ 0.125 }')"
	mkshards -N 0 -t a:64,64 -t b:64,32 >none
	mv none st/moment
	exits 3 ace-score -S st --form moment in
	says "mismatch: the trainer's file has no shard, file 'st/moment'"
}

@test "feedback that is not finite, or not of an average, is refused" {
	for what in 'nan -H kind=3' 'inf -H kind=1' gauss 'ramp -H kind=6'; do
		mkshards -k $what >bad
		exits 3 ace-expand --feedback st bad
		says 'non-finite value|kind (gradient|history), but --feedback expects an average: kind'
		[ ! -e st/feedback ]
	done
}

@test "moment: an invalid file is refused" {
	mkshards -t a:64,64 -t b:64,64 >in
	mkdir -m 700 st
	mkshards >st/moment
	exits 3 ace-score -S st --form moment in
	says "mismatch: the shard and the trainer's file have different tensors: "
	mkshards -t a:64,64 -t b:64,64 | head -c 1000 >st/moment
	refuses 3 'truncated' ace-score -S st --form moment in
	mkshards -k nan -t a:64,64 -t b:64,64 >st/moment
	refuses 5 'non-finite value in tensor .*: correct the training' ace-score -S st --form moment in
	rm st/moment
	mkfifo st/moment
	refuses 3 'not a regular file' ace-score -S st --form moment in
	rm st/moment
	ln -s moment st/moment
	exits 4 ace-score -S st --form moment in
	says "cannot read 'st/moment': Too many levels"
}

@test "feedback changes the weights; an invalid file is refused" {
	mkshards -n 1M -k layered -H kind=3 >in
	mkshards -n 1M -k layered -s 1 >next
	exits 0 ace-score --form paper -S st in
	cp -r st plain
	exits 0 ace-score --form paper -S plain next
	learn st in
	cp -r st bad
	exits 0 ace-score --form paper -S st next
	! cmp -s st/score plain/score || false
	mkshards -n 1000 -H kind=3 >other
	cp bad/score before
	cp bad/feedback right
	learn bad other
	exits 3 ace-score --form paper -S bad next
	says "mismatch: the feedback in 'bad' is of another model: schema [0-9a-f]{32}, but the shard has "
	cp right bad/feedback
	flip bad/feedback 300
	refuses 3 "corrupt: .*bad/feedback" ace-score --form paper -S bad next
	same bad/score before
	# a truncated file is ignored: it is not synced, so a power cut may truncate it
	head -c 300 right >bad/feedback
	exits 0 ace-score --form paper -S bad next
	same bad/score plain/score
	exits 4 ace-expand --feedback in next
}

# bats test_tags=long
@test "memory in bytes per group: 48, with a moment 55, with a history 88" {
	sanitized && skip "the sanitizer's own memory"
	# grows OPTIONS...: print the bytes per group by which memory grows
	grows() {
		local n
		for n in 8 16; do
			rm -rf S
			mkdir -m 700 S
			cp $n S/moment
			peak rss$n ace-score "$@" <$n >/dev/null
		done
		echo $((($(cat rss16) - $(cat rss8)) * 1024 / 524288))
	}
	# so many groups that the hole an array leaves in the heap when it grows does not count
	for n in 8 16; do
		mkshards -n ${n}M -g 16 -k fast >$n
	done
	for k in '48' '88 -S S --form paper' '55 -S S'; do
		got=$(grows ${k#??})
		echo "$k: $got"
		# room for pages of 4 KiB and the allocator's own memory
		[ "$got" -le $((${k%% *} + 5)) ]
		[ "$got" -ge 30 ]
	done
}

@test "groups that were not sent count as zeros for the scores of the others" {
	mkshards -n 640 -g 64 -k layered >in
	ace-score in >scored
	# groups 2, 4 and the last three are missing
	printf '%s f32\n' 0 1 3 5 6 >few
	ace-select --plan few scored | ace-compress >sparse
	ace-expand sparse | ace-score | ace-select --format text -b 1k >want
	grep -q '^3 ecq' want
	grep -qx '4 none w' want
	makes scored ace-score sparse
	[ "$(frames scored | grep -c sTAT)" -eq 3 ]
	exits 0 ace-select --format text -b 1k scored
	same out want
}

@test "feedback: an aggregate is not learned from again later; one of another run is" {
	for k in 0 1 2; do
		mkshards -k ramp -t a:64,8 -t b:8,64 -H kind=3 -s $k >agg$k
		mkshards -k ramp -t a:64,8 -t b:8,64 -H kind=3 -r other -s $k >other$k
	done
	exits 0 ace-score --form paper -S st agg0
	for k in 0 1 0 1 2 0; do
		learn st agg$k
		exits 0 ace-score --form paper -S st agg0
	done
	[ "$(lessons st)" = " 7 3" ]
	learn st other0
	exits 0 ace-score --form paper -S st agg0
	[ "$(lessons st)" = " 8 4" ]
}
