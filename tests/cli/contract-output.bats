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

@test "the reader is gone: SIGPIPE, or status 4 without a message" {
	ask reader_gone
}

@test "binary is not written to a terminal" {
	ask to_terminal
}

@test "short reads and writes, O_NONBLOCK: the same bytes" {
	ask transfer
}

# bats test_tags=long
@test "a reader that ends after any frame: no message" {
	ask leaves
}

@test "-o FILE: complete or absent" {
	ask output
}
