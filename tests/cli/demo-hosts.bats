# examples/demo-hosts.sh with a short text, in paths with spaces: it finishes, reports its
# progress, and leaves no files or processes.
# bats file_tags=plain,long
load helper
load netns
patient

prepare() {
	netns_can || skip 'needs root and network namespaces'
	for p in ssh sshd unshare; do
		PATH=$PATH:/usr/sbin command -v $p >/dev/null || skip "no $p"
	done
	mkdir -p 'a tmp' 'a tree/tests/cli'
	cp -r "$ROOT/examples" 'a tree/'
	cp "$ROOT/tests/cli/netns.bash" 'a tree/tests/cli/'
	export TMPDIR="$PWD/a tmp"
	awk 'BEGIN { for (i = 0; i < 9000; i++)
	    printf("the %d of %d is %d\n", i % 10, i % 7, i * i % 97) }' >text
	unset SHORT KEEP
}

@test "six hosts, two of which are killed: progress lines, the table and its explanation" {
	prepare
	CORPUS=text STEPS=60 PROGRESS=1 exits 0 timeout "$HANG" 'a tree/examples/demo-hosts.sh'
	for w in 'edge3 is dead' 'the relay is dead' 'the relay is back'; do
		says "^demo-hosts: [0-9]+s: $w"
	done
	says '^demo-hosts: [0-9]+s: .*: step [0-9]+ of 60, loss [0-9.]+, [0-9]+ s left$'
	[ "$(grep -cE '^(edge[1-4]|relay) +[0-9]+( +[0-9]+){6}$' out)" -eq 5 ]
	for w in $(sed -n 's/^host//p' out | tr ' ' '\n' | grep -v -e Mbit -e bytes -e up -e down); do
		grep -q "$w: " out || { echo "not said what $w is"; return 1; }
	done
	! grep -q '.\{101\}' out || false
	[ -z "$(ls -A 'a tmp')" ]
}

@test "a missing text is reported first; a table that cannot be written, at the end" {
	prepare
	CORPUS=nowhere exits 4 'a tree/examples/demo-hosts.sh'
	says 'nowhere'
	exits 4 sh -c "'a tree/examples/demo-hosts.sh' >&-"
	says '^demo-hosts: standard output is closed'
	printf x | dd of='a tree/examples/text.xz' bs=1 seek=9999 conv=notrunc
	refuses 3 '^text.sh: bad checksum' 'a tree/examples/demo-hosts.sh'
	[ -z "$(ls -A 'a tmp')" ]
}
