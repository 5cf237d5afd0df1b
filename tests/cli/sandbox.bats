# What a program can still do once its command line is read: an intruder, code
# that runs in it, finds out.
load helper

# intruder CMD...: of what it tries, a word each, what it could do; `in' is the
# operand
intruder() {
	ACE_INTRUDER_READ=secret ACE_INTRUDER_WRITE=made ACE_INTRUDER_CHANGE=in \
	    ACE_INTRUDER_FOLDER="${folder-folder}" LD_PRELOAD="$(preload intruder.so)" "$@" >out 2>err || true
	sed -n 's/^intruder: \([a-z]*\) yes$/\1/p' err | paste -sd ' '
}

# Temporary files have a directory that is none of the test's others: all of it
# is allowed.
sandbox_temp() {
	mkdir -p temp
	export TMPDIR=$PWD/temp
}

# What Landlock leaves open before its version 6, on Linux 6.12.
signals() {
	if ace-score -vv </dev/null 2>&1 | grep -qE 'Landlock [1-5] '; then
		echo signals
	fi
}

# A build with sanitizers or counters has no sandbox, and says that.
none() {
	ace-score -vv </dev/null 2>&1 | grep -q 'sandbox: none, this build'
}

@test "it is in force on this machine, and says so" {
	if none; then
		exits 4 ace-score --sandbox require </dev/null
		says 'is not to be had: none, this build has no sandbox'
		return
	fi
	ace-score -vv </dev/null 2>err || true
	says 'sandbox: Landlock [0-9]+ and seccomp$'
	exits 3 ace-score --sandbox require </dev/null
	says 'truncated: empty input'
	exits 2 ace-score --sandbox perhaps </dev/null
	exits 3 ace-score --sandbox off -vv </dev/null
	says 'sandbox: off$'
}

@test "half of it is less than what was required" {
	none && return
	export LD_PRELOAD ACE_NOFILTER=1
	LD_PRELOAD=$(preload)
	exits 4 ace-score --sandbox require </dev/null
	says 'is not to be had: Landlock alone$'
	exits 3 ace-score -vv </dev/null
	says 'sandbox: Landlock alone$'
}

@test "without it an intruder does all, with it nothing" {
	sandbox_temp
	local signals
	signals=$(signals)
	echo x >secret
	mkshards -N 1 >in
	all="reads writes changes folders listens sends starts signals"
	[[ "$(intruder ace-score --sandbox off in)" = "$all"?(" detours") ]]
	rm -r made folder
	none && return
	[ "$(intruder ace-score in)" = "$signals" ]
	[ ! -e made ]
	[ "$(intruder ace-score <in)" = "$signals" ]
}

@test "with -o it can write where that is, and with -S there; no more" {
	sandbox_temp
	echo x >secret
	mkshards -N 1 >in
	mkdir there st
	none && return
	local signals
	signals=$(signals)
	# beside the output only files
	[ "$(folder=there/folder intruder ace-score -o there/out in)" = "$signals" ]
	[ -s there/out ]
	[ ! -e there/folder ]
	[ "$(ACE_INTRUDER_WRITE=x intruder ace-compress -c q8 -S st in)" = \
	    "$signals" ]
	[ -s st/residual ]
	# what is in the directory of its own it can have
	echo x >st/secret
	ACE_INTRUDER_READ=st/secret ACE_INTRUDER_WRITE=st/made \
	    LD_PRELOAD="$(preload intruder.so)" ace-compress -c q8 -S st in >out 2>err
	says 'reads yes'
	says 'writes yes'
	says 'listens no'
	says 'starts no'
}

@test "files are found as without it: links, pipes, many operands, new directories" {
	mkshards -N 1 >in
	ln -s in link
	ace-score link >a
	ace-score in >b
	same a b
	ace-score <(cat in) >c
	same a c
	mkdir d e
	ln -s ../e/out d/out
	ace-score -o d/out in
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
