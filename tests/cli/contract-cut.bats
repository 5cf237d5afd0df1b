# Every program, as in contract.bats: input that ends too soon or too late.

load helper
load contract_ask

@test "empty input is truncated: status 3" {
	ask empty
}

# bats test_tags=plain
@test "cut at and inside every frame: status 3, truncated" {
	ask cut "filter sink report answer"
}

# bats test_tags=long
@test "the same at each of these places" {
	ask cut "filter sink report answer"
}

@test "garbage after the end: status 3" {
	ask garbage
}
