load helper

# policy FILE: print the keys of its policy, one per line
policy() { ace-inspect -v "$1" | sed -n 's/^pOLi *//p'; }

# has KEY=VALUE...: check that the policy of out has these keys
has() {
	policy out >keys
	for k; do grep -qx "$k" keys || { cat keys; return 1; }; done
}

@test "the policy is written before the data, and the values stay unchanged" {
	mkshards >in
	exits 0 ace-policy --omit provenance --ratio 2,300,5Mbit --bandwidth 5Mbit in
	has ratio=151 bandwidth=5000000 "budget_bytes=[1-9][0-9]*"
	mv out policed
	[ "$(frames policed | awk '$2 ~ /pOLi|DATA/ { print $2; exit }')" = pOLi ]
	makes back ace-export -f raw policed
	exits 0 ace-export -f raw in
	same out back
}

@test "an unknown link counts as the slowest; a measured one by its rate" {
	mkshards >in
	exits 0 ace-policy -v --ratio 2,77 in
	has ratio=77
	says "link unknown"
	! policy out | grep ^bandwidth= || false
	exits 0 ace-policy -S st in
	has ratio=300
	[ ! -e st/policy ]
}

@test "a second ace-policy replaces its own keys and keeps the others" {
	mkshards >in
	makes first ace-policy --bandwidth 1Mbit --target-divergence 0.01 --model-norm 100 in
	exits 0 ace-policy --bandwidth 2Mbit first
	[ "$(policy out | grep -c '^ratio=')" -eq 1 ]
	has bandwidth=2000000 "interval=[0-9]*"
}

@test "equation (9): the interval follows the drift, also across processes" {
	# || shard || is about 1000 for a million gaussian values
	mkshards -n 1M -N 3 >in
	exits 0 ace-policy --target-divergence 0.01 --model-norm 400000 --interval 8 in
	# the drift is 0.0026, the target 0.01: the square root of their ratio is 1.98
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
	flip st/policy 400
	refuses 3 "corrupt: .*st/policy" ace-policy -S st shard
}

@test "the drift of a sum is that of its mean; a device that asks with force is answered" {
	mkshards -n 1k -d a -w 4 >a
	mkshards -n 1k -d b -w 2 -x 5 >b
	ace-aggregate a b >mean
	ace-aggregate --rule sum a b >sum
	for of in mean sum; do
		exits 0 ace-policy --target-divergence 0.01 --model-norm 4000 \
		    --interval 8 $of
		policy out | grep '^divergence=' >of.$of
	done
	awk -F= '{ print $2 }' of.mean of.sum >both
	each() { perl -ne 'push @v, $_; END { exit !($v[0] > 0 &&
	    abs($v[0] / $v[1] - 1) < 1e-6) }' "$1"; }
	each both
	# the device asks for 1 and gets the minimum
	mkshards -n 1k -P force=1 -P interval=1 >in	# two pOLi frames
	exits 0 ace-policy --target-divergence 0.01 --model-norm 400000 \
	    --interval 8,3,1000 in
	has interval=3 force=1
	# a device's interval without force is ignored
	mkshards -n 1k -P 'interval=1' >in
	exits 0 ace-policy --target-divergence 0.01 --model-norm 400000 \
	    --interval 8,3,1000 in
	has interval=16 force=0
}

@test "a request for a shorter interval counts once; one for a longer interval does not" {
	# asks INTERVAL: print the policies when the first of two shards asks for INTERVAL
	asks() {
		mkshards -n 1k -P "$(printf 'force=1\ninterval=%s' "$1")" >in
		mkshards -n 1k -s 1 >>in
		exits 0 ace-policy -v --target-divergence 0.01 \
		    --model-norm 400000 --interval 8 in
		policy out | sed -nE 's/^(interval|force)=//p' | paste -sd ' '
	}
	[ "$(asks 5)" = "1 5 0 10" ]
	says 'interval 5, at once: a device diverges and asks for it$'
	[ "$(asks 900)" = "0 16 0 32" ]
	[ "$(asks 16)" = "0 16 0 32" ]	# the same as without a request
	mkshards -n 1k >in
	exits 0 ace-policy -v --target-divergence 0.01 --model-norm 1 --interval 8,3,9 in
	has interval=3 force=1
	says 'interval 3, at once: the drift is above 4 times the target$'
}

@test "the interval starts at 1 and stays within 1 and 1000, or within --interval" {
	mkshards -k zeros >in
	# longest OPTIONS...: print the intervals without drift, which double
	longest() {
		exits 0 ace-policy --target-divergence 0.01 --model-norm 1 "$@" in
		policy out | sed -n 's/^interval=//p'
	}
	[ "$(longest)" = 2 ]
	[ "$(longest --interval 900)" = 1000 ]
	[ "$(longest --interval 900,1,1100)" = 1100 ]
	[ "$(longest --interval 5,5,5)" = 5 ]
	[ "$(longest --interval 2,9,9)" = 9 ]
}

@test "missing and wrong options are refused" {
	mkshards >in
	refuses 2 "needs --model-norm" ace-policy --target-divergence 0.01 in
	exits 2 ace-policy --bandwidth fast in
	set -- --target-divergence 0.01 --model-norm 1
	exits 2 ace-policy "$@" --interval 0 in
	refuses 2 '5,5,4.: .* with MIN at most MAX' ace-policy "$@" --interval 5,5,4 in
	for bad in '' '5,' 5,1 '5,1,' 5,1,2,3 5,x,9; do
		exits 2 ace-policy "$@" --interval "$bad" in
	done
	exits 2 ace-policy --interval 4 in
	says "^ace-policy: --interval needs --target-divergence"
	refuses 2 "needs --target-divergence" ace-policy --model-norm 4 in
	exits 2 ace-step --bits 1 --model-norm 4 in
	refuses 2 "expected at most 1e.30 bit" ace-policy --bandwidth 1e31bit in
	exits 4 ace-policy clusters
}

@test "deco: the budget and the delay for given links" {
	mkshards -n 350000000 -c none >in
	while read -r compute rate latency; do
		printf 'compute bandwidth latency values\n%s %sMbit %sms 350000000\n' \
		    "$compute" "$rate" "$latency" | ace-advise deco |
		    awk '$4 == "tta" { print $5, 1 / $6 }' >want
		read -r delay share <want
		exits 0 ace-policy --deco "$compute,${latency}ms" \
		    --bandwidth "${rate}Mbit" in
		policy out >keys
		[ "$(sed -n 's/delay=//p' keys)" = "$delay" ]
		awk -F = -v share="$share" '$1 == "budget_bytes" {
		    d = $2 / 1.4e9 - share; bad = d > 6e-7 || d < -6e-7; n++ }
		    END { exit bad || n != 1 }' keys
	done <<-'END'
		1     100  200
		0.5   200  10
		0.25  200  300
	END
}

@test "deco: until the link is known, -v says so and equation (5) gives the budget" {
	mkshards >in
	notes 'deco: bandwidth not known yet' ace-policy -v --deco 1s,1ms in
	policy out >keys
	! grep -q delay keys || false
	exits 0 ace-policy --omit provenance in
	policy out | cmp - keys
	exits 0 ace-policy -v --deco auto,1ms --bandwidth 1Mbit in
	says 'deco: computation not known yet'
	exits 0 ace-policy -v --deco 1s,auto --bandwidth 1Mbit in
	says 'deco: latency not known yet'
	exits 0 ace-policy -v --deco 1s,0ms --bandwidth 0bit in
	says 'deco: bandwidth not known yet'
}

@test "the delay of an older policy is kept; --deco replaces it" {
	mkshards -P delay=9 >in
	exits 0 ace-policy --bandwidth 1Mbit in
	has delay=9
	exits 0 ace-policy --deco 1s,5s --bandwidth 1kbit in
	[ "$(policy out | grep -c delay=)" -eq 1 ]
	! policy out | grep -qx delay=9 || false
}

@test "deco: the measured contraction changes the plan, also across processes" {
	mkshards -n 100k -N 3 >in
	for s in 0 1 2; do mkshards -n 100k -s $s >"in$s"; done
	set -- --deco 100ms,50ms --bandwidth 1Mbit
	ace-policy "$@" in0 >out
	has kc=0.005
	ace-select -b 2k in0 | ace-compress -S st --sync none >/dev/null
	ace-inspect -v st/code | grep -oE '(contraction|share)=.*' >code
	# the first shard does not change the estimate; the second one moves it half of the way
	awk -F = '{ v[$1] = $2 } END { a = v["contraction"]; d = v["share"];
	    if (!(a > d && a < 1 && d > 0.003 && d < 0.006)) exit 1
	    kc = 0.05 * (1 - a) / a * d / (1 - d)
	    if (kc > 0.00333 && kc < 0.0075) exit 1
	    printf("kc=0.005\nkc=%.5g\n", sqrt(0.005 * kc)) }' code >price
	cp -R st st2
	cp -R st st3
	ace-policy -S st "$@" in0 >o0
	ace-policy -S st3 "$@" in >o
	policy o | awk -F = '$1 == "kc" && n++ < 2 { printf("kc=%.5g\n", $2) }' |
	    cmp - price
	# three processes decide the same as one
	for s in 1 2; do ace-policy --omit provenance -S st "$@" in$s >o$s; done
	policy o2 >three
	ace-policy --omit provenance -S st2 "$@" in >o
	policy o | tail -n "$(wc -l <three)" | cmp - three
	cmp st/policy st2/policy
}

@test "deco: the shard gives the time of computation, the state the link; a damaged state is refused" {
	mkdir -m 700 st
	mkshards -d edge1 >in
	ace-meter -S st -L 8Mbit in >/dev/null
	exits 0 ace-policy -v -S st --deco 3ms,20ms in
	has bandwidth=8000000
	perl -pi -e 's/deco/dec0/' st/policy
	refuses 3 'corrupt' ace-policy -S st --deco 3ms,20ms in
}

# link_state DIR KEY=VALUE...: write the file `link' as ace-meter does
link_state() {
	local dir=$1 k keys=()
	shift
	for k; do keys+=(-K "$k"); done
	rm -rf "$dir"
	mkdir -m 700 "$dir"
	mkshards -H kind=6 "${keys[@]}" >"$dir/link"
}

@test "deco: a latency or bandwidth from an option is used as it is, not smoothed" {
	mkshards -n 4k >in
	for k in 1 2 3 4 5; do
		exits 0 ace-policy -S st --deco 100ms,10ms \
		    --bandwidth 8Mbit in
	done
	exits 0 ace-policy -S st --deco 90ms,300ms --bandwidth 9Mbit in
	has latency=0.3 compute=0.09 bandwidth=9000000
}

@test "deco: the policy has the numbers that the plan comes from" {
	mkshards -n 1M -K compute.seconds=0.25 >in
	set -- --deco 100ms,50ms --bandwidth 8Mbit
	notes 'deco: now delay .* price of compression 0\.005$' ace-policy -v "$@" in
	has latency=0.05 compute=0.1 bandwidth=8000000 kc=0.005
	# ratio and budget_bytes are consistent
	policy out | awk -F = '{ v[$1] = $2 } END { exit !(v["ratio"] > 1 &&
	    (d = 4194304 / v["ratio"] - v["budget_bytes"]) > -0.01 && d < 1.01) }'
	# the budget is rounded down: 48611.1 bytes
	exits 0 ace-policy --deco 0.1,50ms --bandwidth 7777777bit in
	has budget_bytes=48611
	# without options the numbers come from the shard and the state
	link_state st bandwidth=4000000 rtt=0.125
	exits 0 ace-policy -S st --deco auto in
	has latency=0.125 compute=0.25 bandwidth=4000000
	link_state st bandwidth=4000000 rtt=0.125
	exits 0 ace-policy -S st --deco 500ms,0s in
	has latency=0 compute=0.5
	mkshards -t w:9 >small
	exits 0 ace-policy --deco 1us,0s --bandwidth 1bit small
	has budget_bytes=1
	# the plan stays at the second shard; -v says that the price of compression was measured
	mkshards -n 1M -N 2 >two
	link_state st rtt=0.125
	mkshards -H kind=6 -K contraction=0.5 -K share=0.1 >st/code
	exits 0 ace-policy -v -S st "$@" two
	says "edge1/1.*deco: still delay .* price of compression .*, measured$"
	# estimates are kept even before the link is known
	exits 0 ace-policy -S new --deco 1s,auto in
	[ -e new/policy ]
}

@test "--bandwidth replaces the measured rate, also 0" {
	mkshards >in
	link_state st bandwidth=200000000
	exits 0 ace-policy -v -S st in
	has bandwidth=200000000
	says 'link 200 Mbit/s, taken as 200 Mbit/s,'
	exits 0 ace-policy -v -S st --bandwidth 3Mbit in
	has bandwidth=3000000
	says 'link 3 Mbit.s, taken as 3 Mbit.s,'
	# key bandwidth is the smoothed rate, from which the ratio follows
	notes 'link 7 Mbit/s, taken as 5 Mbit/s,' ace-policy -v -S st --bandwidth 7Mbit <(mkshards -s 1)
	has bandwidth=5000000
	ratio=$(policy out | grep ^ratio=)
	exits 0 ace-policy --bandwidth 5Mbit in
	has "$ratio"
	exits 0 ace-policy -S st --bandwidth 0bit in
	has bandwidth=0 ratio=300
}

@test "keys of an older policy are replaced only if they are set again" {
	local deco="delay=7 latency=7 compute=7 kc=7" cuts="cuts=2,1 cuts.seconds=7" \
	    drift="divergence=7 interval=7 force=1"
	local older="ratio=7 budget_bytes=7 bandwidth=7 $drift $deco $cuts other=7"
	mkshards -T 1,1,1 -P "$(tr ' ' '\n' <<<"$older" | sort -t= -k1,1)" >in
	# stays KEYS OPTIONS...: check that these keys of the older policy alone are kept, once each
	stays() {
		local k
		exits 0 ace-policy "${@:2}" in
		policy out >keys
		for k in $older; do
			! grep -qx "$k" keys || echo "$k"
		done | paste -sd ' ' | diff - <(echo "$1")
		cut -d= -f1 keys | sort | uniq -d | diff - /dev/null
	}
	stays "$drift $deco $cuts other=7" --bandwidth 1Mbit
	stays "$deco $cuts other=7" --target-divergence 0.01 --model-norm 1e6
	stays "$drift $cuts other=7" --deco 1s,5s --bandwidth 1kbit
	stays "$drift $deco other=7" --cuts 1000s --bandwidth 1kbit
}

@test "impossible numbers in a state are refused, with their key: status 3" {
	local deco="5000000 0 0 0 0 0 0.01 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 1.5 1 0 0 0 0 0 0 1"
	mkdir -m 700 st
	mkshards >in
	mkshards -H kind=6 -K bandwidth=fast >st/link
	refuses 3 "^ace-policy: corrupt: key bandwidth in 'st/link'" ace-policy -S st in
	refuses 3 "^ace-status: corrupt: key bandwidth in 'st/link'" ace-status st
	rm st/link
	# a delay of half a step is not valid
	mkshards -s 9 -H kind=6 -K "deco=$deco" >st/policy
	exits 3 ace-policy -S st --deco auto,10ms --bandwidth 5Mbit in
	says "^ace-policy: corrupt: key deco"
	mkshards -s 9 -H kind=6 -K "deco=${deco/1.5/1}" >st/policy
	exits 0 ace-policy -S st --deco auto,10ms --bandwidth 5Mbit in
	mkshards -s 9 -H kind=6 -K "rate=nan" >st/policy
	refuses 3 "^ace-policy: corrupt: key rate in 'st/policy'" ace-policy -S st in
	mkshards -s 9 -H kind=6 -K "rate=5e6" >st/policy
	exits 0 ace-policy -S st in
}

# budgets: print the budgets of the last output's shards
budgets() { policy out | sed -n 's/^budget_bytes=//p' | tr '\n' ' '; }

@test "the budget follows a falling rate immediately, and a rising one slowly" {
	link() {
		mkshards -s "$2" >shard
		exits 0 ace-policy -S state --bandwidth "$1" --ratio 2,200 \
		    shard
		budgets
	}
	# from 200 Mbit/s to 5: the next shard has the small budget already
	fast=$(link 200Mbit 0)
	slow=$(link 5Mbit 1)
	exits 0 ace-policy --bandwidth 5Mbit --ratio 2,200 shard
	[ "$slow" = "$(budgets)" ]
	[ "${slow% }" -lt $((${fast% } / 3)) ]
	[ "$(link 5Mbit 2)" = "$slow" ]
	# small changes are ignored; a larger rise is followed by half
	[ "$(link 5.2Mbit 3)" = "$slow" ]
	up=$(link 25Mbit 4)
	exits 0 ace-policy --bandwidth 15Mbit --ratio 2,200 shard
	[ "$up" = "$(budgets)" ]
	up=$(link 25Mbit 5)
	exits 0 ace-policy --bandwidth 20Mbit --ratio 2,200 shard
	[ "$up" = "$(budgets)" ]
}

@test "warm-up: the ratio of compression rises exponentially" {
	mkshards -n 1M -N 6 >in
	exits 0 ace-policy --bandwidth 0bit --ratio 2,256,10Mbit,4 in
	# 256^(1/4) = 4: factors 4, 16, 64, 256, 256, 256
	[ "$(budgets)" = "1048576 262144 65536 16384 16384 16384 " ]
	exits 2 ace-policy --deco auto --ratio 2,300,10Mbit,4 in
	exits 0 ace-policy --bandwidth 0bit --ratio 2,256 in
	[ "$(budgets)" = "16384 16384 16384 16384 16384 16384 " ]
}

@test "-v prints each decision, and from which rate and drift it follows" {
	mkshards >in
	exits 0 ace-policy -v --bandwidth 5Mbit --ratio 2,200,5Mbit,2 --target-divergence 0.01 \
	    --model-norm 1000 --interval 4 in
	# the square root of 101 is 10.05; the shard has 4 * 336 bytes
	says 'link 5 Mbit/s, taken as 5 Mbit/s, ratio 10.05, budget 133 bytes$'
	has budget_bytes=133
	says 'relative drift 0.01882, interval 3$'
	has interval=3
	exits 0 ace-policy -q --bandwidth 5Mbit in
	[ ! -s err ]
}

@test "--deadline: from the third shard after the rate fell, the link carries the budget in time" {
	mkshards -n 1M >shard
	# ace-meter cannot measure so small a shard, and stores -L as the link's rate
	mkshards -n 4k >small
	mkdir -m 700 st
	# link RATE: write what ace-meter leaves in the state when the link has this rate
	link() {
		rm -f st/link
		ace-meter -S st -L "$1" small >/dev/null
	}
	link 200Mbit
	ace-policy -S st --ratio 2,20 --deadline 100ms shard >out
	fast=$(budgets)
	[ "${fast% }" -gt 500000 ]
	link 5Mbit
	for s in 1 2 3; do
		mkshards -n 1M -s $s >shard
		exits 0 ace-policy -S st --ratio 2,20 --deadline 100ms \
		    -v shard
		says "62500 bytes, as many as the deadline permits$"
		got=$(budgets)
		mv out policed
		# 5 Mbit/s carry 62500 bytes in 0.1 s
		[ "$got" = "62500 " ]
		ace-select --policy policed | ace-compress >coded
		[ "$(wc -c <coded)" -le 63500 ]
	done
	# the ratio fits these bytes
	mv policed out
	has ratio=67.108864
	# a rise from 5 to 20 Mbit/s is followed by half here, too: to 12.5 Mbit/s
	link 20Mbit
	mkshards -n 1M -s 4 >shard
	ace-policy -S st --ratio 2,20 --deadline 100ms shard >out
	[ "$(budgets)" = "156250 " ]
	exits 2 ace-policy --deco auto --deadline 1s shard
	exits 2 ace-policy --deco auto --deadline 0s shard
	exits 0 ace-policy --deadline 0s --bandwidth 5Mbit shard
	[ "$(budgets)" = "0 " ]
	# without a known link the deadline has no effect
	makes want ace-policy --omit provenance shard
	exits 0 ace-policy --omit provenance --deadline 1ms shard
	same out want
}

@test "a shard with NaN or infinity is refused if its drift counts, and the state stays usable" {
	for k in nan inf; do
		mkshards -k $k >in
		o="--target-divergence 0.01 --model-norm 100000"
		exits 5 ace-policy -S st$k --bandwidth 1Mbit $o in
		says "non-finite value in tensor '.*' at index 3"
		# the same with pipes as input and output
		exits 5 bash -c "cat in | ace-policy --bandwidth 1Mbit $o | cat >got; exit \${PIPESTATUS[1]}"
		exits 3 ace-inspect verify got
		exits 0 ace-policy --bandwidth 1Mbit in
		mkshards -s 1 >next
		exits 0 ace-policy -S st$k --bandwidth 1Mbit \
		    --target-divergence 0.01 --model-norm 100000 next
		has interval=2
	done
}

@test "options that exclude each other, and invalid numbers, are refused" {
	while read -r options; do
		exits 2 ace-policy $options </dev/null
	done <<-'END'
		--ratio 5,2
		--ratio 0.5
		--ratio 2,300,0bit
		--ratio 2,
		--ratio ,3
		--ratio 2,3,
		--ratio 2,3,1Mbit,4,5
		--ratio 2,3,1Mbit,-4
		--ratio 2,00000000000000000000000000000000000000000000000000000000000000003
		--deco later
		--deco 1s
		--deco 1s,
		--deco 1s,2s,3s
		--ratio 301
		--bandwidth nan
		--cuts -1ms
		--target-divergence 0
		--target-divergence 0.01 --model-norm 0
		--target-divergence 0.01 --model-norm nan
		--deco auto --ratio 2,300,10Mbit,3
		--deco 0s,auto
		--deadline -1s
	END
	# at the limits of the options no result overflows
	mkshards -t w:0 >in
	for options in "--deadline 0s --bandwidth 1Mbit" "--bandwidth 0bit" \
	    "--ratio 1,1" \
	    "--ratio 2,300,1e300bit" "--ratio 2,300,1e-300bit --bandwidth 1e30bit" \
	    "--target-divergence 1e-300 --model-norm 1e300 --bandwidth 1bit" \
	    "--deco 1s,0s --bandwidth 1bit"; do
		mkshards -k zeros -t w:9 >zeros
		for f in in zeros; do
			exits 0 ace-policy $options $f
			! policy out | grep -iE 'nan|inf$' || false
		done
	done
}
