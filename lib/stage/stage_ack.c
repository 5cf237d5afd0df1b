#include <stdio.h>
#include <string.h>

#include "base/cli.h"
#include "base/err.h"
#include "device/receipts.h"
#include "device/restore.h"
#include "pipe/filter.h"
#include "stage/stage_ack.h"

struct stage_ack {
	const struct stage_ack_opts *o;
	struct reader *in;
	struct writer *out;
	struct state state;
	struct receipts receipts;
	int fresh;			/* some are not on disk yet */
};

/* Is this receipt known already? A run that failed can then be repeated with
 * the same receipts, and gets past the one that ended it. */
static int
stage_ack_known(const struct stage_ack *x, struct receipt r)
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
stage_ack_keep(struct stage_ack *x, struct err *e)
{
	const int fresh = x->fresh;

	x->fresh = 0;
	return !fresh ? 0 : receipts_save(&x->receipts, &x->state,
	    x->o->f->sync, e);
}

/* The receipt is on disk before anything that follows it in the stream is
 * passed on, and before more is waited for; receipts that came together get
 * there together. Where the shard was refused nothing follows: there will be
 * no aggregate for it. */
static int
stage_ack_receipt(struct stage_ack *x, struct err *e)
{
	const struct chain_frame *f = reader_frame(x->in);
	struct receipt r;
	char said[256];
	int k, known, later;

	if ((k = receipt_decode(&r, f->raw, f->raw_len, e)) < 0)
		return k;
	(void)snprintf(said, sizeof(said), "step %llu: %s%s%s",
	    (unsigned long long)r.step, receipt_verdict_name(r.verdict),
	    r.reason[0] != '\0' ? ": " : "", r.reason);
	if (r.verdict == RECEIPT_EQUIVOCATION || r.verdict == RECEIPT_FENCED)
		return err_set(e, ERR_REFUSED, "%s (two states act for one "
		    "device; one that was restored begins with ace-recv "
		    "--fence | ace-ack --fence)", said);
	known = stage_ack_known(x, r);
	receipts_add(&x->receipts, &r);
	x->fresh = 1;
	later = receipt_is_accepted(&r) && reader_ready(x->in);
	if (!later && (k = stage_ack_keep(x, e)) < 0)
		return k;
	if (r.verdict == RECEIPT_INVALID && !known)
		return err_set(e, ERR_REFUSED, "%s", said);
	cli_say(x->o->f->cli, receipt_is_accepted(&r), "%s", said);
	return 0;
}

static int
stage_ack_event(struct stage_ack *x, int event, struct err *e)
{
	int r;

	if (event != READER_RCPT && (r = stage_ack_keep(x, e)) < 0)
		return r;
	switch (event) {
	case READER_RCPT:
		return stage_ack_receipt(x, e);
	case READER_SHARD:
		return filter_shard(x->in, x->out, NULL, e);
	case READER_DATA:
	case READER_NOTE:
		return writer_pass(x->out, x->in, e);
	case READER_SEND:
		return writer_send(x->out,
		    &reader_end_of_shard(x->in)->sums, e);
	default:
		return 0;
	}
}

/* What is written into the directory must survive a power cut, and so must the
 * directory itself. */
static int
stage_ack_open(struct state *s, const struct stage_ack_opts *o, struct err *e)
{
	int r = state_open(s, o->dir, e);

	return r == 0 && o->f->sync == IO_SYNC_FULL ? state_durable(s, e) : r;
}

/* Locks the state: no other program may use it at the same time. */
static int
stage_ack_fence(const struct stage_ack_opts *o, const char *path, struct err *e)
{
	struct state s = STATE_INIT;
	struct reader *in = NULL;
	uint64_t n;
	int r;

	if ((r = stage_ack_open(&s, o, e)) == 0 &&
	    (r = state_lock(&s, e)) == 0 &&
	    (r = filter_in(o->f, &in, path, e)) == 0 &&
	    (r = restore_take(&s, in, o->f->sync, &n, e)) == 0)
		cli_say(o->f->cli, 0, "incarnation %llu", (unsigned long long)n);
	reader_free(in);
	state_close(&s);
	return r;
}

/* Nothing came back. The network is to blame and not the data, so that trying
 * again helps. */
static int
stage_ack_no_answer(const struct stage_ack *x, const struct err *e)
{
	return e->kind == ERR_TRUNCATED && reader_empty(x->in) &&
	    reader_is_pipe(x->in);
}

int
stage_ack_run(void *opts, char **path, size_t n, struct err *e)
{
	const struct stage_ack_opts *o = opts;
	struct stage_ack x = { .o = o, .state = STATE_INIT };
	int r, k;

	(void)n;
	if (o->dir == NULL)
		return err_set(e, ERR_USAGE, "whose receipts? (-S DIR)");
	if (o->fence)
		return stage_ack_fence(o, *path, e);
	if ((r = stage_ack_open(&x.state, o, e)) < 0 ||
	    (r = state_lock_as(&x.state, "ack-lock", e)) < 0 ||
	    (r = receipts_load(&x.receipts, &x.state, e)) < 0)
		goto out;
	/* from now on a shard is kept until there is a receipt for it */
	if (!x.receipts.managed && (r = receipts_save(&x.receipts, &x.state,
	    o->f->sync, e)) < 0)
		goto out;
	if ((r = filter_both(o->f, &x.in, &x.out, *path, e)) < 0)
		goto out;
	filter_loose(x.in, x.out, 0);
	while ((r = reader_next(x.in, e)) > 0)
		if ((r = stage_ack_event(&x, r, e)) < 0)
			break;
	if ((k = stage_ack_keep(&x, e)) < 0 && r == 0)
		r = k;
	if (r < 0 && stage_ack_no_answer(&x, e)) {
		err_clear(e);
		r = err_set(e, ERR_SYS, "no answer: the other side was not "
		    "reached, or ended at once (the same again, later)");
	} else if (r == -ERR_DATA && e->quiet) {
		/* what the receiver has to say of it may be told elsewhere */
		err_clear(e);
		r = err_set(e, ERR_DATA, "truncated: the receiver gave up; its "
		    "own message says why");
	}
	r = filter_end(x.out, r, e);
out:
	writer_free(x.out);
	reader_free(x.in);
	state_close(&x.state);
	return r;
}
