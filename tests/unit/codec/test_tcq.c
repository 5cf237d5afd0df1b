/*
 * TCQ compared with ECQ: bits at the same error, and the distance to Shannon's bound; and
 * every value decodes as coded.
 */
#include "rate.h"

enum { COLS = 512 };

static struct trip t = { .ctx = { 1, 2, 3, COLS, 0 } };

/* Check that tcq takes more than `percent' fewer bits than ecq, at the error that ecq has
 * with `bits' per value. */
static void
beside_ecq(double bits, double percent, const char *what)
{
	struct rate ecq, tcq;
	double saved;

	if (!ok(rate_find(&t, CODEC_ECQ, bits, 0, &ecq) == 0 &&
	    rate_find(&t, CODEC_TCQ, 0, ecq.nmse, &tcq) == 0, "%s, %g bit", what,
	    bits))
		return;
	saved = 100 * (1 - tcq.bits / ecq.bits);
	ok(saved > percent, "%s: %.3f bit where ecq takes %.3f, NMSE %.4f: "
	    "%.1f %% less, above %g", what, tcq.bits, ecq.bits, ecq.nmse, saved,
	    percent);
}

TEST(test_normal)
{
	static const double bits[] = { 0.3, 0.62, 1.28, 2, 4 }, saved[] = { 1, 5, 7, 5, 2 };
	struct rate r;
	double gap;
	size_t i;

	rate_gauss(&t, 1, 1e-3);
	for (i = 0; i < sizeof(bits) / sizeof(*bits); i++)
		beside_ecq(bits[i], saved[i], "normal");
	if (ok(rate_find(&t, CODEC_TCQ, 1.28, 0, &r) == 0, "1.28 bit")) {
		gap = r.bits - 0.5 * log2(1 / r.nmse);
		ok(gap < 0.16, "normal, %.3f bit: NMSE %.4g, %.3f bit over "
		    "Shannon's bound", r.bits, r.nmse, gap);
	}
}

/* tcq beats ecq also if rows and columns differ in scale, as in a matrix's gradient. */
TEST(test_matrix)
{
	rate_matrix(&t, COLS, 2, (const double[]){ 1, 1 });
	beside_ecq(0.62, 4, "a matrix");
	beside_ecq(1.28, 5, "a matrix");
}

/* 1 to 40 values, some zero and some large, in rows of several lengths: the encoder reports
 * the decoded values, and no error exceeds four steps but for rounding. */
TEST(test_sizes)
{
	static const double step[] = { 3, 0.7, 0.05, 1e-4, 1e-7 };
	static const uint32_t cols[] = { 1, 7, 20, 100 };
	unsigned bad = 0, far = 0, all = 0, c, s;
	struct rate r;
	size_t n, i;
	double off;

	for (n = 1; n <= 40; n++)
		for (s = 0; s < 5; s++)
			for (c = 0; c < 4; c++, all++) {
				for (i = 0; i < n; i++)
					t.x[i] = (float)(normal(31, 0, 5, (uint32_t)i) *
					    (i % 13 == 0 ? 1e4 : i % 5 != 0));
				t.ctx.cols = cols[c];
				bad += rate_of(&t, CODEC_TCQ, step[s], n, &r) < 0;
				for (i = 0; i < n; i++) {
					off = fabs((double)t.x[i] - (double)t.y[i]);
					if (off > 4 * step[s] + 1e-6 *
					    fabs((double)t.x[i]))
						far++;
				}
			}
	ok(bad == 0 && far == 0, "%u codes of 1 to 40 values: %u fail, %u "
	    "values are far off", all, bad, far);
}
