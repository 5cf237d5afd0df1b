# Numbers and statements are read from the man pages and tested.
# bats file_tags=plain
load helper

# said PAGE: print the number at (...) in the sentence that $WANT matches, which may extend
# over several lines
said() {
	perl -0777 -ne 's/\n\.(?:Xr|Cm|Ar|Fl|Pa|Nm)? ?/ /g; s/\s+/ /g;
	    exit 1 if !/$ENV{WANT}/; print $1' "$ROOT/man/$1" ||
	    { echo "no '$WANT' in $1"; return 1; }
}
page() { WANT=$2 said "$1" && echo; }

@test "ace-sign: the bytes of a signature" {
	openssl genpkey -algorithm ed25519 -out key.pem
	mkshards >in
	ace-sign -k key.pem --omit provenance in >signed
	ace-sign -k key.pem --omit provenance,schema in >without
	[ $(($(wc -c <signed) - $(wc -c <in))) -eq "$(page ace-sign.1 'A signature takes (\d+) bytes')" ]
}

@test "ace-select: the bytes of an empty shard" {
	local n
	n=$(page ace-select.1 'An empty shard takes about (\d+) bytes')
	mkshards -c none >one
	mkshards -c none -N 2 >two
	got=$(($(wc -c <two) - $(wc -c <one)))
	[ "$got" -gt $((n * 9 / 10)) ] && [ "$got" -lt $((n * 11 / 10)) ]
}

@test "ace: the number of lines of the filter scale.c" {
	n=$(wc -l <"$ROOT/examples/scale.c")
	[ "$n" -eq "$(page ace.7 'complete one of (\d+) lines')" ]
	grep -q "^whole filter in $n lines" "$ROOT/README.md"
}

# example CODEC BYTES N: check that the 16 values on the page are coded to N bytes that begin
# with BYTES and decode to the values on the page
example() {
	local body
	WANT="The 16 values ([-.0-9 ]+) are, by $1" said ace-stream.5 >values
	WANT="by $1 .*?The values that are not 0 are ([-.0-9, ]+)\\. " said ace-stream.5 >want
	tr ' ' '\n' <values | perl -lne 'print pack "f<", $_ if length' | tr -d '\n' >raw
	[ "$(wc -c <raw)" -eq 64 ]
	ace-import -f raw raw | ace-compress -c "$1" >coded
	body=$(sed -n "s/^\($2.*\)$/\1/p" "$ROOT/man/ace-stream.5" | tr -d ' ')
	[ "${#body}" -eq $((2 * $3)) ]
	[[ $(od -An -v -tx1 coded | tr -d ' \n') == *"$body"* ]]
	ace-expand coded | ace-export -f raw | od -An -v -w4 -tf4 |
	    awk '$1 != 0 { printf("%s%.6f", n++ ? ", " : "", $1) }' >got
	same got want
}

@test "ace-stream: the bytes and values of its example of ecq" {
	example ecq:0.3 '9a 99 3e' 12
}

@test "ace-stream: bytes after a stream are checked in the order of the page" {
	grep -Pzq '\n8 bytes are there +truncated\nsync +corrupt\n64 bytes are there +truncated\nchecksum of the header +corrupt\n' \
	    "$ROOT/man/ace-stream.5"
	mkshards >in
	for tail in 1:truncated 7:truncated 8:corrupt 63:corrupt; do
		(cat in && head -c "${tail%:*}" /dev/zero) >longer
		refuses 3 "${tail#*:}: " ace-inspect verify longer
	done
	for n in 7:truncated 8:truncated 63:truncated 64:truncated; do
		(cat in && head -c "${n%:*}" in) >longer
		refuses 3 "${n#*:}: " ace-inspect verify longer
	done
	(cat in && head -c 56 in && head -c 8 /dev/zero) >longer
	refuses 3 'corrupt: ' ace-inspect verify longer
}

@test "the pages have the numeric defaults of --help" {
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

@test "ace: exactly the units of the page are accepted for sizes, rates and times" {
	local of also u
	mkshards >in
	also="k K M G T Ki Mi Gi Ti bit kbit Mbit Gbit us ms s m h min d B KiB kB TB bit/s w P x Tbit mB KIB"
	for of in 'size:Sizes take ([\w ]+) \(powers of 1000\)' \
	    'size:powers of 1000\) and ([\w ]+) \(of 1024' \
	    'rate:Rates take ([\w ]+) per second' 'time:Times take ([\w ]+\w) ?; without a unit'; do
		page ace.7 "${of#*:}" | tr -s ' ' '\n' | sed "s/^/${of%%:*} /"
	done >said
	[ "$(wc -l <said)" -eq 19 ]
	printf "%s\n" "size K" "size B" "size KiB" "size kB" "size TB" "rate bit/s" >>said
	for of in 'size ace-select -b 1' 'rate ace-policy --bandwidth 1' \
	    'time ace-compress -c q8 -S st --wait 1'; do
		for u in $also; do
			got=0
			${of#* }"$u" in >out 2>err || got=$?
			if grep -qx "${of%% *} $u" said; then
				! grep -q ' is not a ' err || { cat err; false; }
			else
				[ $got -eq 2 ] && says " is not a ${of%% *} " || { echo "$of$u"; false; }
			fi
		done
	done
	page ace.7 '(without a unit they are seconds)' >/dev/null
	exits 0 ace-compress -c q8 -S st2 --wait 5 in
}

@test "a page lists exactly the common options of its program" {
	local p x n=0
	for p in "$ROOT"/man/ace-*.1; do
		x=${p##*/} x=${x%.1}
		grep -q '^Common options$' "$p" || {
			grep -qE 'that all (filters|programs) have are in$|^describes the common o|^Its own option is' "$p" ||
			    { echo "$p: neither"; false; }
			continue
		}
		n=$((n + 1))
		# an option with its own entry belongs to this program
		sed -n '/^Common options$/,/ \.$/s/^\.Fl \(-*\)\([^ ]*\).*/-\1\2/p' "$p" | sort >named
		{ "$x" --help-rows; "$x" --help-rows | awk '$1 == "command" { print $2 }' |
		    while read -r o; do "$x" "$o" --help-rows; done; } | awk -F '\t' '$1 == "option" { print $3 != "" ? "-" $3 : "--" $2 }' |
		    grep -xE -e '-[oqvhVT]|--(schema|omit|max-elements|sandbox|step|device|kind|tensor|events)' | sort -u >has
		while read -r o; do
			grep -qE "^\.It (.* )?Fl ${o#-}( |\$)" "$p" || echo "$o"
		done <has >want
		diff named want || { echo "$p"; false; }
	done
	[ "$n" -ge 12 ]
}

@test "ace-compress: the unused share of a budget" {
	local of bytes b n some=0
	of=$(page ace-compress.1 'below it by no more than ([\d.]+) %')
	bytes=$(page ace-compress.1 'by no more than [\d.]+ % and (\d+) bytes')
	for model in '-n 336' '-t a:64,64 -t b:64 -t c:100,30'; do
		mkshards $model >in
		ace-score --omit provenance -o scored in
		for b in 459 487 572 611 700 754 831 967 1125 1242 1300; do
			ace-select -b $b --omit provenance scored | ace-compress --omit provenance >coded
			n=$(frames coded | awk '$2 == "SHRD" { from = $1 } $2 == "TAIL" { print $1 - from }')
			[ "$n" -le "$b" ]
			awk -v b=$b -v n="$n" -v of="$of" -v more="$bytes" \
			    'BEGIN { exit b - n > b * of / 100 + more }' ||
			    { echo "$model: $n of $b"; false; }
			some=$((some + 1))
		done
	done
	[ "$some" -eq 22 ]
}

@test "ace-select: the page's example changes a plan as shown" {
	examples "$ROOT/man/ace-select.1" >all.sh
	grep -A3 '^ace-score -o scored.aceg' all.sh >it.sh
	[ "$(wc -l <it.sh)" -eq 4 ]
	standard_inputs
	sed 's/^sed -i/cp plan before; sed -i/' it.sh >run.sh
	bash -euo pipefail run.sh 2>err
	[ "$(diff before plan | grep -c '^>')" -eq 1 ]
	same plan <(ace-select --plan plan --format text scored.aceg | grep -v '^# shard' | cat <(sed 1q plan) -)
}

@test "ace-import: the names of norms, biases and embeddings" {
	local w kind
	for kind in 'norm:a norm has ([^;]+?) in its name, a bias' 'bias:a bias has (\w+) ?,' \
	    'embedding:an embedding has ([^;.]+?) ?\.'; do
		page ace-import.1 "${kind#*:}" | sed 's/ or /, /; s/,/ /g' | tr -s ' ' '\n' |
		    sed "s/^/${kind%%:*} /"
	done >said
	[ "$(wc -l <said)" -eq 8 ]
	echo "weight ln.weight" >>said
	while read -r kind w; do
		[ "$w" = ln.weight ] || w=q.$w
		st '{"'$w'":{"dtype":"F32","shape":[2,2],"data_offsets":[0,16]}}' 16 |
		    ace-import -f safetensors >in
		ace-inspect --format json in | grep -q "\"kind\":\"$kind\",\"shape\"" ||
		    { echo "$w is no $kind"; false; }
	done <said
}

@test "ace: refusals have status 3 or 5 by the page's rule" {
	page ace.7 '(Where a page says that something is refused, and gives no status, the status is 3 when)' >/dev/null
	mkshards >in
	mkshards -x 4 >again
	mkshards -s 3 >late
	mkshards -s 9 >gap
	mkshards -t w:7 >model
	cat in in >twice
	mkdir -m 777 open
	openssl genpkey -algorithm ed25519 -out key.pem
	chmod 644 key.pem
	exits 5 ace-aggregate twice			# one device, two shards
	exits 0 ace-archive create -o a.tar in
	exits 0 ace-archive create -o b.tar again
	exits 0 ace-archive extract -o x a.tar
	exits 5 ace-archive extract -o x b.tar
	exits 5 ace-archive create -o c.tar in again
	exits 0 ace-compress -S st -c q8 late
	exits 5 ace-compress -S st -c q8 in		# an older step
	exits 5 ace-compress -S st -c q8 gap		# missing steps
	exits 5 ace-compress -S open -c q8 in
	exits 5 ace-expand -S open in
	exits 5 ace-ack -S open in
	exits 5 ace-recv --spool open in
	exits 5 ace-sign -k key.pem in
	exits 0 ace-score --form paper -S sc in
	exits 3 ace-score --form paper -S sc model	# a history of another model
	exits 0 ace-compress -S e -c q8 --error-feedback cache in
	mkshards -s 1 >next
	makes next ace-compress -S e -c q8 --error-feedback cache next
	exits 5 ace-expand --cache h next		# a difference to another history
	exits 3 ace-expand next				# a difference, but there is no history
}

@test "ace-ack: the number of receipts that a state keeps" {
	local n s
	mkdir -m 700 spool
	echo open 1000 >spool/limits
	n=$(page ace-ack.1 'The last (\d+) receipts, a shard stream')
	page ace-status.1 "(the verdicts of the last $n receipts)" >/dev/null
	for s in $(seq 0 $((n + 1))); do
		mkshards -n 4 -s "$s" | ace-compress -S state -c f32 --sync none |
		    ace-recv --spool spool --sync none | ace-ack -S state --sync none >/dev/null
		[ "$s" -ge $((n - 2)) ] || continue
		ace-inspect state/receipts >list
		[ "$(wc -l <list)" -eq $((s + 1 < n ? s + 1 : n)) ] || { cat list; false; }
	done
	tail -n 1 list | grep -q "step $s: accepted"
}

@test "ace-export: names that would be unpacked outside of the npz's folder" {
	page ace-export.1 '(If unpacking an npz would write a tensor outside the folder, the tensor is refused)' >/dev/null
	for name in ../x /x a/../../x .. ._x a/._x; do
		mkshards -t "$name:4" >in
		exits 3 ace-export -f npz in
		says "^ace-export: unsupported: the name of tensor '$name' begins with a slash, has '..'"
		exits 0 ace-export -f safetensors in
	done
	mkshards -t a/b..c:4 >in
	exits 0 ace-export -f npz in
}

@test "ace-recv: --create writes the default limits of the page" {
	local name default n=0
	ace-recv --spool spool --create
	while read -r name default; do
		D=$default N=$name perl -0777 -ne '
		    /\n\.It Cm \Q$ENV{N}\E Ar [^\n]*\n(.*?)\n\.(?:It|El)\b/s or exit 1;
		    $t = $1; exit($t =~ /(?<![\w.])\Q$ENV{D}\E(?![\w])/ ? 0 : 1)' \
		    "$ROOT/man/ace-recv.1" || { echo "$name $default"; false; }
		n=$((n + 1))
	done < <(grep -E '^[a-z]+ [^ ]+$' spool/limits)
	[ "$n" -ge 10 ]
}

@test "the greatest arguments of the pages are accepted, greater ones are not" {
	local most least
	most=$(page ace-compress.1 "levels, 1 to (\d+), of the group's norm")
	least=$(page ace-aggregate.1 'norm of the step; R is at least (\d+)\.')
	mkshards >in
	exits 0 ace-compress -c qsgd:1 in
	exits 0 ace-compress -c "qsgd:$most" in
	exits 2 ace-compress -c "qsgd:$((most + 1))" in
	exits 2 ace-compress -c qsgd:0 in
	exits 0 ace-aggregate --rule "norm-ratio:$least" in
	exits 2 ace-aggregate --rule "norm-ratio:$((least - 1)).999" in
}

@test "every option on a page is an option of some program" {
	cat "$ROOT"/completions/* | grep -oE -- '--[a-z][a-z0-9-]*' | sort -u >has
	sed -nE 's/.*\{ "([a-z-]+)", (no|required)_argument,.*/--\1/p' \
	    "$ROOT"/examples/train*.c >>has
	[ "$(wc -l <has)" -ge 80 ]
	# except on ace-changes(7), which names removed options
	for p in "$ROOT"/man/*.[157]; do
		case $p in */ace-changes.7) continue ;; esac
		perl -lne 'next unless /^\./; print "--$1" while /(?<!\w)Fl -([a-z][a-z0-9-]*)/g' "$p" |
		    sort -u | grep -vxFf has | sed "s,^,${p##*/} ,"
	done >wrong || true
	cat wrong
	[ ! -s wrong ]
}

@test "each question of ace(7) refers to an existing page and section" {
	sed -nE '/^\.Ss Which page/,/^\.Ss The programs/s/^\.Xr (\S+) ([157])( , No )?/\1.\2 /p' \
	    "$ROOT/man/ace.7" >index
	[ "$(wc -l <index)" -ge 40 ]
	while read -r page section; do
		grep -qE "^\.(Sh|Ss|It Cm) ${section:-DESCRIPTION}( Ar| |\$)" "$ROOT/man/$page" ||
		    { echo "$page has no section '$section'"; false; }
	done <index
}

@test "HTML: each link refers to an existing page and section" {
	needs mandoc
	"$ROOT/.packaging/html" html
	grep -ohE 'href="[^"]*\.html[^"]*"' html/*.html | sed 's/href="//; s/"$//' | sort -u >links
	[ "$(grep -c '#' links)" -ge 30 ]
	while IFS='#' read -r page section; do
		grep -q "${section:+id=\"$section\"}" "html/$page" || { echo "$page $section"; false; }
	done <links
}

@test "man -k finds common words" {
	for w in bits budget bandwidth join resume checkpoint; do
		grep -qE "^\.Nd .*\b$w" "$ROOT"/man/* || { echo "$w"; false; }
	done
}

@test "the programs have each message of ace-troubleshooting(7) and ace-pytorch(7)" {
	cat "$ROOT"/lib/*/*.[ch] "$ROOT"/cmd/*.c "$ROOT"/examples/pytorch/*/*.py |
	    perl -0777 -pe 's/"\s*\n\s*f?"//g; s/%s/X/g' >sources
	sed -n 's/^\.It Li //p' "$ROOT/man/ace-troubleshooting.7" >messages
	sed -En '/^\.Sh WHEN SOMETHING/,/^\.Sh FILES/s/^\.It //p' "$ROOT/man/ace-pytorch.7" |
	    sed -E 's/\b([XYN]|NAME|checkpoint|the (run|answer))\b|\.\.\.|, | or /\n/g' |
	    grep '[^ ] [^ ]' >>messages
	[ "$(wc -l <messages)" -gt 32 ]
	while read -r m; do
		grep -qF -e "$m" sources || { echo "nobody prints '$m'"; false; }
	done <messages
}
