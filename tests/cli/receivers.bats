load helper

# Stored patches, receivers and receipts: ace-diff -S, ace-patch --receipt, ace-ack.

# steps N: make models m0 to mN
steps() {
	local i
	for i in $(seq 0 "$1"); do
		[ -e "m$i" ] || once "m$i" mkmodel "m$i" -n 1000 -s "$i"
	done
}

# kept A B: store in S the patches that lead from step A to step B
kept() {
	local i
	steps "$2"
	for i in $(seq $(($1 + 1)) "$2"); do
		ace-diff -S S -s "$i" "m$((i - 1))" "m$i"
	done
}

# to NAME MODEL: send NAME the patches that MODEL needs, apply them, and return the receipt
to() {
	ace-diff -S S --to "$1" >"$1.down" &&
	    { ace-patch --receipt "$1" "$2" <"$1.down" >"$1.up" || true; } &&
	    { ace-ack -S S <"$1.up" >rest || true; }
}

# has NAME STEP IS: check that ace-status shows NAME at STEP, with status IS
has() {
	ace-status S >status
	grep -Eq "^$1 +$3 +$2 " status || { cat status; return 1; }
}

# shards FILE N: check that FILE has N shards
shards() { [ "$(ace-inspect --format json "$1" | grep -o '"kind":"model"' | wc -l)" -eq "$2" ]; }

@test "an unknown receiver is asked for its model, then gets the patches that it needs" {
	kept 0 3
	cp m1 r
	exits 0 ace-diff -v -S S --to edge1
	says "'edge1' has sent no receipt: asking which model it has"
	mv out down
	exits 0 ace-patch --receipt edge1 r <down
	same r m1
	mv out up
	notes "'edge1' has step 0, model [0-9a-f]{32}" ace-ack -v -S S <up
	# ace-ack finds the step by the hash in the receipt
	has edge1 1 behind
	exits 0 ace-diff -v -S S --to edge1
	says "sending 'edge1' 2 patches, from step 0 to step 3"
	shards out 2
	mv out down
	# sent, but not yet received
	has edge1 1 sent
	exits 0 ace-patch --receipt edge1 r <down
	same r m3
	mv out up
	exits 0 ace-ack -S S <up
	has edge1 3 newest
	# now there is nothing to send
	to edge1 r
	shards edge1.down 0
	has edge1 3 newest
	ace-status --format json S | grep -q '"receiver":"edge1","is":"newest","step":3,"behind":0,"patches":0'
}

@test "after a lost receipt the patch is sent again, and the model is not written again" {
	kept 0 1
	cp m0 r
	to edge1 r
	ace-diff -S S --to edge1 | ace-patch --receipt edge1 r >lost
	same r m1
	has edge1 0 sent || has edge1 0 behind
	stat -c '%i %y' r >was
	to edge1 r
	shards edge1.down 1
	stat -c '%i %y' r | diff was -
	has edge1 1 newest
}

@test "a repeated or late receipt may cause patches to be sent again, but does no harm" {
	kept 0 1
	cp m0 r
	to edge1 r
	cp edge1.up old
	to edge1 r
	has edge1 1 newest
	ace-ack -S S <edge1.up >rest
	has edge1 1 newest
	kept 1 2
	# a receipt from before the first patch arrives now
	ace-ack -S S <old >rest
	has edge1 0 behind
	to edge1 r
	shards edge1.down 2
	same r m2
	has edge1 2 newest
}

@test "damaged receipts are refused; the next receipt corrects a forged one" {
	kept 0 2
	cp m0 r
	cp m2 other
	to edge1 r
	cp edge1.up good
	# a receipt for a model that the receiver does not have
	ace-diff -S S --to edge1 >whole
	ace-patch --receipt edge1 other <whole >forged || true
	ace-ack -S S <forged >rest || [ $? -eq 3 ]
	has edge1 2 newest
	# so nothing is sent, and the next receipt names the receiver's model
	to edge1 r
	same r m0
	has edge1 0 sent
	to edge1 r
	same r m2
	# a receipt with a flipped bit gives the same result as before, or none
	cp S/models was
	ace-ack -S S <good >rest
	grep -Eo "^has [^ ]*" S/models >may
	cp was S/models
	grep -Eo "^has [^ ]*" S/models >>may
	for at in $(seq 0 $(($(wc -c <good) - 1))); do
		each_of 10 || continue
		cp good bad
		flip bad "$at"
		exits 3 ace-ack -S S <bad
		[ "$(grep -cxFf may <(grep -Eo "^has [^ ]*" S/models))" -eq 1 ]
		cp was S/models
	done
	ace-patch --receipt nobody other <whole >forged
	notes "skipped a receipt: ace-diff --to sent its receiver nothing" ace-ack -S S <forged
	cmp S/models was
}

@test "the receipt of a refused patch names the receiver's model" {
	kept 0 3
	cp m3 r
	to edge1 r
	has edge1 3 newest
	# the model comes from an old backup, first without a marker, then with one
	for keep in "" 1; do
		kept 3 4
		cp m1 r
		[ -n "$keep" ] || rm -rf r.ace-patch
		ace-diff -S S --to edge1 >down
		exits 5 ace-patch --receipt edge1 r <down
		same r m1
		mv out up
		exits 3 ace-ack -v -S S <up
		says "receiver 'edge1' has step [0-9]+, model [0-9a-f]{32}, and refused the last patch"
		has edge1 1 sent
		to edge1 r
		same r m4
		has edge1 4 newest
		cp m3 r
		rm -rf S r.ace-patch
		kept 0 3
		to edge1 r
	done
}

@test "a receiver with another model gets a whole model, and patches if that is shorter" {
	kept 0 2
	mkmodel r -n 1000 -s 9
	to edge1 r
	ace-status S >status
	grep -Eq "^edge1 +behind +0 +2 " status
	notes "sending 'edge1' 2 patches" ace-diff -v -S S --to edge1
	to edge1 r
	same r m2
	has edge1 2 newest
	# a model with other tensors is not replaced
	mkmodel small -n 10
	ace-diff -S S --to small >down
	ace-patch --receipt small small <down | ace-ack -S S >rest
	ace-diff -S S --to small >down
	exits 3 ace-patch --receipt small small <down
	says "mismatch: the patch is for another architecture than 'small'"
}

@test "the receipt of --stage names the present model, that of --commit the new one" {
	kept 0 1
	cp m0 r
	to edge1 r
	ace-diff -S S --to edge1 >down
	makes up ace-patch --stage --receipt edge1 r <down
	exits 0 ace-ack -S S <up
	has edge1 0 sent
	# a question does not change a staged model
	ace-diff -S S --to edge2 >ask
	exits 0 ace-patch --stage --receipt edge1 r <ask
	makes up ace-patch --commit --receipt edge1 r
	exits 0 ace-ack -S S <up
	has edge1 1 newest
	same r m1
}

@test "six receivers at the same time; of two publishers one waits for the lock" {
	kept 0 2
	local n pids=
	for n in 1 2 3 4 5 6; do
		cp m0 "r$n"
		(to "e$n" "r$n" && to "e$n" "r$n") 3>&- &
		pids="$pids $!"
	done
	for n in $pids; do wait "$n"; done
	for n in 1 2 3 4 5 6; do
		same "r$n" m2
		has "e$n" 2 newest
	done
	exec 8>S/lock
	flock 8
	steps 3
	refuses 5 "in use by another process" ace-diff -S S m2 m3
	exec 8>&-
	exits 0 ace-diff -S S -s 3 m2 m3
}

@test "invalid calls are refused" {
	steps 1
	exits 2 ace-diff --to edge1
	exits 2 ace-diff -S S --to edge1 m0
	exits 2 ace-diff -S S -o x m0 m1
	refuses 5 "'S/patches' has no patch yet" ace-diff -S S --to edge1
	kept 0 1
	exits 2 ace-diff -S S --to ""
	exits 2 ace-diff -S S --to $'a\nb'
	exits 2 ace-patch --receipt "" m0 </dev/null
	echo "has nonsense" >S/models
	refuses 3 "corrupt: 'S/models', line 1" ace-diff -S S --to edge1
	exits 3 ace-status S
}

@test "limits: old patches are removed, but patches from a whole model to the newest stay" {
	kept 0 1
	printf 'patches 4\nanchor 3\n' >S/limits
	kept 1 12
	[ "$(find S/patches -name '*.aceg' | wc -l)" -le 4 ]
	# a receiver with an unknown model
	mkmodel r -n 1000 -s 20
	to edge1 r
	to edge1 r
	same r m12
	# a receiver at a step whose patch was removed
	cp m1 old
	to edge2 old
	to edge2 old
	same old m12
	# a limit on bytes keeps the newest patch and those that lead to it
	printf 'bytes 1\n' >S/limits
	kept 12 13
	[ "$(find S/patches -name '*.aceg' | wc -l)" -le 4 ]
	to edge1 r
	same r m13
	# without whole models there may be no way to the newest model
	rm -r S
	kept 0 1
	rm S/patches/*.00000000*
	printf 'anchor 0\npatches 2\n' >S/limits
	kept 1 5
	[ "$(find S/patches -name '*.aceg' | wc -l)" -eq 2 ]
	cp m1 old
	rm -rf old.ace-patch
	to edge1 old
	has edge1 0 lost
	exits 5 ace-diff -S S --to edge1
	says "nothing leads from model [0-9a-f]{32} of receiver 'edge1' to step 5"
	echo 'patches 1' >S/limits
	refuses 2 "S/limits:1: " ace-diff -S S m0 m1
}

@test "the same patch is stored once; a return to an older model is a new step" {
	kept 0 2
	ls S/patches >was
	ace-diff -S S -s 2 m1 m2
	ace-diff -S S -s 2 m2 m2
	ls S/patches | diff was -
	cp m2 r
	to edge1 r
	ace-diff -S S -s 3 m2 m1
	has edge1 2 behind
	to edge1 r
	same r m1
	has edge1 3 newest
}

# late NAME MODEL: run catch-up.sh with `far' in place of ssh
late() {
	PATH=$ROOT/examples/patches:$PATH catch-up.sh "$1" "$2" S "$PWD/served" far
}

# bats test_tags=long
@test "catch-up.sh: a host that missed steps, has a backup, or has no model" {
	local n got
	mkdir bin
	printf '#!/bin/sh\necho >>"$CALLS"\nexec sh -c "$*"\n' >bin/far
	chmod +x bin/far
	export CALLS=$PWD/calls
	PATH=$PWD/bin:$PATH
	kept 0 5
	for n in 0 1 5; do
		mkmodel "d$n" -n 1000 -f 3 -s $n
	done
	cp -r d0 served
	cp -r d1 h
	exits 0 late edge1 h
	diff -r h d5
	has edge1 5 newest
	# two rounds of three commands for the trainer: a question, then the patches
	[ "$(wc -l <calls)" -eq 6 ]
	exits 0 late edge1 h
	[ "$(wc -l <calls)" -eq 9 ]
	# a backup unknown to the trainer, first without a marker, then with one
	for n in 0 1; do
		rm -r h
		[ $n = 1 ] || rm -r h.ace-patch
		cp -r d1 h
		exits 0 late edge1 h
		diff -r h d5
	done
	# a host without a model gets the headers, a whole model and the other files of the
	# trainer's directory, with modes of its own
	mkdir served/original
	(umask 027 && exits 0 late edge2 j)
	[ "$(cat err)" = "" ]
	rmdir served/original
	diff -r j d5
	[ "$(stat -c %a j)" = 750 ]
	[ ! -e j.joins ]
	has edge2 5 newest
	# after a kill at any place, the next call continues
	for n in $(upto 40); do
		rm -rf j*
		mkdir j.joins
		got=0
		killed "$n" bash -c 'PATH=$ROOT/examples/patches:$PATH exec \
		    catch-up.sh edge2 j S "$PWD/served"' 2>err || got=$?
		exits 0 late edge2 j
		diff -r j d5
		[ "$got" -eq 137 ] || break
	done
	# the trainer cannot be reached, or has no patches for the model
	PATH=$ROOT/examples/patches:$PATH
	refuses 4 "catch-up.sh: 'h' is not the newest" catch-up.sh edge1 h S served false
	rm -r S
	kept 0 1
	rm S/patches/*.00000000*
	printf 'anchor 0\npatches 2\n' >S/limits
	kept 1 5
	rm -rf h h.ace-patch
	cp -r d1 h
	exits 4 late edge1 h
	says "nothing leads from model [0-9a-f]{32} of receiver 'edge1' to step 5"
	diff -r h d1
	exits 2 catch-up.sh edge1 h
}
