#!/bin/bash
# Read by train-cloud.sh, train-edge.sh and train-relay.sh beside it.

# again [WORD...]: `run WORD...', a whole training run in one pipeline, until it has
# ended well, which run says with `ends "${PIPESTATUS[@]}"'.  Its programs are a process
# group: they end when we are asked to, and before we do, so that the same line can be
# typed again at once.  None of them can ask anything at the terminal.
again() {
	local s
	set -m
	trap 'kill -- "-$!" 2>/dev/null; wait; exit 143' TERM INT HUP
	while :; do
		(
			# not before the last of them
			trap 'exit 143' TERM
			run "$@"
		) &
		wait "$!"
		s=$?
		case $s in [0245]) exit "$s" ;; esac
		echo "${0##*/}: broken, and again" >&2
		sleep 1
	done
}

ends() {
	# a wrong call does not get better
	[[ " $* " != *' 2 '* ]] || exit 2
	[[ $* != *[1-9]* ]] || exit 1
}
