load helper

# policy FILE: the lines of its pOLi frames, which are short enough not to be
# packed.
policy() {
	frames "$1" | awk '$2 == "pOLi" { print $1 + 64 }' | while read -r at; do
		tail -c +"$((at + 1))" "$1" | head -c 400 | tr -d '\0' |
		    grep -aE '^[a-z_.]+=[^ ]*$'
	done
}

has() {
	policy out | grep -qx "$1" && return
	policy out
	return 1
}

@test "equation (5): c_max without bandwidth, half way at B_half, then c_min" {
	exits 0 ace-policy ratio --cmin 2 --cmax 300 --half 5Mbit --bandwidth 0bit
	[ "$(tail -n 1 out | cut -f 2)" = 300 ]
	exits 0 ace-policy ratio --cmin 2 --cmax 300 --half 5Mbit --bandwidth 5Mbit
	[ "$(tail -n 1 out | cut -f 2)" = 151 ]
	exits 0 ace-policy ratio --cmin 2 --cmax 300 --half 5Mbit --bandwidth 1Gbit
	[ "$(tail -n 1 out | cut -f 2)" = 2 ]
	# beta = ln 2 / B_half is the same
	exits 0 ace-policy ratio --beta 1.3862943611198906e-7 --bandwidth 5Mbit --values 1000000
	[ "$(tail -n 1 out)" = "$(printf '5000000\t151\t0.211921\t26490')" ]
}

@test "the curve falls" {
	exits 0 ace-policy ratio
	[ "$(wc -l <out)" -eq 12 ]
	tail -n +2 out | cut -f 2 | sort -g -r -c
}

@test "the next interval" {
	exits 0 ace-policy interval --divergence 0.01 --interval 10
	grep -qx interval=10 out
	exits 0 ace-policy interval --divergence 0.0225 --interval 10
	grep -qx interval=7 out
	grep -qx force=0 out
	exits 0 ace-policy interval --divergence 0.05 --interval 10
	grep -qx interval=5 out
	grep -qx force=1 out
	exits 0 ace-policy interval --divergence 0 --interval 10 --max-interval 12
	grep -qx interval=12 out
	exits 2 ace-policy interval
	says "divergence is missing"
}

@test "in the stream: before the data, the values unchanged" {
	mkshards >in
	exits 0 ace-policy --no-provenance --half 5Mbit --bandwidth 5Mbit in
	has ratio=151
	has bandwidth=5000000
	has "budget_bytes=[1-9][0-9]*"
	mv out policed
	[ "$(frames policed | awk '$2 ~ /pOLi|DATA/ { print $2; exit }')" = pOLi ]
	exits 0 ace-export -f raw policed
	mv out back
	exits 0 ace-export -f raw in
	same out back
}

@test "an unknown link is a slow one; a measured one is believed" {
	mkshards >in
	exits 0 ace-policy -v --cmax 77 in
	has ratio=77
	says "link unknown"
	exits 0 ace-policy -S st in
	has ratio=300
	[ ! -e st/policy ]
}

@test "asked twice, the second answer stands; other keys stay" {
	mkshards >in
	exits 0 ace-policy --bandwidth 1Mbit --target-divergence 0.01 --model-norm 100 in
	mv out first
	exits 0 ace-policy --bandwidth 2Mbit first
	[ "$(policy out | grep -c '^ratio=')" -eq 1 ]
	has bandwidth=2000000
	has "interval=[0-9]*"
}

@test "equation (9): the interval follows the drift, in memory as in the state" {
	# || shard || is about 1000 for a million gaussian values
	mkshards -n 1M -N 3 >in
	exits 0 ace-policy --target-divergence 0.01 --model-norm 400000 --interval 8 in
	# r = 0.0026 of 0.01: sqrt gives 1.98
	[ "$(policy out | grep ^interval= | tr '\n' ' ')" = \
	    "interval=16 interval=32 interval=63 " ] || { policy out; false; }
	mv out long
	for s in 0 1 2; do
		mkshards -n 1M -s $s >shard
		exits 0 ace-policy -S st --target-divergence 0.01 \
		    --model-norm 400000 --interval 8 shard
		policy out | grep ^interval= >>steps
	done
	policy long | grep ^interval= >want
	same want steps
	flip st/policy 700
	exits 3 ace-policy -S st shard
	says "corrupt: .*st/policy"
}

@test "what is missing or wrong is said" {
	mkshards >in
	exits 2 ace-policy --target-divergence 0.01 in
	says "needs --model-norm"
	exits 2 ace-policy --cmin 10 --cmax 5 in
	exits 2 ace-policy --half 0bit in
	exits 2 ace-policy --bandwidth fast in
	exits 2 ace-policy --interval 0 in
	exits 2 ace-policy --min-interval 5 --max-interval 4 in
	exits 2 ace-policy ratio in
	exits 2 ace-policy clusters
	says "'clusters' is neither a file nor known"
}

@test "64 MiB are enough for a large stream" {
	sanitized && skip "the sanitizer's own memory"
	mkshards -n 64M -k fast | peak rss ace-policy >/dev/null
	[ "$(cat rss)" -gt 0 ] && [ "$(cat rss)" -lt 65536 ]
}
