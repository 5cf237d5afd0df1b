# States with feedback: the number of pending shards, which files are synced, and the effect
# of parameters.

load helper
load values

# code STEP [ARGS...]: code a step to `sent', with the state st
code() {
	mkshards -s "$1" >in
	makes sent ace-compress -S st -c q8 "${@:2}" in
}

# waits STEP N [ARGS...]: check that the step waits because N shards have no receipt
waits() {
	mkshards -s "$1" >in
	exits 5 ace-compress -S st -c q8 --wait 0 "${@:3}" in
	says "shards without a receipt in state 'st': $2 after a wait of 0 s, expected fewer than $2"
}

# norm FILE: print the norm of the first shard's tensor
norm() { ace-inspect stats --format tsv "$1" | sed -n 2p | cut -f 17; }

# left CODEC HOW: print the norm of the residual after eight steps of 64 Ki values
left() {
	rm -rf st
	for s in 0 1 2 3 4 5 6 7; do
		mkshards -n 64k -s $s
	done >in
	makes coded ace-compress -S st -c "$1" --error-feedback "$2" in
	mv err said
	norm st/residual
}

@test "unbiased codecs do not make the residual grow, except with ef:raw" {
	mkshards -n 64k >in
	g=$(norm in)
	for c in qsgd:1 qsgd:4; do
		left $c ef | awk -v g="$g" '!($1 > 0 && $1 < 8 * g) { exit 1 }'
		[ ! -s said ]
	done
	# the paper's form: the residual grows, with a warning from the fifth shard on
	left qsgd:4 ef:raw | awk -v g="$g" '!($1 > 100 * g) { exit 1 }'
	[ "$(wc -l <said)" -eq 4 ]
	grep -q "^ace-compress: shard 'edge1/4': the errors of 5 shards in a row were as large as their values" said
	# without a state qsgd:4 stays unbiased
	makes plain ace-compress --omit provenance -c qsgd:4 in
	exits 0 ace-compress -S new --omit provenance -c qsgd:4 in
	makes kept ace-expand --omit provenance out
	exits 1 ace-inspect diff kept plain
}

@test "--window allows 1 to 8 shards without a receipt" {
	code 0 --window 2
	code 1 --window 2
	waits 2 2 --window 2
	refuses 5 'receipt' ace-compress -S st -c q8 --window 2 --wait 10ms in
	code 2 --window 3
	waits 3 3 --window 3
	for n in 0 9 -1 x; do
		exits 2 ace-compress -S st -c q8 --window $n in
	done
	code 3 --window 8
	# at most eight shards are pending, whatever --window says
	mkshards -d edge2 | ace-recv --spool other | ace-ack -S st >rest
	for s in 4 5 6 7; do
		code $s
	done
	waits 8 8
}

@test "a history waits for the receipt of each shard, whatever the window" {
	code 0 --error-feedback cache --window 4
	waits 1 1 --error-feedback cache --window 4
}

@test "steps may exceed 32 bits" {
	for s in 1099511627776 1099511627777; do
		mkshards -s $s >in
		makes coded ace-compress -S st -c f32 --error-feedback cache in
		makes dense ace-expand --cache h coded
	done
	[ -e st/history.1099511627777 ]
	raw in >want
	raw dense >got
	each 'abs($v[0] - $v[1]) <= 1e-6 * (1 + abs($v[0]))' want got
	mkshards -s 1 >in
	exits 5 ace-compress -S st -c f32 --error-feedback cache in
	says 'step 1 of .edge1. is not after step 1099511627777'
}

@test "the state's files and its directory are synced, or nothing with --sync none" {
	mkdir -m 700 on
	mkshards >in
	for how in ef cache; do
		synced ace-compress -S "on/$how" -c q8 --error-feedback "$how" \
		    in >sent
		grep -q "^on/$how/residual" synced || { cat synced; false; }
		[ $how = ef ] || grep -qE "^on/$how/history" synced
		grep -qx "on/$how" synced
		grep -qx on synced
		for less in rename none; do
			synced ace-compress -S "on/$how.$less" -c q8 \
			    --sync $less --error-feedback "$how" in >sent
			[ ! -s synced ] || { cat synced; false; }
		done
	done
	# `sent' is a difference, so ace-expand syncs its history
	synced ace-expand --cache on/h sent >dense
	grep -q '^on/h/history' synced
	grep -qx on/h synced
	grep -qx on synced
	synced ace-expand --cache on/h2 --sync rename sent >dense
	[ ! -s synced ] || { cat synced; false; }
	# a shard that is sent again may not have been on disk before
	synced ace-compress -S on/ef -c q8 in >sent
	grep -qx on/ef synced || { cat synced; false; }
	synced ace-compress -S on/ef --window 1 --resend >sent
	grep -qx on/ef synced || { cat synced; false; }
	synced ace-compress -S on/ef --window 1 --sync rename --resend >sent
	[ ! -s synced ] || { cat synced; false; }
}

@test "--cache serves one process and one device, and ignores shards that are no differences" {
	mkshards >in
	exits 0 ace-expand --omit provenance --cache h in
	raw out | cmp - <(raw in)
	[ ! -e h/history ]
	ace-compress -S st -c q8 --error-feedback cache in >coded
	exits 0 ace-expand --cache h coded
	mkshards -s 1 -d edge2 |
	    ace-compress -S st2 -c q8 --error-feedback cache >other
	exits 3 ace-expand --cache h other
	says "mismatch: the shard is of device 'edge2', but the state is of device 'edge1'"
	mkfifo slow
	ace-expand --cache h slow >dense 3>&- &
	pid=$!
	exec 9>slow
	refuses 5 "'h' is in use by another process" ace-expand --cache h coded
	cat coded >&9
	exec 9>&-
	wait "$pid"
}

@test "lowrank starts from the last step's shard, also if several are pending" {
	for s in 0 1 2; do
		mkshards -s $s -t w:64,32 -g 2048 >in
		exits 0 ace-compress -S one -c lowrank:2 in
		digest out >once
		exits 0 ace-compress -S many -c lowrank:2 --window 4 in
		digest out | tail -n 1 | diff - once
	done
	# the same if the last step used another rank or codec
	for c in lowrank:2 lowrank:1 f32; do
		mkshards -s 1 -t w:64,32 -g 2048 |
		    ace-compress -S "$c" -c "$c" >sent
		exits 0 ace-compress -S "$c" --error-feedback ef:0 \
		    -c lowrank:2 in
		digest out >"$c.digest"
	done
	run ! diff lowrank:2.digest f32.digest
	run ! diff lowrank:1.digest f32.digest
}

@test "the state keeps the size of the last shard as a share of its dense size" {
	code 0
	share=$(perl -e 'local $/; $_ = <STDIN>; /share([0-9.]+)/ && print $1' \
	    <st/code)
	# 8.5 of 32 bits, and a bit more for short blocks
	awk -v x="$share" 'BEGIN { exit !(x > 0.26 && x < 0.28) }'
}
