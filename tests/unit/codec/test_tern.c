/*
 * tern: TernGrad's noise and error, and the ternary quantiser of least error.
 */
#include "trip.h"

static struct trip t = { .ctx = { 5, 6, 7, 256, 0 } };

/* TernGrad's variance (equation 3): the sum of |x| s - x^2, s per block of 320 values. */
static void
test_figures(void)
{
	double max, want = 0, s = 0;
	size_t i, j, len;

	trip_gauss(&t, 1, TRIP_N, 1e-3);
	for (i = 0; i < TRIP_N; i += 320) {
		max = 0;
		for (j = i; j < i + 320 && j < TRIP_N; j++)
			max = fmax(max, fabs((double)t.x[j]));
		for (j = i; j < i + 320 && j < TRIP_N; j++) {
			want += fabs((double)t.x[j]) * max -
			    (double)t.x[j] * (double)t.x[j];
			s += (double)t.x[j] * (double)t.x[j];
		}
	}
	len = trip(&t, "tern", TRIP_N);
	ok(fabs(trip_nmse(&t, TRIP_N) / (want / s) - 1) < 0.02 &&
	    len == 204 * 66 + 2 + 52,
	    "tern: NMSE %.3f, %.3f estimated; %zu bytes, 1.65 bits",
	    trip_nmse(&t, TRIP_N), want / s, len);
	/* three levels: Max 1960, table I, N = 3: 0.1902 */
	(void)trip_feedback(&t, CODEC_TERN, 0, TRIP_N);
	ok(fabs(trip_nmse(&t, TRIP_N) - 0.1902) < 0.003,
	    "tern under feedback: NMSE %.4f (0.1902)", trip_nmse(&t, TRIP_N));
}

TEST(test_noise)
{
	size_t i;

	for (i = 0; i < 16384; i++)
		t.x[i] = i % 320 == 0 ? 1 : 0.5f;
	trip_noise(&t, "tern", 16384);
}

/* Check that the random number of each value's index decides whether it becomes 0. */
TEST(test_each)
{
	enum { EACH = 3001 };
	size_t i, bad = 0;
	uint32_t r[4];
	float s;

	trip_gauss(&t, 7, EACH, 1);
	for (i = 0; i < EACH; i += 5)
		t.x[i] = i % 2 == 0 ? 0 : -0.0f;
	(void)trip(&t, "tern", EACH);
	for (i = 0; i < EACH; i++) {
		s = bytes_f32((uint32_t)bytes_le16(t.body.p + i / 320 * 66) << 16);
		rng_block(t.ctx.seed, t.ctx.step, t.ctx.group,
		    (uint32_t)i / 4, r);
		if (!((double)r[i % 4] * (double)s < fabs((double)t.x[i]) * 0x1p32))
			s = 0;
		bad += t.y[i] != (t.x[i] < 0 ? -s : s);
	}
	ok(bad == 0, "each of %d values decodes as its code says", EACH);
}

TEST(test_known)
{
	static const float x[6] = { 1, -1, 0, 0.25f, 1, -1 };
	size_t i;

	memcpy(t.x, x, sizeof(x));
	ok(trip_feedback(&t, CODEC_TERN, 0, 6) == 4 && t.body.p[0] == 0x80 &&
	    t.body.p[1] == 0x3f && t.body.p[2] == 1 + 2 * 3 + 81 &&
	    t.body.p[3] == 2, "six values by hand");
	ok(t.y[0] == 1 && t.y[1] == -1 && t.y[2] == 0 && t.y[3] == 0 &&
	    t.y[5] == -1, "six values by hand decode again");
	memset(t.x, 0, sizeof(t.x));
	ok(trip(&t, "tern", 1000) == 0 && t.y[999] == 0, "zeros take no bytes");
	t.x[500] = 0x1p-133f;
	ok(trip(&t, "tern", 1000) > 0 && t.y[500] == t.x[500] &&
	    t.y[0] == 0,
	    "one subnormal value");
	for (i = 0; i < 1000; i++)
		t.x[i] = i % 2 != 0 ? 3.4e38f : -3.4e38f;
	(void)trip_feedback(&t, CODEC_TERN, 0, 1000);
	ok(isfinite(t.y[0]) && t.y[0] < -3.3e38f, "huge values stay finite");
}

/* The scale is never rounded down, since that would bias the mean. 1.003 lies between two
 * bf16 values, nearer to the lower one. */
TEST(test_scale)
{
	size_t i, low = 0;

	for (i = 0; i < 640; i++)
		t.x[i] = 1.003f;
	(void)trip(&t, "tern", 640);
	for (i = 0; i < 640; i++)
		low += t.y[i] != 0 && t.y[i] < t.x[i];
	ok(low == 0 && t.y[0] + t.y[1] + t.y[2] > 0, "the scale is rounded up");
}

int
main(void)
{
	test_figures();
	trip_gauss(&t, 2, 3000, 1);
	trip_unbiased(&t, "tern", 3000, 400);
	run_tests();
	buf_release(&t.body);
	return done_testing();
}
