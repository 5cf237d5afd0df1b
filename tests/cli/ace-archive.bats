load helper
load values

# spool [STEPS]: make a spool of two devices with STEPS steps, by default 3, and their aggregates
spool() {
	local s d
	for s in $(seq 0 $((${1:-3} - 1))); do
		for d in edge1 $'k \303\274/..'; do
			mkshards -d "$d" -s "$s" -x "$s" -r demo |
			    ace-compress -c q8 | ace-recv --spool spool >/dev/null
		done
		ace-aggregate --spool spool --devices 2 --rounds 1 |
		    ace-recv --spool spool --publish
	done
}

# digests FILE: print the digests of its shards, sorted; write the names of its entries to `names'
digests() {
	ace-inspect brief --format tsv "$1" | sed '1d; s/\t.*//; s/^[^:]*://' | sort >names
	ace-inspect --format json "$1" | grep -v '"verdict"' | grep -o '"digest":"[^"]*"' | sort
}

@test "every format and filter: extract gives back the archived shards" {
	spool
	digests spool >want && mkshards -H kind=6 -r demo >spool/device/history.0
	sed 's/^spool/demo/' names >want.names
	for f in run.tar run.tar.gz run.tgz run.tar.bz2 run.tar.xz run.tar.zst \
	    run.tar.lz4 run.zip; do
		exits 0 ace-archive create -o $f spool
		digests $f >got
		same got want
		same names want.names
		exits 0 ace-inspect verify $f
		rm -rf into
		exits 0 ace-archive extract -o into $f
		exits 0 ace-archive extract -o into spool
		(cd into && find . -type f | sed 's|^\./||' | sort) >got
		same got want.names
		digests into >got
		same got want
	done
	# our programs read other programs' archives, and those read ours
	tar -cf other.tar --exclude history.0 -C spool .
	digests other.tar >got
	same got want
	mkdir there
	tar -xf run.tar.xz -C there
	digests there >got
	same got want
	exits 0 ace-aggregate --devices 2 there/demo/1/edge1.aceg \
	    "there/demo/1/k%20%C3%BC%2F%2E%2E.aceg"
	same <(digests out) <(digests there/demo/1/aggregate.aceg)
}

@test "shards are chosen by step, device and kind; archives pass through pipes" {
	spool
	makes part.tar ace-archive create --step 1- --device 'edge*' spool
	[ "$(ace-inspect brief --format tsv part.tar | cut -f 3,4 | paste -sd ' ')" = \
	    "step	device 1	edge1 2	edge1" ]
	exits 0 ace-archive create -o all.tar spool
	exits 0 ace-archive extract -o means --kind mean --step 2 - <all.tar
	[ "$(find means -type f)" = means/demo/2/aggregate.aceg ]
	same <(digests means) <(digests spool/2/aggregate.aceg)
	refuses 1 'no such shard' ace-archive extract -o none --step 9 all.tar
	exits 1 ace-archive create -o none.tar --device x spool
	[ ! -e none.tar ]
	exits 0 ace-archive create -o some.tar --kind gradient spool
	[ "$(ace-inspect brief --format tsv some.tar | wc -l)" -eq 7 ]
	ace-archive create -o means.tar --kind mean spool
	exits 0 ace-archive create -o some.tar some.tar means.tar
	[ "$(ace-inspect brief --format tsv some.tar | wc -l)" -eq 10 ]
	cat spool/*/edge1.aceg | ace-archive create -o piped.zip
	[ "$(ace-inspect brief --format tsv piped.zip | wc -l)" -eq 4 ]
}

@test "-v prints the number of shards; an archive is synced" {
	mkshards -r demo -d 'edge 1' -s 3 >one
	mkshards -r demo -d b -s 12 -n 5000 -H kind=1 >two
	ace-archive create -o run.tar one two
	notes '^ace-archive: shards extracted: 2$' ace-archive extract -v -o into run.tar
	exits 0 ace-archive extract -o into run.tar
	[ ! -s err ]
	# an archive is synced before its rename, and its directory after it
	synced ace-archive create -o again.tar one two
	[ "$(tail -n 1 synced)" = . ]
	grep -q '^again.tar' synced
}

@test "an archive is extended: it is an input and the output of create, and no shard is twice in it" {
	spool 2
	ace-archive create -o run.tar.zst --step 0 spool
	exits 0 ace-archive create -o run.tar.zst -v run.tar.zst spool
	says '^ace-archive: repeated shards stored once: 3'
	digests spool >want
	digests run.tar.zst >got
	same got want
	cp run.tar.zst before
	mkshards -d edge1 -s 1 -x 77 -r demo >other
	exits 5 ace-archive create -o run.tar.zst run.tar.zst other
	says "two different shards have the name 'demo/1/edge1.aceg'"
	same run.tar.zst before
	exits 2 ace-archive append -o run.tar.zst other
}

@test "extract does not overwrite existing files" {
	spool 1
	ace-archive create -o run.tar spool
	ace-archive extract -o into run.tar
	exits 0 ace-archive extract -o into run.tar
	mkshards -d edge1 -s 0 -x 77 -r demo >into/demo/0/edge1.aceg
	cp into/demo/0/edge1.aceg was
	exits 5 ace-archive extract -o into run.tar
	says "exists already and is another shard"
	same was into/demo/0/edge1.aceg
	for n in 0 100; do
		head -c $n was >into/demo/0/edge1.aceg
		exits 5 ace-archive extract -o into run.tar
		says "'into/demo/0/edge1.aceg' exists already and is not one whole shard"
	done
	# a symbolic link in the way is not followed
	mkdir away
	mkdir -p trap/demo && ln -s ../../away trap/demo/0
	exits 0 ace-archive extract -o fresh run.tar
	[ -z "$(ls away)" ]
}

# hostile CODE: write bad.tar with Python; in CODE, `good' is the good shard
hostile() {
	python3 - "$@" <<-'END'
	import io, sys, tarfile
	good = open('good', 'rb').read()
	t = tarfile.open('bad.tar', 'w')
	def put(name, data=good, **more):
	    i = tarfile.TarInfo(name)
	    i.size = len(data) if not more else 0
	    for k, v in more.items():
	        setattr(i, k, v)
	    t.addfile(i, io.BytesIO(data) if not more else None)
	exec(sys.argv[1])
	t.close()
	END
}

@test "hostile archives: refused, and nothing outside the folder is touched" {
	mkshards -r demo >good
	mkdir -p work/into
	for code in 'put("../out.aceg")' 'put("/tmp/ace-evil.aceg")' \
	    'put("a/../../x.aceg")' 'put("..\\x.aceg")' \
	    'put("l", type=tarfile.SYMTYPE, linkname="/etc"); put("l/x.aceg")' \
	    'put("h", type=tarfile.LNKTYPE, linkname="/etc/passwd")' \
	    'put("c", type=tarfile.CHRTYPE, devmajor=1, devminor=3)' \
	    'put("a.aceg"); put("a.aceg")'; do
		hostile "$code"
		exits 3 ace-archive extract -o work/into bad.tar ||
		    { echo "$code"; false; }
		exits 3 ace-inspect brief bad.tar
		exits 3 ace-archive create -o again.tar bad.tar
		[ ! -e again.tar ]
	done
	[ ! -e out.aceg ]
	[ ! -e work/out.aceg ]
	[ ! -e /tmp/ace-evil.aceg ]
	# the name of an entry does not decide where its shard goes
	hostile 'put("some/where/else.aceg")'
	exits 0 ace-archive extract -o named bad.tar
	[ "$(find named -type f)" = named/demo/0/edge1.aceg ]
	# names of runs and devices with slashes and dots do not lead out of the directory
	mkshards -r .. -d '../../x' >good
	ace-archive create -o odd.tar good
	ace-archive extract -o odd odd.tar
	[ "$(find odd -type f)" = odd/%2E%2E/0/%2E%2E%2F%2E%2E%2Fx.aceg ]
}

# long_name: print the head of a gzip file, with a name of 40 MB
long_name() {
	printf '\x1f\x8b\x08\x08\0\0\0\0\0\3'
	head -c 40000000 /dev/zero | tr '\0' A
}

@test "compressed twice; an endless head; bytes after the end" {
	mkshards -r demo >good
	gzip -c good >once
	gzip -c once >twice
	exits 0 ace-inspect verify once
	refuses 3 'this is a gzip file' ace-inspect verify twice
	# the memory used does not depend on the length of the name
	long_name >name.gz
	cat once name.gz >behind.gz
	long_name | gzip -1 >inside.gz
	for f in name.gz behind.gz inside.gz; do
		exits 3 peak most ace-inspect verify $f
		[ "${ACE_SANITIZED:-}" ] || [ "$(cat most)" -lt 65536 ]
		exits 3 ace-inspect verify <$f
	done
	exits 3 ace-inspect verify behind.gz
	says 'limit: .* has a header, or other bytes without data, of more than [0-9]* bytes: unpack the archive first'
	# a truncated second gzip member is an error
	for tail in 1 5 9 30; do
		{ cat once; head -c $tail once; } >cut.gz
		exits 3 ace-inspect verify cut.gz
	done
	{ cat once; echo more; } >more.gz
	exits 3 ace-inspect verify more.gz
	says "'more.gz' has bytes after the compressed data"
	exits 3 ace-inspect verify <more.gz
	# bytes after the end of an archive are ignored
	ace-archive create -o a.tar.gz good
	{ cat a.tar.gz; echo more; } >more.tar.gz
	exits 0 ace-inspect more.tar.gz
	cat once once >both.gz
	exits 0 ace-inspect both.gz
}

@test "an archive with a damaged head is refused" {
	local f
	spool 2
	ace-archive create -o run.tar spool
	exits 0 ace-inspect brief run.tar
	# damage in the first entry: its name, its size, its magic
	for f in 2 130 258; do
		cp run.tar x.tar
		flip x.tar $f
		exits 3 ace-inspect brief x.tar || { echo $f; false; }
		exits 3 ace-archive extract -o "into$f" x.tar
		exits 3 ace-inspect verify x.tar
	done
	# a damaged shard is refused; a file that is not a shard is skipped
	mkdir some
	mkshards -r demo >some/a.aceg
	mkshards -r demo -d b >some/b.aceg
	echo hello >some/README
	tar -cf some.tar some
	exits 0 ace-inspect verify some.tar
	flip some/a.aceg 1
	tar -cf some.tar some
	for f in some some.tar; do
		exits 3 ace-inspect verify $f
		says '^ace-inspect: corrupt: the input is not a gradient-shard stream: it begins with .*a.aceg'
	done
	exits 3 ace-archive extract -o cut some.tar
	# a damaged name length in a zip's first entry
	ace-archive create -o x.zip run.tar
	exits 0 ace-inspect brief x.zip
	flip x.zip 27 0x7f
	exits 3 ace-inspect brief x.zip
	# a name that is not valid UTF-8 is not an error
	mkdir "$(printf 'n\303x')"
	mkshards -r demo >"$(printf 'n\303x/s.aceg')"
	tar --format=pax -cf name.tar "$(printf 'n\303x')"
	exits 0 ace-inspect verify name.tar
}

@test "a tar of a sparse file with a hole at its end is whole" {
	head -c 4000000 /dev/zero >zeros.f32
	ace-import --name w -o dense zeros.f32
	cp --sparse=always dense z.aceg
	tar cSf holes.tar z.aceg
	exits 0 ace-inspect verify holes.tar
	head -c 1536 holes.tar >cut.tar
	exits 3 ace-inspect verify cut.tar
}

# bats test_tags=long
@test "files that change while they are archived: refused, or the archive is whole" {
	local f i r
	mkdir src
	for i in 0 1 2 3; do
		mkshards -r demo -s "$i" -n 300k >src/$i.aceg
	done
	for f in tar tar.zst zip; do
		ace-archive create -o good.$f src
	done
	cat >spoil.py <<-'END'
	import os, random, sys, time
	files, good = sys.argv[1:], {f: open(f, 'rb').read() for f in sys.argv[1:]}
	random.seed(1)
	while True:
	    f = random.choice(files)
	    b, how = good[f], random.randrange(5)
	    with open(f, 'r+b') as x:
	        if how == 0: x.truncate(random.randrange(len(b)))
	        elif how == 1: x.seek(random.randrange(len(b))); x.write(os.urandom(9))
	        elif how == 2: x.seek(0, 2); x.write(b[:random.randrange(len(b))])
	        else: x.write(b); x.truncate()
	    time.sleep(random.random() * .01)
	END
	cp -r src good
	for i in {1..4}; do
		for f in tar tar.zst zip; do
			cp good/* src
			python3 spoil.py src/* &
			r=0
			ace-archive create -o x.$f src 2>err || r=$?
			kill $!
			wait $! || true
			[ $r = 0 ] || { [ $r = 3 ] && [ -s err ] && [ ! -e x.$f ]; }
			[ $r != 0 ] || exits 0 ace-inspect verify x.$f
			rm -f x.$f
			cp good.$f x.$f
			python3 spoil.py x.$f &
			r=0
			ace-archive extract -o into x.$f 2>err || r=$?
			kill $!
			wait $! || true
			[ $r = 0 ] || { [ $r = 3 ] && [ -s err ]; }
			# if extract is refused at the first entry, there is no file to verify
			[ -z "$(find into -type f 2>find.err)" ] ||
			    exits 0 ace-inspect verify into
			rm -rf into x.$f
		done
	done
}

@test "invalid calls are refused" {
	spool 1
	exits 2 ace-archive
	exits 2 ace-archive wrap
	for f in run run.zip.zst run.rar tar .tar; do
		refuses 2 "-o '$f' is not the name of an archive: expected the end .tar, " \
		    ace-archive create -o $f spool
	done
	refuses 2 '-o DIR' ace-archive extract run.tar
	exits 2 ace-archive extract -o x a b
	exits 4 ace-archive create -o run.tar nowhere
	[ ! -e run.tar ]
	ace-archive create -o all.tar spool
	refuses 4 "'no/where': No such file" ace-archive extract -o no/where all.tar
	exits 4 ace-archive create -o nowhere/run.tar spool
	mkdir empty
	exits 3 ace-archive create -o run.tar empty
	exits 0 ace-archive create --max-elements 1000000 spool
	exits 2 pty ace-archive create spool
}

# bats test_tags=long,asan
@test "archives of the same shards have the same bytes" {
	spool 2
	local at f
	for at in was is; do
		mkdir $at
		[ $at = was ] || sleep 1.1
		for f in tar zip tar.xz tar.gz tar.bz2 tar.zst tar.lz4; do
			ace-archive create -o $at/run.$f spool
		done
	done
	diff -r was is
}
