/*
 * ace-compress: codes every group as the plan says.  With a state it keeps
 * what was lost (error feedback) and the coded shard itself, in one commit,
 * before the first byte of the shard leaves:
 *
 *   acc = e + g        C = code(acc)        e' = acc - dec(C)
 */
#include <stdio.h>
#include <string.h>

#include "base/cli.h"
#include "base/err.h"
#include "base/num.h"
#include "device/feedback.h"
#include "device/pending.h"
#include "format/plan.h"
#include "kern/kern.h"
#include "pipe/filter.h"

enum {
	OPT_SYNC = CLI_LONG, OPT_GAP, OPT_NONFINITE, OPT_FEEDBACK, OPT_GAMMA,
	OPT_MOMENTUM, OPT_DECAY, OPT_WINDOW, OPT_WAIT, OPT_RESEND, OPT_ROLES
};
enum { HOLD_MAX = 32 << 20 };	/* bytes of values waiting for their plan */

static const struct cli_opt options[] = {
	{ 'S', "state", "DIR", "keep the residual and the coded shard in DIR" },
	{ 'c', "codec", "CODEC", "code all groups so, whatever the plan says" },
	{ OPT_ROLES, "roles", "HOW",
	    "keep (default) norms and biases dense, or ignore that" },
	{ OPT_FEEDBACK, "feedback", "HOW",
	    "ef (default), momentum, ef21 or cache" },
	{ OPT_GAMMA, "gamma", "G", "times the residual (default 1)" },
	{ OPT_MOMENTUM, "momentum", "M",
	    "of --feedback momentum (default 0.9)" },
	{ OPT_DECAY, "decay", "R",
	    "of the history, --feedback cache (default 0.9)" },
	{ OPT_WINDOW, "window", "N",
	    "wait for receipts, at most N shards without (1 to 8)" },
	{ OPT_WAIT, "wait", "TIME", "for a receipt (default 60s)" },
	{ OPT_RESEND, "resend", NULL,
	    "send what has no receipt once more, read nothing" },
	{ OPT_SYNC, "sync", "WHEN", "full, rename or none (default full)" },
	{ OPT_GAP, "allow-gap", NULL, "steps may be missing" },
	{ OPT_NONFINITE, "nonfinite", "HOW", "refuse (default) or zero" },
	FILTER_OPTS_IN,
	FILTER_OPTS_OUT,
	{ 0, NULL, NULL, NULL }
};

struct opts {
	struct filter f;
	const char *dir;
	int have_codec, no_roles, zero, resend;
	struct codec_plan codec;
	struct feedback_opts fb;
};

static int
set(void *arg, int key, const char *val, struct err *e)
{
	static const char *const syncs[] = { "none", "rename", "full", NULL };
	static const char *const how[] = { "refuse", "zero", NULL };
	static const char *const roles[] = { "keep", "ignore", NULL };
	struct opts *o = arg;
	uint64_t n;
	int r, k;

	switch (key) {
	case 'S':
		o->dir = val;
		return 0;
	case 'c':
		o->have_codec = 1;
		return codec_parse(val, &o->codec, e);
	case OPT_ROLES:
		return num_choice(&o->no_roles, val, roles, "--roles", e);
	case OPT_SYNC:
		r = num_choice(&k, val, syncs, "--sync", e);
		if (r == 0)
			o->fb.sync = (enum io_sync)k;
		return r;
	case OPT_FEEDBACK:
		r = num_choice(&k, val, feedback_names, "--feedback", e);
		if (r == 0)
			o->fb.kind = (enum feedback_kind)k;
		return r;
	case OPT_GAMMA:
		return num_f64(&o->fb.gamma, val, 0, 1, "--gamma", e);
	case OPT_MOMENTUM:
		return num_f64(&o->fb.momentum, val, 0, 1, "--momentum", e);
	case OPT_DECAY:
		return num_f64(&o->fb.decay, val, 0, 1, "--decay", e);
	case OPT_WINDOW:
		if ((r = num_u64(&n, val, 1, 8, "--window", e)) == 0)
			o->fb.window = (unsigned)n;
		return r;
	case OPT_WAIT:
		return num_time(&o->fb.wait, val, "--wait", e);
	case OPT_RESEND:
		o->resend = 1;
		if (o->fb.window == 0)	/* there is no receipt: believe it */
			o->fb.window = PENDING_MAX;
		return 0;
	case OPT_GAP:
		o->fb.gap = 1;
		return 0;
	case OPT_NONFINITE:
		return num_choice(&o->zero, val, how, "--nonfinite", e);
	default:
		r = filter_set(&o->f, key, val, e);
		return r < 0 ? r : 0;
	}
}

struct run {
	const struct opts *o;
	const struct cli *c;
	const struct kern *kern;
	struct reader *in;
	struct writer *out;
	struct feedback *fb;		/* NULL: nothing is kept */
	int resumed;
	struct plan plan;
	struct buf hold;		/* f32 values without a plan yet */
	struct held {
		uint32_t group;
		size_t at, n;
	} *held;
	size_t nheld, held_cap;
	uint32_t done;			/* groups before this one are coded */
	float *acc, *dec;
	size_t cap;
	struct buf body;
	uint64_t sent, none;
};

/* ---- one group ---- */

static int
check_finite(struct run *x, uint32_t g, float *v, size_t n, struct err *e)
{
	const struct schema *sc = reader_schema(x->in);
	struct schema_span span;
	char where[160];
	const float *res = NULL;
	uint64_t dropped = 0;
	size_t i = x->kern->first_nonfinite(v, n);
	int r;

	if (i == n)
		return 0;
	schema_span(sc, g, &span);
	if (!x->o->zero)
		return err_set(e, ERR_REFUSED, "non-finite value in tensor "
		    "'%s' at index %llu, %s", sc->t[span.tensor].name,
		    (unsigned long long)(span.offset + i),
		    reader_where(x->in, where));
	/* what ace-expand added to it is not lost with it */
	if (x->fb != NULL && (r = feedback_added(x->fb, g, &res, e)) < 0)
		return r;
	for (; i < n; i += 1 + x->kern->first_nonfinite(v + i + 1, n - i - 1)) {
		v[i] = res != NULL ? res[i] : 0;
		dropped++;
	}
	if (x->fb != NULL)
		feedback_dropped(x->fb, dropped);
	else
		writer_dropped(x->out, dropped);
	return 0;
}

/* acc is coded as pl says: 1 it goes on the wire, in c; 0 it does not. */
static int
code_group(struct run *x, uint32_t g, const struct codec_plan *pl, size_t n,
    struct feedback_code *c, struct err *e)
{
	struct codec_ctx ctx;
	struct codec_last last;
	size_t i;
	int r = 0;

	/* all zero: absent says the same */
	for (i = 0; i < n && x->acc[i] == 0; i++)
		continue;
	if (i == n || pl->codec == CODEC_NONE) {
		x->none++;
		return 0;
	}
	values_ctx(reader_schema(x->in), reader_shard(x->in), g, &ctx);
	x->body.n = 0;
	if (codec_after(pl) && x->fb != NULL &&
	    (r = feedback_last(x->fb, g, &last, e)) < 0)
		return r;
	if ((r = codec_encode_after(pl, &ctx, r > 0 ? &last : NULL, x->acc, n,
	    &x->body, &c->param, e)) < 0 || (r = codec_decode(pl->codec, c->param, &ctx, x->body.p,
	    x->body.n, x->dec, n, e)) < 0)
		return r;
	c->codec = pl->codec;
	c->body = &x->body;
	c->dec = x->dec;
	x->sent++;
	return 1;
}

/* With -c: norms and biases are few and matter, so that they stay dense. */
static struct codec_plan
one_codec(const struct run *x, const struct schema_span *span)
{
	const struct schema *sc = reader_schema(x->in);
	int dense = (sc->t[span->tensor].roles & SCHEMA_ROLE_DENSE) != 0;

	if (dense && !x->o->no_roles && codec_sparse(&x->o->codec))
		return (struct codec_plan){ CODEC_F16, 0, 0 };
	return x->o->codec;
}

/* v f32[n] or NULL, when the group is not in the input: then only what is kept
 * of it is coded. */
static int
do_group(struct run *x, uint32_t g, float *v, struct err *e)
{
	struct codec_plan pl = { CODEC_NONE, 0, 0 };
	struct feedback_code c;
	struct schema_span span;
	int r;

	schema_span(reader_schema(x->in), g, &span);
	if (v != NULL && (r = check_finite(x, g, v, span.n, e)) < 0)
		return r;
	if (x->fb != NULL) {
		r = feedback_target(x->fb, g, v, span.n, x->acc, e);
		if (r != 0)
			return r < 0 ? r : 0;
	} else if (v != NULL) {
		memcpy(x->acc, v, span.n * sizeof(*x->acc));
	} else {
		return 0;
	}
	if (x->o->have_codec)
		pl = one_codec(x, &span);
	else
		(void)plan_get(&x->plan, g, &pl);
	if ((r = code_group(x, g, &pl, span.n, &c, e)) < 0)
		return r;
	if (x->fb != NULL)
		return feedback_settle(x->fb, g, x->acc, span.n,
		    r != 0 ? &c : NULL, e);
	return r == 0 ? 0 : writer_record(x->out, g, c.codec, c.param,
	    c.body->p, c.body->n, c.dec, span.n, e);
}

/* Group g comes now; those between the last one and it are not in the input. */
static int
do_upto(struct run *x, uint32_t g, float *v, struct err *e)
{
	int r = 0;

	while (x->done < g && r == 0)
		r = do_group(x, x->done++, NULL, e);
	if (r == 0 && v != NULL)
		r = do_group(x, x->done++, v, e);
	return r;
}

/* ---- values wait for their plan ---- */

static int
no_plan(struct run *x, uint32_t g, struct err *e)
{
	char where[160];

	if (!x->plan.any)
		return err_set(e, ERR_USAGE, "no plan in the stream: put "
		    "ace-select before, or give -c CODEC");
	return err_set(e, ERR_DATA, "mismatch: no plan for group %lu, %s",
	    (unsigned long)g, reader_where(x->in, where));
}

/* The first k are done. */
static void
drop_held(struct run *x, size_t k)
{
	size_t from = k < x->nheld ? x->held[k].at : x->hold.n, i;

	memmove(x->held, x->held + k, (x->nheld - k) * sizeof(*x->held));
	x->nheld -= k;
	x->hold.n -= from;
	memmove(x->hold.p, x->hold.p + from, x->hold.n);
	for (i = 0; i < x->nheld; i++)
		x->held[i].at -= from;
}

static int
flush_held(struct run *x, int last, struct err *e)
{
	size_t i;
	int r;

	for (i = 0; i < x->nheld; i++) {
		const struct held *h = &x->held[i];

		if (!x->o->have_codec && !plan_has(&x->plan, h->group)) {
			if (last)
				return no_plan(x, h->group, e);
			break;
		}
		if ((r = do_upto(x, h->group, (float *)(void *)
		    (x->hold.p + h->at), e)) < 0)
			return r;
	}
	if (i != 0)
		drop_held(x, i);
	return 0;
}

static int
hold_data(struct run *x, struct err *e)
{
	const struct record *rec;
	struct held *h;
	size_t i, n;
	int r;

	rec = reader_records(x->in, &n);
	for (i = 0; i < n; i++) {
		if ((r = buf_room(&x->hold, x->cap * 4, e)) < 0 ||
		    (r = alloc_grow(&x->held, &x->held_cap, x->nheld + 1,
		    sizeof(*h), e)) < 0)
			return r;
		h = &x->held[x->nheld];
		h->group = rec[i].group;
		h->at = x->hold.n;
		if ((r = values_decode(x->in, &rec[i], (float *)(void *)
		    (x->hold.p + h->at), x->cap, &h->n, e)) < 0)
			return r;
		x->hold.n += 4 * h->n;
		x->nheld++;
		if (x->o->have_codec && (r = flush_held(x, 0, e)) < 0)
			return r;
	}
	if ((r = flush_held(x, 0, e)) < 0 ||
	    (x->fb == NULL && (r = filter_cut(x->in, x->out, e)) < 0))
		return r;
	return x->hold.n > HOLD_MAX ? no_plan(x, x->held[0].group, e) : 0;
}

/* ---- one shard ---- */

static int
room(struct run *x, struct err *e)
{
	size_t n = reader_schema(x->in)->group_size;

	if (n <= x->cap)
		return 0;
	alloc_free(x->acc);
	alloc_free(x->dec);
	x->cap = 0;
	x->acc = alloc_get(n, sizeof(*x->acc), e);
	x->dec = alloc_get(n, sizeof(*x->dec), e);
	if (x->acc == NULL || x->dec == NULL)
		return -ERR_SYS;
	x->cap = n;
	return 0;
}

/* 1: this step was coded before, the outcome only waits to be sent. */
static int
begin_shard(struct run *x, struct err *e)
{
	int r;

	plan_clear(&x->plan);
	x->hold.n = x->nheld = x->done = 0;
	x->sent = x->none = 0;
	if ((reader_shard(x->in)->flags & SHARD_PREDICTED) != 0)
		return err_set(e, ERR_DATA, "mismatch: the shard of '%s' is a "
		    "difference to a history (ace-expand --cache)",
		    shard_device(reader_shard(x->in)));
	if ((r = room(x, e)) < 0)
		return r;
	if (x->fb == NULL)
		return filter_shard(x->in, x->out, NULL, e);
	if ((r = writer_history(x->out, reader_provenance(x->in), e)) < 0)
		return r;
	if (!x->resumed && (r = feedback_resume(x->fb,
	    reader_shard(x->in)->step, x->out, e)) < 0)
		return r;
	x->resumed = 1;
	return feedback_begin(x->fb, x->in, e);
}

/* An annotation: a plan is obeyed, what stays true goes on. */
static int
on_note(struct run *x, struct err *e)
{
	const struct chain_frame *f = reader_frame(x->in);
	int r;

	if (f->type == FRAME_PLAN) {
		if (x->o->have_codec)
			return 0;
		if ((r = plan_add(&x->plan, f->raw, f->raw_len,
		    reader_schema(x->in)->ngroups, e)) < 0)
			return r;
		return flush_held(x, 0, e);
	}
	if (!frame_safe_to_copy(f->type))
		return 0;
	return x->fb != NULL ? feedback_note(x->fb, x->in, e) :
	    writer_pass(x->out, x->in, e);
}

static int
end_shard(struct run *x, struct err *e)
{
	const struct shard *sh = reader_shard(x->in);
	int r;

	if ((r = flush_held(x, 1, e)) < 0 ||
	    (r = do_upto(x, reader_schema(x->in)->ngroups, NULL, e)) < 0)
		return r;
	cli_say(x->c, 1, "%s/%llu: %llu groups coded, %llu not sent",
	    shard_device(sh), (unsigned long long)sh->step,
	    (unsigned long long)x->sent, (unsigned long long)x->none);
	if (x->fb == NULL) {
		writer_dropped(x->out,
		    reader_end_of_shard(x->in)->sums.dropped);
		return writer_send(x->out, NULL, e);
	}
	feedback_dropped(x->fb, reader_end_of_shard(x->in)->sums.dropped);
	r = feedback_commit(x->fb, reader_shard(x->in)->step, e);
	return r < 0 ? r : feedback_send(x->fb, reader_shard(x->in)->step,
	    x->out, e);
}

static int
compress_shard(struct run *x, struct err *e)
{
	int again = begin_shard(x, e), r;

	if (again < 0)
		return again;
	while ((r = reader_next(x->in, e)) > 0) {
		if (r == READER_SEND && again)
			break;
		if (r == READER_SEND)
			return end_shard(x, e);
		if (again)
			continue;
		if ((r = r == READER_DATA ? hold_data(x, e) :
		    on_note(x, e)) < 0)
			return r;
	}
	return r < 0 ? r : feedback_send(x->fb, reader_shard(x->in)->step,
	    x->out, e);
}

static int
run(struct opts *o, const struct cli *c, const char *path, struct err *e)
{
	struct run x = { .o = o, .c = c, .plan = PLAN_INIT };
	int r;

	if (o->resend && o->dir == NULL)
		return err_set(e, ERR_USAGE, "whose shards? (-S DIR)");
	if ((x.kern = kern_get(e)) == NULL)
		return -ERR_USAGE;
	if ((o->dir != NULL &&
	    (r = feedback_open(&x.fb, o->dir, &o->fb, e)) < 0) ||
	    (!o->resend && (r = filter_in(&o->f, &x.in, path, e)) < 0) ||
	    (r = filter_out(&o->f, &x.out, e)) < 0)
		goto out;
	if (o->resend) {
		r = feedback_resume(x.fb, UINT64_MAX, x.out, e);
		r = filter_end(x.out, r, e);
		goto out;
	}
	while ((r = reader_next(x.in, e)) > 0)
		if (r == READER_SHARD && (r = compress_shard(&x, e)) < 0)
			break;
	/* a trainer that is done already: what is pending all the same */
	if (r == 0 && x.fb != NULL && !x.resumed)
		r = feedback_resume(x.fb, UINT64_MAX, x.out, e);
	r = filter_end(x.out, r, e);
out:
	feedback_free(x.fb);
	plan_release(&x.plan);
	buf_release(&x.hold);
	buf_release(&x.body);
	alloc_free(x.held);
	alloc_free(x.acc);
	alloc_free(x.dec);
	writer_free(x.out);
	reader_free(x.in);
	return r;
}

int
main(int argc, char **argv)
{
	struct cli c = {
		.prog = "ace-compress",
		.usage = "[-S DIR [--feedback HOW] [--sync WHEN]] [-c CODEC] "
		    "[FILE]",
		.about = "Codes a shard stream group by group as planned; with "
		    "-S keeps what was lost for the next step.",
		.opt = options,
		.loops = kern_name
	};
	struct opts o = { .fb = { .gamma = 1, .momentum = 0.9, .decay = 0.9,
	    .wait = 60, .sync = IO_SYNC_FULL } };
	struct err e = ERR_INIT;
	const char *path;
	int r;

	filter_init(&o.f, c.prog, argc, argv);
	r = cli_parse(&c, argc, argv, set, &o, &e);
	o.fb.piped = o.f.output == NULL;
	if (r == 0 && (r = filter_one(&c, argc, argv, &path, &e)) == 0)
		r = run(&o, &c, path, &e);
	filter_release(&o.f);
	return cli_exit(&c, r, &e);
}
