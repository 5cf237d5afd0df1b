/*
 * Do the work whose instructions tests/counts counts with valgrind: most codecs and some
 * kernels on one group of 65,536 values, two planners on 1,000 groups and 1,000 layers.
 *
 * It prints the name of each piece of work when it is done.  Each piece runs twice; only the
 * second run, inside counted(), is counted.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/rng.h"
#include "codec/codec.h"
#include "codec/stat.h"
#include "kern/kern.h"
#include "pipe/size.h"
#include "sync/allot.h"
#include "sync/dynacomm.h"

enum { N = 65536, GROUPS = 1000, LAYERS = 1000 };

/* A value of the blocks of deviation 1 (see make) takes about 0.5 bits by ecq:3, 2 by ecq:1. */
static const char *const specs[] = {
	"f16", "exact", "q8", "sign", "topk:0.01", "topk:0.1",
	"chunk:64/4096:q2", "qsgd:7", "lowrank:4",
	"ecq:3", "ecq:1"
};

struct job {
	const char *name;
	void (*run)(struct job *j);
	struct codec_plan plan;
	struct buf body;
	uint8_t param;
};

static float x[N], y[N];
static double acc[N];
static const struct kern *kern;
static struct stat_group stat[GROUPS];
static float weight[GROUPS];
static uint8_t dense[GROUPS];
static struct codec_plan plan[GROUPS];
static struct dynacomm layers;
static struct err e = ERR_INIT;

/* The function whose instructions valgrind counts. */
void counted(struct job *j);

__attribute__((noinline)) void
counted(struct job *j)
{
	j->run(j);
}

static void
must(int r)
{
	if (r >= 0)
		return;
	(void)fprintf(stderr, "counts: %s\n", ERR_MSG(&e));
	exit(1);
}

static void
context(void *arg, uint32_t g, struct codec_ctx *ctx)
{
	(void)arg;
	*ctx = (struct codec_ctx){ 1, 2, g, 256, 0 };
}

static void
code(struct job *j)
{
	struct codec_ctx ctx;

	context(NULL, 0, &ctx);
	j->body.n = 0;
	must(codec_encode(&j->plan, &ctx, x, N, &j->body, &j->param, &e));
}

static void
decode(struct job *j)
{
	struct codec_ctx ctx;

	context(NULL, 0, &ctx);
	must(codec_decode(j->plan.codec, j->param, &ctx, j->body.p, j->body.n,
	    y, N, &e));
}

static void
statistics(struct job *j)
{
	struct stat_group s;

	(void)j;
	if (stat_group_of(x, N, &s) != 0)
		exit(1);
}

static void
sum(struct job *j)
{
	(void)j;
	kern->axpy64(acc, 0.5, x, N);
	kern->narrow(y, acc, N);
}

static void
residual(struct job *j)
{
	(void)j;
	kern->add_scaled(y, x, 0.5f, x, N);
	kern->add_scaled(y, y, -1, x, N);
}

static void
allot(struct job *j)
{
	static const struct codec_plan other[] = { { CODEC_Q8, 0, 0 },
	    { CODEC_F16, 0, 0 }, { CODEC_F32, 0, 0 } };
	struct allot a = { .n = GROUPS, .stat = stat, .weight = weight,
	    .dense = dense, .shared = CODEC_ECQ, .other = other, .m = 3, .ctx = context,
	    .cost = size_cost,
	    .plan = plan, .budget = 0.3 / 8 * (double)GROUPS * 1024 };

	(void)j;
	must(allot_plan(&a, &e));
}

static void
cuts(struct job *j)
{
	static size_t cut[LAYERS];
	size_t k;

	(void)j;
	must(dynacomm_best(&layers, cut, &k, &e));
}

/* Fill x, stat, weight, dense and layers.  x has sums of four uniform numbers, in blocks of
 * 4,096 with four scales in turn. The values are the same with every mathematical library. */
static void
make(void)
{
	static const float scale[] = { 1, 0.25f, 4, 0.0625f };
	static int64_t pt[LAYERS], fc[LAYERS];
	uint32_t r[4], i;

	for (i = 0; i < N; i++) {
		rng_block(7, 0, 0, i, r);
		x[i] = (rng_unit(r[0]) + rng_unit(r[1]) + rng_unit(r[2]) +
		    rng_unit(r[3]) - 2) * 1.7f * scale[i / 4096 % 4];
	}
	for (i = 0; i < GROUPS; i++) {
		if (stat_group_of(x + i % 64 * 1024, 1024, &stat[i]) != 0)
			exit(1);
		weight[i] = 1;
		dense[i] = i % 50 == 49;
	}
	for (i = 0; i < LAYERS; i++) {
		rng_block(8, 0, 0, i, r);
		pt[i] = 1 + r[0] % 2000000;
		fc[i] = 1 + r[1] % 2000000;
	}
	must(dynacomm_init(&layers, pt, fc, LAYERS, 100000, &e));
}

static void
count(struct job *j, const char *name, const char *what,
    void (*run)(struct job *))
{
	j->run = run;
	run(j);
	counted(j);
	(void)printf("%s%s\n", name, what);
}

int
main(void)
{
	struct job j;
	size_t i;

	if ((kern = kern_get(&e)) == NULL)
		must(-1);
	make();
	for (i = 0; i < sizeof(specs) / sizeof(*specs); i++) {
		memset(&j, 0, sizeof(j));
		must(codec_parse(specs[i], &j.plan, &e));
		count(&j, specs[i], ", code", code);
		count(&j, specs[i], ", decode", decode);
		buf_release(&j.body);
	}
	memset(&j, 0, sizeof(j));
	count(&j, "statistics", "", statistics);
	count(&j, "weighted sum", "", sum);
	count(&j, "residual", "", residual);
	count(&j, "plan", ", 1000 groups", allot);
	count(&j, "cuts", ", 1000 layers", cuts);
	dynacomm_release(&layers);
	return 0;
}
