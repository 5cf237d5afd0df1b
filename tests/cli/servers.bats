# examples/patches: a trainer, a host that applies its patches, and a stand-in for that host's
# model server, which maps the files and reports if it sees two versions.
# bats file_tags=plain
load helper

patches=$ROOT/examples/patches

setup() {
	cd "$BATS_TEST_TMPDIR" || return
	needs curl
	needs flock
	PATH=$patches:$PATH
}

teardown() { stop; }

# version DIR N: write a model of three files in which every value byte is N
version() {
	python3 -S - "$@" <<-'E'
	import json, os, struct, sys
	d, n = sys.argv[1], int(sys.argv[2])
	os.makedirs(d)
	where = {}
	for i in range(3):
	    names = ['layer.%d.%s' % (i, w) for w in ('up', 'down')] + ['version'] * (i == 2)
	    head, at = {}, 0
	    for w in names:
	        head[w] = {'dtype': 'U8', 'shape': [30000], 'data_offsets': [at, at + 30000]}
	        where[w] = 'model-%d.safetensors' % i
	        at += 30000
	    text = json.dumps(head).encode()
	    with open(os.path.join(d, where[names[0]]), 'wb') as f:
	        f.write(struct.pack('<Q', len(text)) + text + bytes([n]) * at)
	with open(os.path.join(d, 'model.safetensors.index.json'), 'w') as f:
	    json.dump({'metadata': {}, 'weight_map': where}, f)
	E
}

# serve MODEL: start the stand-in, and set url to its address
serve() {
	rm -f port
	python3 "$patches/server.py" "$1" 0 >port 2>server.log 3>&- &
	server=$!
	wait_for test -s port
	url=http://127.0.0.1:$(cat port)
}

stop() {
	[ -z "${server:-}" ] || { kill "$server"; wait "$server" 2>/dev/null || true; }
	server=
}

# has MODEL: check that the server has MODEL
has() {
	curl -fsS "$url/model" >is
	python3 -S - "$1" "$patches" <<-'E' >want
	import hashlib, sys
	sys.path.insert(0, sys.argv[2])
	sys.dont_write_bytecode = True
	from server import mapped
	t = mapped(sys.argv[1])
	text = ''.join('%s %s\n' % (n, hashlib.sha256(t[n]).hexdigest()) for n in sorted(t))
	print(hashlib.sha256(text.encode()).hexdigest())
	E
	grep -q "\"$(cat want)\"" is
}

# passes: print how often the server had read the whole model, from `is'
passes() { sed 's/.*"passes": \([0-9]*\).*/\1/' is; }

read_more() { curl -fsS "$url/model" >is && [ "$(passes)" -gt "$1" ]; }

@test "a server that reads all the time never sees a mixture of two versions" {
	version old 0
	cp -r old model
	serve "$PWD/model"
	# a second reader opens the model's directory anew for each pass
	cat >reader.py <<-'E'
	import json, os
	n, seen = 0, set()
	while not os.path.exists('enough'):
	    d = os.open('model', os.O_RDONLY | os.O_DIRECTORY)
	    def whole(name):
	        f = os.open(name, os.O_RDONLY, dir_fd=d)
	        with os.fdopen(f, 'rb') as f:
	            return f.read()
	    try:
	        index = json.loads(whole('model.safetensors.index.json'))
	        is_ = {whole(f)[-30000:] for f in set(index['weight_map'].values())}
	    except FileNotFoundError:
	        # the old directory was removed while it was open here
	        continue
	    finally:
	        os.close(d)
	    assert len(is_) == 1, 'a mixture'
	    seen |= is_
	    n += 1
	print(n, len(seen))
	E
	python3 -S reader.py >readings 2>&1 3>&- &
	reader=$!
	for step in $(seq 4); do
		version new "$step"
		ace-diff -s "$step" --base-version $((step - 1)) old new >patch.aceg
		ace-patch --stage model <patch.aceg
		# the server still reads the old model after --stage
		curl -fsS "$url/model" >is
		wait_for read_more "$(passes)"
		exits 0 receive.sh "$PWD/model" "$(if [ $((step % 2)) -eq 0 ]; then echo sglang; else echo vllm; fi)" "$url" <patch.aceg
		has new
		diff -r model new
		exits 0 receive.sh "$PWD/model" sglang "$url" <patch.aceg
		has new
		rm -r old
		mv new old
	done
	touch enough
	wait $reader
	read -r n seen <readings
	[ "$n" -gt 4 ] && [ "$seen" -ge 2 ]
}

@test "the stand-in detects files that change in place, and files of two models" {
	version old 0
	version new 1
	ace-diff -s 1 old new >patch.aceg
	cp -r old model
	serve "$PWD/model"
	has old
	ace-patch --in-place model <patch.aceg
	changed() { ! curl -fsS "$url/model" >is 2>err; }
	wait_for changed
	curl -sS "$url/model" | grep -q "changed while it was served"
	exits 4 receive.sh "$PWD/model" sglang "$url" <patch.aceg
	stop
	cp -r old two
	cp new/model-1.safetensors two
	serve "$PWD/two"
	curl -sS "$url/model" | grep -q "of another model than version"
}

@test "if the server does not answer, status 4; the same call again completes the update" {
	version old 0
	version new 1
	cp -r old model
	ace-diff -s 1 old new >patch.aceg
	exits 4 receive.sh "$PWD/model" sglang http://127.0.0.1:1 <patch.aceg
	diff -r model new
	serve "$PWD/model"
	exits 0 receive.sh "$PWD/model//" sglang "$url" <patch.aceg
	has new
	ln -s model link
	exits 4 receive.sh "$PWD/link" sglang "$url" <patch.aceg	# another name than the server's
	[ ! -e link.ace-patch ]
	# a truncated or unsuitable patch changes nothing
	ace-diff -s 1 old new >other.aceg
	head -c 200 other.aceg >cut.aceg
	exits 3 receive.sh "$PWD/model" sglang "$url" <cut.aceg
	version third 3
	version fourth 4
	ace-diff -s 4 third fourth >other.aceg
	exits 5 receive.sh "$PWD/model" sglang "$url" <other.aceg
	has new
	exits 2 receive.sh "$PWD/model" triton "$url" <patch.aceg
	exits 2 receive.sh "$PWD/model"
	# the server has no model at this path
	cp -r old unknown
	exits 4 receive.sh "$PWD/unknown" sglang "$url" <patch.aceg
	diff -r unknown new
}

@test "a server gets the weights of a trainer in PyTorch, bit for bit" {
	needs_torch
	mkdir run
	# in the first run no receiver accepts patches
	DIR=run exits 0 "$PYTHON" "$patches/train.py" "sh -c 'cat >/dev/null; exit 4'"
	[ "$(grep -c 'not sent' out)" -eq 5 ]
	cmp run/old/model.safetensors run/base/model.safetensors
	cp -r run/base model
	serve "$PWD/model"
	# at every third call the host takes the patch, but its answer is lost
	cat >flaky <<-END
		#!/bin/sh
		echo >>calls
		receive.sh '$PWD/model' sglang $url && [ \$((\$(wc -l <calls) % 3)) -ne 1 ]
	END
	chmod +x flaky
	DIR=run exits 0 "$PYTHON" "$patches/train.py" "$PWD/flaky"
	[ "$(grep -c ': sent' out)" -eq 2 ]
	[ "$(grep -c 'not sent' out)" -eq 3 ]
	cmp run/new/model.safetensors model/model.safetensors
	exits 1 cmp run/old/model.safetensors run/base/model.safetensors
	has run/new
}

# sent A B: put the patches that lead from step A to step B into the folder `sent'
sent() {
	local i
	for i in $(seq $(($1 + 1)) "$2"); do
		ace-diff -s "$i" --base-version $((i - 1)) "m$((i - 1))" "m$i" >"sent/00000$i.aceg"
	done
}

@test "catch-up.sh: a host that missed steps, lost its marker, or has a backup" {
	local i
	mkdir bin sent
	printf '#!/bin/sh\nexec sh -c "$*"\n' >bin/far
	printf '#!/bin/sh\nexec sh -c "$*" | head -c "$SENDS"\n' >bin/cuts
	chmod +x bin/*
	PATH=$PWD/bin:$PATH
	for i in 0 1 2 3 4 5; do mkmodel "m$i" -n 1000 -s "$i"; done
	sent 0 3
	mkmodel other -n 1000 -s 9
	cp m1 h
	# without a marker the hash of the model says which patches it needs
	exits 0 catch-up.sh h sent far
	same h m3
	sent 3 5
	cp h h3
	exits 0 catch-up.sh h sent
	same h m5
	exits 0 catch-up.sh h sent far
	same h m5
	# the marker has a later step than all patches
	ace-diff -s 9 m5 m5 | ace-patch h
	exits 0 catch-up.sh h sent far
	# a model that no patch fits stays, and gets the newest whole model
	for i in 1 2; do
		cp other h
		exits 5 catch-up.sh h sent far
		says "h' is model [0-9a-f]{32}.*whole model"
		same h other
		rm -rf h.ace-patch
	done
	rm sent/00000[12].aceg
	ace-diff -s 3 m3 >sent/000003.whole
	exits 0 catch-up.sh h sent far
	same h m5
	[ ! -s err ]
	# a backup, with the marker of a newer model
	cp h3 h
	exits 0 catch-up.sh h sent far
	same h m5
	# the connection ends between two patches
	cp m3 h
	rm -r h.ace-patch sent/00000[123].*
	export SENDS=$(($(wc -c <sent/000004.aceg)))
	refuses 4 "h' has step 4, not 000005: try again" catch-up.sh h sent cuts
	exits 0 catch-up.sh h sent far
	same h m5
	# a newer whole model without a patch to it
	ace-diff -s 6 other >sent/000006.whole
	exits 0 catch-up.sh h sent
	same h other
	mkdir hs
	cp h3 hs/model.safetensors
	exits 0 catch-up.sh hs sent
	# it is sent again only if the host's model has changed, and only once
	echo {} >hs/config.json
	exits 0 catch-up.sh hs sent
	: >sent/000006.whole
	exits 0 catch-up.sh hs sent
	exits 0 catch-up.sh h sent far
	cp h3 h
	exits 3 catch-up.sh h sent far
	# no model, no patches, no connection
	refuses 4 "copy a whole model there first" catch-up.sh absent sent far
	refuses 4 "'.' of the trainer has no patch for step 6: expected files such as" catch-up.sh h . far
	exits 4 catch-up.sh h sent false
	exits 2 catch-up.sh h
	# more names than a command line may have
	seq -f 'sent/%0230.f.aceg' 6 700 | xargs touch
	ace-diff -s 999 m3 m5 >sent/000999.aceg
	exits 0 catch-up.sh h sent far
	same h m5
}
