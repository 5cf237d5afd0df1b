# shellcheck disable=SC2154 # front.bash sets train and last
load helper
load front



@test "a trainer that fails ends the device with status 1 and is named" {
	cloud run --devices 1
	wait_for test -e run/run
	exits 1 ace edge run --name edge1 -- sh -c 'exit 7'
	says "^ace-edge: sh ended with status 7 in round 1"
	exits 1 ace edge run --name edge1 -- ./none
	says './none ended with status 127'
}

@test "what comes before the answer of another host is quoted" {
	cat >through <<-'END'
	#!/bin/sh
	echo 'Welcome to Linux!'
	END
	chmod 755 through
	exits 3 ace edge h:run --name edge1 --through ./through -- true
	says "'h' answers 'Welcome to Linux!' where 'ace-cloud 1' was expected"
	exits 4 ace edge h:run --name edge1 --through false -- true
	says "the cloud 'h' was not reached"
}

@test "--through takes the place of ssh" {
	cloud run --devices 1 --rounds 2 --bits 8
	wait_for test -e run/run
	printf '#!/bin/sh\nexec ace-cloud serve %s "$@"\n' "$PWD/run" >through
	chmod 755 through
	exits 0 ace edge far:away --name edge1 --through ./through -- "$train" 5 2
	averaged edge1 2 5
}

@test "--print shows the pipeline, with which the run goes on" {
	cloud run --devices 1 --rounds 4 --bits 8
	wait_for test -e run/run
	edge edge1 1 2
	ends edge1
	exits 0 ace edge run --name edge1 --print -- "$train" 1 4
	grep -q '^mkfifo back$' out
	cp out pipe.sh
	# who reads the last answer has ended before its stream does
	ACE_NAME=edge1 bash pipe.sh 2>/dev/null || [ $? -eq 141 ]
	averaged edge1 4 1
	exits 0 ace cloud other --devices 3 --print
	grep -q 'ace-aggregate --spool .*/other/spool .*--expect 3' out
}
