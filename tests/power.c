/*
 * The power fails: what a program changed on disk is recorded (clip.so), and
 * every tree that a file system may leave behind is built: after each change,
 * with all that was not synced there; with each of it missing, or a write half
 * there; with all of it missing; with the names there and the data not, and the
 * other way round.  (So ALICE, Pillai et al., OSDI 2014.)  In each of them
 *
 *   - the books balance, also after what had left the program has arrived
 *   - all is run once more, blindly, and the books balance
 *
 *   power [-e EVERY]
 */
#include "base/err.h"
#include "crash.h"
#include "report/conserve.h"

static unsigned long every = 1, turn, trees;

/* ---- is it well? ---- */

struct scene {
	const char *name, *setup, *command;
	const char *arrives;	/* once something has left the program */
	const char *again;	/* everything, blindly */
};

#define MADE "mkshards -s 0 -k ramp >in0; mkshards -s 1 -k ramp >in1; "
#define STEP0 MADE "ace-compress -S S -c topk:0.2 --window 4 in0 >sent0; " \
	"ace-recv --spool D sent0 | ace-ack -S S >rest; "
#define SENT "cp -r S S2; ace-compress -S S2 -c topk:0.2 --window 4 in1 " \
	">sent1; "
#define AGAIN "ace-compress -S S -c topk:0.2 --window 4 in1 | " \
	"ace-recv --spool D | ace-ack -S S >rest"

static const struct scene scenes[] = {
	{ "compress", STEP0 SENT, "ace-compress -S S -c topk:0.2 --window 4 in1 "
	    "> out", "ace-recv --spool D sent1 >rest", AGAIN },
	{ "compress, first", MADE "ace-compress -S S2 -c topk:0.2 --window 4 in0 "
	    ">sent0; mkdir -m 700 D; rm in1; ", "ace-compress -S S -c topk:0.2 "
	    "--window 4 in0 > out", "ace-recv --spool D sent0 >rest",
	    "ace-compress -S S -c topk:0.2 --window 4 in0 | "
	    "ace-recv --spool D | ace-ack -S S >rest" },
	{ "recv, first", MADE "ace-compress -S S -c topk:0.2 --window 4 in0 "
	    ">sent0; rm in1; ace-recv --spool D2 sent0 >rcpt; ",
	    "ace-recv --spool D sent0 > out", "ace-ack -S S rcpt >rest",
	    "ace-compress -S S --resend | ace-recv --spool D | "
	    "ace-ack -S S >rest" },
	{ "recv", STEP0 "ace-compress -S S -c topk:0.2 --window 4 in1 >sent1; "
	    "cp -r D D2; ace-recv --spool D2 sent1 >rcpt; ",
	    "ace-recv --spool D sent1 > out", "ace-ack -S S rcpt >rest",
	    AGAIN },
	{ "recv, late", STEP0 "ace-compress -S S -c topk:0.2 --window 4 in1 "
	    ">sent1; mkshards -s 1 -d edge2 | ace-recv --spool D >rest; "
	    "ace-aggregate --spool D --steps 2 >rest; cp -r D D2; "
	    "ace-recv --spool D2 sent1 >rcpt; ",
	    "ace-recv --spool D sent1 > out", "ace-ack -S S rcpt >rest",
	    AGAIN },
	{ "ack", STEP0 "ace-compress -S S -c topk:0.2 --window 4 in1 >sent1; "
	    "ace-recv --spool D sent1 >rcpt; ",
	    "ace-ack -S S rcpt > out", ":", AGAIN },
	{ "aggregate", STEP0 "ace-compress -S S -c topk:0.2 --window 4 in1 | "
	    "ace-recv --spool D | ace-ack -S S >rest; cp -r D D2; "
	    "ace-aggregate --no-provenance --spool D2 --steps 1 >want; ",
	    "ace-aggregate --spool D --steps 1 > out", ":",
	    "{ test -e D/test/last || { ace-aggregate --no-provenance "
	    "--spool D --steps 1 >got && cmp want got >&2; }; } && " AGAIN },
	{ "fence", STEP0 "cp -r S backup; " AGAIN "; rm -rf S; mv backup S; "
	    "ace-recv --spool D --run test --device edge1 --fence 0 >answer; "
	    "rm in1; ", "ace-ack -S S --fence answer > out", ":",
	    "ace-recv --spool D --run test --device edge1 --fence 0 | "
	    "ace-ack -S S --fence" }
};

/* The books of what is in crash; the fence's balance only at the end. */
static const char *
books(const char *when)
{
	static char text[700];
	struct err e = ERR_INIT;
	char name0[] = "crash/in0", name1[] = "crash/in1";
	char *list[] = { name0, name1 };
	struct conserve_in in = { "crash/S", "crash/D", list, 1, NULL };
	struct conserve c;
	struct stat st;

	if (stat("crash/S/residual", &st) < 0 || stat("crash/D", &st) < 0)
		return NULL;	/* nothing was absorbed yet */
	in.n += access("crash/in1", F_OK) == 0;
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
	    "export PATH=$BUILD:$BUILD/tests:$PATH && { timeout 20 bash -o pipefail "
	    "-c '%s'; } "
	    "2>>../says", command);
	(void)setenv("POWER_COMMAND", text, 1);
	return system("bash -c \"$POWER_COMMAND\"") == 0;
}

static const char *
look(const struct scene *s, int left)
{
	int fence = strcmp(s->name, "fence") == 0;
	const char *wrong = fence ? NULL : books("at once");

	if (wrong == NULL && left) {
		if (!does(s->arrives))
			wrong = "what had left cannot arrive";
		else if (!fence)
			wrong = books("after what had left arrived");
	}
	if (wrong == NULL && !does(s->again))
		wrong = "cannot be run again";
	return wrong != NULL ? wrong : books("run again");
}

static unsigned long bad;

static void
crash(const struct scene *s, size_t k, int how, size_t j)
{
	static const char *const hows[] = { "all there", "lost", "torn",
	    "nothing unsynced there", "no data", "no names" };
	const char *wrong;
	size_t i;
	int left = 0;

	if (turn++ % every != 0)
		return;
	for (i = 0; i < k; i++)
		left |= ops[i].op == CLIP_OP_OUT;
	build(k, how, j);
	trees++;
	if ((wrong = look(s, left)) == NULL || bad++ > 5)
		return;
	(void)printf("# %s, before change %zu (%u %s): %s %zu %s: %s\n", s->name,
	    k, k < nops ? ops[k].op : 0, k < nops ? ops[k].path : "", hows[how],
	    j, how == DROP || how == TORN ? ops[j].path : "", wrong);
	shell("tail -n 4 says | sed 's/^/#   /'%s", "");
}

static int
one_scene(const struct scene *s, int number)
{
	char log[300];
	size_t k, j;
	unsigned long before = trees;

	bad = 0;
	shell("rm -rf template work says; mkdir -m 700 template; cd template; "
	    "PATH=$BUILD:$BUILD/tests:$PATH; { set -e; %s }", s->setup);
	shell("cp -r template work; : >log.bin%s", "");
	load();
	(void)snprintf(log, sizeof(log), "%s/log.bin", proc_dir);
	proc_must(setenv("CLIP_LOG", log, 1) == 0 && chdir("work") == 0,
	    "work");
	proc_arm(CLIP_COUNT, 0, 0, 0);
	proc_forget();
	(void)proc_start("%s", s->command);
	proc_must(proc_wait(PROC_HANG) == 0 && proc_status(0) == 0 &&
	    chdir("..") == 0 && unsetenv("CLIP_LOG") == 0, s->command);
	read_log(log);
	for (k = 0; k <= nops; k++) {
		if (k != 0 && ops[k - 1].op == CLIP_OP_OUT && k != nops)
			crash(s, k, NONE, 0);
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
	(void)printf("%sok %d - %s: %zu changes, %lu trees, %lu wrong\n",
	    bad != 0 || nops < 5 ? "not " : "", number, s->name, nops,
	    trees - before, bad);
	k = nops;
	forget();
	return bad != 0 || k < 5;
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
		failed |= one_scene(&scenes[i], (int)i + 1);
	(void)printf("1..%zu\n", n);
	proc_end();
	return failed;
}
