# Hosts on one machine: network namespaces, joined by veth pairs whose rate is
# limited by tc tbf.  Needs root.  Addresses are 10.77.x.y and exist inside the
# namespaces only.
#
#   netns_can || skip "needs root and network namespaces"
#   netns_up cloud edge1 edge2		hosts
#   netns_link cloud edge1 20mbit	a cable, 20 Mbit/s each way
#   netns_ip cloud edge1		the address of cloud on that cable
#   netns_on edge1 CMD...		a command there
#   netns_down				removes all of them; for a trap
#					(scripts) or in teardown (bats)
#
# NETNS is the name of a set of hosts; several sets may run at the same time.

: "${NETNS:=ace$$}"
netns_hosts=()
netns_cables=()

netns_can() {
	[ "$(id -u)" -eq 0 ] && command -v ip tc >/dev/null || return
	local can=0
	# a chroot or a container may permit names of namespaces, but no program in them
	{
		ip netns add "$NETNS-can" || return
		ip -n "$NETNS-can" link set lo up &&
		    ip netns exec "$NETNS-can" true || can=1
		ip netns del "$NETNS-can"
	} 2>/dev/null
	return $can
}

netns_up() {
	local h
	for h in "$@"; do
		ip netns add "$NETNS-$h" || return
		netns_hosts+=("$h")
		ip -n "$NETNS-$h" link set lo up || return
	done
}

netns_on() {
	local h=$1
	shift
	ip netns exec "$NETNS-$h" "$@"
}

# netns_rate HOST DEVICE RATE: limit the rate; burst 4 ms, at least 16 kB; queue 50 ms
netns_rate() {
	local bits=${3%mbit}
	tc -n "$NETNS-$1" qdisc replace dev "$2" root tbf rate "$3" \
	    burst $((bits * 500 > 16000 ? bits * 500 : 16000)) latency 50ms
}

# netns_link A B RATE: make a cable between A and B; RATE is, for example, 20mbit
netns_link() {
	local n=${#netns_cables[@]}
	netns_cables+=("$1 $2")
	ip -n "$NETNS-$1" link add "to-$2" type veth \
	    peer name "to-$1" netns "$NETNS-$2" &&
	    ip -n "$NETNS-$1" addr add "10.77.$n.1/24" dev "to-$2" &&
	    ip -n "$NETNS-$2" addr add "10.77.$n.2/24" dev "to-$1" &&
	    ip -n "$NETNS-$1" link set "to-$2" up &&
	    ip -n "$NETNS-$2" link set "to-$1" up &&
	    netns_rate "$1" "to-$2" "$3" && netns_rate "$2" "to-$1" "$3"
}

# netns_ip A B: print A's address on its cable to B
netns_ip() {
	local n
	for n in "${!netns_cables[@]}"; do
		case ${netns_cables[$n]} in
		"$1 $2") echo "10.77.$n.1" ;;
		"$2 $1") echo "10.77.$n.2" ;;
		esac
	done
}

# netns_down: kill the processes in the hosts, and remove the hosts
netns_down() {
	local h p
	for h in "${netns_hosts[@]}"; do
		for p in $(ip netns pids "$NETNS-$h" 2>/dev/null); do
			kill -9 "$p" 2>/dev/null
		done
		ip netns del "$NETNS-$h"
	done
	netns_hosts=() netns_cables=()
}
