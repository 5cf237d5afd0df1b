# The sandbox of the programs: an intruder, code that is injected into a program, tries what
# it can still do after the command line was read.
load helper

# intruder CMD...: run CMD with the intruder; print what it could do, one word each
intruder() {
	ACE_INTRUDER_READ="${secret-secret}" ACE_INTRUDER_WRITE=made ACE_INTRUDER_CHANGE=in \
	    ACE_INTRUDER_FOLDER="${folder-folder}" LD_PRELOAD="$(preload intruder.so)" "$@" >out 2>err || true
	sed -n 's/^intruder: \([a-z]*\) yes$/\1/p' err | paste -sd ' '
}

# sandbox_temp: make a directory for temporary files, in which a program may do everything
sandbox_temp() {
	mkdir -p temp
	export TMPDIR=$PWD/temp
}

# none: succeed if this build has no sandbox, as with sanitizers
none() {
	ace-score -vv </dev/null 2>&1 | grep -q 'sandbox: none, this build'
}

@test "the sandbox is complete on this machine, and -vv says so" {
	if none; then
		exits 4 ace-score --sandbox require </dev/null
		says '--sandbox require: this build has no sandbox'
		return
	fi
	# also a file that an option names is read in it
	exits 3 ace-score -vv --schema /dev/null </dev/null
	says 'sandbox: Landlock [0-9]+ and seccomp$'
	refuses 3 'truncated: the input is empty' ace-score --sandbox require </dev/null
	exits 2 ace-score --sandbox perhaps </dev/null
	refuses 3 'sandbox: off$' ace-score --sandbox off -vv </dev/null
}

@test "--sandbox require refuses a sandbox that lacks seccomp" {
	none && return
	export LD_PRELOAD ACE_NOFILTER=1
	LD_PRELOAD=$(preload)
	exits 4 ace-score --sandbox require </dev/null
	says '--sandbox require cannot be met .sandbox: incomplete, seccomp cannot be used.: '
	refuses 3 'sandbox: incomplete, seccomp cannot be used$' ace-score -v </dev/null
	exits 3 ace-score </dev/null
	[ "$(grep -c sandbox err)" -eq 0 ]
	# a program that reads from a network reports an incomplete sandbox once, without -v
	mkshards -N 2 >in
	exits 0 ace-recv --spool spool in
	[ "$(grep sandbox err)" = 'ace-recv: sandbox: incomplete, seccomp cannot be used' ]
}

@test "without a sandbox the intruder can do everything, with it nothing" {
	sandbox_temp
	echo x >secret
	mkshards -N 1 >in
	all="reads writes changes folders listens sends starts signals"
	rest="types forks limits modes times attributes shares schedules worlds owns empties erases"
	# root in a container may be unable to make name spaces
	unshare -U true || rest=${rest/ worlds/}
	cp in kept
	done=$(intruder ace-score --sandbox off in)
	done=${done/ threads/}	# possible only for root, and only on some machines
	[ "${done/ detours/}" = "$all $rest" ] || { echo "$done"; return 1; }
	rm -r made folder
	cp kept in
	none && return
	[ -z "$(intruder ace-score in)" ]
	[ ! -e made ]
	same kept in
	[ -z "$(intruder ace-score <in)" ]
	# nor can the intruder with several threads, or in one of the two processes of ace-recv
	[ -z "$(intruder ace-compress -T 4 -c q8 in)" ]
	mkdir -m 700 spool
	[ -z "$(intruder ace-recv --spool spool in)" ]
	[ "$(grep -c '^intruder: signals no' err)" -eq 2 ]
}

@test "with -o the intruder can write beside the output, and with -S in the state" {
	sandbox_temp
	mkshards -N 1 >in
	mkdir there st
	echo x | tee secret >there/secret
	none && return
	# beside the output the intruder can make files, but read none and make no directories
	[ "$(secret=there/secret folder=there/folder intruder ace-score -o there/out in)" = "" ]
	[ -s there/out ]
	[ ! -e there/folder ]
	[ "$(ACE_INTRUDER_WRITE=x intruder ace-compress -c q8 -S st in)" = "" ]
	[ -s st/residual ]
	# in the state the intruder can read and write
	echo x >st/secret
	ACE_INTRUDER_READ=st/secret ACE_INTRUDER_WRITE=st/made \
	    LD_PRELOAD="$(preload intruder.so)" ace-compress -c q8 -S st in >out 2>err
	says 'reads yes'
	says 'writes yes'
	says 'listens no'
	says 'starts no'
}

@test "in the sandbox, links, pipes, many operands and new directories work" {
	mkshards -N 1 >in
	ln -s in link
	ace-score link >a
	ace-score in >b
	same a b
	ace-score <(cat in) >c
	same a c
	mkdir d e
	ln -s ../e/out d/out
	yes -- '-o none' | head -n 300 | xargs sh -c 'ace-score "$@" -o d/out in' -
	same a e/out
	ace-score -o /dev/stdout in | cat >f
	same a f
	ace-compress -c q8 -S new in >/dev/null
	[ -s new/residual ]
	for i in $(seq 300); do ln in "d/$i"; done
	ace-aggregate d/[0-9]* 2>err >g || cat err
	LC_ALL=C grep -c denied err && return 1
	true
}

# rows: print a line for each option of each program and command: the call, and its row of
# --help-rows
rows() {
	local c p k
	for c in "$ROOT"/cmd/*.c; do
		p=${c##*/} p=${p%.c}
		$p --help-rows | sed "s/^/$p\t/"
		[ "$p" = ace ] && continue	# its commands are programs
		for k in $($p --help-rows | sed -n 's/^command\t\([a-z]*\)\t.*/\1/p'); do
			$p "$k" --help-rows | sed "s/^/$p $k\t/"
		done
	done
}

@test "each option with a file has exactly the rights in this table" {
	rows >rows
	# columns: right, option, programs
	awk -F '\t' '$2 == "option" && $7 != "" {
		who[$7 " --" $3] = who[$7 " --" $3] ", " $1
	    } END { for (i in who) print i substr(who[i], 2) }' rows |
	    LC_ALL=C sort >got
	cat >want <<-'E'
	dir --cache ace-expand, ace-step
	dir --feedback ace-expand
	dir --output ace-archive extract
	dir --spool ace-aggregate, ace-inspect audit, ace-recv
	dir --state ace-ack, ace-compress, ace-edge, ace-expand, ace-inspect audit, ace-meter, ace-policy, ace-score, ace-step
	read --check ace-sign
	read --key ace-sign
	read --plan ace-select, ace-step
	read --schema ace-ack, ace-aggregate, ace-compress, ace-cut, ace-expand, ace-export, ace-inspect, ace-inspect list, ace-inspect brief, ace-inspect stats, ace-inspect verify, ace-inspect diff, ace-inspect audit, ace-policy, ace-recv, ace-score, ace-select, ace-sign, ace-step
	read --through ace-edge
	replace --output ace-archive create
	write --output ace-ack, ace-aggregate, ace-compress, ace-cut, ace-diff, ace-expand, ace-export, ace-import, ace-policy, ace-recv, ace-score, ace-select, ace-sign, ace-step
	E
	diff want got
	# no option that takes a file or directory lacks a right
	awk -F '\t' '$5 ~ /^(FILE|DIR|ARCHIVE|OTHER)/ && $7 == ""' rows >without
	diff /dev/null without
}

@test "the rights of each option are enough, in any directory" {
	sandbox_temp
	mkshards -N 1 >in
	mkshards -N 2 >other
	none || set -- --sandbox require
	exits 0 ace-inspect diff "$@" in in
	exits 0 ace-archive create "$@" -o run.tar in
	exits 0 ace-archive create "$@" -o run.tar run.tar other
	exits 0 ace-archive extract "$@" -o all run.tar
	[ "$(find all -name '*.aceg' | wc -l)" -eq 2 ]
	exits 0 ace-score "$@" -o scored in
	makes plan ace-select "$@" -b 20k --format text scored
	exits 0 ace-select "$@" --plan plan -o planned in
	exits 0 ace-compress "$@" --schema in -S st -o coded planned
	exits 0 ace-expand "$@" --cache history -o plain coded
	exits 0 ace-recv "$@" --spool spool -o receipts coded
	exits 0 ace-aggregate "$@" --spool spool --rounds 1 -o mean
	exits 0 ace-expand "$@" --feedback told -o plain mean
	exits 0 ace-policy "$@" --bandwidth 1Mbit -o decided in
	openssl genpkey -algorithm ed25519 -out key.pem
	echo "edge1 $(openssl pkey -in key.pem -pubout | sed '1d;$d')" >ring
	exits 0 ace-sign "$@" -k key.pem -o signed in
	exits 0 ace-sign "$@" --check ring signed
}
