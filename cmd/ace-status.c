/*
 * ace-status: how a run is going, from a spool or from a device's state: who is
 * in which step, who is missing, what was decided; once, or again and again.
 */
#include <stdio.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/cli.h"
#include "base/err.h"
#include "base/wait.h"
#include "kern/kern.h"
#include "report/status.h"

struct opts {
	struct status_opts look;
	double watch;		/* seconds; 0: once */
};

static const struct opt options[] = {
	{ 0, "watch", "TIME", "again so much later, until stopped",
	    OPT_TIME(struct opts, watch), .lo.f = 0.1 },
	{ 0, "json", NULL, "JSON, one document a line",
	    OPT_FLAG(struct opts, look.as_json) },
	{ 0, "run", "NAME", "of a spool with several runs",
	    OPT_TEXT(struct opts, look.run) },
	OPT_END
};

/* The columns of a terminal on standard output; 0 for anything else. */
static int
columns(void)
{
	struct winsize w;

	if (!isatty(STDOUT_FILENO))
		return 0;
	return ioctl(STDOUT_FILENO, TIOCGWINSZ, &w) == 0 && w.ws_col > 0 ?
	    w.ws_col : 80;
}

/* Says all directories once. */
static int
look(struct opts *o, size_t n, char **dir, struct err *e)
{
	size_t i;
	int r;

	o->look.width = o->look.as_json ? 0 : columns();
	for (i = 0; i < n; i++) {
		if (i != 0 && !o->look.as_json)
			(void)putchar('\n');
		if ((r = status_look(&o->look, dir[i], e)) < 0)
			return r;
	}
	if (fflush(stdout) != 0)
		return err_sys(e, "'<stdout>'");
	return 0;
}

/* On a terminal that can, each look takes the place of the one before. */
static int
watch(struct opts *o, size_t n, char **dir, struct err *e)
{
	const char *term = getenv("TERM");
	const int redraw = columns() != 0 && !o->look.as_json &&
	    term != NULL && *term != '\0' && *term != 'd';	/* dumb */
	int r;

	for (;;) {
		if (redraw)
			(void)fputs("\033[H\033[J", stdout);
		if ((r = look(o, n, dir, e)) < 0 ||
		    (r = wait_secs(o->watch, STDOUT_FILENO, e)) < 0)
			return r;
		if (!redraw && !o->look.as_json)
			(void)putchar('\n');
	}
}

static int
run(void *arg, char **dir, size_t n, struct err *e)
{
	struct opts *o = arg;

	if (n == 0)
		return err_set(e, ERR_USAGE, "which directory? (a spool, or a "
		    "device's state)");
	if (kern_get(e) == NULL)
		return -ERR_USAGE;
	return o->watch > 0 ? watch(o, n, dir, e) : look(o, n, dir, e);
}

int
main(int argc, char **argv)
{
	struct cli c = {
		.prog = "ace-status",
		.usage = "[--watch TIME] [--json] [--run NAME] DIR...",
		.about = "Tells how a run is going, from a spool or from a "
		    "device's state.",
		.examples = "ace-status spool\n"
		    "ace-status --json spool\n",
		.opt = options,
		.loops = kern_name
	};
	struct opts o = { .look = { .f = stdout } };

	return cli_main(&c, argc, argv, run, &o);
}
