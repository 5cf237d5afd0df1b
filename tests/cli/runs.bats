# ace-inspect of runs: directories, spools and archives.

load helper

# run_in DIR [CODEC]: write the shards of two devices and steps 1 to 12
run_in() {
	local d s
	for s in {1..12}; do
		mkdir -p "$1/r/$s"
		for d in a b; do
			mkshards -r r -d $d -s "$s" -x "$s" -c "${2:-f32}" \
			    -P interval=$((s % 3 + 1)) >"$1/r/$s/$d.aceg"
		done
	done
}

@test "a folder with many shards gives one line per shard, in numeric order of steps" {
	run_in dir
	exits 0 ace-inspect dir
	[ "$(wc -l <out)" -eq 26 ]
	[ "$(head -n 1 out)" = 'run r' ]
	[ "$(awk 'NR > 2 { print $1 $2 }' out | paste -sd' ')" = \
	    "$(for s in {1..12}; do echo "$s"a "$s"b; done | paste -sd' ')" ]
	grep -qE '^ +7 a +gradient +[0-9]+ +[0-9.]+ +[0-9.]+  f32 1344$' out
	# list shows all in full
	exits 0 ace-inspect list --step 3 --device b dir
	grep -qE '^file +dir/r/3/b.aceg$' out
	[ "$(grep -c '^shard' out)" -eq 1 ]
	exits 0 ace-inspect list dir
	[ "$(grep -c '^shard' out)" -eq 24 ]
	cat dir/r/*/a.aceg >many
	exits 0 ace-inspect brief --step -2 many
	[ "$(wc -l <out)" -eq 4 ]
}

@test "ace-inspect, ace-cut, ace-export and ace-aggregate read archives and compressed files" {
	needs python3
	run_in dir
	tar -czf dir.tgz dir
	(cd dir && python3 -m zipfile -c ../dir.zip r)
	ace-inspect --format tsv dir | cut -f2- | sort >want
	for f in dir.tgz dir.zip; do
		exits 0 ace-inspect --format tsv $f
		diff <(cut -f2- out | sort) want
		exits 0 ace-inspect verify $f
		[ "$(grep -c ': ok, 1 shards' out)" -eq 24 ]
		exits 0 ace-cut $f
		ace-inspect --format tsv out | cut -f2- | sort | diff - want
		exits 0 ace-cut < <(cat $f)
		ace-inspect --format tsv out | cut -f2- | sort | diff - want
	done
	gzip -k dir/r/1/a.aceg
	exits 0 ace-export -f raw dir/r/1/a.aceg.gz
	same out <(ace-export -f raw dir/r/1/a.aceg)
	exits 0 ace-aggregate dir/r/1/a.aceg.gz dir/r/1/b.aceg
}

@test "truncated and hostile archives are refused, with the reason" {
	needs python3
	mkshards >in.aceg
	python3 - <<-'E'
	import tarfile, io, zipfile, zlib
	data = open("in.aceg", "rb").read()
	def tar(name, *entries):
	    with tarfile.open(name, "w") as t:
	        for kind, path in entries:
	            i = tarfile.TarInfo(path)
	            i.type = kind
	            i.size = len(data) if kind == tarfile.REGTYPE else 0
	            i.linkname = "/etc/passwd"
	            t.addfile(i, io.BytesIO(data) if i.size else None)
	F, S, H, C, P = tarfile.REGTYPE, tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.CHRTYPE, tarfile.FIFOTYPE
	tar("up.tar", (F, "../in.aceg"))
	tar("root.tar", (F, "/tmp/in.aceg"))
	tar("soft.tar", (S, "in.aceg"))
	tar("hard.tar", (F, "a.aceg"), (H, "b.aceg"))
	tar("dev.tar", (C, "in.aceg"))
	tar("fifo.tar", (P, "in.aceg"))
	tar("twice.tar", (F, "a.aceg"), (F, "a.aceg"))
	tar("odd.tar", (F, "a\x1b[2Jb.aceg"), (F, "\u00e9.aceg"))
	tar("none.tar", (tarfile.DIRTYPE, "x"))
	E
	while read -r f want; do
		refuses 3 "^ace-cut: $want" ace-cut "$f"
	done <<-'E'
	up.tar unsupported: 'up.tar', entry '../in.aceg': the name begins with
	root.tar unsupported: .* begins with a slash or has '..'
	soft.tar unsupported: 'soft.tar', entry 'in.aceg' is a link
	hard.tar unsupported: .*entry 'b.aceg' is a link
	dev.tar unsupported: .* is not a file or folder: leave it out of the archive
	fifo.tar unsupported: .* is not a file or folder
	twice.tar corrupt: .*entry 'a.aceg': another entry has the same name
	none.tar corrupt: no entry of the archive is a gradient-shard stream
	E
	# a hard link to an earlier entry is another name of the same file
	mkdir both
	cp in.aceg both/a.aceg
	ln both/a.aceg both/b.aceg
	tar --sort=name -cf both.tar both
	ace-cut both.tar | cmp - <(ace-cut both/a.aceg)
	exits 0 ace-inspect list odd.tar
	LC_ALL=C grep -q 'odd.tar:a?\[2Jb.aceg' out
	LC_ALL=C grep -vq "$(printf '\033')" out
	LANG=C LC_ALL=C exits 0 ace-cut odd.tar
	tar -czf good.tgz in.aceg
	for n in 40 200 $(($(wc -c <good.tgz) - 30)); do
		head -c "$n" good.tgz >cut.tgz
		refuses 3 '^ace-cut: (truncated|corrupt): ' ace-cut cut.tgz
		exits 3 ace-cut < <(cat cut.tgz)
	done
}

@test "a damaged file among many: a message, and lines for all files" {
	run_in dir
	head -c 1000 dir/r/5/a.aceg >x
	mv x dir/r/5/a.aceg
	refuses 3 "ace-inspect: truncated: .* file 'dir/r/5/a.aceg'" ace-inspect dir
	[ "$(wc -l <out)" -eq 26 ]
	grep -qE '^ +5 a .* damaged$' out
	exits 3 ace-inspect --format tsv dir
	grep -qE '^dir/r/5/a.aceg	.*	truncated: ' out
	exits 3 ace-inspect brief --format json dir
	[ "$(grep -c '"error":"truncated' out)" -eq 1 ]
	# the same for a file that cannot be decompressed at all
	printf '\x28\xb5\x2f\xfdxxxxxxx' >dir/r/5/a.aceg
	refuses 3 "'dir/r/5/a.aceg'" ace-inspect brief dir
	[ "$(wc -l <out)" -eq 25 ]
	mkdir empty
	refuses 3 "mismatch: folder 'empty' has no stream" ace-inspect empty
}

@test "every command takes --step, --device and --kind" {
	run_in dir
	mkshards -r r -d b -s 3 -H kind=3 >dir/r/3/mean.aceg
	exits 0 ace-inspect list --step 3 --device b --kind gradient --tensor embed dir
	[ "$(grep -c '^shard ' out)$(grep -c '^embed ' out)$(grep -c '^layer' out)" = 110 ]
	exits 0 ace-inspect brief --step 3 --device b --kind gradient --tensor embed dir
	[ "$(grep -c ' b  *gradient ' out)$(wc -l <out)" = 13 ]
	exits 0 ace-inspect stats --step 3 --device b --kind gradient --tensor embed --format json dir
	[ "$(wc -l <out)" -eq 1 ]
	exits 0 ace-inspect verify --step 3 --device b --kind gradient dir/r/3/b.aceg
	mkshards -r r -d b -s 3 -x 9 -H kind=3 >other
	exits 1 ace-inspect diff --kind mean --step 3 --device b --tensor embed \
	    other dir/r/3/mean.aceg
	[ "$(grep -c '^embed ' out)$(grep -c '^layer' out)" = 10 ]
	for c in list brief stats verify diff; do	# no shard is chosen, of two files and of many
		exits 1 ace-inspect $c --step 99 dir/r/3/b.aceg dir/r/4/b.aceg
		[ $c = diff ] || says "^ace-inspect: the input has no such shard .--step, --device, --kind.: "
		[ $c != verify ] || continue
		exits 1 ace-inspect $c --tensor typo dir/r/3/b.aceg dir/r/3/b.aceg
		says "^ace-inspect: no tensor of the input matches 'typo': "
	done
}

@test "plot.gnuplot draws the tables of runs" {
	needs gnuplot
	run_in one q8
	run_in 'a<b' f16
	mkshards -r r -d a -s 3 -H kind=4 >one/residual.aceg
	mkshards -r r -d m -s 3 -H kind=3 -P bandwidth=3e6 >one/mean.aceg
	plot=(gnuplot -c "$ROOT/examples/plot.gnuplot")
	for r in one 'a<b'; do ace-inspect --format tsv "$r" >"$r.tsv"; done
	exits 0 "${plot[@]}" p.svg one.tsv 'a<b.tsv'
	! command -v xmllint || xmllint --noout p.svg
	grep -q '>one.tsv<' p.svg
	grep -q '>a&lt;b.tsv<' p.svg
	# means have no bandwidth
	for m in 'bytes of all devices' 'norm of the residual' 'interval, local steps' 'q8, % of the bytes' 'f16, % of the bytes'; do
		grep -q ">$m<" p.svg
	done
	! grep -E '>(bandwidth|f32, %)' p.svg || false
	# a single step; text output; a table of means only
	ace-inspect --format tsv one/mean.aceg >mean.tsv
	shows 'bandwidth, Mbit/s' "${plot[@]}" - mean.tsv
	ace-inspect stats --format tsv one/r/1/a.aceg >tensors.tsv
	exits 0 "${plot[@]}" t.svg tensors.tsv
	grep -q '>layer.weight<' t.svg
	grep -q '>bits per value' t.svg
	refuses 2 '^usage: ' "${plot[@]}" x.svg
	ace-inspect --format tsv one/residual.aceg >kept.tsv
	refuses 3 "no shard of a device in 'kept.tsv'" "${plot[@]}" x.svg kept.tsv
	[ ! -e x.svg ]
}

@test "long work shows a progress bar on a terminal, and nowhere else" {
	safetensors 200000 >in.safetensors
	mkshards -n 1M -k fast >in.aceg
	for call in 'ace-import -f safetensors' 'ace-inspect verify'; do
		case $call in ace-import*) f=in.safetensors ;; *) f=in.aceg ;; esac
		# the program's clock runs so fast that two seconds are over immediately
		slow="cat $f | LD_PRELOAD='$(preload)' ACE_FASTER=1000000 env"
		exits 0 env TERM=xterm pty sh -c "$slow $call 2>&1 >/dev/null"
		grep -q "$(printf '\r')[0-9.]* [kM]B" out
		# the line is erased at the end
		[ "$(tail -c 4 out | od -An -c | tr -d ' ')" = '\r033[K' ]
		for way in "TERM=dumb $call" "TERM=xterm $call -q" "TERM= $call"; do
			exits 0 pty sh -c "$slow $way 2>&1 >/dev/null"
			[ ! -s out ]
		done
		exits 0 env TERM=xterm sh -c "$slow $call >/dev/null"
		[ ! -s err ]
	done
}
