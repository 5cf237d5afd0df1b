# examples/train: gradients, reproducible bits, all options, and invalid calls.
load helper
load values

PATH=$BUILD/examples:$PATH
small="--layers 1 --width 32 --heads 2 --context 16 --batch 4 --windows 16"

# begins: write 30 kB of text from which a model can learn
begins() {
	awk 'BEGIN { for (i = 0; i < 1200; i++)
	    printf("the %d of %d is %d\n", i, i % 7, i * i % 97) }' >text
	export OPENBLAS_NUM_THREADS=1
}

@test "gradients agree with finite differences" {
	exits 0 train --check-gradient $small text
	[ "$(grep -c '^layer0' out)" -eq 6 ]
	exits 0 train --check-gradient --layers 3 --width 24 --heads 3 \
	    --context 9 --batch 2 --seed 7 text
	[ "$(wc -l <out)" -eq 22 ]
}

@test "the gradient check fails for a model whose gradient is zero" {
	# save a model whose matrices are zero
	exits 0 train --local --steps 0 $small --save zero text
	exits 1 train --check-gradient --load zero $small text
	grep -q wrong out
}

@test "the same seed gives the same bits, another seed others" {
	train --index 2 --of 3 --steps 5 $small text >a
	train --index 2 --of 3 --steps 5 $small text >b
	same a b
	train --index 2 --of 3 --steps 5 --seed 2 $small text >b
	exits 1 cmp a b
	train --index 1 --of 3 --steps 5 $small text >b
	exits 1 cmp a b
}

@test "it learns: its loss is below an untrained model's and below the entropy of bytes" {
	exits 0 train --local --of 2 -H 5 --steps 150 --eval --log log $small \
	    text
	awk -F '\t' '{ loss[$1] = $4 } END { exit !(loss["end"] > 0 &&
	    loss["end"] < loss["start"] && loss["end"] < loss["unigram"]) }' log
	exits 0 train --local --of 2 -H 5 --steps 150 --muon 0.02 --eval \
	    --log muon $small text
	exits 1 cmp log muon
	awk -F '\t' '{ loss[$1] = $4 } END { exit !(loss["end"] > 0 &&
	    loss["end"] < 1.5 && loss["unigram"] > 2) }' muon
}

@test "a model is the same after --save and --load" {
	train --local --steps 20 --save a $small --eval --log log text
	mkfifo p && refuses 2 'regular file' train --local --steps 0 --save p $small text
	touch b1 && ln -s b1 b
	train --local --steps 0 --load a --save b $small text
	[ -L b ]
	train --local --steps 0 --load b --save c $small --eval --log log2 text
	same b c
	[ "$(awk '$1 == "end" { print $4, $6 }' log)" = \
	    "$(awk '$1 == "end" { print $4, $6 }' log2)" ]
	exits 0 ace-expand -o d a
	train --local --steps 0 --load d --save e $small text
	same b e
}

@test "a model of another shape is refused" {
	train --local --steps 0 --save a $small text
	exits 3 train --local --load a $small --width 48 text
	says "^train: mismatch: 'a' has tensor '.*' of [0-9]* values, expected '.*' of [0-9]*: give"
	exits 3 train --local --load a $small --layers 2 text
	says '^train: mismatch: .a. has [0-9]* tensors, but the trainer.s model has [0-9]*: give the --layers'
	head -c 3000 a >part
	refuses 3 "^train: truncated: .*, in 'part'$" train --local --load part $small text
}

@test "two devices with ace-aggregate give the same model as one process with --local" {
	for way in --gradient '-H 3 --outer-momentum 0.5' \
	    '-H 3 --muon 0.02' '-H 4 --muon 0.02 --replay' --dct '--one-bit 4'; do
		rm -f up? down?
		mkfifo up1 up2 down1 down2
		for k in 1 2; do
			train --index $k --of 2 --steps 9 $way --apply down$k \
			    --save m$k $small text >up$k &
		done
		ace-aggregate --devices 2 up1 up2 | tee down1 >down2
		wait
		same m1 m2
		train --local --of 2 --steps 9 $way --save m $small text
		same m1 m
	done
}

@test "--policy obeys the interval in the aggregate" {
	mkfifo back
	for obey in '' --policy; do
		train -H 2 --steps 12 $obey --apply back --eval --log log \
		    $small text | ace-policy --target-divergence 1000 \
		    --model-norm 1 --interval 2,1,4 >back
		awk '$1 == "end" { print $2, $3 }' log
	done >out
	# rounds and steps: 2 steps per round, or with --policy 2, 4, 4 and 2
	printf '6 12\n4 12\n' | cmp - out
}

@test "of several intervals in a policy the trainer obeys its own device's" {
	mkfifo up1 up2 down1 down2
	for own in 1 2; do
		# the policy gives edge1 2, 4, 4 and 2 steps, and edge2 one step per round
		rounds=$((7 * own - 3))
		for d in 1 2; do
			train --index $d --of 2 -H 1 --steps $rounds --apply down$d \
			    $small text | ace-policy --target-divergence 1e6 \
			    --model-norm 1 --interval $((7 - 3 * d)),1,$((7 - 3 * d)) >up$d &
		done
		ace-aggregate --devices 2 --interval own up1 up2 |
		    tee down1 down2 >decided
		wait
		train --index $own --of 2 -H 2 --steps 12 --policy \
		    --apply decided --eval --log log $small text >/dev/null
		awk '$1 == "end" { print $2, $3 }' log
	done >out
	printf '4 12\n11 12\n' | cmp - out
}

# norm STREAM: print the key model.norm of the shard
norm() {
	ace-inspect --format json "$1" | grep -o '"model.norm":"[0-9.]*' |
	    grep -o '[0-9.]*$'
}

@test "shards have the model's norm, and ace-policy uses its mean" {
	for k in 1 2; do
		train --steps 1 -H 1 --index $k --of 2 --device $k $small text >e$k
	done
	ace-aggregate e1 e2 >mean
	echo "$(norm e1) $(norm e2) $(norm mean)" >norms
	awk '{ d = $3 - ($1 + $2) / 2
	    exit !($1 > 5 && $1 != $2 && d < 1e-6 && d > -1e-6) }' norms
	makes with ace-policy --omit provenance --target-divergence 0.01 mean
	exits 0 ace-policy --omit provenance --target-divergence 0.01 \
	    --model-norm "$(norm mean)" mean
	same out with
	exits 0 ace-policy --omit provenance --target-divergence 0.01 \
	    --model-norm 1 mean
	if cmp -s out with; then false; fi
	head -c 16 /dev/zero | ace-import -f raw --name w --shape 4 -d 3 >mute
	exits 2 ace-policy --target-divergence 0.01 mute
	says 'needs --model-norm, or the key model.norm'
}

# delays D...: print the averages of the shards in `up', one per round, with these delays
delays() {
	local d s=0
	for d; do
		ace-export --step $s -o one.safetensors up
		ace-import -s $s -r train -d all one.safetensors |
		    ace-aggregate ${d:+--delay $d}
		s=$((s + 1))
	done
}

@test "delay: every average is applied, once and in order" {
	for way in '--gradient --steps 8' '-H 2 --steps 16 --outer-momentum 0.5'; do
		train --index 1 --of 2 $way --save all $small text >up
		set -- train --index 2 --of 2 $way --save m $small
		for t in 1 3 100; do
			exits 0 "$@" --apply up --delay $t text
			same all m
		done
		# --policy obeys delays that rise and fall while averages are outstanding
		delays 0 3 '' 1 0 2 5 0 >back
		makes punctual "$@" --apply back text
		exits 0 "$@" --apply back --policy text
		same all m
		# asan takes a cancelled thread for an overflow
		sanitized || refuses 5 "the policy of round 1 delays averages" \
		    "$@" --apply back --policy --resume kept text
		rm -f kept
		# the shards differ, since they are from other models
		exits 1 cmp out punctual
	done
}

@test "delay: two devices with ace-aggregate give the same model as one process" {
	for way in --gradient '-H 3 --outer-momentum 0.5'; do
		rm -f up? down?
		mkfifo up1 up2 down1 down2
		for k in 1 2; do
			train --index $k --of 2 --steps 12 $way --delay 2 \
			    --apply down$k --save m$k $small text >up$k &
		done
		timeout "$HANG" ace-aggregate --devices 2 up1 up2 | tee down1 >down2
		wait
		same m1 m2
		train --local --of 2 --steps 12 $way --delay 2 --save m \
		    $small text
		same m1 m
		train --local --of 2 --steps 12 $way --save n $small text
		exits 1 cmp m n
	done
}

@test "deco: trainers and programs obey its delay and budget" {
	rm -f up? down? mean
	mkfifo up1 up2 down1 down2
	for k in 1 2; do
		(train --index $k --of 2 --steps 20 --clock --policy \
		    --apply down$k --save m$k $small text |
		    ace-expand -S st$k |
		    ace-policy -S st$k --deco auto,${k}ms \
			--bandwidth ${k}00Mbit |
		    ace-select --policy |
		    ace-compress -S st$k --sync none >up$k) 3>&- &
	done
	timeout "$HANG" ace-aggregate --devices 2 up1 up2 | tee mean down1 |
	    ace-expand >down2
	wait
	same m1 m2
	# computation and contraction were measured
	ace-inspect -v mean | grep -q 'delay=[0-9]'
	for k in 1 2; do
		ace-inspect -v st$k/policy | grep -qE 'deco=[0-9.e+]+ '
		ace-inspect -v st$k/code | grep -qE 'contraction=[01]'
		ace-inspect -v st$k/residual | grep -qE 'compute=[0-9.e-]+$'
	done
}

@test "a run that is killed and resumed gives the same model" {
	local n bytes how
	for how in --gradient '-H 3 --outer-momentum 0.9 --factored' \
	    '-H 3 --muon 0.01 --replay' --dct '--one-bit 6' '-H 2 --muon 0.01 --realign 0.5 --moment told'; do
		set -- --steps 14 $how --eval $small
		rm -f kept log*
		train "$@" --save want --log log1 text >all
		[ ! -e told ] || mv told wanted
		bytes=$(wc -c <all)
		for n in 3 2 1; do
			train "$@" --resume kept --log log2 text 2>err |
			    head -c $((bytes / n - bytes / 9)) >part || :
			[ -e kept ]
		done
		train "$@" --resume kept --log log2 --save got text >rest
		same want got
		same <(tail -n 1 log1) <(tail -n 1 log2)
		[ "$(grep -c start log2)" -eq 1 ]
		# the file of --moment is the same, too
		[ ! -e told ] || same wanted told
		# resuming a complete run changes nothing
		train "$@" --resume kept --log log2 --save got text >rest
		same want got
	done
	# a device that joins, or resumes without --moment, does not need the moments in the state
	[ "$(ace-inspect kept | grep -c '^step')" -eq 5 ]
	set -- --steps 14 -H 2 --muon 0.01 $small
	cp kept given
	train "$@" --catch-up given --save got text >rest
	same want got
	train "$@" --resume kept --save got text >rest
	same want got
	head -c "$(frames kept | awk '$2 == "SHRD" { n++ } n == 4 { print $1; exit }')" \
	    given >short
	refuses 3 "truncated: .*, in 'short'$" train "$@" --resume short text
	exits 2 train --resume kept --delay 1 $small text
	echo nonsense >kept
	exits 3 train --resume kept $small text
}

@test "a resumed run sends the same digests of the model" {
	mkdir in
	set -- --rate 1e-9 --steps 6 -H 2 $small
	train "$@" --record in text >own
	# the second average consists of zeros of both signs
	cat in/0.aceg <(ace-compress -c f16 in/1.aceg | ace-expand) in/2.aceg >averages
	train "$@" --apply averages text >want
	refuses 3 "the average of round [0-9]* is missing" train "$@" --resume kept --apply in/0.aceg text
	train "$@" --resume kept --apply averages text >rest
	for k in want rest; do
		ace-inspect list -v --step 2- $k | grep 'model.digest' >said.$k
		[ -s said.$k ]
	done
	same said.want said.rest
}

@test "--record writes each sent shard to a file" {
	mkdir in
	train --steps 6 -H 2 --record in $small text >all
	cat in/0.aceg in/1.aceg in/2.aceg >copy
	ace-inspect diff all copy
	[ "$(ls in | wc -l)" -eq 3 ]
}

# by_name FILE: print statistics of each tensor in the first step, sorted by name
by_name() {
	ace-export --step 0 -f safetensors -o x.safetensors "$1"
	ace-import -f safetensors x.safetensors | ace-inspect stats --format tsv - |
	    cut -f 6- | grep -E '^(layer[0-9]|w.e	|norm)' | sort
}

@test "--cuts sends the same gradients in several frames" {
	train --steps 3 --save m $small text >up
	rows=9
	for cuts in none all "$rows" 1,4,$rows; do
		exits 0 train --steps 3 --save m2 --cuts $cuts \
		    --profile table $small text
		same m m2
		mv out "cut-$cuts"
		exits 0 ace-inspect verify "cut-$cuts"
	done
	# the last layer is the first in the stream; the values of the first step are the same
	ace-inspect cut-all | awk '$2 == "f32" { print $1 }' >names
	printf 'norm\nlayer0.fc2\nlayer0.fc1\n' | cmp - <(head -n 3 names)
	by_name up >a
	by_name cut-all >b
	cmp a b
	# one frame per cut
	[ "$(frames cut-all | grep -c DATA)" -eq $((3 * rows)) ]
	[ "$(frames cut-none | grep -c DATA)" -eq 3 ]
	[ "$(frames "cut-1,4,$rows" | grep -c DATA)" -eq 9 ]
	# ace-compress keeps the cuts
	exits 0 ace-compress -c q8 "cut-1,4,$rows"
	[ "$(frames out | grep -c DATA)" -eq 9 ]
	exits 0 ace-compress -c q8 cut-none
	[ "$(frames out | grep -c DATA)" -eq 3 ]
	exits 0 ace-advise dynacomm --bandwidth 10Mbit --cuts 100us table
	grep -q '^backward *optimal' out
	exits 2 train --cuts 0 $small text
	exits 2 train --cuts 1,x $small text
	exits 2 train --cuts $((rows + 1)) $small text
	exits 2 train -H 2 --cuts all $small text
}

@test "aggregates that do not fit are refused" {
	train --steps 3 $small text >up
	exits 3 train --steps 5 --apply up $small text
	says "^train: truncated: the average of round [0-9]* is missing from 'up'"
	exits 3 train --steps 2 --apply up $small text
	says "^train: mismatch: found an average of round 2, but the training ended after 2 rounds, in 'up'"
	head -c 20000 up >part
	refuses 3 "^train: truncated: .*, in 'part'$" train --steps 3 --apply part $small text
	exits 3 train --steps 3 --apply up $small --context 8 text
	says "^train: mismatch: 'up' has tensor 'wpe' of [0-9]* values, expected 'wpe' of [0-9]*: give"
	exits 4 train --steps 3 --apply nowhere $small text
	says "^train: cannot open 'nowhere'"
	exits 4 train --steps 3 $small nowhere
	[ ! -c /dev/full ] ||	# no space for the output
	    exits 4 sh -c "train --steps 3 $small text >/dev/full"
	printf 'too little' >few
	exits 3 train --steps 3 $small few
	says '^train: truncated: [0-9]* bytes of text for training and [0-9]* for validation, expected'
	exits 2 train --steps 3
	exits 2 train --width 10 --heads 3 text
	exits 2 train --index 3 --of 2 text
	exits 2 train --rate fast text
	exits 2 train --nonsense text
}

@test "the smallest text with which each of 64 devices has a window" {
	seq 9999 | head -c $((64 * 8 * 9 * 10 / 9)) >just
	for how in '' --interleaved; do
		exits 0 train --steps 1 --index 63 --of 64 $small --context 8 \
		    $how just
	done
	seq 9999 | head -c $((64 * 8 * 9 * 10 / 9 - 9)) >few
	refuses 3 'bytes of text for training' train --steps 1 --index 63 --of 64 $small --context 8 few
}

@test "a message before training says how often the text is read" {
	# each device has 900 bytes for training, which are 56 windows of 16 or 14 batches
	seq 9999 | head -c $((2 * 1000)) >short
	exits 0 train --index 2 --of 2 --steps 14 $small --valid 0.1 short
	[ ! -s err ]
	exits 0 train --index 2 --of 2 --steps 42 $small --valid 0.1 short
	says "^train: edge2 reads its text 3.1 times, so the model may memorise it: give more text"
	exits 0 train --local --of 2 --steps 28 $small --valid 0.1 short
	says "^train: each device reads its text 2.0 times, "
}

@test "--replay sends the mean gradient of undone steps, which all devices repeat" {
	local way
	# with one step per round the shards and the model are those of --gradient
	for way in --gradient '-H 1 --replay'; do
		train --steps 12 $way --muon 0.02 --momentum 0.9 --save "m$way" \
		    $small text >"s$way"
	done
	same "m--gradient" "m-H 1 --replay"
	same "s--gradient" "s-H 1 --replay"
	# with several steps both differ; each round sends one gradient
	train -H 4 --replay --steps 12 --muon 0.02 --save m4 $small text >s4
	exits 1 cmp -s m4 "m--gradient"
	[ "$(ace-inspect s4 | grep -c 'gradient')" -eq 3 ]
	# a late device repeats the steps of the averages
	train -H 4 --replay --steps 12 --muon 0.02 --catch-up s4 --save late \
	    $small text >rest
	same m4 late
	# the model learns with eight devices in one process
	train --local --of 8 -H 4 --replay --steps 160 --muon 0.02 --eval \
	    --log log $small text
	awk '{ loss[$1] = $4 } END { exit !(loss["end"] < 1.5 &&
	    loss["unigram"] > 2) }' log
	for way in --gradient '-H 2 --delay 1' '-H 2 --policy' '-H 2 --prox 1' \
	    '-H 2 --gossip' '-H 2 --local --average-moments'; do
		exits 2 train $way --replay $small text
		says '^train: --replay needs --interval'
	done
}

@test "--dct sends transformed gradients, and the step is the sign of their mean" {
	local k
	set -- --rate 0.01 --warmup 0 --decay 0 $small text
	train --steps 0 --save m0 "$@" >/dev/null
	train --steps 1 --save m1 --dct --clip 0.5 "$@" >said
	train --steps 1 "$@" >gradient
	for k in m0 m1 said gradient; do
		ace-export -f raw "$k" | od -An -v -t f4 -w4 >"$k.txt"
	done
	# the sent update has the norm of the clipped gradient; each weight whose gradient exceeds
	# rounding moves by the rate, against the gradient
	paste m0.txt m1.txt said.txt gradient.txt | awk '{ y += $3 * $3; g += $4 * $4
	    if (($4 < 0 ? -$4 : $4) > 1e-5) {
		n++
		d = ($4 > 0 ? 0.01 : -0.01) - ($1 - $2)
		bad += (d < 0 ? -d : d) > 1e-6
	    }
	} END { exit !(g > 0.26 && y > 0.2499 && y < 0.2501 && n > NR / 2 && !bad) }'
	# the model learns if only the largest values are sent, with a residual
	rm -f up? down?
	mkfifo up1 up2 down1 down2
	for k in 1 2; do
		train --index $k --of 2 --steps 200 --dct --rate 0.005 --eval \
		    --log log$k --apply down$k --save m$k $small text |
		    ace-select -p 1=chunk:4/1024 |
		    ace-compress -S state$k --error-feedback ef:0.99 >up$k &
	done
	ace-aggregate --devices 2 up1 up2 | tee down1 >down2
	wait
	same m1 m2
	awk '{ loss[$1] = $4 } END { exit !(loss["end"] < 2 &&
	    loss["unigram"] > 2.3) }' log1
	for k in '-H 2' '--cuts all' '--muon 0.01'; do
		refuses 2 '^train: --dct excludes --interval' train --dct $k $small text
	done
}

@test "--blas prints the library for matrices, which is OpenBLAS" {
	shows '^OpenBLAS' train --blas
}

@test "--average-moments has no effect for one device; with four the model learns as well" {
	local k avg=--average-moments
	train --local -H 2 --steps 20 --save a $small text
	train --local -H 2 --steps 20 --save b $avg $small text
	same a b
	for k in "" $avg; do
		train --local --of 4 -H 5 --steps 150 --muon 0.02 --save "m$k" \
		    --eval --log "log$k" $k $small text
	done
	exits 1 cmp -s m "m$avg"
	awk '$1 == "end" { loss[++n] = $4 }
	    END { exit !(n == 2 && loss[2] < 1.1 * loss[1]) }' log "log$avg"
	exits 2 train --local $avg $small text
	refuses 2 "$avg needs --local and --interval" train -H 2 $avg $small text
}

@test "--prox keeps local steps near the round's first model" {
	# with one step per round --prox has no effect, since each step begins at the common model
	train --local --of 2 -H 1 --steps 20 --save a $small text
	train --local --of 2 -H 1 --steps 20 --prox 50 --save b $small text
	same a b
	for k in 0 50; do
		train -H 10 --steps 10 --warmup 0 --prox $k $small text |
		    ace-inspect -v | sed -n 's/^sum of squares *//p'
	done >moved
	awk '{ x[NR] = $1 } END { exit !(NR == 2 && x[2] > 0 && x[2] < 0.5 * x[1]) }' moved
	refuses 2 "--prox needs --interval" train --prox 1 $small text
	exits 2 train -H 2 --prox -1 $small text
}

@test "--gossip: each device's new model is the mean of the models" {
	# if all are neighbours, the result is that of the mean difference
	for k in '' --gossip; do
		rm -f up1 up2 down1 down2
		mkfifo up1 up2 down1 down2
		for i in 1 2; do
			train --index $i --of 2 -H 5 --steps 60 $k \
			    --apply down$i --save "m$k-$i" $small text >up$i 3>&- &
		done
		ace-aggregate --devices 2 up1 up2 | tee down1 >down2
		wait
		same "m$k-1" "m$k-2"
	done
	ace-inspect diff --tolerance 1e-5 m-1 m--gossip-1
	# a device that begins with another model has the same one after a round
	train --local -H 1 --steps 3 --seed 7 --save other $small text
	rm -f up1 up2 down1 down2
	mkfifo up1 up2 down1 down2
	train --index 1 --of 2 -H 1 --steps 1 --gossip --apply down1 --save a \
	    $small text >up1 3>&- &
	train --index 2 --of 2 -H 1 --steps 1 --gossip --apply down2 --save b \
	    --load other $small text >up2 3>&- &
	ace-aggregate --devices 2 up1 up2 | tee down1 >down2
	wait
	same a b
	for k in '' '-H 1 --local' '-H 1 --delay 1'; do
		refuses 2 "--gossip needs --interval" train --gossip $k $small text
	done
}

@test "--moment writes the moments after rounds 1, 2, 4 and so on, to each file" {
	exits 0 train --index 1 --of 2 --interval 2 --steps 10 $small \
	    --moment one --moment 't,wo' text
	same one t,wo
	exits 2 train --local --moment 1 --moment 2 --moment 3 text
	shows '"step":4,"kind":"history"' ace-inspect --format json one
	# --moment does not change the training
	train --index 1 --of 2 --interval 2 --steps 10 $small text >without
	train --index 1 --of 2 --interval 2 --steps 10 $small \
	    --moment one text >with
	same without with
	shows '"min":0' ace-inspect stats --format json one
	exits 4 train --index 1 --of 2 --interval 2 --steps 2 $small \
	    --moment nowhere/one text
}

@test "--realign: Muon's momenta follow the average; streams give the model of one process" {
	local k
	rm -f up? down?
	mkfifo up1 up2 down1 down2
	for k in 1 2; do
		train --index $k --of 2 -H 3 --steps 12 --muon 0.02 --realign 0.5 \
		    --apply down$k --save m$k $small text >up$k &
	done
	ace-aggregate --devices 2 up1 up2 | tee down1 >down2
	wait
	same m1 m2
	for k in 0 0.5; do
		train --local --of 2 -H 3 --steps 12 --muon 0.02 --realign $k \
		    --save l$k $small text
	done
	same m1 l0.5
	exits 1 cmp -s l0 l0.5
	train --local --of 2 -H 3 --steps 12 --muon 0.02 --save none $small text
	same none l0
	for k in --gradient '-H 3' '-H 3 --muon 0.02 --delay 1' '-H 3 --muon 0.02 --replay'; do
		refuses 2 '^train: --re' train $k --realign 0.5 $small text
	done
	refuses 2 "--realign '1.5' is not valid: expected a number from 0 to 1$" train --realign 1.5 text
}

@test "--factored: coded streams and late devices give one model, whose file has no scales" {
	rm -f up? down?
	mkfifo up1 up2 down1 down2
	for k in 1 2; do
		train --index $k --of 2 -H 3 --steps 12 --muon 0.02 --outer-rate 1.5 --factored \
		    --apply down$k --save m$k $small text >up$k &
	done
	ace-aggregate --devices 2 up1 up2 | ace-compress -c q8 | ace-expand |
	    tee averages down1 >down2
	wait
	same m1 m2
	train --index 2 --of 2 -H 3 --steps 12 --muon 0.02 --outer-rate 1.5 --factored \
	    --catch-up averages --save late $small text >rest
	same m1 late
	# the first round sends scales; the trained model is one without them
	ace-export -f raw --step 0 --tensor scales averages >scales
	run ! each '$v[0] == 0' scales
	train --steps 0 --load m1 --save plain $small text >none
	same <(ace-export -f raw m1) <(ace-export -f raw plain)
	for k in --gradient '-H 3 --local' '-H 3 --delay 1' '-H 3 --replay' '-H 3 --policy'; do
		refuses 2 '^train: --factored needs --interval' train $k --factored $small text
	done
}

@test "--still: tensors that are not trained stay unchanged and are sent as zeros" {
	exits 0 train --local --of 1 --steps 0 $small --save first text
	for way in --gradient '--interval 3' '--gradient --muon 0.02'; do
		train --index 1 --of 1 $way --steps 6 $small --still w \
		    --save after text >sent
		ace-export -f raw --step 0 --tensor wte sent | each '$v[0] == 0' /dev/stdin
		for f in first after; do
			ace-export -f raw --tensor wpe $f >$f.wpe
			ace-export -f raw --tensor layer0.qkv $f >$f.layer
		done
		same first.wpe after.wpe
		run ! cmp -s first.layer after.layer
	done
	exits 2 train --index 1 --of 1 $small --still nothing text
	says "^train: --still: no tensor's name begins with 'nothing'"
	exits 2 train --index 1 --of 1 --gradient --cuts all --still w $small text
	says '^train: --cuts and --still exclude each other'
}

@test "--one-bit: after its rounds the momentum is sent, and the second moments stay" {
	local k
	set -- --warmup 0 --clip 0 --decay 0 $small text
	train --steps 2 "$@" >gradient
	train --steps 2 --until 1 --save m1 "$@" >/dev/null
	train --steps 2 --save m2 --one-bit 1 "$@" >said
	for k in m1 m2 'said 0' 'said 1' 'gradient 0' 'gradient 1'; do
		set -- $k
		ace-export -f raw ${2:+--step "$2"} "$1" |
		    od -An -v -t f4 -w4 >>"$1.txt"
	done
	set -- $small text
	# the files have the values of both steps, one after the other; the second step's rate is
	# 0.525 of the first's
	awk -v n="$(wc -l <m1.txt)" 'function size(x) { return x < 0 ? -x : x }
	FILENAME == "gradient.txt" { g[FNR] = $1; next }
	FILENAME == "said.txt" { said[FNR] = $1; next }
	FILENAME == "m1.txt" { before[FNR] = $1; next }
	size(g[FNR]) > 1e-5 {
		m = 0.09 * g[FNR] + 0.1 * g[n + FNR]
		bad += size(said[n + FNR] - m) > 1e-6 || said[FNR] != g[FNR]
		d = 0.01 * 0.525 / 0.19 * m / size(g[FNR])
		bad += size(before[FNR] - $1 - d) > 1e-5 + 1e-2 * size(d)
		all++
	} END { exit !(all > n / 2 && !bad) }' gradient.txt said.txt m1.txt m2.txt
	for k in '-H 2' '--cuts all' '--muon 0.01' --dct; do
		exits 2 train --one-bit 2 $k "$@"
		says '^train: --one-bit excludes --interval'
	done
}

@test "--until: a run in two parts gives the same model, shards and log" {
	set -- --steps 20 --eval $small text
	train --save want --log log1 "$@" >all
	train --until 4 --resume kept --log log2 "$@" >part
	train --resume kept --save got --log log2 "$@" >rest
	same want got
	same <(tail -n 1 log1) <(tail -n 1 log2)
	[ "$(cut -f 1 log2 | grep -c end)" -eq 1 ]
	cat part rest | ace-cut --omit provenance >joined
	ace-cut --omit provenance all | cmp - joined
}
