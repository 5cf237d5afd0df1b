/*
 * TCQ compared with ECQ: bits at the same error, and the distance to Shannon's bound; and
 * every value decodes as coded.
 */
#include "../tap.h"
#include "base/bytes.h"
#include "base/err.h"
#include "base/rng.h"
#include "codec/codec.h"
#include "kern/kern.h"

enum { N = 65536, COLS = 512 };

static float x[N], y[N], shown[N];
static struct buf out;

static double
normal(uint32_t key, uint32_t i)
{
	uint32_t r[4];

	rng_block(31, 0, key, i, r);
	return sqrt(-2 * log((r[0] + 1.0) / 4294967297.0)) *
	    cos(6.283185307179586 * r[1] / 4294967296.0);
}

struct result {
	double bits, nmse;	/* bits per value */
};

static int
run(uint32_t codec, double step, uint32_t cols, size_t n, struct result *r)
{
	struct codec_plan p = { codec, 0, (float)step };
	struct codec_ctx ctx = { 1, 2, 3, cols, 0 };
	struct err e = ERR_INIT;
	double d = 0, s = 0, t;
	uint8_t param;
	size_t i;

	out.n = 0;
	if (codec_encode_after(&p, &ctx, NULL, x, n, NULL, &out, &param, shown,
	    &e) < 0 || codec_decode(p.codec, param, &ctx, out.p, out.n, y, n,
	    &e) < 0) {
		(void)printf("# %s\n", ERR_MSG(&e));
		return -1;
	}
	for (i = 0; i < n; i++) {
		t = (double)x[i] - (double)y[i];
		d += t * t;
		s += (double)x[i] * (double)x[i];
	}
	r->bits = 8.0 * (double)out.n / (double)n;
	r->nmse = d / s;
	return memcmp(shown, y, 4 * n) == 0 ? 0 : -1;
}

/* Find the step that takes `bits' per value, or has this error. */
static int
at(uint32_t codec, double bits, double nmse, uint32_t cols, struct result *r)
{
	double lo = 1e-6, hi = 1e3, step;
	int i;

	for (i = 0; i < 24; i++) {
		step = sqrt(lo * hi);
		if (run(codec, step, cols, N, r) < 0)
			return -1;
		if (nmse > 0 ? r->nmse < nmse : r->bits > bits)
			lo = step;
		else
			hi = step;
	}
	return 0;
}

static void
beside_ecq(double bits, uint32_t cols, double percent, const char *what)
{
	struct result ecq, tcq;
	double saved;

	if (!ok(at(CODEC_ECQ, bits, 0, cols, &ecq) == 0 &&
	    at(CODEC_TCQ, 0, ecq.nmse, cols, &tcq) == 0, "%s, %g bit", what,
	    bits))
		return;
	saved = 100 * (1 - tcq.bits / ecq.bits);
	ok(saved > percent, "%s: %.3f bit where ecq takes %.3f, NMSE %.4f: "
	    "%.1f %% less, above %g", what, tcq.bits, ecq.bits, ecq.nmse, saved,
	    percent);
}

TEST(test_normal)
{
	struct result r;
	double gap;
	size_t i;

	for (i = 0; i < N; i++)
		x[i] = (float)(1e-3 * normal(1, (uint32_t)i));
	beside_ecq(0.3, COLS, 1, "normal");
	beside_ecq(0.62, COLS, 5, "normal");
	beside_ecq(1.28, COLS, 7, "normal");
	beside_ecq(2, COLS, 5, "normal");
	beside_ecq(4, COLS, 2, "normal");
	if (ok(at(CODEC_TCQ, 1.28, 0, COLS, &r) == 0, "1.28 bit")) {
		gap = r.bits - 0.5 * log2(1 / r.nmse);
		ok(gap < 0.16, "normal, %.3f bit: NMSE %.4g, %.3f bit over "
		    "Shannon's bound", r.bits, r.nmse, gap);
	}
}

/* Rows and columns of different scales, as in a matrix's gradient. */
TEST(test_matrix)
{
	size_t i;

	for (i = 0; i < N; i++)
		x[i] = (float)(normal(2, (uint32_t)i) *
		    exp(normal(3, (uint32_t)i / COLS) +
		    normal(4, (uint32_t)i % COLS)));
	beside_ecq(0.62, COLS, 4, "a matrix");
	beside_ecq(1.28, COLS, 5, "a matrix");
}

/* Sizes around the number of lanes, with and without rows, and values of every kind: kept
 * values equal decoded ones, and no error exceeds the largest cell. */
TEST(test_sizes)
{
	static const double step[] = { 3, 0.7, 0.05, 1e-4, 1e-7 };
	static const uint32_t cols[] = { 1, 7, 20, 100 };
	unsigned bad = 0, far = 0, all = 0, c, s;
	struct result r;
	size_t n, i;
	double off;

	for (n = 1; n <= 40; n++)
		for (s = 0; s < 5; s++)
			for (c = 0; c < 4; c++, all++) {
				for (i = 0; i < n; i++)
					x[i] = (float)(normal(5, (uint32_t)i) *
					    (i % 13 == 0 ? 1e4 : i % 5 != 0));
				bad += run(CODEC_TCQ, step[s], cols[c], n, &r) < 0;
				for (i = 0; i < n; i++) {
					off = fabs((double)x[i] - (double)y[i]);
					if (off > 4 * step[s] + 1e-6 *
					    fabs((double)x[i]))
						far++;
				}
			}
	ok(bad == 0 && far == 0, "%u codes of 1 to 40 values: %u fail, %u "
	    "values are far off", all, bad, far);
}

int
main(void)
{
	run_tests();
	buf_release(&out);
	return done_testing();
}
