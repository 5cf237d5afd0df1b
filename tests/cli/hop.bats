# tests/hop measures for make bench.  It must notice a program that does less work on its
# second call.
# bats file_tags=plain
load helper

# work: take some CPU time and print 3
work() {
	local i
	for ((i = 0; i < 200000; i++)); do :; done
	echo 3
}

# once CMD...: print the output of CMD; later calls print the saved output
once() {
	[ -s kept ] || "$@" >kept
	cat kept
}
# nap: advance hop's clock, which stands still otherwise, by days
nap() { echo >>later; echo 3; }
export -f work once nap

# If the machine is busy during the first of two tries alone, the second try seems to do less
# work, and hop refuses the row: try again.
@test "a row has the times, the status and the output of the command" {
	tries 8 exits 0 hop -n 2 -b 1000 -w 'tr 3 4' 'the row' work work
	grep -qE '^the row( +[0-9.]+){6} +2 +0 4$' out
}

@test "a command that prints a saved result is an error" {
	refuses 1 'cheat: try 2 took .* it did less' hop cheat 'once work' work
	[ ! -s out ]
}

@test "two tries with other bytes, another status or other messages are an error" {
	refuses 1 'try 2 gave .* the first' hop bytes 'echo x >>n; wc -c <n' true
	refuses 1 'try 2 gave 4 bytes, .* the first 2' hop more 'echo x >>m; cat m' true
	exits 1 hop status '[ ! -e was ] || exit 3; touch was' true
	says 'try 2 gave 0 bytes, status 3, .* status 0'
	exits 1 hop -w 'echo x >>line; wc -c <line' line 'echo x' true
	says 'try 2 gave .*, 4, the first .*, 2'
}

@test "a command or a preparation that fails is an error" {
	refuses 1 failed hop failed 'exit 3' true
	exits 1 hop peer true 'exit 3'
	exits 1 hop -p false before true true
	exits 1 hop -w false say true true
	exits 2 hop nothing
}
