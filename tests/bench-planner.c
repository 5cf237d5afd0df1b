/*
 * The planners: the quality of their plans, and the time that they take.
 *
 * bench-planner knapsack       time and gap of our planner and of L-GreCo's dynamic
 *                              programme on L-GreCo's own objective: the least size
 *                              within a sum of errors
 * bench-planner plan LABEL EFFORT <STREAM  for the last shard: the error of a plan
 *                              that meets its budget, relative to the error of ecq
 *                              with one step for all groups at the same bytes, found
 *                              by bisection on true sizes
 * bench-planner budgets EFFORT  random shards and budgets: is every budget met?
 */
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/detmath.h"
#include "base/err.h"
#include "base/io.h"
#include "codec/codec.h"
#include "codec/estimate.h"
#include "codec/stat.h"
#include "format/values.h"
#include "pipe/size.h"
#include "sync/allot.h"
#include "sync/regulate.h"
#include "sync/select.h"

#include "bench.h"
#include "gap.h"
#include "lgreco.h"
#include "rnd.h"

static void *
get(size_t n, size_t size)
{
	void *p = calloc(n > 0 ? n : 1, size);

	if (p == NULL)
		die("out of memory");
	return p;
}

/* Read standard input. */
static struct reader *
from_input(void)
{
	struct reader_opts o = { .max_elements = 0 };
	struct err e = ERR_INIT;
	struct reader *r = NULL;
	struct io *io;

	if (io_open(&io, NULL, &e) < 0 || reader_open(&r, io, &o, &e) < 0)
		die(ERR_MSG(&e));
	return r;
}

/* ---- the knapsack ---- */

static void
filled(size_t n, size_t m)
{
	struct select_level *l = calloc(n * m, sizeof(*l));
	uint8_t *c = calloc(n, 1);
	struct select_result r;
	double t, worst = 0, open = 0, b, size, s;
	size_t i, k;

	if (l == NULL || c == NULL)
		exit(1);
	for (i = 0; i < n; i++) {
		size = 16384 * (1 + floor(4 * rnd()));
		s = size * exp(8 * rnd());
		for (k = 0; k < m; k++) {
			l[i * m + k].bytes = (int64_t)(size * (double)(k * k) / 36);
			l[i * m + k].dist = s * exp(-0.15 * (double)(k * k));
		}
	}
	for (b = 1e5; b < 2e8; b *= 2) {
		t = now();
		if (select_budget(l, n, m, (int64_t)b, c, &r, NULL) < 0)
			exit(1);
		worst = fmax(worst, now() - t);
		open = fmax(open, gap(l, n, m, (int64_t)b, &r));
	}
	(void)printf("knapsack, %zu groups of %zu levels: at most %.2f ms, "
	    "gap at most %.3f %%\n", n, m, 1e3 * worst, 100 * open);
	free(l);
	free(c);
}

static void
against(size_t n)
{
	enum { M = 8, T = 10 };
	double *size = calloc(n * M, sizeof(*size)), ours = 0, theirs = 0, d, g;
	double *error = calloc(n * M, sizeof(*error)), target, t0 = 0, t1 = 0, t;
	struct select_level *l = calloc(n * M, sizeof(*l));
	uint8_t *c = calloc(n, 1);
	struct select_result r;
	size_t i, k;
	int trial;

	if (size == NULL || error == NULL || l == NULL || c == NULL)
		exit(1);
	for (trial = 0; trial < T; trial++) {
		for (target = 0, i = 0; i < n; i++) {
			d = exp(5 * rnd() + 5);
			g = exp(2 * rnd());
			for (k = 0; k < M; k++) {
				size[i * M + k] = floor(d * (double)(k + 1) / 8);
				error[i * M + k] = g * sqrt(d) *
				    exp2(-(double)(k + 1)) * (0.9 + 0.2 * rnd());
			}
			target += error[i * M + 3];
		}
		t = now();
		theirs += lgreco(size, error, n, M, target);
		t1 += now() - t;
		t = now();
		for (i = 0; i < n * M; i++) {
			l[i].bytes = (int64_t)ceil(error[i] / target * 1099511627776.0);
			l[i].dist = size[i];
		}
		if (select_budget(l, n, M, (int64_t)1 << 40, c, &r, NULL) != 0)
			exit(1);
		t0 += now() - t;
		ours += r.dist;
	}
	(void)printf("L-GreCo's objective, %3zu layers: %.4f of its size, "
	    "%.2f ms (L-GreCo %.1f ms)\n", n, ours / theirs, 1e3 * t0 / (double)T,
	    1e3 * t1 / (double)T);
	free(size);
	free(error);
	free(l);
	free(c);
}

static void
knapsack(void)
{
	rnd_seed = 3;
	filled(1000, 12);
	filled(1000, 23);
	against(20);
	against(60);
	against(160);
}

/* ---- plans ---- */

enum { RATES = 7, RANDOM = 10000, SHARD = 256, EMPTY = SHARD + 192 };
static const double rates[RATES] = { 0.05, 0.1, 0.3, 0.62, 1.24, 2.5, 4 };

struct data {
	size_t n, cap;		/* groups */
	struct group {
		struct codec_ctx ctx;
		size_t n;
		float *x;
	} *g;
	struct stat_group *stat;
	float *weight;
	uint8_t *dense;
	size_t total;
	float *y;
	struct buf body;
	/* the plan, and the codes that follow it */
	struct codec_plan *plan;
	struct regulate_group *code;
};

static void
clear(struct data *d)
{
	size_t i;

	for (i = 0; i < d->n; i++)
		free(d->g[i].x);
	free(d->g);
	free(d->stat);
	free(d->weight);
	free(d->dense);
	free(d->y);
	free(d->plan);
	free(d->code);
	buf_release(&d->body);
	memset(d, 0, sizeof(*d));
}

static void
add(struct data *d, const float *x, size_t n, const struct codec_ctx *ctx)
{
	if (d->n == d->cap) {
		d->cap = 2 * d->cap + 64;
		if ((d->g = realloc(d->g, d->cap * sizeof(*d->g))) == NULL)
			die("out of memory");
	}
	d->g[d->n].ctx = *ctx;
	d->g[d->n].n = n;
	d->g[d->n].x = get(n, sizeof(float));
	memcpy(d->g[d->n++].x, x, n * sizeof(*x));
	d->total += n;
}

static void
ready(struct data *d)
{
	size_t i, most = 0;

	d->stat = get(d->n, sizeof(*d->stat));
	d->weight = get(d->n, sizeof(*d->weight));
	d->dense = get(d->n, 1);
	d->plan = get(d->n, sizeof(*d->plan));
	d->code = get(d->n, sizeof(*d->code));
	for (i = 0; i < d->n; i++) {
		if (stat_group_of(d->g[i].x, d->g[i].n, &d->stat[i]) != 0)
			die("a value is not finite");
		d->weight[i] = 1;
		most = d->g[i].n > most ? d->g[i].n : most;
	}
	d->y = get(most, sizeof(float));
}

static void
ctx_of(void *arg, uint32_t g, struct codec_ctx *ctx)
{
	*ctx = ((const struct data *)arg)->g[g].ctx;
}

static void
make_group(struct data *d, size_t i)
{
	struct codec_plan p = codec_turn(&d->plan[i], detmath_exp(d->code[i].code.t));
	struct regulate_code *c = &d->code[i].code;

	c->len = 0;
	d->body.n = 0;
	if (p.codec == CODEC_NONE || d->stat[i].nonzero == 0)
		return;
	if (codec_encode(&p, &d->g[i].ctx, d->g[i].x, d->g[i].n, &d->body,
	    &c->param, NULL) < 0)
		die("coding");
	c->len = d->body.n;
}

static uint64_t
size_of(const struct data *d)
{
	struct size z = { .bytes = SHARD };
	uint64_t size;
	size_t i;

	for (i = 0; i < d->n; i++)
		if (d->code[i].code.len != 0)
			size_record(&z, (uint32_t)i, d->code[i].plan.codec,
			    d->code[i].code.param, d->code[i].code.len);
	size = size_send(&z);
	return size - z.pad;
}

/* Return the squared error of the shard as it is coded. */
static double
error_of(struct data *d)
{
	double sum = 0, v;
	size_t i, j;

	for (i = 0; i < d->n; i++) {
		const struct regulate_code *c = &d->code[i].code;

		make_group(d, i);
		memset(d->y, 0, d->g[i].n * sizeof(float));
		if (c->len != 0 && codec_decode(d->plan[i].codec, c->param,
		    &d->g[i].ctx, d->body.p, c->len, d->y, d->g[i].n, NULL) < 0)
			die("decoding");
		for (j = 0; j < d->g[i].n; j++) {
			v = (double)d->g[i].x[j] - (double)d->y[j];
			sum += v * v;
		}
	}
	return sum;
}

/* Find one step for all groups: the finest that takes at most `bytes'. Return the
 * error at exactly `bytes', interpolated between this step and the next finer one. */
static double
one_step(struct data *d, double bytes)
{
	double lo = 1e-12, hi = 1e6, step, size, error[2] = { 0 }, at[2] = { 0 };
	size_t g;
	int i;

	for (i = 0; i < 40; i++) {
		step = sqrt(lo * hi);
		for (g = 0; g < d->n; g++) {
			d->plan[g] = (struct codec_plan){ CODEC_ECQ, 0,
			    (float)step };
			d->code[g].code.t = 0;
			make_group(d, g);
		}
		size = (double)size_of(d);
		if (i > 20) {
			at[size > bytes] = size;
			error[size > bytes] = error_of(d);
		}
		if (size > bytes)
			lo = step;
		else
			hi = step;
	}
	if (!(at[0] > 0))
		return error[1];
	if (!(at[1] > at[0]))
		return error[0];
	return error[0] * pow(error[1] / error[0], (bytes - at[0]) / (at[1] - at[0]));
}

static unsigned effort = CODEC_EFFORT;

static void
plan_shard(struct data *d, struct allot *a, uint64_t budget)
{
	static const struct codec_plan other[] = { { CODEC_Q8, 0, 0 },
	    { CODEC_F16, 0, 0 }, { CODEC_F32, 0, 0 } };

	*a = (struct allot){ .n = d->n, .stat = d->stat, .weight = d->weight,
	    .dense = d->dense, .shared = codec_shared(effort), .other = other, .m = 3, .ctx = ctx_of,
	    .cost = size_cost, .arg = d, .plan = d->plan };
	a->budget = (double)budget - 512;
	if (allot_plan(a, NULL) < 0)
		die("planning");
}

/* Return 1 when the shard exceeds the budget. */
static int
land_shard(struct data *d, struct regulate *l, uint64_t budget)
{
	size_t i;

	*l = (struct regulate){ .n = d->n, .g = d->code, .cost = size_cost,
	    .budget = budget & ~(uint64_t)7 };
	for (i = 0; i < d->n; i++) {
		d->code[i].n = (uint32_t)d->g[i].n;
		d->code[i].plan = d->plan[i];
		d->code[i].code.t = HUGE_VAL;
		d->code[i].seen.sumsq = (double)d->stat[i].sumsq;
	}
	if (regulate_open(l, NULL) < 0)
		die("out of memory");
	while (regulate_next(l, size_of(d)))
		for (i = 0; i < l->many; i++)
			make_group(d, l->which[i]);
	regulate_close(l);
	return l->bytes > l->budget;
}

static void
rate_of(struct data *d, const char *label, double bits)
{
	uint64_t budget = (uint64_t)(bits * (double)d->total / 8);
	double t0, t1, t2, ours, theirs;
	size_t i, except = 0, none = 0;
	struct allot a;
	struct regulate l;
	int r;

	t0 = now();
	plan_shard(d, &a, budget);
	t1 = now();
	r = land_shard(d, &l, budget);
	t2 = now();
	for (i = 0; i < d->n; i++) {
		except += d->plan[i].codec != codec_shared(effort) &&
		    d->plan[i].codec != CODEC_NONE;
		none += d->plan[i].codec == CODEC_NONE && d->stat[i].nonzero > 0;
	}
	ours = error_of(d);
	theirs = one_step(d, (double)l.bytes);
	(void)printf("%-20s %5.2f bits: error x %.4f%s  plan %.2f ms, land %.1f ms "
	    "(%.2f codings a value)  %.4f of budget, foretold %.3f  %zu others, %zu none%s\n",
	    label, bits, ours / theirs, ours / theirs <= 1.002 ? "" : " MISSED",
	    1e3 * (t1 - t0), 1e3 * (t2 - t1), (double)l.tried / (double)d->total,
	    (double)l.bytes / (double)budget, a.bytes / (double)budget, except, none,
	    r != 0 ? " DOES NOT FIT" : "");
	(void)fflush(stdout);
}

static void
last_shard(struct data *d)
{
	struct reader *r = from_input();
	struct values v = VALUES_INIT;
	struct err e = ERR_INIT;
	struct codec_ctx ctx;
	int k;

	while ((k = reader_next(r, &e)) > 0) {
		if (k != READER_SHARD)
			continue;
		clear(d);
		k = values_begin(&v, r, &e);
		while (k >= 0 && (k = values_next(&v, &e)) > 0) {
			values_ctx(reader_schema(r), reader_shard(r), v.group, &ctx);
			add(d, v.x, v.n, &ctx);
		}
		if (k < 0)
			break;
	}
	if (k < 0)
		die(ERR_MSG(&e));
	values_release(&v);
	reader_free(r);
	ready(d);
}

/* Make groups of any size, scale and tail; some hold zeros, some one repeated value. */
static void
random_shard(struct data *d)
{
	size_t groups = (size_t)exp(5 * rnd()), g, n, i;
	double scale, tail, zeros, u;
	struct codec_ctx ctx = { 1, 2, 0, 1, 0 };
	float *x;

	for (g = 0; g < groups; g++) {
		n = (size_t)exp(8 * rnd());
		scale = exp(10 * rnd() - 8);
		tail = 3 * rnd();
		zeros = rnd() < 0.3 ? rnd() : 0;
		x = get(n, sizeof(*x));
		for (i = 0; i < n; i++) {
			u = rnd() + rnd() + rnd() + rnd() - 2;
			x[i] = rnd() < zeros ? 0 : (float)(scale * u *
			    exp(tail * (rnd() + rnd() - 1)));
		}
		ctx.group = (uint32_t)g;
		ctx.cols = (uint32_t)(1 + 64 * rnd());
		add(d, x, n, &ctx);
		free(x);
	}
	ready(d);
	for (g = 0; g < groups; g++)
		d->weight[g] = rnd() < 0.5 ? 1 : (float)rnd();
}

/* Check that every budget is met: never exceeded, and at most half a percent and
 * the padding of a frame below, unless the shard has no more bytes to send. */
static void
random_shards(unsigned count)
{
	unsigned i, over = 0, under = 0, small = 0, enough = 0, none = 0;
	struct data d = { 0 };
	double made = 0, groups = 0;
	struct allot a;
	struct regulate l;
	uint64_t budget, left;
	int r;

	rnd_seed = 5;
	for (i = 0; i < count; i++) {
		random_shard(&d);
		budget = 512 + (uint64_t)((double)d.total / 8 * exp(7 * rnd() - 4));
		plan_shard(&d, &a, budget);
		r = land_shard(&d, &l, budget);
		made += (double)l.tried;
		groups += (double)d.total;
		if (r == 1 || l.bytes > (budget & ~(uint64_t)7)) {
			over += r == 0;
			small += r == 1 && budget >= EMPTY + 256;
			none += r == 1 && budget < EMPTY + 256;
			clear(&d);
			continue;
		}
		left = (budget & ~(uint64_t)7) - l.bytes;
		if (left > budget / 200 && left > 64) {
			/* the plan is lossless already */
			if (error_of(&d) <= 1e-9 * a.energy)
				enough++;
			else if (l.bytes <= EMPTY && left < 3 * 64)
				none++;
			else
				under++;
		}
		clear(&d);
	}
	(void)printf("%u random shards and budgets: %u over, %u too small for "
	    "the plan, %u lose nothing, %u too small for the first "
	    "record, %u more than 0.5 %% and 64 bytes under; %.2f codings a "
	    "value\n", count, over, small, enough, none, under, made / groups);
}

static void
plan(const char *label)
{
	struct data d = { 0 };
	int i;

	last_shard(&d);
	for (i = 0; i < RATES; i++)
		rate_of(&d, label, rates[i]);
	clear(&d);
}

int
main(int argc, char **argv)
{
	const char *what = argc > 1 ? argv[1] : "";

	if (argc > 2)
		effort = (unsigned)atoi(argv[argc - 1]);
	if (strcmp(what, "knapsack") == 0)
		knapsack();
	else if (strcmp(what, "budgets") == 0 && argc == 3)
		random_shards(RANDOM);
	else if (strcmp(what, "plan") == 0 && argc == 4)
		plan(argv[2]);
	else
		die("knapsack, budgets EFFORT or plan LABEL EFFORT");
	return 0;
}
