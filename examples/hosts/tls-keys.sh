#!/bin/sh
# Make your own certificate authority, and a certificate for each name:
#
#   tls-keys.sh NAME...            # ca.pem, and NAME.pem and NAME.key for each
#
# An edge gets ca.pem and its own two files; ca.key stays where it is.
set -eu
for name; do
	# in a certificate a slash or a comma would begin another attribute
	case $name in ca | '' | [-.]* | *[!A-Za-z0-9._-]*)
		echo "tls-keys.sh: NAME '$name' is not valid: expected 1 or more letters, digits," \
		    "'.', '_' or '-', beginning with a letter, digit or '_', and not 'ca'" >&2
		exit 2
		;;
	esac
done
curve='-newkey ec -pkeyopt ec_paramgen_curve:prime256v1'

# shellcheck disable=SC2086 # word splitting is intended
[ -e ca.pem ] || openssl req -x509 $curve -nodes -days 3650 \
    -subj "/CN=ace" -keyout ca.key -out ca.pem
for name; do
	# shellcheck disable=SC2086 # word splitting is intended
	openssl req $curve -nodes -subj "/CN=$name" -addext \
	    "subjectAltName=DNS:$name" -keyout "$name.key" -out "$name.csr"
	openssl x509 -req -in "$name.csr" -CA ca.pem -CAkey ca.key \
	    -CAcreateserial -days 365 -copy_extensions copy -out "$name.pem"
	rm "$name.csr"
done
