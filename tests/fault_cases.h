/*
 * Successful calls of programs, for two tests that make system calls fail: fault starts the
 * programs as processes, and refuse runs them in its own process.
 */
#ifndef TESTS_FAULT_CASES_H
#define TESTS_FAULT_CASES_H

struct fault_case {
	const char *name, *setup, *command;
	int loose;	/* the bits below */
};
enum {
	FUZZY = 1,	/* output or state differs from run to run: measurements, times */
	LEARNS = 2,	/* a second run has another output and state */
	COMMITS = 4,	/* there are several commits, with states in between */
	ENDLESS = 8,	/* after a complete run, a second one waits for input or is
			 * refused */
	CLOCK = 16,	/* the output has the time of day */
	LIBRARY = 32,	/* libarchive 3.6 dereferences NULL if there is no memory
			 * for a header: not our bug */
	SILENT = 64	/* the output may be whole although the program fails at its end */
};

/* Setups, which run in an empty directory.  Most leave the last step of each device to the
 * command under test. */
#define MADE "mkshards -s 0 >in0; mkshards -s 1 >in1; "
#define CODED MADE "ace-compress -S S -c topk:0.2 --window 4 in0 >sent0; "
#define BOTH CODED "ace-recv --spool D sent0 >rcpt0; " \
	"cp -r S S1; ace-compress -S S1 -c topk:0.2 --window 4 in1 >sent1; "
#define CLOSED BOTH "ace-aggregate --spool D --rounds 1 >agg0; "
#define FOLDER MADE "mkdir dir; cp in0 dir/in0.aceg; cp in1 dir/in1.aceg; "
#define KEY "openssl genpkey -algorithm ed25519 -out key; chmod 600 key; " \
	"{ printf \"edge1 \"; openssl pkey -in key -pubout -outform DER | base64; " \
	"} >ring; "
#define TWICE CLOSED "ace-recv --spool D sent1 >rcpt1; " \
	"ace-aggregate --spool D --rounds 1 >agg1; "

/* Two models and a patch between them.  A model's directory contains times. */
#define MODELS "for i in 0 1; do mkshards -s $i -x $i | ace-export -o m$i; done; " \
	"mkdir -m 700 D; cp m0 D/m; ace-diff -s 1 --base-version 0 m0 m1 >p; "

static const struct fault_case cases[] = {
	{ "compress-first", MADE, "ace-compress -S S -c topk:0.2 in0 > out", 0 },
	{ "compress", BOTH "ace-ack -S S rcpt0 >rest; ",
	    "ace-compress -S S -c topk:0.2 --window 4 in1 > out", 0 },
	{ "compress-pending", CODED,
	    "ace-compress -S S -c q8 --window 4 in1 > out", 0 },
	{ "compress-rejected", CODED "mkshards -d other | "
	    "ace-recv --spool D >rest; ace-aggregate --spool D --rounds 1 >rest; "
	    "ace-recv --spool D sent0 | ace-ack -S S >rest; ",
	    "ace-compress -S S -c topk:0.2 --window 4 in1 > out", 0 },
	{ "compress-cache", MADE "ace-compress -S S --error-feedback cache "
	    "-c q8 in0 >rest; ",
	    "ace-compress -S S --error-feedback cache -c q8 in1 > out", 0 },
	{ "compress-resend", CODED, "ace-compress -S S --resend > out", 0 },
	{ "expand", CODED, "ace-expand -S S in1 > out", 0 },
	{ "expand-cache", MADE "ace-compress -S S --error-feedback cache -c q8 in0 "
	    ">sent0; ", "ace-expand --cache C sent0 > out", 0 },
	{ "expand-cache-next", MADE "ace-compress -S S --error-feedback cache -c q8 "
	    "in0 >sent0; ace-compress -S S --error-feedback cache -c q8 "
	    "in1 >sent1; ace-expand --cache C sent0 >rest; ",
	    "ace-expand --cache C sent1 > out", 0 },
	{ "expand-feedback", MADE "ace-aggregate in0 >mean0; ace-aggregate in1 >mean1; "
	    "ace-expand --feedback S mean0 >rest; ", "ace-expand --feedback S mean1 > out", 0 },
	{ "score", MADE "ace-score --form paper -S S in0 >rest; ",
	    "ace-score --form paper -S S in1 > out", LEARNS },
	{ "policy", MADE "ace-policy -S S in0 >rest; ",
	    "ace-policy -S S in1 > out", 0 },
	{ "policy-deco", MADE "ace-policy -S S --deco auto,10ms --bandwidth 5Mbit "
	    "in0 >rest; ",
	    "ace-policy -S S --deco auto,10ms --bandwidth 5Mbit in1 > out",
	    LEARNS },
	{ "select", MADE "ace-score in1 >scored; ",
	    "ace-select -b 1200 scored > out", 0 },
	{ "compress-budget", BOTH "ace-select -b 1200 in1 >planned; ",
	    "ace-compress -S S --window 4 planned > out", 0 },
	{ "recv-first", CODED, "ace-recv --spool D sent0 > out", LEARNS },
	{ "recv", BOTH, "ace-recv --spool D sent1 > out", LEARNS },
	{ "recv-late", TWICE "mkshards -d other -s 1 >late; ",
	    "ace-recv --spool D late > out", 0 },
	{ "recv-invalid", BOTH "mkshards -s 1 -k nan >bad; ",
	    "ace-recv --spool D bad > out", 0 },
	{ "recv-publish", CLOSED, "ace-recv --spool D --publish agg0 > out", 0 },
	{ "recv-reply", CLOSED "ace-recv --spool D --publish agg0 >rest; ",
	    "ace-recv --spool D --reply aggregate sent0 > out", 0 },
	{ "ack", CLOSED "ace-ack -S S agg0 >rest; ", "ace-ack -S S rcpt0 > out", 0 },
	{ "ack-restart", BOTH, "ace-ack -S S --restart 1 > out", COMMITS },
	{ "meter", BOTH, "ace-meter -S S sent1 > out", FUZZY },
	{ "aggregate", BOTH, "ace-aggregate --spool D --rounds 1 > out", ENDLESS },
	{ "aggregate-keep", CLOSED "ace-recv --spool D sent1 >rest; ",
	    "ace-aggregate --spool D --rounds 1 --keep 1 > out", ENDLESS },
	{ "join", TWICE, "ace-recv --spool D --device edge2 --join "
	    "> out", 0 },
	{ "step", MADE "ace-step -S S --form paper --bits 16 in0 >rest; ",
	    "ace-step -S S --form paper --bits 16 in1 > out", LEARNS },
	{ "files", MADE "mkshards -d edge2 >in2; ",
	    "ace-aggregate in0 in2 > out", 0 },
	{ "rules", MADE "mkshards -d edge2 >in2; ",
	    "ace-aggregate --rule median in0 in2 > out", 0 },
	{ "import", MADE "ace-export -o values.safetensors in0; ",
	    "ace-import values.safetensors > out", 0 },
	{ "import-npz", MADE "ace-export -o values.npz in0; ",
	    "ace-import values.npz > out", 0 },
	{ "export", MADE, "ace-export --tensor embed in0 > out", 0 },
	{ "export-npz", MADE, "ace-export -f npz in0 > out", LIBRARY },
	{ "cut", FOLDER, "ace-cut --tensor embed dir > out", 0 },
	{ "cut-packed", FOLDER "tar -czf dir.tgz dir; ",
	    "ace-cut --step 1 dir.tgz > out", 0 },
	{ "archive", FOLDER, "ace-archive create dir > out", 0 },
	{ "extract", FOLDER "ace-archive create -o a.zip dir; ",
	    "ace-archive extract -o D a.zip > out", COMMITS | LIBRARY },
	{ "inspect", FOLDER, "ace-inspect list dir > out", 0 },
	{ "verify", FOLDER, "ace-inspect verify dir > out", 0 },
	{ "conservation", CLOSED, "ace-inspect audit -S S --spool D "
	    "in0 > out", 0 },
	{ "status", TWICE, "ace-status --format json D > out", CLOCK },
	{ "sign", MADE KEY, "ace-sign -k key in0 > out", 0 },
	{ "sign-check", MADE KEY "ace-sign -k key in0 >signed; ",
	    "ace-sign --check ring signed > out", 0 },
	{ "advise", MADE "mkprofile VGG-19 >table; ", "ace-advise dynacomm "
	    "--cuts 1ms --bandwidth 1Gbit table > out", 0 },
	{ "diff", MODELS, "ace-diff m0 m1 > out", 0 },
	{ "patch-copy", MODELS, "ace-patch D/m < p > out", FUZZY },
	{ "patch-in-place", MODELS, "ace-patch --in-place D/m < p > out",
	    FUZZY },
	{ "patch-stage", MODELS, "ace-patch --stage D/m < p > out", FUZZY },
};

#endif
