# Every program treats its input and options in the same way, as contract.bash tests.
# contract_ask.bash has the table of programs.

load helper
load contract_ask

@test "every program is in the table" {
	for c in "$ROOT"/cmd/ace-*.c; do
		name=${c##*/}
		table | grep -qE " ${name%.c}( |$)" || { echo "$name"; false; }
	done
}

@test "good input: status 0, output, nothing on standard error" {
	ask good
}

@test "a file, standard input and - give the same output" {
	ask file
}

@test "concatenated streams are read as one stream, and a file to its end" {
	ask two "filter sink report answer"
}

@test "--help and --version: standard output, status 0" {
	ask help "filter sink source report answer table pipe look"
}

@test "a wrong option: standard error, status 2" {
	ask usage "filter sink source report answer table pipe look"
}

@test "binary is not read from a terminal" {
	ask from_terminal
}

@test "a missing file: status 4; a directory: 4, or 3 for programs that read directories" {
	ask missing
}

@test "a second file for a program that takes one: status 2, and its name" {
	ask one "filter sink report answer table pipe"
}

# bats test_tags=long
@test "the same input gives the same bytes, with every kernel" {
	# without the tables of ace-advise, which do not use the kernels
	ask same "filter sink source report answer"
}

# tests/damage tries each truncation and each bit flip.
@test "empty input is truncated: status 3" {
	ask empty
}

@test "garbage after the end: status 3" {
	ask garbage
}

@test "the conversion of line ends, as by a terminal, has a message of its own" {
	ask terminal_damage "filter sink report answer"
}
