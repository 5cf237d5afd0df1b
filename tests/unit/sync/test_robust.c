
#include "../test.h"
#include "base/err.h"
#include "sync/robust.h"

static struct err e;

static struct robust_rule
rule(const char *s)
{
	struct robust_rule q = { 0 };

	e = (struct err)ERR_INIT;
	ok(robust_parse(&q, s, &e) == 0, "rule %s", s);
	return q;
}

TEST(parse)
{
	static const char *const bad[] = { "", "mode", "clip", "clip:", "clip:0",
	    "clip:-1", "clip:nan", "clip:1x", "clip:0x1", "trim", "trim:-1", "trim:1:2",
	    "median:1", "krum:1", "trim: 1", "trim:99999999999999999999", "mean,",
	    ",mean", "median,trim:1", "median:", "median:some", "median:nonzero",
	    "norm", "norm:0", "norm-ratio:0.5", "weight-share:0.5", "finite:1",
	    "norm-ratio:1 ,mean", "norm-ratio:0.999", "norm-running:2",
	    "center", "center:", "center:x", "center:1:2", "trim", "median:senders,trim:1",
	    "norm:1", "median:all", "median:sendersx", "norm-ratio:-1" };
	struct robust_rule q = { 0 };
	size_t i;

	for (i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		ok(robust_parse(&q, bad[i], &e) == -ERR_USAGE, "not '%s'",
		    bad[i]);
	q = rule("clip:.5");
	ok(q.clip == .5 && robust_active(&q) && !robust_elements(&q),
	    "a norm");
	q = rule("mean");
	ok(!robust_active(&q), "a mean excludes nothing");
	q = rule("norm-ratio:2,trim:1:senders,finite");
	ok(q.kind == ROBUST_TRIM && q.f == 1 && q.senders &&
	    q.max_ratio == 2 && q.finite, "a rule with all its words");
	q = rule("trim:0");
	ok(q.f == 0 && !q.senders && robust_elements(&q), "trim:0 needs all values");
	ok(robust_elements(&(struct robust_rule){ .kind = ROBUST_MEDIAN }) &&
	    robust_active(&(struct robust_rule){ .finite = 1 }) &&
	    robust_active(&(struct robust_rule){ .max_ratio = 1 }) &&
	    robust_active(&(struct robust_rule){ .kind = ROBUST_TRIM }),
	    "a median, finite, norm-ratio or trim is active");
	q = rule("norm-ratio:1");
	ok(q.kind == ROBUST_MEAN && q.max_ratio == 1 && robust_active(&q),
	    "a mean with a limit of norms");
}

TEST(center)
{
	static const double far[] = { 4, 1, 100, 9, 4 };	/* squared */
	struct robust_rule q = rule("center:2");
	struct robust_step t = { .k = 0 };
	size_t i;

	ok(q.f == 2 && robust_centered(&q) && robust_active(&q) &&
	    !robust_elements(&q), "center:2");
	(void)robust_step(&t, 5, &e);
	for (i = 0; i < 5; i++) {
		t.one[i].weight = (double)(i + 1);
		t.one[i].norm2 = 1;
		t.one[i].far2 = far[i];
	}
	ok(robust_judge(&q, &t, &e) == 0 && t.one[0].scale == 1 &&
	    t.one[1].scale == 1 && fabs(t.one[2].scale - 0.2) < 1e-12 &&
	    fabs(t.one[3].scale - 2 / 3.0) < 1e-12 && t.one[4].scale == 1,
	    "contributions beyond the median distance are clipped to it");
	ok(t.one[2].fate == ROBUST_CLIPPED && t.one[3].fate == ROBUST_COUNTS,
	    "only those more than twice as far are reported as clipped");
	ok(t.one[4].share == 3 / 5.0 && t.one[0].share == 3, "all devices have equal weight");
	q = rule("center:3");
	ok(robust_judge(&q, &t, &e) == -ERR_REFUSED, "three attackers of five are too many");
	q = rule("center:1");
	(void)robust_step(&t, 4, &e);
	for (i = 0; i < 4; i++) {
		t.one[i].weight = t.one[i].norm2 = 1;
		t.one[i].far2 = i < 2 ? 1 : 100;
	}
	ok(robust_judge(&q, &t, &e) == 0 && fabs(t.one[3].scale - 0.1) < 1e-12,
	    "the two far ones of four do not increase the distance");
	robust_release(&t);
}

/* Judge nine devices with 100 values each: `zeros' of them send only zeros, the others `nonzero'
 * values that are not 0. Return 1 if rule s accepts the step. */
static int
taken(const char *s, unsigned zeros, uint64_t nonzero)
{
	struct robust_rule q = rule(s);
	struct robust_step t = { .k = 0 };
	size_t i;
	int r;

	ok(robust_step(&t, 9, &e) == 0, "nine devices");
	for (i = 0; i < 9; i++) {
		t.one[i].weight = t.one[i].norm2 = 1;
		t.one[i].values = 100;
		t.one[i].nonzero = i < zeros ? 0 : nonzero;
	}
	r = robust_judge(&q, &t, &e);
	robust_release(&t);
	return r == 0;
}

/* A majority of the devices decides whether a step counts as sparse. */
TEST(sparse)
{
	ok(taken("median", 0, 60) && taken("median", 3, 60) &&
	    taken("trim:3", 3, 60),
	    "a third may send zeros");
	ok(taken("median", 4, 50), "so may four of nine");
	ok(!taken("median", 5, 100), "five of nine may not");
	ok(!taken("median", 0, 49) && !taken("trim:3", 0, 49),
	    "sparse shards are refused");
	ok(taken("median:senders", 9, 0), "median:senders accepts sparse shards");
}

/* Apply rule s, with its `senders' set as given, to one element of k devices; NaN: the device
 * sent nothing. */
static double
element(const char *s, int senders, const float *v, size_t k)
{
	struct robust_rule q = rule(s);
	const float *x[8];
	float tmp[8];
	double y;
	size_t i;

	q.senders = senders;
	for (i = 0; i < k; i++)
		x[i] = isnan(v[i]) ? NULL : &v[i];
	robust_combine(&q, &y, x, k, 1, tmp);
	return y;
}

TEST(elements)
{
	const float odd[] = { 5, 1e30f, -3, 2, 4 };
	const float turned[] = { 2, 4, 5, -3, 1e30f };
	const float sparse[] = { 0, 6, NAN, NAN, 4 }, lone[] = { 0, 0, 9 };

	ok(element("median", 0, odd, 5) == 4, "median of five");
	ok(element("median", 0, odd, 4) == 3.5, "median of four: the mean of 2 and 5");
	ok(element("trim:1", 0, odd, 5) == 11.0 / 3, "trimmed mean");
	ok(element("trim:2", 0, odd, 5) == 4, "trimmed to the median");
	ok(element("trim:1", 0, turned, 5) == 11.0 / 3, "in any order");
	ok(element("median", 0, sparse, 5) == 0, "median of sparse values: 0");
	ok(element("median", 1, sparse, 5) == 5,
	    "median of the two nonzero values");
	ok(element("trim:0", 1, sparse, 5) == 5 &&
	    element("trim:0", 1, lone, 3) == 9,
	    "mean of the devices that sent a value");
	ok(element("trim:1", 1, lone, 3) == 0,
	    "a value of a single device is trimmed to 0");
}

/* All orders of five contributions give the same bits. */
TEST(orders)
{
	float v[5][7], tmp[5];
	const float *x[5];
	double y[7], z[7];
	struct robust_rule q = rule("trim:1");
	size_t i, j, p;
	int same = 1;

	for (i = 0; i < 5; i++)
		for (j = 0; j < 7; j++)
			v[i][j] = j == 0 ? (i % 2 ? 0.0f : -0.0f) :
			    (float)sin((double)(i * i * 7 + j * 3)) * 1e3f;
	for (i = 0; i < 5; i++)
		x[i] = v[i];
	robust_combine(&q, y, x, 5, 7, tmp);
	for (p = 1; p < 120; p++) {
		size_t left[5] = { 0, 1, 2, 3, 4 }, n = 5, c = p;

		for (i = 0; i < 5; i++, c /= n, n--) {
			x[i] = v[left[c % n]];
			left[c % n] = left[n - 1];
		}
		robust_combine(&q, z, x, 5, 7, tmp);
		same &= memcmp(y, z, sizeof(y)) == 0;
	}
	ok(same, "all 120 orders give the same bits");
}

/* Give step t k contributions, each of one value v[i] and weight 1. */
static void
line(struct robust_step *t, const float *v, size_t k)
{
	size_t i;

	ok(robust_step(t, k, &e) == 0, "%zu contributions", k);
	for (i = 0; i < k; i++) {
		t->x[i] = &v[i];
		t->one[i].weight = 1;
		t->one[i].norm2 = (double)v[i] * (double)v[i];
		t->one[i].values = 1;
		t->one[i].nonzero = v[i] < 0 || v[i] > 0;
	}
}

/* Each outcome has a word for reports. */
TEST(words)
{
	static const struct { enum robust_fate fate; const char *why; } word[] = {
		{ ROBUST_COUNTS, "counts" }, { ROBUST_CLIPPED, "clipped" },
		{ ROBUST_BY_RATIO, "norm-ratio" },
		{ ROBUST_NONFINITE, "nonfinite" } };
	size_t i, right = 0, n = sizeof(word) / sizeof(*word);

	for (i = 0; i < n; i++)
		right += strcmp(robust_why(word[i].fate), word[i].why) == 0;
	ok(right == n, "what became of a contribution, in words");
}

static unsigned
counted(const struct robust_step *t)
{
	unsigned bits = 0;
	size_t i;

	for (i = 0; i < t->k; i++)
		bits |= (unsigned)robust_counts(&t->one[i]) << i;
	return bits;
}

static void
limits(struct robust_step *t)
{
	const float v[] = { 1, -2, 3, 40, 0 };
	struct robust_rule q = rule("clip:2.5");
	size_t i;

	line(t, v, 5);
	ok(robust_judge(&q, t, &e) == 0 && counted(t) == 31 &&
	    t->one[1].scale == 1 && t->one[2].scale == 2.5 / 3 &&
	    t->one[3].scale == 2.5 / 40 &&
	    t->one[3].fate == ROBUST_CLIPPED, "clip");
	q = rule("norm-ratio:1.4");
	line(t, v, 5);
	t->one[1].nonfinite = t->one[4].nonfinite = 1;
	ok(robust_judge(&q, t, &e) == 0 && counted(t) == 1 + 4 &&
	    t->one[3].fate == ROBUST_BY_RATIO &&
	    t->one[4].fate == ROBUST_NONFINITE,
	    "1.4 times the median of 1, 3 and 40");
	/* 1, 2, 4 and 40: of the middle two the smaller is 2 */
	q.max_ratio = 2;
	line(t, (const float[]){ 1, 2, 4, 40 }, 4);
	ok(robust_judge(&q, t, &e) == 0 && counted(t) == 1 + 2 + 4 &&
	    t->median == 2, "twice the median of four");
	q.max_ratio = 1.3;
	line(t, (const float[]){ 1, 2, 4, 40 }, 4);
	ok(robust_judge(&q, t, &e) == 0 && counted(t) == 1 + 2,
	    "1.3 times it is below 4");
	q = rule("finite");
	line(t, v, 4);
	for (i = 0; i < 4; i++)
		t->one[i].nonfinite = 1;
	ok(robust_judge(&q, t, &e) == -ERR_REFUSED && t->none, "no contribution is left");
}

/* Each rule needs a least number of contributions, and accepts values exactly at its limit. */
static void
least(struct robust_step *t)
{
	const float v[] = { 1, -2, 3, 40, 0 };
	struct robust_rule q = rule("median");

	line(t, (const float[]){ 1, 0, 0, 0 }, 4);
	ok(robust_judge(&q, t, &e) == -ERR_REFUSED, "a median of zeros");
	q = rule("trim:1");
	line(t, v, 3);
	ok(robust_judge(&q, t, &e) == 0 && counted(t) == 7,
	    "one of three is left when one is cut at each end");
	line(t, v, 2);
	ok(robust_judge(&q, t, &e) == -ERR_REFUSED, "of two none is left");
	q = rule("norm-ratio:2");
	line(t, (const float[]){ 1, 2, 4 }, 3);
	ok(robust_judge(&q, t, &e) == 0 && counted(t) == 7,
	    "exactly twice the median counts");
	q = rule("trim:2");
	line(t, v, 4);
	ok(robust_judge(&q, t, &e) == -ERR_REFUSED, "trim:2 of four leaves nothing");
}

/* With center:F all devices have the same influence, whatever their weights. */
static void
even(struct robust_step *t)
{
	struct robust_rule q = rule("center:1");

	line(t, (const float[]){ 1, 1, 1, 1 }, 4);
	t->one[0].weight = 10;
	t->one[2].weight = 97;
	t->one[3].weight = 0.1;
	t->one[3].nonfinite = 1;	/* contribution 3 and its weight do not count */
	t->one[2].share = 0.5;
	ok(robust_judge(&q, t, &e) == 0 && t->one[2].share == 0.5 * (10 / 97.0) &&
	    t->one[0].share == 1 && t->one[1].share == 10, "equal shares for all weights");
}

TEST(test_limits)
{
	struct robust_step t = { .k = 0 };

	limits(&t);
	least(&t);
	even(&t);
	robust_release(&t);
}
