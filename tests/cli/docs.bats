# The commands in the documentation are run.

load helper

# setup: make temporary files of the examples in the test's directory, which is removed
setup() {
	cd "$BATS_TEST_TMPDIR" || return
	export TMPDIR=$BATS_TEST_TMPDIR
}

# other tests run the EXAMPLES that need several hosts (ace-transports(7), ace-quickstart(7)),
# two terminals (ace-trainers(7)) or torch (ace-pytorch(7))
@test "the EXAMPLES of every page run as printed" {
	failed=0
	for page in "$ROOT"/man/*.[17]; do
		dir=${page##*/}
		case $dir in ace-transports.7 | ace-pytorch.7 | ace-quickstart.7 | ace-trainers.7) continue ;; esac
		# the policy's budget must exceed the size of the shard's frames, so its model is larger
		[ "$dir" = ace-policy.1 ] && model=(-t 'w:2400,64') || model=()
		mkdir "$dir"
		examples "$page" >"$dir.sh"
		! grep -q openssl "$dir.sh" || command -v openssl >/dev/null || continue
		[ -s "$dir.sh" ] || { echo "$dir: no EXAMPLES"; failed=1; }
		if ! (cd "$dir" && standard_inputs "${model[@]}" &&
		    bash -euo pipefail "../$dir.sh" >out 2>err </dev/null); then
			echo "$dir:"
			cat "$dir.sh" "$dir/err"
			failed=1
		fi
	done
	[ "$failed" -eq 0 ]
}

@test "the example of ace(7) needs only the programs and files that it names" {
	safetensors >grad.safetensors
	examples "$ROOT/man/ace.7" >run.sh
	bash -eu run.sh >out 2>err </dev/null || { cat run.sh err; false; }
}

@test "ace(7) lists the files of a state" {
	mkshards -s 0 >in
	ace-meter -S state <in | ace-score -S state | ace-policy -S state --ratio 1,9,1Mbit |
	    ace-select -b 1k | ace-compress -S state |
	    ace-recv --spool spool | ace-ack -S state >/dev/null
	ls state >files
	grep -q '^residual$' files
	while read -r f; do
		case $f in lock | *-lock) continue ;; esac
		grep -Eq "^\.It Pa ([a-z]+ , )*$f( ,|$)" "$ROOT/man/ace.7" || { echo "$f"; false; }
	done <files
}

# listings PAGE: write the commands of its EXAMPLES, which are -literal blocks, to shown.sh,
# with "== N" before block N, and the output shown after it, an -unfilled block, to
# shown.N.
listings() {
	perl -ne 'BEGIN { open(SH, ">", "shown.sh") or die }
	    sub shown { open(L, ">>", "shown.$n") or die; print L "$_[0]\n"; close(L) }
	    $on = /EXAMPLES/ if /^\.Sh /;
	    next if !$on;
	    s/^\\&//; s/\\-/-/g; s/\\\(aq/\x27/g; s/\\\(ga/`/g; s/\\\(ha/^/g;
	    s/\\\(ti/~/g; s/\\&//g; s/\\e/\\/g;
	    if (/^\.Bd -(literal|unfilled)/) {
		$in = $1;
		if ($in eq "literal") { $n++; print SH "echo == $n\n" } }
	    elsif (/^\.Ed/) { $in = "" }
	    elsif ($in eq "literal") { print SH }
	    elsif ($in eq "unfilled") { chomp; shown($_) }' "$1"
}

# compared FILE: check that the commands print the output that FILE shows
compared() {
	local failed=0 compared=0 f
	listings "$1"
	bash -euo pipefail shown.sh >all 2>&1 </dev/null || { cat all; return 1; }
	for f in shown.[0-9]*; do
		sed -n "/^== ${f#*.}$/,/^== /p" all >printed
		# not for ace-select, whose plans change with the planner, and ace-meter, which may not
		# be able to measure the link on a busy machine
		! grep -qE '^ace-(select|meter): ' "$f" || continue
		compared=$((compared + 1))
		prints "$f" printed || { echo "$f:"; cat printed; failed=1; }
	done
	[ $failed -eq 0 ] && [ $compared -gt 0 ]
}

# bats test_tags=long
@test "mandoc prints the commands of a page as they have to be typed" {
	needs mandoc
	local p
	for p in "$ROOT"/man/*.[157]; do
		sed -nE '/^\.Dl /{s///;p}; /^\.Bd -(literal|unfilled)/,/^\.Ed/{/^\./d;p}' "$p" |
		    sed 's/\\-/-/g; s/\\(aq/'\''/g; s/\\(ga/`/g; s/\\(ha/^/g; s/\\(ti/~/g
			s/\\(dq/"/g; s/\\&//g; s/\\e/\\/g' >typed
		mandoc -T utf8 -O width=400 "$p" | sed 's/.\x08//g' | tr -s ' \t\n' ' ' >shown
		perl -e 'local $/; open(F, "<", "shown"); $s = <F>; open(F, "<", "typed");
		    $/ = "\n"; while (<F>) { s/\s+/ /g; s/^ | $//g;
			index($s, $_) >= 0 or print("$_\n"), $bad = 1 } exit $bad' ||
		    { echo "is not in ${p##*/}"; return 1; }
	done
}

@test "the output on a page is that of its commands, except for digits" {
	failed=0
	for page in "$ROOT"/man/*.[17]; do
		grep -q '^\.Bd -unfilled' "$page" || continue
		case ${page##*/} in ace-pytorch.7) continue ;; esac
		mkdir "${page##*/}"
		cd "${page##*/}"
		# the tutorial's examples begin in an empty directory
		case $page in *tutorial.7) ;; *) standard_inputs ;; esac
		compared "$page" || { echo "$page"; failed=1; }
		cd ..
	done
	[ "$failed" -eq 0 ]
}

# bats test_tags=long
@test "ace-tutorial(7) works twice, and leaves nothing in the current directory" {
	examples "$ROOT/man/ace-tutorial.7" >page.sh
	mkdir here temporary
	for n in 1 2; do
		(cd here && TMPDIR=$PWD/../temporary bash -euxo pipefail ../page.sh \
		    >../out 2>../err </dev/null) || { tail -n 9 err out; false; }
		[ -z "$(ls -A here)" ]
		[ "$(find temporary -name gradient.py | wc -l)" -eq $n ]
	done
}

@test "the pages have the measured figures of digits.py" {
	r=$ROOT/examples/results
	awk -f "$ROOT/examples/student.awk" -f "$ROOT/examples/pytorch.awk" \
	    "$r/pytorch-runs.tsv" | cmp - "$r/pytorch.tsv"
	tail -n +2 "$r/pytorch.tsv" | cut -f 1,5- >short
	sed 's/\t/ | /g; s/^/| /; s/$/ |/' short |
	    has_lines examples/results/README.md
	awk -F '\t' '$1 == "digits" { printf("| 4 | 33,738 | `ace.join`, digits | " \
	    "%s (%s to %s) | 1/%s | %s |\n", $5, $6, $7, $8, $2) }' short |
	    has_lines README.md
}

# before PROGRAM: make the files that its --help examples use
before() {
	ace-compress -c q8 edge1.aceg >coded.aceg
	case $1 in
	ace-diff | ace-patch)
		mkdir old new model
		ace-export -o old.safetensors edge1.aceg
		ace-export -o new.safetensors edge2.aceg
		cp old.safetensors old/model.safetensors
		cp new.safetensors new/model.safetensors
		cp old.safetensors model/model.safetensors
		cp old.safetensors model.safetensors
		ace-diff old.safetensors new.safetensors >step7.aceg
		;;
	ace-aggregate | ace-archive | ace-cut | ace-status) cat edge[12].aceg | ace-recv --spool spool >receipts ;;
	ace-sign)
		openssl genpkey -algorithm ed25519 -out edge1.pem
		chmod 600 edge1.pem
		echo "edge1 $(openssl pkey -in edge1.pem -pubout -outform DER |
		    base64)" >ring
		;;
	esac
}

@test "--help of each program and command fits 80 columns" {
	local p c
	for p in "$ROOT"/cmd/ace-*.c; do
		p=${p##*/} p=${p%.c}
		for c in '' $("$p" --help-rows | sed -n 's/^command\t\([a-z]*\)\t.*/\1/p'); do
			shows "^usage: $p" "$p" $c --help
			! grep -nE '^.{81}| $' out || { echo "$p $c"; false; }
		done
	done
}

@test "--help ends with two examples, which run as printed" {
	failed=0
	for c in "$ROOT"/cmd/*.c; do
		p=${c##*/} p=${p%.c}
		mkdir "$p"
		exits 0 "$p" --help
		sed '1,/^Examples:$/d; s/^    //' out >"$p.sh"
		# continuation lines are indented
		if [ "$(grep -c '^[a-z]' "$p.sh")" -ne 2 ] || ! grep -q "\<$p " "$p.sh"; then
			echo "$p: not two examples of it"
			failed=1
		fi
		if ! (cd "$p" && standard_inputs && before "$p" &&
		    bash -euo pipefail "../$p.sh" >out 2>err </dev/null); then
			echo "$p:"
			cat "$p.sh" "$p/err"
			failed=1
		fi
	done
	[ "$failed" -eq 0 ]
}

@test "completions of bash give options and files" {
	run bash -c '. "$ROOT/completions/ace.bash"
	    COMP_WORDS=(ace-compress --sy) COMP_CWORD=1
	    _ace ace-compress && echo "${COMPREPLY[*]}"
	    COMP_WORDS=(ace-compress -c q) COMP_CWORD=2
	    _ace ace-compress && echo "${COMPREPLY[*]}"
	    COMP_WORDS=(ace-advise d) COMP_CWORD=1
	    _ace ace-advise && echo "${COMPREPLY[*]}"
	    COMP_WORDS=(ace-advise dynacomm --cu) COMP_CWORD=2
	    _ace ace-advise && echo "${COMPREPLY[*]}"'
	[ "${lines[0]}" = "--sync" ]
	[ "${lines[1]}" = "q8 qsgd" ]
	[ "${lines[2]}" = "dynacomm deco" ]
	[ "${lines[3]}" = "--cuts" ]
}
