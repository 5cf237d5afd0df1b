# Four people who did not write this, and the questions of each.  One command answers each
# question.
load helper

# last_week: make a run of two devices and four steps, without the last shard of edge2
last_week() {
	mkdir spool
	for s in 0 1 2 3; do
		for d in edge1 edge2; do
			[ "$s$d" != 3edge2 ] || continue
			mkshards -d $d -s $s -x "${d#edge}" |
			    ace-compress -c q8 -S "state.$d" --sync none |
			    ace-recv --spool spool --sync none |
			    ace-ack -S "state.$d" --sync none >/dev/null
		done
		[ "$s" -eq 3 ] || ace-aggregate --spool spool --devices 2 \
		    --rounds 1 --sync none >"mean.$s"
	done
}

@test "a system administrator: what is this, is it whole, how large, what does it run as" {
	last_week
	f=spool/0/edge1.aceg
	# what is this file that fills my disk?
	exits 0 file -m "$ROOT/man/ace.magic" $f
	grep -qi 'gradient' out
	# is all of it whole?
	exits 0 ace-inspect verify spool
	[ "$(grep -c 'edge[12].aceg: ok, 1 shards' out)" -eq 7 ]
	# how much of my disk does it take?
	exits 0 ace-status spool
	grep -qE 'on disk$' out
	# which program, which libraries, which version?
	exits 0 ace-recv --version
	grep -q 'xxhash' out
	# what can it do to my machine?
	exits 3 ace-score -vv </dev/null
	says 'sandbox: '
	# a typing error in my start script: is it noticed?
	exits 4 ace-aggregate --spool spol
	says "spool 'spol' is absent"
	# one file was damaged: which, and where?
	printf 'X' | dd of=$f bs=1 seek=900 conv=notrunc status=none
	exits 3 ace-inspect verify spool
	says "'spool/0/edge1.aceg'"
}

@test "somebody who trains: how many bytes, how much is lost, what is kept back" {
	safetensors 20000 >grad.safetensors
	# how many bytes is my gradient at 0.5 bits a value?
	ace-import -d me grad.safetensors >gradient
	ace-step -S state --bits 0.5 gradient >sent
	[ "$(wc -c <sent)" -lt 3000 ]
	exits 0 ace-inspect sent
	grep -qE '^total +20000 ' out
	# how far is what arrives from what I had?
	exits 1 ace-inspect diff gradient sent
	grep -qi 'nmse' out
	# what is kept back for the next step?
	exits 0 ace-inspect state/residual
	grep -qE '^kind +residual' out
	# is it my optimiser's file again at the other end?
	exits 0 ace-export -o back.safetensors sent
	[ "$(wc -c <back.safetensors)" -ge 80000 ]
	# I gave it the wrong file
	perl -e 'print pack("VvvvvvVVVvv", 0x04034b50, 0, 0, 0, 0, 0, 0, 0, 0, 16, 0),
	    "archive/data.pkl", "x" x 600' >model.pt
	exits 2 ace-import model.pt
	says "'model.pt' has a name without a known suffix.*: this is a torch.save file"
}

@test "somebody with last week's shards: which, when, one tensor, two runs" {
	last_week
	# which steps and devices are there, a line each?
	exits 0 ace-inspect --format tsv spool
	[ "$(grep -c edge1 out)" -eq 4 ]
	# how did it develop?
	exits 0 ace-inspect brief spool
	[ "$(grep -c ' edge1 ' out)" -eq 4 ]
	# the embedding of edge1 in steps 1 and 2, as numbers
	exits 0 ace-cut --device edge1 --step 1-2 --tensor embed spool
	mv out chosen
	[ "$(ace-inspect brief --format tsv chosen | grep -c edge1)" -eq 2 ]
	ace-export -f raw --tensor embed --step 2 chosen >numbers
	[ "$(wc -c <numbers)" -eq 768 ]
	# is what edge1 sent in step 1 what edge2 sent?
	exits 1 ace-inspect diff <(ace-cut --device edge1 --step 1 spool) \
	    <(ace-cut --device edge2 --step 1 spool)
	# keep all of it in one file, and look at that
	ace-archive create -o week.tar.gz spool
	exits 0 ace-inspect --format tsv week.tar.gz
	[ "$(grep -c edge1 out)" -eq 4 ]
	# what is in this one?
	exits 0 ace-inspect spool/0/edge1.aceg
	grep -qE '^embed +f32 +24x8 .* q8$' out
}

@test "an operator: who is late, what is waited for, is anybody losing bytes" {
	last_week
	# who is late?
	exits 0 ace-status spool
	grep -qE '^edge2 +2 missing ' out
	grep -q 'waits\|1 of 2 shards' out
	# for the monitoring
	exits 0 ace-status --format json spool
	grep -q '"device":"edge2","step":2,"is":"missing"' out
	# what became of what edge2 sent last?
	exits 0 ace-status state.edge2
	grep -q "step 2, accepted" out
	# do the values balance, from the gradients to the average?
	for s in 0 1 2 3; do mkshards -d edge1 -s $s -x 1; done >sent
	exits 0 ace-inspect audit -S state.edge1 --spool spool sent
	grep -q 'within the bound' out
	# edge2 does not come back: go on without it
	ace-recv --spool spool --device edge1 --join
	ace-recv --spool spool --device edge2 --join
	ace-recv --spool spool --device edge2 --leave >/dev/null
	timeout "$HANG" ace-aggregate --spool spool --devices 2 --rounds 1 \
	    --sync none >mean.3
	ace-inspect mean.3 | grep -qE '^contributors +1$'
}
