#!/bin/bash
# Compare the simulated network of deco.sh with a real one: two devices of the example
# trainer with delayed averages, through pipes of a given rate and latency.  If network
# namespaces are allowed, also between two of them, over cables limited by tc tbf.
# Print seconds per step, measured and as emulate computes them.
#
#	pace.sh		a table
#
# STEPS=N	steps of each run (16)
set -uo pipefail
here=$(cd "${0%/*}" && pwd)
build=${BUILD:-$here/../build}
PATH=$build:$build/examples:$build/tests:$PATH
export OPENBLAS_NUM_THREADS=1 LC_ALL=C
# shellcheck source=tests/cli/netns.bash
. "$here/../tests/cli/netns.bash"
steps=${STEPS:-16}
work=$(mktemp -d) || exit 4
trap 'netns_down; rm -rf "$work"' EXIT
cat "$here"/../lib/*/*.c >"$work/text"
cd "$work" || exit 4

# up WAY K RATE: send a device's bytes to the cloud
up() {
	case $1 in
	pipe) late -r "$3e6" -l "sent$2" ;;
	cable) late -l "sent$2" | netns_on "edge$2" \
	    nc -N "$(netns_ip cloud "edge$2")" "500$2" ;;
	esac
}

# listen WAY K: print what the cloud receives from device K
listen() {
	if [ "$1" = cable ]; then
		netns_on cloud nc -l -p "500$2" </dev/null
	else
		cat "wire$2"
	fi
}

# run WAY RATE MS DELAY CODEC STEPS: train, and print the seconds
run() {
	local k from wire
	rm -f up? down? wire? sent? kept?
	mkfifo up1 up2 down1 down2 wire1 wire2
	for k in 1 2; do
		(listen "$1" $k | late -d "$(awk "BEGIN { print $3 / 1000 }")" \
		    >up$k) &
	done
	for k in 1 2; do
		until [ "$1" != cable ] || netns_on cloud ss -ltn |
		    grep -q ":500$k"; do
			sleep 0.05
		done
	done
	from=$EPOCHREALTIME
	for k in 1 2; do
		wire=wire$k
		[ "$1" != cable ] || wire=/dev/null
		(train --index $k --of 2 --steps "$6" --clock --delay "$4" \
		    --rate 0.001 --apply down$k text | ace-compress -c "$5" |
		    tee kept$k | up "$1" $k "$2" >"$wire") &
	done
	timeout 300 ace-aggregate --devices 2 up1 up2 | tee down1 >down2
	wait
	awk "BEGIN { print $EPOCHREALTIME - $from }"
}

few=5				# number of first steps that are not timed

# cabled WAY RATE...: call run, with new cables if the way is cable
cabled() {
	if [ "$1" = cable ]; then
		netns_up cloud edge1 edge2 && netns_link cloud edge1 "$2mbit" &&
		    netns_link cloud edge2 "$2mbit" || exit 4
	fi
	run "$@"
	netns_down
}

# compute: print the mean computing seconds of a step; bits: the mean bits of device 1's shards
compute() {
	ace-inspect -v kept1 kept2 | awk '/compute.seconds=/ {
	    sub(/.*=/, ""); s += $0; n++ } END { printf("%.4f", s / n) }'
}

bits() { awk -v n=$((few + steps)) '{ s += $1 } END { printf("%.0f", 8 * s / n) }' sent1; }

printf 'way\tMbit/s\tms\tdelay\tcodec\tcomputed s\tmeasured s\temulated s\n'
ways=pipe
if netns_can && command -v nc >/dev/null; then
	ways='pipe cable'
fi
while read -r rate ms delay codec; do
	for way in $ways; do
		begin=$(cabled "$way" "$rate" "$ms" "$delay" "$codec" $few)
		took=$(cabled "$way" "$rate" "$ms" "$delay" "$codec" \
		    $((few + steps)))
		took=$(awk "BEGIN { printf \"%.4f\", ($took - $begin) / $steps }")
		printf '%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\n' "$way" "$rate" "$ms" \
		    "$delay" "$codec" "$(compute)" "$took" "$(emulate pace \
		    "$rate $ms" "$(compute)" "$(bits)" "$delay" "$steps")"
	done
done <<'END'
5 100 0 topk:0.1
5 300 3 topk:0.1
20 100 0 f16
END
