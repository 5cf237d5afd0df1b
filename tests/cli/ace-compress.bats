load helper
load values

# records FILE: print "group codec length" of every record of the first shard
records() {
	perl -we 'use strict; local $/; binmode STDIN; my $s = <STDIN>;
	my ($o, $n, $g) = (0, 0, 0);
	sub varint { my ($v, $k, $c) = (0, 0);
		do { $c = ord substr $_[0], $_[1]++, 1;
		$v |= ($c & 127) << $k; $k += 7 } while $c & 128; $v }
	for (; $o + 64 <= length $s; $o += 64 + 8 * int(($n + 7) / 8)) {
		$n = unpack "V", substr $s, $o + 16, 4;
		my $t = substr $s, $o + 4, 4;
		last if $t eq "SEND";
		next if $t ne "DATA";
		my $p = substr $s, $o + 64, $n;
		my ($m, $i) = (unpack("V", $p), 12);
		$g = unpack "V", substr $p, 8;
		while ($m--) {
			my $c = ord substr $p, $i++, 1;
			my $gap = $c >> 5;
			$gap += varint($p, $i) if $gap == 7;
			$i++ unless $c & 16;
			printf "%d %d %d\n", $g += $gap, $c & 15, varint($p, $i);
			$g++ } }' <"$1"
}

@test "the plan is obeyed, before or after the data" {
	for l in -l -L; do
		mkshards -n 640 -g 64 "$l" f16,none,topk:0.5,q8,f32 -a >in
		exits 0 ace-compress in
		[ ! -s err ]
		mv out coded
		records coded | awk '{ print $1, $2 }' >got
		diff got - <<-'EOT'
		0 1
		2 7
		3 4
		4 0
		5 1
		7 7
		8 4
		9 0
		EOT
		! frames coded | grep -q pLAN || false
		frames coded | grep -q xyZz
	done
	notes "shard 'edge1/0': groups sent: 8, not sent: 2" ace-compress -v in
	# -c overrides the plan
	exits 0 ace-compress -c q8 in
	records out | awk '$2 != 4 { exit 1 }'
	[ "$(records out | wc -l)" -eq 10 ]
}

@test "-c does not make norms and biases sparse; a plan may" {
	mkshards -g 128 -t w:16,16 -t w.bias:64 -t norm.weight:64 >in
	for c in topk:0.05 topk:0.05:q2 chunk:2/32 ecq:2; do
		exits 0 ace-compress -c "$c" in
		# codec 1 is f16
		[ "$(records out | tail -n 2 | cut -d' ' -f1,2 | tr '\n' ' ')" = \
		    "2 1 3 1 " ]
		[ "$(records out | awk '$1 < 2 && $2 == 1' | wc -l)" -eq 0 ]
		makes planned ace-select -p "1=$c" in
		exits 0 ace-compress planned
		[ "$(records out | awk '$2 == 1' | wc -l)" -eq 0 ]
	done
	# codecs that leave out no value are used for biases as well
	for c in q8 sign f32; do
		ace-compress --omit provenance -c "$c" in >keep
		ace-select -p "1=$c" in >planned
		exits 0 ace-compress --omit provenance planned
		raw out | cmp - <(raw keep)
	done
	# with a state, too, biases are sent in f16
	exits 0 ace-compress -S st -c topk:5.000000000000000000000000000000% in
	raw out | tail -c 512 >got
	raw in | tail -c 512 >want
	each 'abs($v[0] - $v[1]) <= abs($v[0]) / 1000' want got
	mkshards -t w.bias:64 -l topk:0.5 >planned
	exits 0 ace-compress planned
	records out | awk '$2 != 7 { exit 1 }'
}

@test "no plan and no codec: status 2" {
	mkshards >in
	refuses 2 "shard 'edge1/0' has no plan: put ace-select" ace-compress in
	refuses 2 "codec 'zip' is unknown" ace-compress -c zip in
	exits 2 ace-compress -c topk in
	exits 2 ace-compress -c topk:0 in
	exits 2 ace-compress -c q8:3 in
	exits 2 ace-compress --sync often in
}

@test "groups of zeros are not sent" {
	mkshards -k zeros >in
	exits 0 ace-compress -c q8 in
	[ -z "$(records out)" ]
	[ "$(field records out)" -eq 0 ]
}

@test "values that are not sent stay in the residual and are sent later" {
	mkshards -L none -s 1 -k ramp >g1
	mkshards -L none -s 2 -k ramp >g2
	mkshards -L f32 -s 3 -k ramp >g3
	for s in 1 2 3; do
		makes "c$s" ace-compress -S st "g$s"
		raw "g$s" >"g$s.f32"
	done
	[ "$(field records c1)" -eq 0 ]
	[ "$(field records c2)" -eq 0 ]
	raw c3 >c3.f32
	each '$v[3] == $v[0] + $v[1] + $v[2]' g1.f32 g2.f32 g3.f32 c3.f32
	[ "$(field records st/residual | head -n 1)" -eq 0 ]
	# groups in the residual are sent even if the input lacks them
	mkshards -s 4 -k ramp >g4
	exits 0 ace-compress -S st -c none g4
	mkshards -s 5 -c none >g5
	exits 0 ace-compress -S st -c f32 g5
	raw out | cmp - <(raw g4)
}

@test "the same step again gives the same bytes, even from another input" {
	mkshards -s 1 -n 100k -a >g
	mkshards -s 1 -n 100k -a -x 9 >other
	makes once ace-compress -S st -c topk:0.1 g
	cp st/residual residual
	exits 0 ace-compress -S st -c topk:0.1 g
	same out once
	exits 0 ace-compress -S st -c topk:0.1 other
	same out once
	same st/residual residual
	# the same with ace-expand before it, as when a pipe is run again
	exits 0 ace-expand -S st -o e g
	exits 0 ace-compress -S st -c q8 e
	digest out | diff - <(digest once)
	same st/residual residual
	[ "$(ls st)" = "$(printf 'code\nlock\nresidual')" ]
}

@test "a step that does not follow the last one is refused" {
	mkshards -s 5 | ace-compress -S st -c q8 >c
	cp st/residual residual
	mkshards -s 4 >g
	exits 5 ace-compress -S st -c q8 g
	says "step 4 of 'edge1' is not after step 5, the last one in the state: the trainer is older than its state"
	mkshards -s 7 >g
	exits 5 ace-compress -S st -c q8 g
	says "steps are missing between 5 and 7 of 'edge1': send step 6 next, pass --allow-gap or, if the state is from a backup, run ace-ack --restart"
	same st/residual residual
	# a residual file that lacks its coded shard
	mkshards -s 5 -H kind=4 >st/residual
	mkshards -s 5 >again
	refuses 5 "'st/residual' lacks the coded shard of its step, 5: restore" ace-compress -S st -c q8 again
	mv residual st/residual
	exits 3 ace-expand out
	exits 0 ace-compress -S st -c q8 --allow-gap g
	mkshards -s 5 >g
	exits 5 ace-compress -S st -c q8 --allow-gap g
}

@test "a shard of another device, run or model: a mismatch that names it" {
	mkshards | ace-compress -S st -c q8 >c
	cp st/residual residual
	mkshards -s 1 -d edge2 >g
	exits 3 ace-compress -S st -c q8 g
	says "^ace-compress: mismatch: the shard is of device 'edge2', but the state is of device 'edge1'"
	mkshards -s 1 -r run2 >g
	exits 3 ace-compress -S st -c q8 g
	says "^ace-compress: mismatch: the shard is of run 'run2', but the state is of run 'test'"
	mkshards -s 1 -t layer.weight:8,16 -t embed:24,8 -t layer.bias:16 >g
	exits 3 ace-compress -S st -c q8 g
	says "^ace-compress: mismatch: .*tensor 0 differs in name: 'embed' and 'layer.weight'"
	mkshards -s 1 -g 64 >g
	exits 3 ace-compress -S st -c q8 g
	says "^ace-compress: mismatch: .*the group sizes are 65536 and 64"
	same st/residual residual
}

@test "a shard to which another residual was added is refused" {
	mkshards -s 1 | ace-compress -S st -c q8 >c
	mkshards -s 2 >g2
	mkshards -s 3 >g3
	exits 0 ace-expand -S st -o e2 g2
	exits 0 ace-expand -S st --allow-gap -o e3 g3
	exits 0 ace-compress -S st -c q8 e2
	# in e3 the residual of step 1 was added
	exits 5 ace-compress -S st -c q8 e3
	says "step 3 of 'edge1' includes a residual that differs from the state's"
	exits 0 ace-expand -S st -o e3 g3
	exits 0 ace-compress -S st -c q8 e3
	# without ace-expand, ace-compress adds the residual, with the same result
	mkshards -s 1 | ace-compress -S st2 -c q8 >c
	exits 0 ace-compress -S st2 -c q8 g2
	exits 0 ace-compress -S st2 -c q8 g3
	same st/residual st2/residual
	# a new state refuses a shard to which a residual was added
	exits 5 ace-compress -S st3 -c q8 e3
}

@test "a state in use is refused" {
	mkfifo slow
	ace-compress -S st -c q8 slow >c 3>&- &
	pid=$!
	exec 9>slow	# returns when ace-compress has locked the state and opens the pipe
	mkshards >in
	refuses 5 "'st' is in use by another process" ace-compress -S st -c q8 in
	cat in >&9
	exec 9>&-
	wait "$pid"
	exits 0 ace-compress -S st -c q8 in
	same out c
}

@test "a value that is not finite is refused, with tensor and index" {
	for k in nan inf; do
		mkshards -k "$k" -i 200 >in
		exits 5 ace-compress -S st -c q8 in
		says "non-finite value in tensor 'layer.weight' at index 8: correct the training, shard 1 'edge1/0'"
		[ ! -e st/residual ]
		exits 3 ace-expand out
	done
}

@test "no space for values that wait for their plan: status 4" {
	mkshards -n 20M -k fast | ace-select -b 1M >planned
	mkdir tmp
	for with in '' '-S st'; do
		exits 4 sh -c 'ulimit -f 2048; trap "" XFSZ; TMPDIR=tmp \
		    exec "$@" >/dev/null' sh ace-compress $with planned
		says "values that wait"
	done
	[ ! -e st/residual ]
	[ -z "$(ls tmp)" ] || false
}

@test "a budget is met at every step, and the residual keeps what is not sent" {
	for s in 0 1 2 3; do
		mkshards -n 200k -g 8192 -k layered -s $s >in
		for kind in ef cache; do
			case $kind in
			ef) ace-expand -S $kind in ;;
			*) cat in ;;
			esac | ace-score | ace-select -b 9000 |
			    ace-compress -S $kind --error-feedback $kind >out
			n=$(frames out | awk '$2 == "SHRD" { a = $1 }
			    $2 == "TAIL" { print $1 - a }')
			[ "$n" -le 9000 ] && [ "$n" -ge 8880 ] ||
			    { echo "$kind $s: $n"; false; }
		done
	done
}

@test "a state keeps the kind of feedback that it was created with" {
	mkshards -s 0 >in0
	mkshards -s 1 >in1
	ace-compress -S state -c q8 --error-feedback cache:0.5 in0 >rest
	cp -r state was
	mv state/history.0 away
	exits 3 ace-compress -S state -c q8 --error-feedback cache:0.5 in1
	says "mismatch: file 'history.0' is absent from state 'state'"
	mv away state/history.0
	for other in ef cache:0.75; do
		exits 5 ace-compress -S state -c q8 --error-feedback $other in1
		says "was made with feedback cache:0.5, not $other"
		diff -r state was
	done
}

@test "the factors of ef and cache, and their defaults" {
	mkshards -s 1 >g1
	mkshards -s 2 -x 5 >g2
	raw g1 >f1
	raw g2 >f2
	# nothing of the first shard is sent; the second shard shows how its residual was added
	exits 0 ace-compress -S ef:0.5 --error-feedback ef:0.5 -c none g1
	exits 0 ace-compress -S ef:0.5 --error-feedback ef:0.5 -c f32 g2
	raw out >ef:0.5.f32
	each 'abs($v[2] - ($v[1] + 0.5 * $v[0])) <= 1e-6 * (1 + abs($v[2]))' \
	    f1 f2 ef:0.5.f32
	# what is not sent is reconstructed as rho times the history
	exits 0 ace-compress -S cache --error-feedback cache:0.5 -c f32 -o c1 g1
	exits 0 ace-compress -S cache --error-feedback cache:0.5 -c none -o c2 g2
	ace-expand --cache h c1 >/dev/null
	ace-expand --cache h c2 >out
	raw out >half
	each 'abs($v[1] - 0.5 * $v[0]) <= 1e-6 * (1 + abs($v[0]))' f1 half
	# the default factors
	mkshards -s 3 >g3
	for how in ef:1 cache:0.9; do
		for as in "$how" "${how%:*}"; do
			for g in g1 g2 g3; do
				exits 0 ace-compress -S "d.$as" -c topk:0.1 \
				    --error-feedback "$as" "$g"
			done
			digest out >"d.$as.sent"
		done
		same "d.$how.sent" "d.${how%:*}.sent"
	done
	for bad in ef:2 ef:x ef: ef:-1 cache:nan other \
	    sixteen-characters:1; do
		exits 2 ace-compress -S st --error-feedback "$bad" -c q8 g1
	done
	# ef's factor is refused if ace-expand added the residual: there it is --gamma
	mkshards -s 3 -x 2 | ace-expand -S ef:0.5 >added
	refuses 2 "--gamma" ace-compress -S ef:0.5 -c q8 --error-feedback ef:0.5 added
	exits 0 ace-compress -S ef:0.5 -c q8 --error-feedback ef:1 added
}

@test "a stream without a shard: shards without a receipt are sent again" {
	mkshards >in
	exits 0 ace-compress -S st --window 4 -c q8 in
	digest out >want
	mkshards -N 0 >none
	exits 0 ace-compress -S st --window 4 -c q8 none
	digest out | diff - want
	# shards without a receipt are sent once per process, before the first new shard
	mkshards -s 1 -N 2 >two
	exits 0 ace-compress -S st --window 4 -c q8 two
	digest out >got
	[ "$(wc -l <got)" -eq 3 ]
	head -n 1 got | diff - want
}

# sized FILE: print the bytes of its shard, without the stream's head and tail
sized() {
	frames "$1" | awk '$2 == "SHRD" { a = $1 } $2 == "TAIL" { print $1 - a }'
}

@test "groups of 3 to 12 values use a low budget, and never exceed it" {
	local kind n g b got
	while read -r kind n g b; do
		mkshards -n "$n" -g "$g" -k "$kind" >in
		ace-step --omit provenance,schema -b "$b" in >coded
		got=$(sized coded)
		echo "$kind, $n values by $g: $got of $b bytes"
		[ "$got" -le "$b" ]
		[ "$got" -ge $((b * 9 / 10)) ]
	done <<-E
	gauss 16384 12 4500
	gauss 16384 3 1500
	gauss 4096 3 8000
	gauss 16384 4 6000
	gauss 16384 12 3000
	layered 16384 12 4500
	layered 16384 4 8000
	layered 16384 6 4500
	E
}

@test "shards that --window keeps stay kept in a call without --window" {
	for k in 0 1 2 3; do
		mkshards -s $k >in
		window=(--window 8)
		[ $k != 2 ] || window=()
		exits 0 ace-compress -S st "${window[@]}" -c q8 in
	done
	exits 0 ace-compress -S st --resend
	[ "$(ace-inspect --format json out | grep -o '"step":[0-9]' | paste -sd ' ')" = \
	    '"step":0 "step":1 "step":2 "step":3' ]
}

@test "--resend reads and codes nothing, and needs an existing state" {
	mkshards >in
	exits 0 ace-compress -S st -c q8 in
	exits 2 ace-compress -S st --resend in
	exits 2 ace-compress -S st --resend -c q8
	says '--resend reads no input and codes nothing'
	exits 4 ace-compress -S ts --resend
	[ ! -e ts ] && [ ! -s out ]
}

@test "a shard that the state has absorbed is in the output, even if a later shard fails" {
	for k in 0 1 2; do
		mkshards -s $k
	done >in
	head -c -1000 in >part
	exits 3 ace-compress -S st -c q8 -o coded part
	exits 3 ace-recv --spool spool coded
	[ "$(find spool -name '*.aceg' ! -name schema.aceg | wc -l)" -eq 2 ]
	refuses 3 'aborted' ace-inspect verify coded
	# a partial shard does not enter the state
	head -c 500 in >part
	exits 3 ace-compress -S new -c q8 -o none part
	[ ! -e none ]
	# without a state, a partial shard is not written to the output file
	head -c -1000 in >part
	exits 3 ace-compress -c q8 -o none part
	[ ! -e none ]
}

@test "a score of NaN is corrupt" {
	exits 3 ace-select -b 1k "$ROOT/tests/golden/note-corrupt-score-nan.aceg"
	says 'corrupt: score nan of group 0'
}
