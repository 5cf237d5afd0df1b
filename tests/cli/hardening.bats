# The programs are built so that bugs are hard to exploit.
load helper

@test "no writable code, no fixed addresses, checked stacks and copies" {
	if sanitized || grep -q -- '-O0\|--coverage' "$BUILD/flags"; then
		return	# such builds are not hardened
	fi
	for p in "$BUILD"/ace "$BUILD"/ace-*; do
		[ -f "$p" ] && [ -x "$p" ] || continue
		readelf -hlWd "$p" >elf
		grep -q '^ *Type: *DYN' elf || { echo "$p: not PIE"; false; }
		grep -q 'GNU_RELRO' elf || { echo "$p: no RELRO"; false; }
		grep -qE 'BIND_NOW|Flags:.* NOW' elf || { echo "$p: lazy"; false; }
		grep 'GNU_STACK' elf | grep -q ' RW ' || {
			echo "$p: stack can be run"
			false
		}
		if grep -q 'RWE' elf; then echo "$p: RWE"; false; fi
	done
	readelf -sW "$BUILD/ace-inspect" >symbols
	grep -q '__stack_chk_fail' symbols
	grep -q '__snprintf_chk' symbols
}
