/*
 * ace-meter: passes bytes and learns how fast the link behind it takes them
 * and how long receipts take; what ace-policy and ace-select read from the
 * state.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/cli.h"
#include "base/err.h"
#include "base/io.h"
#include "base/mono.h"
#include "base/num.h"
#include "base/wait.h"
#include "device/link.h"
#include "device/receipts.h"
#include "kern/kern.h"
#include "pipe/filter.h"

enum { OPT_PROGRESS = CLI_LONG, OPT_SIZE, OPT_WAIT, OPT_FORCE };
enum { BUF = 64 * 1024, BAR = 24 };

static const struct cli_opt options[] = {
	{ 'S', "state", "DIR", "write the estimates to its file link" },
	{ 'L', "limit", "RATE", "no faster, such as 5Mbit" },
	{ OPT_PROGRESS, "progress", NULL,
	    "a bar on standard error, if that is a terminal" },
	{ OPT_SIZE, "size", "SIZE", "so many bytes will come, for the bar" },
	{ OPT_WAIT, "wait", "TIME",
	    "for receipts under way at the end (default 1s)" },
	{ OPT_FORCE, "force", NULL, "write to a terminal" },
	{ 0, NULL, NULL, NULL }
};

struct opts {
	const char *dir;
	double limit, wait;
	uint64_t size;
	int progress, force;
};

static int
set(void *arg, int key, const char *val, struct err *e)
{
	struct opts *o = arg;

	switch (key) {
	case 'S':
		o->dir = val;
		return 0;
	case 'L':
		if (num_rate(&o->limit, val, "--limit", e) < 0)
			return -ERR_USAGE;
		return o->limit >= 8 ? 0 : err_set(e, ERR_USAGE,
		    "--limit '%s': at least 8bit", val);
	case OPT_PROGRESS:
		o->progress = 1;
		return 0;
	case OPT_SIZE:
		return num_size(&o->size, val, "--size", e);
	case OPT_WAIT:
		return num_time(&o->wait, val, "--wait", e);
	default:
		o->force = 1;
		return 0;
	}
}

struct run {
	const struct opts *o;
	const struct cli *c;
	struct state state;
	struct link l;
	struct io *in, *out;
	unsigned char *buf;
	uint64_t passed, size;
	double start, mark;	/* up to when time is accounted for */
	double shown, saved, looked, due, wait;
	int bar;
};

/* One line, over the one before. */
static void
show(struct run *x, double t, int last)
{
	double secs = t - x->start, rate, left;
	char bar[BAR + 1];
	size_t k;

	if (!x->bar || (!last && t - x->shown < 0.2))
		return;
	x->shown = t;
	rate = secs > 0 ? (double)x->passed / secs : 0;
	(void)fprintf(stderr, "\r%9.2f MB %9.2f Mbit/s",
	    (double)x->passed / 1e6, rate * 8 / 1e6);
	if (x->size != 0) {
		double part = (double)x->passed / (double)x->size;

		part = part < 1 ? part : 1;
		k = (size_t)(part * BAR);
		memset(bar, ' ', BAR);
		memset(bar, '=', k);
		bar[BAR] = '\0';
		left = rate > 0 ? (1 - part) * (double)x->size / rate : 0;
		left = left < 359999 ? left : 359999;
		(void)fprintf(stderr, " [%s] %3.0f%% %ld:%02ld:%02ld left", bar,
		    part * 100, (long)left / 3600, (long)left / 60 % 60,
		    (long)left % 60);
	}
	(void)fputs(last ? "\n" : "", stderr);
	(void)fflush(stderr);
}

/* What is not passing bytes: a look at the receipts, the bar, the state. */
static int
tick(struct run *x, int last, struct err *e)
{
	double t = mono_now();
	int r = 0;

	show(x, t, last);
	if (x->o->dir == NULL)
		return 0;
	if (t - x->looked >= link_patience(&x->l, t)) {
		x->looked = t;
		r = link_receipts(&x->l, &x->state, t, e);
	}
	if (r == 0 && (last || t - x->saved > 2)) {
		x->saved = t;
		r = link_save(&x->l, &x->state,
		    x->passed != 0 ? x->o->limit : 0, e);
	}
	return r;
}

static int
pass(struct run *x, size_t n, struct err *e)
{
	uint64_t shards = x->l.shards;
	double t0, t1, wait;
	int r;

	if (x->o->limit > 0 &&
	    (wait = link_pace(&x->due, x->o->limit, mono_now(), n)) > 0 &&
	    (r = wait_secs(wait, STDOUT_FILENO, e)) < 0)
		return r;
	t0 = mono_now();
	link_idle(&x->l, t0 - x->mark);
	if ((r = io_write(x->out, x->buf, n, e)) < 0 ||
	    (r = io_flush(x->out, e)) < 0)
		return r;
	t1 = mono_now();
	link_wrote(&x->l, t0, t1, n);
	link_bytes(&x->l, x->buf, n, t1);
	x->passed += n;
	x->mark = t1;
	if (x->o->dir != NULL && x->l.shards != shards &&
	    (r = link_receipts(&x->l, &x->state, t1, e)) < 0)
		return r;
	return tick(x, 0, e);
}

/* For how long to wait for bytes: milliseconds, -1 as long as it takes. */
static int
patience(const struct run *x)
{
	return x->o->dir == NULL || x->l.pending == 0 ? -1 :
	    (int)(link_patience(&x->l, mono_now()) * 1e3);
}

/* Small pieces, so that a limited rate is even: a fiftieth of a second. */
static size_t
piece(const struct opts *o)
{
	double n = o->limit / 8 / 50;

	return !(o->limit > 0) || n > BUF ? BUF : n < 1 ? 1 : (size_t)n;
}

static int
copy(struct run *x, struct err *e)
{
	size_t n, most = piece(x->o);
	double end;
	int r;

	x->start = x->mark = x->saved = mono_now();
	while ((r = io_take(x->in, x->buf, most, patience(x), &n,
	    e)) != IO_END)
		if (r < 0 || (r = r == IO_GOT ? pass(x, n, e) :
		    tick(x, 0, e)) < 0)
			return r;
	if (r == 0)
		r = io_commit(x->out, IO_SYNC_NONE, e);
	end = mono_now() + x->wait;
	while (r == 0 && x->o->dir != NULL && x->l.pending != 0 &&
	    mono_now() < end) {
		/* all of it was taken: who took it may have ended */
		r = wait_secs(link_patience(&x->l, mono_now()), -1, e);
		if (r == 0)
			r = tick(x, 0, e);
	}
	return r == 0 ? tick(x, 1, e) : r;
}

/* How much will come, when that can be known. */
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
begin(struct run *x, const char *path, struct err *e)
{
	struct receipts q;
	int r;

	memset(&q, 0, sizeof(q));
	x->size = expected(x->o, path);
	x->bar = x->o->progress && isatty(STDERR_FILENO);
	if ((x->buf = alloc_get(BUF, 1, e)) == NULL)
		return -ERR_SYS;
	if (x->o->dir != NULL &&
	    ((r = state_open(&x->state, x->o->dir, e)) < 0 ||
	    (r = link_load(&x->l, &x->state, e)) < 0 ||
	    (r = receipts_load(&q, &x->state, e)) < 0))
		return r;
	/* who never had a receipt is not waiting for one */
	x->wait = x->o->wait < 0 ? q.managed : x->o->wait;
	if ((r = io_open(&x->in, path, e)) < 0)
		return r;
	io_watch(x->in, STDOUT_FILENO);
	if ((r = io_stdout(&x->out, x->o->force, e)) == 0)
		io_pipe_small(x->out);	/* what it holds is not on its way */
	return r;
}

static int
run(const struct opts *o, const struct cli *c, const char *path, struct err *e)
{
	struct run x = { .o = o, .c = c, .state = STATE_INIT };
	int r;

	link_init(&x.l);
	if ((r = begin(&x, path, e)) == 0)
		r = copy(&x, e);
	if (r == 0)
		cli_say(c, 1, "%llu bytes, %llu shards, bandwidth %.4g bit/s, "
		    "round trip %.3g s, jitter %.3g s",
		    (unsigned long long)x.passed, (unsigned long long)x.l.shards,
		    link_bandwidth(&x.l), x.l.rtt, x.l.jitter);
	io_free(x.in);
	io_free(x.out);
	state_close(&x.state);
	alloc_free(x.buf);
	return r;
}

int
main(int argc, char **argv)
{
	struct cli c = {
		.prog = "ace-meter",
		.usage = "[-S DIR] [-L RATE] [--progress] [FILE]",
		.about = "Pass bytes unchanged and measure the link behind.",
		.opt = options,
		.loops = kern_name
	};
	struct opts o = { .wait = -1 };
	struct err e = ERR_INIT;
	const char *path;
	int r = cli_parse(&c, argc, argv, set, &o, &e);

	if (r == 0 && (r = filter_one(&c, argc, argv, &path, &e)) == 0)
		r = run(&o, &c, path, &e);
	return cli_exit(&c, r, &e);
}
