# The transports of examples/hosts other than ssh, with Debian's programs: a run works,
# devices without the right key are refused, and a broken connection is made again.
# bats file_tags=long
# shellcheck disable=SC2154 # front.bash sets train and last
load helper
patient
load front
load hosts
eval "$(declare -f teardown | sed '1s/teardown/apart_ends/')"
teardown() {
	[ ! -e pids ] || xargs kill <pids 2>/dev/null || true
	apart_ends
	wait
}

# cloud_up [ROUNDS]: start a cloud for two devices in a folder whose name has blanks
cloud_up() {
	begin on ace cloud 'the  run' --devices 2 --rounds "${1:-3}" --bits 8 2>cloud.err
	wait_for test -e 'the  run/run'
}
# device K WHERE OPTION...: start device K, whose values are 2 K - 1
device() {
	begin on ace edge "$2" --name "edge$1" "${@:3}" -- "$train" $((2 * $1 - 1)) \
	    "${rounds:-3}" 2>"edge$1.err"
	eval "pid_edge$1=$last"
}
# over WHERE OPTION...: run two devices, and check that both get the average
over() {
	device 1 "$@"
	device 2 "$@"
	all
}
all() {
	ends edge1 edge2
	averaged edge1 "${rounds:-3}" 2
	averaged edge2 "${rounds:-3}" 2
}

@test "netcat, and netcat inside spiped" {
	apart
	need socat nc ss spiped
	cloud_up 1000
	begin on listen.sh 'the  run' 2>listen.err
	wait_for listens 7000
	over 127.0.0.1:run --through nc.sh
	! on ss -Hltn 'sport = :7000' | grep -v 127.0.0.1 | grep -q . || false

	# a tunnel with the right key works, one with another key does not
	head -c 32 /dev/urandom >ace.key
	head -c 32 /dev/urandom >other.key
	begin on spiped -F -d -s '[0.0.0.0]:7443' -t '[127.0.0.1]:7000' -k ace.key
	begin on spiped -F -e -s '[127.0.0.2]:7000' -t '127.0.0.1:7443' -k ace.key
	begin on spiped -F -e -s '[127.0.0.3]:7000' -t '127.0.0.1:7443' -k other.key
	wait_for listens 7443
	wait_for eval 'on ss -Hltn "sport = :7000" | grep -q 127.0.0.3'
	rounds=6 over 127.0.0.2:run --through nc.sh
	exits 3 on ace edge 127.0.0.3:run --name edge1 --through nc.sh -- true
	says "'127.0.0.3' answers '', expected"

	# cut connections are made again
	rounds=40
	device 1 127.0.0.1:run --through nc.sh
	device 2 127.0.0.1:run --through nc.sh
	wait_for has edge1.got 10
	on ss -K dst 127.0.0.1 dport = 7000 >/dev/null || skip 'this kernel cuts no connections'
	all
}

@test "TLS: the device has the name in its certificate" {
	apart
	need socat openssl nc ss
	mkdir keys others
	(cd keys && on tls-keys.sh 127.0.0.1 edge1 edge2) 2>log
	(cd others && on tls-keys.sh edge1) 2>log
	for name in 'edge9/CN=edge1' ca; do exits 2 on tls-keys.sh "$name"; done
	cloud_up
	export ACE_KEYS=$PWD/keys
	begin on tls-cloud.sh 'the  run' 127.0.0.1 2>tls.err
	wait_for listens 8443
	over 127.0.0.1:run --through tls.sh
	# edge1's certificate in the place of edge3's
	cp keys/edge1.pem keys/edge3.pem
	cp keys/edge1.key keys/edge3.key
	exits 3 on ace edge 127.0.0.1:run --name edge3 --through tls.sh -- true
	wait_for grep -q "the name 'edge1' is in use" tls.err
	# a certificate without a common name, and the state of a device
	sed 's|"/CN=$name"|/O=x|' "$ROOT/examples/hosts/tls-keys.sh" >no-cn.sh
	(cd keys && on sh ../no-cn.sh edge1) 2>log
	refuses 3 "answers ''" on ace edge 127.0.0.1:run --name edge1 --through tls.sh -- :
	[ "$(ls 'the  run/devices' | paste -sd ' ')" = 'edge1 edge2' ]
	# a certificate of another authority
	cp others/edge1.* keys/
	# the cloud closes the connection, with or without an answer
	got=0
	on ace edge 127.0.0.1:run --name edge1 --through tls.sh -- true 2>err || got=$?
	[[ $got == [34] ]]
}

@test "TLS: connections that send nothing are closed, and others get their place" {
	apart
	need socat openssl ss
	mkdir keys silent
	(cd keys && on tls-keys.sh 127.0.0.1 edge1 edge2) 2>log
	# allow two connections of one second without a handshake
	sed 's/max-children=256/max-children=2/; s/:x14/:x01/' \
	    "$ROOT/examples/hosts/tls-cloud.sh" | tail -n +2 >changed
	grep -q ':x01' changed
	script tls-cloud.sh <changed
	export ACE_KEYS=$PWD/keys
	cloud_up
	begin on tls-cloud.sh 'the  run' 127.0.0.1 2>tls.err
	wait_for listens 8443
	for i in 1 2; do
		begin on bash -c 'exec 5<>/dev/tcp/127.0.0.1/8443; : >"silent/$1"
		    exec sleep infinity' - $i
	done
	silence() { [ "$(ls silent | wc -l)" -eq 2 ]; }
	wait_for silence
	exits 1 on ace edge 127.0.0.1:run --name edge1 --through tls.sh -- false
	says '^ace-edge: .false. ended with status 1'
}

# broker_up: start a broker with a user per device, which may use that device's topics only
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
		pattern readwrite ace/%u/#
		user cloud
		topic readwrite ace/#
	END
	cat >broker.conf <<-END
		listener 1883 127.0.0.1
		user root
		pid_file $PWD/broker.pid
		allow_anonymous false
		password_file $PWD/passwords
		acl_file $PWD/acl
	END
	chmod 755 . && chmod 644 passwords acl
	start_broker
}
start_broker() {
	begin on mosquitto -c broker.conf >>broker.log 2>&1
	wait_for listens 1883
}

@test "MQTT: a run continues after the broker was killed; a device cannot write for others" {
	apart
	need mosquitto mosquitto_pub mosquitto_sub mosquitto_passwd ss
	export WAIT=4 rounds=12 ACE_HOST=127.0.0.1
	broker_up
	cloud_up 12
	for u in cloud edge1 edge2; do
		script as-$u <<<"export XDG_CONFIG_HOME='$PWD/home/$u'; exec \"\$@\""
		script mqtt-$u <<<"exec as-$u '$ROOT/examples/hosts/mqtt.sh' \"\$@\""
	done
	begin on mqtt-cloud --cloud 'the  run' edge1 edge2 2>mqtt.err
	device 1 127.0.0.1:run --through mqtt-edge1
	device 2 127.0.0.1:run --through mqtt-edge2
	wait_for has edge1.got 3
	on kill -9 "$(cat broker.pid)"
	start_broker
	all
	# the broker discards a message on another device's topic
	on as-edge1 mosquitto_pub -h 127.0.0.1 -r -q 1 -t ace/edge2/session -m mine
	on as-cloud mosquitto_sub -h 127.0.0.1 -t ace/edge2/session -C 1 -W 1 >got || :
	[ ! -s got ]
	# TERM ends the loops of all devices, which wait for long
	runs() { on pgrep -f '[m]qtt.sh --cloud the  run edge3'; }
	WAIT=999999 begin on mqtt-cloud --cloud 'the  run' edge3 edge4 2>>mqtt.err
	wait_for eval '[ "$(on pgrep -fc "[m]osquitto_sub.*999999")" -eq 2 ]'
	on kill "$(runs | head -n 1)"
	wait_for eval '! runs'
}

@test "rclone: a run over a server of objects" {
	apart
	need rclone nc ss
	export RCLONE_CONFIG=$PWD/rclone.conf
	printf '[cloud]\ntype = webdav\nurl = http://127.0.0.1:8080\nvendor = other\n' >rclone.conf
	mkdir served
	begin on rclone serve webdav served --addr 127.0.0.1:8080 >server.log 2>&1
	wait_for listens 8080
	cloud_up 2
	begin on store.sh --cloud cloud:bucket/run 'the  run' edge1 edge2 2>store.err
	rounds=2 over cloud:bucket/run --through store.sh
	# objects are removed after they were read
	wait_for eval '[ "$(find served -type f | wc -l)" -le 2 ]'
}

@test "Slurm: each task is a device, and the same job again continues the run" {
	apart
	need slurmctld slurmd srun salloc sinfo munged nc ss
	SLURM_NTASKS=3 exits 4 on slurm.sh /dev/null 3 true
	slurm_ready
	for r in 2 3; do
		exits 0 on salloc --ntasks=3 --nodes=3 slurm.sh run 3 "$train" 2 $r
		for k in 0 1 2; do
			averaged task$k $r 2
		done
	done
	[ "$(ls run/devices | wc -l)" -eq 3 ]
}
