# Aggregation rules against bad devices.
load helper
load values

# device NAME VALUE...: write NAME, a shard with these values, $WEIGHT and $NORM
device() {
	perl -e 'print pack("f<*", @ARGV)' -- "${@:2}" |
	    ace-import -f raw -d "$1" -s 1 ${WEIGHT:+-w "$WEIGHT"} \
	    ${NORM:+--model-norm "$NORM"} >"$1"
}

# five: write the shards of four good devices and of one bad
five() {
	device a 1 2 3
	device b 1.5 2.25 2.5
	device c 1.25 1.75 3
	device d 0.75 2.25 3.5
	device z 1000 -2000 9000
}

# values [OPTION...]: print the values of the last output, or of those that options select
values() {
	raw out "$@" | perl -e 'local $/; print join(" ", map { sprintf "%.6g", $_ }
	    unpack "f<*", <STDIN>)'
}

@test "trimmed mean and median" {
	five
	exits 0 ace-aggregate --rule median a b c d z
	[ ! -s err ]
	[ "$(values)" = "1.25 2 3" ]
	[ "$(field contributors out)" = a,b,c,d,z ]
	[ "$(field rule out)" = median ]
	exits 0 ace-aggregate --rule trim:1 a b c d z
	[ "$(values)" = "1.25 2 3.16667" ]
	exits 0 ace-aggregate --rule median a b c d
	[ "$(values)" = "1.125 2.125 3" ]
	exits 5 ace-aggregate --rule trim:2 a b c d
	says 'trim:2 needs at least 5 contributions, found 4: use trim:1 or less'
}

@test "clip shortens large shards and names their devices" {
	device a 3 4
	device b 30 40
	notes "step 1: 'b' is clipped by rule 'clip:5' .*norm 50, median norm 5$" ace-aggregate -v --rule clip:5 a b
	[ "$(values)" = "3 4" ]
	[ "$(field clipped out)" = b:clipped ]
	[ "$(field rule out)" = clip:5 ]
	exits 0 ace-aggregate -v --rule clip:50 a b
	[ "$(values)" = "16.5 22" ]
	[ -z "$(field clipped out)" ]
}

@test "key model.norm of the average is the mean over the devices that count" {
	NORM=2 device a 1 2 3
	NORM=4.5 device b 1.5 2.25 2.5
	NORM=1000 device z 1000 -2000 9000
	exits 0 ace-aggregate a b
	[ "$(field model.norm out)" = 3.25 ]
	exits 0 ace-aggregate --rule norm-ratio:10 a z b
	[ "$(field left-out out)" = z:norm-ratio ]
	[ "$(field model.norm out)" = 3.25 ]
	# the key stays if one device lacks it, and is dropped if most devices lack it
	device c 1 2 3
	exits 0 ace-aggregate a c b
	[ "$(field model.norm out)" = 3.25 ]
	device d 1 2 3
	device f 1 2 3
	exits 0 ace-aggregate a b c d f
	[ -z "$(field model.norm out)" ]
	# the norm keeps all digits of an f32
	NORM=1.23456789 device a 1 2 3
	NORM=1.23456789 device b 1.5 2.25 2.5
	exits 0 ace-aggregate a b
	[ "$(field model.norm out)" = 1.23456789 ]
}

@test "limits of the norm leave devices out, and name them" {
	five
	exits 0 ace-aggregate a b c d
	values >want
	exits 0 ace-aggregate -v --rule norm-ratio:10 a z b c d
	says "step 1: 'z' is left out by rule '.*' .norm-ratio.: norm 9273"
	[ "$(values)" = "$(cat want)" ]
	[ "$(field contributors out)" = a,b,c,d ]
	[ "$(field left-out out)" = z:norm-ratio ]
	[ "$(field weight out)" = 4 ]
	for i in a b c; do device $i nan 0 0; done
	exits 5 ace-aggregate --rule finite a b c
	says 'no contribution is left .found 3.: each has a NaN'
}

@test "the weight, samples and base version of an aggregate are those of devices that count" {
	mkshards -s 9 -d b -H base=5 -H samples=30 -w 0.5 >b
	mkshards -s 9 -d c -H base=4 -H samples=12 -H contributors=3 >c
	# the bad device is left out wherever it comes in the order of devices
	for bad in k l m n o; do
		mkshards -s 9 -d $bad -k nan -H base=1 -H samples=1000 \
		    -H contributors=7 -w 64 >a
		exits 0 ace-aggregate -v --rule finite a b c
		[ "$(field base out)" -eq 4 ]
		[ "$(field samples out)" -eq 42 ]
		[ "$(field n out)" -eq 4 ]
		[ "$(field weight out)" = 1.5 ]
		says "^ace-aggregate: step 9: 'aggregate', 2 contributions, weight 1.5$"
	done
	exits 0 ace-aggregate --rule finite a b c
	[ ! -s err ]
}

@test "--rule takes a rule and limits in one list" {
	five
	device y 30 30 30
	exits 0 ace-aggregate --rule median,finite,norm-ratio:20 a b c d y z
	[ "$(field left-out out)" = z:norm-ratio ]
	[ "$(field rule out)" = median,finite,norm-ratio:20 ]
	exits 0 ace-aggregate --rule norm-ratio:3,median a b c d y z
	[ "$(values)" = "1.125 2.125 3" ]
}

@test "rule finite leaves out a device that sent NaN" {
	mkshards -d a -x 1 >a
	mkshards -d b -x 2 >b
	mkshards -d c -k nan >c
	exits 0 ace-aggregate a b
	raw out >want
	notes "'c' is left out by rule 'finite' .nonfinite." ace-aggregate --rule finite -v a b c
	[ "$(field left-out out)" = c:nonfinite ]
	raw out >got
	same got want
	exits 5 ace-aggregate --rule median a b c
	says "non-finite value in tensor .* from 'c'"
	mkshards -D 8 -t w:4 -k nan -i 1 >c	# f8e4m3, which is not rounded
	refuses 5 'no contribution is left' ace-aggregate --rule mean,finite c
}

@test "a median of sparse shards is refused, or taken among senders" {
	for i in 1 2 3 4 5; do
		mkshards -d "e$i" -x "$i" -c topk:0.1 >"s$i"
		mkshards -d "e$i" -x "$i" >"e$i"
	done
	for rule in median trim:1; do
		exits 5 ace-aggregate --rule "$rule" s1 s2 s3 s4 s5
		says 'of sparse shards would be near zero: .* :senders'
		exits 0 ace-aggregate --rule "$rule:senders" s1 s2 s3 s4 s5
	done
	for i in 1 2 3 4 5; do ace-expand "s$i" >d && raw d >"s$i.f32"; done
	exits 0 ace-aggregate --rule median:senders s1 s2 s3 s4 s5
	raw out >got
	each 'my @x = sort { $a <=> $b } grep { $_ } @v[0 .. 4]; my $r = @x;
	    $v[5] == ($r ? f(($x[($r - 1) / 2] + $x[$r / 2]) / 2) : 0)' \
	    s1.f32 s2.f32 s3.f32 s4.f32 s5.f32 got
	# trim:0 is the mean: over the devices that sent a value, or over all
	exits 0 ace-aggregate --rule trim:0:senders s1 s2 s3 s4 s5
	raw out >got
	exits 0 ace-aggregate s1 s2 s3 s4 s5
	raw out >all
	each 'my $r = grep { $_ } @v[0 .. 4]; my $s = 0; $s += $_ for @v[0 .. 4];
	    $v[5] == ($r ? f($s / $r) : 0) && abs($v[6] - $v[5] * $r / 5) < 1e-6' \
	    s1.f32 s2.f32 s3.f32 s4.f32 s5.f32 got all
	# two of five devices that send only zeros do not make the step count as sparse
	for i in 1 2 3; do
		mkshards -d "e$i" -x "$i" -c topk:0.7 >"t$i"
		ace-expand "t$i" >d
		raw d >"t$i.f32"
	done
	mkshards -d z1 -k zeros >z1
	mkshards -d z2 -k zeros >z2
	exits 0 ace-aggregate --rule median t1 z1 t2 z2 t3
	raw out >got
	each 'my @x = sort { $a <=> $b } @v[0 .. 2], 0, 0; $v[3] == f($x[2])' \
	    t1.f32 t2.f32 t3.f32 got
	exits 0 ace-aggregate --rule trim:2 t1 z1 t2 z2 t3
	mkshards -d z3 -k zeros >z3
	exits 5 ace-aggregate --rule median t1 z1 t2 z2 z3
	says '3 of 5 devices sent more zeros than other values'
}

@test "files, pipes or one stream, in any order: the same bits" {
	for i in 1 2 3 4 5; do
		mkshards -d "e$i" -x "$i" -n 70000 -N 2 >"e$i"
		mkshards -d "e$i" -x "$i" -n 70000 >"o$i"
	done
	for rule in clip:200 trim:1 median center:1; do
		makes want ace-aggregate --omit provenance --rule "$rule" e1 e2 e3 e4 e5
		exits 0 ace-aggregate --omit provenance --rule "$rule" \
		    <(cat e4) e2 <(cat e5) e1 <(cat e3)
		same out want
		makes want ace-aggregate --omit provenance --rule "$rule" o1 o2 o3 o4 o5
		cat o3 o5 o1 o2 o4 >all
		exits 0 ace-aggregate --omit provenance --rule "$rule" <all
		same out want
		ACE_KERNEL=ref exits 0 ace-aggregate --omit provenance \
		    --rule "$rule" o5 o4 o3 o2 o1
		same out want
	done
}

@test "rule trim in a spool" {
	five
	for f in a b c d z; do ace-recv --spool box "$f" >/dev/null; done
	exits 0 ace-aggregate -v --rule trim:1 --spool box --devices 5 --rounds 1
	[ "$(values)" = "1.25 2 3.16667" ]
}

@test "no temporary files are left; a truncated or corrupt input is named" {
	five
	mkdir tmp
	export TMPDIR=$PWD/tmp
	exits 0 ace-aggregate --rule median <(cat a) <(cat b) c
	head -c 700 b >part
	refuses 3 '^ace-aggregate: truncated: .*part' ace-aggregate --rule median a part c
	cp b flipped
	flip flipped "$(frames b | awk '$2 == "SDAT" { print $1 + 70 }')"
	exits 3 ace-aggregate --rule median a flipped c
	says '^ace-aggregate: corrupt: .*flipped'
	[ -z "$(ls -A tmp)" ]
	TMPDIR=$PWD/nowhere exits 4 ace-aggregate --rule median a b <(cat c)
	says 'nowhere'
}

@test "invalid rules are refused" {
	five
	for rule in '' mode clip:0 median:1 'mean,' median,trim:1 mean:senders sum,clip:1; do
		exits 2 ace-aggregate --rule "$rule" a b
		says "^ace-aggregate: --rule '$rule' is not valid: expected sum, or mean, clip:X"
	done
	exits 2 ace-aggregate --rule clip:1:senders a b
	ace-aggregate --rule sum -d s a b >s
	refuses 5 "'s' has kind sum, expected gradient, delta or mean for rule norm-ratio:10" ace-aggregate --rule norm-ratio:10 c s
}

# growing NAME VALUES...: write shards of steps 0, 1, ...; the VALUES of one, separated by
# commas, are a group each
growing() {
	local s=0 v
	for v in "${@:2}"; do
		perl -e 'print pack("f<*", split /,/, $ARGV[0])' -- "$v" |
		    ace-import -f raw -g 1 -d "$1" -s $s
		s=$((s + 1))
	done >"$1"
}

# steps: print the value of each step of the last output
steps() {
	for s in 0 1 2; do echo "$(values --step $s)"; done | paste -sd' '
}

@test "center: a bad device moves the result no further than most devices do" {
	growing a 3 3 3
	growing b 3 3 3
	growing c -30 -30 3
	# step 0: (3 + 3 - 3) / 3 = 1.  Step 1, from center 1: c is clipped to -1.  Its past
	# shards are 6 from the centers and a's are 2, so a third of its difference -2 is left:
	# (3 + 3 + 1/3) / 3.  Step 2: c sends the same as the others, but its past shards are
	# 2.37 from the centers and a's are 1.42, so c is clipped again
	exits 0 ace-aggregate -v --rule center:1 a b c
	[ "$(steps)" = "1 2.11111 2.88031" ]
	says "step 1: 'c' is clipped by rule 'center:1': more than twice"
	[ "$(field clipped out | paste -sd' ')" = "c:clipped c:clipped" ]
	# without a bad device, the mean
	growing c 3 3 3
	exits 0 ace-aggregate --rule center:1 a b c
	[ "$(steps)" = "3 3 3" ]
	# the limit comes from the majority, so a huge value moves the result no further
	growing c -1e30 -1e30 -1e30
	exits 0 ace-aggregate --rule center:1 a b c
	[ "$(steps)" = "1 2.11111 2.60494" ]
	# a group that nobody sends keeps the part of the center that is put in place of c
	growing a 3,4 3,0
	growing b 3,4 3,0
	growing c 3,4 -30,0
	for f in a b c; do ace-compress -c nonzero $f >$f.sent; done
	exits 0 ace-aggregate --rule center:1 a.sent b.sent c.sent
	[ "$(values --step 1)" = "2.55878 1.27985" ]
}

@test "--tolerate N: N of 2 N + 1 devices may be bad, and all have the same weight" {
	WEIGHT=1 device a 3
	WEIGHT=1 device b 3
	WEIGHT=1000000 device c -8
	exits 0 ace-aggregate --tolerate 1 a b c
	[ "$(values)" = 1 ]
	[ "$(field rule out)" = norm-ratio:3,center:1,finite ]
	device c nan
	exits 0 ace-aggregate -v --tolerate 1 a b c
	[ "$(values)" = 3 ]
	says "'c' is left out by rule '.*' .nonfinite."
	exits 5 ace-aggregate --tolerate 1 a b
	says 'center:1 .from --rule or --tolerate. needs 3 contributions, found 2, enough for F = 0: use another rule'
	exits 2 ace-aggregate --tolerate 1 --devices 2 a b
	says '--devices 2 with F = 1: any rule tolerates fewer than half of the devices, here at most 0'
	exits 2 ace-aggregate --tolerate 0 a b c
	exits 2 ace-aggregate --tolerate 1 --rule median a b c
	says '--rule and --tolerate set the same rule'
	exits 2 ace-aggregate --tolerate 1 --rule sum a b c
	exits 2 ace-aggregate --tolerate 1 --cluster 0.5:mean a b c
	# the history begins again with another model
	device a 3 3
	device b 3 3
	device c -8 0
	exits 0 ace-aggregate --tolerate 1 a b c
	[ "$(values)" = "0.585786 2" ]
}

@test "center in a spool: its history survives a kill, and a damaged history is refused" {
	growing a 3 3 3 3
	growing b 3 3 3 3
	growing c -8 -8 3 -8
	for f in a b c; do ace-recv --spool box --sync none "$f" >/dev/null; done
	agg=(ace-aggregate --omit provenance --spool spool --devices 3 --sync none
	    --tolerate 1)
	cp -r box spool
	"${agg[@]}" --rounds 4 >want
	ace-aggregate --omit provenance --tolerate 1 a b c >out
	cp out piped
	same want piped
	# one process per step; the last process is killed at different calls
	rm -r spool
	cp -r box spool
	for s in 0 1 2; do "${agg[@]}" --rounds 1 >"one$s"; done
	cp -r spool fourth
	"${agg[@]}" --rounds 1 >last
	cat one0 one1 one2 last >alone
	for s in 0 1 2 3; do
		ace-export --step $s -f raw -o one alone
		ace-export --step $s -f raw -o all want
		same one all
	done
	for n in $(seq 1 37 400); do
		rm -r spool
		cp -r fourth spool
		got=0
		killed "$n" "${agg[@]}" --rounds 1 >out || got=$?
		[ "$got" -ne 0 ] || break
		# if the kill came after the commit, nothing is left to do
		compgen -G "spool/done/3" >/dev/null && continue
		timeout "$HANG" "${agg[@]}" --rounds 1 >out
		same out last
	done
	[ "$n" -gt 8 ]
	# a damaged history is refused
	rm -r spool
	cp -r fourth spool
	for f in spool/past.?; do
		flip "$f" 300
	done
	refuses 3 'corrupt: .*remove past.0 and past.1 in .spool.: then' "${agg[@]}" --rounds 1
	# a file without the devices is refused, too
	rm -r spool
	cp -r fourth spool
	for f in spool/past.?; do
		head -c "$(frames "$f" | awk '/TAIL/ { print $1 + 112; exit }')" "$f" >cut.aceg
		cp cut.aceg "$f"
	done
	exits 3 "${agg[@]}" --rounds 1
	says 'corrupt: the state of rule center has no rows of devices.*past'
}

@test "norm-ratio leaves a device out; if too few remain, the rule trims fewer values" {
	local d rule
	for d in 1 2 3 4 5 6 7; do
		mkshards -d edge$d -x $d >e$d
	done
	mkshards -d loud -k ramp >loud
	for rule in mean median trim:3; do
		exits 0 ace-aggregate --rule "norm-ratio:2,$rule" e? loud
		[[ "$(field left-out out)" = *loud:norm-ratio* ]]
	done
	exits 0 ace-aggregate --rule norm-ratio:2,trim:1 e1 e2 loud
	says "rule 'norm-ratio:2,trim:1' needs 3 shards, but its filters left fewer .of 3.: the step is averaged with F = 0$"
	# too few contributions even if none is left out
	exits 5 ace-aggregate --rule norm-ratio:2,trim:2 e1 e2 e3 loud
}

@test "no device counts twice: in two relays' aggregates, or in one and by itself" {
	local d e
	for d in edge1 evil edge3; do
		mkshards -d $d >$d
	done
	exits 0 ace-aggregate -d relay1 --rule sum -o one edge1 evil
	exits 0 ace-aggregate -d relay2 --rule sum -o two evil edge3
	exits 5 ace-aggregate one two
	says "'evil' would count twice, in the shards of 'relay[12]' and of 'relay[12]'"
	exits 5 ace-aggregate one edge1
	says "'edge1' would count twice, in the shards of '.*' and of '.*'"
	cat one two | ace-recv --spool spool >/dev/null
	exits 0 ace-aggregate --spool spool --rounds 1 --devices 2 --quorum 1
	says "1 of 2 shards is excluded: 'evil' would count twice, in the shards of 'relay[12]' and of"
	ace-inspect list out | grep -q "^contributors  2$"
	# a device that claims the contributions of others excludes nobody, whatever its name
	for d in edge1 edge2 edge3; do
		mkshards -d $d -k zeros >as$d
	done
	for d in a m z 0 1 2; do
		exits 0 ace-aggregate -d $d -o claims asedge1 asedge2 asedge3
		for e in edge1 edge2 edge3; do
			mkshards -d $e
		done | cat claims - | ace-recv --spool spool$d >/dev/null
		exits 0 ace-aggregate --spool spool$d --rounds 1 --devices 4
		says "^ace-aggregate: step [0-9]+: 1 of 4 shards is excluded: 'edge1' would count twice, in the shards of 'edge1' and of '$d'"
		[ "$(grep -c excluded err)" -eq 1 ]
		ace-inspect list out | grep -q "^contributors  3$"
	done
	# a device that claims the contribution of one other device does not exclude it
	for d in a m z 0 1 2; do
		exits 0 ace-aggregate -d $d -o claims asedge1
		exits 5 ace-aggregate claims edge1
		says "'edge1' would count twice, in the shards of 'edge1' and of '$d'"
		exits 5 ace-aggregate claims edge3 edge1
		says "'edge1' would count twice, in the shards of 'edge1' and of '$d'"
		cat claims edge1 | ace-recv --spool one$d >/dev/null
		exits 0 ace-aggregate --spool one$d --rounds 1 --devices 2
		says "^ace-aggregate: step [0-9]+: 1 of 2 shards is excluded: 'edge1' would count twice, in the shards of 'edge1' and of '$d'"
		ace-inspect diff out edge1
	done
	# nor a whole relay: the aggregate of fewer devices is left out
	mkshards -d edge1 | ace-aggregate -d a -o alone
	exits 0 ace-aggregate -d relay -o group edge1 edge3
	cat alone group | ace-recv --spool both >/dev/null
	exits 0 ace-aggregate --spool both --rounds 1 --devices 2 --quorum 1
	says "'edge1' would count twice, in the shards of 'relay' and of 'a'"
}
