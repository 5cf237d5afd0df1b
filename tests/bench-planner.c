/*
 * Measure the quality of the planner's plans, and its time.
 *
 * bench-planner LABEL EFFORT <STREAM  for the last shard: the error of a plan that
 *                              meets its budget, relative to the error of ecq with
 *                              one step for all groups at the same bytes, found by
 *                              bisection on true sizes.  EFFORT: as in --effort
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
#include "codec/stat.h"
#include "format/values.h"
#include "pipe/size.h"
#include "sync/allot.h"
#include "sync/rate_control.h"

#include "bench.h"

static void *
get(size_t n, size_t size)
{
	void *p = calloc(n > 0 ? n : 1, size);

	if (p == NULL)
		die("out of memory");
	return p;
}

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

enum { RATES = 7, SHARD = 256 };
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
	struct rate_control_group *code;
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
	struct rate_control_code *c = &d->code[i].code;

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

/* Code the shard by d->plan and the t of each d->code, and return the squared error. */
static double
error_of(struct data *d)
{
	double sum = 0, v;
	size_t i, j;

	for (i = 0; i < d->n; i++) {
		const struct rate_control_code *c = &d->code[i].code;

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
 * error at exactly `bytes', interpolated between this step and the next finer one.
 * Overwrites d->plan and d->code. */
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
	    .dense = d->dense, .shared = codec_shared(effort), .other = other, .m = 3,
	    .ctx = ctx_of, .cost = size_cost, .arg = d, .plan = d->plan };
	a->budget = (double)budget - 512;
	if (allot_plan(a, NULL) < 0)
		die("planning");
}

/* Code the shard for a budget in bytes. Return 1 if it exceeds the budget. */
static int
land_shard(struct data *d, struct rate_control *l, uint64_t budget)
{
	size_t i;

	*l = (struct rate_control){ .n = d->n, .g = d->code, .cost = size_cost,
	    .budget = budget & ~(uint64_t)7 };
	for (i = 0; i < d->n; i++) {
		d->code[i].n = (uint32_t)d->g[i].n;
		d->code[i].plan = d->plan[i];
		d->code[i].code.t = HUGE_VAL;
		d->code[i].seen.sumsq = (double)d->stat[i].sumsq;
	}
	if (rate_control_open(l, NULL) < 0)
		die("out of memory");
	while (rate_control_next(l, size_of(d)))
		for (i = 0; i < l->many; i++)
			make_group(d, l->which[i]);
	rate_control_close(l);
	return l->bytes > l->budget;
}

static void
rate_of(struct data *d, const char *label, double bits)
{
	uint64_t budget = (uint64_t)(bits * (double)d->total / 8);
	double t0, t1, t2, ours, theirs;
	size_t i, except = 0, none = 0;
	struct allot a;
	struct rate_control l;
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
	if (argc != 3)
		die("LABEL EFFORT");
	effort = (unsigned)atoi(argv[2]);
	plan(argv[1]);
	return 0;
}
