load helper

# count FILE TYPE: its frames of that type
count() { frames "$1" | grep -c " $2\$"; }

@test "the values pass byte for byte; annotations come behind the data" {
	mkshards -n 300k >in
	exits 0 ace-score in
	[ ! -s err ]
	mv out scored
	frames scored | awk '{ print $2 }' | uniq -c | awk '{ print $2 }' >order
	grep -qx SHRD order
	[ "$(count scored DATA)" -eq "$(count in DATA)" ]
	[ "$(count scored sTAT)" -eq "$(count in DATA)" ]
	# the first shard of all is scored at its end
	[ "$(count scored sCOR)" -eq 1 ]
	exits 0 ace-export -f raw scored
	mv out back
	exits 0 ace-export -f raw in
	same out back
}

@test "with history the scores come with the data" {
	mkshards -n 300k -N 2 >in
	exits 0 ace-score in
	[ "$(count out sCOR)" -eq $((1 + $(count in DATA) / 2)) ]
}

@test "one long pipe and one run per shard say the same" {
	mkshards -n 300k -k layered -N 3 >all
	exits 0 ace-score --no-provenance -S one all
	mv out long
	for s in 0 1 2; do
		mkshards -n 300k -k layered -s "$s" >shard
		exits 0 ace-score --no-provenance -S many shard
		mv out "part$s"
	done
	same one/score many/score
	for t in sTAT sCOR; do
		[ "$(count long $t)" -eq $(($(count part0 $t) +
		    $(count part1 $t) + $(count part2 $t))) ]
	done
}

@test "scoring twice replaces, not adds" {
	mkshards >in
	exits 0 ace-score --no-provenance in
	mv out once
	exits 0 ace-score --no-provenance once
	same out once
}

@test "a value that is not finite is refused by name and place" {
	mkshards -k nan -i 70 -t a:64 -t b:8,8 >in
	exits 5 ace-score in
	says "ace-score: value 6 of tensor 'b' is not finite, shard 1"
	mkshards -k inf >in
	exits 5 ace-score -S st in
	[ ! -e st/score ]
}

@test "a history of another model, and a damaged one, are refused" {
	mkshards -t a:64 >a
	mkshards -t b:64 >b
	exits 0 ace-score -S st a
	exits 3 ace-score -S st b
	says "mismatch: the score history in 'st' is of another model"
	flip st/score 700
	exits 3 ace-score -S st a
	says "corrupt: .*st/score"
}

@test "the form of the paper: other importances, another history" {
	mkshards -n 300k -k layered -N 2 >in
	exits 0 ace-score --no-provenance in
	mv out level
	exits 0 ace-score --no-provenance --form level in
	same out level
	exits 0 ace-score --no-provenance --form paper -S st in
	mv out paper
	! cmp -s paper level || false
	exits 3 ace-score -S st in
	says "mismatch: the score history in 'st' is of another form"
	exits 2 ace-score --form other in
	says "form"
}

@test "feedback moves the weights, and only then" {
	mkshards -n 1M -k layered >in
	mkshards -n 1M -k layered -s 1 >next
	exits 0 ace-score -S st --feedback in in
	says "no history yet"
	cp -r st plain
	exits 0 ace-score -S plain next
	exits 0 ace-score -S st --feedback in next
	! cmp -s st/score plain/score || false
	mkshards -n 1000 >other
	exits 3 ace-score -S st --feedback other next
	says "mismatch: feedback 'other'"
}

@test "options out of range" {
	exits 2 ace-score --alpha 2 </dev/null
	exits 2 ace-score one two </dev/null
}

@test "64 MiB are enough for a large stream" {
	sanitized && skip "the sanitizer's own memory"
	mkshards -n 64M -k fast | peak rss ace-score >/dev/null
	[ "$(cat rss)" -gt 0 ] && [ "$(cat rss)" -lt 65536 ]
}
