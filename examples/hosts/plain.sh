#!/bin/sh
# Read by the scripts beside it, none of which lets a word become a command.

# plain WHAT WORD [MORE]: a name that no shell reads as more, here or there
plain() {
	case $2 in
	'' | [-.]* | *[!A-Za-z0-9._${3-}-]*)
		echo "${0##*/}: $1: letters, digits, '.', '_' and '-' only" >&2
		exit 2
		;;
	esac
}

# count WHAT WORD: a number; what a shell calculates with may be a command, too
count() {
	case $2 in
	'' | 0* | *[!0-9]* | ???????*)
		echo "${0##*/}: $1: a number" >&2
		exit 2
		;;
	esac
}

# socat_word WORD: so that socat reads a comma, a quote or a blank of it as itself
socat_word() { printf %s "$1" | sed 's|[^A-Za-z0-9./_-]|\\&|g'; }
