# Edges, two regional relays and a cloud, as in ace(7), with the same programs at every
# level.  A program that dies is restarted; no value is lost or doubled between levels.
# bats file_tags=plain
load helper
load values

# edge N REGION STEPS: run an edge until all its shards are delivered
edge() {
	local from
	while :; do
		from=0
		[ ! -e "st$1/residual" ] ||
		    from=$(($(field step "st$1/residual" | head -n 1) + 1))
		mkshards -d "edge$1" -x "$1" -w "$1" -s "$from" \
		    -N $(($3 - from)) -k ramp |
		    ace-compress -S "st$1" -c topk:0.2 --window 4 --sync none |
		    as "recv$1" ace-recv --spool "region$2" --reply aggregate \
		    --sync none |
		    ace-ack -S "st$1" --sync none >"back$1" && return
	done 2>>"err.edge$1"
}

# as NAME CMD...: run CMD, with its process number in pid.NAME so that it can be killed
as() { sh -c 'echo $$ >"pid.$0"; exec "$@"' "$@"; }

# relay N CODEC: run a pipe from its edges' spool to the cloud and back; if one program dies,
# all end, and the pipe starts again
relay() {
	while [ ! -e stop ]; do
		as "up$1" ace-aggregate --spool "region$1" --create --devices 2 --rule sum \
		    -d "region$1" --publish --sync none |
		    as "code$1" ace-compress -S "rs$1" -c "$2" --window 4 \
		    --sync none |
		    as "link$1" ace-recv --spool cloud --device "region$1" \
		    --reply aggregate --sync none |
		    as "ack$1" ace-ack -S "rs$1" --sync none |
		    as "down$1" ace-recv --spool "region$1" --publish \
		    --sync none || true
	done 2>>"err.relay$1"
}

# cloud STEPS: run the cloud for STEPS steps
cloud() {
	ace-aggregate --spool cloud --create --devices 2 --rounds "$1" --publish \
	    --sync none | ace-recv --spool cloud --publish --sync none
	: >over
}

# levels STEPS CODEC KILLS: run four edges, two relays and a cloud, and kill KILLS programs
levels() {
	local i k victims e=() relays=()
	for i in 1 2; do
		relay $i "$2" 3>&- &
		relays+=("$!")
	done
	for i in 1 2 3 4; do
		edge "$i" $(((i + 1) / 2)) "$1" 3>&- &
		e+=("$!")
	done
	cloud "$1" 3>&- &
	e+=("$!")
	victims=(up1 code1 link1 ack1 down1 recv1 recv2 up2 code2 down2 recv4)
	for ((k = 0; k < $3; k++)); do
		# spread the kills over the run, however fast it is
		wait_for test -e "cloud/done/$((k * $1 / $3))" -o -e over
		sleep "0.0$((RANDOM % 10))"
		[ ! -e over ] || break
		i=$(cat "pid.${victims[k % ${#victims[@]}]}" 2>/dev/null) ||
		    continue
		kill -9 "$i" 2>/dev/null && echo "$i" >>kills
	done
	# a relay that was killed at the end still gives its edges the last step
	wait "${e[@]}"
	: >stop
	# end the relays, which wait for a step that does not come; in a loop, since one may start
	# its pipe again just before `stop' is made
	while kill -0 "${relays[@]}" 2>/dev/null; do
		for i in up1 up2; do kill "$(cat "pid.$i")" 2>/dev/null; done
		sleep 0.05
	done
	wait
}
export -f field shards edge as relay cloud levels wait_for

# conserved STEPS: run the audit between edges and relays, and between relays and cloud
conserved() {
	local i s
	for i in 1 2 3 4; do
		mkshards -d "edge$i" -x "$i" -w "$i" -N "$1" -k ramp >"in$i"
		exits 0 ace-inspect audit -S "st$i" \
		    --spool "region$(((i + 1) / 2))" "in$i"
		grep -q "edge$i: exact, $1 inputs" out
	done
	for i in 1 2; do
		for s in $(seq 0 $(($1 - 1))); do
			ace-aggregate --rule sum -d "region$i" \
			    "region$i/$s/"edge*.aceg
		done >"sums$i"
		exits 0 ace-inspect audit -S "rs$i" --spool cloud \
		    "sums$i"
		grep -q "region$i: exact, $1 inputs" out
	done
}

@test "relays, connections and codecs are killed: no value is lost, and weights count as without relays" {
	n=40
	RANDOM=7
	timeout "$HANG" bash -c "RANDOM=7; levels $n f32 22" || true
	[ -e stop ]
	echo "# $(wc -l <kills) killed" >&3
	[ "$(wc -l <kills)" -ge 5 ]
	conserved $n
	# the cloud's mean of the two sums is the mean of all edges
	for s in 0 7 $((n - 1)); do
		ace-aggregate region?/$s/edge*.aceg >flat
		cp "cloud/$s/aggregate.aceg" deep
		[ "$(field weight deep)" = 10 ]
		[ "$(field n deep)" = 4 ]
		[ "$(field contributors deep)" = edge1,edge2,edge3,edge4 ]
		raw flat >flat.f32
		raw deep >deep.f32
		same flat.f32 deep.f32
		# both regions got the same average
		same "region1/$s/aggregate.aceg" \
		    "region2/$s/aggregate.aceg"
	done
}

@test "relays with a lossy codec keep the rest in their residual" {
	timeout "$HANG" bash -c "levels 12 topk:0.1 0" || true
	[ -e stop ]
	conserved 12
	[ "$(field weight cloud/11/aggregate.aceg)" = 10 ]
}
