# Delivery from a user's view: every verdict, also repeated and in any order, and what
# happens to the gradient.

load helper

# code STEP [ARGS...]: code a step of the device to sentSTEP
code() {
	mkshards -s "$1" -k ramp >"in$1"
	makes "sent$1" ace-compress -S state -c topk:0.2 --window 8 "${@:2}" "in$1"
}

# answer FILE [OPTION]...: receive FILE and record the receipt; ace-ack's messages are in err
answer() {
	makes receipt ace-recv --spool spool "${@:2}" "$1"
	exits 0 ace-ack -S state -v receipt
}

balance() {
	exits 0 ace-inspect audit -S state --spool spool in*
	grep -q ": exact, $1\$" out || { cat out; return 1; }
}

@test "shards of a wrong run or a wrong model are named and not averaged" {
	mkshards -s 0 -k ramp | ace-recv --spool spool >/dev/null
	mkshards -s 0 -r other -d edge2 >in
	exits 3 ace-recv --spool spool --run test in
	says "mismatch: the shard is of run 'other', expected 'test'"
	mkshards -s 0 -d edge2 -t w:7 >in
	notes "invalid: mismatch: " ace-recv --spool spool -v in
	ace-aggregate --spool spool --rounds 1 >sum
	[ "$(ace-inspect --format json sum | grep -c edge2)" -eq 0 ]
}

# sums FILE...: print, for each value of the model, its sum over the files
sums() {
	local f
	for f; do
		ace-expand --omit provenance "$f" | ace-export -f raw -o raw
		perl -e 'local $/; binmode STDIN; print join("\n",
		    unpack("f<*", <STDIN>)), "\n"' <raw >"$f.txt"
	done
	paste "${@/%/.txt}" | perl -lane '$s = 0; $s += $_ for @F; print $s'
}

@test "after a rejected shard, each kind of feedback delivers its values later" {
	local how
	for how in ef cache; do
		rm -rf state spool cache in* sent*
		code 0 --error-feedback $how -c f32
		mkshards -s 0 -d edge2 | ace-recv --spool spool >/dev/null
		ace-aggregate --spool spool --rounds 1 >/dev/null
		answer sent0
		says "step 0: late"
		code 1 --error-feedback $how -c f32
		answer sent1
		says "step 1: accepted"
		makes got ace-expand --cache cache sent1
		sums in0 in1 >want
		sums got >have
		same want have
	done
}

@test "device names that are dangerous as file names or on terminals" {
	local id
	for id in 'a/b' 'a/../b' '../../up' '.' '..' '-o' '-' 'sp ace' '%2F' 'x%2Fy' a.b \
	    '' '*' "$(printf '%0255d' 7)"; do
		rm -rf spool state
		mkshards -d "$id" -r "$id" >in0
		ace-compress -S state -c f32 --window 2 in0 >sent
		makes receipt ace-recv --spool spool sent
		exits 0 ace-ack -S state receipt
		exits 0 ace-inspect audit -S state --spool spool in0
		[ "$(find . -newer in0 -name '*.aceg' ! -path './spool/*' | wc -l)" -eq 0 ]
		[ "$(find spool -mindepth 1 -maxdepth 1 ! -name '.*' | wc -l)" -eq 3 ]
		notes duplicate ace-recv --spool spool -v sent
		exits 0 ace-aggregate --spool spool --rounds 1
	done
	[ ! -e ../up ]
	[ ! -e ../../up ]
	# a name with control characters is refused when the shard is made
	for id in $'new\nline' $'\e[31mred' $'tab\t'; do
		exits 4 mkshards -d "$id"
	done
}

@test "clocks that jump change only the time in receipts" {
	local t
	code 0
	for t in 0 4102444800 1 18446744073; do
		rm -rf spool
		SOURCE_DATE_EPOCH=$t ace-recv --spool spool sent0 >r
		exits 0 ace-ack -S state r
		balance "1 inputs up to step 0, 1 accepted, 0 pending"
		# deadlines use a clock that does not jump
		SOURCE_DATE_EPOCH=$t timeout "$HANG" ace-aggregate --spool spool \
		    --devices 2 --quorum 1 --deadline 50ms --rounds 1 >"sum$t"
		[ "$t" = 0 ] || same sum0 "sum$t"
	done
}

@test "a spool without hard links: a message, and no shard is accepted" {
	code 0
	exits 4 env LD_PRELOAD="$(preload)" ACE_NOLINK=1 \
	    ace-recv --spool spool sent0
	says "cannot make a hard link 'spool/.*: put the spool on another file system"
	[ "$(find spool -name '*.aceg' ! -name schema.aceg | wc -l)" -eq 0 ]
	[ "$(find spool -name '*.new-*' | wc -l)" -eq 0 ]
	balance "1 inputs up to step 0, 0 accepted, 1 pending"
	answer sent0
	says "step 0: accepted"
}
