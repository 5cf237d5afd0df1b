# What a program takes of a machine, and where that ends.
load helper

# limited KIB CMD...: with so much address space
limited() {
	local kib=$1
	shift
	[ -z "${ACE_SANITIZED:-}" ] || skip "sanitizers want all of it"
	bash -c 'ulimit -v "$0" && exec "$@"' "$kib" "$@"
}

@test "with little memory the same bytes, by way of files" {
	mkshards -n 10M -x 3 >in
	ace-score in | ace-select --budget 300k >planned
	ace-compress --no-provenance planned >want
	limited 90000 ace-compress --no-provenance planned >got
	same want got
	# what did not fit was not in memory
	peak free ace-compress --no-provenance planned >/dev/null
	limited 90000 peak tight ace-compress --no-provenance planned >/dev/null
	echo "KiB: $(cat free) free, $(cat tight) limited"
	[ "$(cat tight)" -lt $(($(cat free) * 2 / 3)) ]
}

@test "with little memory a sum of many: the same bytes" {
	local i
	for i in $(seq 60); do
		mkshards -n 200k -d e$i -x "$i" >f$i
	done
	ace-aggregate --no-provenance f* >want
	limited 90000 ace-aggregate --no-provenance f* >got
	same want got
}

@test "rules that see all values at once say what is missing, before they begin" {
	local i
	for i in $(seq 150); do
		mkshards -n 70k -d e$i -x "$i"
	done >in
	ace-recv --spool spool --sync none in >/dev/null
	cp -R spool free
	exits 0 ace-aggregate --spool free --steps 1 --sync none --rule median
	ace-inspect --verify out
	exits 0 limited 90000 timeout "$HANG" ace-aggregate --spool spool \
	    --steps 1 --sync none --rule median
	says "limit: 'median' sees all values at once: 150 shards take [0-9]+ MiB, and there are 87 MiB"
}
