# Golden files (tests/golden/README.md): every version must read the good ones, and refuse
# each bad one for the reason in its name.

load helper

GOLDEN=$ROOT/tests/golden

@test "good files are valid and give the stored values" {
	n=0
	for f in "$GOLDEN"/good-*.aceg; do
		exits 0 ace-inspect verify "$f"
		exits 0 ace-expand "$f"
		if [ -f "${f%.aceg}.f32" ]; then
			mv out dense
			exits 0 ace-export -f raw dense
			same out "${f%.aceg}.f32"
		fi
		n=$((n + 1))
	done
	[ "$n" -ge 12 ]
}

@test "stored patches still make the stored models, also in the independent decoder" {
	local h='{"w":{"dtype":"BF16","shape":[8,1024],"data_offsets":[0,16384]}}'
	{ printf '@\0\0\0\0\0\0\0%s' "$h"; head -c 16384 /dev/zero; } >old
	exits 0 ace-patch old <"$GOLDEN/patch-.aceg"
	for f in "$GOLDEN"/patch-?*.aceg; do
		cp old m
		exits 0 ace-patch m <"$f"
		exits 0 python3 "$ROOT/tests/decoder/patch" old "$f" c
		same c m
	done
}

# refused PROGRAM...: check that `${under[@]} PROGRAM' refuses each bad file with status 3 and
# the reason in its name
under=()
refused() {
	n=0
	for f in "$GOLDEN"/bad-*.aceg; do
		w=${f##*/bad-}
		exits 3 "${under[@]}" "$@" <"$f" || { echo "$f"; return 1; }
		[ ! -e kib ] || [ "$(cat kib)" -le 65536 ] || { echo "$f: $(cat kib) KiB"; return 1; }
		says "^$1: ${w%%-*}: .*at byte [0-9]+" || { echo "$f"; return 1; }
		tr -c '\n -~' '?' <err | sed "s/^[^:]*/${f##*/}/" >>reasons
		n=$((n + 1))
	done
	[ "$n" -ge 120 ]
}

# bats test_tags=long,asan
@test "ace-expand refuses bad files for the right reason, with little time and memory" {
	# a sanitizer uses memory of its own
	sanitized || under=(cpu 5 peak kib)
	refused ace-expand
}

@test "ace-inspect refuses bad files, each for the rule that it breaks" {
	refused ace-inspect verify
	diff reasons "$GOLDEN/reasons"
}

@test "invalid annotations and keys: ace-inspect and ace-recv refuse them, ace-expand passes them" {
	local f w n=0
	for f in "$GOLDEN"/note-*.aceg; do
		w=${f##*/note-}
		exits 3 ace-inspect verify "$f"
		says "^ace-inspect: ${w%%-*}: .*at byte [0-9]+" || { echo "$f"; return 1; }
		ace-inspect "$f" >list || [ $? -eq 3 ]
		n=$((n + 1))
		exits 0 ace-recv -v --spool "spool$n" --sync none "$f"
		case $w in
		*-nobody*) says 'invalid: limit: the shard has 0 contributors' ;;
		*) says "invalid: ${w%%-*}: " ;;
		esac || { echo "$f"; return 1; }
		[ -z "$(find "spool$n" -name '*.aceg')" ]
		[[ "$w" = *-policy-* || "$w" = *-difference-* ]] || exits 0 ace-expand "$f"
	done
	[ "$n" -ge 32 ]
}

@test "mkgolden makes the same bad files" {
	mkdir again
	mkgolden again <"$GOLDEN/good-notes.aceg"
	diff -rq again "$GOLDEN" | grep -v 'Only in .*golden' >differ || :
	cat differ
	[ ! -s differ ]
}

@test "file(1) recognises a stream with ace.magic" {
	mkshards >x.aceg
	run file -b -m "$ROOT/man/ace.magic" x.aceg
	[ "$output" = "ACE gradient-shard stream, format v1" ]
	run file -b --mime-type -m "$ROOT/man/ace.magic" x.aceg
	[ "$output" = "application/vnd.ace.gradient-shard" ]
}
