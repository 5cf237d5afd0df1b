# Messages and --help keep those rules of plain English that a program can check.  The texts
# come from the sources, so that none is left out.
# bats file_tags=plain
load helper

# rules: print those lines "FILE:LINE<tab>TEXT" of the input that break a rule, with the rule
rules() {
	perl -F'\t' -lane '
	    my ($at, $t) = @F;
	    my $class = qr/(?:(?:corrupt|mismatch|truncated|limit|unsupported|damaged): )?/;
	    my @bad;
	    push @bad, "a question" if $t =~ /\?/;
	    push @bad, "begins with its object"
		if $t =~ /^$class(?:of|what|where|whose|which|who|behind) /i;
	    push @bad, "who" if $t =~ /\b(?:who|whom|whoever)\b/;
	    push @bad, "is no X" if $t =~ /(?<!there )\b(?:is|are|was|were) no (?!longer|more)/;
	    push @bad, "a private word"
		if $t =~ /\b(?:foret[eo]ll?d?|aside|says not|to be had|behind|lent|knob|is to be|are to be)\b/;
	    push @bad, "too long" if length($t) > 220;
	    print "$at: $_: $t" for @bad'
}

# texts: print the strings of lib and cmd of more than one word, joined as the compiler does
texts() {
	(cd "$ROOT" && find lib cmd -name '*.[ch]' | LC_ALL=C sort) | perl -lne '
	    open my $f, "<", "$ENV{ROOT}/$_" or die; my $s = do { local $/; <$f> };
	    $s =~ s{/\*.*?\*/}{ $& =~ s/[^\n]//gr }gse;
	    $s =~ s/\x27(?:\\.|")\x27/0/g;
	    while ($s =~ /((?:"(?:[^"\\\n]|\\.)*"\s*)+)/g) {
		my $line = 1 + (substr($s, 0, $-[1]) =~ tr/\n//);
		my $t = join "", $1 =~ /"((?:[^"\\]|\\.)*)"/g;
		print "$_:$line\t$t" if $t =~ /[a-z] [a-z]/ && $t !~ /^#/
	    }'
}

@test "no message and no --help breaks a rule" {
	texts >all
	[ "$(wc -l <all)" -ge 1200 ]
	grep -q 'put options first; if .%.40s. is a file, write' all
	rules <all >bad
	cat bad
	[ ! -s bad ]
}

@test "texts that break a rule are found" {
	printf 'x.c:1\t%s\n' 'the directory? take one' 'of a spool: end after N' \
	    'corrupt: what a patch says' 'for programs who want it' \
	    "'%s' is no file of keys" '%llu bytes foretold' | rules >found
	[ "$(wc -l <found)" -eq 6 ]
}
