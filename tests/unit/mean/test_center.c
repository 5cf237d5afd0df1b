/*
 * Attackers that the noise of one step hides are detected over many steps, from the stored
 * history.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/err.h"
#include "base/rng.h"
#include "format/schema.h"
#include "mean/center.h"

#include "../inside.h"
#include "../tap.h"

enum { N = 1024, K = 5, BAD = 2 };

static struct err e;
static struct schema model = SCHEMA_INIT;
static struct shard who[K + 1];
static float x[K + 1][N], center[N];

/* Set x[k] to a gradient whose values are all `sign', plus noise of twice its norm. */
static void
sends(size_t k, uint64_t step, float sign)
{
	uint32_t r[N];
	size_t j;

	rng_fill(k + 1, step, 0, 0, r, N / 4);
	for (j = 0; j < N; j++)
		x[k][j] = sign + (r[j] >> 31 ? 2.0f : -2.0f);
}

/* Run step `at' of k devices, the first BAD of which are attackers; t->one gets their scales. */
static int
step(struct center *p, struct robust_step *t, const struct robust_rule *q, size_t k,
    uint64_t at)
{
	size_t i, j;
	int r = robust_step(t, k, &e);

	who[0].step = at;
	if (r == 0 && (r = center_begin(p, &who[0], &model, k, &e)) == 0 &&
	    (r = center_group(p, 0, N, &e)) == 0)
		center_add(p, k, center);
	for (i = 0; i < k && r == 0; i++) {
		sends(i, at, i < BAD ? -1 : 1);
		t->one[i].weight = t->one[i].norm2 = 1;
		for (j = 0; j < N; j++)
			t->one[i].far2 += (double)((x[i][j] - center[j]) *
			    (x[i][j] - center[j]));
		center_device(p, i, &who[i]);
		center_add(p, i, x[i]);
	}
	if (r == 0 && (r = robust_judge(q, t, &e)) == 0)
		r = center_judge(p, t, &e);
	center_make(p, 0, center, N);
	return r == 0 ? center_commit(p, &who[0], &model, &e) : r;
}

TEST(who_is_bad)
{
	struct center p = CENTER_INIT;
	struct robust_step t = { .k = 0 };
	struct robust_rule q = { 0 };
	unsigned char id[SHARD_ID];
	uint64_t s;
	int r = 0;

	(void)robust_parse(&q, "center:2", &e);
	for (s = 0; s < 2; s++)
		r |= step(&p, &t, &q, K, s);
	ok(r == 0 && t.one[0].scale > 0.5 && t.one[4].scale > 0.5,
	    "after two steps no device is clipped by half: %g, %g", t.one[0].scale,
	    t.one[4].scale);
	for (; s < 30; s++)
		r |= step(&p, &t, &q, K, s);
	ok(r == 0 && t.one[0].scale < 0.5 && t.one[1].scale < 0.5 &&
	    t.one[2].scale > 0.75 && t.one[3].scale > 0.75 && t.one[4].scale > 0.75,
	    "after thirty the two who are show it: %g, %g; %g, %g, %g",
	    t.one[0].scale, t.one[1].scale, t.one[2].scale, t.one[3].scale,
	    t.one[4].scale);
	ok(t.one[0].fate == ROBUST_CLIPPED && t.one[4].fate == ROBUST_COUNTS,
	    "which is said");
	/* device K, which is new and honest */
	r |= step(&p, &t, &q, K + 1, s++);
	ok(r == 0 && t.one[K].scale < 0.7, "a new device counts less: %g",
	    t.one[K].scale);
	for (; s < 60; s++)
		r |= step(&p, &t, &q, K + 1, s);
	ok(r == 0 && t.one[K].scale > 0.75, "until it is known: scale %g", t.one[K].scale);
	ok(p.last.n == K + 2, "each device has a row");
	for (; s < 75; s++)
		r |= step(&p, &t, &q, K, s);
	ok(r == 0 && p.last.n == K + 2, "a device that was absent is still known");
	for (; s < 110; s++)
		r |= step(&p, &t, &q, K, s);
	ok(r == 0 && p.last.n == K + 1, "but not for ever");
	/* a device without a name leaves no row, however often it comes */
	memcpy(id, who[K].device, SHARD_ID);
	memset(who[K].device, 0, SHARD_ID);
	for (; s < 120; s++)
		r |= step(&p, &t, &q, K + 1, s);
	ok(r == 0 && p.last.n == K + 1 && t.one[K].scale < 0.7,
	    "a device without a name stays new: %g", t.one[K].scale);
	memcpy(who[K].device, id, SHARD_ID);
	center_release(&p);
	robust_release(&t);
}

/* Release p and open it from its files, as after a restart. */
static int
restart(struct center *p)
{
	center_release(p);
	return center_keep(p, ".", IO_SYNC_NONE, &e);
}

TEST(memory_continues_from_its_files)
{
	struct center p = CENTER_INIT, other = CENTER_INIT;
	struct robust_step t = { .k = 0 }, u = { .k = 0 };
	struct robust_rule q = { 0 };
	size_t i, wrong = 0;
	uint64_t s;
	int r = center_keep(&p, ".", IO_SYNC_NONE, &e);

	(void)robust_parse(&q, "center:2", &e);
	for (s = 0; s < 20 && r == 0; s++) {
		/* other begins each step from the files of p */
		if ((r = restart(&other)) == 0)
			r = step(&other, &u, &q, K, s) | step(&p, &t, &q, K, s);
		for (i = 0; i < K && r == 0; i++)
			wrong += t.one[i].scale < u.one[i].scale ||
			    t.one[i].scale > u.one[i].scale;
	}
	ok(r == 0 && wrong == 0 && t.one[0].scale < t.one[4].scale,
	    "%zu other scales after a restart", wrong);
	center_release(&p);
	center_release(&other);
	robust_release(&t);
	robust_release(&u);
}

static int
by_device(const void *a, const void *b)
{
	return memcmp(((const struct shard *)a)->device,
	    ((const struct shard *)b)->device, SHARD_ID);
}

int
main(void)
{
	struct schema_tensor t = { .name = (char[]){ "w" }, .ndim = 1, .dim = { N } };
	char name[16];
	size_t i;

	if (schema_add(&model, &t, &e) < 0 || schema_finish(&model, &e) < 0)
		return 99;
	for (i = 0; i <= K; i++) {
		(void)snprintf(name, sizeof(name), "edge%zu", i);
		shard_init(&who[i]);
		if (shard_set_run(&who[i], "test", &e) < 0 ||
		    shard_set_device(&who[i], name, &e) < 0)
			return 99;
	}
	qsort(who, K + 1, sizeof(who[0]), by_device);
	for (i = 0; i < N; i++)
		center[i] = 1;
	run_tests();
	for (i = 0; i <= K; i++)
		shard_release(&who[i]);
	schema_release(&model);
	return done_testing();
}
