# shellcheck shell=bash disable=SC2154 # name, steps: set by scripts that source this
# Show the progress of a training run on standard error; sourced by pipes.sh and
# demo-hosts.sh.  A terminal shows one line that changes; a pipe or a log gets a line
# every PROGRESS seconds (8).
every=${PROGRESS:-8} told=$SECONDS

on_screen() { [ -t 2 ] && [ "${TERM:-dumb}" != dumb ]; }

# far FILE FROM: print the step and the loss from the trainer's FILE, and the remaining
# seconds, from the speed since second FROM
far() {
	local step=0 loss=- left=
	[ ! -s "$1" ] || read -r step loss <"$1"
	[ "$step" -eq 0 ] ||
	    left=", $(((SECONDS - $2) * (steps - step) / step)) s left"
	printf 'step %d of %d, loss %s%s' "$step" "$steps" "$loss" "$left"
}

# tell WHAT FILE FROM: print WHAT and the output of far, if it is time
tell() {
	if on_screen; then
		printf '\r%s: %s\033[K' "$1" "$(far "$2" "$3")" >&2
	elif [ $((SECONDS - told)) -ge "$every" ]; then
		told=$SECONDS
		printf '%s: %s\n' "$1" "$(far "$2" "$3")" >&2
	fi
}

# untell: erase the line on the terminal
untell() { ! on_screen || printf '\r\033[K' >&2; }

# hide: end the display; pipes.sh replaces it
hide() { untell; }

# status=N die WHY: print WHY and exit with status N (1)
die() {
	# do not report later failures: nobody might read them
	trap '' USR1
	hide
	echo "$name: $*" >&2
	[ ! -s "${work:-}/stderr" ] || head -n 20 "$work/stderr" >&2
	exit "${status:-1}"
}

{ : 3>&1; } 2>/dev/null || status=4 die 'standard output is closed'
