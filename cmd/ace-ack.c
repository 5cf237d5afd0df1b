/*
 * ace-ack: takes the receipts out of a return stream and into the state; what
 * else the stream holds (the aggregate) goes on.
 */
#include <string.h>

#include "base/cli.h"
#include "base/err.h"
#include "base/num.h"
#include "device/receipts.h"
#include "device/restore.h"
#include "kern/kern.h"
#include "pipe/filter.h"

enum { OPT_SYNC = CLI_LONG, OPT_FENCE };

static const struct cli_opt options[] = {
	{ 'S', "state", "DIR", "the device's state (needed)" },
	{ OPT_FENCE, "fence", NULL,
	    "the state was restored: take what ace-recv --fence says" },
	{ OPT_SYNC, "sync", "WHEN", "full, rename or none (default full)" },
	FILTER_OPTS_IN,
	FILTER_OPTS_OUT,
	{ 0, NULL, NULL, NULL }
};

struct opts {
	struct filter f;
	const char *dir;
	int sync, fence;
};

static int
set(void *arg, int key, const char *val, struct err *e)
{
	static const char *const syncs[] = { "none", "rename", "full", NULL };
	struct opts *o = arg;
	int r;

	switch (key) {
	case 'S':
		o->dir = val;
		return 0;
	case OPT_FENCE:
		o->fence = 1;
		return 0;
	case OPT_SYNC:
		return num_choice(&o->sync, val, syncs, "--sync", e);
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

/* On disk before anything that follows it in the stream goes on. */
static int
on_receipt(struct run *x, struct err *e)
{
	const struct chain_frame *f = reader_frame(x->in);
	struct receipt r;
	int k;

	if ((k = receipt_decode(&r, f->raw, f->raw_len, e)) < 0)
		return k;
	cli_say(x->c, 1, "step %llu: %s%s%s", (unsigned long long)r.step,
	    receipt_verdict_name(r.verdict), r.reason[0] != '\0' ? ": " : "",
	    r.reason);
	if (r.verdict == RECEIPT_EQUIVOCATION || r.verdict == RECEIPT_FENCED)
		return err_set(e, ERR_REFUSED, "step %llu was refused as %s: %s",
		    (unsigned long long)r.step,
		    receipt_verdict_name(r.verdict), r.reason);
	receipts_add(&x->receipts, &r);
	return receipts_save(&x->receipts, &x->state,
	    (enum io_sync)x->o->sync, e);
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

/* Alone with the state: no other program may be at it. */
static int
fence(struct opts *o, const struct cli *c, const char *path, struct err *e)
{
	struct state s = STATE_INIT;
	struct reader *in = NULL;
	uint64_t n;
	int r;

	if ((r = state_open(&s, o->dir, e)) == 0 &&
	    (r = state_lock(&s, e)) == 0 &&
	    (r = filter_in(&o->f, &in, path, e)) == 0 &&
	    (r = restore_take(&s, in, (enum io_sync)o->sync, &n, e)) == 0)
		cli_say(c, 0, "incarnation %llu", (unsigned long long)n);
	reader_free(in);
	state_close(&s);
	return r;
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
	if ((r = state_open(&x.state, o->dir, e)) < 0 ||
	    (r = state_lock_as(&x.state, "ack-lock", e)) < 0 ||
	    (r = receipts_load(&x.receipts, &x.state, e)) < 0)
		goto out;
	/* from now on nothing is forgotten without a receipt */
	if (!x.receipts.managed && (r = receipts_save(&x.receipts, &x.state,
	    (enum io_sync)o->sync, e)) < 0)
		goto out;
	if ((r = filter_in(&o->f, &x.in, path, e)) < 0 ||
	    (r = filter_out(&o->f, &x.out, e)) < 0)
		goto out;
	filter_loose(x.in, x.out, 0);
	while ((r = reader_next(x.in, e)) > 0)
		if ((r = on_event(&x, r, e)) < 0)
			break;
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
	struct opts o = { .sync = IO_SYNC_FULL };
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
