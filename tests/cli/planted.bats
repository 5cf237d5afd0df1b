# Links, FIFOs and directories that another user made in place of states, spools and locks:
# programs do not follow them, and do not remove files that they did not make.
load helper

# other: skip unless files can be given to another user
other() {
	[ "$(id -u)" -eq 0 ] || skip "needs root, to have another user's files"
}

# victim: make the directory `mail', whose files have names that our programs remove, and a
# copy `was'
victim() {
	mkdir -m 700 mail mail/new mail/cur
	echo "a mail" >mail/new/1
	for f in history.1 history.2 ready redo marker lock closed spare scratch.new-abcdef; do
		echo mine >mail/$f
	done
	[ $# -eq 0 ] || chown -R "$1" mail
	cp -a mail was
}

# unharmed: check that the victim is unchanged
unharmed() { diff -r was mail && [ "$(ls -A mail)" = "$(ls -A was)" ]; }

models() {
	mkmodel old -n 100
	mkmodel new -n 100 -s 1
	ace-diff -s 7 old new >step.aceg
}

# calls DIR: print calls of all programs that use a state or a spool, with DIR in its place
calls() {
	cat <<-END
		ace-compress -S $1 -c q8 in
		ace-expand -S $1 in
		ace-score -S $1 in
		ace-policy -S $1 in
		ace-meter -S $1 in
		ace-ack -S $1 in
		ace-step -S $1 --bits 4 in
		ace-inspect audit -S $1 --spool $1 in
		ace-recv --spool $1 in
		ace-recv --spool $1 --create
		ace-recv --spool $1 --publish in
		ace-aggregate --spool $1 --rounds 1 --devices 1
	END
}

@test "another user's link in place of a state or a spool, in a directory open to everybody" {
	other
	models
	mkshards >in
	victim
	mkdir all
	ln -s ../mail all/s
	chown -h 65534 all/s
	# columns: mode of the directory, name of the link, programs to try
	while read -r mode name which; do
		chmod "$mode" all
		while read -r call; do
			exits 5 timeout "$HANG" $call </dev/null
			says "'all/s' is a symbolic link that another user made in a directory open to"
			unharmed
		done < <(calls "$name" | grep -E "$which")
	done <<-'END'
		1777 all/s   .
		777  all/s   ace-(compress|recv)
		1777 all/s/  ace-(compress|recv)
		1777 all/s// ace-(compress|recv)
	END
}

@test "the user's own link, or any link in a directory that is closed to others, is followed" {
	mkshards >in
	mkdir -m 700 state
	mkdir -m 1777 all
	ln -s ../state all/s
	exits 0 ace-compress -S all/s/ -c q8 in
	[ -e state/residual ]
	[ -h all/s ]
	# a link that belongs to nobody, in root's directory
	[ "$(id -u)" -eq 0 ] || return 0
	chmod 755 all
	chown -h 65534 all/s
	exits 0 ace-compress -S all/s -c q8 in
}

@test "another user's directory is refused" {
	other
	models
	mkshards >in
	victim 65534
	while read -r call; do
		exits 5 timeout "$HANG" $call </dev/null
		says "'mail' belongs to user 65534, but the program runs as user 0: run it as that user"
		unharmed
	done < <(calls mail)
	mv mail m.ace-patch
	cp old m
	refuses 5 "'m.ace-patch' belongs to user 65534" ace-patch m <step.aceg
	mv m.ace-patch mail
	unharmed
	same m old
}

@test "a directory that others can write to is refused" {
	models
	mkshards >in
	mkdir mail
	chmod 777 mail
	while read -r call; do
		exits 5 timeout "$HANG" $call </dev/null
		says "'mail' can be changed by other users"
	done < <(calls mail)
	mv mail m.ace-patch
	cp old m
	refuses 5 "'m.ace-patch' can be changed by other users" ace-patch m <step.aceg
	same m old
}

@test "a link in place of MODEL.ace-patch is refused, also the user's own" {
	models
	victim
	ln -s mail m.ace-patch
	for owner in "$(id -u)" 65534; do
		for how in "" --stage "--in-place"; do
			cp old m
			exits 5 ace-patch $how m <step.aceg
			says "'m.ace-patch' is a symbolic link made by user $owner, expected a directory: remove it"
			unharmed
			same m old
		done
		exits 5 ace-patch --commit m
		unharmed
		[ "$(id -u)" -eq 0 ] || break
		chown -h 65534 m.ace-patch
	done
}

@test "a directory MODEL.ace-patch with other files is refused, and they stay" {
	models
	for what in new lock.mbox; do
		cp old m
		mkdir -m 700 m.ace-patch m.ace-patch/$what
		echo "a mail" >m.ace-patch/$what/1
		for how in "" --stage "--in-place"; do
			exits 5 ace-patch $how m <step.aceg
			says "'m.ace-patch/$what' was not made by ace-patch.*move that directory away"
			[ "$(ls m.ace-patch)" = $what ]
			[ "$(cat m.ace-patch/$what/1)" = "a mail" ]
			same m old
		done
		rm -r m.ace-patch
	done
	# an empty directory is accepted
	mkdir -m 700 m.ace-patch
	exits 0 ace-patch m <step.aceg
	same m new
}

@test "cleaning a directory of ours does not follow links in it" {
	models
	victim
	cp old m
	exits 0 ace-patch m <step.aceg
	ln -s ../mail m.ace-patch/new
	cp old m
	exits 0 ace-patch m <step.aceg
	same m new
	unharmed
}

@test "a spool that is replaced by a link while ace-recv runs: the spool is used, not the link" {
	victim
	mkshards >in
	mkfifo slow
	ace-recv --spool spool <slow >out 2>err &
	exec {to}>slow
	until [ -e spool/.clients ]; do sleep .1; kill -0 $!; done
	mv spool away
	ln -s mail spool
	cat in >&$to
	exec {to}>&-
	wait $!
	unharmed
	[ -s away/0/edge1.aceg ]
}

@test "a FIFO, a directory or a link in place of a lock is refused" {
	models
	mkshards >in
	victim
	plant() {
		rm -rf "$1"
		case $2 in
		fifo) mkfifo "$1" ;;
		folder) mkdir "$1" ;;
		link) ln -s "$PWD/mail/lock" "$1" ;;
		esac
	}
	ace-compress -S state -c q8 in >coded
	ace-recv --spool spool <coded >/dev/null
	cp old m
	ace-patch m <step.aceg
	for what in fifo folder link; do
		[ $what = fifo ] && want=5 || want=4
		plant state/lock $what
		exits $want timeout "$HANG" ace-compress -S state -c q8 in
		says "'state/lock'"
		plant spool/.lock $what
		exits $want timeout "$HANG" ace-recv --spool spool <coded
		says "'spool/.lock'"
		plant m.ace-patch/lock $what
		exits $want timeout "$HANG" ace-patch m <step.aceg
		says "'m.ace-patch/lock'"
		unharmed
	done
}

@test "ace-aggregate --keep removes only its own files from an old step's directory" {
	for s in 0 1 2; do mkshards -s $s | ace-recv --spool spool >/dev/null; done
	mkdir spool/0/mail
	echo "a mail" >spool/0/mail/1
	echo mine >spool/0/notes
	exits 0 ace-aggregate --spool spool --devices 1 --rounds 3 --keep 1
	[ "$(ls -m spool/0)" = "mail, notes" ]
	[ "$(cat spool/0/mail/1)" = "a mail" ]
	[ ! -e spool/1 ]
}

# far: make a stand-in for `ssh HOST', which gives the words to a shell as ssh does
far() {
	mkdir bin
	printf '#!/bin/sh\nexec sh -c "$*"\n' >bin/far
	chmod +x bin/far
	PATH=$ROOT/examples/patches:$PWD/bin:$PATH
}

@test "receive.sh does not write through links" {
	models
	far
	mkdir m
	cp old m/model.safetensors
	victim
	echo "my key" >key
	for name in m.receive m.ace-patch; do
		[ $name = m.receive ] && want=4 || want=5
		for to in key mail; do
			rm -rf m.receive m.ace-patch
			ln -s "$to" $name
			exits $want receive.sh "$PWD/m" sglang http://127.0.0.1:9 <step.aceg
			[ "$(cat key)" = "my key" ]
			unharmed
		done
		rm -rf $name
		mkfifo $name
		exits $want timeout "$HANG" receive.sh "$PWD/m" sglang http://127.0.0.1:9 <step.aceg
		rm $name
	done
	exits 2 receive.sh m sglang http://127.0.0.1:9 <step.aceg
	exits 2 receive.sh "$PWD/m
x" sglang http://127.0.0.1:9 <step.aceg
	# curl gets the model's name unchanged
	printf '#!/bin/sh\nprintf "%%s\\n" "$@" >words\n' >bin/curl
	chmod +x bin/curl
	mv m 'm", "x": "\'
	exits 0 receive.sh "$PWD/m\", \"x\": \"\\" sglang '-o/x' <step.aceg
	grep -A1 -x -e -d words | tail -n 1 | python3 -c 'import json, os, sys
exit(json.load(sys.stdin) != {"model_path": os.getcwd() + "/m\", \"x\": \"\\"})'
	grep -qx -e --url words
}

@test "catch-up.sh: no shell interprets the names of models, here or on the trainer" {
	models
	far
	local name
	# the names of other files are not used
	mkdir from
	cp step.aceg from/000007.aceg
	touch 'from/000002.aceg;touch pwned' 'from/$(touch pwned).aceg' from/x.aceg
	for name in 'a b' 'a;touch pwned' 'a$(touch pwned)' "a'b" '-x' 'a"b' 'a\b' '*'; do
		each_of 3 || continue
		rm -rf d
		mkdir -p "d/$name"
		cp -r from "d/$name/sent"
		cp old "d/$name/m"
		exits 0 catch-up.sh "d/$name/m" "$PWD/d/$name/sent" far
		same "d/$name/m" new
		cp old "d/$name/m2"
		exits 0 catch-up.sh "d/$name/m2" "d/$name/sent"
		same "d/$name/m2" new
		[ -z "$(find . -name pwned)" ]
	done
}
