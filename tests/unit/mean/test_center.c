/*
 * Attackers hidden in the noise of one step are detected over many, from the stored
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
static void (*meddle)(size_t k, uint64_t step);	/* changes what sends() makes */

/* Device k sends the gradient 1, 1, ..., or its opposite, plus noise of twice its norm. */
static void
sends(size_t k, uint64_t step, float sign)
{
	uint32_t r[N];
	size_t j;

	rng_fill(k + 1, step, 0, 0, r, N / 4);
	for (j = 0; j < N; j++)
		x[k][j] = sign + (r[j] >> 31 ? 2.0f : -2.0f);
}

/* Run a step of k devices; the scales are in t->one. */
static int
step(struct center *p, struct robust_step *t, const struct robust_rule *q, size_t k,
    uint64_t at)
{
	static struct sketch same;
	size_t i, j;
	int r = robust_step(t, k, &e);

	who[0].step = at;
	if (r == 0 && (r = sketch_begin(&same, k, &e)) == 0 &&
	    (r = sketch_group(&same, 0, N, &e)) == 0 &&
	    (r = center_begin(p, &who[0], &model, k, &e)) == 0 &&
	    (r = center_group(p, 0, N, &e)) == 0)
		center_add(p, k, center);
	for (i = 0; i < k && r == 0; i++) {
		sends(i, at, i < BAD ? -1 : 1);
		if (meddle != NULL)
			meddle(i, at);
		t->one[i].weight = t->one[i].norm2 = 1;
		for (j = 0; j < N; j++)
			t->one[i].far2 += (double)((x[i][j] - center[j]) *
			    (x[i][j] - center[j]));
		t->one[i].nonzero = N;
		center_device(p, i, &who[i]);
		center_add(p, i, x[i]);
		sketch_add(&same, i, x[i]);
	}
	if (r == 0 && (r = center_repeats(p, &same, t, &e)) == 0 &&
	    (r = robust_judge(q, t, &e)) == 0)
		r = center_judge(p, t, &e);
	center_make(p, 0, center, N);
	return r == 0 ? center_commit(p, &who[0], &model, &e) : r;
}

/* Start without history; dir NULL: without files. */
static void
forget(struct center *p, const char *dir)
{
	center_release(p);
	if (dir != NULL)
		(void)center_keep(p, dir, IO_SYNC_NONE, &e);
}

TEST(who_is_bad)
{
	struct center p = CENTER_INIT;
	struct robust_step t = { .k = 0 };
	struct robust_rule q = { 0 };
	unsigned char id[SHARD_ID];
	uint64_t s;
	int r = 0;

	(void)robust_parse(&q, "center", &e);
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
	/* honest as well */
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

/* Device 4 sends what device 2 sent `ago' steps ago, times `times', each value off by the
 * share `noise'. both: device 2 sends it again, too. is: 1 if it must count as a copy. */
static struct copy { uint64_t ago; float times, noise; int both, is; } copy;

static void
copies(size_t k, uint64_t step)
{
	uint32_t r[N];
	size_t j;

	if (k != 4 && (k != 2 || !copy.both))
		return;
	memcpy(center, x[2], sizeof(center));
	sends(2, step - copy.ago, 1);
	rng_fill(99, step, 0, 0, r, N / 4);
	for (j = 0; j < N; j++)
		x[k][j] = copy.times * x[2][j] * (r[j] >> 31 ? 1 + copy.noise :
		    1 - copy.noise);
	if (k != 2)
		memcpy(x[2], center, sizeof(center));
	for (j = 0; j < N; j++)
		center[j] = 1;
}

/* Count the contributions found to be copies. */
static size_t
repeated(const struct robust_step *t)
{
	size_t i, n = 0;

	for (i = 0; i < t->k; i++)
		n += t->one[i].fate == ROBUST_REPEATS;
	return n;
}

TEST(copies_are_left_out)
{
	static const struct copy c[] = {
		{ 1, 1, 0, 0, 1 }, { 1, 0.37f, 0, 0, 1 }, { 2, 1e4f, 0, 0, 1 },
		{ 7, 1, 0.02f, 0, 1 }, { 18, 3, 0.01f, 0, 1 }, { 32, 1, 0, 0, 1 },
		{ 33, 1, 0, 0, 0 },		/* no longer remembered */
		{ 0, 1, 0, 0, 0 },		/* of the same step */
		{ 1, 1, 0, 1, 0 },		/* device 2 sends it in this step, too */
		{ 1, 1, 0.5f, 0, 0 },
		{ 1, -1, 0, 0, 0 }		/* the opposite is too far from the center */
	};
	struct center p = CENTER_INIT, other = CENTER_INIT;
	struct robust_step t = { .k = 0 };
	struct robust_rule q = { 0 };
	size_t i, wrong = 0;
	uint64_t s;
	int r = 0;

	forget(&p, ".");
	(void)robust_parse(&q, "center", &e);
	meddle = NULL;
	for (s = 0; s < 40; s++) {
		r |= step(&p, &t, &q, K, s);
		wrong += repeated(&t);
	}
	ok(r == 0 && wrong == 0, "no honest shard is a copy in 40 steps: %zu", wrong);
	meddle = copies;
	for (i = 0; i < sizeof(c) / sizeof(c[0]); i++, s++) {
		copy = c[i];
		forget(&other, ".");		/* has files only */
		r |= step(&other, &t, &q, K, s);
		wrong = repeated(&t);
		r |= step(&p, &t, &q, K, s);
		ok(r == 0 && repeated(&t) == (size_t)c[i].is && wrong ==
		    repeated(&t) && (t.one[4].fate == ROBUST_REPEATS) == c[i].is,
		    "%llu steps ago, times %g, +- %g%s: %zu",
		    (unsigned long long)copy.ago, copy.times, copy.noise,
		    copy.both ? ", both" : "", repeated(&t));
		if (c[i].is)
			ok(p.one[4].sent == s - copy.ago &&
			    memcmp(p.one[4].from, who[2].device, SHARD_ID) == 0,
			    "of device 2's at step %llu",
			    (unsigned long long)p.one[4].sent);
	}
	/* shards are remembered from the first step on; short ones must be equal to count
	 * as copies */
	copy = c[0];
	forget(&p, NULL);
	meddle = NULL;
	r |= step(&p, &t, &q, K, s++);
	meddle = copies;
	r |= step(&p, &t, &q, K, s++);
	ok(r == 0 && repeated(&t) == 1, "after one step");
	meddle = NULL;
	center_release(&p);
	center_release(&other);
	robust_release(&t);
}

/* Devices with nearly the same data and momentum send the same direction, which turns
 * slowly and grows. */
static float apart;

static void
alike(size_t k, uint64_t step)
{
	const float size = 1 - powf(0.9f, (float)step + 1);
	size_t j;

	for (j = 0; j < N; j++)
		x[k][j] = size * (1 + 0.3f * sinf((float)j + 0.02f * (float)step) +
		    apart * (x[k][j] > 0 ? 1.0f : -1.0f));
}

TEST(devices_that_are_nearly_alike_do_not_repeat_each_other)
{
	static const float c[] = { 0.1f, 0.03f, 0.01f, 0.003f, 0.001f, 1e-5f, 0 };
	struct center p = CENTER_INIT;
	struct robust_step t = { .k = 0 };
	struct robust_rule q = { 0 };
	size_t i, wrong = 0;
	uint64_t s;
	int r = 0;

	(void)robust_parse(&q, "center", &e);
	meddle = alike;
	for (i = 0; i < sizeof(c) / sizeof(c[0]); i++) {
		apart = c[i];
		forget(&p, NULL);
		for (s = 0; s < 30; s++) {
			r |= step(&p, &t, &q, K, s);
			wrong += repeated(&t);
		}
	}
	meddle = NULL;
	ok(r == 0 && wrong == 0, "%zu copies", wrong);
	center_release(&p);
	robust_release(&t);
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
