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
#include "kern/kern.h"
#include "state/residual.h"
#include "stream/filter.h"
#include "stream/plan.h"

enum { OPT_SYNC = CLI_LONG, OPT_GAP, OPT_NONFINITE };
enum { HOLD_MAX = 32 << 20 };	/* bytes of values waiting for their plan */

static const struct cli_opt options[] = {
	{ 'S', "state", "DIR", "keep the residual and the coded shard in DIR" },
	{ 'c', "codec", "CODEC", "code all groups so, whatever the plan says" },
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
	int have_codec, sync, gap, zero;
	struct codec_plan codec;
};

static int
set(void *arg, int key, const char *val, struct err *e)
{
	static const char *const syncs[] = { "none", "rename", "full", NULL };
	static const char *const how[] = { "refuse", "zero", NULL };
	struct opts *o = arg;
	int r;

	switch (key) {
	case 'S':
		o->dir = val;
		return 0;
	case 'c':
		o->have_codec = 1;
		return codec_parse(val, &o->codec, e);
	case OPT_SYNC:
		return cli_choice(&o->sync, val, syncs, "--sync", e);
	case OPT_GAP:
		o->gap = 1;
		return 0;
	case OPT_NONFINITE:
		return cli_choice(&o->zero, val, how, "--nonfinite", e);
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
	struct state state;
	struct residual res;		/* before this shard */
	struct residual_new *next;	/* after it */
	int compensated;		/* e was added upstream */
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
	uint64_t dropped = 0;
	size_t i = x->kern->first_nonfinite(v, n);

	if (i == n)
		return 0;
	schema_span(sc, g, &span);
	if (!x->o->zero)
		return err_set(e, ERR_REFUSED, "non-finite value in tensor "
		    "'%s' at index %llu, %s", sc->t[span.tensor].name,
		    (unsigned long long)(span.offset + i),
		    reader_where(x->in, where));
	for (; i < n; i += 1 + x->kern->first_nonfinite(v + i + 1, n - i - 1)) {
		v[i] = 0;
		dropped++;
	}
	if (x->next != NULL)
		residual_dropped(x->next, dropped);
	else
		writer_dropped(x->out, dropped);
	return 0;
}

/* acc is coded as pl says; acc becomes what is left. */
static int
code_group(struct run *x, uint32_t g, const struct codec_plan *pl, size_t n,
    struct err *e)
{
	struct codec_ctx ctx;
	uint8_t param;
	int r;

	if (pl->codec == CODEC_NONE) {
		x->none++;
		return 0;
	}
	values_ctx(reader_schema(x->in), reader_shard(x->in), g, &ctx);
	x->body.n = 0;
	if ((r = codec_encode(pl, &ctx, x->acc, n, &x->body, &param, e)) < 0 ||
	    (r = codec_decode(pl->codec, param, &ctx, x->body.p, x->body.n,
	    x->dec, n, e)) < 0)
		return r;
	x->sent++;
	if (x->next != NULL)
		r = residual_record(x->next, g, pl->codec, param, &x->body,
		    x->dec, n, e);
	else
		r = writer_record(x->out, g, pl->codec, param, x->body.p,
		    x->body.n, x->dec, n, e);
	x->kern->sub(x->acc, x->acc, x->dec, n);
	return r;
}

/* v f32[n] or NULL, when the group is not in the input: then only what the
 * residual holds of it is coded. */
static int
do_group(struct run *x, uint32_t g, const float *v, struct err *e)
{
	static const struct codec_plan none = { CODEC_NONE, 0, 0 };
	struct codec_plan pl = none;
	struct schema_span span;
	const float *res = NULL;
	size_t i;
	int r;

	schema_span(reader_schema(x->in), g, &span);
	if (x->next != NULL && !x->compensated &&
	    (r = residual_group(&x->res, g, &res, e)) < 0)
		return r;
	if (v == NULL && res == NULL)
		return 0;
	if (v == NULL)
		memset(x->acc, 0, span.n * sizeof(*x->acc));
	else
		memcpy(x->acc, v, span.n * sizeof(*x->acc));
	if ((r = check_finite(x, g, x->acc, span.n, e)) < 0)
		return r;
	if (res != NULL)
		x->kern->add_scaled(x->acc, x->acc, 1, res, span.n);
	if (x->o->have_codec)
		pl = x->o->codec;
	else
		(void)plan_get(&x->plan, g, &pl);
	/* all zero: absent says the same */
	for (i = 0; i < span.n && x->acc[i] == 0; i++)
		continue;
	if (i == span.n)
		return 0;
	if ((r = code_group(x, g, &pl, span.n, e)) < 0)
		return r;
	return x->next != NULL ? residual_put(x->next, g, x->acc, span.n, e) : 0;
}

/* Group g comes now; those between the last one and it are not in the input. */
static int
do_upto(struct run *x, uint32_t g, const float *v, struct err *e)
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

static int
flush_held(struct run *x, int last, struct err *e)
{
	struct codec_plan pl;
	size_t i;
	int r;

	for (i = 0; i < x->nheld; i++) {
		const struct held *h = &x->held[i];

		if (!x->o->have_codec && !plan_get(&x->plan, h->group, &pl)) {
			if (last)
				return no_plan(x, h->group, e);
			break;
		}
		if ((r = do_upto(x, h->group, (const float *)(void *)
		    (x->hold.p + h->at), e)) < 0)
			return r;
	}
	memmove(x->held, x->held + i, (x->nheld - i) * sizeof(*x->held));
	x->nheld -= i;
	if (x->nheld == 0)
		x->hold.n = 0;
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
	if ((r = flush_held(x, 0, e)) < 0)
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

/* 1: this step was coded before, and the outcome is waiting: only send it. */
static int
check_state(struct run *x, struct err *e)
{
	const struct shard *sh = reader_shard(x->in);
	const char *stamp = text_get(&sh->kv, SHARD_KEY_STAMP);
	const struct residual *q = &x->res;
	int r;

	if ((r = residual_check(q, sh, reader_schema(x->in), e)) < 0)
		return r;
	if (q->r != NULL && sh->step == q->step)
		return 1;
	if (q->r != NULL && sh->step < q->step)
		return err_set(e, ERR_REFUSED, "step %llu of '%s' comes after "
		    "step %llu was absorbed", (unsigned long long)sh->step,
		    shard_device(sh), (unsigned long long)q->step);
	if (q->r != NULL && sh->step != q->step + 1 && !x->o->gap)
		return err_set(e, ERR_REFUSED, "steps missing between %llu "
		    "and %llu of '%s'", (unsigned long long)q->step,
		    (unsigned long long)sh->step, shard_device(sh));
	x->compensated = stamp != NULL;
	if (stamp != NULL && strcmp(stamp, q->stamp) != 0)
		return err_set(e, ERR_REFUSED, "step %llu of '%s' was "
		    "compensated with another residual than the state's",
		    (unsigned long long)sh->step, shard_device(sh));
	return 0;
}

/* The stamp has done its work; it would only cost bytes on the wire. */
static int
coded_shard(struct run *x, struct shard *s, struct err *e)
{
	int r = shard_copy(s, reader_shard(x->in), e);

	return r < 0 ? r : text_set(&s->kv, SHARD_KEY_STAMP, NULL, e);
}

static int
begin_shard(struct run *x, struct err *e)
{
	struct shard s;
	int r;

	shard_init(&s);
	plan_clear(&x->plan);
	x->hold.n = x->nheld = x->done = 0;
	x->sent = x->none = 0;
	x->compensated = 0;
	if ((r = room(x, e)) < 0 || (r = coded_shard(x, &s, e)) < 0 ||
	    (r = writer_history(x->out, reader_provenance(x->in), e)) < 0)
		goto out;
	if (x->o->dir == NULL) {
		r = filter_shard(x->in, x->out, &s, e);
		goto out;
	}
	if ((r = residual_open(&x->res, &x->state, e)) < 0 ||
	    (r = check_state(x, e)) != 0)
		goto out;
	r = residual_begin(&x->next, &x->state, &s, reader_schema(x->in),
	    "ace-compress", e);
out:
	shard_release(&s);
	return r;
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
	return x->next != NULL ? residual_note(x->next, x->in, e) :
	    writer_pass(x->out, x->in, e);
}

static int
resend(struct run *x, struct err *e)
{
	struct residual q;
	int r;

	if ((r = residual_open(&q, &x->state, e)) == 0 &&
	    (r = residual_pending(&q, e)) > 0)
		r = residual_send(&q, x->out, e);
	else if (r == 0)
		r = err_set(e, ERR_REFUSED, "step %llu was absorbed and is "
		    "not pending", (unsigned long long)q.step);
	residual_close(&q);
	return r;
}

static int
end_shard(struct run *x, struct err *e)
{
	char where[160];
	int r;

	if ((r = flush_held(x, 1, e)) < 0 ||
	    (r = do_upto(x, reader_schema(x->in)->ngroups, NULL, e)) < 0)
		return r;
	cli_say(x->c, 1, "%s: %llu groups coded, %llu not sent",
	    reader_where(x->in, where), (unsigned long long)x->sent,
	    (unsigned long long)x->none);
	if (x->next == NULL) {
		writer_dropped(x->out,
		    reader_end_of_shard(x->in)->sums.dropped);
		return writer_send(x->out, NULL, e);
	}
	residual_dropped(x->next, reader_end_of_shard(x->in)->sums.dropped);
	r = residual_commit(x->next, (enum io_sync)x->o->sync, e);
	residual_free(x->next);
	x->next = NULL;
	residual_close(&x->res);
	return r < 0 ? r : resend(x, e);
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
	residual_close(&x->res);
	return r < 0 ? r : resend(x, e);
}

static int
run(struct opts *o, const struct cli *c, const char *path, struct err *e)
{
	struct run x = { .o = o, .c = c, .state = STATE_INIT,
	    .plan = PLAN_INIT };
	int r;

	if ((x.kern = kern_get(e)) == NULL)
		return -ERR_USAGE;
	if ((o->dir != NULL && ((r = state_open(&x.state, o->dir, e)) < 0 ||
	    (r = state_lock(&x.state, e)) < 0)) ||
	    (r = filter_in(&o->f, &x.in, path, e)) < 0 ||
	    (r = filter_out(&o->f, &x.out, e)) < 0)
		goto out;
	while ((r = reader_next(x.in, e)) > 0)
		if (r == READER_SHARD && (r = compress_shard(&x, e)) < 0)
			break;
	r = filter_end(x.out, r, e);
out:
	residual_free(x.next);
	residual_close(&x.res);
	plan_release(&x.plan);
	buf_release(&x.hold);
	buf_release(&x.body);
	alloc_free(x.held);
	alloc_free(x.acc);
	alloc_free(x.dec);
	writer_free(x.out);
	reader_free(x.in);
	state_close(&x.state);
	return r;
}

int
main(int argc, char **argv)
{
	struct cli c = {
		.prog = "ace-compress",
		.usage = "[-S DIR [--sync WHEN]] [-c CODEC] [FILE]",
		.about = "Codes a shard stream group by group as planned; with "
		    "-S keeps what was lost for the next step.",
		.opt = options
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
