/*
 * Who hides in the noise of a step is seen over many, by what the state remembers.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/err.h"
#include "base/rng.h"
#include "base/statedir.h"
#include "format/schema.h"
#include "mean/past.h"

#include "../tap.h"

enum { N = 1024, K = 5, BAD = 2 };

static struct err e;
static struct schema model = SCHEMA_INIT;
static struct shard who[K + 1];
static float x[K + 1][N], center[N];

/* What device k of the model g = 1, 1, ... sends: it, or against it, and noise twice
 * as long. */
static void
sends(size_t k, uint64_t step, float sign)
{
	uint32_t r[N];
	size_t j;

	rng_fill(k + 1, step, 0, 0, r, N / 4);
	for (j = 0; j < N; j++)
		x[k][j] = sign + (r[j] >> 31 ? 2.0f : -2.0f);
}

/* A step of k devices; scales are in t->one. */
static int
step(struct past *p, struct robust_step *t, const struct robust_rule *q, size_t k,
    uint64_t at)
{
	size_t i, j;
	int r = robust_step(t, k, &e);

	who[0].step = at;
	if (r == 0)
		r = past_begin(p, &who[0], &model, k, &e);
	if (r == 0 && p->known && (r = past_group(p, 0, N, &e)) == 0)
		past_add(p, k, center);
	for (i = 0; i < k && r == 0; i++) {
		sends(i, at, i < BAD ? -1 : 1);
		t->one[i].weight = t->one[i].norm2 = 1;
		for (j = 0; j < N; j++)
			t->one[i].far2 += (double)((x[i][j] - center[j]) *
			    (x[i][j] - center[j]));
		past_device(p, i, &who[i]);
		if (p->known)
			past_add(p, i, x[i]);
	}
	if (r == 0 && (r = robust_judge(q, t, &e)) == 0)
		r = past_judge(p, t, &e);
	return r == 0 ? past_commit(p, &who[0], &e) : r;
}

static void
forget(struct past *p, const struct statedir *d)
{
	past_release(p);
	p->dir = d;
	p->sync = IO_SYNC_NONE;
}

TEST(who_is_bad)
{
	struct past p = PAST_INIT;
	struct robust_step t = { .k = 0 };
	struct robust_rule q = { 0 };
	unsigned char id[SHARD_ID];
	uint64_t s;
	int r = 0;

	(void)robust_parse(&q, "center", &e);
	for (s = 0; s < 2; s++)
		r |= step(&p, &t, &q, K, s);
	ok(r == 0 && t.one[0].scale > 0.5 && t.one[4].scale > 0.5,
	    "after two steps nobody looks bad: %g, %g", t.one[0].scale,
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
	ok(r == 0 && t.one[K].scale < 0.7, "who is new counts less: %g",
	    t.one[K].scale);
	for (; s < 60; s++)
		r |= step(&p, &t, &q, K + 1, s);
	ok(r == 0 && t.one[K].scale > 0.75, "until it is known: %g",
	    t.one[K].scale);
	ok(p.last.n == K + 2, "a row each");
	for (; s < 75; s++)
		r |= step(&p, &t, &q, K, s);
	ok(r == 0 && p.last.n == K + 2, "who was away is still known");
	for (; s < 110; s++)
		r |= step(&p, &t, &q, K, s);
	ok(r == 0 && p.last.n == K + 1, "and not for ever");
	/* one without a name leaves no row, however often it comes */
	memcpy(id, who[K].device, SHARD_ID);
	memset(who[K].device, 0, SHARD_ID);
	for (; s < 120; s++)
		r |= step(&p, &t, &q, K + 1, s);
	ok(r == 0 && p.last.n == K + 1 && t.one[K].scale < 0.7,
	    "who has no name stays new: %g", t.one[K].scale);
	memcpy(who[K].device, id, SHARD_ID);
	past_release(&p);
	robust_release(&t);
}

TEST(files)
{
	char dir[] = "/tmp/ace-past.XXXXXX", path[64];
	struct statedir d = STATE_INIT;
	struct past p = PAST_INIT, again = PAST_INIT;
	struct robust_step t = { .k = 0 };
	struct robust_rule q = { 0 };
	unsigned char was[sizeof(struct past_row) * (K + 1)];
	double scale;
	uint64_t s;
	FILE *f;
	int r = 0;

	if (mkdtemp(dir) == NULL)
		return;
	d.dir = dir;
	(void)robust_parse(&q, "center", &e);
	forget(&p, &d);
	for (s = 0; s < 12; s++)
		r |= step(&p, &t, &q, K, s);
	scale = t.one[0].scale;
	memcpy(was, p.last.row, sizeof(was));
	ok(r == 0 && p.last.n == K + 1, "twelve steps");
	/* the last one again, by somebody else, and by one who has only files */
	forget(&p, &d);
	r = step(&p, &t, &q, K, s - 1);
	ok(r == 0 && t.one[0].scale <= scale && t.one[0].scale >= scale &&
	    memcmp(was, p.last.row, sizeof(was)) == 0,
	    "a step made again is the same: %g, %g", t.one[0].scale, scale);
	forget(&again, &d);
	r |= step(&again, &t, &q, K, s);
	scale = t.one[0].scale;
	r |= step(&p, &t, &q, K, s);
	ok(r == 0 && t.one[0].scale <= scale && t.one[0].scale >= scale,
	    "and who goes on is as who was started again");
	model.id[0] ^= 1;
	forget(&p, &d);
	r = past_begin(&p, &who[0], &model, K, &e);
	ok(r == 0 && !p.known && p.last.n == 1, "of another model nothing is known");
	model.id[0] ^= 1;
	(void)snprintf(path, sizeof(path), "%s/past.0", dir);
	if ((f = fopen(path, "r+")) != NULL && fseek(f, 900, SEEK_SET) == 0) {
		(void)fputs("damage", f);
		(void)fclose(f);
	}
	(void)snprintf(path, sizeof(path), "%s/past.1", dir);
	if ((f = fopen(path, "r+")) != NULL && fseek(f, 900, SEEK_SET) == 0) {
		(void)fputs("damage", f);
		(void)fclose(f);
	}
	forget(&p, &d);
	who[0].step = s + 1;
	ok(past_begin(&p, &who[0], &model, K, &e) == -ERR_DATA, "damage is seen: %s",
	    ERR_MSG(&e));
	(void)unlink(path);
	(void)snprintf(path, sizeof(path), "%s/past.0", dir);
	(void)unlink(path);
	(void)rmdir(dir);
	past_release(&p);
	past_release(&again);
	robust_release(&t);
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
	for (i = 0; i < N; i++)
		center[i] = 1;
	run_tests();
	for (i = 0; i <= K; i++)
		shard_release(&who[i]);
	schema_release(&model);
	return done_testing();
}
