# Monitoring of a run: metrics of ace-status for Prometheus, the script that writes them for
# node_exporter, the dashboard and the alerts.
load helper

# shard DEVICE STEP: send a shard to the spool, with the state in directory DEVICE
shard() {
	mkshards -d "$1" -s "$2" -x "$2" -r demo | ace-compress -S "$1" -c q8 |
	    ace-recv --spool spool | ace-ack -S "$1" >/dev/null 2>&1
}

# metric NAME: print the samples of the metric without the label directory
metric() { sed -n "s/^$1{directory=\"[^\"]*\",\?/{/p" out; }

# families FILE: check the format.  Each family has one HELP and one TYPE, and then samples,
# which are numbers; a counter ends in _total; no name occurs twice.
families() {
	perl -ne '
	    if (/^# HELP (\w+) \S.*\.$/) { $seen{$1}++ and die; $now = $1; $type = "" }
	    elsif (/^# TYPE (\w+) (gauge|counter)$/) {
		$1 eq $now && $type eq "" or die; $type = $2;
		($type eq "counter") == ($now =~ /_total$/) or die }
	    elsif (/^(\w+)(\{(?:[a-z]+="(?:[^"\\\n]|\\[\\"n])*",?)*\}) [0-9.e+-]+$/) {
		$1 eq $now && $type ne "" && !$sample{$1 . $2}++ or die }
	    else { /^# EOF$/ && eof or die }
	    BEGIN { $SIG{__DIE__} = sub { print STDERR "line $.: $_"; exit 1 } }' "$1"
}

@test "metrics of a spool and of states have the right numbers" {
	shard edge1 0
	shard edge2 0
	ace-aggregate --spool spool --devices 2 --rounds 1 >mean.aceg
	shard edge1 1
	mkshards -H kind=6 -K bandwidth=2500000 -K rtt=0.25 -K jitter=0.03125 >edge1/link
	mkshards -d edge2 -s 1 -r demo -n 300 | ace-recv --spool spool >/dev/null
	exits 0 ace-status --format metrics spool edge1 edge2
	families out
	[ "$(metric ace_run_last_step)" = '{run="demo"} 0' ]
	[ "$(metric ace_run_steps)" = '{run="demo"} 2' ]
	[ "$(metric ace_device_step | tail -n 1)" = '{run="demo",device="edge2"} 1' ]
	[ "$(metric ace_device_missing)" = '{run="demo",device="edge1"} 0
{run="demo",device="edge2"} 1' ]
	metric ace_device_shards_total >shards
	grep -qx '{run="demo",device="edge1",verdict="accepted"} 2' shards
	grep -qx '{run="demo",device="edge2",verdict="invalid"} 1' shards
	[ "$(wc -l <shards)" -eq 6 ]
	[ "$(metric ace_device_shard_bytes | head -n 1)" = \
	    "{run=\"demo\",device=\"edge1\"} $(wc -c <spool/1/edge1.aceg)" ]
	metric ace_device_shard_timestamp_seconds | grep edge1 |
	    grep -q "} $(stat -c %Y spool/1/edge1.aceg)"
	# bits per second are given as bytes per second
	[ "$(metric ace_state_link_bytes_per_second)" = '{run="demo",device="edge1"} 312500' ]
	[ "$(metric ace_state_round_trip_seconds)" = '{run="demo",device="edge1"} 0.25' ]
	[ "$(metric ace_state_step | cut -d ' ' -f 2 | paste -sd ' ')" = '1 0' ]
	# the kept share of the squared norm and the square of the residual's ratio add up to 1
	paste -d ' ' <(metric ace_state_contraction_ratio) <(metric ace_state_residual_ratio) |
	    awk '{ s = $2 + $4 * $4; if ($2 <= 0.9 || s < 1 - 1e-9 || s > 1 + 1e-9) exit 1; n++ }
		END { exit n != 2 }'
	[ "$(metric ace_state_receipts | grep -c 'verdict="accepted"')" -eq 2 ]
}

@test "metrics of an empty spool, and with hostile and long names" {
	exits 0 ace-recv --spool spool --create
	exits 0 ace-status --format metrics spool
	[ "$(cat out)" = '# EOF' ]
	shard 'a"b\c' 0
	mkdir -p spool/0
	touch spool/0/$'evil\ndevice{x="1"}.aceg'
	for c in x y; do
		mkshards -d "$(printf 'l%.0s' {1..190})$c" -r demo | ace-recv --spool spool >/dev/null
	done
	exits 0 ace-status --format metrics spool
	families out
	metric ace_device_step | grep -qF 'device="a\"b\\c"'
	[ "$(metric ace_device_step | grep -c 'device="lll')" -eq 2 ]
	! grep -q '^device' out || false
}

@test "metrics: a directory twice, an absent one and a full disk are errors" {
	shard edge1 0
	exits 2 ace-status --format metrics spool edge1 spool
	says "^ace-status: 'spool' was given twice"
	refuses 2 'text, metrics or json' ace-status --format prometheus spool
	exits 4 ace-status --format metrics spool nowhere
	[ ! -s out ]
	exits 4 sh -c 'ace-status --format metrics spool >/dev/full'
}

@test "page, dashboard and alerts name the metrics that exist" {
	local hosts=$ROOT/examples/hosts
	grep -oE '"ace_[a-z_]+"' "$ROOT/cmd/ace-status.c" | tr -d '"' | sort -u >known
	[ "$(wc -l <known)" -gt 20 ]
	sed -n '/^\.Sh METRICS/,/^\.Sh EXIT/p' "$ROOT/man/ace-status.1" |
	    grep -oE '\bace_[a-z_]+' | sort -u | diff known -
	grep -hoE '\bace_[a-z_]+' "$hosts/ace-dashboard.json" | sort -u | comm -13 known - |
	    diff /dev/null -
	# every metric except one is on the dashboard or in an alert
	grep -hoE '\bace_[a-z_]+' "$hosts/ace-dashboard.json" "$hosts/ace-alerts.yml" |
	    sort -u | comm -23 known - | diff <(echo ace_run_steps) -
	python3 -S - "$hosts/ace-dashboard.json" <<-'E'
	import json, sys
	d = json.load(open(sys.argv[1]))
	ids = [p["id"] for p in d["panels"]]
	assert len(set(ids)) == len(ids) > 15
	for p in d["panels"]:
	    g = p["gridPos"]
	    assert g["x"] + g["w"] <= 24 and (p["type"] == "row" or p["targets"])
	E
}

@test "promtool accepts the metrics and the alerts, and alerts fire" {
	command -v promtool >/dev/null || skip "no promtool"
	shard edge1 0
	makes text ace-status --format metrics spool edge1
	exits 0 promtool check metrics <text
	[ ! -s err ]
	cp "$ROOT/examples/hosts/ace-alerts.yml" .
	exits 0 promtool check rules ace-alerts.yml
	cat >alerts.test.yml <<-'E'
	rule_files: [ace-alerts.yml]
	evaluation_interval: 1m
	tests:
	  - interval: 1m
	    input_series:
	      - series: ace_run_open_timestamp_seconds{run="demo"}
	        values: 0x60
	      - series: ace_device_missing{run="demo",device="edge2"}
	        values: 1x60
	      - series: ace_device_missing{run="demo",device="edge1"}
	        values: 0x60
	    alert_rule_test:
	      - eval_time: 20m
	        alertname: AceStepWaits
	        exp_alerts: []
	      - eval_time: 40m
	        alertname: AceStepWaits
	        exp_alerts:
	          - exp_labels: {run: demo}
	            exp_annotations: {summary: "run demo: a step waits for half an hour"}
	      - eval_time: 40m
	        alertname: AceDeviceMissing
	        exp_alerts:
	          - exp_labels: {run: demo, device: edge2}
	            exp_annotations: {summary: "run demo: edge2 is waited for"}
	E
	exits 0 promtool test rules alerts.test.yml
	# promtool parses all expressions of the dashboard
	python3 -S - "$ROOT/examples/hosts/ace-dashboard.json" >drawn.yml <<-'E'
	import json, sys
	print("groups:\n- name: drawn\n  rules:")
	for p in json.load(open(sys.argv[1]))["panels"]:
	    for t in p.get("targets", []):
	        print("  - record: x:y%d%s\n    expr: %s" % (p["id"], t["refId"], json.dumps(t["expr"])))
	E
	exits 0 promtool check rules drawn.yml
}

@test "metrics.sh leaves the old file or the new one, and no temporary file" {
	local metrics=$ROOT/examples/hosts/metrics.sh
	shard edge1 0
	mkdir text
	exits 0 "$metrics" text spool
	families text/ace.prom
	[ "$(stat -c %a text/ace.prom)" = 644 ]
	cp text/ace.prom before
	NAME=edge1 exits 0 "$metrics" text edge1
	grep -q '^ace_state_step' text/ace-edge1.prom
	# a failed call keeps the old file
	exits 4 "$metrics" text spool nowhere
	same text/ace.prom before
	# a killed call does, too
	mkdir bin
	printf '#!/bin/sh\nkill $PPID\n' >bin/ace-status
	chmod +x bin/ace-status
	PATH=$PWD/bin:$PATH exits 143 "$metrics" text spool
	same text/ace.prom before
	[ "$(ls -A text | paste -sd ' ')" = 'ace-edge1.prom ace.prom' ]
	command -v systemd-analyze >/dev/null || return 0
	cp "$ROOT"/examples/hosts/ace-metrics.* .
	# the unit's user does not exist here, and the test may not install files
	sed -i 's/^User=.*//; s|/usr/local/share/ace/hosts|'"$ROOT"'/examples/hosts|' ace-metrics.service
	exits 0 systemd-analyze verify ./ace-metrics.service ./ace-metrics.timer
}

@test "the recipe for TensorBoard writes every number of the table" {
	local m=torch/utils/tensorboard
	mkdir -p $m run
	touch torch/__init__.py torch/utils/__init__.py
	cat >$m/__init__.py <<-'E'
	class SummaryWriter:
	    def __init__(self, to):
	        self.to = to
	    def add_scalar(self, what, value, step):
	        print(self.to, what, step, repr(value))
	    def close(self):
	        print("closed", self.to)
	E
	sed -n '/TensorBoard:$/,/^\.Dl/{/^\.Bd/,/^\.Ed/p}' "$ROOT/man/ace-inspect.1" |
	    sed '/^\.[BE]d/d; s/\\e/\\/g' >board.py
	[ "$(wc -l <board.py)" -le 12 ]
	for d in edge1 edge2; do mkshards -d $d -s 3 -r demo >run/$d.aceg; done
	ace-inspect --format tsv --kind gradient run >table
	python3 board.py <table >said
	grep -qE '^board/edge2 bytes 3 [0-9]+\.0$' said
	[ "$(grep -c ^closed said)" -eq 2 ]
	[ "$(grep norm said | cut -d ' ' -f 4 | head -n 1)" = "$(awk -F '\t' \
	    'NR == 1 { for (i = 1; i <= NF; i++) if ($i == "norm") n = i; next }
	    { print $n; exit }' table)" ]
}
