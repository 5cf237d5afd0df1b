#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/cli.h"
#include "base/err.h"
#include "base/io.h"
#include "base/io_share.h"
#include "base/mono.h"
#include "base/num.h"
#include "base/wait.h"
#include "device/link.h"
#include "device/receipts.h"
#include "stage/stage_meter.h"

enum {
	STAGE_METER_BUF = 64 * 1024,
	STAGE_METER_SMALL = 4096,
	STAGE_METER_READ = IO_NOT_YET + 1
};

struct stage_meter {
	const struct stage_meter_opts *o;
	struct state state;
	struct link l;
	struct io *in, *out;
	unsigned char *buf;
	int shared, moved;		/* values may pass unseen; they did */
	uint64_t passed;
	double start, mark;	/* up to when time is accounted for */
	double saved, looked, due, wait;
};

/* Everything besides passing bytes: looking at the receipts, drawing the
 * progress bar and saving the state. */
static int
stage_meter_tick(struct stage_meter *x, int last, struct err *e)
{
	double t = mono_now();
	int r = 0;

	if (x->o->show != NULL)
		x->o->show(x->o->arg, x->passed, t - x->start, last);
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

/* n bytes were written from t0 on: p, or values that were not seen. */
static int
stage_meter_wrote(struct stage_meter *x, const unsigned char *p, size_t n,
    double t0, struct err *e)
{
	const uint64_t shards = x->l.shards;
	const double t1 = mono_now();
	int r;

	link_wrote(&x->l, t0, t1, n);
	link_bytes(&x->l, p, n, t1);
	x->passed += n;
	x->mark = t1;
	if (x->o->dir != NULL && x->l.shards != shards &&
	    (r = link_receipts(&x->l, &x->state, t1, e)) < 0)
		return r;
	return stage_meter_tick(x, 0, e);
}

static int
stage_meter_pass(struct stage_meter *x, size_t n, struct err *e)
{
	double t0, wait;
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
	return stage_meter_wrote(x, x->buf, n, t0, e);
}

/* For how long to wait for bytes: milliseconds, -1 as long as it takes. */
static int
stage_meter_patience(const struct stage_meter *x)
{
	return x->o->dir == NULL || x->l.pending == 0 ? -1 :
	    (int)(link_patience(&x->l, mono_now()) * 1e3);
}

/* Reads small pieces, a fiftieth of a second each, so that a limited rate is
 * even. */
static size_t
stage_meter_piece(const struct stage_meter_opts *o)
{
	double n = o->limit / 8 / 50;

	return !(o->limit > 0) || n > STAGE_METER_BUF ? STAGE_METER_BUF :
	    n < 1 ? 1 : (size_t)n;
}

/* Values go from pipe to pipe without being seen here, if the rate is not
 * limited: an enum io_took, or STAGE_METER_READ when they have to be read. */
static int
stage_meter_move(struct stage_meter *x, struct err *e)
{
	const uint64_t left = track_unseen(&x->l.track);
	double t0;
	size_t n = left < STAGE_METER_BUF ? (size_t)left : STAGE_METER_BUF;
	int r;

	if (left < STAGE_METER_SMALL || !x->shared)
		return STAGE_METER_READ;
	if ((r = io_ready(x->in, stage_meter_patience(x), e)) <= 0)
		return r < 0 ? r : IO_NOT_YET;
	t0 = mono_now();
	link_idle(&x->l, t0 - x->mark);
	if ((r = io_share_move(x->out, x->in, n, &n, e)) <= 0) {
		x->shared = x->moved = 0;
		return r < 0 ? r : STAGE_METER_READ;
	}
	x->moved = 1;
	if (n == 0)
		return IO_END;
	r = stage_meter_wrote(x, NULL, n, t0, e);
	return r < 0 ? r : IO_GOT;
}

/* Some more bytes; an enum io_took. Between values that are moved little is
 * read, so that what follows is moved too. */
static int
stage_meter_some(struct stage_meter *x, size_t most, struct err *e)
{
	size_t n;
	int r = stage_meter_move(x, e);

	if (r != STAGE_METER_READ)
		return r;
	if (x->moved)
		most = STAGE_METER_SMALL;
	r = io_take(x->in, x->buf, most, stage_meter_patience(x), &n, e);
	if (r == IO_GOT && (r = stage_meter_pass(x, n, e)) == 0)
		r = IO_GOT;
	return r;
}

static int
stage_meter_copy(struct stage_meter *x, struct err *e)
{
	const size_t most = stage_meter_piece(x->o);
	double end;
	int r;

	x->start = x->mark = x->saved = mono_now();
	while ((r = stage_meter_some(x, most, e)) != IO_END)
		if (r < 0 || (r == IO_NOT_YET &&
		    (r = stage_meter_tick(x, 0, e)) < 0))
			return r;
	if (r == 0)
		r = io_commit(x->out, IO_SYNC_NONE, e);
	end = mono_now() + x->wait;
	while (r == 0 && x->o->dir != NULL && x->l.pending != 0 &&
	    mono_now() < end) {
		/* all of it was taken; the process that took it may have
		 * ended */
		r = wait_secs(link_patience(&x->l, mono_now()), -1, e);
		if (r == 0)
			r = stage_meter_tick(x, 0, e);
	}
	return r == 0 ? stage_meter_tick(x, 1, e) : r;
}

static int
stage_meter_begin(struct stage_meter *x, const char *path, struct err *e)
{
	struct receipts q;
	int r;

	memset(&q, 0, sizeof(q));
	if ((x->buf = alloc_get(STAGE_METER_BUF, 1, e)) == NULL)
		return -ERR_SYS;
	if (x->o->dir != NULL &&
	    ((r = state_open(&x->state, x->o->dir, e)) < 0 ||
	    (r = link_load(&x->l, &x->state, e)) < 0 ||
	    (r = receipts_load(&q, &x->state, e)) < 0))
		return r;
	/* a device that never had a receipt does not wait for one */
	x->wait = x->o->wait < 0 ? q.managed : x->o->wait;
	if ((r = io_open(&x->in, path, e)) < 0)
		return r;
	io_watch(x->in, STDOUT_FILENO);
	if ((r = io_create(&x->out, NULL, x->o->force, e)) < 0)
		return r;
	io_pipe_small(x->out);		/* what it holds is not on its way */
	x->shared = !(x->o->limit > 0) && io_share(x->in, x->out);
	return 0;
}

int
stage_meter_run(const struct stage_meter_opts *o, const char *path,
    struct err *e)
{
	struct stage_meter x = { .o = o, .state = STATE_INIT };
	char rate[NUM_RATE_TEXT];
	int r;

	link_init(&x.l);
	if ((r = stage_meter_begin(&x, path, e)) == 0)
		r = stage_meter_copy(&x, e);
	num_rate_text(link_bandwidth(&x.l), rate);
	if (r == 0)
		cli_say(o->cli, 1, "%llu bytes, %llu shards, bandwidth %s, "
		    "round trip %.3g s, jitter %.3g s",
		    (unsigned long long)x.passed, (unsigned long long)x.l.shards,
		    rate, x.l.rtt, x.l.jitter);
	io_free(x.in);
	io_free(x.out);
	state_close(&x.state);
	alloc_free(x.buf);
	return r;
}
