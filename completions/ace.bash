# bash completion for the ace programs; made by tests/mkcompletions

_ace() {
	local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD - 1]}
	local opts='' kind=file call=${1##*/} word=${COMP_WORDS[1]} at=$COMP_CWORD w

	if [[ $call = ace && $at -gt 1 ]]; then
		call=ace-$word word=${COMP_WORDS[2]} at=$((at - 1))
	fi
	case $call:$at in
	ace:1 | ace-advise:1 | ace-archive:1) ;;
	ace-advise:* | ace-archive:*) call+=" $word" ;;
	esac
	case $call:$prev in
	ace-ack:-S | ace-ack:--state)
		kind='dir' ;;
	ace-ack:--schema | ace-ack:-o | ace-ack:--output)
		kind='file' ;;
	ace-ack:--max-elements)
		kind='free' ;;
	ace-ack:--sync | ace-ack:--sandbox)
		kind='full rename none' ;;
	ace-advise:--sandbox)
		kind='full rename none' ;;
	ace-advise\ ratio:-S | ace-advise\ ratio:--state)
		kind='dir' ;;
	ace-advise\ ratio:--cmin | ace-advise\ ratio:--cmax | ace-advise\ ratio:--half | ace-advise\ ratio:--bandwidth)
		kind='free' ;;
	ace-advise\ ratio:--sandbox)
		kind='full rename none' ;;
	ace-advise\ interval:--target-divergence)
		kind='free' ;;
	ace-advise\ interval:--sandbox)
		kind='full rename none' ;;
	ace-advise\ profile:--schema)
		kind='file' ;;
	ace-advise\ profile:--max-elements)
		kind='free' ;;
	ace-advise\ profile:--sandbox)
		kind='full rename none' ;;
	ace-advise\ dynacomm:--dt | ace-advise\ dynacomm:--bandwidth | ace-advise\ dynacomm:--method)
		kind='free' ;;
	ace-advise\ dynacomm:--sandbox)
		kind='full rename none' ;;
	ace-advise\ deco:--phi | ace-advise\ deco:--kc | ace-advise\ deco:--kd)
		kind='free' ;;
	ace-advise\ deco:--sandbox)
		kind='full rename none' ;;
	ace-advise\ cluster:--tiers | ace-advise\ cluster:--groups | ace-advise\ cluster:--theta)
		kind='free' ;;
	ace-advise\ cluster:--sandbox)
		kind='full rename none' ;;
	ace-aggregate:--spool)
		kind='dir' ;;
	ace-aggregate:--schema | ace-aggregate:-o | ace-aggregate:--output)
		kind='file' ;;
	ace-aggregate:--weight-by | ace-aggregate:--expect | ace-aggregate:--rule | ace-aggregate:--delay | ace-aggregate:--cluster | ace-aggregate:--quorum | ace-aggregate:--deadline | ace-aggregate:--run | ace-aggregate:--steps | ace-aggregate:--keep | ace-aggregate:-T | ace-aggregate:--threads | ace-aggregate:-d | ace-aggregate:--device | ace-aggregate:--max-elements)
		kind='free' ;;
	ace-aggregate:--sync | ace-aggregate:--sandbox)
		kind='full rename none' ;;
	ace-archive:--sandbox)
		kind='full rename none' ;;
	ace-archive\ create:-o | ace-archive\ create:--output)
		kind='file' ;;
	ace-archive\ create:--format | ace-archive\ create:--step | ace-archive\ create:--device | ace-archive\ create:--max-elements)
		kind='free' ;;
	ace-archive\ create:--sandbox)
		kind='full rename none' ;;
	ace-archive\ create:--kind)
		kind='gradient delta sum mean residual model history' ;;
	ace-archive\ append:-o | ace-archive\ append:--output)
		kind='file' ;;
	ace-archive\ append:--format | ace-archive\ append:--step | ace-archive\ append:--device | ace-archive\ append:--max-elements)
		kind='free' ;;
	ace-archive\ append:--sandbox)
		kind='full rename none' ;;
	ace-archive\ append:--kind)
		kind='gradient delta sum mean residual model history' ;;
	ace-archive\ list:--step | ace-archive\ list:--device | ace-archive\ list:--max-elements)
		kind='free' ;;
	ace-archive\ list:--sandbox)
		kind='full rename none' ;;
	ace-archive\ list:--kind)
		kind='gradient delta sum mean residual model history' ;;
	ace-archive\ extract:--into)
		kind='dir' ;;
	ace-archive\ extract:--step | ace-archive\ extract:--device | ace-archive\ extract:--max-elements)
		kind='free' ;;
	ace-archive\ extract:--sandbox)
		kind='full rename none' ;;
	ace-archive\ extract:--kind)
		kind='gradient delta sum mean residual model history' ;;
	ace-compress:-S | ace-compress:--state)
		kind='dir' ;;
	ace-compress:-c | ace-compress:--codec)
		kind='f32 f16 bf16 lossless q8 q4 sign topk threshold chunk qsgd ecq tern lowrank i64 natural eden nonzero' ;;
	ace-compress:--schema | ace-compress:-o | ace-compress:--output)
		kind='file' ;;
	ace-compress:--error-feedback | ace-compress:--window | ace-compress:--wait | ace-compress:-T | ace-compress:--threads | ace-compress:--max-elements)
		kind='free' ;;
	ace-compress:--sync | ace-compress:--sandbox)
		kind='full rename none' ;;
	ace-cut:--schema | ace-cut:-o | ace-cut:--output)
		kind='file' ;;
	ace-cut:--step | ace-cut:--device | ace-cut:--tensor | ace-cut:--max-elements)
		kind='free' ;;
	ace-cut:--sandbox)
		kind='full rename none' ;;
	ace-cut:--kind)
		kind='gradient delta sum mean residual model history' ;;
	ace-expand:-S | ace-expand:--state | ace-expand:--cache)
		kind='dir' ;;
	ace-expand:--schema | ace-expand:-o | ace-expand:--output)
		kind='file' ;;
	ace-expand:--gamma | ace-expand:--wait | ace-expand:-T | ace-expand:--threads | ace-expand:--max-elements)
		kind='free' ;;
	ace-expand:--sync | ace-expand:--sandbox)
		kind='full rename none' ;;
	ace-export:-o | ace-export:--output | ace-export:--schema)
		kind='file' ;;
	ace-export:--step | ace-export:--device | ace-export:--tensor | ace-export:--max-elements)
		kind='free' ;;
	ace-export:--sandbox)
		kind='full rename none' ;;
	ace-export:-f | ace-export:--format)
		kind='safetensors npz npy raw gguf' ;;
	ace-import:-o | ace-import:--output)
		kind='file' ;;
	ace-import:-d | ace-import:--device | ace-import:-s | ace-import:--step | ace-import:-r | ace-import:--run | ace-import:-w | ace-import:--weight | ace-import:-n | ace-import:--samples | ace-import:-g | ace-import:--group | ace-import:--model-norm | ace-import:--base-version | ace-import:--name | ace-import:--shape)
		kind='free' ;;
	ace-import:--sandbox)
		kind='full rename none' ;;
	ace-import:-k | ace-import:--kind)
		kind='gradient delta sum mean residual model history' ;;
	ace-import:-f | ace-import:--format)
		kind='safetensors npz npy raw gguf' ;;
	ace-inspect:-S | ace-inspect:--state | ace-inspect:--spool)
		kind='dir' ;;
	ace-inspect:--diff | ace-inspect:--plot | ace-inspect:--schema | ace-inspect:-o | ace-inspect:--output)
		kind='file' ;;
	ace-inspect:--step | ace-inspect:--device | ace-inspect:--tensor | ace-inspect:--tolerance | ace-inspect:--max-elements)
		kind='free' ;;
	ace-inspect:--sandbox)
		kind='full rename none' ;;
	ace-inspect:--kind)
		kind='gradient delta sum mean residual model history' ;;
	ace-meter:-S | ace-meter:--state)
		kind='dir' ;;
	ace-meter:-L | ace-meter:--limit | ace-meter:--wait)
		kind='free' ;;
	ace-meter:--sandbox)
		kind='full rename none' ;;
	ace-policy:-S | ace-policy:--state)
		kind='dir' ;;
	ace-policy:--replay | ace-policy:--schema | ace-policy:-o | ace-policy:--output)
		kind='file' ;;
	ace-policy:--cmin | ace-policy:--cmax | ace-policy:--half | ace-policy:--bandwidth | ace-policy:--warmup | ace-policy:--accordion | ace-policy:--deadline | ace-policy:--cuts | ace-policy:--compute | ace-policy:--latency | ace-policy:--target-divergence | ace-policy:--model-norm | ace-policy:--interval | ace-policy:--max-elements)
		kind='free' ;;
	ace-policy:--sandbox)
		kind='full rename none' ;;
	ace-recv:--spool)
		kind='dir' ;;
	ace-recv:--schema | ace-recv:-o | ace-recv:--output)
		kind='file' ;;
	ace-recv:--reply | ace-recv:-d | ace-recv:--device | ace-recv:--run | ace-recv:--kind | ace-recv:--max-shard | ace-recv:--max-weight | ace-recv:--max-contributors | ace-recv:--max-ahead | ace-recv:--quota | ace-recv:--max-open | ace-recv:--timeout | ace-recv:--idle | ace-recv:--max-time | ace-recv:--max-clients | ace-recv:--max-each | ace-recv:--max-staleness | ace-recv:--fence | ace-recv:--max-elements)
		kind='free' ;;
	ace-recv:--sync | ace-recv:--sandbox)
		kind='full rename none' ;;
	ace-score:-S | ace-score:--state)
		kind='dir' ;;
	ace-score:--feedback | ace-score:--schema | ace-score:-o | ace-score:--output)
		kind='file' ;;
	ace-score:--alpha | ace-score:--form | ace-score:--max-elements)
		kind='free' ;;
	ace-score:--sandbox)
		kind='full rename none' ;;
	ace-select:--plan | ace-select:--schema | ace-select:-o | ace-select:--output)
		kind='file' ;;
	ace-select:-b | ace-select:--budget | ace-select:--bits | ace-select:--levels | ace-select:--roles | ace-select:-p | ace-select:--share | ace-select:--max-elements)
		kind='free' ;;
	ace-select:--sandbox)
		kind='full rename none' ;;
	ace-sign:-k | ace-sign:--key | ace-sign:--check | ace-sign:--schema | ace-sign:-o | ace-sign:--output)
		kind='file' ;;
	ace-sign:--max-elements)
		kind='free' ;;
	ace-sign:--sandbox)
		kind='full rename none' ;;
	ace-status:--watch | ace-status:--run)
		kind='free' ;;
	ace-status:--sandbox)
		kind='full rename none' ;;
	ace-step:-S | ace-step:--state | ace-step:--cache)
		kind='dir' ;;
	ace-step:-c | ace-step:--codec)
		kind='f32 f16 bf16 lossless q8 q4 sign topk threshold chunk qsgd ecq tern lowrank i64 natural eden nonzero' ;;
	ace-step:--feedback | ace-step:--replay | ace-step:--plan | ace-step:--schema | ace-step:-o | ace-step:--output)
		kind='file' ;;
	ace-step:--gamma | ace-step:--wait | ace-step:-T | ace-step:--threads | ace-step:--alpha | ace-step:--form | ace-step:--cmin | ace-step:--cmax | ace-step:--half | ace-step:--bandwidth | ace-step:--warmup | ace-step:--accordion | ace-step:--deadline | ace-step:--cuts | ace-step:--compute | ace-step:--latency | ace-step:--target-divergence | ace-step:--model-norm | ace-step:--interval | ace-step:-b | ace-step:--budget | ace-step:--bits | ace-step:--levels | ace-step:--roles | ace-step:-p | ace-step:--share | ace-step:--error-feedback | ace-step:--window | ace-step:--max-elements)
		kind='free' ;;
	ace-step:--sync | ace-step:--sandbox)
		kind='full rename none' ;;
	ace:--sandbox)
		kind='full rename none' ;;
	esac
	case $call in
	ace-ack)
		opts='-S --state --fence --sync --max-elements --schema -o --output --force --no-provenance --omit-schema -q --quiet -v --verbose --sandbox -h --help -V --version' ;;
	ace-advise)
		opts='-q --quiet -v --verbose --sandbox -h --help -V --version'
		[[ $cur = -* ]] || kind='ratio interval profile dynacomm deco cluster' ;;
	ace-advise\ ratio)
		opts='-S --state --cmin --cmax --half --bandwidth -q --quiet -v --verbose --sandbox -h --help -V --version' ;;
	ace-advise\ interval)
		opts='--target-divergence -q --quiet -v --verbose --sandbox -h --help -V --version' ;;
	ace-advise\ profile)
		opts='--max-elements --schema -q --quiet -v --verbose --sandbox -h --help -V --version' ;;
	ace-advise\ dynacomm)
		opts='--dt --bandwidth --method -q --quiet -v --verbose --sandbox -h --help -V --version' ;;
	ace-advise\ deco)
		opts='--phi --kc --kd -q --quiet -v --verbose --sandbox -h --help -V --version' ;;
	ace-advise\ cluster)
		opts='--tiers --groups --theta -q --quiet -v --verbose --sandbox -h --help -V --version' ;;
	ace-aggregate)
		opts='--mean --sum --weight-by --expect --rule --delay --cluster --spool --create --quorum --deadline --run --steps --keep --published --sync -T --threads -d --device --max-elements --schema -o --output --force --no-provenance --omit-schema -q --quiet -v --verbose --sandbox -h --help -V --version' ;;
	ace-archive)
		opts='-q --quiet -v --verbose --sandbox -h --help -V --version'
		[[ $cur = -* ]] || kind='create append list extract' ;;
	ace-archive\ create)
		opts='--format --step --device --kind --max-elements -o --output --force -q --quiet -v --verbose --sandbox -h --help -V --version' ;;
	ace-archive\ append)
		opts='--format --step --device --kind --max-elements -o --output -q --quiet -v --verbose --sandbox -h --help -V --version' ;;
	ace-archive\ list)
		opts='--step --device --kind --max-elements -q --quiet -v --verbose --sandbox -h --help -V --version' ;;
	ace-archive\ extract)
		opts='--into --step --device --kind --max-elements -q --quiet -v --verbose --sandbox -h --help -V --version' ;;
	ace-compress)
		opts='-S --state -c --codec --error-feedback --window --wait --allow-gap --resend --sync -T --threads --max-elements --schema -o --output --force --no-provenance --omit-schema -q --quiet -v --verbose --sandbox -h --help -V --version' ;;
	ace-cut)
		opts='--step --device --kind --tensor --max-elements --schema -o --output --force --no-provenance --omit-schema -q --quiet -v --verbose --sandbox -h --help -V --version' ;;
	ace-expand)
		opts='-S --state --gamma --wait --allow-gap --cache --sync -T --threads --max-elements --schema -o --output --force --no-provenance --omit-schema -q --quiet -v --verbose --sandbox -h --help -V --version' ;;
	ace-export)
		opts='-f --format --step --device --tensor --many --f32 --deflate -o --output --force --max-elements --schema -q --quiet -v --verbose --sandbox -h --help -V --version' ;;
	ace-import)
		opts='-f --format -d --device -s --step -r --run -w --weight -n --samples -g --group -k --kind --model-norm --base-version --name --shape --many --round -o --output --force --no-provenance --omit-schema -q --quiet -v --verbose --sandbox -h --help -V --version' ;;
	ace-inspect)
		opts='--list --brief --tsv --diffable --follow --course --stats --histogram --verify --diff --plot --recover --conservation -S --state --spool --json --step --device --kind --tensor --tolerance --max-elements --schema -o --output --force --no-provenance --omit-schema -q --quiet -v --verbose --sandbox -h --help -V --version' ;;
	ace-meter)
		opts='-S --state -L --limit --progress --wait --force -q --quiet -v --verbose --sandbox -h --help -V --version' ;;
	ace-policy)
		opts='-S --state --cmin --cmax --half --bandwidth --warmup --accordion --deadline --cuts --deco --compute --latency --target-divergence --model-norm --interval --replay --max-elements --schema -o --output --force --no-provenance --omit-schema -q --quiet -v --verbose --sandbox -h --help -V --version' ;;
	ace-recv)
		opts='--spool --reply -d --device --run --schema --kind --max-shard --max-weight --max-contributors --max-ahead --quota --max-open --timeout --idle --max-time --max-clients --max-each --max-staleness --once --publish --fence --join --leave --sync --max-elements -o --output --force --no-provenance --omit-schema -q --quiet -v --verbose --sandbox -h --help -V --version' ;;
	ace-score)
		opts='-S --state --alpha --form --feedback --max-elements --schema -o --output --force --no-provenance --omit-schema -q --quiet -v --verbose --sandbox -h --help -V --version' ;;
	ace-select)
		opts='-b --budget --bits --policy --levels --roles -p --share --plan --text --max-elements --schema -o --output --force --no-provenance --omit-schema -q --quiet -v --verbose --sandbox -h --help -V --version' ;;
	ace-sign)
		opts='-k --key --check --max-elements --schema -o --output --force --no-provenance --omit-schema -q --quiet -v --verbose --sandbox -h --help -V --version' ;;
	ace-status)
		opts='--watch --json --run -q --quiet -v --verbose --sandbox -h --help -V --version' ;;
	ace-step)
		opts='-S --state --gamma --wait --allow-gap --cache --sync -T --threads --alpha --form --feedback --cmin --cmax --half --bandwidth --warmup --accordion --deadline --cuts --deco --compute --latency --target-divergence --model-norm --interval --replay -b --budget --bits --policy --levels --roles -p --share --plan -c --codec --error-feedback --window --max-elements --schema -o --output --force --no-provenance --omit-schema --print -q --quiet -v --verbose --sandbox -h --help -V --version' ;;
	ace)
		opts='-q --quiet -v --verbose --sandbox -h --help -V --version'
		[[ $cur = -* ]] || kind='import expand score policy select compress step meter recv ack sign aggregate export inspect cut archive status advise help' ;;
	ace-help) kind='import expand score policy select compress step meter recv ack sign aggregate export inspect cut archive status advise help' ;;
	esac
	COMPREPLY=()
	[[ $cur != -* || $kind != file ]] || kind=$opts
	case $kind in
	free) ;;
	dir) while read -r w; do COMPREPLY+=("$w"); done < <(compgen -d -- "$cur") ;;
	file) while read -r w; do COMPREPLY+=("$w"); done < <(compgen -f -- "$cur") ;;
	*) while read -r w; do COMPREPLY+=("$w"); done < <(compgen -W "$kind" -- "$cur") ;;
	esac
}

complete -o filenames -F _ace ace-ack ace-advise ace-aggregate ace-archive ace-compress ace-cut ace-expand ace-export ace-import ace-inspect ace-meter ace-policy ace-recv ace-score ace-select ace-sign ace-status ace-step ace
