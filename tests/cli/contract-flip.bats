# Every program, as in contract.bats: input that something changed on its way.

load helper
load contract_ask

# bats test_tags=plain
@test "one byte flipped in every frame: status 3" {
	ask flip "filter sink report answer"
}

# bats test_tags=long
@test "the same at each of these bytes" {
	ask flip "filter sink report answer"
}

@test "damage by a terminal has a message of its own" {
	ask terminal_damage "filter sink report answer"
}
