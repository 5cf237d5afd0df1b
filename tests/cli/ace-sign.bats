# Signatures: what they cover, which changes they reveal, and that openssl accepts them,
# with a hash from Python.
load helper

# identity NAME: make a key of device NAME in NAME.pem, and append its line to `ring'
identity() {
	openssl genpkey -algorithm ed25519 -out "$1.pem"
	chmod 600 "$1.pem"
	echo "$1 $(openssl pkey -in "$1.pem" -pubout -outform DER | base64)" \
	    >>ring
}

begins() { identity edge1; }

# one NAME [ARGS...]: write a shard of device edge1 to NAME, and the signed one to NAME.signed
one() {
	mkshards -d edge1 "${@:2}" -N 1 | ace-score --form paper >"$1"
	ace-sign -k edge1.pem "$1" >"$1.signed"
}

@test "a signed stream passes --check, and only signatures were added" {
	mkshards -d edge1 -N 3 | ace-score >in
	ace-sign --omit provenance -k edge1.pem in >signed
	ace-sign --check ring --omit provenance signed >out
	same signed out
	ace-inspect diff in signed
	exits 0 ace-sign --check ring -v signed
	[ "$(grep -c 'edge1/[0-2].: signed with ' err)" -eq 3 ]
	exits 0 ace-sign --check ring signed
	[ ! -s err ]
	mkshards -d edge1 -s 3 | ace-score | cat signed - >mixed
	exits 5 ace-sign --check ring mixed
	says "the shard of 'edge1', step 3, is not signed: let its device sign it"
	# signing again replaces the signature
	ace-sign --omit provenance -k edge1.pem signed >twice
	same signed twice
}

@test "openssl verifies the signature over the bytes that the page prescribes" {
	one a
	python3 "$ROOT/tests/decoder/signed" a.signed
	openssl pkey -pubin -inform DER -in a.signed.der -out public.pem
	openssl pkeyutl -verify -rawin -pubin -inkey public.pem \
	    -sigfile a.signed.sig -in a.signed.hash
	openssl pkey -in edge1.pem -pubout -outform DER | cmp - a.signed.der
	printf x | dd of=a.signed.hash bs=1 conv=notrunc status=none
	exits 1 openssl pkeyutl -verify -rawin -pubin -inkey public.pem \
	    -sigfile a.signed.sig -in a.signed.hash
}

@test "changed and removed values are detected although all checksums are correct" {
	one a
	for how in value drop; do
		tamper $how a.signed >bad
		ace-inspect bad >/dev/null
		exits 3 ace-sign --check ring bad
		says "mismatch: the signature with the key of 'edge1' does not fit the shard: one of them was changed"
		ace-inspect diff bad out >/dev/null 2>&1 && return 1
		exits 3 ace-inspect verify out
	done
	tamper note a.signed >bad
	refuses 3 'a frame follows the signature' ace-sign --check ring bad
	tamper scheme a.signed >bad
	refuses 3 'unsupported: signature scheme 2 is unknown' ace-sign --check ring bad
	tamper reserved a.signed >bad
	exits 3 ace-sign --check ring bad
	says 'corrupt: the signature has 104 bytes, of which bytes 4 to 7 are not zero, expected 104 with zeros'
}

@test "no replay: the signature depends on run, device, step and weight" {
	one a -s 5 -r run1
	one again -s 5 -r run1
	tamper from a.signed again.signed >same
	ace-sign --check ring same >/dev/null
	one run -s 5 -r run2
	one step -s 6 -r run1
	one weight -s 5 -r run1 -w 2
	for of in run step weight; do
		cmp -s a.signed $of.signed && return 1
		tamper from $of.signed a.signed >bad
		exits 3 ace-sign --check ring bad
		says 'mismatch: the signature with the key of .* does not fit the shard: one of them was changed'
	done
}

@test "a shard without a signature, or signed with a key that is not the device's, is refused" {
	one a
	refuses 5 "the shard of 'edge1', step 0, is not signed: let its device sign it" ace-sign --check ring a
	mv ring old
	identity edge2
	refuses 5 "--check FILE has no key of 'edge1'" ace-sign --check ring a.signed
	sed 's/edge2/edge1/' ring >wrong
	exits 5 ace-sign --check wrong a.signed
	says "signed with a key that --check FILE does not list for that device"
	# the order of the lines does not matter
	cat ring wrong >two
	exits 5 ace-sign --check two a.signed
	says "signed with a key that --check FILE does not list for that device"
	cat wrong ring >two
	exits 5 ace-sign --check two a.signed
	says "signed with a key that --check FILE does not list for that device"
	# a ring may have two keys of a device, the old and the new one
	cat wrong old >both
	ace-sign --check both a.signed >/dev/null
	# a key that differs only in its last byte is another key
	perl -MMIME::Base64 -ne '($n, $k) = split; $k = decode_base64($k);
	    substr($k, -1) ^= "\1"; print "$n ", encode_base64($k)' old >near
	cat near old >both
	ace-sign --check both a.signed >/dev/null
	# a device whose name begins with another's name is another device
	mkshards -d edge10 -N 1 >ten
	ace-sign -k edge1.pem ten >ten.signed
	refuses 5 "--check FILE has no key of 'edge10'" ace-sign --check old ten.signed
	sed 's/edge1 /edge10 /' old >longer
	refuses 5 "--check FILE has no key of 'edge1'" ace-sign --check longer a.signed
	# text after # is a comment
	sed 's/$/ # of the shed, 2026/' old >said
	ace-sign --check said a.signed >/dev/null
}

@test "names of devices in the ring may contain blanks and #" {
	mkshards -d "rack #3 #" -N 1 | ace-sign -k edge1.pem >signed
	sed 's/^edge1/rack \\#3 \\#/; s/$/ # of a rack/' ring >named
	exits 0 ace-sign --check named signed
	for name in "a b" "a#b" "a  b c" "#"; do
		sed "s/^edge1/$name/; s/\$/ # of $name/" ring >named
		mkshards -d "$name" -N 1 | ace-sign -k edge1.pem >signed
		if [ "$name" = "#" ]; then
			exits 5 ace-sign --check named signed
			says "--check FILE has no key of '#'"
			sed -i 's/^#/\\#/' named
			exits 0 ace-sign --check named signed
		else
			printf '\t# mine\n  %s \r\n' "$(cat named)" >blanks
			for r in named blanks; do
				exits 0 ace-sign --check $r signed
			done
			exits 5 ace-sign --check ring signed
		fi
	done
}

@test "signatures survive the spool and can be checked there later" {
	mkdir spool
	mkshards -d edge1 -N 1 | ace-compress -c q8 | ace-sign -k edge1.pem |
	    ace-sign --check ring | ace-recv --spool spool --device edge1 \
	    --sync none >receipts
	ace-inspect receipts | grep -q accepted
	ace-sign --check ring spool/0/edge1.aceg >/dev/null
	# the average, which the cloud makes, has no device's signature
	ace-aggregate --spool spool --devices 1 --rounds 1 --sync none >average
	ace-inspect average | grep -q sIGN && return 1
	exits 5 ace-sign --check ring average
}

@test "invalid keys, and key files that others can read, are refused" {
	mkshards -d edge1 -N 1 >in
	for mode in 644 640 604 620; do
		chmod $mode edge1.pem
		exits 5 ace-sign -k edge1.pem in
		says "other users have access to secret key 'edge1.pem': run chmod 600"
	done
	chmod 400 edge1.pem
	exits 0 ace-sign -k edge1.pem in
	openssl genpkey -algorithm x25519 -out other.pem
	chmod 600 other.pem
	refuses 3 'not an Ed25519 key' ace-sign -k other.pem in
	: >empty
	chmod 600 empty
	refuses 3 'lacks the lines BEGIN PRIVATE KEY and END PRIVATE KEY' ace-sign -k empty in
	exits 4 ace-sign -k missing in
	printf '# mine\n\nedge1\n' >bad
	refuses 3 "'bad', line 3: no key follows 'edge1'" ace-sign --check bad in
	# trailing text is refused, on the line and in the key
	sed 's/$/ AAAA/' ring >bad
	exits 3 ace-sign --check bad in
	says "line 1: the key of 'edge1 .*' is not an Ed25519 key"
	perl -MMIME::Base64 -ne '($n, $k) = split;
	    print "$n ", encode_base64(decode_base64($k) . "x")' ring >bad
	exits 3 ace-sign --check bad in
	says "line 1: the key of 'edge1' is not an Ed25519 key"
	head -n 2 edge1.pem >cut.pem
	chmod 600 cut.pem
	refuses 3 'ends before the line END PRIVATE KEY: copy' ace-sign -k cut.pem in
	echo 'edge1 AAAA' >bad
	exits 3 ace-sign --check bad in
	says "line 1: the key of 'edge1' is not an Ed25519 key"
	printf 'edge1 \0 AAAA\n' >bad
	refuses 3 "corrupt: 'bad' has a zero byte: expected text" ace-sign --check bad in
	head -c 1048577 /dev/zero | tr '\0' '#' >bad
	refuses 3 "limit: 'bad' is larger than 1048576 bytes" ace-sign --check bad in
	refuses 2 'expected one of --key and --check' ace-sign in
	exits 2 ace-sign -k edge1.pem --check ring in
}

@test "receipts pass unchanged through --check and every filter" {
	mkshards -d edge1 | ace-compress -S st --window 1 -c q8 | ace-recv --spool spool >receipts
	for how in "ace-sign --check ring" ace-score "ace-policy --bandwidth 1Mbit" \
	    ace-expand "ace-compress -c q8" "ace-select -b 1k"; do
		exits 0 $how receipts
		[ "$(ace-inspect out | grep -c '^receipt .*accepted')" -eq 1 ]
		mv out passed
	done
	exits 0 ace-ack -S st passed
	mkshards -d edge1 -s 1 >in
	exits 0 ace-compress -S st --window 1 --wait 0 -c q8 in
}
