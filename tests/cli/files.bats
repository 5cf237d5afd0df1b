# Files that are made, replaced or read: their owner, leftovers, and what a file system may
# refuse.
load helper

# fails CALL ERROR CMD...: run CMD while CALL fails, by a fault that strace injects
fails() {
	local call=$1 why=$2
	shift 2
	strace -f -qq -o /dev/null -e "trace=$call" -e "inject=$call:error=$why" "$@"
}

# given: make m.safetensors, and shards of it
given() {
	mkshards -n 40k -g 1k >in
	exits 0 ace-export --step 0 -o m.safetensors in
}

@test "what -o replaces keeps its mode, whatever the umask" {
	local n=0 programs=("ace-export --step 0" "ace-compress -c q8" "ace-cut"
	    "ace-archive create --format tar")
	given
	for mask in 022 077 000; do
		umask $mask
		for mode in 600 640 664 400 755; do
			rm -f x
			echo >x
			chmod $mode x
			# programs that write by other functions, in turn
			exits 0 ${programs[n++ % 4]} -o x in
			[ "$(stat -c %a x)" = $mode ] || { ls -l x; return 1; }
			[ "$(wc -c <x)" -gt 1 ]
		done
		rm x
		exits 0 ace-cut -o x in
		[ "$(stat -c %a x)" = "$(printf %o $((0666 & ~0$mask)))" ]
	done
}

@test "root replaces another user's file: the owner, the group and the ACL stay" {
	[ "$(id -u)" -eq 0 ] || skip "needs root"
	given
	echo >x
	chown 65534:65533 x
	chmod 640 x
	exits 0 ace-cut -o x in
	[ "$(stat -c '%u:%g %a' x)" = "65534:65533 640" ]
	# in a directory that sets the group of its files
	mkdir d
	chgrp 65533 d
	chmod 2755 d
	echo >d/x
	chgrp 0 d/x
	chmod 640 d/x
	exits 0 ace-cut -o d/x in
	[ "$(stat -c '%u:%g %a' d/x)" = "0:0 640" ]
	command -v setfacl >/dev/null || return 0
	chown 0:0 x
	setfacl -m u:65534:rw,g::-,m::rw x || skip "no ACLs here"
	getfacl -cn x >was
	exits 0 ace-cut -o x in
	getfacl -cn x >now
	same was now
}

@test "who may not give the group away opens the file to nobody else" {
	[ "$(id -u)" -eq 0 ] || skip "needs root"
	needs setpriv
	given
	mkdir -m 777 box
	echo >box/x
	chown 65533:65533 box/x
	chmod 664 box/x
	chmod 755 .
	user=(setpriv --reuid 65534 --regid 65534 --clear-groups)
	"${user[@]}" test -x "$BUILD/ace-cut" -a -r in || skip "nobody may look here"
	"${user[@]}" ace-cut -o box/x in
	[ "$(stat -c '%u:%g %a' box/x)" = "65534:65534 644" ]
}

@test "output that is input, too: refused, the file as it was" {
	given
	mkdir run
	cp in run/a.aceg
	for c in "ace-cut" "ace-compress -c f32" "ace-expand" "ace-score" "ace-inspect" \
	    "ace-export --step 0" "ace-archive create --format tar" "ace-meter" \
	    "ace-aggregate" "ace-import -d e -r r -s 1 -f safetensors"; do
		from=in
		[[ $c != ace-import* ]] || from=m.safetensors
		for way in name stdin; do
			cp $from f
			got=0
			if [ $way = name ]; then
				timeout "$HANG" $c f >>f 2>err || got=$?
			else
				timeout "$HANG" $c <f >>f 2>err || got=$?
			fi
			[ "$got" -eq 2 ] || { echo "$c $way: $got"; cat err; return 1; }
			says "is both input and standard output"
			same f $from
		done
	done
	# output to a file in the directory that is read: to an existing file, and to a new one
	for c in "ace-cut" "ace-archive create --format tar" "ace-inspect"; do
		got=0
		timeout "$HANG" $c run >>run/a.aceg 2>err || got=$?
		[ "$got" -eq 2 ]
		same run/a.aceg in
		got=0
		timeout "$HANG" $c run >run/z.aceg 2>err || got=$?
		[ "$got" -eq 2 ]
		rm run/z.aceg
	done
	# an output that is the same file as a model, a patch or an index
	cp m.safetensors f
	got=0
	ace-diff f m.safetensors >>f 2>err || got=$?
	[ "$got" -eq 2 ]
	same f m.safetensors
	# replacing a file that was read is allowed
	cp in f
	exits 0 ace-cut --omit provenance -o f f
	exits 0 ace-inspect verify f
	# a device as input and output is not refused: only regular files matter
	ace-cut in </dev/null >/dev/null
}

# left: print the number of temporary files
left() { find . -name '*.new-*' | wc -l; }

# ended SIG CMD...: check that SIG ends CMD, which has begun a file and waits for input, and
# that CMD leaves nothing
ended() {
	local sig=$1 got=0
	shift
	rm -f pipe
	mkfifo pipe
	# a shell's & sets these signals to be ignored
	perl -e '$SIG{$_} = "DEFAULT" for qw(INT TERM HUP); exec @ARGV' "$@" <pipe >out 2>err 3>&- &
	exec 9>pipe
	head -c 100000 in >&9
	while [ "$(left)" -eq 0 ] && kill -0 $!; do sleep 0.01; done
	kill -"$sig" $!
	wait $! || got=$?
	exec 9>&-
	[ "$got" -eq $((128 + $(kill -l "$sig"))) ] || { echo "$sig: $got"; cat err; return 1; }
	# ace-recv has two processes, and one of them ends the other
	wait_for gone || { echo "$sig $*"; find . -name '*.new-*'; return 1; }
}
gone() { [ "$(left)" -eq 0 ]; }

@test "what is ended by a signal leaves no file that it was writing" {
	given
	for sig in INT TERM HUP; do
		ended $sig ace-cut -o x
		ended $sig ace-compress -c q8 -o x
		ended $sig ace-compress -c q8 -S state
		ended $sig ace-export --step 0 -o x.safetensors
		ended $sig ace-recv --spool spool
		[ ! -e x ]
	done
	# a program that ignores a signal continues
	trap '' HUP
	mkfifo other
	ace-cut -o x <other 3>&- &
	exec 9>other
	head -c 100000 in >&9
	while [ "$(left)" -eq 0 ] && kill -0 $!; do sleep 0.01; done
	kill -HUP $!
	tail -c +100001 in >&9
	exec 9>&-
	wait $!
	exits 0 ace-inspect verify x
}

@test "a FIFO where a file is to be: refused at once" {
	given
	mkdir d
	mkfifo d/model.safetensors.index.json d/1.safetensors
	exits 3 timeout "$HANG" ace-diff d d
	says "d/model.safetensors.index.json' is not a regular file"
	rm d/model.safetensors.index.json
	echo '{"weight_map":{"data":"1.safetensors"}}' >d/model.safetensors.index.json
	refuses 3 "d/1.safetensors' is not a regular file" timeout "$HANG" ace-diff d d
}

@test "a file system that cannot sync a directory: done; what a disk lost is said" {
	needs strace
	given
	cat >nodir.c <<-'C'
		#define _GNU_SOURCE
		#include <dlfcn.h>
		#include <errno.h>
		#include <stdlib.h>
		#include <sys/stat.h>
		int fsync(int fd)
		{
			int (*sync)(int) = (int (*)(int))dlsym(RTLD_NEXT, "fsync");
			struct stat st;
			if (fstat(fd, &st) < 0 || !S_ISDIR(st.st_mode))
				return sync(fd);
			errno = atoi(getenv("WHY"));
			return -1;
		}
	C
	sanitized && skip "what stands before the C library"
	${CC:-cc} -shared -fPIC -o nodir.so nodir.c -ldl
	mkmodel old -n 1000
	mkmodel new -n 1000 -s 1
	exits 0 ace-diff -o step.patch old new
	# EINVAL, EOPNOTSUPP, ENOSYS, EBADF, ENOENT; EIO
	for why in 22 95 38 9 2 5; do
		want=0
		[ $why != 5 ] || want=4
		rm -rf st spool p
		dirs() { exits $want env WHY=$why LD_PRELOAD=./nodir.so "$@"; }
		dirs ace-export --step 0 -o x.safetensors in
		dirs ace-cut -o x in
		dirs ace-compress -S st -c q8 in
		dirs ace-recv --spool spool in
		rm -rf p p.ace-patch
		cp old p
		dirs ace-patch --way copy p <step.patch
	done
	# a failed sync of a file is never ignored
	refuses 4 "Invalid argument" fails fsync EINVAL ace-cut -o x in
}

@test "a folder that may be written but not read" {
	[ "$(id -u)" -eq 0 ] || skip "needs root"
	needs setpriv
	given
	mkdir -m 300 box
	chown 65534 box
	chmod 755 .
	user=(setpriv --reuid 65534 --regid 65534 --clear-groups)
	"${user[@]}" test -x "$BUILD/ace-cut" -a -r in || skip "nobody may look here"
	exits 0 "${user[@]}" ace-cut -o box/x in
	exits 0 "${user[@]}" ace-export --step 0 -o box/x.safetensors in
	exits 0 "${user[@]}" ace-compress -S box/st -c q8 in
	chmod 755 box
	chmod 300 box/st
	exits 0 "${user[@]}" ace-compress -S box/st -c q8 in    # sends the shard again
	[ "$(ls box)" = "st
x
x.safetensors" ]
}

@test "a directory that cannot be renamed, or not exchanged: said before anything is staged" {
	needs strace
	sanitized && skip "a leak checker and strace exclude each other"
	mkmodel old -n 1000 -f 3
	mkmodel new -n 1000 -f 3 -s 1
	exits 0 ace-diff -o step old new
	for fault in renameat2:EINVAL "?rename,?renameat:EXDEV"; do
		for how in --stage "--way copy"; do
			cp -r old d
			exits 5 fails "${fault%:*}" "${fault#*:}" ace-patch $how d <step
			says "its file system cannot exchange two directories \\("
			says "use --way in-place"
			[ "$(ls d.ace-patch)" = lock ]
			diff -r d old
			# the other way works
			exits 0 ace-patch --way in-place d <step
			diff -r d new
			rm -rf d d.ace-patch
		done
	done
}

@test "a model in a lower layer of overlayfs: in place, or refused at once" {
	unshare -m true 2>/dev/null || skip "a mount needs root"
	mkmodel old -n 1000 -f 3
	mkmodel new -n 1000 -f 3 -s 1
	exits 0 ace-diff -o step old new
	mkdir mnt
	exits 0 unshare -m sh -ec 'mount -t tmpfs none mnt
	    mkdir mnt/low mnt/up mnt/work mnt/all
	    cp -r old mnt/low/d
	    mount -t overlay none mnt/all -o lowerdir=mnt/low,upperdir=mnt/up,workdir=mnt/work ||
	        { touch none; exit 0; }
	    touch x
	    ace-patch --stage mnt/all/d <step 2>says || echo $? >staged
	    ! ace-patch --commit mnt/all/d
	    diff -r mnt/all/d old
	    ace-patch mnt/all/d <step
	    diff -r mnt/all/d new'
	[ ! -e none ] || skip "no overlay here"
	[ "$(cat staged)" = 5 ]
	grep -q -e "use --way in-place" says
}
