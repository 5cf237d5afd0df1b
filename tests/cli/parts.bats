load helper

export PYTHONDONTWRITEBYTECODE=1
mkslices() { "$ROOT/tests/mkslices" "$@"; }

# models [N]: write the whole models old, new, third and fourth
models() { once "models${1:-300}" make_models "${1:-300}"; }

make_models() {
	local m
	for m in old,0 new,1 third,2 fourth,3; do
		mkmodel ${m%,*} -n "$1" -s ${m#*,}
	done
}

# ranks NAME ROWS COLUMNS: set n; write the n slices old.NAME0..., new.NAME0... and indexes
ranks() {
	local m
	n=$(($2 * $3))
	for m in old new; do
		# shellcheck disable=SC2046 # word splitting is intended
		mkslices $m "$2" "$3" $(seq -f "$m.$1%g" 0 $((n - 1)))
	done
}

# parts NAME [FOR]: write the ranks' patches NAME0.aceg..., for a receiver with the slices of
# index FOR, and all patches to the file `all'
parts() {
	local i
	for i in $(seq 0 $((n - 1))); do
		exits 0 ace-diff -d "rank$i" -r demo -s 7 --base-version 6 \
		    --part "old.$1$i.json" ${2:+--for "$2"} "old.$1$i" "new.$1$i"
		mv out "$1$i.aceg"
	done
	seq -f "$1%g.aceg" 0 $((n - 1)) | xargs cat >all
}

# stays STATUS MODEL PATCH...: check that the patches are refused and MODEL is unchanged
stays() {
	local want=$1 model=$2
	shift 2
	cp "$model" was
	cat "$@" >came
	stat -c '%i %y' "$model" >seen
	exits "$want" ace-patch "$model" <came
	stat -c '%i %y' "$model" | diff seen -
	same "$model" was
}

# edit FILE CODE: change an index with Python CODE, in which x is the index
edit() {
	python3 -c 'import json, sys
x = json.load(open(sys.argv[1]))
exec(sys.argv[2])
json.dump(x, open(sys.argv[1], "w"))' "$@"
}

@test "patches of ranks that have rows, columns or both change whole models and the same ranks" {
	local form i way m
	models
	ace-diff -v old new >whole 2>said
	made=$(grep -o 'to [0-9a-f]*' said)
	for form in '2 2' '3 1'; do
		ranks r $form
		parts r
		for way in copy in-place; do
			cp old m
			exits 0 ace-patch -v --way $way m <all
			same m new
			# the model's hash is that of a patch of the whole model
			says "is changed to model ${made#to }, step 7"
			[ "hash ${made#to }" = "$(grep ^hash m.ace-patch/marker)" ]
			exits 0 ace-patch -v --way $way m <all
			says "is already the model that the patches make"
			rm -r m.ace-patch
			exits 0 ace-patch -v m <all
			says "is already the model that the patches make"
			rm -r m m.ace-patch
		done
		for i in $(seq 0 $((n - 1))); do
			cp "old.r$i" m
			exits 0 ace-patch --part "old.r$i.json" m <all
			same m "new.r$i"
			exits 0 ace-patch -v --part "old.r$i.json" m <all
			says "is already the model that the patches make"
			rm -r m m.ace-patch
		done
	done
	# a patch of the whole model may follow
	cp old m
	ace-patch m <all
	ace-diff new third | exits 0 ace-patch m
	same m third
}

@test "receivers with other slices are each sent their own values only" {
	local j n
	models
	ranks to 3 1
	ranks from 2 2
	for j in 0 1 2; do
		parts from "old.to$j.json"
		cp "old.to$j" m
		exits 0 ace-patch --part "old.to$j.json" m <all
		same m "new.to$j"
		rm -r m.ace-patch
		# the patches for one receiver do not cover another's slices
		cp "old.to$(((j + 1) % 3))" m
		cp m was
		exits 3 ace-patch --part "old.to$(((j + 1) % 3)).json" m <all
		says "no patch of this step covers some values of a group: .*, tensor 'layer"
		same m was
		rm -r m.ace-patch
	done
	parts from
	cp old.to1 m
	exits 3 ace-patch --part old.to1.json m <all
	says "tensor 'layer.*': 'm' holds only some of the values that rank [0-3] coded as one group"
	same m old.to1
	ace-diff old new >whole
	exits 3 ace-patch --part old.to1.json m <whole
	says "the patch has whole tensors, but 'm' holds slices"
	same m old.to1
	# a receiver ignores tensors that it does not have
	"$ROOT/tests/mkslices" --only layer.00 old.to1 m
	"$ROOT/tests/mkslices" --only layer.00 new.to1 want
	edit old.to1.json 'x = {k: v for k, v in x.items() if k[:8] == "layer.00"}'
	parts from old.to1.json
	exits 0 ace-patch --part old.to1.json m <all
	same m want
}

# large: write old and new, one tensor of three groups in which 1 % of the values differ
large() {
	python3 -c 'import json, os, random, struct
n, m = 701, 1902
raw = bytearray(os.urandom(2 * n * m))
head = json.dumps({"w": {"dtype": "BF16", "shape": [n, m],
    "data_offsets": [0, len(raw)]}}).encode()
for name in "old", "new":
    with open(name, "wb") as f:
        f.write(struct.pack("<Q", len(head)) + head + raw)
    for i in random.sample(range(n * m), n * m // 100):
        raw[2 * i] ^= 1'
}

@test "tensors of several groups, sliced by rows or columns" {
	large
	ranks to 1 2
	ranks from 3 1
	parts from
	cp old m
	exits 0 ace-patch m <all
	same m new
	parts from old.to1.json
	cp old.to1 m
	exits 0 ace-patch --part old.to1.json m <all
	same m new.to1
	# hardly more bytes than a patch of the whole model
	ranks from 1 2
	parts from
	rm -r m.ace-patch
	cp old m
	exits 0 ace-patch m <all
	same m new
	ace-diff old new >whole
	[ "$(wc -c <all)" -lt $(($(wc -c <whole) * 11 / 10 + 2000)) ]
}

@test "a missing rank is named; patches may be repeated and come in any order" {
	models
	ranks r 2 2
	parts r
	cp old m
	stays 5 m r0.aceg r1.aceg r3.aceg
	says "the patch to step 7 has parts of 4 ranks, and the part of rank 2 is missing"
	stays 5 m r0.aceg r0.aceg r0.aceg r0.aceg
	says "the part of rank 1 is missing"
	cat r0.aceg r1.aceg >came
	exits 5 ace-patch --receipt host m <came
	same m old
	cat r3.aceg r1.aceg r1.aceg r0.aceg r2.aceg r3.aceg >came
	exits 0 ace-patch m <came
	same m new
}

@test "patches of different steps, runs or numbers of ranks, and other shards, are refused" {
	models
	ranks r 2 1
	parts r
	cp old m
	for o in '-s 7 --base-version 5 -r demo' '-s 7 --base-version 6 -r other'; do
		ace-diff $o --part old.r1.json old.r1 new.r1 >other
		stays 3 m r0.aceg other
		says "the patch to step 7 does not continue the patch before it: its run, base step or number of ranks differs"
	done
	ace-diff -s 8 --base-version 6 -r demo --part old.r1.json old.r1 new.r1 >other
	stays 3 m r0.aceg other
	says "the patch to step 8 changes step 6, but the patches before it end at step 7"
	cp old.r1.json three
	edit three 'x["__metadata__"]["ranks"] = 3'
	ace-diff -r demo -s 7 --base-version 6 --part three old.r1 new.r1 >other
	stays 3 m r0.aceg other
	says "number of ranks"
	ace-diff -r demo -s 7 --base-version 6 old new >whole
	stays 3 m r0.aceg whole
	says "is not a part"
	stays 3 m whole r0.aceg r1.aceg
	mkslices third 2 1 third.r0 third.r1
	ace-diff -r demo -s 7 --base-version 6 --part old.r1.json old.r1 third.r1 >other
	stays 3 m r0.aceg r1.aceg other
	says "two different patches of rank 1 to step 7"
	exits 2 ace-patch --commit --part old.r1.json m
	exits 2 ace-patch --part old.r1.json -o d m <r0.aceg
	exits 2 ace-diff --part old.r1.json -S state old.r1 new.r1
	exits 2 ace-diff --for old.r1.json old.r1 new.r1
}

# step MODEL NAME STEP [FOR]: write the patches of the ranks NAME from the last model to MODEL
# as STEP.NAME0.aceg...
step() {
	local i
	# shellcheck disable=SC2046 # word splitting is intended
	mkslices "$1" $form $(seq -f "$1.$2%g" 0 $((n - 1)))
	for i in $(seq 0 $((n - 1))); do
		ace-diff -d "rank$i" -r demo -s "$3" --base-version $(($3 - 1)) \
		    --part "$1.$2$i.json" ${4:+--for "$4"} "$last.$2$i" "$1.$2$i" >"$3.$2$i.aceg"
	done
	last=$1
}

# steps NAME ROWS COLUMNS [FOR]: write the patches of steps 7 to 9: old, new, third, fourth
steps() {
	form="$2 $3" n=$(($2 * $3)) last=old
	# shellcheck disable=SC2046,SC2086 # word splitting is intended
	mkslices old $form $(seq -f "old.$1%g" 0 $((n - 1)))
	step new "$1" 7 ${4:+"$4"}
	step third "$1" 8 ${4:+"$4"}
	step fourth "$1" 9 ${4:+"$4"}
}

@test "several steps of ranks in one stream, applied in one pass from any of the steps" {
	local m i order
	models
	steps r 2 1
	cat {7,8,9}.r{0,1}.aceg >rows
	cat {7,8,9}.r0.aceg {7,8,9}.r1.aceg >ranks
	cat 7.r{0,1}.aceg 7.r0.aceg {8,9}.r1.aceg {8,9}.r0.aceg 8.r1.aceg >twice
	ace-diff -v third fourth >whole 2>said
	for order in rows ranks twice; do
		for m in old new third; do
			rm -rf m m.ace-patch
			cp $m m
			exits 0 ace-patch -v m <$order
			says "is changed to model $(grep -o 'to [0-9a-f]*' said | cut -c 4-), step 9"
			same m fourth
			grep -q "^step 9$" m.ace-patch/marker
		done
		# the result does not depend on the marker
		cp old m
		exits 0 ace-patch m <$order
		same m fourth
		notes "is already the model that the patches make" ace-patch -v m <$order
		rm -r m.ace-patch
		notes "is already the model that the patches make" ace-patch -v m <$order
		same m fourth
		for i in 0 1; do
			for m in old new third; do
				rm -rf m.ace-patch
				cp "$m.r$i" m
				exits 0 ace-patch --part "old.r$i.json" m <$order
				same m "fourth.r$i"
			done
			exits 0 ace-patch -v --part "old.r$i.json" m <$order
			says "is already the model that the patches make"
			rm -r m.ace-patch
		done
	done
	exits 0 "$ROOT/tests/decoder/patch" old rows got
	same got fourth
	# with a marker that names another step of the model, and without a marker
	cp old m
	cat 7.r{0,1}.aceg | ace-patch m
	exits 0 ace-patch m <rows
	same m fourth
	mkmodel m -n 300 -s 9
	stays 5 m rows
	says "for another model.*: tensor 'layer.00.bf16' differs from that of rank [01]"
	python3 -c 'a = open("old", "rb").read(); b = open("new", "rb").read()
open("m", "wb").write(a[:len(a) // 2] + b[len(a) // 2:])'
	stays 5 m rows
	says "the patch to step [78] is for another model"
	stays 5 m 8.r{0,1}.aceg 9.r{0,1}.aceg
}

@test "several steps to receivers with other slices, each step from another number of ranks" {
	local j n form last
	models
	ranks to 3 1
	steps from 2 2 old.to1.json
	cp old.to1 m
	cat {7,8,9}.from{0,1,2,3}.aceg >all
	exits 0 ace-patch --part old.to1.json m <all
	mkslices fourth 3 1 fourth.to0 fourth.to1 fourth.to2
	same m fourth.to1
	rm -r m.ace-patch
	steps r 2 1
	n=3 form='1 3' last=new
	mkslices new 1 3 new.c0 new.c1 new.c2
	step third c 8
	cp old m
	cat 7.r{0,1}.aceg 8.c{2,0,1}.aceg 9.r{1,0}.aceg >all
	exits 0 ace-patch m <all
	same m fourth
}

@test "several steps: a missing rank, a missing step and a wrong order are refused" {
	local at
	models
	steps r 2 1
	cp old m
	stays 5 m {7,8}.r{0,1}.aceg 9.r1.aceg
	says "the patch to step 9 has parts of 2 ranks, and the part of rank 0 is missing"
	stays 5 m 7.r{0,1}.aceg 8.r0.aceg 9.r{0,1}.aceg
	says "the patch to step 8 has parts of 2 ranks, and the part of rank 1 is missing"
	stays 5 m 7.r1.aceg {8,9}.r{0,1}.aceg
	says "the patch to step 7 has parts of 2 ranks, and the part of rank 0 is missing"
	stays 3 m 7.r{0,1}.aceg 9.r{0,1}.aceg
	says "the patch to step 9 changes step 8, but the patches before it end at step 7"
	stays 3 m {8,7,9}.r{0,1}.aceg
	says "the patch to step 7 changes step 6, but the patches before it end at step 8"
	ace-diff -r demo -s 9 --base-version 8 third fourth >whole
	stays 3 m {7,8}.r{0,1}.aceg whole
	says "is not a part"
	ace-diff -r demo -s 8 --base-version 7 --part old.r0.json new.r0 old.r0 >other
	stays 3 m {7,8}.r{0,1}.aceg other
	says "two different patches of rank 0 to step 8"
	# patches that name no base step, and are from another model
	for at in 0 1; do
		ace-diff -r demo -s 9 --part old.r$at.json old.r$at fourth.r$at >odd.$at
	done
	stays 3 m 7.r{0,1}.aceg odd.0 odd.1
	says "the patch to step 9 of rank [01] changes another model than the one that the patches before it make, tensor 'layer.00.bf16'; 'm' stays"
	# the same with other slices, where checksums cannot be compared
	mkslices old 1 2 old.c0 old.c1
	mkslices third 1 2 third.c0 third.c1
	for at in 0 1; do
		ace-diff -r demo -s 8 --part old.c$at.json old.c$at third.c$at >odd.$at
	done
	stays 3 m 7.r{0,1}.aceg odd.0 odd.1
	says "the patch to step 8 of rank [01] changes another model than the one that the patches before it make, tensor 'layer.00.bf16'; 'm' stays"
}

@test "several steps of ranks: after whole models, with --stage, --receipt and -o" {
	local i base
	models
	steps r 2 1
	for i in 0 1; do
		ace-diff -r demo -s 7 --part old.r$i.json new.r$i >whole.$i
	done
	cat whole.{0,1} {8,9}.r{1,0}.aceg >all
	mkmodel m -n 300 -s 9
	exits 0 ace-patch m <all
	same m fourth
	rm -r m.ace-patch
	# steps before a whole model are not needed
	cat 7.r{0,1}.aceg >first
	for i in 0 1; do
		ace-diff -r demo -s 8 --part old.r$i.json third.r$i >whole.$i
	done
	cat first whole.{0,1} 9.r{0,1}.aceg >all
	mkmodel m -n 300 -s 9
	exits 0 ace-patch m <all
	same m fourth
	cat {7,8,9}.r{0,1}.aceg >all
	rm -r m.ace-patch
	cp old m
	exits 0 ace-patch --stage m <all
	same m old
	exits 0 ace-patch --commit m
	same m fourth
	for i in old new; do
		rm -rf m m.ace-patch weight
		cp $i m
		exits 0 ace-patch -o weight m <all
		same m fourth
		[ $i = old ] && base=6 || base=7
		grep -q "\"version\":\"000009\",\"base_version\":\"00000$base\"" weight/*.index.json
		cp $i m
		ace-diff m weight | ace-patch m
		same m fourth
	done
	cp third m
	exits 0 ace-patch --receipt host m <all
	same m fourth
	ace-inspect out | grep -q "$(sed -n 's/^hash //p' m.ace-patch/marker)"
}

@test "a base model that differs in one bit is refused, with the tensor and the rank" {
	models
	ranks r 1 2
	parts r
	mkmodel m -n 300 -s 4
	stays 5 m all
	says "to step 7 is for another model, step 6: tensor 'layer.00.bf16' differs from that of rank [01]; 'm' is model [0-9a-f]{32}\$"
	cp old m
	# a value of the second last tensor that the patch does not change, in rank 1's column
	flip m $(($(wc -c <m) - 3))
	stays 5 m all
	says "tensor 'layer.16.u8' differs from that of rank 1"
	cp old.r1 m
	flip m $(($(wc -c <m) - 3))
	cp m was
	exits 5 ace-patch --part old.r1.json m <all
	says "tensor 'layer.16.u8' differs from that of rank 1"
	same m was
	cp old m
	exits 0 ace-patch m <all
	same m new
	cp third m
	stays 5 m all
	says "the last patch applied to it made step 7"
}

@test "values that several ranks have must be equal; values that no rank has are refused" {
	models
	ranks r 2 1
	parts r
	cp old m
	# both ranks have the scalar, with different values
	cp new.r1 other
	flip other $(($(wc -c <other) - 1))
	ace-diff -r demo -s 7 --base-version 6 --part old.r1.json old.r1 other >1.aceg
	stays 3 m r0.aceg 1.aceg
	says "the patches of rank [01] and of another rank give different values to the same elements, tensor 'layer.98.scalar'; 'm' stays"
	# both ranks have rank 1's rows
	cp old.r1.json again
	edit again 'x["__metadata__"]["rank"] = 0'
	ace-diff -r demo -s 7 --base-version 6 --part again old.r1 new.r1 >0.aceg
	stays 3 m 0.aceg r1.aceg
	says "no patch of this step covers some values of a group: .*, tensor 'layer.00.bf16'"
	# both ranks have the whole model
	for i in 0 1; do
		echo "{\"__metadata__\": {\"rank\": $i, \"ranks\": 2}}" >all.$i
		ace-diff -s 7 --part all.$i old new
	done >all
	exits 0 ace-patch m <all
	same m new
}

@test "truncated or damaged patches do not change the model" {
	local at got first
	models 60
	ranks r 2 1
	parts r
	cp old m
	first=$(wc -c <r0.aceg)
	for at in "$first" $(seq 1 53 $(($(wc -c <all) - 1))); do
		each_of 5 || continue
		head -c "$at" all >bad
		got=0
		ace-patch m <bad 2>err || got=$?
		# cut between the two streams, the input lacks a rank: status 5
		[ "$got" -eq $((at == first ? 5 : 3)) ]
		same m old
		cp all bad
		flip bad "$at"
		exits 3 ace-patch m <bad
		same m old
	done
}

@test "killed at any change of a file: the model is old or fourth, never changed by one rank alone" {
	local way k got
	models 60
	steps r 2 1
	cat {7,8,9}.r{0,1}.aceg >all
	for way in copy in-place; do
		for k in $(upto 200); do
			rm -rf m m.ace-patch
			cp old m
			got=0
			killed "$k" ace-patch --way $way m <all 2>err || got=$?
			[ $way = in-place ] || cmp m old >/dev/null || same m fourth
			[ "$got" -eq 137 ] || break
			# a call with one rank's patch completes the interrupted change
			ace-patch m <7.r0.aceg 2>err || [ $? -eq 5 ]
			cmp m old >/dev/null || same m fourth
			exits 0 ace-patch m <all
			same m fourth
		done
		[ "$got" -eq 0 ]
		[ "$k" -gt 8 ]
	done
}

# lies CODE REGEX: check that ace-diff refuses an index that CODE changed, with status 3
lies() {
	cp old.r1.json bad
	edit bad "w = x['layer.00.bf16']; $1"
	refuses 3 "$2" ace-diff --part bad old.r1 new.r1
	[ ! -s out ]
}

@test "invalid indexes are refused" {
	models
	ranks r 2 1
	parts r
	lies 'w["offset"][0] += 1' "slice of tensor 'layer.00.bf16' ends beyond its shape in dimension 0"
	lies 'w["offset"][1] = 2**63 - 1' "ends beyond its shape in dimension 1"
	lies 'w["of"][0] = 2**62' "limit|corrupt"
	lies 'w["offset"][0] = 2**64' "corrupt"
	lies 'w["offset"][0] = -1' "tensor 'layer.00.bf16' needs \"offset\", \"shape\" and \"of\", three lists of whole numbers of one length"
	lies 'w["offset"] = [0]' "tensor 'layer.00.bf16' needs \"offset\", \"shape\" and \"of\", three lists of whole numbers of one length"
	lies 'w["offset"] = [0.5, 0]' "needs \"offset\", \"shape\" and \"of\""
	lies 'del w["of"]' "needs \"offset\", \"shape\" and \"of\""
	lies 'w["shape"][0] -= 1' "tensor 'layer.00.bf16' of '.*' has another shape than 'bad' says"
	lies 'x["layer.77"] = w' "tensor 'layer.77' of 'bad' is not in '(old|new).r1'"
	lies 'x["layer.00.bf16"] = 3' "needs \"offset\", \"shape\" and \"of\""
	lies 'del x["__metadata__"]' "needs \"rank\", and \"ranks\" from 1 to 1024"
	lies 'x["__metadata__"]["rank"] = 2' "needs a \"rank\" smaller than its \"ranks\""
	lies 'x["__metadata__"] = {"rank": 0, "ranks": 5000}' "needs \"rank\", and \"ranks\" from 1 to 1024"
	lies 'x["layer.04.f4"] = {"offset": [0, 1], "shape": [3, 2], "of": [3, 4]}' \
	    "'layer.04.f4' begins or ends between the two f4 values of a byte"
	sed 's/"layer.01.bool"/"layer.00.bf16"/' old.r1.json >bad
	refuses 3 "line .* of 'bad' is not valid JSON: duplicate object key" ace-diff --part bad old.r1 new.r1
	echo nothing >bad
	exits 3 ace-diff --part bad old.r1 new.r1
	echo '[]' >bad
	refuses 3 "'bad' is not a JSON object" ace-diff --part bad old.r1 new.r1
	: >bad
	refuses 3 "truncated: 'bad' is empty" ace-diff --part bad old.r1 new.r1
	# the index is read twice, for both models
	exits 2 ace-diff --part <(cat old.r1.json) old.r1 new.r1
	says "is not a regular file: save the index of slices in a file first"
	refuses 4 "none" ace-diff --part none old.r1 new.r1
	# a receiver whose tensors have another type or other shapes
	cp old.r1 m
	sed 's/"BF16"/"F16" /' old.r1 >m
	exits 3 ace-patch --part old.r1.json m <all
	says "tensor 'layer.00.bf16' is different in shape or type"
	cp old.r1.json bad
	edit bad 'x["layer.00.bf16"]["of"][0] += 1'
	cp old.r1 m
	exits 3 ace-patch --part bad m <all
	says "tensor 'layer.00.bf16' is different in shape or type"
	exits 3 ace-diff --part old.r1.json --for bad old.r1 new.r1
	says "has another shape than 'bad' says"
}

@test "a decoder that was written from the page alone applies patches of ranks" {
	local form
	models
	for form in '2 1' '2 2'; do
		ranks r $form
		parts r
		"$ROOT/tests/decoder/patch" old all got
		same got new
	done
	for i in $(seq 0 $((n - 1))); do
		ace-diff --part "old.r$i.json" "new.r$i"
	done >all
	"$ROOT/tests/decoder/patch" old all got
	same got new
}

@test "ace-archive get does not take a rank's patch for a model; ace-inspect shows the rank" {
	models
	ranks r 2 1
	parts r
	ace-diff -s 6 old >whole
	ace-archive create -o a.tar whole r0.aceg r1.aceg
	makes got ace-archive get --step 6 a.tar
	cp new m
	exits 0 ace-patch m <got
	same m old
	refuses 1 "no model in the archive matches --step and --device" ace-archive get --step 7 a.tar
	shows 'part.*1/2' ace-inspect -v r1.aceg
}
