/*
 * Every codec has the properties that its row states.
 */
#include <float.h>

#include "trip.h"
#include "estimated.h"

enum { N = 20000 };

/* d dense, s sparse, f of a fixed size, k has a rate, a depends on the previous body, o: the
 * encoder chooses the parameter */
static const struct {
	const char *spec, *is;
} list[] = {
	{ "f32", "df" }, { "f16", "df" }, { "exact", "d" },
	{ "q8", "df" }, { "sign", "f" },
	{ "topk:0.01", "sko" }, { "topk:0.1:q2", "sko" },
	{ "chunk:64/4096", "sko" },
	{ "qsgd:1", "" }, { "qsgd:4", "" }, { "qsgd:127", "" },
	{ "ecq:0.001", "sk" }, { "ecq:1e-05", "sk" }, { "tcq:0.001", "sk" },
	{ "lowrank:4", "fa" },
	{ "nonzero", "" }
};
enum { LIST = sizeof(list) / sizeof(*list) };

static struct trip t = { .ctx = { .cols = 100 } };

static int
is(const char *what, char c)
{
	return strchr(what, c) != NULL;
}

/* Set t.x to normal values or, if heavy is 1, to values with heavier tails. */
static void
fill(uint32_t seed, int heavy)
{
	size_t i;

	trip_gauss(&t, seed, N, 1e-3);
	for (i = 0; heavy && i < N; i++)
		t.x[i] *= expf((float)normal(seed + 9, 0, 0, (uint32_t)i));
}

static void
test_is(const char *spec, const char *what)
{
	struct codec_plan p;
	size_t len, i;
	int heavy, good = 1;
	float top;

	(void)codec_parse(spec, &p, NULL);
	ok(codec_dense(&p) == is(what, 'd') &&
	    codec_sparse(&p) == is(what, 's') &&
	    codec_fixed(&p) == is(what, 'f') &&
	    codec_rate(&p) == is(what, 'k') &&
	    codec_after(&p) == is(what, 'a') &&
	    (codec_param(&p) < 0) == is(what, 'o'), "%s says '%s'", spec, what);
	for (heavy = 0; heavy < 2; heavy++) {
		fill(3, heavy);
		len = trip(&t, spec, N);
		good &= codec_param(&p) < 0 || codec_param(&p) == t.param;
		good &= !codec_fixed(&p) || len == codec_size(&p, &t.ctx, N);
		good &= !codec_dense(&p) || (double)len > 0.9 * (double)N;
		for (top = 0, i = 0; i < N; i++)
			top = fmaxf(top, fabsf(t.x[i]));
		for (i = 0; codec_dense(&p) && i < N; i++)
			good &= fabsf(t.x[i] - t.y[i]) <= 0.01f * top;
	}
	ok(good, "%s: size, parameter and error are as that says", spec);
}

/* Return 1 if the plan as text is parsed to the same plan. */
static int
legal(const struct codec_plan *p)
{
	struct codec_plan q;
	char s[CODEC_TEXT];

	return codec_parse(codec_format(p, s), &q, NULL) == 0 &&
	    q.codec == p->codec && q.param == p->param && q.arg == p->arg;
}

static size_t
coded(const struct codec_plan *p)
{
	struct err e = ERR_INIT;

	t.body.n = 0;
	if (codec_encode(p, &t.ctx, t.x, N, &t.body, &t.param, &e) < 0)
		(void)printf("# %s\n", ERR_MSG(&e));
	return t.body.n;
}

/* A coarser plan takes fewer bytes, coded and estimated; its estimated error is larger. */
static void
test_turn(const char *spec)
{
	static const double far[] = { 1e-300, 1e-30, 1e-3, 1e3, 1e30, 1e300 };
	static struct estimate m;
	struct codec_plan p, q;
	struct stat_group st;
	int64_t rate[2];
	double error[2];
	size_t len[2], i;
	int good = 1;

	(void)codec_parse(spec, &p, NULL);
	fill(4, 0);
	(void)stat_group_of(t.x, N, &st);
	estimate_init(&m, &st, &t.ctx);
	if (!codec_rate(&p)) {
		q = codec_turn(&p, 2);
		ok(q.arg == p.arg && q.param == p.param && q.codec == p.codec,
		    "%s has no rate", spec);
		return;
	}
	for (i = 0; i < 2; i++) {
		q = codec_turn(&p, i == 0 ? 0.5 : 1.5);
		len[i] = coded(&q);
		estimate_coding(&m, &q, &rate[i], &error[i]);
		good &= legal(&q) && estimate_bytes(&m, &q) == rate[i] &&
		    estimate_error(&m, &q) == error[i];
	}
	ok(good && len[0] > len[1] && rate[0] > rate[1] && error[0] < error[1],
	    "%s: finer takes %zu bytes (%ld estimated), coarser %zu (%ld)", spec,
	    len[0], (long)rate[0], len[1], (long)rate[1]);
	q = codec_turn(&p, 1);
	good = q.arg == p.arg;
	for (i = 0; i < sizeof(far) / sizeof(*far); i++) {
		q = codec_turn(&p, far[i]);
		good &= legal(&q) && (far[i] < 1 ? rate[0] : 0) <=
		    estimate_bytes(&m, &q);
	}
	ok(good, "%s: changes of rate end at the codec's limits", spec);
}

/* Plans made coarser by a factor, up to the ends of their parameter's range. */
TEST(test_turned)
{
	static const struct {
		const char *from;
		double f;
		const char *to;
	} turns[] = {
		{ "topk:0.5", 2, "topk:0.25" }, { "topk:0.5:mag", 0.25, "topk:1:mag" },
		{ "topk:0.5", 1e39, "topk:1.1754944e-38" },
		{ "ecq:0.5", 2, "ecq:1" }, { "ecq:1", 1e31, "ecq:1e+30" },
		{ "ecq:1", 1e-39, "ecq:1.1754944e-38" },
		{ "chunk:64/4096", 3, "chunk:21/4096" },
		{ "chunk:64/4096:q2", 0.75, "chunk:85/4096:q2" },
		{ "chunk:64/4096", 1e9, "chunk:1/4096" },
		{ "chunk:64/4096", 1e-9, "chunk:4096/4096" },
		{ "q8", 2, "q8" }
	};
	struct codec_plan p;
	char s[CODEC_TEXT];
	size_t i;

	for (i = 0; i < sizeof(turns) / sizeof(*turns); i++) {
		(void)codec_parse(turns[i].from, &p, NULL);
		p = codec_turn(&p, turns[i].f);
		ok(strcmp(codec_format(&p, s), turns[i].to) == 0,
		    "%s made coarser by %g is %s", turns[i].from, turns[i].f,
		    s);
	}
}

/* A group that is not sent takes no bytes, and its error is all of its energy. */
TEST(test_none)
{
	static struct estimate m;
	struct codec_plan p;
	struct stat_group st;

	(void)codec_parse("none", &p, NULL);
	fill(5, 0);
	(void)stat_group_of(t.x, N, &st);
	estimate_init(&m, &st, &t.ctx);
	ok(codec_fixed(&p) && !codec_dense(&p) && !codec_rate(&p) &&
	    estimate_bytes(&m, &p) == 0 && estimate_error(&m, &p) == m.sumsq &&
	    codec_size(&p, &t.ctx, N) == 0 && codec_bound(&p, N) == 0,
	    "none: no bytes, all energy lost");
	(void)codec_parse("lowrank:4", &p, NULL);
	ok(codec_size(&p, &t.ctx, 0) == 0 && codec_size(&p, &t.ctx, N) ==
	    2 + 2 * 4 * (100 + N / 100), "no values: no bytes");
}

/* Check the estimates of an empty group, of a group of zeros, and of a group of one value. */
static void
test_edges(const char *spec)
{
	static const float one = -3e-5f;
	static struct estimate m;
	struct codec_plan p;
	struct stat_group st = { 0 };
	int64_t rate[3];
	double error[3];
	int i, good = 1;

	(void)codec_parse(spec, &p, NULL);
	for (i = 0; i < 3; i++) {
		st.n = i == 1 ? N : 0;
		if (i == 2)
			(void)stat_group_of(&one, 1, &st);
		estimate_init(&m, &st, NULL);
		estimate_coding(&m, &p, &rate[i], &error[i]);
		good &= rate[i] >= -1 && error[i] >= 0 && (i == 2 ||
		    error[i] <= 1e-15);
	}
	/* sending 0 has the error x^2; allow estimates of 2.2 times as much */
	ok(good && error[2] <= 2.2 * (double)one * (double)one,
	    "%s: nothing, zeros, one value: %ld, %ld, %ld bytes", spec,
	    (long)rate[0], (long)rate[1], (long)rate[2]);
}

/* Fifty steps of error feedback: the code must keep some of each step's input, so that
 * the residual stays bounded. The least share kept is measured. */
static void
test_feedback(const char *spec)
{
	static float left[N], g[N];
	struct codec_plan p, c;
	double all, lost, grad = 0, most = 0, kept = 1;
	size_t i;
	int k;

	(void)codec_parse(spec, &p, NULL);
	c = codec_contracting(&p);
	trip_gauss(&t, 77, N, 1e-3);
	for (i = 0; i < N; i++) {
		left[i] = 0;
		g[i] = t.x[i];
		grad += (double)g[i] * (double)g[i];
	}
	for (k = 0; k < 50; k++) {
		for (all = 0, i = 0; i < N; i++) {
			t.x[i] = g[i] + left[i];
			all += (double)t.x[i] * (double)t.x[i];
		}
		t.ctx.step = (uint64_t)k;
		t.body.n = 0;
		if (codec_encode_after(&c, &t.ctx, NULL, t.x, N, NULL, &t.body,
		    &t.param, t.y, NULL) < 0)
			break;
		for (lost = 0, i = 0; i < N; i++) {
			left[i] = t.x[i] - t.y[i];
			lost += (double)left[i] * (double)left[i];
		}
		kept = fmin(kept, 1 - lost / all);
		most = fmax(most, lost / grad);
	}
	/* the residual e has |e| <= sqrt(1 - kept) (|g| + |e|), g: the gradient */
	ok(k == 50 && kept > 0 && sqrt(most) * (1 - sqrt(1 - kept)) <=
	    1.0001 * sqrt(1 - kept), "%s: under feedback %.3g of the gradient "
	    "is left at most, %.3g kept at least", spec, sqrt(most), kept);
}

TEST(test_all)
{
	struct codec_plan p;
	size_t i;
	unsigned c, all = 0;

	for (i = 0; i < LIST; i++) {
		test_is(list[i].spec, list[i].is);
		test_turn(list[i].spec);
		test_edges(list[i].spec);
		test_feedback(list[i].spec);
		if (codec_parse(list[i].spec, &p, NULL) == 0)
			all |= 1u << p.codec;
	}
	for (c = 0; c < CODEC_MAX && (all >> c & 1) ==
	    (codec_name(c) != NULL); c++)
		;
	ok(c == CODEC_MAX, "all codecs were tested");
	p = (struct codec_plan){ 77, 0, 0 };
	ok(!codec_dense(&p) && !codec_sparse(&p) && !codec_fixed(&p) &&
	    !codec_rate(&p) && !codec_after(&p) && codec_param(&p) == -1 &&
	    codec_turn(&p, 2).arg == 0, "an unknown codec number has no description");
}
