/*
 * Further cases for tests/refuse: most codecs, some rules, and others. tests/fault starts a
 * process for each failure, so these would take it too long.
 */
#ifndef TESTS_REFUSE_CASES_H
#define TESTS_REFUSE_CASES_H

#include "fault_cases.h"

#define CODEC(name, codec) \
	{ "code-" name, MADE, "ace-compress -c " codec " in0", 0 }, \
	{ "decode-" name, MADE "ace-compress -c " codec " in0 >coded; ", \
	    "ace-expand coded", 0 }, \
	{ "add-" name, MADE "for i in 1 2; do mkshards -d edge$i | " \
	    "ace-compress -c " codec " >coded$i; done; ", \
	    "ace-aggregate coded1 coded2", 0 }
#define FIVE "for i in 1 2 3 4 5; do mkshards -d edge$i -x $i >five$i; done; "
#define FIVE_OF " five1 five2 five3 five4 five5"
#define RULE(name, rule) \
	{ "rule-" name, FIVE, "ace-aggregate --rule " rule FIVE_OF, 0 }
#define TIMED "mkshards -t a:3 -t b:1 -t c:4 -T 2,7,1 >timed; "
#define TABLE(name, text, command) \
	{ "advise-" name, "printf '" text "' >table; ", "ace-advise " command \
	    " table", 0 }

static const struct fault_case refuse_more[] = {
	CODEC("exact", "exact"), CODEC("ecq", "ecq:0.001"),
	CODEC("topk", "topk:0.1"), CODEC("topk-q2", "topk:0.1:q2"),
	CODEC("nonzero", "nonzero"), CODEC("tcq", "tcq:0.001"),
	CODEC("qsgd", "qsgd:7"), CODEC("lowrank", "lowrank:2"),
	CODEC("sign", "sign"),
	RULE("trim", "trim:1"), RULE("clip", "clip:5"),
	{ "rule-limits", FIVE, "ace-aggregate --rule norm-ratio:2,finite"
	    FIVE_OF, 0 },
	{ "policies", "for i in 1 2 3; do mkshards -d edge$i -P delay=$i "
	    ">five$i; done; ", "ace-aggregate five1 five2 five3", 0 },
	{ "cluster", FIVE, "ace-aggregate --cluster 0.5:mean" FIVE_OF, 0 },
	{ "one-input", FIVE "cat five? >all; ", "ace-aggregate --devices 5 < all",
	    0 },
	{ "archived", FOLDER "tar -cf dir.tar dir; ", "ace-aggregate dir.tar",
	    0 },
	{ "score-first", MADE, "ace-score --form paper -S S in0", LEARNS },
	{ "score-paper", MADE, "ace-score --form paper in0", 0 },
	{ "score-untold", MADE, "ace-score -S S in0", 0 },
	{ "score-told", MADE "mkdir -m 700 S; mkshards -H kind=6 >S/moment; ",
	    "ace-score -S S in1", 0 },
	{ "score-feedback", MADE "ace-score --form paper -S S in0 >rest; "
	    "ace-aggregate in0 | ace-expand --feedback S >rest; ",
	    "ace-score --form paper -S S in1", LEARNS },
	{ "expand-feedback", MADE "ace-aggregate in0 >mean; ", "ace-expand --feedback S mean", 0 },
	{ "select-levels", MADE "ace-score in0 >scored; ",
	    "ace-select -b 2000 --levels none,q8,f16,topk:0.1 scored", 0 },
	{ "select-text", MADE "ace-score in0 >scored; ",
	    "ace-select -b 2000 --format text scored", 0 },
	{ "select-plan", MADE "ace-score in0 | ace-select -b 2000 --format text >plan; ",
	    "ace-select --plan plan in0", 0 },
	{ "select-share", MADE "ace-score in0 >scored; ",
	    "ace-select -p 0.2=f16,0.5=q8 scored", 0 },
	{ "step-threads", MADE, "ace-step -T 3 -b 2000 in0", 0 },
	{ "step-state", MADE "ace-step -S S -b 2000 in0 "
	    ">rest; ", "ace-step -S S -b 2000 in1", LEARNS },
	{ "cache-first", MADE,
	    "ace-compress -S S --error-feedback cache -c q8 in0", 0 },
	{ "cache", MADE "ace-compress -S S --error-feedback cache -c q8 in0 >rest; ",
	    "ace-compress -S S --error-feedback cache -c q8 in1", 0 },
	{ "policy-cuts", TIMED,
	    "ace-policy -S S --cuts 1ms --bandwidth 1Mbit timed", LEARNS },
	{ "import-npy", MADE "ace-export -f npy --tensor embed -o v.npy in0; ",
	    "ace-import --name embed v.npy", 0 },
	{ "import-raw", MADE "head -c 64 /dev/zero >v.raw; ",
	    "ace-import -f raw --name w --shape 4,4 v.raw", 0 },
	{ "import-many", MADE "ace-export -f safetensors --many in0 >all; ",
	    "ace-import -f safetensors --many all", 0 },
	{ "export-many", MADE "cat in0 in1 >both; ", "ace-export --many both", 0 },
	{ "export-folder", FOLDER, "ace-export --step 1 dir", 0 },
	{ "export-npz", MADE, "ace-export -f npz in0", 0 },
	{ "export-f32", MADE, "ace-export -f safetensors --f32 in0", 0 },
	{ "export-file", MADE "mkdir D; ",
	    "ace-export -o D/values.safetensors in0", 0 },
	{ "stats", MADE, "ace-inspect stats in0 in1", 0 },
	{ "json", FOLDER, "ace-inspect --format json dir", 0 },
	{ "diff", MADE, "ace-inspect diff in0 in0", 0 },
	{ "brief", TWICE, "ace-inspect brief D", SILENT },
	{ "stats-tsv", MADE, "ace-inspect stats --format tsv in0", 0 },
	{ "status-text", TWICE, "ace-status D", CLOCK },
	{ "status-state", TWICE, "ace-status S", CLOCK },
	{ "status-metrics", TWICE, "ace-status --format metrics D S", CLOCK },
	{ "status-refused", MADE "mkshards -k nan >bad; "
	    "ace-recv --spool D bad >rest; ", "ace-status D", CLOCK },
	{ "status-open", CODED "ace-recv --spool D sent0 >rest; "
	    "rm -f D/device/*.incarnation; ", "ace-status D", CLOCK },
	{ "recv-beside", CODED "mkdir -m 700 -p D/strange; ",
	    "ace-recv --spool D sent0", LEARNS },
	{ "recv-left", BOTH "cp sent0 D/edge1.new-abcdef; "
	    "echo shard 1G edge1 >D/limits; ",
	    "ace-recv --spool D --device edge1 sent1", LEARNS },
	{ "recv-odd", CLOSED "mkshards -s 1 -k nan >bad; mkdir -p D/1; "
	    ": >D/edge1.new-abcdef; ",
	    "ace-recv --spool D bad", LEARNS },
	{ "recv-never", CODED "mkshards -d other -s 1 | ace-recv --spool D >rest; "
	    "ace-aggregate --spool D --rounds 1 >rest; ",
	    "ace-recv --spool D --reply aggregate sent0", LEARNS },
	{ "aggregate-again", CLOSED "rm D/done/0; ",
	    "ace-aggregate --spool D --rounds 1", ENDLESS },
	{ "leave", TWICE, "ace-recv --spool D --device edge1 --leave",
	    ENDLESS },
	{ "archive-read", FOLDER "ace-archive create -o a.tar.gz dir; ",
	    "ace-inspect brief a.tar.gz", 0 },
	{ "archive-zip", FOLDER, "ace-archive create -o a.zip dir", 0 },
	TABLE("cluster", "device\\ttime\\na\\t1\\nb\\t2\\nc\\t9\\n", "cluster"),
	{ "diff-threads", MODELS, "ace-diff -T 3 m0 m1", 0 },
	{ "diff-whole", MODELS, "ace-diff m1", 0 },
	{ "diff-output", MODELS, "ace-diff -o D/patch m0 m1", 0 },
	{ "patch-whole", MODELS "ace-diff m1 >p; ",
	    "ace-patch D/m < p", FUZZY },
	{ "inspect-patch", MODELS, "ace-inspect p", 0 },
	{ "advise-ratio", MADE, "ace-advise ratio", 0 },
	{ "advise-dynacomm", "mkprofile VGG-19 >table; ", "ace-advise dynacomm "
	    "--cuts 1ms --bandwidth 1Gbit table", 0 }
};

#endif
