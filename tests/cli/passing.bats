load helper

# Between two pipes, a filter does not copy bytes that it passes unchanged.  The output must
# be the same as between files, whatever the pipes do.

FILTERS=("ace-score" "ace-policy --bandwidth 10Mbit" "ace-select --bits 0.4"
	"ace-meter")

# piped CMD...: run CMD between two pipes, from the file `in' to the file `got'
piped() {
	cat in | "$@" | cat >got
	[ "${PIPESTATUS[*]}" = "0 0 0" ]
}

# all CMD...: check that `piped CMD FILTER' gives the same as FILTER between files
all() {
	local f
	for f in "${FILTERS[@]}"; do
		$f <in >want || return
		"$@" $f && same got want || {
			echo "in: $* $f"
			return 1
		}
	done
}

streams() {
	mkshards -n 900k -k layered -a -p -N 2 >"$1.large"
	mkshards -n 700k -g 600000 -k layered >"$1.larger"
	mkshards -n 300k -g 500 -k layered >"$1.small"
	mkshards -n 1500k -k layered -c q8 >"$1.coded"
}

@test "pipes and files give the same bytes" {
	streams a
	for s in a.*; do
		cp "$s" in
		all piped
	done
}

@test "small, changing and non-blocking pipes give the same bytes" {
	mkshards -n 900k -k layered -a -p -N 2 >in
	changing() {
		cat in | "$@" | perl -e '
			# F_SETPIPE_SZ is refused if the pipe holds more
			for ($i = 0; ($n = sysread(STDIN, $b, 70000)); $i++) {
				fcntl(STDIN, 1031, 4096 << $i * 5 % 9);
				print $b;
			}' >got
		[ "${PIPESTATUS[*]}" = "0 0 0" ]
	}
	all changing
	shrunk() {
		perl -e 'fcntl(STDOUT, 1031, 4096); exec "cat", "in"' |
		    "$@" | cat >got
		[ "${PIPESTATUS[*]}" = "0 0 0" ]
	}
	all shrunk
	unblocked() {
		nonblock "$@" <in >got
	}
	all unblocked
}

refused() {
	[ -z "$ACE_SANITIZED" ] || skip "the sanitizer must be first"
	mkshards -n 900k -k layered -a -p -N 2 >in
	clipped() {
		piped env LD_PRELOAD="$(preload)" "$@"
	}
	for w in 1 2 3 7 8 9 20 eintr eagain; do
		each_of 3 || continue
		export ACE_SPLICE=$w
		all clipped
	done
	unset ACE_SPLICE
	mkshards -n 100k -k layered -a -p -N 2 >in
	for n in 0 1000 40000; do
		export ACE_CLIP=$n
		all clipped
	done
}

@test "calls that are refused, interrupted or incomplete give the same bytes" {
	refused
}

# bats test_tags=long
@test "the same with each of these faults" {
	refused
}

@test "values are spliced only if input and output are pipes" {
	[ -z "$ACE_SANITIZED" ] || skip "the sanitizer must be first"
	mkshards -n 300k -k layered >in
	export ACE_SPLICE=kill
	for f in "${FILTERS[@]}"; do
		cat in | LD_PRELOAD=$(preload) $f | cat >got || :
		# the first frame may be among the bytes that were read to detect the format
		[ "$(wc -c <got)" -lt 600000 ]
		LD_PRELOAD=$(preload) $f <in >want
		LD_PRELOAD=$(preload) $f <in | cat >got
		same got want
		cat in | LD_PRELOAD=$(preload) $f >got
		same got want
	done
}

@test "filters end with their reader, without a message" {
	mkshards -n 3M -k fast >in
	for f in "${FILTERS[@]}"; do
		set +e
		cat in | $f 2>err | head -c 300000 >got
		status=("${PIPESTATUS[@]}")
		(trap '' PIPE; cat in 2>/dev/null | $f 2>err2 | head -c 300000 >got)
		set -e
		[ "${status[1]}" -eq 141 ]
		[ ! -s err ]
		[ ! -s err2 ]
		[ "$(wc -c <got)" -eq 300000 ]
	done
}

@test "damage is found by programs that read the values, and by later ones" {
	mkshards -n 300k -k layered >in
	# change a value, far from any header
	perl -e 'local $/; binmode STDIN; $_ = <STDIN>;
	    substr($_, 500000, 1) ^= "\x01"; print' <in >bad
	for f in "ace-score" "ace-select --bits 1"; do
		cat bad | exits 3 $f
		set +e
		cat bad | $f 2>err | cat >got
		[ "${PIPESTATUS[1]}" -eq 3 ] || false
		set -e
		says "the payload's checksum does not match"
		exits 3 ace-inspect verify got
	done
	# ace-policy passes values between pipes unread
	cat bad | ace-policy --bandwidth 10Mbit | cat >got
	refuses 3 "the payload's checksum does not match" ace-inspect verify got
	exits 3 ace-policy --bandwidth 10Mbit bad
	# a truncation among the values, then a damaged header
	set +e
	head -c 500000 in | ace-policy --bandwidth 10Mbit 2>err | cat >got
	[ "${PIPESTATUS[1]}" -eq 3 ] || false
	says 'truncated'
	perl -e 'local $/; binmode STDIN; $_ = <STDIN>; $n = 0;
	    while (/\xacACEDATA/g) { $at = $-[0] if $n++ == 2 }
	    substr($_, $at + 9, 1) ^= "\x01"; print' <in |
	    ace-policy --bandwidth 10Mbit 2>err | cat >got
	[ "${PIPESTATUS[1]}" -eq 3 ] || false
	set -e
	says 'corrupt'
	exits 3 ace-inspect verify got
}
