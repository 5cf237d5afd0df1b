/*
 * Simulate power cuts.  clip.so records the changes that a program makes on disk.  After each
 * change the test builds trees that a file system may leave: with all changes that were not
 * synced; without one of them, or with a write half done; without all of them; with names but
 * without data, and the reverse (as ALICE does, Pillai et al., OSDI 2014).  In each tree,
 * unless scenes[].balance says otherwise:
 *
 *   - the values balance (report/conserve.h), also after any sent shards have arrived
 *   - after running everything once more, the values balance, too
 *
 * The test also kills the program at each of its changes.  The next program starts from the
 * tree that the killed program left, durable or not, and the power fails after that program
 * has answered.
 *
 *   power [-e EVERY] [SCENE]     EVERY: check only every EVERY-th tree
 */
#include "base/err.h"
#include "crash.h"
#include "report/conserve.h"

static unsigned long every = 1, turn, trees;

/* ---- checks ---- */

struct scene {
	const char *name, *setup, *command;
	const char *arrives;	/* command to run if the program has sent something */
	const char *again;	/* command to run everything once more */
	const char *before;	/* command to kill; NULL: `command' */
	const char *ready;	/* skip kills after which this file is absent; or NULL */
	enum { ALWAYS, AT_END, NEVER } balance;	/* when to check it; AT_END: after `again' */
};

#define MADE "mkshards -s 0 -k ramp >in0; mkshards -s 1 -k ramp >in1; "
#define STEP0 MADE "ace-compress -S S -c topk:0.2 --window 4 in0 >sent0; " \
	"ace-recv --spool D sent0 | ace-ack -S S >rest; "
#define SENT "cp -r S S2; ace-compress -S S2 -c topk:0.2 --window 4 in1 " \
	">sent1; "
#define AGAIN "ace-compress -S S -c topk:0.2 --window 4 in1 | " \
	"ace-recv --spool D | ace-ack -S S >rest"

/* SHARED: the device and the spool have the same history */
#define PAST "ace-compress -S S -c topk:0.2 --error-feedback cache:1 "
#define SHARED "cmp S/history.1 D/device/edge1.history/history.1"

#define AGAIN_DONE "run again"

#define SUM "cp -r D D2; ace-aggregate --spool D2 --rounds 1 >sum; rm in1; "
#define PUBLISHED "D/0/aggregate.aceg"
#define THERE "test -e " PUBLISHED

/* A step that is aggregated and whose shard stays, and two more steps. */
#define KEPT STEP0 "ace-aggregate --spool D --rounds 1 >rest; " AGAIN "; " \
	"mkshards -s 2 -k ramp | ace-compress -S S -c topk:0.2 --window 4 | " \
	"ace-recv --spool D >rest; "
#define KEEP "ace-aggregate --spool D --rounds 1 --keep 1 "

/* Two steps of two devices, which are a quorum, after STEP0 of another device. */
#define PASS "ace-aggregate --omit provenance --spool D --quorum 2 --rounds 1 "
#define PASSED "for s in 2 3; do for d in 2 3; do mkshards -s $s -d edge$d | " \
	"ace-recv --spool D >rest; done; done; cp -r D D2; " \
	"ace-aggregate --omit provenance --spool D2 --quorum 2 --rounds 1 >want; "

/* Three models, two patches from one to the next, and a patch of another model. */
#define MODELS "for i in 0 1 2 3 4; do mkshards -s $i -x $i | ace-export -o m$i; done; " \
	"mkdir -m 700 D; cp m0 D/m; mv m0 old; mv m1 mid; mv m2 new; ace-diff old mid >p; " \
	"ace-diff mid new >>p; ace-diff m3 m4 >q; rm m3 m4; "
#define MODEL "{ cmp -s D/m old || cmp -s D/m mid || cmp D/m new >&2; } && "

/* the manifest of step 0 has two names until step 1's manifest replaces one */
#define CLOSED_1 "! cmp -s D/closed D/done/0"

#define STEP "ace-step -S S --bits 16 in1"

/* With 72k values the residual is large enough for a spare (IO_SPARE). */
#define LARGE "mkshards -n 72k -k ramp -s "
#define LARGE_STEP "ace-compress -S S -c topk:0.01 --window 4 in"
#define LARGE_SENT " | ace-recv --spool D | ace-ack -S S >rest; "

static const struct scene scenes[] = {
	{ "step", MADE "ace-step -S S --bits 16 in0 >sent0; ace-recv --spool D "
	    "sent0 | ace-ack -S S >rest; cp -r S S2; ace-step -S S2 --bits 16 "
	    "in1 >sent1; ", STEP " > out", "ace-recv --spool D sent1 >rest",
	    STEP " | ace-recv --spool D | ace-ack -S S >rest", NULL, NULL,
	    ALWAYS },
	{ "compress", STEP0 SENT, "ace-compress -S S -c topk:0.2 --window 4 in1 "
	    "> out", "ace-recv --spool D sent1 >rest", AGAIN, NULL, NULL, ALWAYS },
	{ "compress, over a spare", LARGE "0 >in0; " LARGE "1 >in1; " LARGE "2 >in2; "
	    LARGE_STEP "0" LARGE_SENT LARGE_STEP "1" LARGE_SENT "test -s S/spare; "
	    "cp -r S S2; ace-compress -S S2 -c topk:0.01 --window 4 in2 >sent2; ",
	    LARGE_STEP "2 > out", "ace-recv --spool D sent2 >rest",
	    LARGE_STEP "2" LARGE_SENT, NULL, NULL, ALWAYS },
	{ "compress, first", MADE "ace-compress -S S2 -c topk:0.2 --window 4 in0 "
	    ">sent0; mkdir -m 700 D; rm in1; ", "ace-compress -S S -c topk:0.2 "
	    "--window 4 in0 > out", "ace-recv --spool D sent0 >rest",
	    "ace-compress -S S -c topk:0.2 --window 4 in0 | "
	    "ace-recv --spool D | ace-ack -S S >rest", NULL, NULL, ALWAYS },
	{ "recv, first", MADE "ace-compress -S S -c topk:0.2 --window 4 in0 "
	    ">sent0; rm in1; ace-recv --spool D2 sent0 >rcpt; ",
	    "ace-recv --spool D sent0 > out", "ace-ack -S S rcpt >rest",
	    "ace-compress -S S --resend | ace-recv --spool D | "
	    "ace-ack -S S >rest", NULL, NULL, ALWAYS },
	{ "recv", STEP0 "ace-compress -S S -c topk:0.2 --window 4 in1 >sent1; "
	    "cp -r D D2; ace-recv --spool D2 sent1 >rcpt; ",
	    "ace-recv --spool D sent1 > out", "ace-ack -S S rcpt >rest",
	    AGAIN, NULL, NULL, ALWAYS },
	{ "recv, difference", MADE PAST "in0 | ace-recv --spool D | ace-ack -S S "
	    ">rest; " PAST "in1 >sent1; cp -r D D2; "
	    "ace-recv --spool D2 sent1 >rcpt; ",
	    "ace-recv --spool D sent1 > out", "ace-ack -S S rcpt >rest && "
	    SHARED, PAST "in1 | ace-recv --spool D | ace-ack -S S >rest && "
	    SHARED, NULL, NULL, ALWAYS },
	{ "recv, late", STEP0 "ace-compress -S S -c topk:0.2 --window 4 in1 "
	    ">sent1; mkshards -s 1 -d edge2 | ace-recv --spool D >rest; "
	    "ace-aggregate --spool D --rounds 2 >rest; cp -r D D2; "
	    "ace-recv --spool D2 sent1 >rcpt; ",
	    "ace-recv --spool D sent1 > out", "ace-ack -S S rcpt >rest",
	    AGAIN, NULL, NULL, ALWAYS },
	{ "ack", STEP0 "ace-compress -S S -c topk:0.2 --window 4 in1 >sent1; "
	    "ace-recv --spool D sent1 >rcpt; ",
	    "ace-ack -S S rcpt > out", ":", AGAIN, NULL, NULL, ALWAYS },
	{ "aggregate", STEP0 "ace-compress -S S -c topk:0.2 --window 4 in1 | "
	    "ace-recv --spool D | ace-ack -S S >rest; cp -r D D2; "
	    "ace-aggregate --omit provenance --spool D2 --rounds 1 >want; ",
	    "ace-aggregate --spool D --rounds 1 > out",
	    "test -e D/closed",
	    "{ test -e D/done/0 || { ace-aggregate --omit provenance "
	    "--spool D --rounds 1 >got && cmp want got >&2; }; } && " AGAIN, NULL, NULL, ALWAYS },
	/* the manifest has a killed receiver's shard only if the shard is durable */
	{ "aggregate, received", STEP0 "ace-aggregate --spool D --rounds 1 >rest; "
	    "ace-compress -S S -c topk:0.2 --window 4 in1 >sent1; cp -r D D2; "
	    "ace-recv --spool D2 sent1 >rest; "
	    "ace-aggregate --omit provenance --spool D2 --rounds 1 >want; ",
	    "ace-aggregate --spool D --rounds 1 > out",
	    CLOSED_1,
	    "{ ! " CLOSED_1 " || test -e D/done/1 || { "
	    "ace-aggregate --omit provenance --spool D --rounds 1 >got && "
	    "cmp want got >&2; }; } && " AGAIN,
	    "ace-recv --spool D sent1 > rest", "D/1/edge1.aceg", ALWAYS },
	/* the next average includes the shards of a step that was passed over */
	{ "aggregate, passed over", STEP0 PASSED, PASS "> out", "test -e D/closed",
	    "{ test -e D/done/2 || { " PASS ">got && cmp want got >&2; }; } && "
	    "ace-recv --spool D sent0 >rcpt && ace-inspect rcpt >said && "
	    "grep -q accepted said && " AGAIN, NULL, NULL, ALWAYS },
	{ "aggregate, passed over, keep", STEP0 PASSED, PASS "--keep 1 > out",
	    "test -e D/closed", "{ test -e D/done/2 || " PASS "--keep 1 >rest; } && "
	    "ace-recv --spool D sent0 >rcpt && ace-inspect rcpt >said && "
	    "grep -q accepted said", NULL, NULL, NEVER },
	/* after a restore from a backup, nothing accepted is delivered again */
	{ "restart", STEP0 "cp -r S backup; " AGAIN "; rm -rf S; mv backup S; "
	    "mkshards -s 2 -k ramp >in0; rm in1; ",
	    "ace-ack -S S --restart 1 > out", ":",
	    "test -e S/restart -a ! -e S/residual || ace-ack -S S --restart 1; "
	    "ace-compress -S S -c topk:0.2 --window 4 in0 | "
	    "ace-recv --spool D | ace-ack -S S >rest", NULL, NULL, AT_END },
	/* a shard that was counted is still `accepted' after its file was removed */
	{ "aggregate, keep", KEPT, KEEP "> out",
	    CLOSED_1, "{ test -e D/done/2 || " KEEP ">rest; } && "
	    "ace-recv --spool D sent0 >rcpt && ace-inspect rcpt >said && "
	    "grep -q accepted said", NULL, NULL,
	    NEVER },
	{ "a file", MADE "mkdir -m 700 D; rm in1; ", "ace-score -o D/out in0",
	    "ace-inspect verify D/out >rest",
	    "{ test ! -e D/out || ace-inspect verify D/out >rest; } && "
	    "ace-score -o D/out in0 && ace-inspect verify D/out >rest",
	    NULL, NULL, NEVER },
	/* the model is one of the three, at the latest after the next ace-patch */
	{ "patch, a copy", MODELS, "< p ace-patch D/m > out",
	    "cmp D/m new >&2", MODEL "ace-patch D/m <p && cmp D/m new >&2", NULL, NULL, NEVER },
	{ "patch, in place", MODELS, "< p ace-patch --in-place D/m > out",
	    "cmp D/m new >&2", "{ ace-patch D/m <q; test $? = 5; } && " MODEL
	    "ace-patch --in-place D/m <p && cmp D/m new >&2", NULL, NULL, NEVER },
	{ "publish", STEP0 SUM, "ace-recv --spool D --publish sum", THERE, ":",
	    NULL, NULL, ALWAYS },
	{ "publish, handed out", STEP0 SUM, "ace-recv --spool D "
	    "--reply aggregate sent0 > out", THERE, ":",
	    "ace-recv --spool D --publish sum", PUBLISHED, ALWAYS },
	{ "publish, waited for", STEP0 SUM, "ace-aggregate --spool D --rounds 1 "
	    "--publish > out", THERE, ":",
	    "ace-recv --spool D --publish sum", PUBLISHED, ALWAYS }
};

/* Check the balance of the tree in crash. Return `when' and then what is wrong, or NULL.
 * left 0: the state or the spool may be missing. */
static const char *
balance(const struct scene *s, const char *when, int left)
{
	static char text[700];
	struct err e = ERR_INIT;
	char name0[] = "crash/in0", name1[] = "crash/in1", name2[] = "crash/in2";
	char *list[] = { name0, name1, name2 };
	struct conserve_in in = { "crash/S", "crash/D", list, 1, NULL };
	struct conserve c;
	struct stat st;

	if (s->balance == NEVER || (s->balance == AT_END && strcmp(when, AGAIN_DONE) != 0))
		return NULL;
	if (stat("crash/S/residual", &st) < 0 || stat("crash/D", &st) < 0) {
		(void)snprintf(text, sizeof(text), "%s: the state or the spool "
		    "is gone", when);
		return left ? text : NULL;
	}
	in.n += access("crash/in1", F_OK) == 0;
	in.n += access("crash/in2", F_OK) == 0;
	if (conserve_check(&c, &in, &e) < 0 || c.off != 0) {
		(void)snprintf(text, sizeof(text), "%s: %s", when,
		    e.code != ERR_OK ? ERR_MSG(&e) : "not exact");
		return text;
	}
	return NULL;
}

static int
does(const char *command)
{
	char text[1024];

	(void)snprintf(text, sizeof(text), "cd crash && set -o pipefail && "
	    "export PATH=$BUILD:$BUILD/tests:$PATH && { timeout 600 bash -o pipefail "
	    "-c '%s'; } "
	    "2>>../says", command);
	(void)setenv("POWER_COMMAND", text, 1);
	return system("bash -c \"$POWER_COMMAND\"") == 0;
}

static const char *
look(const struct scene *s, int left)
{
	const char *wrong = balance(s, "at once", 0);

	if (wrong == NULL && left) {
		if (!does(s->arrives))
			wrong = "what had left cannot arrive";
		else
			wrong = balance(s, "after what had left arrived", 1);
	}
	if (wrong == NULL && !does(s->again))
		wrong = "cannot be run again";
	return wrong != NULL ? wrong : balance(s, AGAIN_DONE, 1);
}

static unsigned long bad;

static void
crash(const struct scene *s, size_t k, int how, size_t j)
{
	static const char *const hows[] = { "all there", "lost", "torn",
	    "nothing unsynced there", "no data", "no names" };
	const char *wrong;
	size_t i;
	int left = k == nops;

	if (turn++ % every != 0)
		return;
	/* left 1: all output was written before the cut or, if there is no output,
	 * the program had ended */
	for (i = 0; i < nops; i++)
		left = ops[i].op == CLIP_OP_OUT ? i < k : left;
	build(k, how, j);
	trees++;
	if ((wrong = look(s, left)) == NULL || bad++ > 5)
		return;
	(void)printf("# %s, before change %zu (%u %s): %s %zu %s: %s\n", s->name,
	    k, k < nops ? ops[k].op : 0, k < nops ? ops[k].path : "", hows[how],
	    j, how == DROP || how == TORN ? ops[j].path : "", wrong);
	shell("tail -n 4 says | sed 's/^/#   /'%s", "");
}

/* Restore the scene's directory and empty the log. */
static void
again_from(const char *log)
{
	shell("rm -rf work; cp -r template work; : >'%s'", log);
}

/* Run one program in work, killed at its n-th change (0: not killed); append its changes to the
 * log. Return its status. */
static int
play(const char *command, const char *log, int64_t n)
{
	proc_must(setenv("CLIP_LOG", log, 1) == 0 && chdir("work") == 0,
	    "work");
	proc_arm(n != 0 ? CLIP_KILL : CLIP_COUNT, n != 0 ? CLIP_CHANGES : 0, n,
	    0);
	proc_forget();
	(void)proc_start("%s", command);
	proc_must(proc_wait(PROC_HANG) == 0 && chdir("..") == 0 &&
	    unsetenv("CLIP_LOG") == 0, command);
	return proc_status(0);
}

/* Simulate power cuts before change k; all 1: also a cut that loses nothing. */
static void
cuts(const struct scene *s, size_t k, int all)
{
	size_t j;

	if (all)
		crash(s, k, ALL, 0);
	for (j = 0; j < k; j++) {
		if (!pending(j, k))
			continue;
		crash(s, k, DROP, j);
		if (is_data(&ops[j]))
			crash(s, k, TORN, j);
	}
	crash(s, k, NONE, 0);
	crash(s, k, NO_DATA, 0);
	crash(s, k, NO_NAMES, 0);
}

/* Run the program, cut before each change and at the end. Return the number of changes. */
static size_t
whole(const struct scene *s, const char *log)
{
	size_t k, n;

	again_from(log);
	load();
	proc_must(play(s->command, log, 0) == 0, s->command);
	read_log(log);
	n = nops;
	for (k = 0; k <= n; k++)
		cuts(s, k, 1);
	forget();
	return n;
}

/* Kill at each change that leaves a different disk, run again, and cut the power when that
 * run has answered. If the second run is of another program, also cut before each of its
 * changes. Return the number of kills. */
static unsigned long
killed(const struct scene *s, const char *log)
{
	const char *begun = s->before != NULL ? s->before : s->command;
	unsigned long places = 0;
	struct stat st;
	off_t was = -1;
	char ready[300];
	int64_t n;
	size_t k, done;

	for (n = 1;; n++) {
		again_from(log);
		(void)play(begun, log, n);
		if (proc_page->fired == 0)
			return places;
		proc_must(stat(log, &st) == 0, log);
		(void)snprintf(ready, sizeof(ready), "work/%s",
		    s->ready != NULL ? s->ready : "");
		if (st.st_size == was || access(ready, F_OK) < 0)
			continue;
		was = st.st_size;
		load();
		read_log(log);
		done = nops;
		forget();
		load();
		proc_must(play(s->command, log, 0) == 0, s->command);
		read_log(log);
		for (k = done; k < nops && s->before != NULL; k++)
			cuts(s, k, 0);
		for (k = nops; k > 0 && ops[k - 1].op != CLIP_OP_OUT; k--)
			;
		cuts(s, k != 0 ? k : nops, 0);
		places++;
		forget();
	}
}

static int
one_scene(const struct scene *s, int number)
{
	char log[300];
	size_t n;
	unsigned long before = trees, places;

	bad = 0;
	shell("rm -rf template work says; mkdir -m 700 template; cd template; "
	    "PATH=$BUILD:$BUILD/tests:$PATH; { set -e; %s }", s->setup);
	(void)snprintf(log, sizeof(log), "%s/log.bin", proc_dir);
	n = s->before == NULL ? whole(s, log) : 0;
	places = killed(s, log);
	(void)printf("%sok %d - %s: %zu changes, killed at %lu, %lu trees, %lu "
	    "wrong\n", bad != 0 || n + places < 2 ? "not " : "", number, s->name,
	    n, places, trees - before, bad);
	return bad != 0 || n + places < 2;
}

int
main(int argc, char **argv)
{
	size_t i, n = sizeof(scenes) / sizeof(scenes[0]);
	int c, failed = 0;

	while ((c = getopt(argc, argv, "e:")) != -1) {
		if (c != 'e')
			return 2;
		every = strtoul(optarg, NULL, 10);
	}
	proc_enter("ace-power");
	for (i = 0; i < n; i++)
		if (optind >= argc || strcmp(argv[optind], scenes[i].name) == 0)
			failed |= one_scene(&scenes[i], (int)i + 1);
	(void)printf("1..%zu\n", n);
	proc_end();
	return failed;
}
