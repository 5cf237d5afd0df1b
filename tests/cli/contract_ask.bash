# The table of all programs, and the functions by which contract*.bats test them.

# Kind, program and arguments; contract.bash lists the kinds.
table() {
	cat <<-'EOT'
	filter ace-expand
	filter ace-score
	filter ace-select -p 0.5
	filter ace-compress -c q8
	filter ace-sign -k key.pem
	filter ace-step -c q8
	filter ace-aggregate
	filter ace-policy
	sink   ace-export -f raw
	source ace-import -f safetensors
	report ace-inspect
	table  ace-advise cluster
	filter ace-cut
	pipe   ace-meter
	answer ace-recv --spool spool
	filter ace-ack -S state
	look   ace-status
	look   ace-archive extract -o dir
	look   ace-diff
	look   ace-patch
	look   ace-cloud
	look   ace-edge
	EOT
}

# ask CHECK [KINDS]: run the check for every program of these kinds
ask() {
	local failed=0 asked=0 kind call dir
	while read -r kind call; do
		[[ " ${2:-filter sink source report answer table} " = *" $kind "* ]] || continue
		[ -x "$BUILD/${call%% *}" ] || continue
		dir=${call%% *}
		asked=1
		mkdir "$dir"
		inputs "$kind" "$dir" "$1"
		if ! (cd "$dir" && bash -eux -c '. "$ROOT/tests/cli/helper.bash"
		    . "$ROOT/tests/cli/contract.bash"; "$@"' contract "contract_$1" \
		    "$kind" $call >answer 2>trace); then
			echo "$call: contract_$1"
			cat "$dir/answer"
			tail -n 4 "$dir/trace"
			failed=1
		fi
	done < <(table)
	[ "$asked" -eq 1 ] && return "$failed"
}

# inputs KIND DIR CHECK: make each input in DIR once; `big' only if CHECK reads it
inputs() {
	local of=shards big=
	case $1 in
	source | table) of=$1 ;;
	esac
	if [ ! -d "inputs.$of" ]; then
		mkdir "inputs.$of"
		if sed -n "/^contract_$3()/,/^}/p" "$ROOT/tests/cli/contract.bash" |
		    grep '\<big\>' >/dev/null; then
			big=inputs.$of/big
		fi
		"inputs_$of" "inputs.$of" "$big"
	fi
	cp "inputs.$of"/* "$2"
	if [ "$2" = ace-sign ]; then
		openssl genpkey -algorithm ed25519 -out "$2/key.pem"
		chmod 600 "$2/key.pem"
	fi
}

inputs_source() {
	safetensors >"$1/in"
	[ -z "$2" ] || safetensors 1000000 >"$2"
}

inputs_table() {
	printf 'device time\na 1\nb 3\n' >"$1/in"
	[ -z "$2" ] || (echo device time && seq 20000 | sed 's/.*/& 1s/') >"$2"
}

inputs_shards() {
	mkshards -a -p >"$1/in"
	mkshards -s 1 >"$1/next"
	[ -z "$2" ] || mkshards -n 1M -k layered >"$2"
}
