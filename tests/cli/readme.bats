# What README.md shows is typed as it stands.

load helper
patient

# block SECTION N: its Nth block of commands
block() {
	awk -v s="## $1" -v n="$2" '/^## / { on = $0 == s }
	    on && /^```/ { if (in_) in_ = 0; else { in_ = 1; k++ } next }
	    in_ && on && k == n' "$ROOT/README.md" | grep .
}

# shown SECTION N: what stands below its Nth block of commands
shown() {
	awk -v s="## $1" -v n="$2" '/^## / { on = $0 == s }
	    on && /^```/ { in_ = !in_; k += in_; after = !in_; next }
	    on && after && k == n && /^    / { print substr($0, 5); next }
	    on && after && /[^ ]/ { after = 0 }' "$ROOT/README.md" | grep .
}

@test "a test types every command, but for make and what it made" {
	# those on two machines are typed by ace-cloud-ssh.bats
	grep -c '^```sh' "$ROOT/README.md" >n
	[ "$(cat n)" -eq 7 ]
	block 'Two machines, one model' 2 | grep '^ace edge cloud:run '
	for s in Install 'A demo'; do
		! block "$s" 1 | grep -v '^make ' || { echo "$s"; false; }
	done
	block Install 1 | grep -F 'make deps install'
	block 'A demo' 1 | grep -F 'make check'
	for n in 1 2; do
		block PyTorch $n | grep -F 'cd /tmp/ace-try'
	done
}

@test "a file of the reader's becomes smaller as shown, as often as it is typed" {
	block 'Try it on a file of yours' 1 >typed.sh
	shown 'Try it on a file of yours' 1 >shown
	mkdir here
	# as many values as the file has whose sizes are shown, or a part of them
	safetensors "$(awk '/ model/ { print int($1 / 4 / 20) }' shown)" >here/model.safetensors
	for n in 1 2; do
		(cd here && bash -euo pipefail ../typed.sh) >out 2>err || { cat err; false; }
		[ ! -s err ]
		prints shown out
		[ "$(ls here | paste -sd' ')" = \
		    'back.safetensors model.safetensors small.aceg smaller.aceg' ]
	done
	# what is said of the loss is true
	for f in small smaller; do
		ace-import here/model.safetensors | ace-inspect diff --tolerance 1 - here/$f.aceg |
		    awk '/^total/ { printf "%.3f\n", $5 }'
	done | paste -sd' ' | awk '{ exit !($1 > 0.005 && $1 < 0.02 && $2 > 0.1 && $2 < 0.4) }'
	# and by the same factors
	for f in small smaller; do
		awk -v f=" $f.aceg" '/ model/ { all = $1 } index($0, f) { print all / $1 }' shown out |
		    paste -sd' ' | awk '{ exit !($1 / $2 < 1.03 && $2 / $1 < 1.03) }'
	done
	ace-inspect diff --tolerance 0.02 <(ace-import here/model.safetensors) \
	    <(ace-import here/back.safetensors)
}

# bats test_tags=plain
@test "PyTorch: a cloud and two devices, from two terminals" {
	for python in python3 /usr/bin/python3 none; do
		"$python" -c 'import torch' 2>/dev/null && break
	done
	[ "$python" != none ] || skip "no torch here (Debian's python3-torch)"
	# where it is installed: programs, and beside them the module
	mkdir -p at/bin at/share/ace
	ln -s "$BUILD"/ace "$BUILD"/ace-* at/bin
	ln -s "$ROOT/examples/pytorch" at/share/ace/pytorch
	printf '#!/bin/sh\nexec "%s" "$@"\n' "$(command -v "$python")" >at/bin/python3
	chmod +x at/bin/python3
	export PATH=$PWD/at/bin:$PATH OMP_NUM_THREADS=1 PYTHONDONTWRITEBYTECODE=1
	unset PYTHONPATH
	for n in 1 2; do
		block PyTorch $n | sed "s|/tmp/ace-try|'$PWD/ace-try'|g" >terminal$n
	done
	shown PyTorch 2 >shown
	spool_of_now() { [ -e ace-try/run/run ] && [ ! -e ace-try/before ]; }
	[ "${HALF:-}" != quick ] || again=
	# typed once more it is another run; the quick half types it once
	for n in 1 ${again-2}; do
		timeout "$HANG" bash terminal1 >cloud.out 2>&1 3>&- &
		wait_for spool_of_now
		timeout "$HANG" bash terminal2 >out 2>err 3>&- || { cat out err; false; }
		wait $! || { cat cloud.out; false; }
		# the devices end in any order, with the same model
		sort -o out out
		sed 's/^edge[12]//; s/loss [0-9.]*//' <(grep '^edge' out) | sort | uniq -c |
		    grep -qx ' *2 : 30 rounds, , model [0-9a-f]\{8\}' || { cat out; false; }
		# and have learnt
		awk '/^edge/ { sub(",", "", $5); if ($5 > 0.6) exit 1 }' out || { cat out; false; }
		# the bytes are those that are shown, about
		diff <(sed -n 's/^edge.*/edge/; s/^[0-9]*$/N/; p' shown | sort) \
		    <(sed 's/^edge.*/edge/; s/^[0-9]*$/N/' out | sort)
		awk '/^[0-9]+$/ { print }' shown out | paste -sd' ' |
		    awk '{ exit !($1 / $2 < 1.05 && $2 / $1 < 1.05) }'
		# both lines as shown
		sed 's/[0-9a-f]\{8\}$/X/; s/[0-9][0-9.]*/0/g' <(grep ^edge shown) >want
		sed 's/[0-9a-f]\{8\}$/X/; s/[0-9][0-9.]*/0/g' <(grep ^edge out) | diff want -
		: >ace-try/before
	done
}
