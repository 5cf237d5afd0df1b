# Files that programs write, replace or read: their owners, temporary files that remain, and
# file systems that refuse a call.
load helper

# fails CALL ERROR CMD...: run CMD under strace, which makes the system call CALL fail
fails() {
	local call=$1 why=$2
	shift 2
	strace -f -qq -o /dev/null -e "trace=$call" -e "inject=$call:error=$why" "$@"
}

# given: write shards to `in', and step 0 to m.safetensors
given() {
	mkshards -n 40k -g 1k >in
	exits 0 ace-export --step 0 -o m.safetensors in
}

@test "a file that -o replaces keeps its mode, whatever the umask" {
	local n=0 programs=("ace-export --step 0" "ace-compress -c q8" "ace-cut")
	given
	for mask in 022 077 000; do
		umask $mask
		for mode in 600 640 664 400 755; do
			rm -f x
			echo >x
			chmod $mode x
			# the programs take turns, since they write with different functions
			exits 0 ${programs[n++ % 3]} -o x in
			[ "$(stat -c %a x)" = $mode ] || { ls -l x; return 1; }
			[ "$(wc -c <x)" -gt 1 ]
		done
		rm x
		exits 0 ace-cut -o x in
		[ "$(stat -c %a x)" = "$(printf %o $((0666 & ~0$mask)))" ]
	done
}

@test "if root replaces another user's file, owner, group and ACL stay" {
	[ "$(id -u)" -eq 0 ] || skip "needs root"
	given
	echo >x
	chown 65534:65533 x
	chmod 640 x
	exits 0 ace-cut -o x in
	[ "$(stat -c '%u:%g %a' x)" = "65534:65533 640" ]
	# in a directory with the set-group-ID bit
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

@test "if the group cannot be kept, the new group gets no more rights than everybody" {
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

@test "an output that is also an input is refused, and the file stays unchanged" {
	given
	mkdir run
	cp in run/a.aceg
	for c in "ace-cut" "ace-compress -c f32" "ace-expand" "ace-score" "ace-inspect" \
	    "ace-export --step 0" "ace-archive create" "ace-meter" \
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
	# an existing or a new output file in the directory that is read
	for c in "ace-cut" "ace-archive create" "ace-inspect"; do
		got=0
		timeout "$HANG" $c run >>run/a.aceg 2>err || got=$?
		[ "$got" -eq 2 ]
		same run/a.aceg in
		got=0
		timeout "$HANG" $c run >run/z.aceg 2>err || got=$?
		[ "$got" -eq 2 ]
		rm run/z.aceg
	done
	# an output that is also a model
	cp m.safetensors f
	got=0
	ace-diff f m.safetensors >>f 2>err || got=$?
	[ "$got" -eq 2 ]
	same f m.safetensors
	cp in f
	exits 0 ace-cut --omit provenance -o f f
	exits 0 ace-inspect verify f
	# a device may be both input and output
	ace-cut in </dev/null >/dev/null
}

# left: print the number of temporary files
left() { find . -name '*.new-*' | wc -l; }

# ended SIG CMD...: send SIG to CMD when it has begun a file and waits for input; check that
# it ends and leaves no file
ended() {
	local sig=$1 got=0
	shift
	rm -f pipe
	mkfifo pipe
	# background jobs of a shell ignore these signals
	perl -e '$SIG{$_} = "DEFAULT" for qw(INT TERM HUP); exec @ARGV' "$@" <pipe >out 2>err 3>&- &
	exec 9>pipe
	head -c 100000 in >&9
	while [ "$(left)" -eq 0 ] && kill -0 $!; do sleep 0.01; done
	kill -"$sig" $!
	wait $! || got=$?
	exec 9>&-
	[ "$got" -eq $((128 + $(kill -l "$sig"))) ] || { echo "$sig: $got"; cat err; return 1; }
	# one of ace-recv's two processes may end a little later
	wait_for gone || { echo "$sig $*"; find . -name '*.new-*'; return 1; }
}
gone() { [ "$(left)" -eq 0 ]; }

@test "a signal removes the unfinished file" {
	given
	for sig in INT TERM HUP; do
		ended $sig ace-cut -o x
		ended $sig ace-compress -c q8 -o x
		ended $sig ace-compress -c q8 -S state
		ended $sig ace-export --step 0 -o x.safetensors
		ended $sig ace-recv --spool spool
		[ ! -e x ]
	done
	# a program that was started with a signal ignored continues
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

@test "a FIFO in place of a regular file is refused, without waiting" {
	given
	mkdir d
	mkfifo d/model.safetensors.index.json d/1.safetensors
	exits 3 timeout "$HANG" ace-diff d d
	says "d/model.safetensors.index.json' is not a regular file"
	rm d/model.safetensors.index.json
	echo '{"weight_map":{"data":"1.safetensors"}}' >d/model.safetensors.index.json
	refuses 3 "d/1.safetensors' is not a regular file" timeout "$HANG" ace-diff d d
}

@test "a directory that cannot be synced is ignored, but EIO is an error" {
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
	# EINVAL, EOPNOTSUPP, ENOSYS, EBADF and ENOENT are ignored; EIO is not
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
		dirs ace-patch p <step.patch
	done
	# a failed sync of a file is never ignored
	refuses 4 "Invalid argument" fails fsync EINVAL ace-cut -o x in
}

@test "a directory that is writable but not readable" {
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
	exits 0 "${user[@]}" ace-compress -S box/st -c q8 in	# the same step again
	[ "$(ls box)" = "st
x
x.safetensors" ]
}

@test "a directory that cannot be exchanged is refused, and patched in place" {
	needs strace
	sanitized && skip "a leak checker and strace exclude each other"
	mkmodel old -n 1000 -f 3
	mkmodel new -n 1000 -f 3 -s 1
	exits 0 ace-diff -o step old new
	for fault in EINVAL EXDEV EBUSY; do
		cp -r old d
		exits 5 fails renameat2 $fault ace-patch d <step
		says "cannot be exchanged with another file or directory \\(.*use --in-place"
		[ "$(ls d.ace-patch)" = lock ]
		diff -r d old
		exits 0 ace-patch --in-place d <step
		diff -r d new
		rm -rf d d.ace-patch
	done
}

@test "a model in a lower layer of overlayfs is patched in place only" {
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
	    ace-patch --stage mnt/all/d <step
	    ace-patch --commit mnt/all/d 2>says || echo $? >staged
	    diff -r mnt/all/d old
	    ace-patch --in-place mnt/all/d <step
	    diff -r mnt/all/d new'
	[ ! -e none ] || skip "no overlay here"
	[ "$(cat staged)" = 5 ]
	grep -q -e "use --in-place" says
}
