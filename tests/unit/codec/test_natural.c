/*
 * natural: powers of two, unbiased, with the paper's variance.
 */
#include "trip.h"

static struct trip t = { .ctx = { 5, 6, 7, 256, 0 } };

static void
test_figures(void)
{
	size_t i, len;
	int power = 1, exp;
	double worst = 0;

	trip_gauss(&t, 1, TRIP_N, 1e-3);
	len = trip(&t, "natural", TRIP_N);
	/* measured .081 to .082, entropy 3.7 to 4.1 bits; 1/8 at most */
	ok(fabs(trip_nmse(&t, TRIP_N) - 0.0815) < 0.002 &&
	    8.0 * (double)len / TRIP_N < 3.7,
	    "Gaussian: NMSE %.4f, %.2f bits", trip_nmse(&t, TRIP_N),
	    8.0 * (double)len / TRIP_N);
	for (i = 0; i < TRIP_N; i++) {
		power &= fabs(frexp((double)t.y[i], &exp)) == 0.5;
		worst = fmax(worst, fabs(log2((double)t.y[i] /
		    (double)t.x[i])));
	}
	ok(power && worst < 1, "powers of two next to the values");
}

TEST(test_noise)
{
	size_t i;

	for (i = 0; i < 16384; i++)
		t.x[i] = 0.375f;
	trip_noise(&t, "natural", 16384);
}

TEST(test_known)
{
	static const float x[4] = { 4, -0.5f, 0, 2 };
	float v;
	size_t i, len;

	memcpy(t.x, x, sizeof(x));
	len = trip(&t, "natural", 4);
	ok(len == 6 && t.body.p[0] == 3 && t.body.p[1] == 0 &&
	    t.body.p[2] == 2 && t.body.p[3] == 128 + 5 && t.body.p[4] == 0 &&
	    t.body.p[5] == 3, "four values by hand");
	ok(memcmp(t.x, t.y, sizeof(x)) == 0, "powers of two are exact");
	memset(t.x, 0, sizeof(t.x));
	ok(trip(&t, "natural", 1000) == 0 && t.y[0] == 0, "zeros are no bytes");
	for (i = 0; i < 64; i++)
		t.x[i] = bytes_f32((uint32_t)i);
	(void)trip(&t, "natural", 64);
	ok(t.y[1] == t.x[1] && t.y[2] == t.x[2] && t.y[3] >= t.x[2] &&
	    t.y[3] <= t.x[4] && t.y[32] == t.x[32], "subnormal values");
	v = 0x1.fffffep127f;
	t.x[0] = v;
	t.x[1] = 0x1p-149f;
	(void)trip(&t, "natural", 2);
	ok(t.y[0] == 0x1p127f && t.y[1] == 0,
	    "the largest has no power of two above, the smallest is far below");
}

/* What a value becomes, by its number: below 2^(top - 126) that or 0; from
 * 2^(top - 125) on the number is added below the mantissa, and carries or not;
 * between these it is compared with the mantissa. */
static double
drawn(float x, int top, uint32_t noise)
{
	uint32_t u = bytes_u32(x) & 0x7fffffff;
	double a = (double)bytes_f32(u), part;
	int k;

	if (a < ldexp(1, top - 126))
		a = (double)noise * 0x1p-32 < ldexp(a, 126 - top) ?
		    ldexp(1, top - 126) : 0;
	else if (a < ldexp(1, top - 125)) {
		part = 2 * frexp(a, &k) - 1;
		a = ldexp(1, k - 1 + ((double)noise * 0x1p-32 < part));
	} else
		a = (double)bytes_f32((u + (noise >> 9)) & 0x7f800000);
	return x < 0 ? -a : a;
}

TEST(test_each)
{
	enum { EACH = 3001, MOST = 230 };
	uint32_t r[4];
	size_t i, bad = 0, low = 0;
	int top;

	for (i = 0; i < EACH; i++) {
		rng_block(3, 0, 0, (uint32_t)i, r);
		t.x[i] = bytes_f32(i % 9 == 4 ? r[0] & 0x80000000u :
		    (r[0] & 0x807fffff) | (i % 2 == 0 ? MOST - r[1] % 40 :
		    MOST - 120 - r[1] % 10) << 23);
	}
	(void)trip(&t, "natural", EACH);
	top = (int16_t)bytes_le16(t.body.p);
	for (i = 0; i < EACH; i++) {
		rng_block(t.ctx.seed, t.ctx.step, t.ctx.group,
		    (uint32_t)i / 4, r);
		low += t.x[i] != 0 && fabs((double)t.x[i]) < ldexp(1, top - 125);
		bad += (double)t.y[i] != drawn(t.x[i], top, r[i % 4]);
	}
	ok(bad == 0 && low > 100, "each of %d values as its number says, %zu of "
	    "them the least", EACH, low);
}

TEST(test_lies)
{
	unsigned char p[8] = { 1, 0, 1, 2, 3, 4, 5, 6 };

	ok(!trip_refused(&t, CODEC_NATURAL, 0, p, 8, 6), "six codes");
	ok(trip_refused(&t, CODEC_NATURAL, 0, p, 8, 5) &&
	    trip_refused(&t, CODEC_NATURAL, 0, p, 8, 7) &&
	    trip_refused(&t, CODEC_NATURAL, 0, p, 1, 6) &&
	    trip_refused(&t, CODEC_NATURAL, 0, p, 2, 6), "and nothing else");
	p[4] = 128;
	ok(trip_refused(&t, CODEC_NATURAL, 0, p, 8, 6), "a negative zero");
	p[4] = 0;
	p[0] = 128;
	ok(trip_refused(&t, CODEC_NATURAL, 0, p, 8, 6), "2^128");
}

int
main(void)
{
	test_figures();
	trip_gauss(&t, 2, 3000, 1);
	trip_unbiased(&t, "natural", 3000, 400);
	run_tests();
	buf_release(&t.body);
	return done_testing();
}
