# Devices whose models differ: key model.digest is compared when a step is summed.
load helper

PATH=$BUILD/examples:$PATH

# said DEVICE DIGEST [ARGS...]: print a shard of DEVICE with this model.digest
said() { mkshards -d "$1" -K "model.digest=$2" -s 7 -H base=7 "${@:3}"; }

# three DIGEST DIGEST DIGEST: write the shards a, b and c with these digests
three() {
	said a "$1" >a
	said b "$2" >b
	said c "$3" >c
}

# spooled FILE...: send the shards to a new spool
spooled() {
	rm -rf spool
	cat "$@" | ace-recv --spool spool >/dev/null
}

@test "the digest of most devices counts; a device with another is named" {
	three 11 22 11
	exits 3 ace-aggregate a b c
	says "mismatch: step 7: 'b' has model 22: load model 11, which [0-9]* devices have, and go on from version 7$"
	exits 3 ace-aggregate <(cat a b c)
	says "mismatch: step 7: 'b' has model 22"
	spooled a b c
	exits 0 ace-aggregate --spool spool --devices 3 --rounds 1
	says "1 of 3 shards is excluded: mismatch: 'b' has model 22"
	mv out mean
	ace-inspect list mean | grep -q "^contributors  2$"
	exits 0 ace-aggregate -o want a c
	ace-inspect diff want mean
	makes receipt ace-recv --spool spool b
	exits 5 ace-ack -S state receipt
	says "step 7: invalid: mismatch: 'b' has model 22: load model 11, which [0-9]* devices have, and go on from version 7$"
	# two wrong devices with different digests
	said d 33 >d
	said e 44 >e
	spooled a c d e
	exits 0 ace-aggregate --spool spool --devices 4 --rounds 1
	says "'d' has model 33: load model 11, which [0-9]* devices have"
	says "'e' has model 44: load model 11, which [0-9]* devices have"
	ace-inspect list out | grep -q "^contributors  2$"
}

@test "two digests with equally many devices: nothing is averaged, and all devices are told" {
	three 11 22 11
	exits 3 ace-aggregate a b
	says "mismatch: step 7: 'a' has model 11, 'b' has 22 at version 7, and neither model has a majority: load one on all devices$"
	spooled a b
	exits 0 ace-aggregate --spool spool --devices 2 --rounds 1
	says "2 of 2 shards are excluded: mismatch: "
	says "step [0-9]+ has no average"
	ace-recv --spool spool a >receipt
	refuses 5 "and neither model has a majority" ace-ack -S state receipt
	# the message with the longest digest and names still says what to do
	local l d
	l=$(printf '%0200d' 0)
	for d in 1 2 3; do
		said "$d$l" "$((d / 3))$l" >long$d
	done
	spooled long1 long2 long3
	exits 0 ace-aggregate --spool spool --devices 3 --rounds 1
	ace-recv --spool spool long3 >receipt
	exits 5 ace-ack -S state2 receipt
	says "load model .*, which [0-9]* devices have, and go on from version 7$"
}

@test "with --quorum, the first of two digests counts, and the device with the other is told" {
	three 22 11 33
	spooled a
	ace-recv --spool spool b >/dev/null
	exits 0 ace-aggregate --spool spool --devices 2 --quorum 1 --rounds 1
	says "1 of 2 shards is excluded: mismatch: 'b' has model 11: load model 22, which 'a' sent before, and go on from version 7$"
	ace-inspect diff out a
	ace-recv --spool spool b >receipt
	refuses 5 "load model 22, which 'a' sent before" ace-ack -S state receipt
	# each of three has another digest, and the last by name came first
	spooled c
	ace-recv --spool spool a >/dev/null
	ace-recv --spool spool b >/dev/null
	exits 0 ace-aggregate --spool spool --devices 3 --quorum 1 --rounds 1
	says "'a' has model 22: load model 33, which 'c' sent before"
	says "'b' has model 11: load model 33, which 'c' sent before"
	ace-inspect diff out c
}

@test "only the device with a wrong digest is deferred; devices without a digest are not" {
	three 11 11 11
	exits 0 ace-aggregate a b c
	# a device without a digest is not compared
	mkshards -d b -s 7 -H base=7 >b
	exits 0 ace-aggregate a b c
	# digests of different versions are not compared
	said b 22 -H base=8 >b
	exits 0 ace-aggregate a b c
	said d 33 -H base=8 >d
	refuses 3 "step 7: 'b' has model 22, 'd' has 33 at version 8, and neither" ace-aggregate a b c d
	# the digest of two devices counts, since no other digest has two
	for d in 1 2 3 4 5; do
		said $d $((d < 3 ? 9 : d)) >$d
	done
	spooled 1 2 3 4 5
	exits 0 ace-aggregate --spool spool --devices 5 --rounds 1
	ace-inspect list out | grep -q "^contributors  2$"
}

@test "a relay passes on the digest of its devices, and is compared, too" {
	local d
	for d in 1 2 3 4 5 6; do
		said $d $((d < 5 ? 9 : 8)) >$d
	done
	exits 0 ace-aggregate -d r1 -o r1 1 2
	exits 0 ace-aggregate -d r2 -o r2 3 4
	exits 0 ace-aggregate -d r3 -o r3 5 6
	refuses 3 "mismatch: step 7: 'r3' has model 8: load model 9, which [0-9]* devices have" ace-aggregate r1 r2 r3
	# with several versions, or a device without a digest, the relay gives no digest
	said 5 9 >five
	mkshards -d 6 -s 7 -H base=7 >six
	exits 0 ace-aggregate -d r3 -o r3 five six
	exits 0 ace-aggregate r1 r2 r3
	said 6 9 -H base=8 >six
	exits 0 ace-aggregate -d r3 five six
	ace-inspect -v out >listing
	exits 1 grep -q model.digest listing
}

@test "the trainer's digest covers weights and moments, and the number of replayed steps" {
	local d
	awk 'BEGIN { for (i = 0; i < 1200; i++)
	    printf("the %d of %d is %d\n", i, i % 7, i * i % 97) }' >text
	export OPENBLAS_NUM_THREADS=1
	# all devices train on the same text; with rate 0 only the moments change
	one() {
		train --device "$1" -H 2 --replay --rate 0 --steps 6 --layers 1 \
		    --width 32 --heads 2 --context 16 --batch 4 "${@:2}" text >"$1"
	}
	one a
	one b
	one c
	exits 0 ace-aggregate a b c
	one c --beta2 0.9
	exits 3 ace-aggregate a b c
	says "mismatch: step 1: 'c' has model [0-9a-f]{16}: load model [0-9a-f]{16}, which [0-9]* devices have, and go on from version 1$"
	# without --replay each device has its own moments
	for d in 7 8 9; do
		train --device $d -H 2 --rate 0 --steps 6 --layers 1 --width 32 \
		    --heads 2 --context 16 --batch 4 --beta2 0.$d text >$d
	done
	exits 0 ace-aggregate 7 8 9
	# a device with another number of steps per round differs from the first round
	one a
	one b
	one c -H 3
	exits 3 ace-aggregate a b c
	says "mismatch: step 0: 'c' has model .*: load model .*, which [0-9]* devices have, and go on from version 0$"
}

@test "ace-import takes the digest from a file's metadata" {
	text='{"__metadata__":{"model.digest":"1f","other":"x"},"w":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}}'
	for d in a b c; do
		t=$text
		[ $d != c ] || t=${text/1f/2f}
		st "$t" 4 | ace-import -d $d - >$d
	done
	ace-inspect -v a >listing
	grep -q '^key  *model.digest=1f$' listing
	grep -q '^key  *safetensors.other=x$' listing
	exits 3 ace-aggregate a b c
	says "mismatch: step 0: 'c' has model 2f: load model 1f, which [0-9]* devices have, and go on from version 0"
	# an exported model keeps its metadata, but not the digest
	exits 0 ace-export -o back.safetensors a
	grep -q '"other":"x"' back.safetensors
	exits 1 grep -q digest back.safetensors
	# --many keeps the digest, for a trainer that compares it with its own
	exits 0 ace-export --many -o many.safetensors a
	grep -q '"model.digest":"1f"' many.safetensors
}
