/*
 * ace-meter: copies its input to its output, measures how fast the link behind
 * it takes the bytes, and draws a progress bar.
 */
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cli.h"
#include "base/err.h"
#include "kern/kern.h"
#include "stage/stage_meter.h"

enum { BAR = 24 };

struct opts {
	struct stage_meter_opts m;
	int progress;
	uint64_t size;		/* for the bar, 0 unknown */
	double shown;		/* when, in seconds since the start */
};

static const struct opt options[] = {
	{ 'S', "state", "DIR", "write the estimates to its file link",
	    OPT_PATH(struct opts, m.dir, OPT_DIR) },
	{ 'L', "limit", "RATE", "no faster, such as 5Mbit",
	    OPT_RATE(struct opts, m.limit), .lo.f = 8 },
	{ 0, "progress", NULL, "a bar on standard error, if that is a terminal",
	    OPT_FLAG(struct opts, progress) },
	/* 1 s only where there ever was a receipt */
	{ 0, "wait", "TIME", "for receipts under way at the end (default 1s)",
	    OPT_TIME(struct opts, m.wait) },
	{ 0, "force", NULL, "write to a terminal",
	    OPT_FLAG(struct opts, m.force) },
	OPT_END
};

/* One line, over the one before. */
static void
show(void *arg, uint64_t passed, double secs, int last)
{
	struct opts *o = arg;
	double rate = secs > 0 ? (double)passed / secs : 0, part, left;
	char bar[BAR + 1];
	size_t k;

	if (!last && secs - o->shown < 0.2)
		return;
	o->shown = secs;
	(void)fprintf(stderr, "\r%9.2f MB %9.2f Mbit/s",
	    (double)passed / 1e6, rate * 8 / 1e6);
	if (o->size != 0) {
		part = (double)passed / (double)o->size;
		part = part < 1 ? part : 1;
		k = (size_t)(part * BAR);
		memset(bar, ' ', BAR);
		memset(bar, '=', k);
		bar[BAR] = '\0';
		left = rate > 0 ? (1 - part) * (double)o->size / rate : 0;
		left = left < 359999 ? left : 359999;
		(void)fprintf(stderr, " [%s] %3.0f%% %ld:%02ld:%02ld left", bar,
		    part * 100, (long)left / 3600, (long)left / 60 % 60,
		    (long)left % 60);
	}
	(void)fputs(last ? "\n" : "", stderr);
	(void)fflush(stderr);
}

/* How many bytes will come, where that can be known. */
static uint64_t
expected(const struct opts *o, const char *path)
{
	struct stat st;
	int r = path == NULL || strcmp(path, "-") == 0 ?
	    fstat(STDIN_FILENO, &st) : stat(path, &st);

	if (o->size != 0 || r < 0 || !S_ISREG(st.st_mode) || st.st_size < 0)
		return o->size;
	return (uint64_t)st.st_size;
}

static int
run(void *arg, char **path, size_t n, struct err *e)
{
	struct opts *o = arg;

	(void)n;
	o->size = expected(o, *path);
	if (o->progress && isatty(STDERR_FILENO))
		o->m.show = show;
	return stage_meter_run(&o->m, *path, e);
}

int
main(int argc, char **argv)
{
	struct cli c = {
		.prog = "ace-meter",
		.usage = "[-S DIR] [-L RATE] [--progress] [FILE]",
		.about = "Pass bytes unchanged and measure the link behind.",
		.examples = "cat edge1.aceg | ace-meter -v -S state "
		    ">copy.aceg\n"
		    "cat edge1.aceg | ace-meter -L 50Mbit >copy.aceg\n",
		.opt = options,
		.loops = kern_name,
		.one = 1
	};
	struct opts o = { .m = { .wait = -1, .cli = &c, .arg = &o },
	    .shown = -1 };

	return cli_main(&c, argc, argv, run, &o);
}
