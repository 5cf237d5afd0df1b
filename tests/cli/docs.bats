# What is written down is run.

load helper

# those of ace-deploy(7) need hosts, and are in recipes.bats
@test "the EXAMPLES of every page run as they stand" {
	failed=0
	for page in "$ROOT"/man/*.[17]; do
		dir=${page##*/}
		[ "$dir" != ace-deploy.7 ] || continue
		mkdir "$dir"
		examples "$page" >"$dir.sh"
		[ -s "$dir.sh" ] || { echo "$dir: no EXAMPLES"; failed=1; }
		if ! (cd "$dir" && standard_inputs &&
		    bash -eu "../$dir.sh" >out 2>err </dev/null); then
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

@test "completions complete" {
	run bash -c '. "$ROOT/completions/ace.bash"
	    COMP_WORDS=(ace-compress --sy) COMP_CWORD=1
	    _ace ace-compress && echo "${COMPREPLY[*]}"
	    COMP_WORDS=(ace-compress -c q) COMP_CWORD=2
	    _ace ace-compress && echo "${COMPREPLY[*]}"'
	[ "${lines[0]}" = "--sync" ]
	[ "${lines[1]}" = "q8 q4 qsgd" ]
}
