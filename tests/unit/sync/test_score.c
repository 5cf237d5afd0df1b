#include "../test.h"
#include "base/err.h"
#include "base/detmath.h"
#include "sync/score.h"

TEST(elem)
{
	double x, bad = 0;

	for (x = -40; x <= 40; x += 0.37)
		bad = fmax(bad, fabs(detmath_exp(x) / exp(x) - 1));
	for (x = 1e-30; x < 1e30; x *= 3.7)
		bad = fmax(bad, fabs(detmath_log(x) - log(x)) /
		    fmax(1, fabs(log(x))));
	ok(bad < 1e-14, "exp and log agree with libm's (%g)", bad);
	ok(detmath_log(1) == 0 && detmath_exp(0) == 1 && detmath_sigmoid(0) == 0.5 &&
	    detmath_exp(-1000) == 0, "exact where exact is expected");
}

static struct stat_group
stat_of(float rms, float mean)
{
	struct stat_group s;

	memset(&s, 0, sizeof(s));
	s.n = 100;
	s.sumsq = 100 * rms * rms;
	s.sumabs = 80 * rms;
	s.sum = 100 * mean;
	return s;
}

static int
close_to(double a, double b)
{
	return fabs(a - b) <= 2e-6 * fmax(1, fabs(b));
}

static struct score *
make_as(enum score_form form, size_t n)
{
	struct score_place p[40];
	struct score *s = NULL;
	size_t i;

	for (i = 0; i < n; i++) {
		p[i].depth = n > 1 ? (double)i / (double)(n - 1) : 0;
		p[i].params = 1000;
		p[i].field = 10;
	}
	(void)score_new(&s, form, p, n, NULL);
	return s;
}

static struct score *
make(size_t n)
{
	return make_as(SCORE_PAPER, n);
}

TEST(edges)
{
	struct score *s = make(4);
	struct stat_group st = stat_of(0, 0);
	float one;
	size_t i;

	for (i = 0; i < 4; i++)
		score_observe(s, i, &st);
	score_scale(s);
	for (i = 0; i < 4; i++)
		one = score_of(s, i);
	ok(one > 0 && one < 1, "all zeros: still inside (0,1)");
	for (i = 0; i < 3; i++) {
		st = stat_of(1, 0);
		score_observe(s, i, &st);
	}
	score_scale(s);
	ok(fabs((double)score_of(s, 0) - 0.5) < 1e-6, "equal groups: 0.5");
	ok(score_of(s, 3) < 0.27f, "a group without energy is least");
	s->all.w[0] = 8;
	s->all.w[1] = 8;
	s->alpha = 1;
	ok(score_of(s, 0) < 1, "large weights do not reach 1");
	score_free(s);
	s = make(1);
	st = stat_of(3, 1);
	score_observe(s, 0, &st);
	score_scale(s);
	ok(score_of(s, 0) == 0.5f, "one group alone: 0.5");
	score_free(s);
}

TEST(history)
{
	struct score *a = make(5), *b = make(5);
	struct stat_group st;
	float col[5], all[SCORE_ALL], x, y;
	unsigned c;
	size_t i, t;
	int same = 1, r = 0;
	struct err e = ERR_INIT;

	for (t = 0; t < 3; t++) {
		for (i = 0; i < 5; i++) {
			st = stat_of((float)(1 + (i * 7 + t) % 5), 0.3f);
			score_observe(a, i, &st);
			score_observe(b, i, &st);
		}
		score_scale(a);
		score_scale(b);
		/* b is saved and loaded after every shard */
		for (c = 0; c < SCORE_COLUMNS; c++) {
			score_get_column(b, c, col);
			r |= score_put_column(b, c, col, &e);
		}
		score_get_all(b, all);
		r |= score_put_all(b, all, &e);
		for (i = 0; i < 5; i++) {
			x = score_of(a, i);
			y = score_of(b, i);
			same &= memcmp(&x, &y, sizeof(x)) == 0;
		}
	}
	ok(r == 0 && same, "kept in memory or saved each time: the same bits");
	ok(all[SCORE_ALL - 1] == 0, "room left in the globals");
	col[2] = -1;
	ok(score_put_column(a, 1, col, &e) == -ERR_DATA,
	    "a negative average is refused");
	all[0] = INFINITY;
	ok(score_put_all(a, all, NULL) == -ERR_DATA,
	    "an infinite weight is refused");
	score_get_all(a, all);
	for (r = 0, i = 0; i < SCORE_ALL; i++) {
		x = all[i];
		all[i] = -1;
		r += score_put_all(a, all, NULL) == -ERR_DATA;
		all[i] = x;
	}
	ok(r == 4, "of four numbers, two deviations and two counts, none is below "
	    "0: %d", r);
	score_free(a);
	score_free(b);
}

/* The importance is the trainer's second moment over the largest one, to a power. */
TEST(told)
{
	struct err e;
	struct score *s = make_as(SCORE_MOMENT, 4);
	const struct stat_group loud = { .n = 1, .sumsq = 4, .sumabs = 2 };
	const float energy[4] = { 1e-4f, 1.6e-3f, 0, 1e-15f };
	const float none[4] = { 0, 0, 0, 0 }, bad[4] = { 1, -1, 1, 1 };
	const float odd[4] = { 1, NAN, 1, 1 };

	score_observe(s, 0, &loud);
	score_scale(s);
	ok(score_of(s, 0) == 1 && score_of(s, 3) == 1,
	    "equal weights without second moments, whatever the energy");
	ok(score_tell(s, energy, &e) == 0 && close_to((double)score_of(s, 0), 0.5) &&
	    close_to((double)score_of(s, 1), 1), "power 1/4: the fourth root of the share");
	ok(score_of(s, 2) == 1e-6f, "a second moment of 0 has the least weight");
	ok(score_tell(s, bad, &e) == -ERR_DATA &&
	    score_tell(s, odd, &e) == -ERR_DATA && close_to((double)score_of(s, 0), 0.5),
	    "negative second moments and NaN are refused");
	ok(score_tell(s, none, &e) == 0 && score_of(s, 2) == 1,
	    "all second moments 0: equal weights");
	s->power = 1;
	ok(score_tell(s, energy, &e) == 0 &&
	    close_to((double)score_of(s, 0), 1. / 16) && score_of(s, 3) == 1e-6f,
	    "power 1: the share, at least 1e-6");
	s->power = 0;
	ok(score_tell(s, energy, &e) == 0 && score_of(s, 0) == 1 && score_of(s, 2) == 1,
	    "power 0: equal weights");
	score_free(s);
}

/* The history is a moving average of the mean magnitude, the mean square and the mean. */
TEST(averages)
{
	struct score *s = make(1);
	const struct stat_group seen[] = { stat_of(2, 0.5f), stat_of(4, -1) };
	const struct score_group *h = &s->group[0];
	const double d = 0.2;

	score_observe(s, 0, &seen[0]);
	score_observe(s, 0, &seen[1]);
	ok(close_to((double)h->m1, d * 1.6 + (1 - d) * 3.2) &&
	    close_to((double)h->m2, d * 4 + (1 - d) * 16) &&
	    close_to((double)h->mean, d * 0.5 - (1 - d)), "averages");
	score_free(s);
}

enum { GROUPS = 5 };

/* Compute the z-scores of a column by their definition. */
static void
standard(const double x[GROUPS], double z[GROUPS])
{
	double mean = 0, var = 0;
	int i;

	for (i = 0; i < GROUPS; i++)
		mean += x[i] / (double)GROUPS;
	for (i = 0; i < GROUPS; i++)
		var += (x[i] - mean) * (x[i] - mean) / (double)GROUPS;
	for (i = 0; i < GROUPS; i++)
		z[i] = (x[i] - mean) / sqrt(var);
}

/* Return scores of five groups, each feature in another order; set z and p to the features in
 * equations (3) and (4) (sync/score.h). The caller frees the scores. */
static struct score *
mixed(double z[2][GROUPS], double p[3][GROUPS])
{
	static const double rms[] = { 1, 3, 2, 9, 0.5 }, off[] = { 0.9, 1, 1.9, 0, 0 },
	    abs1[] = { 1, 2, 2, 1, 0.1 }, params[] = { 7, 1000, 50, 3, 400 },
	    field[] = { 9, 9, 2, 70, 5 };
	struct score_place place[GROUPS];
	struct score *s = NULL;
	double x[4][GROUPS];
	size_t i;

	for (i = 0; i < GROUPS; i++) {
		place[i] = (struct score_place){ (double)i / (GROUPS - 1),
		    params[i], field[i] };
		x[0][i] = log(abs1[i]);
		x[1][i] = log(rms[i] * rms[i] - off[i] * off[i]);
		x[2][i] = log(params[i]);
		x[3][i] = log(field[i]);
		p[0][i] = 2 * place[i].depth - 1;
	}
	standard(x[0], z[0]);
	standard(x[1], z[1]);
	standard(x[2], p[1]);
	standard(x[3], p[2]);
	(void)score_new(&s, SCORE_PAPER, place, GROUPS, NULL);
	for (i = 0; i < GROUPS; i++) {
		const struct stat_group st = { .n = 10,
		    .sumsq = (float)(10 * rms[i] * rms[i]),
		    .sumabs = (float)(10 * abs1[i]), .sum = (float)(10 * off[i]) };

		score_observe(s, i, &st);
	}
	score_scale(s);
	return s;
}

#define sigmoid(x) (1 / (1 + exp(-(x))))

/* Set *t and *v to both branches of group i, by weights w and u, whose constants are last. */
static void
branch(const double w[3], const double u[4], double z[2][GROUPS],
    double p[3][GROUPS], size_t i, double *t, double *v)
{
	*t = sigmoid(w[0] * z[0][i] + w[1] * z[1][i] + w[2]);
	*v = sigmoid(u[0] * p[0][i] + u[1] * p[1][i] + u[2] * p[2][i] + u[3]);
}

TEST(equations)
{
	static const double w[2][3] = { { 1, 0.5, 0 }, { 0.3, -0.7, 0.2 } },
	    u[2][4] = { { 0, -0.25, 0, 0 }, { -0.4, 0.6, 0.9, -0.1 } };
	double z[2][GROUPS], p[3][GROUPS], t, v;
	struct score *s = mixed(z, p);
	size_t i, k;
	int good;

	s->alpha = 0.25;
	for (k = 0; k < 2; k++) {
		s->all.worth[1] = k == 0 ? 0 : 0.1f;
		for (i = 0; k == 1 && i < 3; i++)
			s->all.w[i] = (float)w[1][i];
		for (i = 0; k == 1 && i < 4; i++)
			s->all.u[i] = (float)u[1][i];
		for (good = 1, i = 0; i < GROUPS; i++) {
			branch(w[k], u[k], z, p, i, &t, &v);
			good &= close_to((double)score_of(s, i),
			    0.25 * t + 0.75 * v);
		}
		ok(good, "the importance by its %s weights", k == 0 ? "first" : "learnt");
	}
	score_free(s);
}

/* Learn as score.h defines it: take four gradient steps of w and u on the mean of
 * (y - I)^2 / 2. */
static void
lesson(double w[3], double u[4], double z[2][GROUPS],
    double p[3][GROUPS], const double y[GROUPS], double alpha, double rate)
{
	double gw[3], gu[4], t, v, d;
	size_t i, j;
	int step;

	for (step = 0; step < 4; step++) {
		memset(gw, 0, sizeof(gw));
		memset(gu, 0, sizeof(gu));
		for (i = 0; i < GROUPS; i++) {
			branch(w, u, z, p, i, &t, &v);
			d = y[i] - alpha * t - (1 - alpha) * v;
			for (j = 0; j < 4; j++) {
				if (j < 3)
					gw[j] += d * alpha * t * (1 - t) *
					    (j < 2 ? z[j][i] : 1) / (double)GROUPS;
				gu[j] += d * (1 - alpha) * v * (1 - v) *
				    (j < 3 ? p[j][i] : 1) / (double)GROUPS;
			}
		}
		for (j = 0; j < 4; j++) {
			if (j < 3)
				w[j] += rate * gw[j];
			u[j] += rate * gu[j];
		}
	}
}

static double
correlation(const double x[GROUPS], const double y[GROUPS])
{
	double a[GROUPS], b[GROUPS];

	standard(x, a);
	standard(y, b);
	return (a[0] * b[0] + a[1] * b[1] + a[2] * b[2] + a[3] * b[3] +
	    a[4] * b[4]) / (double)GROUPS;
}

TEST(one_lesson)
{
	static const float benefit[GROUPS] = { 3, 0.5f, 40, 1, 7 };
	const float other[GROUPS] = { 1, 2, 3, 4, 5 };
	double z[2][GROUPS], p[3][GROUPS], y[GROUPS], w[3], u[4], l[GROUPS];
	struct score *s = mixed(z, p);
	double x[GROUPS], first, second;
	size_t i;
	int good = 1;

	for (i = 0; i < GROUPS; i++)
		l[i] = log((double)benefit[i]);
	standard(l, y);
	for (i = 0; i < 4; i++) {
		if (i < 3)
			w[i] = (double)s->all.w[i];
		u[i] = (double)s->all.u[i];
	}
	s->alpha = 0.3;
	for (i = 0; i < GROUPS; i++) {
		y[i] = sigmoid(y[i]);
		x[i] = (double)score_of(s, i);
		l[i] = log((double)other[i]);
	}
	lesson(w, u, z, p, y, 0.3, 4);
	ok(score_learn(s, benefit, 4, NULL) == 0, "a lesson");
	for (i = 0; i < 4; i++)
		good &= (i == 3 || close_to((double)s->all.w[i], w[i])) &&
		    close_to((double)s->all.u[i], u[i]);
	first = correlation(x, y);
	ok(good, "four steps down the gradient");
	ok(fabs((double)s->all.worth[0] - first) < 1e-5 &&
	    fabs((double)s->all.worth[1] - first) < 1e-5,
	    "the correlation of the first weights with the benefit: %.4f", first);
	ok(s->all.lessons == 1 && s->all.shards == 1 && s->group[2].benefit == 40,
	    "a lesson is counted");
	ok(score_learn(s, other, 4, NULL) == 0 && s->all.lessons == 2 &&
	    close_to((double)s->group[2].benefit, 0.2 * 40 +
	    0.8 * 3), "benefits are averaged");
	standard(l, y);
	for (i = 0; i < GROUPS; i++)
		y[i] = sigmoid(y[i]);
	second = correlation(x, y);
	ok(fabs((double)s->all.worth[0] - 0.9 * first - 0.1 * second) < 1e-5 &&
	    fabs((double)s->all.worth[1] - (double)s->all.worth[0]) > 1e-5,
	    "and so is the correlation");
	score_free(s);
}

/* z-scores and weights stop at limits: one group differs from 39, and the rate is huge. */
TEST(bounds)
{
	struct score *s = make(40);
	struct stat_group st = stat_of(1, 0);
	const float none[40] = { 0 };
	float b[40] = { 0 };
	size_t i;
	int good = 1;

	for (i = 0; i < 40; i++)
		score_observe(s, i, &st);
	st = stat_of(2, 0);
	score_observe(s, 7, &st);
	score_scale(s);
	for (i = 0; i < 40; i++)
		(void)score_of(s, i);
	ok(s->group[7].z[0] == 4 && s->group[7].z[1] == 4,
	    "z-scores stop at 4");
	s->group[9].m2 = 0;
	(void)score_of(s, 9);
	ok(s->group[9].z[0] == -4 && s->group[9].z[1] == -4,
	    "a group without energy has the z-score -4");
	b[7] = 1;
	b[9] = 2;
	ok(score_learn(s, b, 1e9, NULL) == 0, "a lesson at a huge rate");
	for (i = 0; i < SCORE_TEMPORAL; i++)
		good &= fabs((double)s->all.w[i]) <= 8;
	for (i = 0; i < SCORE_STRUCTURAL; i++)
		good &= fabs((double)s->all.u[i]) <= 8;
	ok(good && (s->all.w[0] == 8 || s->all.w[0] == -8), "weights stop at 8");
	ok(score_learn(s, none, 4, NULL) == 0 && isfinite(s->all.w[0]),
	    "a lesson with benefits of 0");
	memcpy(b + 20, s->all.w, sizeof(s->all.w));
	for (i = 0; i < 2; i++) {
		b[3] = i == 0 ? -1 : NAN;
		ok(score_learn(s, b, 4, NULL) == -ERR_DATA &&
		    memcmp(b + 20, s->all.w, sizeof(s->all.w)) == 0 &&
		    s->all.lessons == 2, "a benefit of %g is refused", (double)b[3]);
	}
	score_free(s);
}

/* Averages of nonnegative values and the importance must not be negative; other columns
 * may be. */
TEST(signs)
{
	struct score *s = make(2);
	const float x[2] = { 1, -0.5f };
	unsigned c, refused = 0, right = 0;

	for (c = 0; c < SCORE_COLUMNS; c++)
		if (score_put_column(s, c, x, NULL) < 0) {
			refused++;
			right += strstr("m1 m2 score benefit",
			    score_columns[c]) != NULL;
		}
	ok(refused == 4 && right == 4, "negative values are refused in four columns");
	score_free(s);
}
