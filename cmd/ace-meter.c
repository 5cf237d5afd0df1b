/*
 * ace-meter: copies its input to its output, measures how fast the link after it takes the
 * bytes and how long receipts take, and writes both into the state for ace-policy.  It
 * works on bytes and not on shards, so it is not a stage.
 */
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/cli.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/io.h"
#include "base/num.h"
#include "base/wait.h"
#include "device/link.h"
#include "device/receipts.h"
#include "kern/kern.h"

enum {
	BUF = 64 * 1024,
	MOVE = 1 << 20,		/* bytes moved per call if nothing is measured */
	SMALL = 4096,		/* fewer bytes of values than this are read, not moved */
	READ = IO_NOT_YET + 1	/* result of move(): read the next bytes */
};

struct opts {
	const char *dir;	/* state directory, or NULL */
	double limit;		/* bit/s; 0: no limit */
	double wait;		/* seconds to wait for receipts at the end; < 0: one
				   second, or 0 if ace-ack never used the state */
	const struct cli *cli;	/* for messages */
};

struct meter {
	struct opts *o;
	struct statedir state;
	struct link l;
	struct io *in, *out;
	unsigned char *buf;
	int shared, moved;		/* shared: values may pass unread; moved: they did */
	size_t most;			/* most bytes per io_splice_move */
	uint64_t passed;
	double mark;		/* end of the last write; the link is idle from then on */
	double saved, looked;	/* when the state was saved and the receipts were read */
	double due, wait;	/* due: of link_pace; wait: seconds for receipts at the end */
};

/* If it is time, read the receipts and save the state; last 1: save it in any case. */
static int
tick(struct meter *x, int last, struct err *e)
{
	double t = clock_now();
	int r = 0;

	if (x->o->dir == NULL)
		return 0;
	if (t - x->looked >= link_patience(&x->l, t)) {
		x->looked = t;
		r = link_receipts(&x->l, &x->state, t, e);
	}
	if (r == 0 && (last || t - x->saved > 2)) {
		x->saved = t;
		r = link_save(&x->l, &x->state, x->passed != 0 ? x->o->limit : 0, e);
	}
	return r;
}

/* Account for n bytes p written since t0; p NULL: values that passed unread. */
static int
wrote(struct meter *x, const unsigned char *p, size_t n, double t0, struct err *e)
{
	const uint64_t shards = x->l.shards;
	const double t1 = clock_now();
	int r;

	link_wrote(&x->l, t0, t1, n);
	link_bytes(&x->l, p, n, t1);
	x->passed += n;
	x->mark = t1;
	if (x->o->dir != NULL && x->l.shards != shards &&
	    (r = link_receipts(&x->l, &x->state, t1, e)) < 0)
		return r;
	return tick(x, 0, e);
}

static int
pass(struct meter *x, size_t n, struct err *e)
{
	double t0, wait;
	int r;

	if (x->o->limit > 0 &&
	    (wait = link_pace(&x->due, x->o->limit, clock_now(), n)) > 0 &&
	    (r = wait_secs(wait, STDOUT_FILENO, e)) < 0)
		return r;
	t0 = clock_now();
	link_idle(&x->l, t0 - x->mark);
	if ((r = io_write(x->out, x->buf, n, e)) < 0 || (r = io_flush(x->out, e)) < 0)
		return r;
	return wrote(x, x->buf, n, t0, e);
}

/* Return how long to wait for bytes, in milliseconds; -1: without limit. */
static int
patience(const struct meter *x)
{
	return x->o->dir == NULL || x->l.pending == 0 ? -1 :
	    (int)(link_patience(&x->l, clock_now()) * 1e3);
}

/* Move values from pipe to pipe without copying them, unless the rate is limited.
 * Return an enum io_took, or READ when they must be read. */
static int
move(struct meter *x, struct err *e)
{
	const uint64_t left = link_track_unseen(&x->l.track);
	double t0;
	size_t n = left < x->most ? (size_t)left : x->most;
	int r;

	if (left < SMALL || !x->shared)
		return READ;
	if ((r = io_ready(x->in, patience(x), e)) <= 0)
		return r < 0 ? r : IO_NOT_YET;
	t0 = clock_now();
	link_idle(&x->l, t0 - x->mark);
	if ((r = io_splice_move(x->out, x->in, n, &n, e)) <= 0) {
		x->shared = x->moved = 0;
		return r < 0 ? r : READ;
	}
	x->moved = 1;
	if (n == 0)
		return IO_END;
	r = wrote(x, NULL, n, t0, e);
	return r < 0 ? r : IO_GOT;
}

/* Copy some more bytes.  Return an enum io_took, or an error.  Once values were moved,
 * reads are short, so that later values can be moved, too. */
static int
some(struct meter *x, size_t most, struct err *e)
{
	size_t n;
	int r = move(x, e);

	if (r != READ)
		return r;
	if (x->moved)
		most = SMALL;
	r = io_take(x->in, x->buf, most, patience(x), &n, e);
	if (r == IO_GOT && (r = pass(x, n, e)) == 0)
		r = IO_GOT;
	return r;
}

static int
copy(struct meter *x, struct err *e)
{
	/* write pieces of a fiftieth of a second, so that the rate is even */
	const double part = x->o->limit / 8 / 50;
	const size_t most = !(x->o->limit > 0) || part > (double)BUF ? BUF : part < 1 ? 1 :
	    (size_t)part;
	double end;
	int r;

	x->mark = x->saved = clock_now();
	while ((r = some(x, most, e)) != IO_END)
		if (r < 0 || (r == IO_NOT_YET && (r = tick(x, 0, e)) < 0))
			return r;
	if (r == 0)
		r = io_commit(x->out, IO_SYNC_NONE, e);
	end = clock_now() + x->wait;
	while (r == 0 && x->o->dir != NULL && x->l.pending != 0 &&
	    clock_now() < end) {
		/* the reader has taken all and may have ended, so do not watch it */
		r = wait_secs(link_patience(&x->l, clock_now()), -1, e);
		if (r == 0)
			r = tick(x, 0, e);
	}
	return r == 0 ? tick(x, 1, e) : r;
}

static int
begin(struct meter *x, const char *path, struct err *e)
{
	struct receipts q;
	int r;

	memset(&q, 0, sizeof(q));
	if ((x->buf = alloc_get(BUF, 1, e)) == NULL)
		return -ERR_SYS;
	if (x->o->dir != NULL && ((r = statedir_open(&x->state, x->o->dir, e)) < 0 ||
	    (r = link_load(&x->l, &x->state, e)) < 0 ||
	    (r = receipts_load(&q, &x->state, e)) < 0))
		return r;
	/* without --wait, do not wait for a receipt if ace-ack never used the state */
	x->wait = x->o->wait < 0 ? q.managed : x->o->wait;
	if ((r = io_open(&x->in, path, e)) < 0)
		return r;
	io_watch(x->in, STDOUT_FILENO);
	if ((r = io_create(&x->out, NULL, 0, e)) < 0)
		return r;
	/* use a small pipe for measurements, since bytes in the pipe are not sent yet */
	x->most = x->o->dir == NULL && x->o->cli->verbose == 0 &&
	    !(x->o->limit > 0) ? MOVE : BUF;
	if (x->most == BUF)
		fd_pipe_size(STDOUT_FILENO, BUF);
	x->shared = !(x->o->limit > 0) && io_splice(x->in, x->out);
	return 0;
}

static int
run(void *arg, char **path, size_t n, struct err *e)
{
	struct opts *o = arg;
	struct meter x = { .o = o, .state = STATE_INIT };
	char rate[NUM_TEXT];
	int r;

	if ((r = begin(&x, *path, e)) == 0)
		r = copy(&x, e);
	(void)num_text(link_bandwidth(&x.l), "bit/s", rate);
	if (r == 0)		/* 0 stands for an unknown value */
		cli_say(o->cli, 1, "bytes: %llu, shards: %llu, bandwidth %s, "
		    "round trip %.3g s, jitter %.3g s (0: not measured)",
		    (unsigned long long)x.passed, (unsigned long long)x.l.shards,
		    rate, x.l.rtt, x.l.jitter);
	io_free(x.in);
	io_free(x.out);
	statedir_close(&x.state);
	alloc_free(x.buf);
	return r;
}

static const struct opt options[] = {
	{ 'S', "state", "DIR", "write the estimates to the file DIR/link",
	    OPT_PATH(struct opts, dir, OPT_DIR) },
	{ 'L', "bandwidth", "RATE", "send no faster than this, such as 5Mbit",
	    OPT_RATE(struct opts, limit), .lo.f = 8 },
	/* the default is 1 s, or 0 if ace-ack never used the state */
	{ 0, "wait", "TIME", "how long to wait for receipts at the end (default 1s)",
	    OPT_TIME(struct opts, wait), .with = "state" },
	OPT_END
};

int
main(int argc, char **argv)
{
	struct cli c = {
		.prog = "ace-meter",
		.usage = "[-S DIR] [-L RATE] [FILE]",
		.about = "Passes bytes unchanged and measures the link that "
		    "takes them.",
		.examples = "cat edge1.aceg | ace-meter -v -S state "
		    ">copy.aceg\n"
		    "cat edge1.aceg | ace-meter -L 50Mbit >copy.aceg\n",
		.opt = options,
		.kernels = kern_name,
		.one = 1
	};
	struct opts o = { .wait = -1, .cli = &c };

	return cli_main(&c, argc, argv, run, &o);
}
