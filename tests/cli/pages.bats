# What the pages say in numbers and words that can be tried: taken from the page,
# and tried.
load helper

# said PAGE REGEX: the number that stands at (...) in that sentence, which may go
# over lines
said() {
	perl -0777 -ne 's/\n\.(?:Xr|Cm|Ar|Fl|Pa|Nm)? ?/ /g; s/\s+/ /g;
	    exit 1 if !/$ENV{WANT}/; print $1' "$ROOT/man/$1" ||
	    { echo "no '$WANT' in $1"; return 1; }
}
page() { WANT=$2 said "$1"; }

@test "ace-sign: what a signature takes" {
	openssl genpkey -algorithm ed25519 -out key.pem
	mkshards >in
	ace-sign -k key.pem --no-provenance in >signed
	ace-sign -k key.pem --no-provenance --omit-schema in >without
	[ $(($(wc -c <signed) - $(wc -c <in))) -eq "$(page ace-sign.1 'A signature takes (\d+) bytes')" ]
}

@test "ace-select: what an empty shard takes" {
	local n
	n=$(page ace-select.1 'An empty shard takes about (\d+) bytes')
	mkshards -c none >one
	mkshards -c none -N 2 >two
	got=$(($(wc -c <two) - $(wc -c <one)))
	[ "$got" -gt $((n * 9 / 10)) ] && [ "$got" -lt $((n * 11 / 10)) ]
}

@test "ace: how long the whole filter on the page is" {
	n=$(wc -l <"$ROOT/examples/scale.c")
	[ "$n" -eq "$(page ace.7 'complete one of (\d+) lines')" ]
	grep -q "^whole filter in $n lines" "$ROOT/README.md"
}

@test "ace-compress: a state refuses another kind of error feedback, and takes another number of it" {
	page ace-compress.1 '(A state knows its kind and refuses another)' >/dev/null
	mkshards >in
	mkshards -s 1 >next
	exits 0 ace-compress -S state -c q8 --error-feedback ef:0.9 in
	exits 0 ace-compress -S state -c q8 --error-feedback ef next
	mkshards -s 2 >next
	exits 5 ace-compress -S state -c q8 --error-feedback ef21 next
}

@test "ace-ack: nothing came back" {
	page ace-ack.1 '(nothing came back at all)' >/dev/null
	exits 4 ace-ack -S state < <(:)
	says 'no answer'
}

@test "ace-stream: the bytes of its example of ecq, and what they are" {
	WANT='The 16 values ([-.0-9 ]+) are, by ecq:0.3' said ace-stream.5 >values
	tr ' ' '\n' <values | perl -lne 'print pack "f<", $_ if length' | tr -d '\n' >raw
	[ "$(wc -c <raw)" -eq 64 ]
	ace-import -f raw raw | ace-compress -c ecq:0.3 >coded
	body=$(sed -n 's/^\(9a 99 3e.*\)$/\1/p' "$ROOT/man/ace-stream.5" | tr -d ' ')
	[ "${#body}" -eq 24 ]
	[[ $(od -An -v -tx1 coded | tr -d ' \n') == *"$body"* ]]
	ace-expand coded | ace-export -f raw | od -An -v -w4 -tf4 | tr -d ' ' |
	    awk '$1 != 0 { printf("%.6f ", $1) }' >got
	[ "$(cat got)" = '0.249612 -0.249612 0.628131 -0.628131 0.249612 ' ]
	grep -qE 'times the step, 0\.249612, then$' "$ROOT/man/ace-stream.5"
	grep -qE '^-0\.249612, 0\.628131, -0\.628131 and 0\.249612\.$' "$ROOT/man/ace-stream.5"
}

@test "ace-stream: what is behind a stream is looked at in that order" {
	grep -Pzq '\n8 bytes are there +truncated\nsync +corrupt\n64 bytes are there +truncated\nchecksum of the header +corrupt\n' \
	    "$ROOT/man/ace-stream.5"
	mkshards >in
	for tail in 1:truncated 7:truncated 8:corrupt 63:corrupt; do
		(cat in && head -c "${tail%:*}" /dev/zero) >longer
		exits 3 ace-inspect verify longer
		says "${tail#*:}: "
	done
	for n in 7:truncated 8:truncated 63:truncated 64:truncated; do
		(cat in && head -c "${n%:*}" in) >longer
		exits 3 ace-inspect verify longer
		says "${n#*:}: "
	done
	(cat in && head -c 56 in && head -c 8 /dev/zero) >longer
	exits 3 ace-inspect verify longer
	says 'corrupt: '
}

@test "each default that --help has in figures is the page's" {
	local p
	for p in "$ROOT"/cmd/ace-*.c; do
		p=${p##*/} p=${p%.c}
		"$p" --help-rows | perl -F'\t' -lane 'BEGIN { local $/; open P, shift;
		    $page = <P>; @ARGV = () } next if $F[0] ne "option" || $F[6] !~ /^\d/;
		    next if $page !~ /\n\.It [^\n]*Fl -\Q$F[1]\E\b(?![-\w])([^\0]*?)\n(?:\.It |\.El)/;
		    $s = $1; $s =~ s/\n\.(?:Cm|Ar|Fl|Ql|Li) ?/ /g;
		    print "--$F[1] default $F[6]" if $s !~ /(?<![\d.])\Q$F[6]\E(?!\d)/' \
		    "$ROOT/man/$p.1" | sed "s/^/$p /"
	done >wrong
	cat wrong
	[ ! -s wrong ]
}
