/*
 * ECQ compared with its bounds: Shannon's for normal values, the order-0 entropy of its
 * symbols, and the savings if rows and columns have different scales.
 */
#include "kern/kern_ecq.h"
#include "../../entropy.h"
#include "rate.h"

enum { N = TRIP_N, COLS = 512 };

static struct trip t = { .ctx = { 1, 2, 3, COLS, 0 } };

/* Return the ideal adaptive code length (entropy.h) of the decoded values, in bits per value. */
static double
bound(void)
{
	static float y[N];

	memcpy(y, t.y, sizeof(y));
	return entropy(y, N) / (double)N;
}

static int
run(double step, struct rate *r)
{
	return rate_of(&t, CODEC_ECQ, step, N, r);
}

static int
at_bits(double bits, struct rate *r)
{
	return rate_find(&t, CODEC_ECQ, bits, 0, r);
}

TEST(test_normal)
{
	static const double rate[] = { 0.1, 0.25, 0.5, 1, 2, 3, 4 };
	struct rate r;
	double gap;
	size_t i;

	rate_gauss(&t, 1, 1e-3);
	for (i = 0; i < 7; i++) {
		if (!ok(at_bits(rate[i], &r) == 0, "%g bit", rate[i]))
			continue;
		gap = r.bits - 0.5 * log2(1 / r.nmse);
		ok(gap < 0.28, "normal, %.3f bit: NMSE %.4g, %.3f bit over "
		    "Shannon's bound", r.bits, r.nmse, gap);
		ok(r.bits < 1.01 * bound(), "%.2f %% over the entropy",
		    100 * (r.bits / bound() - 1));
	}
}

/* A matrix's gradient, whose rows and columns differ in scale, takes less than its order-0
 * entropy. */
TEST(test_matrix)
{
	struct rate with, without;
	double least;

	rate_matrix(&t, COLS, 2, (const double[]){ 1, 1 });
	ok(at_bits(0.5, &with) == 0, "with columns");
	least = bound();
	t.ctx.cols = 1;
	ok(at_bits(0.5, &without) == 0, "and without");
	t.ctx.cols = COLS;
	ok(with.bits < 0.85 * least, "a matrix takes %.1f %% less than its entropy",
	    100 * (1 - with.bits / least));
	ok(with.nmse < 0.85 * without.nmse, "NMSE %.4f, without columns %.4f",
	    with.nmse, without.nmse);
}

/* Columns whose scales differ by factors of thousands: the coder must not start small
 * columns at the mean of all values. */
TEST(test_columns)
{
	struct rate r;

	rate_matrix(&t, COLS, 5, (const double[]){ 0, 3 });
	ok(at_bits(3, &r) == 0, "unlike columns");
	ok(r.bits < 0.80 * bound(), "unlike columns take %.1f %% less than "
	    "their entropy", 100 * (1 - r.bits / bound()));
}

TEST(test_small)
{
	struct rate r;
	int good;
	size_t i;

	rate_gauss(&t, 1, 1e-3);
	ok(run(0.1, &r) == 0 && t.body.n == 0, "all values in the dead zone: an empty body");
	t.x[77] = 3e38f;
	good = run(0.1, &r) == 0 && t.y[77] == 3e38f;
	ok(good && t.body.n < 80, "one huge value is exact, %zu bytes", t.body.n);
	t.x[78] = -1e38f;
	good = run(1e-3, &r) == 0 && t.y[78] == -1e38f;
	ok(good && fabsf(t.y[100] - t.x[100]) < 1e-3f && t.body.n < N * 22 / 80,
	    "two huge values among many: the others keep their bits, %zu bytes", t.body.n);
	rate_gauss(&t, 5, 1e20);
	ok(run(1e-9, &r) == 0 && t.body.n == 3 + 4 * N && r.nmse == 0,
	    "a step far too small: values are stored exactly");
	memset(t.x, 0, sizeof(t.x));
	ok(run(1e-9, &r) == 0 && t.body.n == 0, "zeros: an empty body");
	for (i = 0; i < N; i++)
		t.x[i] = -0.3f;
	ok(run(1e-2, &r) == 0 && t.body.n == 4 && r.nmse == 0,
	    "equal values: the body has one value");
	for (i = 0; i < N; i++)
		t.x[i] = i / 4096 % 4 == 3 ? 1.0f : 0.0f;
	good = run(0.5, &r) == 0 && r.nmse == 0;
	ok(good && t.body.n < N / 4 / 8 + 450,
	    "stripes that are there or not, but for the sign: %zu bytes",
	    t.body.n);
}

/* Compare the tables' initial probabilities with the rule in ace-stream(5). */
TEST(test_table)
{
	double u, v;
	int c, bad = 0;

	for (c = 0; c < KERN_ECQ_CONTEXTS; c++) {
		u = exp2(c / 2.0 - 39 / 4.0);
		v = u + sqrt(u) / 8;
		bad += kern_ecq_some[c] != (uint16_t)lrint(65536 * v / (1 + v));
	}
	ok(bad == 0, "offsets of the tables");
}

/* Requantising without decoding gives the same bits, signs of zeros included. */
TEST(test_again)
{
	static const double step[] = { 30, 4, 1, 0.1, 0.001, 1e-5 };
	static const size_t n[] = { N, 5001, 2049, 333, 17, 3, 1 };
	static float z[N];
	struct codec_plan p;
	unsigned wrong = 0, failed = 0, all = 0;
	size_t i, j, k;
	uint8_t param;

	t.ctx.cols = 96;
	t.ctx.offset = 5;
	for (k = 0; k < 4; k++) {
		for (i = 0; i < N; i++)
			t.x[i] = k == 3 ? -2.5f : (float)(normal(31, 0, 7, (uint32_t)i) *
			    (k == 0 ? 1 : exp(normal(31, 0, 8, (uint32_t)i / 96))));
		t.x[2] = k == 2 ? -3e9f : t.x[2];	/* beyond the range of the quantiser */
		for (i = 0; i < 6; i++)
			for (j = 0; j < 7; j++, all++) {
				p = (struct codec_plan){ CODEC_ECQ, 0,
				    (float)step[i] };
				t.body.n = 0;
				memset(t.y, 255, sizeof(t.y));
				memset(z, 255, sizeof(z));
				failed += codec_encode(&p, &t.ctx, t.x, n[j], &t.body,
				    &param, NULL) < 0 || codec_decode(CODEC_ECQ,
				    param, &t.ctx, t.body.p, t.body.n, t.y, n[j], NULL) < 0 ||
				    codec_again(&p, &t.ctx, t.x, NULL, param, t.body.p,
				    t.body.n, z, n[j], NULL) < 0;
				wrong += memcmp(t.y, z, sizeof(t.y)) != 0;
			}
	}
	ok(failed == 0 && wrong == 0, "%u codes: what they say is known without "
	    "decoding (%u failed, %u differ)", all, failed, wrong);
}
