# The recipes in examples/hosts, each over the network it is for: the mean is the
# same bytes as through local pipes, and what is cut on the way is not taken.
# bats file_tags=long

load helper
patient
load hosts

# edges HOST...: each has a program edge-step, which writes its coded shard and
# has its state in homes/HOST; where that has a file `die`, it is killed half-way.
# The mean through local pipes becomes the file want.
edges() {
	local e
	script edge-step <<-END
		host=\${HOST:-edge\$((SLURM_PROCID + 1))}
		cd '$PWD/homes/'\$host &&
		    mkshards -n 20k -d \$host -s \$1 -x \${host#edge} |
		    ace-compress -S state -c topk:0.01 >out &&
		    [ ! -e die ] && exec cat out
		head -c "\$((\$(wc -c <out) / 2))" out
		kill -9 \$\$
	END
	mkdir homes local
	for e; do
		mkdir homes/$e
		HOST=$e bin/edge-step 7 >local/$e
		rm -r homes/$e/*
	done
	(cd local && timeout "$HANG" ace-aggregate "$@") >want
}

# gradient DEVICE: a dense shard
gradient() { mkshards -n 20k -d "$1" -x "${1#edge}"; }

# spooled: what two edges, a spool and local pipes make of it
spooled() {
	local e
	mkdir -p local state
	for e in edge1 edge2; do
		gradient $e | ace-compress -S local/$e --window 1 -c topk:0.01 |
		    ace-recv --spool local/spool | ace-ack -S local/$e >/dev/null
	done
	mean local/spool >want
}

mean() { timeout "$HANG" ace-aggregate --no-provenance --spool "$1" --expect 2 --steps 1; }

# statuses: from now on ace-recv leaves its exit status in the file statuses
statuses() {
	: >statuses
	script ace-recv <<-END
		'$BUILD/ace-recv' "\$@"
		s=\$?
		echo \$s >>'$PWD/statuses'
		exit \$s
	END
}

# delivers DEVICE CMD...: its shard, again and again until it is delivered, as
# the recipes say
delivers() {
	local n=100
	gradient "$1" >in
	until "${@:2}" <in >out 2>err; do
		[ $((n -= 1)) -gt 0 ] || { cat err; return 1; }
		sleep 0.2
	done
}

# half FILE: the first half of it; then the sender is killed
half() {
	sh -c 'head -c "$(($(wc -c <"$1") / 2))" "$1"; kill -9 $$' - "$1"
}

# killed_half DEVICE CMD...: half of a coded shard into CMD, which may say what
# it likes; ace-recv has to say "truncated", and nothing may be in the spool
killed_half() {
	gradient "$1" | ace-compress -c topk:0.01 >whole
	: >statuses
	half whole | "${@:2}" >out 2>err || :
	wait_for test -s statuses
	[ "$(cat statuses)" = 3 ]
	[ -z "$(find spool -name '*.aceg' ! -name schema.aceg)" ]
}

@test "ssh, one forced command for each key" {
	apart
	need sshd ssh ssh-keygen nc ss
	ssh_ready
	statuses
	for e in edge1 edge2; do
		key $e
		on authorize.sh $e ssh/$e.pub "$PWD/spool" >>keys
	done
	grep -qE '^restrict,command="ace-recv --spool [^"]*" ssh-ed25519 ' keys
	exits 2 on authorize.sh 'a" b' ssh/user.pub spool
	host cloud 127.0.0.2 "$PWD/keys"
	spooled

	# half a shard
	KEY=edge1 killed_half edge1 on ssh -T cloud

	# a shard of each, and once more
	for e in edge1 edge2 edge1; do
		gradient $e >in
		KEY=$e exits 0 on ssh-step.sh cloud state/$e <in
	done
	mean spool >got
	same want got
	cp -r spool before

	# another device's shard, through this key
	gradient edge2 >in
	KEY=edge1 exits 3 on ssh-step.sh cloud state/wrong <in
	says "mismatch: a shard of device 'edge2' where 'edge1' sends"
	# a shell, another command, a file: they get ace-recv, which gets none
	for cmd in '' 'cat /etc/passwd' 'ace-recv --spool elsewhere'; do
		KEY=edge1 exits 3 on ssh -T cloud $cmd </dev/null
		says '^ace-recv: truncated'
		if grep -q root: out; then false; fi
	done
	KEY=edge1 exits 3 on ssh -tt cloud </dev/null
	# no way through to somebody else, and no key no entry
	KEY=edge1 exits 255 on ssh -T -W 127.0.0.2:22 -S none cloud </dev/null
	exits 255 on ssh -T cloud </dev/null
	diff -r before spool
}

@test "ssh, process substitution" {
	apart
	need sshd ssh ssh-keygen nc ss
	ssh_ready
	edges edge1 edge2
	host edge1 127.0.0.11
	host edge2 127.0.0.12
	exits 0 on ssh-gather.sh 7 edge1 edge2
	same want out
	# one is killed half-way, the other one was not in vain
	: >homes/edge2/die
	exits 3 on ssh-gather.sh 7 edge1 edge2
	says '^ace-aggregate: .*truncated'
	exits 3 ace-inspect verify out
	rm homes/edge2/die
	exits 0 on ssh-gather.sh 7 edge1 edge2
	same want out
	# one is not there
	exits 3 on ssh-gather.sh 7 edge1 nowhere
}

@test "GNU parallel over a list of hosts" {
	apart
	need sshd ssh ssh-keygen nc ss parallel
	ssh_ready
	edges edge1 edge2 edge3
	for i in 1 2 3; do
		host edge$i 127.0.0.1$i
		echo edge$i >>hosts
	done
	exits 0 on parallel-gather.sh 7 hosts
	cat local/edge[123] | ace-aggregate --expect 3 >want
	same want out
	: >homes/edge3/die
	exits 3 on parallel-gather.sh 7 hosts
	exits 3 ace-inspect verify out
	rm homes/edge3/die
	exits 0 on parallel-gather.sh 7 hosts
	same want out
	echo nowhere >>hosts
	exits 5 on parallel-gather.sh 7 hosts
}

@test "netcat inside spiped" {
	apart
	need spiped socat nc ss
	statuses
	spooled
	head -c 32 /dev/urandom >ace.key
	on spiped-cloud.sh spool ace.key >cloud 2>&1 3>&- &
	wait_for listens 7443
	wait_for listens 7000
	killed_half edge1 on spipe -t 127.0.0.1:7443 -k ace.key
	for e in edge1 edge2 edge1; do
		delivers $e on spiped-edge.sh 127.0.0.1 ace.key state/$e
	done
	says '^ace-ack: step 0: duplicate'
	mean spool >got
	same want got
	# another key: nothing comes through, and nothing comes of it
	head -c 32 /dev/urandom >other.key
	gradient edge3 >in
	cp -r spool before
	exits 4 on spiped-edge.sh 127.0.0.1 other.key state/edge3 <in
	diff -r before spool
}

@test "plain netcat: its end looks like a break, the shard's does not" {
	apart
	need socat nc ss
	statuses
	spooled
	on nc-cloud.sh spool >cloud 2>&1 3>&- &
	wait_for listens 7000
	killed_half edge1 on nc -N 127.0.0.1 7000
	for e in edge1 edge2 edge1; do
		delivers $e on nc-edge.sh 127.0.0.1 state/$e
	done
	says '^ace-ack: step 0: duplicate'
	mean spool >got
	same want got

	# what the warning says: netcat sees nothing of a cut, on either side
	on bash -c 'nc -l 7010 | ace-recv --spool spool; echo "${PIPESTATUS[@]}"' \
	    >receipts 2>err 3>&- &
	local receiver=$!
	wait_for listens 7010
	half whole | on nc -N 127.0.0.1 7010
	wait $receiver
	[ "$(tail -n 1 receipts)" = '0 3' ]
	says '^ace-recv: truncated'
}

@test "socat, mutual TLS: the certificate says which device" {
	apart
	need socat openssl nc ss
	statuses
	spooled
	# where socat would take a comma, a quote or a backslash for its own
	odd='k, "e": (y)\s'
	mkdir "$odd"
	ln -s "$odd" keys
	(cd keys && on tls-keys.sh 127.0.0.1 edge1 edge2) 2>log
	on tls-cloud.sh spool "$odd/127.0.0.1.pem" "$odd/127.0.0.1.key" "$odd/ca.pem" \
	    >cloud 2>&1 3>&- &
	wait_for listens 8443
	edge() {
		on tls-edge.sh 127.0.0.1 "$odd/$1.pem" "$odd/$1.key" "$odd/ca.pem" \
		    "$2"
	}
	killed_half edge1 on socat -t 5 - "OPENSSL:127.0.0.1:8443,cert=keys/edge1.pem,key=keys/edge1.key,cafile=keys/ca.pem,verify=1"
	for e in edge1 edge2 edge1; do
		delivers $e edge $e state/$e
	done
	says '^ace-ack: step 0: duplicate'
	mean spool >got
	same want got
	cp -r spool before
	# edge1's certificate, another one's shard
	gradient edge2 >in
	exits 3 edge edge1 state/wrong <in
	says '^ace-ack: truncated: the receiver gave up'
	# a certificate of somebody else's, and none, which socat calls success:
	# no receipt
	mkdir others
	(cd others && on tls-keys.sh edge1) 2>log
	cp others/edge1.* keys/
	exits 4 edge edge1 state/other <in
	on socat -t 5 - OPENSSL:127.0.0.1:8443,cafile=keys/ca.pem,verify=1 \
	    <in >out 2>err || :
	[ ! -s out ]
	diff -r before spool
}

@test "mutual TLS: who connects and says nothing keeps no place" {
	apart
	need socat openssl ss
	mkdir keys silent
	(cd keys && on tls-keys.sh 127.0.0.1 edge1) 2>log
	# two places, for a second
	sed 's/max-children=256/max-children=2/; s/:x14/:x01/' \
	    "$ROOT/examples/hosts/tls-cloud.sh" | tail -n +2 >changed
	grep -q ':x01' changed
	script tls-cloud.sh <changed
	cp "$ROOT"/examples/hosts/{limits,plain}.sh bin
	on tls-cloud.sh spool keys/127.0.0.1.pem keys/127.0.0.1.key keys/ca.pem \
	    >cloud 2>&1 3>&- &
	wait_for listens 8443
	for i in 1 2; do
		on bash -c 'exec 5<>/dev/tcp/127.0.0.1/8443; : >"silent/$1"
		    exec sleep infinity' - $i 3>&- &
	done
	silence() { [ "$(ls silent | wc -l)" -eq 2 ]; }
	wait_for silence
	delivers edge1 on tls-edge.sh 127.0.0.1 keys/edge1.pem keys/edge1.key keys/ca.pem \
	    state
}

@test "Slurm: a file for each task" {
	apart
	need slurmctld slurmd srun salloc sinfo munged nc ss
	slurm_ready
	edges edge1 edge2 edge3
	exits 0 on salloc --ntasks=3 --nodes=3 slurm-gather.sh 7
	ace-aggregate --expect 3 local/edge[123] >want
	same want mean-7.aceg
	# a task is killed half-way
	rm mean-7.aceg shard-7-*
	: >homes/edge2/die
	exits 3 on salloc --ntasks=3 --nodes=3 slurm-gather.sh 7
	says "^ace-aggregate: .*truncated"
	[ ! -e mean-7.aceg ]
	rm homes/edge2/die
	exits 0 on salloc --ntasks=3 --nodes=3 slurm-gather.sh 7
	same want mean-7.aceg
}

@test "the EXAMPLES of ace-deploy(7) run as they stand" {
	apart
	need sshd ssh ssh-keygen nc ss parallel
	ssh_ready
	edges edge1 edge2
	standard_inputs
	host edge1 127.0.0.11
	host edge2 127.0.0.12
	host cloud 127.0.0.2 "$PWD/authorized_keys $PWD/ssh/user.pub"
	examples "$ROOT/man/ace-deploy.7" >deploy.sh
	# what the page has in ~/.ssh/config, after what the hosts here are
	sed -n '/^\.Sh EXAMPLES/,/^\.Ed/s/^ *\(Host\|Identit\).*/&/p' "$ROOT/man/ace-deploy.7" |
	    sed 's/HostName .*/HostName 127.0.0.2/' >page
	[ "$(grep -c '^Host ' page)" -eq 2 ]
	cat ssh/config page >config
	printf 'Host login edge1 edge2\n\tIdentityFile %s/ssh/user\n' "$PWD" >>config
	script ssh <<-END
		exec $(command -v ssh) -F '$PWD/config' -S /run/%n-%C "\$@"
	END
	exits 0 on bash -euo pipefail deploy.sh
	grep -qE '^link +[1-9][0-9.]* [kMG]bit/s, ' out
	grep -q 'accepted' err
	grep -q 'duplicate' err
	grep -q 'edge1: .*1 inputs up to step 0, 1 accepted' out
	same want mean.aceg
}

# trains K ABOVE: an edge's whole run, in the background
trains() {
	local k=$1
	mkdir -p "edge$k/in"
	KEY=edge$k on train-edge.sh "$2" "edge$k" \
	    "$BUILD/examples/train" --index "$k" --of 2 --steps 24 --interval 4 \
	    --policy --layers 1 --width 32 --heads 2 --context 16 --batch 4 \
	    --resume "edge$k/kept" --record "edge$k/in" --apply - \
	    --save "edge$k/model" text >"log$k" 2>&1 3>&- &
}

@test "a whole run, one connection each: an edge, and one behind a relay" {
	apart
	need sshd ssh ssh-keygen nc ss
	ssh_ready
	key edge1
	key edge2
	key relay
	for d in edge2 relay; do
		on authorize.sh $d ssh/$d.pub "$PWD/cloud/spool" \
		    --reply aggregate >>cloud.keys
	done
	on limits.sh "$PWD/cloud/spool" contributors 16 relay
	on authorize.sh edge1 ssh/edge1.pub "$PWD/relay/spool" \
	    --reply aggregate >relay.keys
	host cloud 127.0.0.2 "$PWD/cloud.keys"
	host relay 127.0.0.3 "$PWD/relay.keys"
	on train-cloud.sh cloud 2 >cloud.log 2>&1 3>&- &
	KEY=relay on train-relay.sh cloud relay relay 1 >relay.log 2>&1 3>&- &
	awk 'BEGIN { for (i = 0; i < 1200; i++)
	    printf("the %d of %d is %d\n", i, i % 7, i * i % 97) }' >text
	trains 1 relay
	edge1=$!
	trains 2 cloud
	wait $! $edge1
	same edge1/model edge2/model
	exits 0 ace-inspect books -S edge1/state --spool relay/spool \
	    edge1/in/*
	exits 0 ace-inspect books -S edge2/state --spool cloud/spool \
	    edge2/in/*
	grep -q accepted relay.log

	# what does not get better is not tried for ever
	KEY=edge2 exits 2 on train-edge.sh cloud other \
	    "$BUILD/examples/train" --nonsense text
	# other things under the same names
	mkdir other/in
	KEY=edge2 exits 5 on train-edge.sh cloud other "$BUILD/examples/train" \
	    --index 2 --of 2 --steps 24 --interval 3 --layers 1 --width 32 \
	    --heads 2 --context 16 --batch 4 --apply - text
	says "equivocation"
}

gone() { ! kill -0 -- "-$1"; }

# ended SIGNAL SCRIPT...: two times; nothing of it is left, and it begins again
ended() {
	local sig=$1 n p
	shift
	: >groups
	for n in 1 2; do
		# a shell cannot trap what is ignored, as HUP under nohup
		perl -e '$SIG{HUP} = "DEFAULT"; exec @ARGV' \
		    "$ROOT/examples/hosts/$1" "${@:2}" >log 2>&1 3>&- &
		p=$!
		wait_for eval "[ \"\$(wc -l <groups)\" -eq $n ] || ! kill -0 $p"
		kill -s "$sig" $p
		exits 143 wait $p
		wait_for gone "$(tail -n 1 groups)"
		[ "$(wc -l <groups)" -eq $n ]
	done
}

@test "a whole run is ended by a signal, with all that it started, and begins again" {
	local sig
	mkdir bin
	script ssh <<<"exec ace-recv --spool '$PWD/cloud/spool' --device edge1 --reply aggregate"
	script ace-select <<-END
		ps -o pgid= \$\$ | tr -d ' ' >>'$PWD/groups'
		exec '$BUILD/ace-select' "\$@"
	END
	PATH=$PWD/bin:$PATH
	for sig in TERM HUP; do
		ended $sig train-cloud.sh cloud 1
		ended $sig train-relay.sh host relay edge1 1
		ended $sig train-edge.sh host edge sleep 1000
	done
}

# quits N SCRIPT...: once N of the programs of `stays' run; then they are gone
quits() {
	local n=$1 p pid
	: >pids
	"$ROOT/examples/hosts/$2" "${@:3}" <in >log 2>&1 3>&- &
	p=$!
	wait_for eval "[ \"\$(wc -l <pids)\" -eq $n ]"
	kill $p
	exits 143 wait $p
	while read -r pid; do
		wait_for eval "! kill -0 $pid"
	done <pids
}

@test "scripts that end, by a signal or not, leave no process and no file" {
	local p
	mkdir bin tmp
	export TMPDIR=$PWD/tmp
	for p in spiped socat mosquitto_sub; do
		script $p <<<"echo \$\$ >>'$PWD/pids'; exec sleep 1000"
	done
	PATH=$PWD/bin:$PATH
	gradient edge1 >in
	quits 2 spiped-cloud.sh spool ace.key
	quits 3 mqtt-cloud.sh 127.0.0.1 spool edge1 edge2 edge3
	# a daemon, and netcat, which ends when that does
	script spiped <<-END
		sleep 1000 >/dev/null 2>&1 &
		echo \$! | tee -a '$PWD/pids' >"\${!#}"
	END
	script nc <<-END
		echo \$\$ >>'$PWD/pids'
		exec tail -f /dev/null --pid "\$(head -n 1 '$PWD/pids')"
	END
	quits 2 spiped-edge.sh 127.0.0.1 ace.key state
	script spiped <<<'exit 1'
	exits 1 "$ROOT/examples/hosts/spiped-edge.sh" 127.0.0.1 ace.key state <in
	[ ! -s err ]
	[ -z "$(ls tmp)" ]
}
