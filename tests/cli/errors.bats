# Messages of errors that no other test provokes.
load helper

begins() { mkshards >in; }

@test "archives that are truncated, have a name too long, are encrypted, or contain no shard" {
	mkshards >in.aceg
	tar --format=ustar -cf a.tar in.aceg
	truncate -s $((512 + ($(wc -c <in.aceg) + 511) / 512 * 512)) a.tar
	refuses 3 "truncated: 'a.tar' lacks the end blocks of a tar archive" ace-cut a.tar
	tar --format=gnu --transform "s,.*,$(printf 'n%01100d' 0).aceg," \
	    -cf b.tar in.aceg
	refuses 3 "limit: 'b.tar', entry 'n0*': the name has [0-9]* bytes, expected at most" \
	    ace-cut b.tar
	ace-archive create -o c.zip in.aceg
	# mark the entry as encrypted, in its local header and in the central directory
	perl -e 'local $/; binmode STDIN; binmode STDOUT; $_ = <STDIN>;
	    s/(PK\x03\x04..)(.)/$1 . chr(ord($2) | 1)/gse;
	    s/(PK\x01\x02....)(.)/$1 . chr(ord($2) | 1)/gse; print' <c.zip >d.zip
	refuses 3 "unsupported: 'd.zip', entry '.*' is encrypted: decrypt it first" ace-cut d.zip
	mkfifo fifo
	tar -cf e.tar fifo
	refuses 3 "unsupported: 'e.tar', entry 'fifo' is not a file or folder" \
	    ace-cut e.tar
}

@test "tables with too many columns, times or devices are refused" {
	seq -f c%g 1025 | paste -sd '\t' >wide
	refuses 3 'limit: line 1 has more than 1024 columns' ace-advise cluster wide
	printf 'bytes\tbc\n1e12\t1ms\n' >table
	refuses 3 "limit: line 2: sending 'bytes' would take" ace-advise dynacomm --cuts 1ms \
	    --bandwidth 1bit table
	printf 'compute\trtt\tbandwidth\tbytes\n1\t1\t1bit\t1e12\n' >table
	refuses 3 'limit: line 2: a round would take .* s' ace-advise cluster table
}

@test "ace-compress refuses a difference to a history" {
	ace-compress -S S --error-feedback cache -c q8 in >first
	mkshards -s 1 >in
	ace-compress -S S --error-feedback cache -c q8 in >sent
	refuses 3 "mismatch: shard 'edge1/1' is a difference to a history: expand it first with ace-expand --cache DIR" \
	    ace-compress -c q8 sent
}

@test "an option that has no meaning without another one is refused" {
	for p in ace-compress ace-step; do
		for o in '--window 2' '--wait 5s' '--error-feedback ef' --allow-gap; do
			refuses 2 "^$p: ${o% *} needs --state$" $p -c q8 $o in
			exits 0 $p $o -c q8 -S "$p${o% *}" in
		done
	done
	refuses 2 "^ace-expand: --gamma needs --state$" ace-expand --gamma 0.5 in
	for o in --create '--rounds 2' '--keep 2' --publish; do
		refuses 2 "^ace-aggregate: ${o% *} needs --spool$" ace-aggregate $o in
	done
	refuses 2 "^ace-meter: --wait needs --state$" ace-meter --wait 2s in
}

# test_cli and test_opt have all messages about options
@test "a message about an option has the name that was given" {
	while IFS='|' read -r words want; do
		refuses 2 "^ace-expand: $want$" ace-expand $words
		says "^Try 'ace-expand --help'\.$"
		[ "$(wc -l <err)" -eq 2 ]
	done <<-END
	-o|option '-o' needs a value
	--omit provenance,yes|--omit 'yes': expected provenance or schema
	--omit ,|--omit '': expected provenance or schema
	END
	# a message about invalid data does not mention --help
	head -c 100 in >part
	exits 3 ace-expand part
	[ "$(wc -l <err)" -eq 1 ]
	refuses 2 "^Try 'ace-advise cluster --help'\.$" ace-advise cluster --steps
	exits 0 ace-expand --omit provenance --output=a -- in
	exits 0 ace-expand --omit provenance -qo b in
	same a b
}

@test "every program refuses options after an operand, and says so" {
	for call in 'ace-score in --form paper' 'ace-aggregate in -v' 'ace-inspect list in -q' \
	    'ace-inspect in --format json' 'ace-expand in -o out2' 'ace-diff in in -r demo'; do
		exits 2 $call
		says "^${call%% *}: option '-[-a-z]*' follows operand 'in': put options first"
	done
	[ ! -e out2 ]
	# a file whose name begins with - is given after -- or by a path
	mkshards -d edge2 >./-v
	exits 0 ace-aggregate -- in -v
	exits 0 ace-inspect ./-v
	exits 0 ace-inspect - <in
}

@test "closed standard descriptors are not replaced by files that are opened" {
	refuses 4 "^ace-expand: '<stdin>': Bad file descriptor" sh -c 'ace-expand <&-'
	exits 0 ace-compress -v -c q8 -o said in
	[ -s err ]
	# with standard error closed, messages must not get into the output file
	exits 0 sh -c 'ace-compress -v -c q8 -o x 2>&- <in'
	same x said
}

@test "in a pipe the program that failed and the last one print a message" {
	last='^ace-inspect: truncated: the stream was aborted: a program before this one'
	for how in ace-expand 'ace-compress -c q8' ace-score; do
		# the program fails before its first output, then after it
		exits 3 bash -c "$how </dev/null 2>first | ace-score | ace-inspect"
		[ -s first ]
		says "$last failed .see its message. or passed on a stream that was aborted, at byte [0-9]+\$"
		[ "$(wc -l <err)" -eq 1 ]
		head -c 700 in >part
		exits 3 bash -c "$how part 2>first | ace-score | ace-aggregate |
		    ace-expand | ace-inspect verify"
		[ -s first ]
		says "$last failed .see its message. or passed on a stream that was aborted"
		[ "$(wc -l <err)" -eq 1 ]
		# for a file the message names no program before ace-inspect
		! $how part >aborted 2>first || false
		exits 3 ace-inspect verify aborted
		says 'truncated: the program that wrote the stream aborted it'
	done
}

@test "a report whose reader has ended gives no message" {
	mkfifo p
	# a pipe for output without a reader
	exec 9<>p
	exec 8>p
	exec 9>&-
	for call in 'ace-inspect list in' 'ace-expand --help'; do
		got=0
		(trap '' PIPE; exec timeout "$HANG" $call >&8 2>err) || got=$?
		[ "$got" -eq 4 ]
		[ ! -s err ]
	done
	exec 8>&-
}
