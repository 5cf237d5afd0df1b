#include <math.h>
#include <string.h>

#include "../tap.h"
#include "base/err.h"
#include "base/elem.h"
#include "sync/score.h"

static void
elem(void)
{
	double x, bad = 0;

	for (x = -40; x <= 40; x += 0.37)
		bad = fmax(bad, fabs(elem_exp(x) / exp(x) - 1));
	for (x = 1e-30; x < 1e30; x *= 3.7)
		bad = fmax(bad, fabs(elem_log(x) - log(x)) /
		    fmax(1, fabs(log(x))));
	ok(bad < 1e-14, "exp and log agree with libm's (%g)", bad);
	ok(elem_log(1) == 0 && elem_exp(0) == 1 && elem_sigmoid(0) == 0.5 &&
	    elem_exp(-1000) == 0, "exact where exact is expected");
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

static struct score *
make_as(enum score_form form, size_t n)
{
	struct score_place p[8];
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

/* One group jumps: the mean of logarithms is in between, and what lessons say
 * counts once it is better. */
static void
level(void)
{
	struct score *s = make_as(SCORE_LEVEL, 3);
	struct stat_group st;
	float b[3] = { 3, 2, 1 };
	size_t i;
	int t;

	for (i = 0; i < 3; i++) {
		st = stat_of((float)exp((double)i), 0);
		score_observe(s, i, &st);
	}
	st = stat_of((float)exp(-1), 0);
	score_observe(s, 2, &st);
	ok(fabs((double)s->group[2].level - (0.3 * 4 - 0.7 * 2)) < 1e-5,
	    "the average of logarithms: %g", (double)s->group[2].level);
	score_scale(s);
	ok(score_of(s, 1) > score_of(s, 0) && score_of(s, 0) > score_of(s, 2),
	    "its order is that of the importance");
	for (t = 0; t < 100; t++) {
		for (i = 0; i < 3; i++)
			(void)score_of(s, i);
		if (score_learn(s, b, 4, NULL) < 0)
			break;
	}
	ok(t == 100 && s->all.worth[1] > s->all.worth[0] &&
	    score_of(s, 0) > score_of(s, 1) && score_of(s, 1) > score_of(s, 2),
	    "learnt: %.3f, first %.3f", (double)s->all.worth[1],
	    (double)s->all.worth[0]);
	for (b[0] = 1, b[1] = 3, b[2] = 0.5, t = 0; t < 2; t++) {
		for (i = 0; i < 3; i++)
			(void)score_of(s, i);
		(void)score_learn(s, b, 0, NULL);
	}
	for (; t < 40 && s->all.worth[1] > s->all.worth[0]; t++)
		(void)score_learn(s, b, 0, NULL);
	ok(t < 40 && score_of(s, 1) > score_of(s, 0),
	    "and forgotten when it is no longer better");
	score_free(s);
}

static void
branches(void)
{
	struct score *s = make(3);
	struct stat_group st;
	double z = sqrt(1.5), want;
	float got[3];
	size_t i;

	/* m1 in ratio 1:e:e^2 and no mean: log m1 = c, c+1, c+2, so
	 * z1 = -sqrt(1.5), 0, sqrt(1.5), and z2 the same */
	for (i = 0; i < 3; i++) {
		st = stat_of((float)exp((double)i), 0);
		score_observe(s, i, &st);
	}
	score_scale(s);
	for (i = 0; i < 3; i++)
		got[i] = score_of(s, i);
	want = 0.5 / (1 + exp(-1.5 * z)) + 0.25;
	ok(fabs((double)got[2] - want) < 1e-6, "I = alpha A_temp + (1-alpha) A_struct"
	    ": %.6f is %.6f", (double)got[2], want);
	ok(fabs((double)got[1] - 0.5) < 1e-6 && fabs((double)got[0] + (double)got[2] - 1) < 1e-6,
	    "and symmetric about 0.5");
	st = stat_of(2, 0);
	score_observe(s, 0, &st);
	ok(fabs((double)s->group[0].m2 - (0.2 * 1 + 0.8 * 4)) < 1e-6,
	    "the second observation moves the average by four fifths");
	score_free(s);
}

static void
edges(void)
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
	s->all.w[2] = 8;
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

static void
learn(void)
{
	struct score *s = make(8);
	struct stat_group st;
	struct err e = ERR_INIT;
	float b[8];
	size_t i;
	int t;

	/* the benefit grows with depth and falls with the norm: the default
	 * weights are wrong, the learnt ones are not */
	for (i = 0; i < 8; i++) {
		st = stat_of(8 - (float)i, 0);
		score_observe(s, i, &st);
		b[i] = (float)i;
	}
	score_scale(s);
	ok(score_of(s, 0) > score_of(s, 7), "before: the largest norm first");
	for (t = 0; t < 200; t++) {
		for (i = 0; i < 8; i++)
			(void)score_of(s, i);
		if (score_learn(s, b, 4, &e) < 0)
			break;
	}
	for (i = 1; i < 8 && score_of(s, i) >= score_of(s, i - 1); i++)
		;
	ok(t == 200 && i == 8, "after 200 lessons: the most useful first");
	ok(score_of(s, 7) > 0.7f && score_of(s, 0) < 0.15f,
	    "and surely: %.3f %.3f", (double)score_of(s, 0),
	    (double)score_of(s, 7));
	b[3] = NAN;
	ok(score_learn(s, b, 4, &e) == -ERR_DATA &&
	    strncmp(ERR_MSG(&e), "corrupt", 7) == 0, "a NaN is refused");
	score_free(s);
}

static void
history(void)
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
		/* b goes through arrays after every shard */
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
	ok(r == 5, "of five numbers, three averages and two counts, none is "
	    "below 0: %d", r);
	score_free(a);
	score_free(b);
}

/* What the trainer measured, as a share of the largest. */
static void
told(void)
{
	struct err e;
	struct score *s = make_as(SCORE_SENSITIVITY, 4);
	const float energy[4] = { 1e-4f, 4e-4f, 0, 1e-6f };
	const float none[4] = { 0, 0, 0, 0 }, bad[4] = { 1, -1, 1, 1 };
	const float odd[4] = { 1, NAN, 1, 1 };

	ok(score_of(s, 0) == 1 && score_of(s, 3) == 1,
	    "all weigh the same until it is told");
	ok(score_tell(s, energy, &e) == 0 && score_of(s, 0) == 0.25f &&
	    score_of(s, 1) == 1 && score_of(s, 3) == energy[3] / energy[1],
	    "shares of the largest");
	ok(score_of(s, 2) == 1e-6f, "what the loss does not mind weighs little");
	ok(score_tell(s, bad, &e) == -ERR_DATA &&
	    score_tell(s, odd, &e) == -ERR_DATA && score_of(s, 0) == 0.25f,
	    "a negative one, and what is no number, are refused");
	ok(score_tell(s, none, &e) == 0 && score_of(s, 2) == 1,
	    "all 0: all the same");
	score_free(s);
}

static void
even(void)
{
	struct score *s = make_as(SCORE_EVEN, 2);
	const struct stat_group loud = { .n = 1, .sumsq = 4, .sumabs = 2 };

	score_observe(s, 0, &loud);
	score_scale(s);
	ok(score_of(s, 0) == 1 && score_of(s, 1) == 1,
	    "however large they are, all weigh the same");
	score_free(s);
}

int
main(void)
{
	elem();
	even();
	told();
	branches();
	level();
	edges();
	learn();
	history();
	return done_testing();
}
