# The commands of README.md are run as printed.

load helper
patient

# block SECTION N: print the Nth block of commands of the section
block() {
	awk -v s="## $1" -v n="$2" '/^## / { on = $0 == s }
	    on && /^```/ { if (in_) in_ = 0; else { in_ = 1; k++ } next }
	    in_ && on && k == n' "$ROOT/README.md" | grep .
}

# shown SECTION N: print the output shown below the section's Nth block of commands
shown() {
	awk -v s="## $1" -v n="$2" '/^## / { on = $0 == s }
	    on && /^```/ { in_ = !in_; k += in_; after = !in_; next }
	    on && after && k == n && /^    / { print substr($0, 5); next }
	    on && after && /[^ ]/ { after = 0 }' "$ROOT/README.md" | grep .
}

@test "README has five blocks of commands, each of which some test runs, except make" {
	# ace-cloud-ssh.bats runs the commands for two machines
	grep -c '^```sh' "$ROOT/README.md" >n
	[ "$(cat n)" -eq 5 ]
	block 'Two machines' 2 | grep '^ace edge cloud:run '
	! block Install 1 | grep -v '^make ' || false
	block Install 1 | grep -F 'make deps install'
	[ "$(wc -w <"$ROOT/README.md")" -le 1300 ]
}

# bats test_tags=plain
@test "a cloud and two workers on one machine, and the commands for when something fails" {
	needs_torch
	# imitate an installed tree, with the programs and the module
	mkdir -p at/bin at/share/ace
	ln -s "$BUILD"/ace "$BUILD"/ace-* at/bin
	ln -s "$ROOT/examples/pytorch" at/share/ace/pytorch
	printf '#!/bin/sh\nexec "%s" "$@"\n' "$(command -v "$PYTHON")" >at/bin/python3
	chmod +x at/bin/python3
	export PATH=$PWD/at/bin:$PATH OMP_NUM_THREADS=1 PYTHONDONTWRITEBYTECODE=1 TMPDIR=$PWD
	unset PYTHONPATH
	# wait for the cloud before the second command, as a person would
	block 'Try it: two workers on one machine' 1 |
	    sed 's/^ace cloud .*/&\nuntil [ -e run\/run ]; do sleep 0.1; done/' >typed
	echo 'exec >asked 2>&1' >>typed
	block 'When something fails' 1 >>typed
	shown 'Try it: two workers on one machine' 1 >shown
	timeout "$HANG" bash -eu typed >out 2>err 3>&- || { cat out err tmp.*/asked; false; }
	# both devices end, in any order, with the same model
	sed 's/^edge[12]//; s/loss [0-9.]*//' <(grep '^edge' out) | sort | uniq -c |
	    grep -qx ' *2 : 30 rounds, , model [0-9a-f]\{8\}' || { cat out; false; }
	awk '/^edge/ { sub(",", "", $5); if ($5 > 0.6) exit 1 }' out || { cat out; false; }
	# the output is as shown, except for digits; the number of bytes differs by at most 5 %
	diff <(sed 's/[0-9a-f]\{8\}$/X/; s/[0-9][0-9.]*/0/g' shown | sort) \
	    <(sed 's/[0-9a-f]\{8\}$/X/; s/[0-9][0-9.]*/0/g' out | sort)
	awk '/^[0-9]+$/ { print }' shown out | paste -sd' ' |
	    awk '{ exit !($1 / $2 < 1.05 && $2 / $1 < 1.05) }'
	grep -q ' edge2$' tmp.*/asked
	grep -q 'ace-edge1/log' tmp.*/asked
	grep -q '/edge1.aceg: ok, 1 shards' tmp.*/asked
}
