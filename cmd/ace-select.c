/*
 * ace-select: one codec for every group, as an annotation.  Equation (2) of
 * ACE-Sync (the most important groups up to a share of all importance), or the
 * knapsack: least weighted error within a number of bytes.
 *
 * Two passes where the input can be read again: then the plan stands before
 * the data and its size was measured.  Otherwise one pass: the plan of a frame
 * follows it, at a price of a byte that is corrected as the budget is spent.
 */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/cli.h"
#include "base/err.h"
#include "codec/measure.h"
#include "state/history.h"
#include "stream/filter.h"
#include "stream/note.h"
#include "stream/size.h"
#include "stream/survey.h"
#include "stream/values.h"
#include "sync/allot.h"
#include "sync/elem.h"
#include "sync/price.h"
#include "sync/ratio.h"

#define FILE_NAME "select"	/* in the state directory */
#define LEVELS "ecq,q8,f16,f32"

enum {
	OPT_BITS = CLI_LONG, OPT_POLICY, OPT_LEVELS, OPT_MEMORY, OPT_KEEP,
	OPT_REST, OPT_PASSES
};
enum { ROUNDS = 6, NOTE_MOST = 65536, FRAME_COST = 200, REFINE = 3 };
#define LN2 0.69314718055994530942
enum { LADDER = 19 };		/* steps that "ecq" without a step stands for */

static const struct cli_opt options[] = {
	{ 'p', "share", "FRACTION", "keep the groups with this share of all "
	    "importance" },
	{ 'b', "budget", "SIZE", "least error in so many bytes a shard" },
	{ OPT_BITS, "bits", "N", "the same, N bits a value" },
	{ OPT_POLICY, "policy", NULL, "the same, as ace-policy says" },
	{ OPT_LEVELS, "levels", "LIST", "codecs to choose from, by commas" },
	{ OPT_KEEP, "keep", "CODEC", "with -p: of those kept (default f16)" },
	{ OPT_REST, "rest", "CODEC", "with -p: of the others (default none)" },
	{ OPT_MEMORY, "memory", "SIZE",
	    "hold shards up to SIZE for a second pass (default 256Mi)" },
	{ OPT_PASSES, "one-pass", NULL, "never read the input twice" },
	{ 'S', "state", "DIR", "keep the price of a byte in DIR" },
	FILTER_OPTS_IN,
	FILTER_OPTS_OUT,
	{ 0, NULL, NULL, NULL }
};

enum mode { MODE_NONE, MODE_SHARE, MODE_BYTES, MODE_BITS, MODE_POLICY };

struct opts {
	struct filter f;
	const struct cli *cli;
	const char *dir, *levels;
	enum mode mode;
	double share, bits;
	uint64_t bytes, memory;
	int one_pass;
	struct codec_plan keep, rest;
	struct codec_plan level[SELECT_LEVELS];
	size_t m, ladder;	/* ladder: where its steps begin, 0 none */
};

static int
set_mode(struct opts *o, enum mode mode, struct err *e)
{
	if (o->mode != MODE_NONE && o->mode != mode)
		return err_set(e, ERR_USAGE,
		    "one of -p, -b, --bits and --policy");
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
		    o->m + LADDER > SELECT_LEVELS)
			return err_set(e, ERR_USAGE, "--levels: up to %d "
			    "codecs, separated by commas", SELECT_LEVELS -
			    LADDER);
		memcpy(word, list, n);
		word[n] = '\0';
		if (strcmp(word, "ecq") == 0 && o->ladder == 0) {
			o->ladder = o->m;
			o->m += LADDER;
			continue;
		}
		if ((r = codec_parse(word, &o->level[o->m], e)) < 0)
			return r;
		o->m += o->level[o->m].codec != CODEC_NONE;
	}
	for (n = o->ladder; n != 0 && n < o->ladder + LADDER; n++)
		o->level[n] = (struct codec_plan){ CODEC_ECQ, 0,
		    (float)elem_exp(((double)n - (double)o->ladder -
		    LADDER / 2) * LN2 / 4) };
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
	struct writer *out;
	struct state state;
	struct survey survey;
	struct allot *allot;		/* two passes: all groups */
	struct measure measure;
	struct codec_plan *plan;	/* of all groups, or of a frame's */
	size_t plan_cap;
	float *x;
	size_t cap;
	struct buf note;
	uint64_t budget;
	uint32_t polish;		/* the group being polished */
	struct size empty;		/* of a shard without groups */
	struct one {			/* one pass */
		struct price *price;
		struct allot *row;
		struct codec_plan level[SELECT_LEVELS];
		struct size size;
		uint64_t reserve;	/* for dense groups to come */
		uint32_t *group;	/* of the frame that passed */
		size_t n, cap, group_cap;
		struct buf values;
		int begun;
		double dist, energy;
	} one;
};

/* ---- both ways ---- */

/* The bytes the coded shard may take. */
static int
find_budget(struct run *x, struct err *e)
{
	double total = (double)reader_schema(x->in)->total, v;
	const char *s;
	char where[160];

	switch (x->o->mode) {
	case MODE_BYTES:
		x->budget = x->o->bytes;
		return 0;
	case MODE_BITS:
		x->budget = (uint64_t)(x->o->bits * total / 8);
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

static int
put_plan(struct run *x, uint32_t first, const struct codec_plan *p, uint32_t n,
    struct err *e)
{
	int r;

	x->note.n = 0;
	if ((r = note_put_plan(&x->note, first, p, n, e)) < 0)
		return r;
	return writer_note(x->out, FRAME_PLAN, x->note.p, x->note.n, e);
}

/* An annotation goes on, but for an older plan. */
static int
pass_note(struct run *x, struct err *e)
{
	if (reader_frame(x->in)->type == FRAME_PLAN)
		return 0;
	return filter_pass(x->in, x->out, 0, e);
}

static int
is_dense(const struct schema *sc, uint32_t g)
{
	struct schema_span span;

	schema_span(sc, g, &span);
	return (sc->t[span.tensor].roles & SCHEMA_ROLE_DENSE) != 0;
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

/* Group g, measured at its level l. */
static int
measure(struct run *x, struct allot *a, size_t row, size_t l, uint32_t g,
    const float *v, size_t n, struct err *e)
{
	struct codec_plan p = allot_plan(a, row, l);
	struct codec_ctx ctx;
	double error;
	size_t len;
	int r;

	values_ctx(reader_schema(x->in), reader_shard(x->in), g, &ctx);
	r = measure_group(&x->measure, &p, &ctx, v, n, &len, &error, e);
	if (r == 0)
		allot_measured(a, row, l, len, error);
	return r;
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

/* The shard's groups once more, those that want it decoded and handed to f. */
static int
again(struct run *x, int (*want)(const struct run *, uint32_t),
    int (*f)(struct run *, uint32_t, const float *, size_t, struct err *),
    struct err *e)
{
	const struct record *rec;
	size_t n, i, len;
	int r;

	if ((r = reader_rewind(x->in, e)) < 0)
		return r;
	while ((r = reader_next(x->in, e)) > 0 && r != READER_SEND) {
		if (r != READER_DATA)
			continue;
		rec = reader_records(x->in, &n);
		for (i = 0; i < n; i++)
			if (want(x, rec[i].group) &&
			    ((r = values_decode(x->in, &rec[i], x->x, x->cap,
			    &len, e)) < 0 ||
			    (r = f(x, rec[i].group, x->x, len, e)) < 0))
				return r;
	}
	return r < 0 ? r : 0;
}

static int
want_stat(const struct run *x, uint32_t g)
{
	return (x->survey.have[g] & SURVEY_STAT) == 0;
}

static int
do_stat(struct run *x, uint32_t g, const float *v, size_t n, struct err *e)
{
	size_t bad = survey_values(&x->survey, g, v, n);

	return bad != 0 ? not_finite(x, g, bad, e) : 0;
}

static int
want_level(const struct run *x, uint32_t g)
{
	return allot_wants(x->allot, g) >= 0;
}

static int
do_level(struct run *x, uint32_t g, const float *v, size_t n, struct err *e)
{
	int l, r = 0;

	while (r == 0 && (l = allot_wants(x->allot, g)) >= 0)
		r = measure(x, x->allot, g, (size_t)l, g, v, n, e);
	return r;
}

static void
fill_rows(struct run *x, double step, int dense)
{
	const struct schema *sc = reader_schema(x->in);
	double w;
	uint32_t g;

	for (g = 0; g < sc->ngroups; g++) {
		w = (double)x->survey.score[g];
		allot_group(x->allot, g, &x->survey.stat[g], w,
		    w > 0 ? step / sqrt(w) : step, dense && is_dense(sc, g));
	}
}

/* The coded shard's bytes, as chosen. */
static int
coded_size(struct run *x, const struct size *empty, uint64_t *bytes)
{
	struct size z = *empty;
	size_t g;

	for (g = 0; g < x->allot->n; g++)
		if (x->allot->choice[g] != 0)
			add_size(&z, (uint32_t)g,
			    &x->o->level[x->allot->choice[g]],
			    allot_body(x->allot, g));
	*bytes = size_send(&z) + x->survey.notes;
	return *bytes <= x->budget;
}

struct fit {
	struct size empty;
	uint8_t *best;		/* the best choice that keeps the budget */
	int found, relaxed;
	double step;		/* of ECQ for a weight of 1, about */
	uint64_t bytes;
	struct select_result res;
};

/* Solve, measure what was chosen, solve again, until the whole is known. */
static int
fit_round(struct run *x, struct fit *f, int64_t *room, int measured,
    struct err *e)
{
	struct allot *a = x->allot;
	int r = allot_solve(a, *room, SELECT_FAST, e);

	if (r == 1 && !f->relaxed) {
		f->relaxed = 1;
		fill_rows(x, f->step, 0);
		return allot_solve(a, *room, SELECT_FAST, e);
	}
	if (r != 0 || a->unknown == 0)
		return r;
	if (measured >= REFINE) {
		allot_settle(a);
		return allot_solve(a, *room, SELECT_FAST, e);
	}
	if ((r = again(x, want_level, do_level, e)) == 0)
		allot_learn(a);
	return r < 0 ? r : 2;
}

static void
fit_keep(struct run *x, struct fit *f, uint64_t bytes)
{
	if (f->found && x->allot->res.dist >= f->res.dist)
		return;
	f->found = 1;
	f->res = x->allot->res;
	f->bytes = bytes;
	memcpy(f->best, x->allot->choice, x->allot->n);
}

/* The exact search, when all that may be chosen is known and it is small. */
static int
fit_best(struct run *x, struct fit *f, int64_t room, struct err *e)
{
	uint64_t bytes;
	int r;

	if (f->res.exact)
		return 0;
	allot_settle(x->allot);
	r = allot_solve(x->allot, room, SELECT_AUTO, e);
	if (r == 0 && coded_size(x, &f->empty, &bytes))
		fit_keep(x, f, bytes);
	return r < 0 ? r : 0;
}

static int
fit(struct run *x, struct fit *f, struct err *e)
{
	int64_t room, step;
	uint64_t bytes;
	int round, measured = 0, r;

	memset(x->allot->choice, 0, x->allot->n);
	(void)coded_size(x, &f->empty, &bytes);
	room = (int64_t)x->budget - (int64_t)bytes;
	f->step = x->o->ladder == 0 ? 1 : allot_step(x->survey.stat,
	    x->survey.score, x->survey.n, room > 0 ? (double)room : 0);
	fill_rows(x, f->step, 1);
	if ((r = again(x, want_level, do_level, e)) < 0)
		return r;
	allot_learn(x->allot);
	for (round = 0; round < 40 && room > 0; round++) {
		if ((r = fit_round(x, f, &room, measured, e)) < 0)
			return r;
		measured += r == 2;
		if (r == 2)
			continue;
		if (r == 1)
			break;
		step = coded_size(x, &f->empty, &bytes) ?
		    (int64_t)(x->budget - bytes) :
		    -(int64_t)(bytes - x->budget);
		if (step >= 0)
			fit_keep(x, f, bytes);
		/* a budget that is met, or that took all there is to take */
		if (step >= 0 && (round >= ROUNDS || step < 64 ||
		    x->allot->res.lambda == 0))
			break;
		room += step;
	}
	return f->found ? fit_best(x, f, room, e) : 0;
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

/* ---- the last bytes ---- */

static int
want_polish(const struct run *x, uint32_t g)
{
	return g == x->polish;
}

/* The finest knob of this one group at which the shard keeps its budget. */
static int
do_polish(struct run *x, uint32_t g, const float *v, size_t n, struct err *e)
{
	struct codec_plan p = x->plan[g];
	struct select_level *l = &x->allot->level[g * x->allot->m +
	    x->allot->choice[g]], good = *l;
	double fits = (double)p.arg, over, error;
	struct codec_ctx ctx;
	uint64_t bytes;
	size_t len;
	int i, r;

	over = p.codec == CODEC_ECQ ? fits / 8 : fits < 0.125 ? fits * 8 : 1;
	values_ctx(reader_schema(x->in), reader_shard(x->in), g, &ctx);
	for (i = 0; i < 10; i++) {
		p.arg = (float)sqrt(fits * over);
		if ((r = measure_group(&x->measure, &p, &ctx, v, n, &len,
		    &error, e)) < 0)
			return r;
		l->rate = allot_cost(len);
		l->dist = x->allot->weight[g] * error;
		if (!coded_size(x, &x->empty, &bytes) ||
		    l->dist > good.dist) {
			over = (double)p.arg;
			continue;
		}
		fits = (double)p.arg;
		x->plan[g].arg = p.arg;
		good = *l;
		if (x->budget - bytes < x->budget / 1000)
			break;
	}
	*l = good;
	return 0;
}

/* What the knapsack's steps left over is given to the groups that take most:
 * their knob is free. */
static int
polish(struct run *x, struct fit *f, struct err *e)
{
	struct allot *a = x->allot;
	int64_t most, last = INT64_MAX;
	size_t g, k;
	int r, tries;

	x->empty = f->empty;
	memcpy(a->choice, f->best, a->n);
	for (tries = 0; tries < 4 && f->found; tries++) {
		(void)coded_size(x, &f->empty, &f->bytes);
		if (x->budget - f->bytes <= x->budget / 500 + 64)
			break;
		for (most = -1, k = g = 0; g < a->n; g++) {
			int64_t rate = a->level[g * a->m + a->choice[g]].rate;

			if ((x->plan[g].codec == CODEC_ECQ ||
			    x->plan[g].codec == CODEC_TOPK) && rate > most &&
			    rate < last) {
				most = rate;
				k = g;
			}
		}
		if (most < 0)
			break;
		last = most;
		x->polish = (uint32_t)k;
		f->res.dist -= a->level[k * a->m + a->choice[k]].dist;
		if ((r = again(x, want_polish, do_polish, e)) < 0)
			return r;
		f->res.dist += a->level[k * a->m + a->choice[k]].dist;
		f->res.exact = 0;
	}
	if (f->found)
		(void)coded_size(x, &f->empty, &f->bytes);
	return 0;
}

static void
report(struct run *x, const struct fit *f)
{
	double energy = 0;
	char where[160];
	uint32_t g, sent = 0;

	(void)name(x, where);
	for (g = 0; g < x->survey.n; g++) {
		energy += (double)x->survey.score[g] *
		    (double)x->survey.stat[g].sumsq;
		sent += f->best[g] != 0;
	}
	if (f->relaxed && sent > 0)
		cli_say(x->o->cli, 0, "%s: too few bytes to keep norms and "
		    "biases dense", where);
	if (sent == 0 && energy > 0) {
		cli_say(x->o->cli, 0, "%s: %llu bytes are too few for any "
		    "group: nothing is sent, all is kept", where,
		    (unsigned long long)x->budget);
		return;
	}
	cli_say(x->o->cli, 1, "%s: %lu of %lu groups, %llu of %llu bytes, "
	    "D %.6g of %.6g, bound %.6g, gap %.4g %%%s, lambda %.6g", where,
	    (unsigned long)sent, (unsigned long)x->survey.n,
	    (unsigned long long)f->bytes, (unsigned long long)x->budget,
	    f->res.dist, energy, f->res.bound, 100 * select_gap(&f->res),
	    f->res.exact ? " (proved best)" : "", f->res.lambda);
}

static int
plan_budget(struct run *x, struct err *e)
{
	const struct schema *sc = reader_schema(x->in);
	struct fit f;
	uint32_t g;
	int r;

	memset(&f, 0, sizeof(f));
	if ((r = find_budget(x, e)) < 0 ||
	    (r = size_shard(&f.empty, reader_shard(x->in), e)) < 0)
		return r;
	if (x->allot != NULL && x->allot->n == sc->ngroups) {
		allot_reset(x->allot);
	} else {
		allot_free(x->allot);
		x->allot = NULL;
		if ((r = allot_new(&x->allot, x->o->level, x->o->m,
		    sc->ngroups, e)) < 0)
			return r;
		x->allot->scaled = x->o->ladder;
		x->allot->scaled_end = x->o->ladder != 0 ?
		    x->o->ladder + LADDER : 0;
	}
	if ((f.best = alloc_get(sc->ngroups, 1, e)) == NULL)
		return -ERR_SYS;
	if ((r = fit(x, &f, e)) == 0) {
		for (g = 0; g < sc->ngroups; g++)
			x->plan[g] = allot_plan(x->allot, g, f.best[g]);
		if ((r = polish(x, &f, e)) == 0)
			report(x, &f);
	}
	alloc_free(f.best);
	return r;
}

/* Equation (2). */
static int
plan_share(struct run *x, struct err *e)
{
	uint32_t g, n = reader_schema(x->in)->ngroups;
	uint8_t *chosen = alloc_get(n, 1, e);
	char where[160];
	size_t kept = 0;
	int r;

	if (chosen == NULL)
		return -ERR_SYS;
	if ((r = select_share(x->survey.score, n, x->o->share, chosen,
	    e)) == 0) {
		for (g = 0; g < n; g++) {
			x->plan[g] = chosen[g] ? x->o->keep : x->o->rest;
			kept += chosen[g];
		}
		cli_say(x->o->cli, 1, "%s: %zu of %lu groups hold %g of the "
		    "importance", name(x, where), kept,
		    (unsigned long)n, x->o->share);
	}
	alloc_free(chosen);
	return r;
}

/* The shard's frames for the last time, behind their plan. */
static int
replay(struct run *x, struct err *e)
{
	uint32_t g, n, all = reader_schema(x->in)->ngroups;
	int r, k;

	if ((r = filter_shard(x->in, x->out, NULL, e)) < 0)
		return r;
	for (g = 0; g < all; g += n) {
		n = all - g < NOTE_MOST ? all - g : NOTE_MOST;
		if ((r = put_plan(x, g, x->plan + g, n, e)) < 0)
			return r;
	}
	if ((r = reader_rewind(x->in, e)) < 0)
		return r;
	while ((k = reader_next(x->in, e)) > 0 && k != READER_SEND)
		if ((k == READER_DATA &&
		    (r = writer_pass(x->out, x->in, e)) < 0) ||
		    (k == READER_NOTE && (r = pass_note(x, e)) < 0))
			return r;
	reader_unmark(x->in);
	return k < 0 ? k : writer_send(x->out,
	    &reader_end_of_shard(x->in)->sums, e);
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
	    (r = again(x, want_stat, do_stat, e)) < 0))
		return r;
	r = x->o->mode == MODE_SHARE ? plan_share(x, e) : plan_budget(x, e);
	return r < 0 ? r : replay(x, e);
}

/* ---- one pass ---- */

/* The least a dense group can be coded in, exactly known beforehand. */
static uint64_t
dense_least(const struct run *x, uint32_t g)
{
	const struct schema *sc = reader_schema(x->in);
	struct schema_span span;
	uint64_t least = UINT64_MAX, v;
	size_t l;

	if (!is_dense(sc, g))
		return 0;
	schema_span(sc, g, &span);
	for (l = 1; l < x->o->m; l++) {
		if (!allot_dense(&x->o->level[l]))
			continue;
		v = (uint64_t)allot_cost(codec_bound(&x->o->level[l], span.n));
		least = v < least ? v : least;
	}
	return least != UINT64_MAX ? least : 0;
}

/* At the first data: what comes before it may still say the budget. */
static int
one_begin(struct run *x, struct err *e)
{
	struct one *o = &x->one;
	struct size z;
	uint64_t fixed;
	uint32_t g;
	int r;

	if (o->begun)
		return 0;
	o->begun = 1;
	if ((r = find_budget(x, e)) < 0 ||
	    (r = size_shard(&o->size, reader_shard(x->in), e)) < 0)
		return r;
	z = o->size;
	fixed = size_send(&z) + x->survey.notes + FRAME_COST;
	for (g = 0; g < x->survey.n; g++)
		o->reserve += dense_least(x, g);
	if (o->reserve + fixed > x->budget)
		o->reserve = UINT64_MAX;	/* too few: none is dense */
	price_begin(o->price, x->budget > fixed ?
	    (double)(x->budget - fixed) : 0,
	    (double)reader_schema(x->in)->total);
	return 0;
}

/* 1 when the shard keeps its budget with the group at level l added. */
static int
one_fits(const struct run *x, uint32_t g, size_t l)
{
	const struct one *o = &x->one;
	struct size z = o->size;
	uint64_t reserve = o->reserve != UINT64_MAX ? o->reserve : 0;

	if (l == 0)
		return 1;
	add_size(&z, g, &x->o->level[l], allot_body(o->row, 0));
	return size_send(&z) + x->survey.notes + reserve <= x->budget;
}

/* The best level at this price that fits, its rate measured. */
static int
one_choose(struct run *x, uint32_t g, const float *v, size_t n, double price,
    double *told, struct err *e)
{
	struct allot *a = x->one.row;
	size_t l;
	int r;

	for (;;) {
		l = select_price(a->level, a->m, price);
		if (l == a->m)
			l = 0;
		a->choice[0] = (uint8_t)l;
		if (*told < 0)
			*told = (double)a->level[l].rate;
		if (a->known[l] != ALLOT_EXACT &&
		    (r = measure(x, a, 0, l, g, v, n, e)) < 0)
			return r;
		if (l == select_price(a->level, a->m, price) &&
		    one_fits(x, g, l))
			return 0;
		if (l == 0)
			return 0;
		if (!one_fits(x, g, l)) {
			a->known[l] = ALLOT_BARRED;
			a->level[l].rate = -1;
		}
	}
}

/* From a 1024th of the root mean square to where all becomes zero: what the
 * group would take at any price. */
static void
one_ladder(struct run *x, const struct stat_group *s)
{
	double rms = s->n > 0 ? sqrt((double)s->sumsq / (double)s->n) : 0;
	double lo = rms / 1024, hi = 1.3 * (double)s->max_abs;
	size_t i;

	for (i = 0; x->o->ladder != 0 && i < LADDER; i++)
		x->one.level[x->o->ladder + i].arg = lo > 0 ?
		    (float)(lo * elem_exp(elem_log(hi / lo) * (double)i /
		    (LADDER - 1))) : 1;
}

/* Around the step that is best at this price where the rate is high:
 * error = step^2 / 12, and a bit for every halving of the step, make
 * price = 16 ln 2 / 12 * weight * step^2 a byte. */
static void
one_near(struct run *x, double price, double weight)
{
	double step = sqrt(price / (weight * 16 * LN2 / 12));
	size_t i;

	for (i = 0; i < LADDER; i++)
		x->one.level[x->o->ladder + i].arg = (float)(step *
		    (double)x->o->level[x->o->ladder + i].arg);
}

static int
one_group(struct run *x, uint32_t g, const float *v, size_t n,
    struct codec_plan *plan, struct err *e)
{
	struct one *o = &x->one;
	struct allot *a = o->row;
	double weight = (double)x->survey.score[g], energy, price, told = -1;
	size_t bad, l;
	int r = 0, dense;

	if ((x->survey.have[g] & SURVEY_STAT) == 0 &&
	    (bad = survey_values(&x->survey, g, v, n)) != 0)
		return not_finite(x, g, bad, e);
	if (o->reserve != UINT64_MAX)
		o->reserve -= dense_least(x, g);
	allot_reset(a);
	one_ladder(x, &x->survey.stat[g]);
	dense = o->reserve != UINT64_MAX && is_dense(reader_schema(x->in), g);
	allot_group(a, 0, &x->survey.stat[g], weight, 1, dense);
	for (l = 0; l < a->m && r == 0; l++)
		if (a->known[l] == ALLOT_BLIND)
			r = measure(x, a, 0, l, g, v, n, e);
	energy = weight * (double)x->survey.stat[g].sumsq;
	price_look(o->price, a->level, a->m);
	price = price_of(o->price, (double)n);
	if (r == 0 && x->o->ladder != 0 && price > 0 && isfinite(price) &&
	    weight > 0) {
		one_near(x, price, weight);
		allot_group(a, 0, &x->survey.stat[g], weight, 1, dense);
	}
	if (r < 0 || (r = one_choose(x, g, v, n, price, &told, e)) < 0)
		return r;
	l = a->choice[0];
	if (l != 0)
		add_size(&o->size, g, &x->o->level[l], allot_body(a, 0));
	price_paid(o->price, (double)n, told, (double)a->level[l].rate,
	    energy);
	o->dist += a->level[l].dist;
	o->energy += energy;
	*plan = allot_plan(a, 0, l);
	return 0;
}

/* The frame that passed, now that its annotations are known. */
static int
one_flush(struct run *x, struct err *e)
{
	struct one *o = &x->one;
	const float *v = (const float *)(void *)o->values.p;
	struct schema_span span;
	size_t i, from = 0;
	int r;

	for (i = 0; i < o->n; i++) {
		schema_span(reader_schema(x->in), o->group[i], &span);
		if ((r = one_group(x, o->group[i], v, span.n, &x->plan[i],
		    e)) < 0)
			return r;
		v += span.n;
		if (i + 1 < o->n && o->group[i + 1] == o->group[i] + 1)
			continue;
		if ((r = put_plan(x, o->group[from], x->plan + from,
		    (uint32_t)(i + 1 - from), e)) < 0)
			return r;
		from = i + 1;
	}
	o->n = 0;
	o->values.n = 0;
	return 0;
}

static int
one_data(struct run *x, struct err *e)
{
	struct one *o = &x->one;
	const struct record *rec;
	size_t n, i, len;
	int r;

	if ((r = one_begin(x, e)) < 0 || (r = one_flush(x, e)) < 0 ||
	    (r = writer_pass(x->out, x->in, e)) < 0)
		return r;
	rec = reader_records(x->in, &n);
	if ((r = alloc_grow(&o->group, &o->group_cap, n, sizeof(*o->group),
	    e)) < 0 || (r = alloc_grow(&x->plan, &x->plan_cap, n,
	    sizeof(*x->plan), e)) < 0)
		return r;
	for (i = 0; i < n; i++) {
		if ((r = buf_room(&o->values, 4 * x->cap, e)) < 0 ||
		    (r = values_decode(x->in, &rec[i], (float *)(void *)
		    (o->values.p + o->values.n), x->cap, &len, e)) < 0)
			return r;
		o->values.n += 4 * len;
		o->group[o->n++] = rec[i].group;
	}
	return 0;
}

static void
one_report(struct run *x)
{
	char where[160];

	cli_say(x->o->cli, 1, "%s: one pass, %llu of %llu bytes, D %.6g of "
	    "%.6g", name(x, where),
	    (unsigned long long)size_send(&x->one.size),
	    (unsigned long long)x->budget, x->one.dist, x->one.energy);
}

static int
one_pass(struct run *x, struct err *e)
{
	struct one *o = &x->one;
	int r, k;

	o->begun = 0;
	o->dist = o->energy = 0;
	o->n = 0;
	o->reserve = 0;
	o->values.n = 0;
	if (x->o->mode == MODE_SHARE)
		return err_set(e, ERR_REFUSED, "a share of the importance "
		    "needs the whole shard: it does not fit --memory");
	if ((r = filter_shard(x->in, x->out, NULL, e)) < 0)
		return r;
	while ((k = reader_next(x->in, e)) > 0 && k != READER_SEND)
		if ((k == READER_DATA && (r = one_data(x, e)) < 0) ||
		    (k == READER_NOTE && (r = pass_note(x, e)) < 0) ||
		    (r = survey_event(&x->survey, x->in, k, e)) < 0)
			return r;
	if ((r = k) < 0 || (r = one_begin(x, e)) < 0 ||
	    (r = one_flush(x, e)) < 0)
		return r;
	price_end(o->price);
	one_report(x);
	return writer_send(x->out, &reader_end_of_shard(x->in)->sums, e);
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
		r = price_put(x->one.price, row, e);
	history_release(&h);
	return r < 0 ? r : 0;
}

static int
save_price(struct run *x, struct err *e)
{
	struct history h = HISTORY_INIT;
	float row[PRICE_NUMBERS];
	int r;

	if (x->o->dir == NULL)
		return 0;
	price_get(x->one.price, row);
	if ((r = history_put(&h, "price", row, PRICE_NUMBERS, e)) == 0)
		r = history_save(&h, &x->state, FILE_NAME,
		    reader_shard(x->in), x->o->f.tool, e);
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
	int r;

	if ((r = alloc_grow(&x->x, &x->cap, sc->group_size, sizeof(*x->x),
	    e)) < 0 || (r = survey_begin(&x->survey, sc->ngroups, e)) < 0)
		return r;
	if (x->o->one_pass || (!reader_can_seek(x->in) && !fits_memory(x))) {
		r = one_pass(x, e);
		return r < 0 ? r : save_price(x, e);
	}
	if ((r = alloc_grow(&x->plan, &x->plan_cap, sc->ngroups,
	    sizeof(*x->plan), e)) < 0)
		return r;
	return two_passes(x, e);
}

static int
begin(struct run *x, struct opts *o, const char *path, struct err *e)
{
	int r;

	if (o->mode == MODE_NONE)
		return err_set(e, ERR_USAGE,
		    "how much to send: -p, -b, --bits or --policy");
	if ((x->one.price = alloc_get(1, sizeof(*x->one.price), e)) == NULL)
		return -ERR_SYS;
	memcpy(x->one.level, o->level, sizeof(o->level));
	if ((r = allot_new(&x->one.row, x->one.level, o->m, 1, e)) < 0 ||
	    (o->dir != NULL && ((r = state_open(&x->state, o->dir, e)) < 0 ||
	    (r = load_price(x, e)) < 0)) ||
	    (r = filter_in(&o->f, &x->in, path, e)) < 0)
		return r;
	return filter_out(&o->f, &x->out, e);
}

static int
run(struct opts *o, const char *path, struct err *e)
{
	struct run x = { .o = o, .state = STATE_INIT,
	    .survey = SURVEY_INIT, .measure = MEASURE_INIT };
	int r;

	if ((r = begin(&x, o, path, e)) < 0)
		goto out;
	while ((r = reader_next(x.in, e)) > 0)
		if (r == READER_SHARD && (r = select_shard(&x, e)) < 0)
			break;
	r = filter_end(x.out, r, e);
out:
	survey_release(&x.survey);
	measure_release(&x.measure);
	allot_free(x.allot);
	allot_free(x.one.row);
	alloc_free(x.one.price);
	alloc_free(x.one.group);
	buf_release(&x.one.values);
	alloc_free(x.plan);
	alloc_free(x.x);
	buf_release(&x.note);
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
		.usage = "-p FRACTION | -b SIZE | --bits N | --policy "
		    "[--levels LIST] [FILE]",
		.about = "Chooses a codec for every group of a shard stream.",
		.opt = options
	};
	struct opts o = { .cli = &c, .memory = (uint64_t)256 << 20,
	    .keep = { CODEC_F16, 0, 0 }, .rest = { CODEC_NONE, 0, 0 } };
	struct err e = ERR_INIT;
	const char *path;
	int r;

	filter_init(&o.f, c.prog, argc, argv);
	if ((r = set_levels(&o, LEVELS, &e)) == 0)
		r = cli_parse(&c, argc, argv, set, &o, &e);
	if (r == 0 && (r = filter_one(&c, argc, argv, &path, &e)) == 0)
		r = run(&o, path, &e);
	filter_release(&o.f);
	return cli_exit(&c, r, &e);
}
