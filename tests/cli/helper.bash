# Every .bats file loads this: it puts the programs of $BUILD into PATH, changes to an empty
# directory, and defines functions that check results.
if declare -F bats_require_minimum_version >/dev/null; then
	bats_require_minimum_version 1.5.0
fi

ROOT=$(cd "${BASH_SOURCE[0]%/*}/../.." && pwd)
: "${BUILD:=$ROOT/build}"
# some users have no sbin in their PATH
PATH=$BUILD:$BUILD/tests:$PATH:/usr/sbin:/sbin
# awk, sort and printf then behave the same everywhere; tests of other languages set
# LC_ALL themselves
LC_ALL=C.UTF-8
export BUILD PATH ROOT LC_ALL

# setup: change to an empty directory, and call the file's function `begins' if it has one
setup() {
	cd "$BATS_TEST_TMPDIR" || return
	! declare -F begins >/dev/null || begins
}

# exits N CMD...: check that CMD's status is N; write its output to the files out and err
exits() {
	local want=$1 got=0
	shift
	# CMD may read the last output, which is renamed first
	if [ "${!#}" = out ]; then
		mv out out.read
		set -- "${@:1:$#-1}" out.read
	fi
	"$@" >out 2>err || got=$?
	[ "$got" -eq "$want" ] && return
	case $got,$1 in
	124,timeout) echo "it waits for what does not come: $*" ;;
	*) echo "status $got, not $want: $*" ;;
	esac
	head -c 2000 err
	return 1
}

# makes FILE CMD...: check that CMD succeeds; write its output to FILE
makes() {
	exits 0 "${@:2}" && mv out "$1"
}

# says REGEX: check that a line of standard error of the last `exits' matches
says() {
	LC_ALL=C grep -qE -e "$1" err && return
	echo "no line like '$1' in:"
	head -c 2000 err
	return 1
}

# refuses N REGEX CMD...: check that CMD's status is N and that a message matches
refuses() {
	exits "$1" "${@:3}" && says "$2"
}

# notes REGEX CMD...: check that CMD succeeds and that a message matches
notes() {
	exits 0 "${@:2}" && says "$1"
}

# shows REGEX CMD...: check that CMD succeeds and that a line of its output matches
shows() {
	exits 0 "${@:2}" || return
	grep -q -e "$1" out && return
	echo "no line like '$1' in:"
	head -c 2000 out
	return 1
}

# same A B: check that the files have the same bytes
same() {
	cmp "$1" "$2" && return
	ls -l "$1" "$2"
	return 1
}

# thorough: fail in make check and make asan, which shorten long, uniform loops
thorough() { [[ ${HALF:-} != @(quick|asan) ]]; }

# once NAME CMD...: run CMD in an empty directory, once for all tests of this file with the
# same NAME, and copy what it made to the test's directory
once() {
	local made=$BATS_FILE_TMPDIR/$1
	[ -d "$made" ] || {
		mkdir "$made.new"
		(cd "$made.new" && "${@:2}")
		mv "$made.new" "$made"
	}
	cp -r "$made/." .
}

# mkmodel DIR-OR-FILE OPTION...: write a model without our programs
mkmodel() { "$ROOT/tests/mkmodel" "$@"; }

# each_of N: succeed the first and then every Nth time; if thorough, always
turn=0
each_of() { thorough || [ $((turn++ % $1)) -eq 0 ]; }

# upto N: print 1 to N; unless thorough, omit some, and more of the larger ones
upto() {
	awk -v n="$1" -v less="$(thorough || echo 1)" 'BEGIN {
	    for (i = 1; i <= n; i += less ? 1 + int(i / 8) : 1) print i }'
}

# No test may depend on the machine's speed.  A wait of more than HANG seconds is a hang: 300
# on a quiet machine, times the load per processor, and times five in slow builds.  HANG is
# less than the limit of tests/run, whose message cannot name what a test waited for.
hang() {
	local load=0
	[ ! -r /proc/loadavg ] || read -r load _ </proc/loadavg
	load=$((${load%.*} / $(nproc) + 1))
	[ -z "$ACE_SANITIZED$REACHED" ] || load=$((5 * load))
	echo $((300 * load))
}
: "${HANG:=$(hang)}"
export HANG

# patient: triple HANG, for files in which a single command may take minutes
patient() {
	[ -n "$ACE_PATIENT" ] || export ACE_PATIENT=yes HANG=$((3 * HANG))
}

# wait_for CMD...: repeat CMD until it succeeds, for at most HANG seconds
wait_for() {
	local end=$((SECONDS + HANG))
	until "$@" >/dev/null 2>&1; do
		[ $SECONDS -lt $end ] || {
			echo "waited in vain: $*" >&2
			return 1
		}
		sleep 0.05
	done
}

# still CMD...: run CMD with a clock that stands still while the file `later' is empty
still() {
	: >>later
	LD_PRELOAD=$(preload) ACE_LATER=$PWD/later "$@"
}

# hears PID: succeed if PID is one of our programs and catches SIGUSR1, with which a user asks
# what it waits for.  The name is checked since, before exec, the shell catches it, too.
hears() {
	[[ $(cat "/proc/$1/comm") == ace-* ]] &&
	    grep -qE '^SigCgt:.*[2367abef][0-9a-f]{2}$' "/proc/$1/status"
}

# wait_of PID CMD...: do as wait_for CMD, but fail when process PID cannot make CMD succeed
# any more: it has ended, or waits for input in an empty pipe
wait_of() {
	local pid=$1
	shift
	idle() { "$@" || ! kill -0 "$pid" || asleep "$pid"; }
	wait_for idle "$@"
	"$@" || { echo "process $pid will not do it: $*"; return 1; }
}

# asleep PID: succeed if PID has read all of its input pipe and waits for more
asleep() {
	[ -p "/proc/$1/fd/0" ] || return 1
	perl -e 'for (glob "/proc/$ARGV[0]/task/*/stat") {
	    open(F, "<", $_) && <F> =~ /.*\) S / or exit 1 }
	    open(F, "+<", "/proc/$ARGV[0]/fd/0") or exit 1;
	    vec($r, fileno(F), 1) = 1; exit(select($r, undef, undef, 0) != 0)' "$1"
}

# tries N CMD...: check that CMD succeeds in one of N tries, for a CMD that may fail on a
# busy machine but never succeeds wrongly.  In a function CMD, join all commands with &&.
tries() {
	local n=$1 try
	shift
	for ((try = 1; try < n; try++)); do
		"$@" && return
		echo "# try $try: $*" >&2
	done
	"$@"
}

# cpu SECS CMD...: run CMD with a limit of SECS CPU seconds
cpu() (
	ulimit -t "$1"
	shift
	exec "$@"
)

# limits 'NAME VALUE, NAME VALUE...': write these lines to the spool's file of limits
limits() {
	mkdir -p -m 700 spool
	sed 's/, /\n/g' <<<"$1" >spool/limits
}

# limited LIMITS CMD...: run CMD with these limits
limited() {
	limits "$1"
	"${@:2}"
	rm spool/limits
}

# sent FILE N: succeed if FILE has at least N whole shards
sent() { [ "$(frames "$1" | grep -c SEND)" -ge "$2" ]; }

# larger FILE N: succeed if FILE has more than N bytes
larger() { [ "$(wc -c <"$1")" -gt "$2" ]; }

# flip FILE OFFSET [MASK]: flip the bits MASK (0x10) of the byte at OFFSET
flip() {
	perl -e 'open(F, "+<", $ARGV[0]) or die; binmode F; seek(F, $ARGV[1], 0);
	    read(F, $c, 1) == 1 or die; seek(F, $ARGV[1], 0);
	    print F chr(ord($c) ^ oct($ARGV[2] // "0x10")); close(F) or die' "$@"
}

# frames FILE: print "offset type" of each frame, without checks
frames() {
	perl -e 'local $/; binmode STDIN; $_ = <STDIN>;
	    for ($o = 0; $o + 64 <= length; $o += 64 + 8 * int(($n + 7) / 8)) {
		$n = unpack("V", substr($_, $o + 16, 4));
		$t = substr($_, $o + 4, 4);
		printf("%d %s\n", $o, $t =~ /^[A-Za-z]{4}$/ ? $t : "HEAD") }' <"$1"
}

# system: make a folder with this machine's programs but not ours, and print its name: the
# PATH for tests in which a program is missing
system() {
	mkdir "$BATS_TEST_TMPDIR/system"
	# if two programs have the same name, link the first
	find /usr/local/bin/ /usr/bin/ /bin/ -maxdepth 1 ! -type d \
	    ! -name ace ! -name 'ace-*' \
	    -exec ln -s -t "$BATS_TEST_TMPDIR/system" {} + 2>/dev/null || :
	echo "$BATS_TEST_TMPDIR/system"
}

# needs PROGRAM: skip the test if PROGRAM is missing
needs() { command -v "$1" >/dev/null || skip "no $1 here"; }

# has_torch: set PYTHON to one that has torch, or to `none' and fail
has_torch() {
	for PYTHON in python3 /usr/bin/python3 none; do
		"$PYTHON" -c 'import torch' 2>/dev/null && return
	done
	false
}

# needs_torch: set PYTHON to one that has torch, or skip the test
needs_torch() { has_torch || skip "no torch here (Debian's python3-torch)"; }

# needs_full: skip the test if there is no /dev/full
needs_full() { [ -c /dev/full ] || skip "no /dev/full here"; }

# sanitized: succeed if this build has asan, with which some tests cannot measure
sanitized() {
	[ -n "${ACE_SANITIZED:-}" ]
}

# literals: read a page on standard input, print its literal displays without roff escapes
literals() {
	sed -n '/^\.Bd -literal/,/^\.Ed/{/^\.Bd/d;s/^\.Ed$//;p}' |
	    sed -e 's/^\\&//' -e 's/\\-/-/g' -e "s/\\\\(aq/'/g" -e 's/\\(ga/`/g' \
	    -e 's/\\(ha/^/g' -e 's/\\(ti/~/g' -e 's/\\&//g' -e 's/\\e/\\/g'
}

# examples PAGE: print the commands in its EXAMPLES
examples() { sed -n '/^\.Sh EXAMPLES/,/^\.Sh /p' "$1" | literals; }

# prints SHOWN PRINTED: check that PRINTED has SHOWN's lines in order, perhaps with others
# between; lines may break elsewhere, and any number matches a number
prints() {
	perl -e 'sub text { open(my $f, "<", $_[0]) or die; local $/; $_ = <$f>;
		s/[0-9]+(\.[0-9]+)?(e[-+]?[0-9]+)?/0/g; $_ }
	    ($shown, $printed) = map { text($_) } @ARGV;
	    $printed =~ s/\s+/ /g; $bad = $at = 0;
	    for (split /\n/, $shown) {
		s/\s+/ /g; s/ $//;
		$k = index($printed, $_, $at);
		if ($k < 0) { print "not printed: $_\n"; $bad = 1 }
		else { $at = $k + length } }
	    exit $bad' "$1" "$2"
}

# has_lines FILE: check that FILE has each line of standard input, which must have at least
# one
has_lines() {
	local line n=0
	while IFS= read -r line; do
		n=$((n + 1))
		grep -qxF -e "$line" "$ROOT/$1" ||
		    { echo "not in $1: $line"; return 1; }
	done
	[ $n -gt 0 ]
}

# standard_inputs [MKSHARDS OPTIONS]: write the files that the EXAMPLES of the pages read
standard_inputs() {
	mkshards -d edge1 -x 1 "$@" >edge1.aceg
	mkshards -d edge2 -x 2 "$@" >edge2.aceg
	safetensors 0 >grad.safetensors
}

# safetensors [N]: print a safetensors file, made without our programs, of three tensors or of
# one with N values
# shellcheck disable=SC2120
safetensors() {
	perl -e 'binmode STDOUT; $n = $ARGV[0]; $b = 4 * $n;
	    $h = $n ? qq({"w":{"dtype":"F32","shape":[$n],"data_offsets":[0,$b]}})
	      : q({"embed":{"dtype":"F32","shape":[24,8],"data_offsets":[0,768]},)
	      . q("layer.weight":{"dtype":"F32","shape":[8,16],"data_offsets":[768,1280]},)
	      . q("layer.bias":{"dtype":"F32","shape":[16],"data_offsets":[1280,1344]}});
	    $h .= " " while length($h) % 8;
	    print pack("Q<", length $h), $h;
	    print pack("f<*", map { sin($_ * $_) / (1 + $_ % 7) } 1 .. $n || 336)' \
	    "${1:-0}"
}

# st HEADER [BYTES]: print a safetensors file with this header and BYTES bytes of values
st() {
	perl -e 'binmode STDOUT; print pack("Q<", length $ARGV[0]), $ARGV[0],
	    pack "C*", map { $_ & 127 } 1 .. ($ARGV[1] // 0)' "$@"
}

# preload [LIBRARY]: print the value of LD_PRELOAD for LIBRARY (default clip.so), by a link
# whose path has no blanks
# shellcheck disable=SC2120
preload() {
	local first=
	! sanitized || first="$(${CC:-cc} -print-file-name=libasan.so) "
	[ -L "$BATS_TEST_TMPDIR/${1:-clip.so}" ] || ln -s "$BUILD/tests/${1:-clip.so}" "$BATS_TEST_TMPDIR"
	echo "$first$BATS_TEST_TMPDIR/${1:-clip.so}"
}

# synced CMD...: write each path that CMD syncs to the file `synced', one per line
synced() {
	: >calls
	LD_PRELOAD=$(preload) ACE_READS=$PWD/calls \
	    CLIP_LOG=/dev/null "$@"
	sed -n 's/^fsync [0-9-]* *//p' calls | sed "s|^$PWD/||; s|^$PWD$|.|" >synced
}

# meanwhile N SHELL CMD...: stop CMD before its N-th call that changes or looks at a file
# (N = exchange: before it exchanges two names), let a shell run SHELL, and continue CMD.
# Return CMD's status; the file `stopped' exists if CMD was stopped.
meanwhile() {
	rm -f stopped
	# 2 and 1 are WUNTRACED and WNOHANG; loading POSIX would take most of the time
	perl -e '
	    my ($n, $do, $load, @cmd) = @ARGV;
	    my $pid = fork // die;
	    exec "env", "LD_PRELOAD=$load", "ACE_STOP=$n", @cmd if !$pid;
	    waitpid $pid, 2;
	    my $is = $?;
	    if (waitpid($pid, 1) == 0) {
	        system("set -e; : >stopped; $do") == 0 or die;
	        kill CONT => $pid;
	        waitpid $pid, 0;
	        $is = $?;
	    }
	    exit($is & 127 ? 128 + ($is & 127) : $is >> 8)' "$1" "$2" "$(preload)" "${@:3}"
}

# killed N CMD...: run CMD, and kill it at its N-th change of a file
killed() {
	ACE_KILL=$1 LD_PRELOAD=$(preload) "${@:2}"
}
