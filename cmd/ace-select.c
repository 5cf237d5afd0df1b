/*
 * ace-select: one codec for every group, as an annotation.  Equation (2) of
 * ACE-Sync (the most important groups up to a share of all importance), or the
 * knapsack: least weighted error within a number of bytes.
 *
 * Two passes where the input can be read again: then the plan stands before
 * the data and its size was measured.  Otherwise one pass: the plan of a frame
 * follows it, at a price of a byte that is corrected as the budget is spent.
 */
#include <stdio.h>
#include <string.h>

#include "base/cli.h"
#include "base/err.h"
#include "state/history.h"
#include "stream/filter.h"
#include "stream/note.h"
#include "stream/plan_text.h"
#include "stream/size.h"
#include "stream/survey.h"
#include "stream/values.h"
#include "sync/fit.h"
#include "sync/once.h"
#include "sync/ratio.h"

#define FILE_NAME "select"	/* in the state directory */
#define LEVELS "ecq,q8,f16,f32"

enum {
	OPT_BITS = CLI_LONG, OPT_POLICY, OPT_LEVELS, OPT_MEMORY, OPT_KEEP,
	OPT_REST, OPT_REST_SHARE, OPT_PASSES, OPT_PLAN, OPT_TEXT, OPT_SECONDS
};
enum { NOTE_MOST = 65536, FRAME_COST = 200 };

static const struct cli_opt options[] = {
	{ 'p', "share", "FRACTION", "keep the groups with this share of all "
	    "importance" },
	{ 'b', "budget", "SIZE", "least error in so many bytes a shard" },
	{ OPT_BITS, "bits", "N", "the same, N bits a value" },
	{ OPT_SECONDS, "seconds", "TIME",
	    "the same, what the link carries in TIME" },
	{ OPT_POLICY, "policy", NULL, "the same, as ace-policy says" },
	{ OPT_LEVELS, "levels", "LIST", "codecs to choose from, by commas" },
	{ OPT_KEEP, "keep", "CODEC", "with -p: of those kept (default f16)" },
	{ OPT_REST, "rest", "CODEC", "with -p: of the others (default none)" },
	{ OPT_REST_SHARE, "rest-share", "FRACTION", "with -p: share up to "
	    "which --rest holds; beyond, none" },
	{ OPT_PLAN, "plan", "FILE", "the plan in FILE, as --text wrote it" },
	{ OPT_TEXT, "text", NULL, "write the plan as text, not the stream" },
	{ OPT_MEMORY, "memory", "SIZE",
	    "hold shards up to SIZE for a second pass (default 256Mi)" },
	{ OPT_PASSES, "one-pass", NULL, "never read the input twice" },
	{ 'S', "state", "DIR", "keep the price of a byte in DIR" },
	FILTER_OPTS_IN,
	FILTER_OPTS_OUT,
	{ 0, NULL, NULL, NULL }
};

enum mode { MODE_NONE, MODE_SHARE, MODE_BYTES, MODE_BITS, MODE_POLICY,
	MODE_SECONDS, MODE_PLAN };

struct opts {
	struct filter f;
	const struct cli *cli;
	const char *dir, *levels;
	enum mode mode;
	double share, rest_share, bits, seconds;
	uint64_t bytes, memory;
	int one_pass, text;
	struct plan_text given;		/* --plan */
	struct codec_plan keep, rest;
	struct codec_plan level[SELECT_LEVELS];
	size_t m, ladder;	/* ladder: where its steps begin, 0 none */
};

static int
set_mode(struct opts *o, enum mode mode, struct err *e)
{
	if (o->mode != MODE_NONE && o->mode != mode)
		return err_set(e, ERR_USAGE,
		    "one of -p, -b, --bits, --seconds, --policy and --plan");
	o->mode = mode;
	return 0;
}

static int
set_levels(struct opts *o, const char *list, struct err *e)
{
	char word[64];
	size_t n;
	int r;

	memset(&o->level[0], 0, sizeof(o->level[0]));
	o->level[0].codec = CODEC_NONE;
	o->ladder = 0;
	for (o->m = 1; *list != '\0'; list += n + (list[n] == ',')) {
		n = strcspn(list, ",");
		if (n == 0 || n >= sizeof(word) ||
		    o->m + FIT_LADDER > SELECT_LEVELS)
			return err_set(e, ERR_USAGE, "--levels: up to %d "
			    "codecs, separated by commas", SELECT_LEVELS -
			    FIT_LADDER);
		memcpy(word, list, n);
		word[n] = '\0';
		if (strcmp(word, "ecq") == 0 && o->ladder == 0) {
			o->ladder = o->m;
			fit_ladder(o->level + o->m);
			o->m += FIT_LADDER;
			continue;
		}
		if ((r = codec_parse(word, &o->level[o->m], e)) < 0)
			return r;
		o->m += o->level[o->m].codec != CODEC_NONE;
	}
	return 0;
}

static int
set(void *arg, int key, const char *val, struct err *e)
{
	struct opts *o = arg;
	int r;

	switch (key) {
	case 'p':
		r = cli_f64(&o->share, val, 0, 1, "-p", e);
		return r < 0 ? r : set_mode(o, MODE_SHARE, e);
	case 'b':
		r = cli_size(&o->bytes, val, "-b", e);
		return r < 0 ? r : set_mode(o, MODE_BYTES, e);
	case OPT_BITS:
		r = cli_f64(&o->bits, val, 0, 64, "--bits", e);
		return r < 0 ? r : set_mode(o, MODE_BITS, e);
	case OPT_SECONDS:
		r = cli_time(&o->seconds, val, "--seconds", e);
		return r < 0 ? r : set_mode(o, MODE_SECONDS, e);
	case OPT_PLAN:
		r = plan_text_read(&o->given, val, e);
		return r < 0 ? r : set_mode(o, MODE_PLAN, e);
	case OPT_TEXT:
		o->text = 1;
		return 0;
	case OPT_REST_SHARE:
		return cli_f64(&o->rest_share, val, 0, 1, "--rest-share", e);
	case OPT_POLICY:
		return set_mode(o, MODE_POLICY, e);
	case OPT_LEVELS:
		return set_levels(o, val, e);
	case OPT_KEEP:
		return codec_parse(val, &o->keep, e);
	case OPT_REST:
		return codec_parse(val, &o->rest, e);
	case OPT_MEMORY:
		return cli_size(&o->memory, val, "--memory", e);
	case OPT_PASSES:
		o->one_pass = 1;
		return 0;
	case 'S':
		o->dir = val;
		return 0;
	default:
		r = filter_set(&o->f, key, val, e);
		return r < 0 ? r : 0;
	}
}

struct run {
	const struct opts *o;
	struct reader *in;
	struct writer *out;		/* NULL: text */
	struct io *text;
	struct state state;
	struct survey survey;
	uint8_t *dense;			/* [groups] */
	size_t dense_cap;
	struct codec_plan *plan;	/* of all groups, or of a frame's */
	size_t plan_cap;
	float *x;
	size_t cap;
	struct buf note;
	uint64_t budget;
	struct size size;		/* of the coded shard so far */
	/* one pass */
	struct once *once;
	uint64_t reserve;		/* for dense groups to come */
	uint32_t *group;		/* of the frame that passed */
	size_t n, group_cap;
	struct buf values;		/* theirs */
	int begun;
};

/* ---- both ways ---- */

/* Bits a second: as the stream says, or else the state. */
static int
link_rate(struct run *x, double *v, struct err *e)
{
	const char *s = text_get(&x->survey.policy, HISTORY_BANDWIDTH);
	int r;

	if (s != NULL)
		return cli_f64(v, s, 0, 1e300, "the policy's bandwidth", e);
	r = x->o->dir == NULL ? 0 : history_number(&x->state, HISTORY_LINK,
	    HISTORY_BANDWIDTH, v, e);
	if (r == 0)
		return err_set(e, ERR_USAGE, "--seconds: no measured link: "
		    "put ace-meter -S DIR in the pipe, or ace-policy "
		    "--bandwidth before");
	return r < 0 ? r : 0;
}

/* The bytes the coded shard may take. */
static int
find_budget(struct run *x, struct err *e)
{
	double total = (double)reader_schema(x->in)->total, v;
	const char *s;
	char where[160];
	int r;

	switch (x->o->mode) {
	case MODE_BYTES:
		x->budget = x->o->bytes;
		return 0;
	case MODE_BITS:
		x->budget = (uint64_t)(x->o->bits * total / 8);
		return 0;
	case MODE_SECONDS:
		if ((r = link_rate(x, &v, e)) < 0)
			return r;
		v = v / 8 * x->o->seconds;
		x->budget = v < 9e18 ? (uint64_t)v : (uint64_t)9e18;
		return 0;
	default:
		break;
	}
	if ((s = text_get(&x->survey.policy, "budget_bytes")) != NULL)
		return cli_u64(&x->budget, s, 0, UINT64_MAX,
		    "the policy's budget_bytes", e);
	if ((s = text_get(&x->survey.policy, "ratio")) == NULL)
		return err_set(e, ERR_USAGE, "no policy in the stream: put "
		    "ace-policy before; %s", reader_where(x->in, where));
	if (cli_f64(&v, s, 1e-6, 1e12, "the policy's ratio", e) < 0)
		return -ERR_USAGE;
	x->budget = ratio_budget(reader_schema(x->in)->total, v);
	return 0;
}

/* ---- out: the stream, or the plan as text ---- */

static int
put_plan(struct run *x, uint32_t first, const struct codec_plan *p, uint32_t n,
    struct err *e)
{
	uint32_t i;
	int r = 0;

	x->note.n = 0;
	if (x->out != NULL) {
		if ((r = note_put_plan(&x->note, first, p, n, e)) < 0)
			return r;
		return writer_note(x->out, FRAME_PLAN, x->note.p, x->note.n,
		    e);
	}
	for (i = 0; i < n && r == 0; i++)
		r = plan_text_put(&x->note, reader_schema(x->in), first + i,
		    &p[i], e);
	return r < 0 ? r : io_write(x->text, x->note.p, x->note.n, e);
}

static int
put_shard(struct run *x, struct err *e)
{
	int r;

	if (x->out != NULL)
		return filter_shard(x->in, x->out, NULL, e);
	x->note.n = 0;
	r = plan_text_head(&x->note, reader_shard(x->in), e);
	return r < 0 ? r : io_write(x->text, x->note.p, x->note.n, e);
}

/* DATA, or an annotation, which goes on, but for an older plan. */
static int
put_frame(struct run *x, int event, struct err *e)
{
	if (x->out == NULL)
		return 0;
	if (event == READER_DATA)
		return writer_pass(x->out, x->in, e);
	if (event != READER_NOTE || reader_frame(x->in)->type == FRAME_PLAN)
		return 0;
	return filter_pass(x->in, x->out, 0, e);
}

static int
put_send(struct run *x, struct err *e)
{
	if (x->out == NULL)
		return io_flush(x->text, e);
	return writer_send(x->out, &reader_end_of_shard(x->in)->sums, e);
}

static int
not_finite(struct run *x, uint32_t g, size_t bad, struct err *e)
{
	const struct schema *sc = reader_schema(x->in);
	struct schema_span span;
	char where[160];

	schema_span(sc, g, &span);
	return err_set(e, ERR_REFUSED, "value %llu of tensor '%s' is not "
	    "finite, %s", (unsigned long long)(span.offset + bad - 1),
	    sc->t[span.tensor].name, reader_where(x->in, where));
}

/* A record of a codec whose parameter only coding tells is taken to differ
 * from the one before. */
static void
add_size(struct size *z, uint32_t g, const struct codec_plan *p, size_t len)
{
	int open = p->codec == CODEC_LOSSLESS || p->codec > CODEC_ECQ;

	size_record(z, g, open ? (uint8_t)~z->param : p->param, len);
}

/* ---- two passes ---- */

static int
make_stat(struct run *x, uint32_t g, size_t n, struct err *e)
{
	size_t bad = survey_values(&x->survey, g, x->x, n);

	return bad != 0 ? not_finite(x, g, bad, e) : 0;
}

/* One pass over the shard's groups: for fit, or (f NULL) for what the stream
 * does not say of them. */
static int
again(void *arg, int (*want)(const struct fit *, uint32_t),
    int (*each)(struct fit *, uint32_t, const float *, size_t, struct err *),
    struct fit *f, struct err *e)
{
	struct run *x = arg;
	const struct record *rec;
	size_t n, i, len;
	int r, k;

	if ((r = reader_rewind(x->in, e)) < 0)
		return r;
	while ((k = reader_next(x->in, e)) > 0 && k != READER_SEND) {
		if (k != READER_DATA)
			continue;
		rec = reader_records(x->in, &n);
		for (i = 0; i < n; i++) {
			if (f != NULL ? !want(f, rec[i].group) :
			    (x->survey.have[rec[i].group] & SURVEY_STAT) != 0)
				continue;
			if ((r = values_decode(x->in, &rec[i], x->x, x->cap,
			    &len, e)) < 0 || (r = f != NULL ?
			    each(f, rec[i].group, x->x, len, e) :
			    make_stat(x, rec[i].group, len, e)) < 0)
				return r;
		}
	}
	return k < 0 ? k : 0;
}

static void
group_ctx(void *arg, uint32_t g, struct codec_ctx *ctx)
{
	const struct run *x = arg;

	values_ctx(reader_schema(x->in), reader_shard(x->in), g, ctx);
}

/* The coded shard's bytes, as chosen. */
static uint64_t
coded_size(void *arg, const struct fit *f)
{
	const struct run *x = arg;
	struct size z = x->size;
	struct codec_plan p;
	uint32_t g;

	for (g = 0; g < f->n; g++)
		if ((p = fit_choice(f, g)).codec != CODEC_NONE)
			add_size(&z, g, &p, fit_body(f, g));
	return size_send(&z) + x->survey.notes;
}

/* "shard 'edge1/42'": for what is said at its end. */
static const char *
name(const struct run *x, char buf[160])
{
	const struct shard *s = reader_shard(x->in);

	(void)snprintf(buf, 160, "shard '%.100s/%llu'", shard_device(s),
	    (unsigned long long)s->step);
	return buf;
}

static void
report(struct run *x, const struct fit *f)
{
	double energy = 0;
	char who[160];
	uint32_t g;

	(void)name(x, who);
	for (g = 0; g < x->survey.n; g++)
		energy += (double)x->survey.score[g] *
		    (double)x->survey.stat[g].sumsq;
	if (f->relaxed && f->sent > 0)
		cli_say(x->o->cli, 0, "%s: too few bytes to keep norms and "
		    "biases dense", who);
	if (f->sent == 0 && energy > 0) {
		cli_say(x->o->cli, 0, "%s: %llu bytes are too few for any "
		    "group: nothing is sent, all is kept", who,
		    (unsigned long long)x->budget);
		return;
	}
	cli_say(x->o->cli, 1, "%s: %zu of %lu groups, %llu of %llu bytes, "
	    "D %.6g of %.6g, bound %.6g, gap %.4g %%%s, lambda %.6g", who,
	    f->sent, (unsigned long)x->survey.n,
	    (unsigned long long)f->bytes, (unsigned long long)x->budget,
	    f->res.dist, energy, f->res.bound, 100 * select_gap(&f->res),
	    f->res.exact ? " (proved best)" : "", f->res.lambda);
}

static int
plan_budget(struct run *x, struct err *e)
{
	struct fit f;
	int r;

	memset(&f, 0, sizeof(f));
	if ((r = find_budget(x, e)) < 0 ||
	    (r = size_shard(&x->size, reader_shard(x->in), e)) < 0)
		return r;
	f.n = x->survey.n;
	f.stat = x->survey.stat;
	f.weight = x->survey.score;
	f.dense = x->dense;
	f.budget = x->budget;
	f.arg = x;
	f.pass = again;
	f.ctx = group_ctx;
	f.size = coded_size;
	r = fit_plan(&f, x->o->level, x->o->m, x->o->ladder, e);
	if (r == 0) {
		memcpy(x->plan, f.plan, f.n * sizeof(*x->plan));
		report(x, &f);
	}
	fit_release(&f);
	return r;
}

/* Equation (2). */
static int
plan_share(struct run *x, struct err *e)
{
	uint32_t g, n = reader_schema(x->in)->ngroups;
	uint8_t *chosen = alloc_get(n, 1, e), *some = alloc_get(n, 1, e);
	static const struct codec_plan none = { CODEC_NONE, 0, 0 };
	char where[160];
	size_t kept = 0;
	int r = -ERR_SYS;

	if (chosen != NULL && some != NULL && (r = select_share(x->survey.score,
	    n, x->o->share, chosen, e)) == 0 && (r = select_share(
	    x->survey.score, n, x->o->rest_share, some, e)) == 0) {
		for (g = 0; g < n; g++) {
			x->plan[g] = chosen[g] ? x->o->keep : some[g] ?
			    x->o->rest : none;
			kept += chosen[g];
		}
		cli_say(x->o->cli, 1, "%s: %zu of %lu groups hold %g of the "
		    "importance", name(x, where), kept,
		    (unsigned long)n, x->o->share);
	}
	alloc_free(chosen);
	alloc_free(some);
	return r;
}

/* The shard begins, all of its plan before its data. */
static int
put_planned(struct run *x, struct err *e)
{
	uint32_t g, n, all = reader_schema(x->in)->ngroups;
	int r = put_shard(x, e);

	for (g = 0; g < all && r == 0; g += n) {
		n = all - g < NOTE_MOST ? all - g : NOTE_MOST;
		r = put_plan(x, g, x->plan + g, n, e);
	}
	return r;
}

/* The shard's frames for the last time, behind their plan. */
static int
replay(struct run *x, struct err *e)
{
	int r, k;

	if ((r = put_planned(x, e)) < 0)
		return r;
	if ((r = reader_rewind(x->in, e)) < 0)
		return r;
	while ((k = reader_next(x->in, e)) > 0 && k != READER_SEND)
		if ((r = put_frame(x, k, e)) < 0)
			return r;
	reader_unmark(x->in);
	return k < 0 ? k : put_send(x, e);
}

static int
two_passes(struct run *x, struct err *e)
{
	int r;

	if ((r = reader_mark(x->in, (size_t)x->o->memory, e)) < 0)
		return r;
	while ((r = reader_next(x->in, e)) > 0 && r != READER_SEND)
		if ((r = survey_event(&x->survey, x->in, r, e)) < 0)
			return r;
	if (r < 0 || (survey_lacks(&x->survey) &&
	    (r = again(x, NULL, NULL, NULL, e)) < 0))
		return r;
	r = x->o->mode == MODE_SHARE ? plan_share(x, e) : plan_budget(x, e);
	return r < 0 ? r : replay(x, e);
}

/* The plan of --plan: nothing needs to be known. */
static int
as_given(struct run *x, struct err *e)
{
	static const struct codec_plan none = { CODEC_NONE, 0, 0 };
	const struct plan_text *t = &x->o->given;
	uint32_t g, all = reader_schema(x->in)->ngroups;
	int r, k;

	if (t->n > all)
		return err_set(e, ERR_DATA, "mismatch: the plan has %zu "
		    "groups, the shard %lu", t->n, (unsigned long)all);
	for (g = 0; g < all; g++)
		x->plan[g] = g < t->n ? t->p[g] : none;
	if ((r = put_planned(x, e)) < 0)
		return r;
	while ((k = reader_next(x->in, e)) > 0 && k != READER_SEND)
		if ((r = put_frame(x, k, e)) < 0)
			return r;
	return k < 0 ? k : put_send(x, e);
}

/* ---- one pass ---- */

/* At the first data: what comes before it may still say the budget. */
static int
one_begin(struct run *x, struct err *e)
{
	const struct schema *sc = reader_schema(x->in);
	struct schema_span span;
	struct size z;
	uint64_t fixed;
	uint32_t g;
	int r;

	if (x->begun)
		return 0;
	x->begun = 1;
	if ((r = find_budget(x, e)) < 0 ||
	    (r = size_shard(&x->size, reader_shard(x->in), e)) < 0)
		return r;
	z = x->size;
	fixed = size_send(&z) + x->survey.notes + FRAME_COST;
	for (x->reserve = g = 0; g < sc->ngroups; g++) {
		schema_span(sc, g, &span);
		if (x->dense[g])
			x->reserve += once_least(x->once, span.n);
	}
	if (x->reserve + fixed > x->budget) {
		x->reserve = 0;			/* too few: none is dense */
		memset(x->dense, 0, sc->ngroups);
	}
	once_begin(x->once, x->budget > fixed ? (double)(x->budget - fixed) :
	    0, (double)sc->total);
	return 0;
}

struct one {
	struct run *x;
	uint32_t group;
};

/* 1 when the shard keeps its budget with this body added. */
static int
one_fits(void *arg, const struct codec_plan *p, size_t body)
{
	const struct one *o = arg;
	struct size z = o->x->size;

	add_size(&z, o->group, p, body);
	return size_send(&z) + o->x->survey.notes + o->x->reserve <=
	    o->x->budget;
}

static int
one_group(struct run *x, uint32_t g, const float *v, size_t n,
    struct codec_plan *plan, struct err *e)
{
	struct one o = { x, g };
	struct once_group in;
	size_t bad;
	int r;

	if ((x->survey.have[g] & SURVEY_STAT) == 0 &&
	    (bad = survey_values(&x->survey, g, v, n)) != 0)
		return not_finite(x, g, bad, e);
	if (x->dense[g])
		x->reserve -= once_least(x->once, n);
	in.stat = &x->survey.stat[g];
	in.weight = (double)x->survey.score[g];
	in.dense = x->dense[g];
	values_ctx(reader_schema(x->in), reader_shard(x->in), g, &in.ctx);
	in.x = v;
	in.n = n;
	in.fits = one_fits;
	in.arg = &o;
	if ((r = once_group(x->once, &in, e)) < 0)
		return r;
	*plan = x->once->plan;
	if (plan->codec != CODEC_NONE)
		add_size(&x->size, g, plan, x->once->body);
	return 0;
}

/* The frame that passed, now that its annotations are known. */
static int
one_flush(struct run *x, struct err *e)
{
	const float *v = (const float *)(void *)x->values.p;
	struct schema_span span;
	size_t i, from = 0;
	int r;

	for (i = 0; i < x->n; i++) {
		schema_span(reader_schema(x->in), x->group[i], &span);
		if ((r = one_group(x, x->group[i], v, span.n, &x->plan[i],
		    e)) < 0)
			return r;
		v += span.n;
		if (i + 1 < x->n && x->group[i + 1] == x->group[i] + 1)
			continue;
		if ((r = put_plan(x, x->group[from], x->plan + from,
		    (uint32_t)(i + 1 - from), e)) < 0)
			return r;
		from = i + 1;
	}
	x->n = 0;
	x->values.n = 0;
	return 0;
}

static int
one_data(struct run *x, struct err *e)
{
	const struct record *rec;
	size_t n, i, len;
	int r;

	if ((r = one_begin(x, e)) < 0 || (r = one_flush(x, e)) < 0 ||
	    (r = put_frame(x, READER_DATA, e)) < 0)
		return r;
	rec = reader_records(x->in, &n);
	if ((r = alloc_grow(&x->group, &x->group_cap, n, sizeof(*x->group),
	    e)) < 0 || (r = alloc_grow(&x->plan, &x->plan_cap, n,
	    sizeof(*x->plan), e)) < 0)
		return r;
	for (i = 0; i < n; i++) {
		if ((r = buf_room(&x->values, 4 * x->cap, e)) < 0 ||
		    (r = values_decode(x->in, &rec[i], (float *)(void *)
		    (x->values.p + x->values.n), x->cap, &len, e)) < 0)
			return r;
		x->values.n += 4 * len;
		x->group[x->n++] = rec[i].group;
	}
	return 0;
}

static int
one_pass(struct run *x, struct err *e)
{
	char who[160];
	int r, k;

	if (x->o->mode == MODE_SHARE)
		return err_set(e, ERR_REFUSED, "a share of the importance "
		    "needs the whole shard: it does not fit --memory");
	x->begun = 0;
	x->n = 0;
	x->values.n = 0;
	if ((r = put_shard(x, e)) < 0)
		return r;
	while ((k = reader_next(x->in, e)) > 0 && k != READER_SEND)
		if ((k == READER_DATA && (r = one_data(x, e)) < 0) ||
		    (k == READER_NOTE && (r = put_frame(x, k, e)) < 0) ||
		    (r = survey_event(&x->survey, x->in, k, e)) < 0)
			return r;
	if ((r = k) < 0 || (r = one_begin(x, e)) < 0 ||
	    (r = one_flush(x, e)) < 0)
		return r;
	price_end(&x->once->price);
	cli_say(x->o->cli, 1, "%s: one pass, %llu of %llu bytes, D %.6g of "
	    "%.6g", name(x, who),
	    (unsigned long long)size_send(&x->size) + x->survey.notes,
	    (unsigned long long)x->budget, x->once->dist, x->once->energy);
	return put_send(x, e);
}

/* ---- the price in the state ---- */

static int
load_price(struct run *x, struct err *e)
{
	struct history h = HISTORY_INIT;
	const float *row;
	int r = history_load(&h, &x->state, FILE_NAME, e);

	/* of another model or other levels it is only a worse beginning */
	row = history_row(&h, "price", PRICE_NUMBERS);
	if (r > 0 && row != NULL)
		r = price_put(&x->once->price, row, e);
	history_release(&h);
	return r < 0 ? r : 0;
}

static int
save_price(struct run *x, struct err *e)
{
	struct history h = HISTORY_INIT;
	float *row;
	int r = -ERR_SYS;

	if (x->o->dir == NULL)
		return 0;
	if ((row = alloc_get(PRICE_NUMBERS, sizeof(*row), e)) != NULL) {
		price_get(&x->once->price, row);
		r = history_put(&h, "price", row, PRICE_NUMBERS, e);
	}
	if (r == 0)
		r = history_save(&h, &x->state, FILE_NAME,
		    reader_shard(x->in), x->o->f.tool, e);
	alloc_free(row);
	history_release(&h);
	return r;
}

/* ---- all shards ---- */

/* Dense, with the annotations of ace-score, it is no longer than this. */
static int
fits_memory(const struct run *x)
{
	uint64_t total = reader_schema(x->in)->total;

	return total <= x->o->memory / 5 &&
	    4 * total + total / 16 + (1 << 20) <= x->o->memory;
}

static int
select_shard(struct run *x, struct err *e)
{
	const struct schema *sc = reader_schema(x->in);
	size_t t;
	int r;

	if ((r = alloc_grow(&x->x, &x->cap, sc->group_size, sizeof(*x->x),
	    e)) < 0 || (r = alloc_grow(&x->dense, &x->dense_cap, sc->ngroups,
	    1, e)) < 0 || (r = survey_begin(&x->survey, sc->ngroups, e)) < 0)
		return r;
	for (t = 0; t < sc->n; t++)
		if (sc->t[t].ngroups != 0)
			memset(x->dense + sc->t[t].group, (sc->t[t].roles &
			    SCHEMA_ROLE_DENSE) != 0, sc->t[t].ngroups);
	if (x->o->mode != MODE_PLAN &&
	    (x->o->one_pass || (!reader_can_seek(x->in) && !fits_memory(x)))) {
		r = one_pass(x, e);
		return r < 0 ? r : save_price(x, e);
	}
	if ((r = alloc_grow(&x->plan, &x->plan_cap, sc->ngroups,
	    sizeof(*x->plan), e)) < 0)
		return r;
	return x->o->mode == MODE_PLAN ? as_given(x, e) : two_passes(x, e);
}

static int
begin(struct run *x, struct opts *o, const char *path, struct err *e)
{
	int r;

	if (o->mode == MODE_NONE)
		return err_set(e, ERR_USAGE,
		    "how much to send: -p, -b, --bits, --seconds, --policy "
		    "or --plan");
	if ((r = once_new(&x->once, o->level, o->m, o->ladder, e)) < 0 ||
	    (o->dir != NULL && ((r = state_open(&x->state, o->dir, e)) < 0 ||
	    (r = load_price(x, e)) < 0)) ||
	    (r = filter_in(&o->f, &x->in, path, e)) < 0)
		return r;
	return o->text ? io_create(&x->text, o->f.output, 1, e) :
	    filter_out(&o->f, &x->out, e);
}

static int
run(struct opts *o, const char *path, struct err *e)
{
	struct run x = { .o = o, .state = STATE_INIT,
	    .survey = SURVEY_INIT };
	int r;

	if ((r = begin(&x, o, path, e)) < 0)
		goto out;
	while ((r = reader_next(x.in, e)) > 0)
		if (r == READER_SHARD && (r = select_shard(&x, e)) < 0)
			break;
	if (!o->text)
		r = filter_end(x.out, r, e);
	else if (r >= 0)
		r = io_commit(x.text, IO_SYNC_FULL, e);
out:
	survey_release(&x.survey);
	once_free(x.once);
	alloc_free(x.group);
	buf_release(&x.values);
	alloc_free(x.plan);
	alloc_free(x.dense);
	alloc_free(x.x);
	buf_release(&x.note);
	io_free(x.text);
	writer_free(x.out);
	reader_free(x.in);
	state_close(&x.state);
	return r;
}

int
main(int argc, char **argv)
{
	struct cli c = {
		.prog = "ace-select",
		.usage = "-p FRACTION | -b SIZE | --bits N | --seconds TIME | "
		    "--policy | --plan FILE\n    [--levels LIST] [--text] "
		    "[FILE]",
		.about = "Chooses a codec for every group of a shard stream.",
		.opt = options
	};
	struct opts o = { .cli = &c, .memory = (uint64_t)256 << 20,
	    .keep = { CODEC_F16, 0, 0 }, .rest = { CODEC_NONE, 0, 0 },
	    .rest_share = 1 };
	struct err e = ERR_INIT;
	const char *path;
	int r;

	filter_init(&o.f, c.prog, argc, argv);
	if ((r = set_levels(&o, LEVELS, &e)) == 0)
		r = cli_parse(&c, argc, argv, set, &o, &e);
	if (r == 0 && (r = filter_one(&c, argc, argv, &path, &e)) == 0)
		r = run(&o, path, &e);
	plan_text_release(&o.given);
	filter_release(&o.f);
	return cli_exit(&c, r, &e);
}
