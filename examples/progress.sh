# shellcheck shell=bash disable=SC2154 # name, steps: set by who reads this
# How far a training run is, on standard error: read by pipes.sh and demo-hosts.sh
# with ".".  On a terminal it is one line that changes; elsewhere, in a pipe or a
# log, a line at a time, PROGRESS seconds after the one before (8).
every=${PROGRESS:-8} told=$SECONDS

on_screen() { [ -t 2 ] && [ "${TERM:-dumb}" != dumb ]; }

# far FILE FROM: the step and the loss that the trainer writes into FILE, and
# how many seconds are left, if it goes on as since second FROM
far() {
	local step=0 loss=- left=
	[ ! -s "$1" ] || read -r step loss <"$1"
	[ "$step" -eq 0 ] ||
	    left=", $(((SECONDS - $2) * (steps - step) / step)) s left"
	printf 'step %d of %d, loss %s%s' "$step" "$steps" "$loss" "$left"
}

# tell WHAT FILE FROM: that, if it is time
tell() {
	if on_screen; then
		printf '\r%s: %s\033[K' "$1" "$(far "$2" "$3")" >&2
	elif [ $((SECONDS - told)) -ge "$every" ]; then
		told=$SECONDS
		printf '%s: %s\n' "$1" "$(far "$2" "$3")" >&2
	fi
}

# the line on the screen goes
untell() { ! on_screen || printf '\r\033[K' >&2; }

# what is shown while it runs ends
hide() { untell; }

# status=N die WHY: ends with that status (1)
die() {
	# what fails next is said no more: this may be where nobody would read it
	trap '' USR1
	hide
	echo "$name: $*" >&2
	[ ! -s "${work:-}/stderr" ] || head -n 20 "$work/stderr" >&2
	exit "${status:-1}"
}

{ : 3>&1; } 2>/dev/null || status=4 die 'standard output is closed'
