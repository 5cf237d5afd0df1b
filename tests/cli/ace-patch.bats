load helper

# begins: write the models old, new and third, as files and as directories olds, news and
# thirds; and step.aceg, the patch from old to new
begins() { once models make_models; }

make_models() {
	local seed=0 m
	for m in old new third; do
		mkmodel $m -n 1000 -s $seed
		mkmodel ${m}s -n 1000 -f 3 --reverse -s $((seed++))
	done
	ace-diff -s 7 --base-version 6 old new >step.aceg
}

# is M MODEL: check that the file or directory M equals MODEL: old, new or third
is() {
	if [ -d "$1" ]; then diff -r "$1" "$2s"; else cmp "$1" "$2"; fi
}

# beside M: check that M.ace-patch has only lock and marker
beside() { [ "$(ls -m "$1.ace-patch")" = "lock, marker" ]; }

@test "a file and a directory, also in place; the same patch again changes nothing" {
	for way in "" --in-place; do
		cp old m
		cp -r olds d
		chmod 640 m d/config.json
		for m in m d; do
			exits 0 ace-patch -v $way $m <step.aceg
			is $m new
			beside $m
			grep -q "^step 7$" $m.ace-patch/marker
			stat -c '%i %y %n' $m $m/* >was 2>/dev/null || true
			exits 0 ace-patch -v $way $m <step.aceg
			says "is already the model that the patch makes"
			stat -c '%i %y %n' $m $m/* >now 2>/dev/null || true
			same was now
			# the same without the marker
			rm -r $m.ace-patch
			exits 0 ace-patch -v $way $m <step.aceg
			says "is already the model that the patch makes"
			is $m new
			rm -r $m.ace-patch
		done
		[ "$(stat -c %a m d/config.json | uniq)" = 640 ]
		rm -r m d
	done
}

@test "the default is a new file, and --in-place keeps the inode" {
	cp old m
	ln m kept
	exits 0 ace-patch --in-place m <step.aceg
	is m new
	is kept new
	cp old m
	exits 0 ace-patch m <step.aceg
	is m new
	is kept old
	exits 2 ace-patch <step.aceg
}

@test "--stage and --commit; a process that has the old model open still reads the old model" {
	cp old m
	cp -r olds d
	for m in m d; do
		f=$m
		[ $m = m ] || f=d/model-00001-of-00003.safetensors
		cp $f was
		exits 0 ace-patch --stage $m <step.aceg
		is $m old
		[ "$(ls -m $m.ace-patch)" = "lock, new, ready" ]
		# staging the same patch again is accepted
		exits 0 ace-patch --stage $m <step.aceg
		exec 9<$f
		exits 0 ace-patch --commit -v $m
		says "the next model of '$m' is [0-9a-f]{32}, step 7"
		is $m new
		cat <&9 >has
		exec 9<&-
		same has was
		beside $m
		refuses 5 "'$m' has no staged model" ace-patch --commit $m
	done
}

@test "another patch replaces a staged model; --commit refuses if the model changed meanwhile" {
	ace-diff old third >other
	cp old m
	exits 0 ace-patch --stage m <other
	exits 0 ace-patch --stage m <step.aceg
	exits 0 ace-patch --commit m
	is m new
	cp old m
	exits 0 ace-patch --stage m <step.aceg
	touch -d 2001-01-01 m
	exits 5 ace-patch --commit m
	says "'m' or the staged model changed after ace-patch began to make the next model: apply or stage the patch again"
	same m old
	# the same patch again stages the present model
	exits 0 ace-patch --stage m <step.aceg
	# a damaged patch does not change the staged model
	head -c 1000 other >short
	exits 3 ace-patch --stage m <short
	# the same patch again
	exits 0 ace-patch --stage m <step.aceg
	exits 0 ace-patch --commit m
	is m new
	cp old m
	exits 0 ace-patch m <other
	is m third
}

@test "files added, removed or changed after --stage are not lost" {
	while read -r change; do
		rm -rf d d.ace-patch was
		cp -r olds d
		exits 0 ace-patch --stage d <step.aceg
		(cd d && eval "$change")
		cp -rp d was
		exits 5 ace-patch --commit d
		says "'d' or the staged model changed after ace-patch began to make the next model: apply or stage the patch again"
		diff -r d was
		[ "$(stat -c %a d/config.json)" = "$(stat -c %a was/config.json)" ]
	done <<-END
		echo new >>config.json
		cp config.json x && touch -r config.json x && mv x config.json
		touch vocab.json
		mkdir original && touch original/params.json
		mv config.json x && touch -r x config.json && rm x
		ln -sf model-00001-of-00003.safetensors last
		chmod 600 config.json
	END
	mkdir d.ace-patch/new/kept
	exits 0 ace-patch --in-place d <step.aceg
	says "'d.ace-patch/new' cannot be removed: Directory not empty"
	[ -d d.ace-patch/new/kept ]
}

# looks M: print a checksum of the files of M, with their modes and owners
looks() {
	tar -cf - --sort=name --mtime=@0 --transform "s/^$1/model/" "$1" | cksum
}

# changed FROM WAY CHANGE: patch a copy of FROM, and make CHANGE before every $every-th call.
# The old or the new model plus CHANGE is left, and third is not taken for the new model.
changed() {
	local n got from=$1 way=$2 change=$3
	rm -rf was will
	cp -rp "$from" was
	cp -rp "${from/old/new}" will
	for m in was will; do
		eval "$change"
		looks $m >$m.looks
	done
	export m=m
	for ((n = 1 + turn++ % every; ; n += every)); do
		rm -rf m m.ace-patch x
		cp -rp "$from" m
		got=0
		meanwhile $n "$change" ace-patch $way m <step.aceg 2>err || got=$?
		[ -e stopped ] || break
		# with --stage, --commit's status counts
		[[ $got != 0 || $way != *stage* ]] || ace-patch --commit m 2>err || got=$?
		looks m >is
		cmp -s is will.looks || { [[ $got = [345] ]] && cmp -s is was.looks; } || {
			echo "$way, $change, before call $n: status $got"
			cat err
			ls -lR m
			return 1
		}
		# third must be refused, except where it overwrote the new model
		[[ $change != *third* || ($got = 0 && $change = *cat*) ]] ||
		    ! ace-patch m <step.aceg 2>err || {
			echo "$way, $change, before call $n: taken for the new one"
			return 1
		}
	done
	[ "$n" -gt 20 ]
}

@test "files added, removed or changed during a patch are not lost" {
	every=$(thorough && echo 7 || echo 97)
	for way in "" --stage; do
		while read -r change; do
			changed olds "$way" "$change"
		done <<-'END'
			echo mine >$m/notes.txt
			rm $m/config.json
			echo 12 >x; touch -r $m/config.json x; mv x $m/config.json
			touch -r $m/config.json x; echo 34 >$m/config.json; touch -r x $m/config.json
			rm $m/config.json; mkdir $m/config.json; echo mine >$m/config.json/it
			mkdir $m/original; echo mine >$m/original/it
			mv $m/config.json $m/x.json
			ln -s x $m/config.new; mv $m/config.new $m/config.json
			chmod 750 $m
			chmod 600 $m/config.json
			cp thirds/*2-of* x; touch -r $m/*2-of* x; mv x $m/model-00002-of-00003.safetensors
			touch -r $m/*2-of* x; cat thirds/*2-of* >$(echo $m/*2-of*); touch -r x $m/*2-of*
		END
	done
}

@test "a model that is replaced or written during a patch is not lost" {
	every=$(thorough && echo 1 || echo 47)
	for way in "" --stage --in-place; do
		changed old "$way" 'cp third x; touch -r $m x; mv x $m'
	done
	changed old --stage 'touch -r $m x; cat third >$m; touch -r x $m'
}

@test "a write just before the rename is not lost, even after a kill" {
	local n got write='cat $other >$f'
	export f other
	for way in olds old 'old again'; do
		read -r from again <<<"$way"
		[ $from = old ] && f=m || f=m/model-00002-of-00003.safetensors
		other=${f/#m/third${from:3}}
		for n in {1..100}; do
			rm -rf m m.ace-patch kept
			cp -r $from m
			# an earlier patch has left a marker of the next model
			[ -z "$again" ] ||
			    { ace-patch m <step.aceg && rm -r m && cp -r $from m; }
			# kept is a second hard link, through which the old file can be compared
			ln $f kept
			ace-patch --stage m <step.aceg
			got=0
			ACE_KILL=$n meanwhile exchange "$write" ace-patch --commit m 2>err || got=$?
			[ -e stopped ] || continue
			[ $got = 137 ] || break
			exits 5 ace-patch m <step.aceg
			same $f $other
		done
		[ $got = 5 ]
		says "'m' or the staged model changed after ace-patch began to make the next model: apply or stage the patch again"
		same $f $other
		[ "$(ls -m m.ace-patch)" = lock ]
	done
}

@test "owner, group and mode are kept; without permission to set them nothing is written" {
	[ "$(id -u)" -eq 0 ] || skip "needs root"
	for m in m d; do
		rm -rf m m.ace-patch d d.ace-patch
		cp old m
		cp -r olds d
		chown -R 65534:12 m d
		chown :7 d
		chmod 2775 d
		chmod 464 m d/model-*
		stat -c '%n %u %g %a' m d d/* >was
		(umask 077 && exits 0 ace-patch $m <step.aceg)
		is $m new
		stat -c '%n %u %g %a' m d d/* | diff was -
		rm -rf $m.ace-patch
		cp -rpT "$([ $m = m ] && echo old || echo olds)" $m
		chown -R 65534 $m
		exits 4 setpriv --bounding-set=-chown ace-patch $m <step.aceg
		says "'$m.ace-patch/new.*': Operation not permitted"
		is $m old
		[ "$(ls -m $m.ace-patch)" = lock ]
	done
}

@test "in place, a read-only file is refused and no journal is left" {
	[ "$(id -u)" -eq 0 ] || skip "needs root"
	mkdir nobody
	cp old nobody/m
	cp -r olds nobody/d
	chmod 444 nobody/m nobody/d/model-00002-of-00003.safetensors
	chmod 711 .
	chown -R 65534 nobody
	for m in m d; do
		exits 4 setpriv --reuid=65534 --clear-groups ace-patch --in-place nobody/$m <step.aceg
		says "'nobody/$m.*': Permission denied"
		[ "$(ls -m nobody/$m.ace-patch)" = lock ]
		is nobody/$m old
		# a copy needs no permission to write the old files
		exits 0 setpriv --reuid=65534 --clear-groups ace-patch nobody/$m <step.aceg
		is nobody/$m new
	done
	# a directory that its owner cannot write is not exchanged
	chmod 555 nobody/d
	ace-diff new third >next
	exits 5 setpriv --reuid=65534 --clear-groups ace-patch nobody/d <next
	says 'use --in-place'
	[ "$(ls -m nobody/d.ace-patch)" = 'lock, marker' ]
}

@test "files behind symbolic links stay unchanged" {
	mkdir hub hub/blobs
	cp -r olds hub/d
	ln hub/d/model-00001-of-00003.safetensors kept
	mv hub/d/model-00002-of-00003.safetensors hub/blobs/b
	ln -s ../blobs/b hub/d/model-00002-of-00003.safetensors
	cp -rP hub was
	exits 0 ace-patch hub/d <step.aceg
	is hub/d new
	same hub/blobs/b was/blobs/b
	same kept was/d/model-00001-of-00003.safetensors
	# as in Hugging Face's cache, every file is a link
	mkdir -p cache/snapshots/main
	cp -r olds cache/blobs
	for f in olds/*; do
		ln -s "../../blobs/${f##*/}" cache/snapshots/main
	done
	exits 0 ace-patch --stage cache/snapshots/main <step.aceg
	touch cache/blobs/config.json
	exits 5 ace-patch --commit cache/snapshots/main
	exits 0 ace-patch cache/snapshots/main <step.aceg
	is cache/snapshots/main new
	[ -L cache/snapshots/main/config.json ]
}

@test "another model with the same mtime is not taken for the model of the marker" {
	touch -d @0 old new third
	touch -d @0 olds/* thirds/*
	for to in old olds; do
		other=${to/old/third}
		rm -rf m m.ace-patch
		cp -rp $to m
		exits 0 ace-patch m <step.aceg
		find m -type f -exec touch -d @0 {} +
		exits 0 ace-patch m <step.aceg
		# the copy keeps the inode of m, then has a new one
		for how in -rpT "-rpT --remove-destination"; do
			cp $how $other m
			refuses 5 "the patch to step 7 is for model" ace-patch m <step.aceg
			is m third
		done
	done
	# after a rename or chmod of m the model is read again, and the step is kept
	rm -rf m m.ace-patch
	cp old m
	exits 0 ace-patch m <step.aceg
	chmod 600 m
	ln m more
	cp m.ace-patch/marker was
	exits 0 ace-patch m <step.aceg
	exits 1 cmp -s was m.ace-patch/marker
	diff <(head -2 was) <(head -2 m.ace-patch/marker)
}

@test "a patch for another model: status 5, a message with both hashes and the step; nothing is written" {
	ace-diff -s 8 --base-version 7 new third >next
	cp old m
	stat -c '%i %y' m >seen
	refuses 5 "the patch to step 8 is for model [0-9a-f]{32}, step 7, but 'm' is model [0-9a-f]{32}: apply patches that begin with this model, or a whole model from 'ace-diff NEW'\$" ace-patch m <next
	stat -c '%i %y' m | diff seen -
	same m old
	exits 0 ace-patch m <step.aceg
	exits 0 ace-patch m <next
	refuses 5 "the last patch applied to it made step 8" ace-patch m <step.aceg
	is m third
}

@test "a truncated, damaged or forged patch does not change the model" {
	cp old m
	for at in $(seq 1 97 $(($(wc -c <step.aceg) - 1))); do
		each_of 5 || continue
		head -c "$at" step.aceg >bad
		exits 3 ace-patch m <bad
		same m old
		cp step.aceg bad
		flip bad "$at"
		exits 3 ace-patch m <bad
		same m old
	done
	refuses 3 "truncated" ace-patch m </dev/null
	refuses 3 "safetensors" ace-patch m <old
	mkshards >bad
	refuses 3 "not a patch of a model" ace-patch m <bad
	mkshards -H kind=5 >bad
	exits 3 ace-patch m <bad
	mkmodel small -n 10
	exits 3 ace-patch small <step.aceg
	says "mismatch: the patch is for another architecture than 'small': .*'layer"
	same m old
	[ "$(ls -m m.ace-patch)" = "lock" ]
}

@test "all values of bf16 are patched, with NaN, infinity and -0" {
	st '{"w":{"dtype":"BF16","shape":[65536],"data_offsets":[0,131072]}}' >old
	cp old new
	perl -e 'print pack("S<*", 0 .. 65535)' >>old
	perl -e 'print pack("S<*", map { ($_ * 31 + 7) & 65535 } 0 .. 65535)' >>new
	makes step.aceg ace-diff old new
	exits 0 ace-patch old <step.aceg
	same old new
}

# one_of M NAME...: check that M equals one of these models
one_of() {
	for model in "${@:2}"; do
		! is "$1" "$model" >/dev/null || return 0
	done
	return 1
}

# at_each_kill WAY: kill ace-patch at each of its changes of a file, with an input of two
# patches, or with --commit.  The model must be whole: right then, or with --in-place after the
# next ace-patch.
at_each_kill() {
	local n got
	for n in $(upto 800); do
		rm -rf m m.ace-patch
		cp -r olds m
		[ "$1" != --commit ] || ace-patch --stage m <step.aceg
		got=0
		killed "$n" ace-patch $1 m <all 2>err || got=$?
		[ "$1" = --in-place ] || one_of m old new third
		[ "$got" -eq 137 ] || break
		if [ "$1" = --commit ]; then
			# staged or committed; status 5 means that nothing is left to do
			ace-patch --commit m 2>err || [ $? -eq 5 ]
			is m new
			beside m
		fi
		# a call with an unsuitable patch, too, completes the interrupted one
		exits 5 ace-patch m <other
		one_of m old new third || { echo "killed at $n"; return 1; }
		exits 0 ace-patch ${1/--commit/} m <all
		is m third
		beside m
	done
	[ "$got" -eq 0 ] && [ "$n" -gt 3 ]
}

@test "killed at any change of a file: two patches with copy and in place, and --commit" {
	mkmodel fourth -n 1000 -s 3
	mkmodel fifth -n 1000 -s 4
	ace-diff fourth fifth >other
	ace-diff -s 8 new third | cat step.aceg - >all
	for way in "" --in-place --commit; do
		at_each_kill $way
	done
}

@test "with an old ready file, which a power cut brings back, no half-written model is put in place" {
	ace-diff new third >next
	ace-diff old third >other
	for patch in other next; do
		for n in $(upto 200); do
			rm -rf m m.ace-patch
			cp -r olds m
			ace-patch --stage m <step.aceg
			cp m.ace-patch/ready was
			[ $patch = other ] || ace-patch --commit m
			got=0
			killed "$n" ace-patch --stage m <$patch 2>err || got=$?
			[ "$got" -eq 137 ] || break
			# the next model may get the inode of the dropped one
			inode=$(stat -c %i m.ace-patch/new) || continue
			[ $patch = next ] || sed -i "s/^inode .*/inode $inode/" was
			[ -e m.ace-patch/ready ] || cp was m.ace-patch/ready
			ace-patch --commit m 2>err || [ $? -eq 5 ]
			one_of m old new third
		done
		[ "$got" -eq 0 ]
		[ "$n" -gt 8 ]
	done
}

# left FILE IS PATCH CMD...: kill CMD when m.ace-patch/FILE exists and m equals IS
left() {
	local n
	cp m before
	for n in {1..400}; do
		killed "$n" "${@:4}" <"$3" 2>err && return 1
		[ ! -e "m.ace-patch/$1" ] || ! cmp -s m "$2" || return 0
		rm -rf m m.ace-patch
		cp before m
	done
	return 1
}

@test "a journal that a kill left is applied only to the same model, and completely" {
	# one.aceg changes one group; `other' differs from old in a bit of another group
	cp old near
	flip near $(($(wc -c <near) - 1))
	ace-diff old near >one.aceg
	cp old other
	flip other $(($(wc -c <other) / 2))
	while read -r patch model makes; do
		rm -rf m m.ace-patch
		cp old m
		left redo old $patch ace-patch --in-place m
		cp $model m
		for _ in 1 2; do
			exits 5 ace-patch m <$patch
			says "journal 'm.ace-patch/redo' does not fit 'm': one of them was changed after a patch was interrupted"
			same m $model
			[ ! -e m.ace-patch/marker ]
		done
		mkmodel m -n 10
		exits 5 ace-patch m <$patch
		[ ! -e m.ace-patch/marker ]
		cp old m
		exits 0 ace-patch m <$patch
		same m $makes
		beside m
	done <<-END
		step.aceg third new
		step.aceg other new
		one.aceg other near
	END
}

@test "a journal whose block is beyond its group is refused before it is applied" {
	cp old m
	left redo old step.aceg ace-patch --in-place m
	# the number of the first changed block follows the head of its group
	perl -0777 -pi -e 'my $at = 0;
		$at += 40 until unpack("V", substr($_, $at + 4));
		substr($_, $at + 40, 2) = "\xff\xff"' m.ace-patch/redo
	refuses 3 "corrupt: journal 'm.ace-patch/redo' is damaged: remove" ace-patch m <step.aceg
	same m old
}

# renamed MODEL: patch m, a copy of MODEL; kill --commit when the new model is in place
renamed() {
	local n
	for n in {1..400}; do
		rm -rf m m.ace-patch
		cp -r "$1" m
		ace-patch --stage m <step.aceg
		killed "$n" ace-patch --commit m 2>err && return 1
		! is m new >/dev/null || break
	done
	[ -e m.ace-patch/ready ]
}

@test "another model in place of a committed one is not taken for the committed one" {
	renamed old
	cp third m
	refuses 5 "the patch to step 7 is for model" ace-patch m <step.aceg
	same m third
	[ "$(ls -m m.ace-patch)" = lock ]
	for to in old olds; do
		renamed $to
		rm -r m
		cp -r $to m
		exits 0 ace-patch --stage m <step.aceg
		exits 0 ace-patch --commit m
		is m new
		beside m
	done
}

@test "several processes patch one model" {
	cp old m
	cp -r olds d
	for m in m d; do
		pids=
		for _ in 1 2 3 4; do
			timeout "$HANG" ace-patch $m <step.aceg &
			pids="$pids $!"
		done
		for pid in $pids; do
			wait "$pid"
		done
		is $m new
		beside $m
	done
}

# another process makes the directory and its lock at the same time
@test "a lock that is made while the directory is read" {
	cp old m
	mkdir -m 700 m.ace-patch
	exits 0 env LD_PRELOAD="$(preload)" ACE_MEANWHILE="$PWD/m.ace-patch/lock" ace-patch m <step.aceg
	is m new
	beside m
	rm -r m.ace-patch
	mkdir -m 700 m.ace-patch
	exits 5 env LD_PRELOAD="$(preload)" ACE_MEANWHILE="$PWD/m.ace-patch/mail" ace-patch m <step.aceg
	says "'m.ace-patch/mail' was not made by ace-patch"
}

@test "a chain of steps; through links, with a trailing slash, in /dev/shm" {
	ace-diff new third >next
	mkdir real
	cp old real/m
	ln -s real/m link
	exits 0 ace-patch link <step.aceg
	[ -L link ]
	is real/m new
	cp -r olds d
	exits 0 ace-patch d/ <step.aceg
	# with these names m.ace-patch would be inside the model
	for name in . ./ .. ../d/. x/..; do
		(cd d && exits 2 ace-patch "$name" <../next && says "the model's own name")
	done
	rm d/out d/err
	exits 0 ace-patch d <next
	is d third
	beside d
	if [ -w /dev/shm ]; then
		shm=$(mktemp -d /dev/shm/ace-test-XXXXXX)
		cp old "$shm/m"
		exits 0 ace-patch "$shm/m" <step.aceg
		is "$shm/m" new || { rm -r "$shm"; false; }
		rm -r "$shm"
	fi
}

@test "an input of several patches, which may begin with a whole model" {
	ace-diff -s 6 old >whole
	ace-diff -s 8 new third >next
	mkmodel fourth -n 1000 -s 3
	ace-diff fourth third >other
	cat whole step.aceg next >all
	for way in "" --in-place; do
		mkmodel m -n 1000 -s 9
		exits 0 ace-patch $way m <all
		is m third
		beside m
		grep -q "^step 8$" m.ace-patch/marker
		exits 0 ace-patch -v $way m <next
		says "is already the model that the patch makes"
		# with and without a marker, patches before the model's are passed over
		cat step.aceg next >part
		exits 0 ace-patch $way m <part
		rm -r m.ace-patch
		exits 0 ace-patch $way m <part
		grep -q "^step 8$" m.ace-patch/marker
		cp new m
		exits 0 ace-patch $way m <part
		is m third
		rm -r m m.ace-patch
	done
	cp old m
	refuses 3 "limit: the input has more than one patch, but --stage takes one" \
	    ace-patch --stage m <all
	same m old
	[ ! -e m.ace-patch/ready ]
	cat next step.aceg | exits 5 ace-patch m
	says "the patch to step 8 was not applied, but the patch to step 7, which came later, was"
	# each patch is applied on its own, if what follows it is not damaged
	cp old m
	cat step.aceg whole step.aceg >part
	exits 0 ace-patch m <part
	is m new
	cp old m
	head -c -1 part >bad
	exits 3 ace-patch m <bad
	same m old
	cat step.aceg other >bad
	exits 5 ace-patch m <bad
	says "the patch to step 0 is for model [0-9a-f]*, but 'm' is model [0-9a-f]*; the last patch applied to it made step 7: apply a patch to a later step"
	is m new
}

@test "a patch that changes nothing: a new step" {
	ace-diff -s 8 --base-version 7 new new >same.aceg
	cp old m
	exits 0 ace-patch m <step.aceg
	exits 0 ace-patch m <same.aceg
	is m new
	grep -q "^step 8$" m.ace-patch/marker
	# a patch to an older step of the same model does not change the marker's step
	exits 0 ace-patch m <step.aceg
	grep -q "^step 8$" m.ace-patch/marker
	# the same after a patch that changes something
	cat step.aceg same.aceg >all
	cp old m
	exits 0 ace-patch m <all
	is m new
}

@test "parameters out of range: status 2, and nothing is made" {
	cp old m
	for bad in "-T 257" "-T -1" "-T x" "--max-elements 0" "--max-elements -1" \
	    "--max-elements 1099511627777" "--in-place=1" \
	    "--commit --stage" "--stage --in-place"; do
		exits 2 ace-patch $bad m <step.aceg
	done
	exits 2 ace-patch m old <step.aceg
	same m old
	[ ! -e m.ace-patch ]
	# the largest and the smallest values of options
	exits 0 ace-patch -T 256 --max-elements 1099511627776 m <step.aceg
	is m new
	cp old m
	refuses 3 "limit" ace-patch --max-elements 1 m <step.aceg
	same m old
}

@test "a model that contains a directory is patched in place only" {
	mkdir olds/original news/original
	cp -r olds d
	refuses 5 "'d/original' is a directory inside the model" ace-patch d <step.aceg
	is d old
	exits 0 ace-patch --in-place d <step.aceg
	is d new
}

@test "a model of more files than the soft limit of open files" {
	rm -r olds news
	mkmodel olds -n 100 -f 15
	mkmodel news -n 100 -f 15 -s 1
	ulimit -S -n 24
	makes step.aceg ace-diff olds news
	for way in "" --in-place; do
		cp -r olds d
		exits 0 ace-patch $way d <step.aceg
		diff -r d news
		rm -r d d.ace-patch
	done
}

@test "a model that is a mount point is patched in place only" {
	unshare -m true 2>/dev/null || skip "a mount needs root"
	mkdir d
	touch m
	for m in m d; do
		[ $m = m ] && from=old || from=olds
		exits 5 unshare -m sh -c 'mount --bind "$0" "$1" && exec ace-patch "$1"' \
		    $from $m <step.aceg
		says "('$m' cannot be exchanged with another [a-z ]+ \(.*busy\)|'$m/[^']*' and '$m.ace-patch' are on different file systems): use --in-place"
		[ "$(ls -m $m.ace-patch)" = lock ]
		is $from old
		exits 0 unshare -m sh -c 'mount --bind "$0" "$1" && exec ace-patch --in-place "$1"' \
		    $from $m <step.aceg
		is $from new
	done
}
