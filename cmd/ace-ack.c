/*
 * ace-ack: takes the receipts out of a return stream and into the state; what
 * else the stream holds (the aggregate) goes on.
 */
#include <stdio.h>
#include <string.h>

#include "base/cli.h"
#include "base/err.h"
#include "device/receipts.h"
#include "device/restore.h"
#include "kern/kern.h"
#include "pipe/filter.h"

enum { OPT_FENCE = CLI_LONG };

static const struct cli_opt options[] = {
	{ 'S', "state", "DIR", "the device's state (needed)" },
	{ OPT_FENCE, "fence", NULL,
	    "the state was restored: take what ace-recv --fence says" },
	FILTER_OPT_SYNC,
	FILTER_OPTS_IN,
	FILTER_OPTS_OUT,
	{ 0, NULL, NULL, NULL }
};

struct opts {
	struct filter f;
	const char *dir;
	int fence;
};

static int
set(void *arg, int key, const char *val, struct err *e)
{
	struct opts *o = arg;
	int r;

	switch (key) {
	case 'S':
		o->dir = val;
		return 0;
	case OPT_FENCE:
		o->fence = 1;
		return 0;
	default:
		r = filter_set(&o->f, key, val, e);
		return r < 0 ? r : 0;
	}
}

struct run {
	const struct opts *o;
	const struct cli *c;
	struct reader *in;
	struct writer *out;
	struct state state;
	struct receipts receipts;
};

/* Known already, given once more or twice: who takes the same receipts again
 * gets past one that ended the program. */
static int
is_known(const struct run *x, struct receipt r)
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

/* On disk before anything that follows it in the stream goes on.  Where the
 * shard was refused nothing does: no aggregate will come for it. */
static int
on_receipt(struct run *x, struct err *e)
{
	const struct chain_frame *f = reader_frame(x->in);
	struct receipt r;
	char said[256];
	int k, known;

	if ((k = receipt_decode(&r, f->raw, f->raw_len, e)) < 0)
		return k;
	(void)snprintf(said, sizeof(said), "step %llu: %s%s%s",
	    (unsigned long long)r.step, receipt_verdict_name(r.verdict),
	    r.reason[0] != '\0' ? ": " : "", r.reason);
	if (r.verdict == RECEIPT_EQUIVOCATION || r.verdict == RECEIPT_FENCED)
		return err_set(e, ERR_REFUSED, "%s (two states act for one "
		    "device; one that was restored begins with ace-recv "
		    "--fence | ace-ack --fence)", said);
	known = is_known(x, r);
	receipts_add(&x->receipts, &r);
	if ((k = receipts_save(&x->receipts, &x->state,
	    x->o->f.sync, e)) < 0)
		return k;
	if (r.verdict == RECEIPT_INVALID && !known)
		return err_set(e, ERR_REFUSED, "%s", said);
	cli_say(x->c, receipt_is_accepted(&r), "%s", said);
	return 0;
}

static int
on_event(struct run *x, int event, struct err *e)
{
	switch (event) {
	case READER_RCPT:
		return on_receipt(x, e);
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

/* What is written into it is to outlive a power cut, so is the directory. */
static int
open_state(struct state *s, const struct opts *o, struct err *e)
{
	int r = state_open(s, o->dir, e);

	return r == 0 && o->f.sync == IO_SYNC_FULL ? state_durable(s, e) : r;
}

/* Alone with the state: no other program may be at it. */
static int
fence(struct opts *o, const struct cli *c, const char *path, struct err *e)
{
	struct state s = STATE_INIT;
	struct reader *in = NULL;
	uint64_t n;
	int r;

	if ((r = open_state(&s, o, e)) == 0 &&
	    (r = state_lock(&s, e)) == 0 &&
	    (r = filter_in(&o->f, &in, path, e)) == 0 &&
	    (r = restore_take(&s, in, o->f.sync, &n, e)) == 0)
		cli_say(c, 0, "incarnation %llu", (unsigned long long)n);
	reader_free(in);
	state_close(&s);
	return r;
}

/* Nothing came back: that is the network, not the data, and a retry helps. */
static int
no_answer(const struct run *x, const struct err *e)
{
	return e->kind == ERR_TRUNCATED && e->has_byte && e->byte == 0 &&
	    reader_is_pipe(x->in);
}

static int
run(struct opts *o, const struct cli *c, const char *path, struct err *e)
{
	struct run x = { .o = o, .c = c, .state = STATE_INIT };
	int r;

	if (o->dir == NULL)
		return err_set(e, ERR_USAGE, "whose receipts? (-S DIR)");
	if (o->fence)
		return fence(o, c, path, e);
	if ((r = open_state(&x.state, o, e)) < 0 ||
	    (r = state_lock_as(&x.state, "ack-lock", e)) < 0 ||
	    (r = receipts_load(&x.receipts, &x.state, e)) < 0)
		goto out;
	/* from now on nothing is forgotten without a receipt */
	if (!x.receipts.managed && (r = receipts_save(&x.receipts, &x.state,
	    o->f.sync, e)) < 0)
		goto out;
	if ((r = filter_in(&o->f, &x.in, path, e)) < 0 ||
	    (r = filter_out(&o->f, &x.out, e)) < 0)
		goto out;
	filter_loose(x.in, x.out, 0);
	while ((r = reader_next(x.in, e)) > 0)
		if ((r = on_event(&x, r, e)) < 0)
			break;
	if (r < 0 && no_answer(&x, e)) {
		err_clear(e);
		r = err_set(e, ERR_SYS, "no answer: the other side was not "
		    "reached, or ended at once (the same again, later)");
	}
	r = filter_end(x.out, r, e);
out:
	writer_free(x.out);
	reader_free(x.in);
	state_close(&x.state);
	return r;
}

int
main(int argc, char **argv)
{
	struct cli c = {
		.prog = "ace-ack",
		.usage = "-S DIR [--fence] [--sync WHEN] [FILE]",
		.about = "Takes delivery receipts out of a return stream and "
		    "into the device's state; passes the rest on.",
		.opt = options,
		.loops = kern_name
	};
	struct opts o = { 0 };
	struct err e = ERR_INIT;
	const char *path;
	int r;

	filter_init(&o.f, c.prog, argc, argv);
	r = cli_parse(&c, argc, argv, set, &o, &e);
	if (r == 0 && (r = filter_one(&c, argc, argv, &path, &e)) == 0)
		r = run(&o, &c, path, &e);
	filter_release(&o.f);
	return cli_exit(&c, r, &e);
}
