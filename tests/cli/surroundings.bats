# Another language, time zone or user, and a path with spaces, do not change the output.
load helper

# all DIR: write output of each kind to DIR
all() {
	mkdir "$1"
	ace-score two.aceg >"$1/scored"
	ace-policy --omit provenance -v --bandwidth 1.5Mbit --deadline 250ms \
	    two.aceg >"$1/policy" 2>"$1/policy.words"
	ace-select --omit provenance --bits 9.5 --format text two.aceg >"$1/plan"
	ace-compress --omit provenance -c topk:0.25 two.aceg >"$1/sent"
	ace-inspect list --format json two.aceg >"$1/json"
	ace-inspect --format tsv two.aceg >"$1/tsv"
	ace-advise dynacomm --cuts 1.5ms --bandwidth 1Gbit table.tsv >"$1/cuts"
	ace-export --step 0 -o "$1/w.npz" two.aceg
	ace-archive create -o "$1/run.zip" two.aceg
	ace-archive create -o "$1/run.tar.gz" two.aceg
	! ace-select --bits 1,5 two.aceg >/dev/null 2>"$1/refused" || return 1
}

given() {
	mkshards -N 2 -T 0.5,0.25,0.125 >two.aceg
	mkprofile ResNet-152 >table.tsv
}

@test "a Turkish locale, with commas in numbers, and another time zone" {
	needs localedef
	# localedef may warn, so its status does not matter
	localedef -i tr_TR -f UTF-8 ./tr_TR.UTF-8 >/dev/null 2>&1 || :
	[ "$(LOCPATH=$PWD LC_ALL=tr_TR.UTF-8 locale decimal_point 2>/dev/null)" = , ] ||
	    skip "no tr_TR to make here"
	given
	all plain
	export LOCPATH=$PWD LC_ALL=tr_TR.UTF-8 TZ=Pacific/Kiritimati
	# glibc never frees what it allocated for LOCPATH
	export ASAN_OPTIONS=${ASAN_OPTIONS:+$ASAN_OPTIONS:}detect_leaks=0
	all there
	unset LOCPATH
	LC_ALL=C.UTF-8 diff -r plain there
}

@test "the user nobody, in a path with spaces" {
	[ "$(id -u)" -eq 0 ] || skip "needs root"
	needs setpriv
	nobody() {
		setpriv --reuid 65534 --regid 65534 --clear-groups env \
		    HOME=/nonexistent TMPDIR="$there" "$@"
	}
	there=$(mktemp -d "/tmp/ace a b.XXXXXX")
	if ! nobody test -x "$BUILD/ace"; then
		# nobody cannot read the build directory, so copy the programs
		mkdir "$there/bin"
		cp "$BUILD"/ace "$BUILD"/ace-* "$there/bin"
		chmod 755 "$there/bin"
		PATH=$there/bin:$PATH
	fi
	given
	all plain
	cp two.aceg table.tsv "$there"
	chown -R 65534:65534 "$there"
	cd "$there"
	export -f all
	nobody bash -c 'all there'
	mkdir locked
	chown 0:0 locked
	refuses 4 "locked/out.*Permission denied" nobody ace-score -o locked/out two.aceg
	exits 4 nobody ace-compress -S locked/state -c q8 two.aceg
	says "locked/state.*Permission denied"
	install -m 600 two.aceg locked/two.aceg
	refuses 4 "locked/two.aceg'.*Permission denied" nobody ace-cut locked
	cd "$BATS_TEST_TMPDIR"
	diff -r plain "$there/there"
	rm -rf "$there"
}
