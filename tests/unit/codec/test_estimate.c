
#include "../test.h"
#include "base/err.h"
#include "base/rng.h"
#include "estimated.h"

enum { N = 65536 };

static float x[N], y[N];
static const struct codec_ctx shape = { 1, 1, 0, 256, 0 };

static double
uniform(uint32_t i, unsigned k)
{
	uint32_t r[4];

	rng_block(1, k, 0, i, r);
	return ((double)r[0] + 0.5) / 4294967296.0;
}

static double
normal(uint32_t i, unsigned k)
{
	return sqrt(-2 * log(uniform(i, 2 * k))) *
	    cos(6.283185307179586 * uniform(i, 2 * k + 1));
}

enum shape { GAUSS, LAPLACE, HEAVY, SPARSE, SHAPES };
static const char *const names[] = { "gauss", "laplace", "heavy", "sparse" };

static void
fill(enum shape s)
{
	uint32_t i;
	double v;

	for (i = 0; i < N; i++) {
		v = normal(i, 1);
		if (s == LAPLACE)
			v = v < 0 ? log(uniform(i, 9)) : -log(uniform(i, 9));
		else if (s == HEAVY)
			v *= exp(1.5 * normal(i, 2));
		else if (s == SPARSE)
			v = uniform(i, 7) < 0.9 ? 0 : v;
		x[i] = (float)(1e-3 * v);
	}
}

/* Code x; set *rate to the bytes and *error to the squared error. Return < 0 on errors. */
static int
code(const struct codec_plan *p, int64_t *rate, double *error)
{
	struct buf b = BUF_INIT;
	struct err e = ERR_INIT;
	uint8_t param;
	size_t i;
	int r;

	*error = 0;
	if ((r = codec_encode(p, &shape, x, N, &b, &param, &e)) < 0 ||
	    (r = codec_decode(p->codec, param, &shape, b.p, b.n, y, N, &e)) < 0)
		goto out;
	*rate = (int64_t)b.n;
	for (i = 0; i < N; i++)
		*error += ((double)x[i] - (double)y[i]) *
		    ((double)x[i] - (double)y[i]);
out:
	buf_release(&b);
	return r;
}

/* Compare estimates with the coded group; off: the largest allowed difference of the
 * errors, relative to the true error. */
static void
one(enum shape s, const char *name, double off)
{
	struct stat_group st;
	static struct estimate m;
	struct codec_plan p;
	double error, want;
	int64_t rate, high, near;

	fill(s);
	if (codec_parse(name, &p, NULL) < 0 || stat_group_of(x, N, &st) != 0) {
		ok(0, "%s", name);
		return;
	}
	if (code(&p, &rate, &error) < 0) {
		ok(0, "%s", name);
		return;
	}
	estimate_init(&m, &st, &shape);
	want = estimate_error(&m, &p);
	high = estimate_bytes(&m, &p);
	ok(fabs(want - error) <= off * error, "%s %s: error %.4g, is %.4g",
	    names[s], name, want, error);
	/* adaptive codecs pay for learning and gain from context; if hardly anything is left
	 * to send, the search of tcq may drop that, too */
	near = p.codec == CODEC_TCQ ? 640 : 320;
	ok(codec_fixed(&p) ? high == rate : p.codec == CODEC_ECQ ||
	    p.codec == CODEC_TCQ ?
	    fabs((double)(high - rate)) < 0.05 * (double)rate + (double)near :
	    high >= rate && (double)high < (p.codec == CODEC_TOPK ? 1.07 :
	    1.03) * (double)rate + 16,
	    "%s %s: rate %ld, is %ld", names[s], name, (long)high, (long)rate);
}

TEST(edges)
{
	static const char *const all[] = { "none", "f32", "f16", "q8", "sign",
	    "topk:0.01", "qsgd:4" };
	struct stat_group st;
	static struct estimate m;
	struct codec_plan p;
	size_t i;
	int good = 1;

	memset(x, 0, sizeof(x));
	(void)stat_group_of(x, N, &st);
	estimate_init(&m, &st, NULL);
	for (i = 0; i < sizeof(all) / sizeof(*all); i++)
		good &= codec_parse(all[i], &p, NULL) == 0 &&
		    estimate_error(&m, &p) < 1e-20 &&
		    estimate_bytes(&m, &p) >= 0;
	ok(good, "all zeros: error 0 with every codec");
	x[7] = 3e38f;
	(void)stat_group_of(x, N, &st);
	estimate_init(&m, &st, NULL);
	(void)codec_parse("f16", &p, NULL);
	ok(isinf(estimate_error(&m, &p)), "f16 cannot hold 3e38: infinite error");
	(void)codec_parse("topk:0.01", &p, NULL);
	ok(estimate_error(&m, &p) < 1e-6 * (double)st.sumsq,
	    "one outlier: topk keeps it, error 0");
	for (i = 0; i < N; i++)
		x[i] = 0.25f;
	(void)stat_group_of(x, N, &st);
	estimate_init(&m, &st, NULL);
	(void)codec_parse("sign", &p, NULL);
	ok(estimate_error(&m, &p) < 1e-9 * (double)st.sumsq,
	    "equal magnitudes: sign keeps them, error 0");
	(void)codec_parse("exact", &p, NULL);
	ok(estimate_bytes(&m, &p) == (int64_t)codec_bound(&p, N),
	    "a codec without an estimate has its bound");
}

/* Estimates for nonzero are right at several shares of non-zero values. */
TEST(shares)
{
	static const double share[] = { 0.001, 0.05, 0.3, 0.5, 0.61, 0.69, 0.71,
	    0.9, 0.999 };
	static struct estimate m;
	struct stat_group st;
	struct codec_plan p;
	double error;
	int64_t rate, estimated;
	uint32_t i;
	size_t j;

	(void)codec_parse("nonzero", &p, NULL);
	for (j = 0; j < sizeof(share) / sizeof(*share); j++) {
		for (i = 0; i < N; i++)
			x[i] = uniform(i, 5) < share[j] ? 1.5f : 0;
		(void)stat_group_of(x, N, &st);
		estimate_init(&m, &st, &shape);
		estimated = estimate_bytes(&m, &p);
		ok(code(&p, &rate, &error) == 0 && estimated >= rate &&
		    (double)estimated < 1.01 * (double)rate + 64,
		    "nonzero, %g of them: %ld estimated, is %ld", share[j],
		    (long)estimated, (long)rate);
	}
}

/* Return the estimated error divided by the true one, or -1 if coding fails. */
static double
off(const char *name)
{
	static struct estimate m;
	struct stat_group st;
	struct codec_plan p;
	double error;
	int64_t rate;

	if (codec_parse(name, &p, NULL) < 0 || stat_group_of(x, N, &st) != 0 ||
	    code(&p, &rate, &error) < 0)
		return -1;
	estimate_init(&m, &st, &shape);
	return estimate_error(&m, &p) / error;
}

/* Five values in a lower octave must not change the estimate for all others much. */
TEST(limits)
{
	uint32_t i;
	double of;

	for (i = 0; i < N; i++)
		x[i] = (float)(i < 5 ? 0.3 : 0.5 + 0.499 * uniform(i, 3));
	of = off("topk:0.5");
	ok(fabs(of - 1) < 0.2, "five values below do not make all others the "
	    "largest: error %.3f of what it is", of);
}

TEST(codecs)
{
	static const char *const steps[] = { "ecq:0.008", "ecq:0.004",
	    "ecq:0.002", "ecq:0.001", "ecq:0.0005", "ecq:0.0001",
	    "ecq:0.00001" };
	static const char *const codecs[] = { "f16", "q8", "sign", "topk:0.001",
	    "topk:0.01", "topk:0.1", "topk:0.05:q2", "topk:0.05:mag", "qsgd:4",
	    "qsgd:127", "lowrank:1", "lowrank:8", "nonzero",
	    "tcq:0.005", "tcq:0.002", "tcq:0.001", "tcq:0.0006", "tcq:0.0003",
	    "tcq:0.0001" };
	size_t i;
	int s;

	for (s = 0; s < SHAPES; s++)
		for (i = 0; i < sizeof(codecs) / sizeof(*codecs); i++)
			one((enum shape)s, codecs[i], s >= HEAVY ? 0.3 : 0.15);
	for (s = 0; s < SHAPES; s++)
		for (i = 0; i < sizeof(steps) / sizeof(*steps); i++)
			one((enum shape)s, steps[i], 0.12);
}
