# The output of every program, tested as in contract.bats.

load helper
load contract_ask

@test "no space left: status 4" {
	needs_full
	ask full
}

@test "standard output closed: status 4" {
	ask closed
}

@test "the reader is gone: SIGPIPE, or status 4 without a word" {
	ask reader_gone
}

@test "binary is not written to a terminal" {
	ask to_terminal
}

@test "short reads and writes, O_NONBLOCK: the same bytes" {
	ask transfer
}

# bats test_tags=long
@test "a reader that leaves at any frame: no word" {
	ask leaves
}

@test "-o FILE: whole or not at all" {
	ask output
}
