# What is written down is run.

load helper

# those of ace-deploy(7) need hosts, and are in recipes.bats; those of
# ace-pytorch(7) need torch, and are in pytorch.bats
@test "the EXAMPLES of every page run as they stand" {
	failed=0
	for page in "$ROOT"/man/*.[17]; do
		dir=${page##*/}
		case $dir in ace-deploy.7 | ace-pytorch.7) continue ;; esac
		# what a policy leaves of a model is to be more than its frames
		[ "$dir" = ace-policy.1 ] && model=(-t 'w:2400,64') || model=()
		mkdir "$dir"
		examples "$page" >"$dir.sh"
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

@test "README's commands run as they stand" {
	ln -s "$ROOT/lib" "$ROOT/man" .
	PATH=$BUILD/examples:$PATH
	sed -n '/^```sh/,/^```/{/^```/d;p}' "$ROOT/README.md" |
	    grep -vE '^(make|git|cd|sudo) ' >readme.sh
	[ -s readme.sh ]
	bash -euo pipefail readme.sh >out 2>err || { cat readme.sh err; false; }
}

@test "ace(7)'s example needs nothing but what it names" {
	safetensors >grad.safetensors
	examples "$ROOT/man/ace.7" >run.sh
	bash -eu run.sh >out 2>err </dev/null || { cat run.sh err; false; }
}

@test "ace(7) lists what is in a state" {
	mkshards -s 0 >in
	ace-meter -S state <in | ace-score -S state | ace-policy -S state --cmin 1 --cmax 9 --half 1Mbit |
	    ace-select -b 1k | ace-compress -S state |
	    ace-recv --spool spool | ace-ack -S state >/dev/null
	ls state >files
	grep -q '^residual$' files
	while read -r f; do
		case $f in lock | *-lock) continue ;; esac
		grep -q "^\.It Pa $f$" "$ROOT/man/ace.7" || { echo "$f"; false; }
	done <files
}

# listings FILE: each block of commands, with lines "== N" that say which, into
# the file shown.sh, and what is shown behind it into the file shown.N.  A page
# shows nothing but commands.
listings() {
	perl -ne 'if (/^```sh/) { $in = 1; $n++; print SH "echo == $n\n" }
	    elsif (/^```/) { $in = 0; $after = 1 }
	    elsif ($in) { print SH unless /^(make|git|cd|sudo) / }
	    elsif ($after && /^    (.*)/) {
		open(L, ">>", "shown.$n") or die; print L "$1\n"; close(L) }
	    elsif (/\S/) { $after = 0 }
	    BEGIN { open(SH, ">", "shown.sh") or die }' "$1"
}

# prints SHOWN PRINTED: its lines are there, in their order, maybe broken
# elsewhere and with others between; a number is a number
prints() {
	perl -e 'sub text { open(my $f, "<", $_[0]) or die; local $/; $_ = <$f>;
		s/[0-9]+(\.[0-9]+)?(e[-+]?[0-9]+)?/0/g; $_ }
	    ($shown, $printed) = map { text($_) } @ARGV;
	    $printed =~ s/\s+/ /g; $bad = $at = 0;
	    for (split /\n/, $shown) {
		s/\s+/ /g; s/ $//;
		$k = index($printed, $_, $at);
		if ($k < 0) { print "not printed: $_\n"; $bad = 1 }
		else { $at = $k + length } }
	    exit $bad' "$1" "$2"
}

@test "what README shows is what its commands print, digits aside" {
	ln -s "$ROOT/lib" "$ROOT/man" .
	PATH=$BUILD/examples:$PATH
	listings "$ROOT/README.md"
	bash -euo pipefail shown.sh >all 2>&1 || { cat all; false; }
	failed=0 compared=0
	for f in shown.[0-9]*; do
		sed -n "/^== ${f#*.}$/,/^== /p" all >printed
		# a plan changes whenever the planner does
		! grep -q '^ace-select: ' "$f" || continue
		compared=$((compared + 1))
		prints "$f" printed || { echo "$f:"; cat printed; failed=1; }
	done
	[ $failed -eq 0 ] && [ $compared -gt 0 ]
}

@test "completions complete" {
	run bash -c '. "$ROOT/completions/ace.bash"
	    COMP_WORDS=(ace-compress --sy) COMP_CWORD=1
	    _ace ace-compress && echo "${COMPREPLY[*]}"
	    COMP_WORDS=(ace-compress -c q) COMP_CWORD=2
	    _ace ace-compress && echo "${COMPREPLY[*]}"
	    COMP_WORDS=(ace-advise d) COMP_CWORD=1
	    _ace ace-advise && echo "${COMPREPLY[*]}"
	    COMP_WORDS=(ace-advise cluster --t) COMP_CWORD=2
	    _ace ace-advise && echo "${COMPREPLY[*]}"'
	[ "${lines[0]}" = "--sync" ]
	[ "${lines[1]}" = "q8 q4 qsgd" ]
	[ "${lines[2]}" = "dynacomm deco" ]
	[ "${lines[3]}" = "--tiers --theta" ]
}
