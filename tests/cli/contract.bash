# The checks that every program must pass.  contract*.bats runs them; a new program is one
# line in the table of contract_ask.bash.
#
# Each function takes KIND PROGRAM ARGUMENTS...
#   filter   stream in, stream out          sink    stream in, other data out
#   source   other data in, stream out      report  stream in, text out
#   answer   shards in, receipts out          table   a table in, text out
#   look     others: only help and usage      pipe    any bytes
# and finds good inputs in the files `in' (small), `next' (the step after it) and `big'
# (several MB).

# reads_streams, writes_streams, writes_data KIND: succeed if programs of this kind do
reads_streams() { [[ $1 != source && $1 != table ]]; }
writes_streams() { [[ $1 = filter || $1 = source || $1 = answer ]]; }
writes_data() { [[ $1 != report && $1 != table ]]; }

# Receipts contain the time, which is fixed here; a new spool gives the same receipts again.
export SOURCE_DATE_EPOCH=1000000000
anew() { rm -rf spool; exits 0 "$@"; }

# data_error PROG: check that its only message begins with one of the five words of status 3
data_error() {
	says "^$1: (corrupt|truncated|unsupported|limit|mismatch): "
	[ "$(wc -l <err)" -eq 1 ] || { cat err; return 1; }
}

# poisoned KIND: check that the next program refuses the output
poisoned() {
	writes_streams "$1" || return 0
	mv out poisoned
	if ace-inspect verify poisoned >/dev/null 2>verify; then
		echo "bad input, yet the output is a whole stream"
		return 1
	fi
}

contract_good() {
	shift
	exits 0 "$@" <in
	[ -s out ]
	[ ! -s err ] || { cat err; return 1; }
}

contract_file() {
	local kind=$1
	shift
	# the operand's name is in the provenance
	writes_streams "$kind" && set -- "$1" --omit provenance "${@:2}"
	anew "$@" <in
	mv out piped
	anew "$@" in </dev/null
	same out piped || [ "$kind" = report ]
	anew "$@" - <in
	same out piped
}

contract_one() {
	shift
	cp in other
	case $1 in
	ace-aggregate | ace-inspect | ace-cut) return 0 ;;	# take several files
	esac
	exits 2 "$@" in other
	says "^$1: found 2 files, 'in', 'other', but at most one is read$"
}

contract_empty() {
	local kind=$1
	shift
	exits 3 "$@" </dev/null
	if reads_streams "$kind"; then
		says "^$1: truncated: "
	fi
	data_error "$1"
	poisoned "$kind"
}

contract_garbage() {
	local kind=$1
	shift
	{ cat in; echo more; } >tailed
	exits 3 "$@" <tailed
	data_error "$1"
	poisoned "$kind"
}

contract_terminal_damage() {
	local kind=$1
	shift
	perl -pe 's/\r?\n/\r\r\n/g' <in >term
	exits 3 "$@" <term
	says "line endings in the head were changed, as by a terminal"
	perl -pe 's/\r\n/\n/g' <in >unix
	exits 3 "$@" <unix
	says "line endings in the head were changed, as by a terminal"
}

contract_two() {
	shift
	cat in next >two
	[ "$1" = ace-export ] && return
	{ exits 0 "$@" && cat >left; } <two
	[ -s out ] && [ ! -s left ]
}

contract_full() {
	shift
	local got=0
	"$@" <in >/dev/full 2>err || got=$?
	[ "$got" -eq 4 ] || { echo "status $got: $*"; cat err; return 1; }
	says "^$1: .*No space left"
	got=0
	"$1" --help >/dev/full 2>err || got=$?
	[ "$got" -eq 4 ]
}

contract_closed() {
	shift
	local got=0
	"$@" <in >&- 2>err || got=$?
	[ "$got" -eq 4 ] || { echo "status $got: $*"; cat err; return 1; }
}

contract_reader_gone() {
	# reports and receipts are so short that they fit into the pipe
	[[ $1 = report || $1 = answer ]] && return
	shift
	local got=0
	{ got=0; "$@" <big 2>err || got=$?; echo "$got" >status; } | head -c 100 >/dev/null
	[ "$(cat status)" -eq 141 ] || { cat status err; return 1; }
	[ ! -s err ]
	{ trap '' PIPE; got=0; "$@" <big 2>err || got=$?; echo "$got" >status; } |
	    head -c 100 >/dev/null
	[ "$(cat status)" -eq 4 ] || { cat status err; return 1; }
	[ ! -s err ] || { cat err; return 1; }
}

contract_help() {
	shift
	exits 0 "$1" --help
	grep -q "^usage: $1 " out
	[ ! -s err ]
	exits 0 "$1" -h
	exits 0 "$1" --version
	grep -qF "$1 (ace) " out
	ACE_KERNEL=ref exits 0 "$1" --version
	grep -qx "kernels ref" out
}

contract_usage() {
	shift
	exits 2 "$1" --no-such-option </dev/null
	says "^$1: .*--no-such-option"
	[ ! -s out ]
	exits 2 "$1" --hel </dev/null
	exits 2 "$1" -Z </dev/null
	says "^$1: "
	# the unknown kernel is refused before anything is read or written
	ACE_KERNEL=abacus exits 2 "$@" </dev/null
	says "^$1: ACE_KERNEL=abacus: this processor or build has no kernels of that name"
	[ ! -s out ] && [ ! -e spool ] && [ ! -e state ]
}

contract_to_terminal() {
	local kind=$1
	shift
	if writes_data "$kind"; then
		exits 2 pty "$@" <in 2>err
		says "^$1: .*terminal"
		[ ! -s out ] || { cat out; return 1; }
		exits 2 pty -i setsid -wc sh -c '"$@" -o /dev/tty <in' sh "$@"
		says "^$1: '/dev/tty' is a terminal"
	else
		exits 0 pty "$@" <in
	fi
}

contract_from_terminal() {
	shift
	exits 2 pty -i sh -c '"$@" >/dev/null' sh "$@"
	says "^$1: .*terminal"
	# a terminal that is opened by its name
	exits 2 timeout "$HANG" pty -i setsid -wc sh -c '"$@" /dev/tty >/dev/null' sh "$@"
	says "^$1: '/dev/tty' is a terminal"
}

contract_missing() {
	shift
	exits 4 "$@" nowhere.aceg
	says "^$1: .*'nowhere.aceg'.*No such file"
	mkdir -p folder
	# programs that read the streams in a folder
	case $1 in
	ace-inspect | ace-cut | ace-export | ace-aggregate)
		exits 3 "$@" folder
		says "^$1: mismatch: folder 'folder' has no stream"
		;;
	*)
		exits 4 "$@" folder
		says "^$1: .*'folder'.*directory"
		;;
	esac
}

# Short reads and writes, as with slow pipes, and O_NONBLOCK give the same bytes.
contract_transfer() {
	shift
	local pre
	pre=$(preload)
	anew "$@" <in
	mv out whole
	anew env LD_PRELOAD="$pre" ACE_CLIP=0 "$@" <in
	same out whole
	anew env LD_PRELOAD="$pre" ACE_CLIP=1 "$@" <in
	same out whole
	anew nonblock "$@" <in
	same out whole
}

# A second run and the reference kernels give the same bytes.
contract_same() {
	shift
	anew "$@" <big
	mv out once
	anew "$@" <big
	same out once
	anew env ACE_KERNEL=ref "$@" <big
	same out once
}

# The reader of the output ends after each frame in turn.
contract_leaves() {
	writes_streams "$1" || return 0
	shift
	local o got
	exits 0 "$@" <in
	frames out >list
	while read -r o _; do
		{ got=0; "$@" <in 2>err || got=$?; echo "$got" >status; } |
		    head -c "$((o + 1))" >/dev/null
		case $(cat status) in
		0 | 141) ;;
		*) cat status err; return 1 ;;
		esac
		[ ! -s err ] || { cat err; return 1; }
	done <list
}

# -o FILE writes the complete file or none, and leaves no temporary file.
contract_output() {
	writes_data "$1" || return 0
	local kind=$1 got=0
	shift
	writes_streams "$kind" && set -- "$1" --omit provenance "${@:2}"
	anew "$@" <in
	mv out plain
	mkdir made
	anew "$@" -o made/file <in
	[ ! -s out ]
	same made/file plain
	head -c 700 in >part
	exits 3 "$@" -o made/other <part
	exits 4 "$@" -o nowhere/file <in
	# a limit on file sizes acts as a full disk
	(trap '' XFSZ; ulimit -f 64; rm -rf spool; "$@" -o made/big <big 2>err) || got=$?
	[ "$got" -eq 4 ] || { echo "status $got"; cat err; return 1; }
	[ "$(ls made)" = file ] || { ls -la made; return 1; }
	echo old >made/other
	exits 3 "$@" -o made/other <part
	[ "$(cat made/other)" = old ]
	chmod 600 made/other
	anew "$@" -o made/other <in
	[ "$(stat -c %a made/other)" = 600 ]
}
