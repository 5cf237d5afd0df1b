#!/bin/sh
# The cloud's end of an object store: takes what the devices put there into the
# spool, and puts their receipts there.
#
#   store-cloud.sh REMOTE SPOOL DIR DEVICE...
#
# Once; run it again and again, from cron or in a loop.  Who may write below
# REMOTE/up/DEVICE is the store's to say, and is who speaks for that device.  An object
# that is half there, or damaged, has no receipt yet, and is looked at again; one that is
# larger than eight shards may be, or whose name has more than 128 characters or other
# than letters, digits, '.', '_' and '-', is skipped, and that is said.
#
# Devices have their turns.  In a turn at most 16 objects without a receipt are fetched,
# and no more bytes than the limit `quota' allows; they are not kept.  store-edge.sh has
# eight under way.  DIR keeps the receipts.
set -eu
remote=$1 spool=$2 dir=$3
shift 3
"$(dirname "$0")/limits.sh" "$spool"

. "$(dirname "$0")/plain.sh"

# limit NAME DEVICE DEFAULT: in bytes
limit() {
	awk -v name="$1" -v device="$2" -v size="$3" '
	    { sub(/(^|[ \t])#.*/, "") }
	    $1 == name && NF == 2 { size = $2 }
	    $1 == name && $3 == device { own = $2 }
	    END {
		unit = size = own ? own : size
		sub(/^[0-9.e+-]*/, "", unit)
		k = unit ? index("KMGT", toupper(substr(unit, 1, 1))) : 0
		printf "%.0f", size * (unit ~ /i/ ? 1024 : 1000) ^ k
	    }' "$spool/limits"
}

# choose DEVICE MOST QUOTA: of the lines "SIZE NAME" those names that have their turn
choose() {
	LC_ALL=C awk -v device="$1" -v most="$2" -v quota="$3" '
	    function skipped(why) {
		gsub(/[^ -~]/, "?", name)
		print "store-cloud.sh: " device ": " why ", skipped: " name >"/dev/stderr"
	    }
	    FILENAME != "-" { done[$0]; next }
	    { name = substr($0, index($0, " ") + 1) }
	    name !~ /[.]aceg$/ || name in done { next }
	    $1 > most { skipped("more than " most " bytes"); next }
	    length(name) > 128 { skipped("a longer name"); next }
	    name !~ /^[A-Za-z0-9_][A-Za-z0-9._-]*$/ { skipped("other characters"); next }
	    n == 16 || (n > 0 && sum + $1 > quota) { later++; next }
	    { n++; sum += $1; print name }
	    END { if (later)
		print "store-cloud.sh: " device ": " later " objects more have to wait" >"/dev/stderr"
	    }' "$4" -
}

# turn DEVICE: 4 when something cannot be had, which holds up no other
turn() {
	up=$dir/up/$1 down=$dir/down/$1 bad=0 n=0
	mkdir -p "$up" "$down"
	rclone lsf --files-only --format=sp --separator=" " "$remote/up/$1" \
	    >"$dir/list" 2>"$dir/log" || {
		# nothing was ever sent
		grep -q 'directory not found' "$dir/log" && return 0
		cat "$dir/log" >&2
		return 4
	}
	cut -d ' ' -f 2- "$dir/list" >"$dir/there"
	for f in "$down"/*.aceg; do
		# a receipt whose object is gone was read
		[ ! -e "$f" ] || grep -qxF -e "${f##*/}" "$dir/there" || rm -f "$f"
	done
	most=$((8 * $(limit shard "$1" 256Mi) + 20000000))
	quota=$(limit quota "$1" 4Gi)
	ls "$down" >"$dir/done"
	choose "$1" "$most" "$quota" "$dir/done" <"$dir/list" >"$dir/turn"
	# one may have grown since it was listed
	rclone copy --files-from="$dir/turn" --max-transfer="$((most + quota))B" \
	    "$remote/up/$1" "$up" || bad=4
	for f in "$up"/*.aceg; do
		if [ ! -e "$f" ] || [ -e "$down/${f##*/}" ]; then continue; fi
		[ "$n" -lt 16 ] || break
		n=$((n + 1))
		ace-recv --spool "$spool" --device "$1" -o "$down/${f##*/}" "$f" ||
		    [ $? -eq 3 ] || bad=4
	done
	find "$up" -maxdepth 1 -type f -name '*.aceg' -delete
	rclone copy "$down" "$remote/down/$1" || bad=4
	return "$bad"
}

all=0
for device; do
	plain DEVICE "$device"
done
for device; do
	turn "$device" || all=4
done
exit "$all"
