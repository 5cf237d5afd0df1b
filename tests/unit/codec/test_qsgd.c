/*
 * qsgd: equation (6) of ACE-Sync, as bytes or entropy coded.
 */
#include "trip.h"

static struct trip t = { .ctx = { 5, 6, 7, 256, 0 } };

/* Check that the body takes less than `bits' per value, and the error:
 * E |x' - x|^2 = sum u^2 f (1 - f), u = norm / s, f the fraction of |x| / u. */
static void
test_figures(const char *spec, double s, double bits)
{
	double norm = 0, want = 0, u, f;
	size_t i, len;

	trip_gauss(&t, 1, TRIP_N, 1e-3);
	for (i = 0; i < TRIP_N; i++)
		norm += (double)t.x[i] * (double)t.x[i];
	u = sqrt(norm) / s;
	for (i = 0; i < TRIP_N; i++) {
		f = fabs((double)t.x[i]) / u;
		f -= floor(f);
		want += u * u * f * (1 - f) / norm;
	}
	len = trip(&t, spec, TRIP_N);
	ok(fabs(trip_nmse(&t, TRIP_N) / want - 1) < 0.06 &&
	    8.0 * (double)len / (double)TRIP_N < bits,
	    "%s: NMSE %.3f, %.3f estimated; %.3f bits", spec,
	    trip_nmse(&t, TRIP_N), want, 8.0 * (double)len / (double)TRIP_N);
}

/* Compare the length of a body with the entropy of its symbols. */
TEST(test_entropy)
{
	size_t count[64] = { 0 }, i, len;
	double h = 0, u = 0;

	trip_gauss(&t, 3, TRIP_N, 1);
	len = trip(&t, "qsgd:31", TRIP_N);
	for (i = 0; i < TRIP_N; i++)
		u += (double)t.x[i] * (double)t.x[i];
	u = sqrt(u) / 31;
	for (i = 0; i < TRIP_N; i++)
		count[31 + lrint((double)t.y[i] / u)]++;
	for (i = 0; i < 64; i++)
		if (count[i] != 0)
			h -= (double)count[i] * log2((double)count[i] / (double)TRIP_N);
	ok((double)len * 8 < h * 1.01 + 200, "qsgd:31: %zu bytes, entropy %.0f",
	    len, h / 8);
}

/* Check each value: its level is rounded up if the random number is below its fraction. */
static void
test_each(const char *spec, unsigned s)
{
	enum { EACH = 3001 };
	double unit, a;
	size_t i, bad = 0;
	uint32_t r[4];
	float norm;
	unsigned l;

	trip_gauss(&t, 5, EACH, 1);
	for (i = 0; i < EACH; i += 7)
		t.x[i] = i % 2 == 0 ? 0 : -0.0f;
	t.x[2000] = -4096;
	(void)trip(&t, spec, EACH);
	norm = bytes_f32(bytes_le32(t.body.p));
	unit = (double)norm / s;
	for (i = 0; i < EACH; i++) {
		rng_block(t.ctx.seed, t.ctx.step, t.ctx.group,
		    (uint32_t)i / 4, r);
		a = fabs((double)t.x[i]) * (1 / (double)norm) * s;
		l = a < s ? (unsigned)a : s;
		l += l < s && (double)rng_unit(r[i % 4]) < a - l;
		bad += t.y[i] != (float)((t.x[i] < 0 ? -(double)l : l) * unit);
	}
	ok(bad == 0, "%s: each of %d values decodes as its code says", spec, EACH);
}

TEST(test_all)
{
	test_figures("qsgd:16", 16, 0.5);
	test_figures("qsgd:127", 127, 1.5);
	test_each("qsgd:1", 1);
	test_each("qsgd:7", 7);
	test_each("qsgd:127", 127);
	trip_gauss(&t, 2, 300, 1);
	trip_unbiased(&t, "qsgd:7", 300, 400);
}

/* Each of the 4096 values is half a unit: 32 levels of a norm of 64. */
TEST(test_noise)
{
	size_t i;

	for (i = 0; i < 4096; i++)
		t.x[i] = 1;
	trip_noise(&t, "qsgd:32", 4096);
}

TEST(test_feedback)
{
	double unbiased;

	trip_gauss(&t, 6, TRIP_N, 1);
	(void)trip(&t, "qsgd:4", TRIP_N);
	unbiased = trip_nmse(&t, TRIP_N);
	(void)trip_feedback(&t, CODEC_QSGD, 4, TRIP_N);
	ok(trip_nmse(&t, TRIP_N) < 1 && unbiased > 1,
	    "qsgd:4 under feedback: NMSE %.4f, else %.4f", trip_nmse(&t, TRIP_N), unbiased);
}
