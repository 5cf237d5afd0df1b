# Carriers that exist already, with Debian's packages: an MQTT broker and, through
# rclone, a store of objects.  What they repeat is a duplicate, what they lose is
# sent again, and the mean is the same bytes as through local pipes.
# bats file_tags=long
load helper
load hosts

# gradient DEVICE [STEP]
gradient() { mkshards -n 20k -d "$1" -x "${1#edge}" -s "${2:-0}"; }

# spooled: the mean of two edges through local pipes, into want
spooled() {
	local e
	mkdir local
	for e in edge1 edge2; do
		gradient $e | ace-compress -S local/$e --window 1 -c topk:0.01 |
		    ace-recv --spool local/spool | ace-ack -S local/$e >/dev/null
	done
	mean local/spool >want
}

# kept: what is in the spool; a shard on its way is not
kept() { find spool -name '*.aceg' -exec sha256sum {} + | sort; }

mean() { timeout "$HANG" ace-aggregate --no-provenance --spool "$1" --expect 2 --steps 1; }

# broker_up: with a user for each device, who may use its topics only
broker_up() {
	local u
	: >passwords
	for u in edge1 edge2 cloud; do
		mosquitto_passwd -b passwords $u "secret-$u"
		mkdir -p home/$u
		printf -- '-u %s\n-P secret-%s\n' $u $u >home/$u/mosquitto_pub
		cp home/$u/mosquitto_pub home/$u/mosquitto_sub
	done 2>/dev/null
	cat >acl <<-'END'
		pattern write ace/up/%u
		pattern read ace/down/%u
		user cloud
		topic read ace/up/#
		topic write ace/down/#
	END
	cat >broker.conf <<-END
		listener 1883 127.0.0.1
		user root
		pid_file $PWD/broker.pid
		allow_anonymous false
		password_file $PWD/passwords
		acl_file $PWD/acl
		log_type all
	END
	chmod 755 . && chmod 644 passwords acl
	start_broker
}

start_broker() {
	on mosquitto -c broker.conf >>broker.log 2>&1 3>&- &
	broker=$!
	wait_for listens 1883
}

# cloud_up: and the broker keeps for it what comes from now on
cloud_up() {
	as cloud mqtt-cloud.sh 127.0.0.1 spool edge1 edge2 >cloud.log 2>&1 3>&- &
	for e in edge1 edge2; do
		wait_for grep -q "Sending SUBACK to cloud-$e" broker.log
	done
}

# as USER CMD...
as() { on env XDG_CONFIG_HOME="$PWD/home/$1" "${@:2}"; }

# edge DEVICE: its step
edge() { gradient "$1" >"in.$1"; as "$1" mqtt-edge.sh 127.0.0.1 "$1" "state/$1" <"in.$1"; }

@test "MQTT: one topic a device, receipts on another" {
	apart
	need mosquitto mosquitto_pub mosquitto_sub mosquitto_passwd ss nsenter
	spooled
	mkdir state
	broker_up
	cloud_up
	for e in edge1 edge2; do
		tries 5 exits 0 edge $e
	done
	says '^ace-ack: step 0: accepted'
	mean spool >got
	same want got

	# a message that the broker repeats, and one of half a stream
	ace-compress -S state/edge1 --resend >again
	gradient edge1 1 | ace-compress -c q8 >next
	head -c 2000 next >half
	for f in half next next next; do
		as edge1 mosquitto_pub -h 127.0.0.1 -q 1 -t ace/up/edge1 -f $f
	done
	three() { as edge1 mosquitto_sub -h 127.0.0.1 -i edge1-down -c -q 1 \
	    -t ace/down/edge1 -C 3 -N -W "$HANG" >receipts; }
	three
	[ "$(ace-inspect receipts | grep -c 'step 1: accepted')" -eq 1 ]
	[ "$(ace-inspect receipts | grep -c 'step 1: duplicate')" -eq 2 ]
	[ "$(find spool -name 'edge1.aceg' | wc -l)" -eq 2 ]

	# somebody else's topic: the broker drops it, and there is no receipt
	kept >before
	gradient edge2 2 >in
	WAIT=2 exits 4 as edge1 mqtt-edge.sh 127.0.0.1 edge2 state/wrong <in
	# another device's shard on one's own
	WAIT=2 exits 4 as edge1 mqtt-edge.sh 127.0.0.1 edge1 state/wrong <in
	kept | diff before -
}

@test "MQTT: a broker that dies, and forgets what it had" {
	apart
	need mosquitto mosquitto_pub mosquitto_sub mosquitto_passwd ss nsenter
	spooled
	mkdir state
	broker_up
	# nobody is there to take it, and the broker loses it
	WAIT=2 exits 4 edge edge1
	on kill -9 "$(cat broker.pid)"
	wait $broker || :
	exits 1 as edge1 mosquitto_pub -h 127.0.0.1 -t ace/up/edge1 -m x
	start_broker
	cloud_up
	tries 5 exits 0 edge edge1
	tries 5 exits 0 edge edge2
	mean spool >got
	same want got
}

# store_step DEVICE: of an edge, and then the cloud's look
store_edge() { on store-edge.sh "$remote" "$1" "$1"; }
store_cloud() { on store-cloud.sh "$remote" spool inbox edge1 edge2; }

# through: two edges, a step each, and the receipts; then what breaks
through() {
	for e in edge1 edge2; do
		gradient $e >in
		exits 0 store_edge $e <in
	done
	exits 0 store_cloud
	mean spool >got
	same want got
	# no receipt was read yet, so all of it may come again
	exits 0 store_cloud
	for e in edge1 edge2; do
		[ -n "$(ls $e/out)" ]
		exits 0 store_edge $e </dev/null
		says '^ace-ack: step 0: accepted'
		[ -z "$(ls $e/out)" ]
	done
	exits 0 store_cloud
	[ -z "$(find inbox -type f -name '*.aceg')" ]

	# two steps at a time, of which one is damaged on its way
	for s in 1 2; do
		gradient edge1 $s >in
		exits 0 store_edge edge1 <in
	done
	first=$(ls -tr edge1/out | head -n 1)
	head -c 1000 "edge1/out/$first" >part
	on rclone copyto part "$remote/up/edge1/$first"
	exits 0 store_cloud
	says '^ace-recv: truncated'
	# the edge puts it there again, and reads the other's receipt
	exits 0 store_edge edge1 </dev/null
	exits 0 store_cloud
	exits 0 store_edge edge1 </dev/null
	[ -z "$(ls edge1/out)" ]
	[ "$(find spool -name edge1.aceg | wc -l)" -eq 3 ]
	# another device's name
	kept >before
	gradient edge2 5 | ace-compress -c q8 >whose
	on rclone copyto whose "$remote/up/edge1/whose.aceg"
	exits 0 store_cloud
	says "mismatch: a shard of device 'edge2' where 'edge1' sends"
	kept | diff before -
}

@test "rclone: a folder" {
	apart
	need rclone nsenter
	spooled
	export RCLONE_CONFIG=$PWD/rclone.conf
	: >rclone.conf
	mkdir store
	remote=$PWD/store
	through
}

@test "rclone: the cloud is away until nothing more may be under way" {
	local hosts=$ROOT/examples/hosts s
	needs rclone
	export RCLONE_CONFIG=$PWD/rclone.conf
	: >rclone.conf
	mkdir store
	# a shard takes 80 kB, and eight fit into one object
	exits 0 ace-recv --spool spool --create
	echo 'shard 100k' >>spool/limits
	for s in 0 1 2 3 4 5 6 7; do
		gradient edge1 $s |
		    exits 0 "$hosts/store-edge.sh" "$PWD/store" edge1 edge f32
	done
	gradient edge1 8 >in
	exits 5 timeout "$HANG" "$hosts/store-edge.sh" "$PWD/store" edge1 edge f32 <in
	exits 0 "$hosts/store-cloud.sh" "$PWD/store" spool inbox edge1
	[ "$(find spool -name edge1.aceg | wc -l)" -eq 8 ]
	exits 0 timeout "$HANG" "$hosts/store-edge.sh" "$PWD/store" edge1 edge f32 <in
	exits 0 "$hosts/store-cloud.sh" "$PWD/store" spool inbox edge1
	exits 0 "$hosts/store-edge.sh" "$PWD/store" edge1 edge </dev/null
	[ -z "$(ls edge/out)" ]
	[ "$(find spool -name edge1.aceg | wc -l)" -eq 9 ]
	# what did not get there is there after a call that is refused, too
	mv store away
	: >store
	for s in 9 10 11 12 13 14 15 16; do
		gradient edge1 $s |
		    exits 1 "$hosts/store-edge.sh" "$PWD/store" edge1 edge f32
	done
	rm store
	mv away store
	gradient edge1 17 >in
	exits 5 "$hosts/store-edge.sh" "$PWD/store" edge1 edge f32 <in
	[ "$(ls store/up/edge1 | wc -l)" -eq 8 ]
}

@test "rclone: a server, and one that is away" {
	apart
	need rclone nsenter nc ss
	spooled
	export RCLONE_CONFIG=$PWD/rclone.conf
	cat >rclone.conf <<-END
		[cloud]
		type = webdav
		url = http://127.0.0.1:8080
		vendor = other
	END
	remote=cloud:run
	gradient edge1 >in
	exits 4 on env RCLONE_RETRIES=1 RCLONE_LOW_LEVEL_RETRIES=1 \
	    store-edge.sh "$remote" edge1 away <in
	rm -rf away
	mkdir served
	on rclone serve webdav served --addr 127.0.0.1:8080 >server.log 2>&1 3>&- &
	wait_for listens 8080
	through
}
