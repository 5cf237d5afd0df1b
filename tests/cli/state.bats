# State directories when a program, a file or the disk fails.

load helper

step() {
	mkshards -n 64k -s "$1" >in
}

# files DIR: print names and checksums
files() {
	(cd "$1" && find . -type f -size +0 -exec cksum {} + | sort -k 3)
}

# with_state TEST: call TEST for each program that has a state.  Do not call it before ||,
# where the shell would ignore failures inside TEST.
with_state() {
	local c
	for c in "ace-compress -c q8" "ace-score --form paper"; do
		echo "with $c:"
		"$1" "$c"
	done
}

no_space() {
	local got=0 dir="${1%% *}"
	step 0
	# shellcheck disable=SC2086 # words
	exits 0 $1 -S "$dir" <in
	files "$dir" >before
	step 1
	# a limit on file sizes acts as a full disk
	# shellcheck disable=SC2086 # words
	(trap '' XFSZ; ulimit -f 0; $1 -S "$dir" <in 2>err | cat >/dev/null
	    exit "${PIPESTATUS[0]}") || got=$?
	[ "$got" -eq 4 ] || { echo "status $got"; cat err; return 1; }
	files "$dir" >after
	same before after
	[ "$(find "$dir" -type f ! -name '*lock' | wc -l)" -le 2 ] || { ls -la "$dir"; return 1; }
	# shellcheck disable=SC2086 # words
	exits 0 $1 -S "$dir" <in
	files "$dir" >after
	! cmp -s before after
}

@test "no space for the state: status 4, the old one stays, then all is well" {
	with_state no_space
}

private() {
	step 0
	# shellcheck disable=SC2086 # words
	exits 0 $1 -S "p-${1%% *}" <in
	[ "$(stat -c %a "p-${1%% *}")" = 700 ]
}

@test "the directory is made, mode 0700" {
	with_state private
}

garbage() {
	local dir="g-${1%% *}" f
	step 0
	# shellcheck disable=SC2086 # words
	exits 0 $1 -S "$dir" <in
	for f in "$dir"/*; do
		[ -s "$f" ] || continue
		flip "$f" 200
	done
	files "$dir" >before
	step 1
	# shellcheck disable=SC2086 # words
	exits 3 $1 -S "$dir" <in
	says "'$dir/[a-z]+'"
	files "$dir" >after
	same before after
}

@test "a damaged state is refused by name and left alone" {
	with_state garbage
}

unreachable() {
	# shellcheck disable=SC2086 # words
	exits 4 $1 -S nowhere/state <in
	touch plain
	# shellcheck disable=SC2086 # words
	exits 4 $1 -S plain <in
}

@test "a state that cannot be made: status 4" {
	step 0
	with_state unreachable
}

@test "a step reads the residual once, writes it once, and syncs it once" {
	[ -z "$ACE_SANITIZED" ] || skip "the sanitizer must be first"
	mkshards -n 1M -g 65536 -N 2 >two
	mkshards -n 1M -g 65536 -s 2 >in
	for p in "ace-step --bits 0.3" "ace-compress -c q4"; do
		dir=once-${p%% *}
		# shellcheck disable=SC2086 # words
		exits 0 $p -S "$dir" two
		: >calls
		# shellcheck disable=SC2086 # words
		LD_PRELOAD=$(preload) ACE_READS=$PWD/calls \
		    CLIP_LOG=/dev/null exits 0 $p -S "$dir" in
		size=$(wc -c <"$dir/residual")
		awk -v size="$size" '
		$1 == "read" && $3 ~ /residual$/ { read += $2 }
		$1 == "fsync" && $3 ~ /residual/ { synced++ }
		$1 == "fsync" && $3 !~ /residual/ && system("test -d " $3) {
			other++
		}
		END {
			print read, "read of", size, synced, other + 0
			exit !(read >= 0.9 * size && read <= 1.1 * size &&
			    synced == 1 && other + 0 == 0)
		}' calls || { cat calls; return 1; }
	done
}
