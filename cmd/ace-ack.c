/*
 * ace-ack: takes the receipts out of a return stream and records them in the state.
 * It passes on the rest of the stream, which is the aggregate.
 */
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "base/cli.h"
#include "base/err.h"
#include "base/io.h"
#include "device/error_feedback.h"
#include "device/pending.h"
#include "device/receipts.h"
#include "pipe/event.h"
#include "pipe/filter.h"
#include "pipe/program.h"

struct opts {
	struct filter *f;	/* the program's input and output */
	const char *dir;	/* the state of the device */
	uint64_t restart;	/* the new incarnation, or 0 */
};

struct ack {
	const struct opts *o;
	struct reader *in;
	struct writer *out;
	struct statedir state;
	struct receipts receipts, heard;	/* receipts: all; heard: those of this stream */
	int fresh;			/* 1: some receipts are not on disk yet */
	uint64_t at;			/* bytes of the input up to the average's first group */
	int owned;			/* 1: the owner of the state is known */
	struct residual_owner owner;
};

/* Return 1 when the receipt is for a shard of this state.  Return 0 for a receipt of another
 * run or device, and for an equivocation or fenced shard that is not pending here: another
 * state of the same device has sent it.  A state that has coded nothing yet accepts every
 * receipt. */
static int
ours(struct ack *x, const struct receipt *r, struct err *e)
{
	const struct pending_one *one;
	struct pending p;
	int k;

	if (!x->owned || !residual_owns(&x->owner, r->run, r->device)) {
		if ((k = residual_owner(&x->owner, &x->state, e)) <= 0)
			return k < 0 ? k : 1;
		x->owned = 1;
		if (!residual_owns(&x->owner, r->run, r->device))
			return 0;
	}
	if (r->verdict != RECEIPT_EQUIVOCATION && r->verdict != RECEIPT_FENCED)
		return 1;
	if ((k = pending_scan(&p, &x->state, e)) < 0)
		return k;
	one = pending_find(&p, r->step);
	return one != NULL && memcmp(one->digest, r->digest, SHARD_DIGEST) == 0;
}

/* Return 1 when the state has this receipt already, with any clock and version.  So a failed
 * run can be repeated with the same receipts (take). */
static int
known_before(const struct ack *x, struct receipt r)
{
	const struct receipts *q = &x->receipts;
	size_t i;

	for (i = 0; i < q->n; i++) {
		r.clock = q->r[i].clock;
		r.version = q->r[i].version;
		if (memcmp(&q->r[i], &r, sizeof(r)) == 0)
			return 1;
	}
	return 0;
}

static int
keep(struct ack *x, struct err *e)
{
	const int fresh = x->fresh;

	x->fresh = 0;
	return !fresh ? 0 : receipts_save(&x->receipts, &x->state, x->o->f->sync, e);
}

/* Fail because the receiver knows shards that this state does not.  The message names an
 * incarnation for --restart: one above that of the state and the one that r names, if any. */
static int
restored(const struct ack *x, const struct receipt *r, const char *said, struct err *e)
{
	unsigned long long known = 0;

	(void)sscanf(r->reason, "incarnation %*u is older than %10llu", &known);
	if (known < x->owner.incarnation)
		known = x->owner.incarnation;
	return err_set(e, ERR_REFUSED, "%s: if another state sends as this device, end the "
	    "programs that use the other state; if this state is new or from a backup, run "
	    "ace-ack -S '%s' --restart %llu%s", said, x->o->dir, known + 1,
	    r->verdict == RECEIPT_FENCED ? "" : ", then send a later step than the "
	    "receiver has of this device (see ace-status)");
}

/* Report the receipt at which x->in stands.  Add it to those of the state, unless it is for
 * another state, equivocation or fenced.  Accepted receipts that arrived together are written
 * to disk together, before what follows them is passed on and before waiting for more input;
 * others are written immediately.  -ERR_REFUSED: the shard was refused, and the state did not
 * know that before. */
static int
take(struct ack *x, struct err *e)
{
	const struct receipt r = *reader_receipt(x->in);
	char said[256];
	int k, known, later;

	(void)snprintf(said, sizeof(said), "step %llu: %s%s%s",
	    (unsigned long long)r.step, receipt_verdict_name(r.verdict),
	    r.reason[0] != '\0' ? ": " : "", r.reason);
	if ((k = ours(x, &r, e)) == 0)
		cli_say(x->o->f->cli, 0, "skipped a receipt for a shard that is not "
		    "pending in this state, but of another state, device or run: %s",
		    said);
	if (k <= 0)
		return k;
	event_say(x->o->f, EVENT_RECEIPT, r.step,
	    receipt_verdict_name(r.verdict), r.reason);
	if (r.verdict == RECEIPT_EQUIVOCATION || r.verdict == RECEIPT_FENCED)
		return restored(x, &r, said, e);
	/* a refused shard that is the state's last one can still be coded again */
	known = known_before(x, r) && residual_owner(&x->owner, &x->state, NULL) > 0 &&
	    x->owner.step > r.step;
	receipts_add(&x->receipts, &r);
	receipts_add(&x->heard, &r);
	x->fresh = 1;
	later = receipt_is_accepted(&r) && io_ready(reader_io(x->in), 0, NULL) > 0;
	if (!later && (k = keep(x, e)) < 0)
		return k;
	if (r.verdict == RECEIPT_INVALID && !known)
		return err_set(e, ERR_REFUSED, "%s", said);
	if (x->o->f->events == 0 || r.verdict != RECEIPT_LATE)
		cli_say(x->o->f->cli, receipt_is_accepted(&r), "%s", said);
	return 0;
}

static int
pass_on(struct ack *x, int event, struct err *e)
{
	int r;

	if (event != READER_RCPT && (r = keep(x, e)) < 0)
		return r;
	switch (event) {
	case READER_RCPT:
		return take(x, e);
	case READER_SHARD:
		if ((r = pending_answers(&x->state, &x->heard,
		    reader_shard(x->in), reader_schema(x->in), e)) < 0)
			return r;
		x->at = io_bytes(reader_io(x->in));
		return filter_shard(x->in, x->out, e);
	case READER_DATA:
	case READER_NOTE:
		return writer_pass(x->out, x->in, e);
	case READER_SEND:
		event_say(x->o->f, EVENT_AVERAGE, reader_shard(x->in)->step,
		    (uint64_t)reader_shard(x->in)->contributors,
		    reader_schema(x->in)->total,
		    io_bytes(reader_io(x->in)) - x->at);
		return writer_send(x->out, &reader_end_of_shard(x->in)->sums, e);
	default:
		return 0;
	}
}

/* Open the state; with a full sync, sync the directory that holds it, against power cuts. */
static int
open_state(struct statedir *s, const struct opts *o, struct err *e)
{
	int r = statedir_open(s, o->dir, e);

	return r == 0 && o->f->sync == IO_SYNC_FULL ? statedir_durable(s, e) : r;
}

/* Lock the state, begin a new incarnation of it, and print what is lost. */
static int
restart(const struct opts *o, struct err *e)
{
	const unsigned long long n = o->restart;
	struct statedir s = STATE_INIT;
	struct feedback_lost l;
	int r;

	s.durable = o->f->sync == IO_SYNC_FULL;
	if ((r = open_state(&s, o, e)) == 0 && (r = statedir_lock(&s, STATE_LOCK, e)) == 0 &&
	    (r = feedback_restart(&s, n, &l, e)) == 0) {
		if (l.what == LOST_RESIDUAL)
			cli_say(o->f->cli, 0, "incarnation %llu begins: the "
			    "residual of step %llu (norm %.3g) is lost; shards "
			    "without a receipt: %zu", n, (unsigned long long)l.step,
			    l.norm, l.pending);
		else if (l.what == LOST_BEFORE)
			cli_say(o->f->cli, 0, "incarnation %llu has begun already: the "
			    "state has sent nothing since", n);
		else
			cli_say(o->f->cli, 0, "incarnation %llu begins: the residual of "
			    "state '%s' is %s, so all updates that were not delivered are "
			    "lost, an unknown amount", n, s.dir,
			    l.what == LOST_UNREADABLE ? "damaged" : "absent");
	}
	statedir_close(&s);
	return r;
}

/* Return 1 if the input is a pipe and ended without a byte.  Then probably the connection
 * failed, and a retry may help. */
static int
no_answer(const struct ack *x, const struct err *e)
{
	const struct io *io = reader_io(x->in);

	return e->kind == ERR_TRUNCATED && io_bytes(io) == 0 && io_is_pipe(io);
}

static int
run(void *opts, char **path, size_t n, struct err *e)
{
	const struct opts *o = opts;
	struct ack x = { .o = o, .state = STATE_INIT };
	int r, k;

	if (o->dir == NULL)
		return err_set(e, ERR_USAGE, "no state directory was given: add -S DIR");
	if (o->restart != 0 && *path != NULL)
		return err_set(e, ERR_USAGE, "--restart reads no input: leave out "
		    "'%s'", *path);
	if (o->restart != 0)
		return restart(o, e);
	if ((r = open_state(&x.state, o, e)) < 0)
		goto out;
	if ((r = statedir_lock(&x.state, "ack-lock", e)) < 0 ||
	    (r = receipts_load(&x.receipts, &x.state, e)) < 0)
		goto out;
	/* from now on each shard is kept until its receipt arrives */
	if (!x.receipts.managed && (r = receipts_save(&x.receipts, &x.state,
	    o->f->sync, e)) < 0)
		goto out;
	if ((r = filter_both(o->f, &x.in, &x.out, *path, e)) < 0)
		goto out;
	while ((r = reader_next(x.in, e)) > 0)
		if ((r = pass_on(&x, r, e)) < 0)
			break;
	if ((k = keep(&x, e)) < 0 && r == 0)
		r = k;
	if (r < 0 && no_answer(&x, e)) {
		err_clear(e);
		r = err_set(e, ERR_SYS, "no answer: the receiver was not reached or "
		    "ended immediately: see its own message or, without one, run the "
		    "same command again later");
	} else if (r == -ERR_DATA && e->upstream) {
		/* the receiver's reason may have been reported elsewhere */
		err_clear(e);
		r = err_set(e, ERR_DATA, "truncated: the receiver failed: see its "
		    "own message");
	}
	r = filter_end(x.out, r, e);
out:
	writer_free(x.out);
	reader_free(x.in);
	statedir_close(&x.state);
	return r;
}

static const struct opt options[] = {
	{ 'S', "state", "DIR", "the device's state (needed)",
	    OPT_PATH(struct opts, dir, OPT_DIR) },
	{ 0, "restart", "N",
	    "the state was lost or restored: begin again as incarnation N",
	    OPT_U64(struct opts, restart, 1, SHARD_INCARNATIONS) },
	FILTER_OPT_SYNC,
	FILTER_OPT_EVENTS,
	FILTER_OPTS_IN,
	FILTER_OPTS_OUT,
	OPT_END
};

int
main(int argc, char **argv)
{
	struct program p = {
		.cli = {
			.prog = "ace-ack",
			.usage = "-S DIR [--restart N] [--sync WHEN] [FILE]",
			.about = "Takes delivery receipts out of a return stream and "
			    "into the device's state; passes the rest on.",
			.examples = "ace-compress -S state -c q8 edge1.aceg | "
			    "ace-recv --spool spool |\n"
			    "        ace-ack -S state >rest.aceg\n"
			    "ace-compress -S state --resend | "
			    "ace-recv --spool spool |\n"
			    "        ace-ack -S state >rest.aceg\n",
			.opt = options,
			.one = 1
		},
		.run = run
	};
	struct opts o = { .f = &p.f };

	return program_main(&p, argc, argv, &o);
}
