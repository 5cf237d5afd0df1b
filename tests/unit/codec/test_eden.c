/*
 * eden: the quantiser from its definition, the published errors, and that the
 * rotation is one.
 */
#include "codec/rotate.h"
#include "kern/kern.h"
#include "trip.h"

enum { N = TRIP_N };

static struct trip t = { .ctx = { 5, 6, 7, 256, 0 } };

static double
density(double v)
{
	return 2 * exp(-v * v / 2) / sqrt(6.283185307179586);
}

/* Lloyd's iteration for |N(0,1)|: a level is the mean of its cell, a border
 * the middle of two levels; D the error that is left. */
static double
lloyd(double *c, unsigned levels)
{
	double b[9], mass, d = 1;
	unsigned i, k;

	for (i = 0; i < levels; i++)
		c[i] = (i + 0.5) * 3 / levels;
	for (k = 0; k < 20000; k++) {
		b[0] = 0;
		b[levels] = 40;
		for (i = 1; i < levels; i++)
			b[i] = (c[i - 1] + c[i]) / 2;
		for (i = 0, d = 1; i < levels; i++) {
			mass = erf(b[i + 1] / sqrt(2)) - erf(b[i] / sqrt(2));
			c[i] = (density(b[i]) - density(b[i + 1])) / mass;
			d -= c[i] * c[i] * mass;
		}
	}
	return d;
}

/* EDEN's own figures for Gaussian data, b = 1 to 4: D / (1 - D) and D. */
TEST(test_published)
{
	static const double want[] = { .36338, .11748, .03454, .00950 };
	char spec[16], mse[16];
	double c[8], d, a, b;
	size_t i, len;

	trip_gauss(&t, 1, N, 1e-3);
	for (i = 0; i < 4; i++) {
		d = lloyd(c, 1u << i);
		(void)snprintf(spec, sizeof(spec), "eden:%zu", i + 1);
		(void)snprintf(mse, sizeof(mse), "eden:%zu:mse", i + 1);
		len = trip(&t, spec, N);
		a = trip_nmse(&t, N);
		(void)trip(&t, mse, N);
		b = trip_nmse(&t, N);
		ok(fabs(d - want[i]) < 1e-5 &&
		    fabs(a / (d / (1 - d)) - 1) < 0.015 &&
		    fabs(b / d - 1) < 0.015 && len == 8 + (i + 1) * N / 8,
		    "%s: NMSE %.4f, smallest %.4f, %zu bytes", spec, a, b, len);
	}
}

/* A rotation of one value is a sign, so a body of one shows the table. */
TEST(test_levels)
{
	double c[8], s;
	unsigned bits, j, good;
	unsigned char p[9] = { 0 };
	float v;

	for (bits = 1; bits <= 4; bits++) {
		(void)lloyd(c, 1u << (bits - 1));
		good = 1;
		for (j = 0; j < 1u << (bits - 1); j++) {
			bytes_set16(p, (uint16_t)(bits * 4096));
			bytes_set32(p + 4, 0x3f800000);
			p[8] = (unsigned char)(2 * j);
			good &= codec_decode(CODEC_EDEN, 0, &t.ctx, p, 9, &v, 1,
			    NULL) == 0;
			s = fabs((double)v);
			good &= fabs(s / c[j] - 1) < 1e-7;
		}
		ok((int)good, "%u bits: the levels are Lloyd and Max's", bits);
	}
}

static void
test_unbiased(const char *spec, size_t n)
{
	size_t i;

	for (i = 0; i < n; i++)		/* heavy tails */
		t.x[i] = (float)(trip_normal(3, (uint32_t)i) *
		    exp(trip_normal(4, (uint32_t)i)));
	trip_unbiased(&t, spec, n, 400);
}

/* Lengths that are no power of two: exact bits, the same error. */
TEST(test_odd)
{
	static const size_t size[] = { 40000, 49000, 65535, 33000, 777, 1025 };
	size_t i, j, len;
	double e;

	for (i = 0; i < N; i++)		/* the energy is in the tail */
		t.x[i] = (float)(trip_normal(1, (uint32_t)i) *
		    (i % 1000 < 10 ? 1000 : 1e-3));
	for (j = 0; j < sizeof(size) / sizeof(size[0]); j++) {
		len = trip(&t, "eden:2:mse", size[j]);
		e = trip_nmse(&t, size[j]);
		/* of many values the one that was published, in both parts */
		ok((size[j] > 32768 ? fabs(e / 0.11748 - 1) < 0.04 : e < 0.15 &&
		    e > 0.09) && len == 12 + (size[j] + 3) / 4,
		    "%zu values, spikes: NMSE %.4f, %zu bytes", size[j], e,
		    len);
	}
}

TEST(test_fractions)
{
	static const char *const spec[] = {
		"eden:0.1:mse", "eden:0.5:mse", "eden:1:mse", "eden:1.3:mse",
		"eden:2:mse", "eden:2.75:mse", "eden:3:mse", "eden:3.999:mse"
	};
	static const double bits[] = { .1, .5, 1, 1.3, 2, 2.75, 3, 3.999 };
	static const double d[] = { 1, .36338, .11748, .03454, .0095 };
	double want, e, f;
	size_t i, len, lo;

	trip_gauss(&t, 9, N, 1);
	for (i = 0; i < 8; i++) {
		len = trip(&t, spec[i], N);
		e = trip_nmse(&t, N);
		lo = (size_t)bits[i];
		f = bits[i] - (double)lo;
		want = lo == 4 ? d[4] : (1 - f) * d[lo] + f * d[lo + 1];
		ok(fabs(e / want - 1) < 0.03 &&
		    fabs((double)len - bits[i] * N / 8) < 20,
		    "%s: NMSE %.4f (%.4f), %zu bytes", spec[i], e, want, len);
	}
}

TEST(test_rotation)
{
	static const size_t size[] = { 1, 2, 3, 5, 64, 100, 4097, 65536 };
	size_t i, j;
	double a, b, far;

	for (j = 0; j < sizeof(size) / sizeof(size[0]); j++) {
		size_t n = size[j];

		a = b = far = 0;
		trip_gauss(&t, 11, n, 1);
		rotate_there(&t.ctx, t.y, t.x, n, 2);
		for (i = 0; i < n; i++) {
			a += (double)t.x[i] * (double)t.x[i];
			b += (double)t.y[i] * (double)t.y[i];
		}
		rotate_back(&t.ctx, t.y, n, 0.5);
		for (i = 0; i < n; i++)
			far = fmax(far, fabs((double)t.x[i] - (double)t.y[i]));
		ok(fabs(b / a / 4 - 1) < 1e-5 && far < 1e-5,
		    "a rotation of %zu values keeps the norm and comes back",
		    n);
	}
}

/* A group of 2^k values is rotated by the transform as rotate.c defines it, bit
 * for bit: signs, then one stage after another. */
TEST(test_stages)
{
	static float x[N];
	uint32_t bits[4];
	size_t n, h, i, bad = 0;
	double s;
	float a;

	for (n = 1; n <= 16384; n *= 2) {
		trip_gauss(&t, 13, n, 1);
		s = 2 * (1 / sqrt((double)n));
		for (i = 0; i < n; i++) {
			if (i % 128 == 0)
				rng_block(t.ctx.seed, t.ctx.step, t.ctx.group,
				    (uint32_t)(i / 128), bits);
			x[i] = (float)((double)t.x[i] *
			    (bits[i % 128 / 32] >> i % 32 & 1 ? -s : s));
		}
		for (h = 1; h < n; h *= 2)
			for (i = 0; i < n; i++) {
				if ((i & h) != 0)
					continue;
				a = x[i] - x[i + h];
				x[i] += x[i + h];
				x[i + h] = a;
			}
		rotate_there(&t.ctx, t.y, t.x, n, 2);
		bad += memcmp(t.y, x, n * sizeof(*x)) != 0;
	}
	ok(bad == 0, "the rotation is signs and the stages in their order");
}

TEST(test_edges)
{
	size_t i;

	t.x[0] = -3.25f;
	ok(trip(&t, "eden:1", 1) == 9 && fabsf(t.y[0] + 3.25f) < 1e-6f,
	    "one value is exact");
	memset(t.x, 0, sizeof(t.x));
	ok(trip(&t, "eden:3", 1000) == 0 && t.y[999] == 0, "zeros are no bytes");
	for (i = 0; i < N; i++)
		t.x[i] = 3e38f;
	(void)trip(&t, "eden:4", N);
	ok(isfinite(t.y[0]) && t.y[0] > 2e38f, "huge values stay finite");
	for (i = 0; i < N; i++)
		t.x[i] = bytes_f32((uint32_t)(i & 63));
	(void)trip(&t, "eden:4:mse", N);
	ok(trip_nmse(&t, N) < 0.02, "subnormal values: NMSE %.4f", trip_nmse(&t, N));
	for (i = 0; i < 96; i++)	/* of which a rotation has the first */
		t.x[i] = i < 64 ? 1e-41f * (float)(i + 50) : 1;
	(void)trip(&t, "eden:2:mse", 96);
	ok(trip_nmse(&t, 96) < 0.3, "a part that is nothing beside the largest: "
	    "NMSE %.4f", trip_nmse(&t, 96));
	memset(t.x, 0, sizeof(t.x));
	t.x[777] = 1;
	(void)trip(&t, "eden:1", N);
	ok(trip_nmse(&t, N) < 1e-6, "one spike is exact: all magnitudes are equal");
}

TEST(test_lies)
{
	unsigned char p[32] = { 0 };
	float v[16];

	bytes_set16(p, 4096);
	bytes_set32(p + 4, 0x3f800000);
	ok(codec_decode(CODEC_EDEN, 0, &t.ctx, p, 10, v, 16, NULL) == 0,
	    "sixteen bits are sixteen values");
	ok(trip_refused(&t, CODEC_EDEN, 0, p, 9, 16) &&
	    trip_refused(&t, CODEC_EDEN, 0, p, 11, 16),
	    "a byte less, a byte more");
	bytes_set16(p, 0);
	ok(trip_refused(&t, CODEC_EDEN, 0, p, 8, 16),
	    "no bits");
	bytes_set16(p, 16385);
	ok(trip_refused(&t, CODEC_EDEN, 0, p, 18, 16),
	    "more than four bits");
	bytes_set16(p, 4096);
	bytes_set32(p + 4, 0xbf800000);
	ok(trip_refused(&t, CODEC_EDEN, 0, p, 10, 16),
	    "a negative scale");
	bytes_set32(p + 4, 0x7fc00000);
	ok(trip_refused(&t, CODEC_EDEN, 0, p, 10, 16),
	    "a scale that is no number");
	bytes_set32(p + 4, 0x3f800000);
	p[9] = 0x80;
	ok(trip_refused(&t, CODEC_EDEN, 0, p, 10, 15),
	    "padding that is not zero");
	bytes_set16(p + 2, 300);
	ok(trip_refused(&t, CODEC_EDEN, 0, p, 10, 16),
	    "an exponent out of range");
}

int
main(void)
{
	run_tests();
	test_unbiased("eden:1", 4096);
	test_unbiased("eden:0.5", 3000);
	test_unbiased("eden:2.5", 1000);
	run_tests();
	buf_release(&t.body);
	return done_testing();
}
