/* Sketches preserve the angles between updates, and devices are clustered by them. */
#include "../test.h"
#include "base/err.h"
#include "base/rng.h"
#include "sync/cluster.h"
#include "sync/sketch.h"

enum { N = 20000, GROUPS = 3 };

static float x[N];

/* Set x to a times group g's first pseudo-random direction plus b times its second. */
static void
fill(double a, double b, uint32_t g)
{
	uint32_t u[4], v[4];
	size_t i;

	for (i = 0; i < N; i++) {
		rng_block(1, 0, g, (uint32_t)i, u);
		rng_block(2, 0, g, (uint32_t)i, v);
		x[i] = (float)(a * ((double)rng_unit(u[0]) - 0.5) +
		    b * ((double)rng_unit(v[0]) - 0.5));
	}
}

static void
put(struct sketch *s, const double mix[][2], size_t k, struct err *e)
{
	uint32_t g;
	size_t i;

	for (g = 0; g < GROUPS; g++) {
		ok(sketch_group(s, g, N, e) == 0, "group %u", g);
		for (i = 0; i < k; i++) {
			fill(mix[i][0], mix[i][1], g);
			sketch_add(s, i, x);
		}
	}
}

/* The two directions are nearly orthogonal. */
TEST(test_angles)
{
	static const double mix[4][2] = { { 1, 0 }, { 0, 1 }, { 1, 1 },
	    { -2, 0 } };
	static const double want[4] = { 0, 1, 1 - 0.70710678, 2 };
	struct sketch s = { 0 };
	struct err e = ERR_INIT;
	double dist[16], worst = 0;
	size_t i;

	ok(sketch_begin(&s, 4, &e) == 0, "begin");
	put(&s, mix, 4, &e);
	cluster_cosine(s.row, 4, SKETCH_M, dist);
	for (i = 0; i < 4; i++)
		worst = fmax(worst, fabs(dist[i] - want[i]));
	ok(worst < 0.15, "angles within %.3f of the updates' own", worst);
	sketch_release(&s);
}

TEST(test_clusters)
{
	static const double mix[6][2] = { { 1, 0 }, { 0, 1 }, { 2, 0.2 },
	    { 9, 9 }, { 0.1, 3 }, { 0.5, 0 } };
	struct sketch s = { 0 };
	struct err e = ERR_INIT;
	int again;

	for (again = 0; again < 2; again++) {
		ok(sketch_begin(&s, 6, &e) == 0, "begin");
		put(&s, mix, 6, &e);
		s.of[3] = SKETCH_NONE;
		ok(sketch_judge(&s, 0.5, &e) == 0 && s.clusters == 2,
		    "two clusters");
		ok(s.of[0] == 0 && s.of[2] == 0 && s.of[5] == 0 &&
		    s.of[1] == 1 && s.of[4] == 1, "of the right devices");
		ok(s.of[3] == SKETCH_NONE, "a dropped device is in no cluster");
	}
	ok(sketch_begin(&s, 2, &e) == 0, "the next step, with two devices");
	s.of[0] = SKETCH_NONE;
	s.of[1] = SKETCH_NONE;
	ok(sketch_judge(&s, 0.5, &e) == 0 && s.clusters == 0,
	    "without counted devices there are no clusters");
	ok(sketch_begin(&s, CLUSTER_GROUP + 1, &e) == 0 &&
	    sketch_judge(&s, 0.5, &e) == -ERR_REFUSED,
	    "too many are refused: %s", ERR_MSG(&e));
	sketch_release(&s);
}
