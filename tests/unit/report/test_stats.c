/* Moments computed in pieces equal those of the whole. */
#include "base/rng.h"
#include "kern/kern.h"
#include "report/stats.h"

#include "../test.h"

enum { N = 10000 };

static float x[N];

/* The reference: two passes in long double. */
static long double
deviation(const float *v, size_t n)
{
	long double mean = 0, m2 = 0;
	size_t i;

	for (i = 0; i < n; i++)
		mean += (long double)v[i];
	mean /= (long double)n;
	for (i = 0; i < n; i++)
		m2 += ((long double)v[i] - mean) * ((long double)v[i] - mean);
	return sqrtl(m2 / (long double)n);
}

static void
test_pieces(float shift, const char *what)
{
	const struct kern *k = kern_list()[0];
	struct stats m = STATS_INIT;
	uint32_t r[4];
	size_t i, n;
	double want, got;

	for (i = 0; i < N; i++) {
		rng_block(3, 0, 0, (uint32_t)i, r);
		x[i] = shift + rng_unit(r[0]);
	}
	for (i = 0; i < N; i += n) {
		n = 1 + i % 97;
		n = n > N - i ? N - i : n;
		stats_add(&m, k, x + i, n);
	}
	want = (double)deviation(x, N);
	got = stats_std(&m);
	ok(m.n == N && fabs(got - want) <= 1e-12 * want, "%s: %.17g, %.17g",
	    what, got, want);
}

TEST(test_special)
{
	static const float v[] = { 3, NAN, -7, INFINITY, 0, -INFINITY, -0.0f };
	const struct kern *k = kern_list()[0];
	struct stats m = STATS_INIT, none = STATS_INIT;

	stats_add(&m, k, v, 7);
	ok(m.n == 4 && m.nonzero == 2 && m.nan == 1 && m.inf == 2,
	    "values that are not finite are counted separately");
	ok(m.min == -7 && m.max == 3 && m.max_abs == 7 && m.mean == -1 &&
	    m.sumsq == 58, "and not in the sums");
	stats_zeros(&m, 4);
	ok(m.n == 8 && m.nonzero == 2 && m.mean == -0.5 && m.max == 3 &&
	    m.sumsq == 58, "zeros count");
	ok(m.m2 == 56, "m2: 58 - 8 * 0.25 = %g", m.m2);
	memset(&m, 0, sizeof(m));
	stats_add(&m, k, v + 3, 1);
	ok(m.n == 0 && m.min == 0 && m.max == 0 && stats_std(&m) == 0,
	    "nothing finite: all zero");
	stats_add(&m, k, v, 1);
	stats_merge(&m, &none);
	ok(m.n == 1 && m.min == 3 && m.max == 3 && m.mean == 3 && m.m2 == 0,
	    "one value");
}

TEST(test_around)
{
	test_pieces(0, "around a half");
	test_pieces(1024, "around a thousand");
	test_pieces(-65536, "around minus 2^16");
}
