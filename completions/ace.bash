# bash completion for the ace programs; made by tests/mkcompletions

_ace() {
	local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD - 1]}
	local opts='' kind=file call=${1##*/} word=${COMP_WORDS[1]} at=$COMP_CWORD w
	local before=''

	# bash splits --form=level into three words
	if [[ $cur = '=' ]]; then
		cur=''
	elif [[ $prev = '=' ]]; then
		prev=${COMP_WORDS[COMP_CWORD - 2]}
	fi
	if [[ $call = ace && $at -gt 1 ]]; then
		call=ace-$word word=${COMP_WORDS[2]} at=$((at - 1))
	fi
	case $call:$at in
	ace:1 | ace-advise:1 | ace-archive:1 | ace-cloud:1 | ace-inspect:1) ;;
	ace-advise:* | ace-archive:*) call+=" $word" ;;
	ace-cloud:*) case $word in add | remove | relay | serve | watch | example) call+=" $word" ;; esac ;;
	ace-inspect:*) case $word in list | brief | stats | verify | diff | audit) call+=" $word" ;; esac ;;
	esac
	case $call:$prev in
	ace-ack:--omit)
		kind=',provenance schema' ;;
	ace-ack:--sandbox)
		kind='auto require off' ;;
	ace-ack:-S | ace-ack:--state)
		kind='dir' ;;
	ace-ack:--schema | ace-ack:-o | ace-ack:--output)
		kind='file' ;;
	ace-ack:--restart | ace-ack:--events | ace-ack:--max-elements)
		kind='free' ;;
	ace-ack:--sync)
		kind='none rename full' ;;
	ace-advise:--sandbox)
		kind='auto require off' ;;
	ace-advise\ ratio:--sandbox)
		kind='auto require off' ;;
	ace-advise\ ratio:--ratio | ace-advise\ ratio:--bandwidth)
		kind='free' ;;
	ace-advise\ dynacomm:--sandbox)
		kind='auto require off' ;;
	ace-advise\ dynacomm:--cuts | ace-advise\ dynacomm:--bandwidth)
		kind='free' ;;
	ace-advise\ deco:--sandbox)
		kind='auto require off' ;;
	ace-advise\ cluster:--sandbox)
		kind='auto require off' ;;
	ace-aggregate:--rule)
		kind=',mean sum clip: trim: median center: norm-ratio: finite' ;;
	ace-aggregate:--omit)
		kind=',provenance schema' ;;
	ace-aggregate:--sandbox)
		kind='auto require off' ;;
	ace-aggregate:--interval)
		kind='common own' ;;
	ace-aggregate:--spool)
		kind='dir' ;;
	ace-aggregate:--schema | ace-aggregate:-o | ace-aggregate:--output)
		kind='file' ;;
	ace-aggregate:--devices | ace-aggregate:--tolerate | ace-aggregate:--delay | ace-aggregate:--cluster | ace-aggregate:--quorum | ace-aggregate:--deadline | ace-aggregate:--rounds | ace-aggregate:--keep | ace-aggregate:--events | ace-aggregate:-T | ace-aggregate:--threads | ace-aggregate:-d | ace-aggregate:--device | ace-aggregate:--max-elements)
		kind='free' ;;
	ace-aggregate:--sync)
		kind='none rename full' ;;
	ace-archive:--sandbox)
		kind='auto require off' ;;
	ace-archive\ create:--sandbox)
		kind='auto require off' ;;
	ace-archive\ create:-o | ace-archive\ create:--output)
		kind='file' ;;
	ace-archive\ create:--step | ace-archive\ create:--device | ace-archive\ create:--max-elements)
		kind='free' ;;
	ace-archive\ create:--kind)
		kind='gradient delta sum mean residual model history' ;;
	ace-archive\ extract:--sandbox)
		kind='auto require off' ;;
	ace-archive\ extract:-o | ace-archive\ extract:--output)
		kind='dir' ;;
	ace-archive\ extract:--step | ace-archive\ extract:--device | ace-archive\ extract:--max-elements)
		kind='free' ;;
	ace-archive\ extract:--kind)
		kind='gradient delta sum mean residual model history' ;;
	ace-cloud:--sandbox)
		kind='auto require off' ;;
	ace-cloud:--devices | ace-cloud:--rounds | ace-cloud:--bits | ace-cloud:--quorum | ace-cloud:--deadline | ace-cloud:--tolerate | ace-cloud:--events)
		kind='free' ;;
	ace-cloud\ add:--sandbox)
		kind='auto require off' ;;
	ace-cloud\ add:--devices)
		kind='free' ;;
	ace-cloud\ remove:--sandbox)
		kind='auto require off' ;;
	ace-cloud\ relay:--sandbox)
		kind='auto require off' ;;
	ace-cloud\ relay:--name | ace-cloud\ relay:--devices | ace-cloud\ relay:--events)
		kind='free' ;;
	ace-cloud\ serve:--sandbox)
		kind='auto require off' ;;
	ace-cloud\ watch:--sandbox)
		kind='auto require off' ;;
	ace-cloud\ example:--sandbox)
		kind='auto require off' ;;
	ace-compress:--omit)
		kind=',provenance schema' ;;
	ace-compress:--sandbox)
		kind='auto require off' ;;
	ace-compress:-S | ace-compress:--state)
		kind='dir' ;;
	ace-compress:--error-feedback)
		kind='ef cache' ;;
	ace-compress:-c | ace-compress:--codec)
		kind='f32 f16 q8 sign topk chunk qsgd ecq lowrank nonzero exact tcq' ;;
	ace-compress:--schema | ace-compress:-o | ace-compress:--output)
		kind='file' ;;
	ace-compress:--window | ace-compress:--wait | ace-compress:--events | ace-compress:-T | ace-compress:--threads | ace-compress:--max-elements)
		kind='free' ;;
	ace-compress:--sync)
		kind='none rename full' ;;
	ace-cut:--omit)
		kind=',provenance schema' ;;
	ace-cut:--sandbox)
		kind='auto require off' ;;
	ace-cut:--schema | ace-cut:-o | ace-cut:--output)
		kind='file' ;;
	ace-cut:--step | ace-cut:--device | ace-cut:--tensor | ace-cut:--max-elements)
		kind='free' ;;
	ace-cut:--kind)
		kind='gradient delta sum mean residual model history' ;;
	ace-diff:--omit)
		kind=',provenance schema' ;;
	ace-diff:--sandbox)
		kind='auto require off' ;;
	ace-diff:-o | ace-diff:--output)
		kind='file' ;;
	ace-diff:-d | ace-diff:--device | ace-diff:-r | ace-diff:--run | ace-diff:-s | ace-diff:--step | ace-diff:--base-version | ace-diff:-T | ace-diff:--threads)
		kind='free' ;;
	ace-edge:--sandbox)
		kind='auto require off' ;;
	ace-edge:-S | ace-edge:--state)
		kind='dir' ;;
	ace-edge:--through)
		kind='file' ;;
	ace-edge:--name | ace-edge:--events)
		kind='free' ;;
	ace-expand:--omit)
		kind=',provenance schema' ;;
	ace-expand:--sandbox)
		kind='auto require off' ;;
	ace-expand:-S | ace-expand:--state | ace-expand:--cache | ace-expand:--feedback)
		kind='dir' ;;
	ace-expand:--schema | ace-expand:-o | ace-expand:--output)
		kind='file' ;;
	ace-expand:--gamma | ace-expand:--wait | ace-expand:--events | ace-expand:-T | ace-expand:--threads | ace-expand:--max-elements)
		kind='free' ;;
	ace-expand:--sync)
		kind='none rename full' ;;
	ace-export:--sandbox)
		kind='auto require off' ;;
	ace-export:-o | ace-export:--output | ace-export:--schema)
		kind='file' ;;
	ace-export:--step | ace-export:--device | ace-export:--tensor | ace-export:--max-elements)
		kind='free' ;;
	ace-export:--kind)
		kind='gradient delta sum mean residual model history' ;;
	ace-export:-f | ace-export:--format)
		kind='safetensors npz npy raw' ;;
	ace-import:--omit)
		kind=',provenance schema' ;;
	ace-import:--sandbox)
		kind='auto require off' ;;
	ace-import:-o | ace-import:--output)
		kind='file' ;;
	ace-import:-d | ace-import:--device | ace-import:-r | ace-import:--run | ace-import:-s | ace-import:--step | ace-import:-w | ace-import:--weight | ace-import:-g | ace-import:--group | ace-import:--model-norm | ace-import:--base-version | ace-import:--name | ace-import:--shape | ace-import:--tensor)
		kind='free' ;;
	ace-import:-k | ace-import:--kind)
		kind='gradient delta model' ;;
	ace-import:-f | ace-import:--format)
		kind='safetensors npz npy raw' ;;
	ace-inspect:--sandbox)
		kind='auto require off' ;;
	ace-inspect:--schema)
		kind='file' ;;
	ace-inspect:--step | ace-inspect:--device | ace-inspect:--tensor | ace-inspect:--max-elements)
		kind='free' ;;
	ace-inspect:--kind)
		kind='gradient delta sum mean residual model history' ;;
	ace-inspect:--format)
		kind='text json tsv' ;;
	ace-inspect\ list:--sandbox)
		kind='auto require off' ;;
	ace-inspect\ list:--schema)
		kind='file' ;;
	ace-inspect\ list:--step | ace-inspect\ list:--device | ace-inspect\ list:--tensor | ace-inspect\ list:--max-elements)
		kind='free' ;;
	ace-inspect\ list:--kind)
		kind='gradient delta sum mean residual model history' ;;
	ace-inspect\ list:--format)
		kind='text json' ;;
	ace-inspect\ brief:--sandbox)
		kind='auto require off' ;;
	ace-inspect\ brief:--schema)
		kind='file' ;;
	ace-inspect\ brief:--step | ace-inspect\ brief:--device | ace-inspect\ brief:--tensor | ace-inspect\ brief:--max-elements)
		kind='free' ;;
	ace-inspect\ brief:--kind)
		kind='gradient delta sum mean residual model history' ;;
	ace-inspect\ brief:--format)
		kind='text json tsv' ;;
	ace-inspect\ stats:--sandbox)
		kind='auto require off' ;;
	ace-inspect\ stats:--schema)
		kind='file' ;;
	ace-inspect\ stats:--step | ace-inspect\ stats:--device | ace-inspect\ stats:--tensor | ace-inspect\ stats:--max-elements)
		kind='free' ;;
	ace-inspect\ stats:--kind)
		kind='gradient delta sum mean residual model history' ;;
	ace-inspect\ stats:--format)
		kind='text json tsv' ;;
	ace-inspect\ verify:--sandbox)
		kind='auto require off' ;;
	ace-inspect\ verify:--schema)
		kind='file' ;;
	ace-inspect\ verify:--step | ace-inspect\ verify:--device | ace-inspect\ verify:--max-elements)
		kind='free' ;;
	ace-inspect\ verify:--kind)
		kind='gradient delta sum mean residual model history' ;;
	ace-inspect\ verify:--format)
		kind='text json' ;;
	ace-inspect\ diff:--sandbox)
		kind='auto require off' ;;
	ace-inspect\ diff:--schema)
		kind='file' ;;
	ace-inspect\ diff:--tolerance | ace-inspect\ diff:--step | ace-inspect\ diff:--device | ace-inspect\ diff:--tensor | ace-inspect\ diff:--max-elements)
		kind='free' ;;
	ace-inspect\ diff:--kind)
		kind='gradient delta sum mean residual model history' ;;
	ace-inspect\ diff:--format)
		kind='text json' ;;
	ace-inspect\ audit:--sandbox)
		kind='auto require off' ;;
	ace-inspect\ audit:-S | ace-inspect\ audit:--state | ace-inspect\ audit:--spool)
		kind='dir' ;;
	ace-inspect\ audit:--schema)
		kind='file' ;;
	ace-inspect\ audit:--max-elements)
		kind='free' ;;
	ace-inspect\ audit:--format)
		kind='text json' ;;
	ace-meter:--sandbox)
		kind='auto require off' ;;
	ace-meter:-S | ace-meter:--state)
		kind='dir' ;;
	ace-meter:-L | ace-meter:--bandwidth | ace-meter:--wait)
		kind='free' ;;
	ace-patch:--sandbox)
		kind='auto require off' ;;
	ace-patch:-T | ace-patch:--threads | ace-patch:--max-elements)
		kind='free' ;;
	ace-policy:--omit)
		kind=',provenance schema' ;;
	ace-policy:--sandbox)
		kind='auto require off' ;;
	ace-policy:-S | ace-policy:--state)
		kind='dir' ;;
	ace-policy:--schema | ace-policy:-o | ace-policy:--output)
		kind='file' ;;
	ace-policy:--ratio | ace-policy:--bandwidth | ace-policy:--deadline | ace-policy:--cuts | ace-policy:--deco | ace-policy:--target-divergence | ace-policy:--model-norm | ace-policy:--interval | ace-policy:--max-elements)
		kind='free' ;;
	ace-recv:--omit)
		kind=',provenance schema' ;;
	ace-recv:--sandbox)
		kind='auto require off' ;;
	ace-recv:--spool)
		kind='dir' ;;
	ace-recv:--schema | ace-recv:-o | ace-recv:--output)
		kind='file' ;;
	ace-recv:-d | ace-recv:--device | ace-recv:--run | ace-recv:--events | ace-recv:--max-elements)
		kind='free' ;;
	ace-recv:--sync)
		kind='none rename full' ;;
	ace-recv:--reply)
		kind='receipt aggregate' ;;
	ace-score:--omit)
		kind=',provenance schema' ;;
	ace-score:--sandbox)
		kind='auto require off' ;;
	ace-score:-S | ace-score:--state)
		kind='dir' ;;
	ace-score:--schema | ace-score:-o | ace-score:--output)
		kind='file' ;;
	ace-score:--max-elements)
		kind='free' ;;
	ace-score:--form)
		kind='moment paper' ;;
	ace-select:--levels)
		kind=',f32 f16 q8 sign topk chunk qsgd ecq lowrank nonzero exact tcq' ;;
	ace-select:--omit)
		kind=',provenance schema' ;;
	ace-select:--sandbox)
		kind='auto require off' ;;
	ace-select:--plan | ace-select:--schema | ace-select:-o | ace-select:--output)
		kind='file' ;;
	ace-select:-b | ace-select:--budget | ace-select:--bits | ace-select:--effort | ace-select:-p | ace-select:--share | ace-select:--max-elements)
		kind='free' ;;
	ace-select:--format)
		kind='stream text' ;;
	ace-sign:--omit)
		kind=',provenance schema' ;;
	ace-sign:--sandbox)
		kind='auto require off' ;;
	ace-sign:-k | ace-sign:--key | ace-sign:--check | ace-sign:--schema | ace-sign:-o | ace-sign:--output)
		kind='file' ;;
	ace-sign:--max-elements)
		kind='free' ;;
	ace-status:--sandbox)
		kind='auto require off' ;;
	ace-status:--format)
		kind='text metrics json' ;;
	ace-step:--levels)
		kind=',f32 f16 q8 sign topk chunk qsgd ecq lowrank nonzero exact tcq' ;;
	ace-step:--omit)
		kind=',provenance schema' ;;
	ace-step:--sandbox)
		kind='auto require off' ;;
	ace-step:-S | ace-step:--state | ace-step:--cache)
		kind='dir' ;;
	ace-step:--error-feedback)
		kind='ef cache' ;;
	ace-step:-c | ace-step:--codec)
		kind='f32 f16 q8 sign topk chunk qsgd ecq lowrank nonzero exact tcq' ;;
	ace-step:--plan | ace-step:--schema | ace-step:-o | ace-step:--output)
		kind='file' ;;
	ace-step:--gamma | ace-step:--wait | ace-step:--events | ace-step:-T | ace-step:--threads | ace-step:--ratio | ace-step:--bandwidth | ace-step:--deadline | ace-step:--cuts | ace-step:--deco | ace-step:--target-divergence | ace-step:--model-norm | ace-step:--interval | ace-step:-b | ace-step:--budget | ace-step:--bits | ace-step:--effort | ace-step:-p | ace-step:--share | ace-step:--window | ace-step:--max-elements)
		kind='free' ;;
	ace-step:--form)
		kind='moment paper' ;;
	ace-step:--sync)
		kind='none rename full' ;;
	ace:--sandbox)
		kind='auto require off' ;;
	esac
	case $call in
	ace-ack)
		opts='-S --state --restart --sync --events --max-elements --schema -o --output --omit -q --quiet -v --verbose --sandbox -h --help -V --version' ;;
	ace-advise)
		opts='-q --quiet -v --verbose --sandbox -h --help -V --version'
		[[ $cur = -* ]] || kind='ratio dynacomm deco cluster' ;;
	ace-advise\ ratio)
		opts='--ratio --bandwidth -q --quiet -v --verbose --sandbox -h --help -V --version' ;;
	ace-advise\ dynacomm)
		opts='--cuts --bandwidth -q --quiet -v --verbose --sandbox -h --help -V --version' ;;
	ace-advise\ deco)
		opts='-q --quiet -v --verbose --sandbox -h --help -V --version' ;;
	ace-advise\ cluster)
		opts='-q --quiet -v --verbose --sandbox -h --help -V --version' ;;
	ace-aggregate)
		opts='--devices --rule --tolerate --delay --interval --cluster --spool --create --quorum --deadline --rounds --keep --publish --sync --events -T --threads -d --device --max-elements --schema -o --output --omit -q --quiet -v --verbose --sandbox -h --help -V --version' ;;
	ace-archive)
		opts='-q --quiet -v --verbose --sandbox -h --help -V --version'
		[[ $cur = -* ]] || kind='create extract' ;;
	ace-archive\ create)
		opts='--step --device --kind --max-elements -o --output -q --quiet -v --verbose --sandbox -h --help -V --version' ;;
	ace-archive\ extract)
		opts='-o --output --step --device --kind --max-elements -q --quiet -v --verbose --sandbox -h --help -V --version' ;;
	ace-cloud)
		opts='--devices --rounds --bits --quorum --deadline --tolerate --events --print -q --quiet -v --verbose --sandbox -h --help -V --version'
		[[ $cur = -* || $at != 1 ]] || kind='or add remove relay serve watch example' ;;
	ace-cloud\ add)
		opts='--devices -q --quiet -v --verbose --sandbox -h --help -V --version' ;;
	ace-cloud\ remove)
		opts='-q --quiet -v --verbose --sandbox -h --help -V --version' ;;
	ace-cloud\ relay)
		opts='--name --devices --events --print -q --quiet -v --verbose --sandbox -h --help -V --version' ;;
	ace-cloud\ serve)
		opts='-q --quiet -v --verbose --sandbox -h --help -V --version' ;;
	ace-cloud\ watch)
		opts='-q --quiet -v --verbose --sandbox -h --help -V --version' ;;
	ace-cloud\ example)
		opts='-q --quiet -v --verbose --sandbox -h --help -V --version' ;;
	ace-compress)
		opts='-S --state -c --codec --error-feedback --window --wait --allow-gap --resend --sync --events -T --threads --max-elements --schema -o --output --omit -q --quiet -v --verbose --sandbox -h --help -V --version' ;;
	ace-cut)
		opts='--step --device --kind --tensor --max-elements --schema -o --output --omit -q --quiet -v --verbose --sandbox -h --help -V --version' ;;
	ace-diff)
		opts='-d --device -r --run -s --step --base-version -T --threads -o --output --omit -q --quiet -v --verbose --sandbox -h --help -V --version' ;;
	ace-edge)
		opts='--name -S --state --through --events --print -q --quiet -v --verbose --sandbox -h --help -V --version' ;;
	ace-expand)
		opts='-S --state --gamma --wait --allow-gap --cache --feedback --sync --events -T --threads --max-elements --schema -o --output --omit -q --quiet -v --verbose --sandbox -h --help -V --version' ;;
	ace-export)
		opts='-f --format --step --device --kind --tensor --many --f32 -o --output --max-elements --schema -q --quiet -v --verbose --sandbox -h --help -V --version' ;;
	ace-import)
		opts='-f --format -d --device -r --run -s --step -w --weight -g --group -k --kind --model-norm --base-version --name --shape --tensor --many --f32 -o --output --omit -q --quiet -v --verbose --sandbox -h --help -V --version' ;;
	ace-inspect)
		opts='--format --step --device --kind --tensor --max-elements --schema -q --quiet -v --verbose --sandbox -h --help -V --version'
		[[ $cur = -* || $at != 1 ]] || kind='or list brief stats verify diff audit' ;;
	ace-inspect\ list)
		opts='--format --step --device --kind --tensor --max-elements --schema -q --quiet -v --verbose --sandbox -h --help -V --version' ;;
	ace-inspect\ brief)
		opts='--format --step --device --kind --tensor --max-elements --schema -q --quiet -v --verbose --sandbox -h --help -V --version' ;;
	ace-inspect\ stats)
		opts='--format --step --device --kind --tensor --max-elements --schema -q --quiet -v --verbose --sandbox -h --help -V --version' ;;
	ace-inspect\ verify)
		opts='--format --step --device --kind --max-elements --schema -q --quiet -v --verbose --sandbox -h --help -V --version' ;;
	ace-inspect\ diff)
		opts='--tolerance --format --step --device --kind --tensor --max-elements --schema -q --quiet -v --verbose --sandbox -h --help -V --version' ;;
	ace-inspect\ audit)
		opts='-S --state --spool --format --max-elements --schema -q --quiet -v --verbose --sandbox -h --help -V --version' ;;
	ace-meter)
		opts='-S --state -L --bandwidth --wait -q --quiet -v --verbose --sandbox -h --help -V --version' ;;
	ace-patch)
		opts='--stage --commit --in-place -T --threads --max-elements -q --quiet -v --verbose --sandbox -h --help -V --version' ;;
	ace-policy)
		opts='-S --state --ratio --bandwidth --deadline --cuts --deco --target-divergence --model-norm --interval --max-elements --schema -o --output --omit -q --quiet -v --verbose --sandbox -h --help -V --version' ;;
	ace-recv)
		opts='--spool --reply -d --device --run --schema --create --publish --join --leave --sync --events --max-elements -o --output --omit -q --quiet -v --verbose --sandbox -h --help -V --version' ;;
	ace-score)
		opts='-S --state --form --max-elements --schema -o --output --omit -q --quiet -v --verbose --sandbox -h --help -V --version' ;;
	ace-select)
		opts='-b --budget --bits --policy --levels --effort -p --share --plan --format --max-elements --schema -o --output --omit -q --quiet -v --verbose --sandbox -h --help -V --version' ;;
	ace-sign)
		opts='-k --key --check --max-elements --schema -o --output --omit -q --quiet -v --verbose --sandbox -h --help -V --version' ;;
	ace-status)
		opts='--format -q --quiet -v --verbose --sandbox -h --help -V --version' ;;
	ace-step)
		opts='-S --state --gamma --wait --allow-gap --cache --sync --events -T --threads --form --ratio --bandwidth --deadline --cuts --deco --target-divergence --model-norm --interval -b --budget --bits --policy --levels --effort -p --share --plan -c --codec --error-feedback --window --max-elements --schema -o --output --omit --print -q --quiet -v --verbose --sandbox -h --help -V --version' ;;
	ace)
		opts='-q --quiet -v --verbose --sandbox -h --help -V --version'
		[[ $cur = -* ]] || kind='cloud edge add relay remove watch example import expand score policy select compress step meter recv ack sign aggregate export inspect cut archive diff patch status advise help' ;;
	ace-help) kind='cloud edge add relay remove watch example import expand score policy select compress step meter recv ack sign aggregate export inspect cut archive diff patch status advise help' ;;
	esac
	COMPREPLY=()
	[[ $cur != -* || $kind != file ]] || kind=$opts
	case $kind in
	free) ;;
	dir) while read -r w; do COMPREPLY+=("$w"); done < <(compgen -d -- "$cur") ;;
	file) while read -r w; do COMPREPLY+=("$w"); done < <(compgen -f -- "$cur") ;;
	or\ *)	while read -r w; do COMPREPLY+=("$w"); done < \
		    <(compgen -W "${kind#or }" -f -- "$cur") ;;
	*)	# after a comma, one more
		[[ $kind != ,* || $cur != *,* ]] || before=${cur%,*},
		while read -r w; do COMPREPLY+=("$before$w"); done < \
		    <(compgen -W "${kind#,}" -- "${cur#"$before"}")
		compopt +o filenames 2>/dev/null
		[[ ${COMPREPLY[*]} != *: ]] || compopt -o nospace 2>/dev/null ;;
	esac
}

complete -o filenames -F _ace ace-ack ace-advise ace-aggregate ace-archive ace-cloud ace-compress ace-cut ace-diff ace-edge ace-expand ace-export ace-import ace-inspect ace-meter ace-patch ace-policy ace-recv ace-score ace-select ace-sign ace-status ace-step ace
