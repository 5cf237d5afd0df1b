# The filter that is the example of ace-stream(5), and the field `dropped' of a shard.

load helper
load values

@test "the count of values that were set to zero stays with the shard" {
	mkshards -H dropped=7 >in
	exits 0 ace-expand in
	[ "$(field dropped out)" -eq 7 ]
	exits 0 ace-expand -S state in
	[ "$(field dropped out)" -eq 7 ]
	exits 0 ace-compress -c q8 in
	[ "$(field dropped out)" -eq 7 ]
	ace-select -b 900 in >planned
	exits 0 ace-compress -S state planned
	[ "$(field dropped out)" -eq 7 ]
	exits 0 ace-step -S other --bits 32 in
	[ "$(field dropped out)" -eq 7 ]
}

# built SCALE [SCRIPT]: build the page's filter, changed by a script for sed, with nothing
# but the installed header and library
built() {
	local san=
	mkdir -p include lib
	cp "$ROOT/lib/aceg.h" include/
	cp "$BUILD/libaceg.a" lib/
	sanitized && san=-fsanitize=address,undefined
	sed "${2:-}" "$ROOT/examples/scale.c" >scale.c
	# shellcheck disable=SC2046,SC2086 # word splitting is intended
	${CC:-cc} $san -Wall -Wextra -Iinclude -o "$1" scale.c lib/libaceg.a \
	    $(pkg-config --libs liblz4 libxxhash) -lm
}

@test "scale.c compiles against aceg.h and libaceg alone, and scales" {
	built scale
	mkshards -A -N 2 >in
	exits 0 ./scale 2 <in
	[ "$(frames out | awk '$2 != "pROv" { printf("%s ", $2) }')" = \
	    "HEAD SCHM SHRD DATA SEND SHRD DATA SEND TAIL " ]
	mkshards -a -p -N 3 -c f16 -w 3 >in
	makes twice ./scale 2 <in
	makes back ./scale 0.5 <twice
	exits 0 ace-expand <in
	ace-inspect diff back out
	ace-export -f raw --step 2 twice >a
	ace-export -f raw --step 2 in >b
	perl -e 'local $/; for (@ARGV) { open F, $_; binmode F;
	    push @v, [unpack "f<*", <F>] } for (0 .. 335) {
	    $v[0][$_] == 2 * $v[1][$_] or die "$_" } @{$v[0]} == 336 or die' a b
	# unknown annotations and keys are kept, and provenance is in order
	grep -aq hello twice
	[ "$(frames twice | grep -c xyZz)" -eq 3 ]
	[ "$(ace-inspect -v twice | sed -n 's/^provenance *//p' | paste -sd,)" = 'mkshards 1,scale 1 2' ]
	ace-inspect verify twice
}

@test "segments leave room in the budget for integers that come after them" {
	# each group is a segment; integers that rise by 1 take fewer bytes than others
	built segments 's/ace_write_values.* < 0/& || ace_write_flush(out, e) < 0/'
	for k in 0:ramp 1:gauss; do
		mkshards -g 2000 -t a:20000 -D 4 -t n:500 -s "${k%:*}" -k "${k#*:}"
	done | ./segments 1 >in
	exits 0 ace-step -S st -b 6k in
}

@test "scale.c refuses damaged input" {
	built scale
	mkshards -N 2 >in
	for at in 0 63 64 700 1500 2000 $(($(wc -c <in) - 1)); do
		head -c "$at" in >part
		refuses 3 '^scale: truncated: ' ./scale 2 <part
		mv out part
		exits 3 ace-expand part
	done
	flip in 800
	refuses 3 '^scale: corrupt: ' ./scale 2 <in
	exits 2 ./scale x </dev/null
}

@test "scale.c reports a full disk" {
	needs_full
	built scale
	mkshards >in
	got=0
	./scale 2 <in >/dev/full 2>err || got=$?
	[ "$got" -eq 4 ]
	says 'No space left'
}
