# examples/trainers: each works as `ace example' prints it; two devices end with the same
# model although one is killed.  And the units for systemd.
# shellcheck disable=SC2154 # front.bash sets last
load helper
load front

# python_with MODULE: set PYTHON to one that has the module, or skip
python_with() {
	for PYTHON in python3 /usr/bin/python3 none; do
		"$PYTHON" -c "import $1" 2>/dev/null && return
	done
	skip "no Python with $1"
}
# device K COMMAND...: start device K with COMMAND
device() {
	begin ace edge run --name "edge$1" -- "${@:2}" 2>>"edge$1.err"
	eval "pid_edge$1=$last"
}
# trains CHECKPOINT COMMAND...: run two devices, and kill and restart the first one when it has
# printed $dies or round 3; each # in CHECKPOINT and COMMAND is the number of the device
trains() {
	local checkpoint=$1
	shift
	cloud run --devices 2 --rounds 12 --bits 8
	device 1 "${@//#/1}"
	device 2 "${@//#/2}"
	wait_for grep -q "${dies:-round 3/12}" edge1.err
	kill -9 $pid_edge1 || :
	wait $pid_edge1 || :
	device 1 "${@//#/1}"
	ends edge1 edge2
	grep -ohE 'edge[12]: 12 rounds, .*model [0-9a-f]{8}' edge1.err edge2.err >models
	[ "$(wc -l <models)" -eq 2 ]
	[ "$(sed 's/.*model //' models | sort -u | wc -l)" -eq 1 ]
	[ -e "${checkpoint//#/1}" ]
}

@test "numpy" {
	python_with numpy
	exits 0 ace example numpy
	cp out train.py
	trains ace-edge#/model.npz "$PYTHON" train.py
	# the loss is small, so the model has learned from both devices' data
	awk '{ sub(",", "", $5); if ($5 + 0 == 0 || $5 + 0 > 20) exit 1 }' models
}

@test "a dict of arrays in JAX, or in numpy" {
	python_with numpy
	ace example jax >train.py
	trains ace-edge#/model.npz "$PYTHON" train.py
}

@test "PyTorch" {
	python_with torch
	ace example pytorch >train.py
	export OMP_NUM_THREADS=1 PYTHONPATH=$ROOT/examples/pytorch
	trains ace-edge#/model.pt "$PYTHON" train.py
}

@test "a flat array in C" {
	ace example c >train.c
	${CC:-cc} -O2 -Wall -Werror -o train train.c
	trains ace-edge#/model.bin ./train
	# value I of 4096 is I / 4096, which the noise of two devices hardly moves
	perl -e 'binmode STDIN; read(STDIN, $_, 8); local $/; @p = unpack("f<*", <STDIN>);
	    for (0 .. $#p) { exit 1 if abs($p[$_] - $_ / @p) > 0.1 }
	    exit(@p != 4096)' <ace-edge1/model.bin
}

@test "a Hugging Face folder of two files, of which some tensors are trained" {
	python_with numpy
	ace example hf >train.py
	# device 1 ends when it has written the first file of round 4
	sed -i '/^        os.replace/a\
\        if name == "edge1" and r == 3 and not os.path.exists("ends"):\
\            sys.exit(open("ends", "w") and 1)' train.py
	mkdir model1
	echo '{"architectures":["Tiny"]}' >model1/config.json
	one=model1/model-00001-of-00002.safetensors
	safetensors 0 | sed 's/layer.bias/w.the.bias/' >$one
	safetensors 4000 >model1/model-00002-of-00002.safetensors
	cp -r model1 model2
	TRAINED=w dies='with status 1' trains model#/config.json "$PYTHON" train.py 'model#'
	diff -r model1 model2
	safetensors 0 | ace-import -f safetensors --tensor '*[dt]' - | ace-export -f raw >was
	ace-import --tensor '*[dt]' $one | ace-export -f raw >now
	same was now
	grep -q '"ace_round": "12"' model1/*.safetensors
	sed -i 's/F32/I32/' model1/*-00002-*
	ACE_NAME=edge1 ACE_ROUNDS=13 refuses 1 F32 "$PYTHON" train.py model1
}

@test "ace example refuses an unknown name" {
	exits 2 ace example cobol
	says "example 'cobol' is not readable in '.*/trainers': expected pytorch, numpy, jax, hf or c; if it is one, reinstall ace$"
	exits 2 ace example ../x
	exits 2 ace example
}

@test "the commands of ace-trainers(7) run as printed" {
	literals <"$ROOT/man/ace-trainers.7" >page.sh
	[ "$(grep -c . page.sh)" -eq 3 ]
	exits 0 bash -euo pipefail page.sh
	[ -x train ] && [ -e run/run ]
}

@test "systemd accepts the installed units" {
	needs systemd-analyze
	make -s -C "$ROOT" -o all BUILD="${BUILD#"$ROOT"/}" DEPS=no PREFIX="$PWD/usr" install
	export XDG_RUNTIME_DIR=$PWD SYSTEMD_LOG_LEVEL=warning
	exits 0 systemd-analyze verify --user --man=no usr/lib/systemd/user/ace-cloud@.service \
	    usr/lib/systemd/user/ace-edge@.service
	[ ! -s err ]
	grep -qx "ExecStart=$PWD/usr/bin/ace-cloud %h/%i" usr/lib/systemd/user/ace-cloud@.service
}
