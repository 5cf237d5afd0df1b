#include <math.h>
#include <stddef.h>
#include <string.h>

#include "base/alloc.h"
#include "base/detmath.h"
#include "base/err.h"
#include "sync/score.h"

#define SCORE_EPS 1e-30		/* added before log(), which is then finite at 0 */
#define SCORE_ZMAX 4.0
#define SCORE_DECAY 0.2		/* decay of the moving averages of the groups */
#define SCORE_WMAX 8.0f
enum { SCORE_STEPS = 4 };	/* gradient steps per call of score_learn */
#define SCORE_MEMORY 0.9	/* decay of the moving averages in `worth' */
#define SCORE_EDGE 1e-6		/* the least score; with SCORE_PAPER, the greatest is 1 - this */
/* SCORE_PAPER: the first weights. */
static const float score_w[SCORE_TEMPORAL] = { 1, 0.5f, 0 },
    score_u[SCORE_STRUCTURAL] = { 0, -0.25f, 0, 0 };

struct score_moments {
	double n, sum, sum2;
};

static void
score_add(struct score_moments *m, double x)
{
	m->n += 1;
	m->sum += x;
	m->sum2 += x * x;
}

static void
score_moments(const struct score_moments *m, double *mean, double *dev)
{
	double v;

	*mean = m->n > 0 ? m->sum / m->n : 0;
	v = m->n > 0 ? m->sum2 / m->n - *mean * *mean : 0;
	/* if all x are equal, rounding may leave v at 1e-16 times the mean of x^2 */
	*dev = v > 1e-12 * (1 + *mean * *mean) ? sqrt(v) : 0;
}

static double
score_z(double x, double mean, double dev)
{
	double z = dev > 0 ? (x - mean) / dev : 0;

	return z < -SCORE_ZMAX ? -SCORE_ZMAX : z > SCORE_ZMAX ? SCORE_ZMAX : z;
}

/* Replace place[][f], a logarithm, with its z-score over the groups. */
static void
score_place_z(struct score *s, unsigned f)
{
	struct score_moments m = { 0, 0, 0 };
	double mean, dev;
	size_t i;

	for (i = 0; i < s->n; i++)
		score_add(&m, (double)s->place[i][f]);
	score_moments(&m, &mean, &dev);
	for (i = 0; i < s->n; i++)
		s->place[i][f] = (float)score_z((double)s->place[i][f], mean, dev);
}

int
score_new(struct score **out, enum score_form form,
    const struct score_place *place, size_t n, struct err *e)
{
	struct score *s;
	size_t i;

	if ((s = alloc_get(1, sizeof(*s), e)) == NULL)
		return -ERR_SYS;
	s->group = alloc_get(n, sizeof(*s->group), e);
	s->place = alloc_get(n, sizeof(*s->place), e);
	if (s->group == NULL || s->place == NULL) {
		score_free(s);
		return -ERR_SYS;
	}
	s->n = n;
	for (i = 0; i < n; i++) {
		s->place[i][0] = (float)(2 * place[i].depth - 1);
		s->place[i][1] = (float)detmath_log(fmax(place[i].params, 1));
		s->place[i][2] = (float)detmath_log(fmax(place[i].field, 1));
	}
	score_place_z(s, 1);
	score_place_z(s, 2);
	memcpy(s->all.w, score_w, sizeof(s->all.w));
	memcpy(s->all.u, score_u, sizeof(s->all.u));
	s->alpha = 0.5;
	s->power = 0.25;
	s->form = form;
	*out = s;
	return 0;
}

void
score_free(struct score *s)
{
	if (s == NULL)
		return;
	alloc_free(s->group);
	alloc_free(s->place);
	alloc_free(s->told);
	alloc_free(s);
}

void
score_observe(struct score *s, size_t g, const struct stat_group *stat)
{
	struct score_group *h = &s->group[g];
	double n = stat->n > 0 ? (double)stat->n : 1;
	double d = h->m2 > 0 ? SCORE_DECAY : 0, energy = (double)stat->sumsq / n;

	h->m1 = (float)(d * (double)h->m1 + (1 - d) * (double)stat->sumabs / n);
	h->m2 = (float)(d * (double)h->m2 + (1 - d) * energy);
	h->mean = (float)(d * (double)h->mean + (1 - d) * (double)stat->sum / n);
}

/* Set f to a group's features, log m1 and log Var. */
static void
score_features(const struct score_group *h, double f[SCORE_FEATURES])
{
	double var = (double)h->m2 - (double)h->mean * (double)h->mean;

	f[0] = detmath_log((double)h->m1 + SCORE_EPS);
	f[1] = detmath_log((var > 0 ? var : 0) + SCORE_EPS);
}

void
score_scale(struct score *s)
{
	struct score_moments m[SCORE_FEATURES] = { { 0, 0, 0 } };
	double f[SCORE_FEATURES], mean, dev;
	size_t i;
	int j;

	for (i = 0; i < s->n; i++) {
		if (!(s->group[i].m2 > 0))
			continue;
		score_features(&s->group[i], f);
		for (j = 0; j < SCORE_FEATURES; j++)
			score_add(&m[j], f[j]);
	}
	for (j = 0; j < SCORE_FEATURES; j++) {
		score_moments(&m[j], &mean, &dev);
		s->all.mean[j] = (float)mean;
		s->all.dev[j] = (float)dev;
	}
	if (s->all.shards < 16777215.0f)
		s->all.shards += 1;
}

/* Return the importance I from the features of group g's last score, and set A_temp and
 * A_struct.  Use the learnt weights, or the first ones if learnt is 0. */
static double
score_mix(const struct score *s, size_t g, int learnt, double *temporal,
    double *structural)
{
	const float *w = learnt ? s->all.w : score_w;
	const float *u = learnt ? s->all.u : score_u;
	const float *z = s->group[g].z, *p = s->place[g];

	*temporal = detmath_sigmoid((double)w[0] * (double)z[0] +
	    (double)w[1] * (double)z[1] + (double)w[2]);
	*structural = detmath_sigmoid((double)u[0] * (double)p[0] +
	    (double)u[1] * (double)p[1] + (double)u[2] * (double)p[2] + (double)u[3]);
	return s->alpha * *temporal + (1 - s->alpha) * *structural;
}

float
score_of(struct score *s, size_t g)
{
	struct score_group *h = &s->group[g];
	const struct score_all *a = &s->all;
	double f[SCORE_FEATURES], t, u, v;
	int j;

	if (s->form == SCORE_MOMENT)
		return s->told != NULL ? s->told[g] : 1;
	score_features(h, f);
	for (j = 0; j < SCORE_FEATURES; j++)
		h->z[j] = h->m2 > 0 ? (float)score_z(f[j],
		    (double)a->mean[j], (double)a->dev[j]) : (float)-SCORE_ZMAX;
	v = score_mix(s, g, a->worth[1] > a->worth[0], &t, &u);
	return h->score = (float)(v < SCORE_EDGE ? SCORE_EDGE :
	    v > 1 - SCORE_EDGE ? 1 - SCORE_EDGE : v);
}

int
score_tell(struct score *s, const float *energy, struct err *e)
{
	float most = 0, *told = s->told;
	size_t i;

	for (i = 0; i < s->n; i++) {
		if (!isfinite(energy[i]) || energy[i] < 0)
			return err_set(e, ERR_DATA, "corrupt: the second moment of group %zu is "
			    "%g, expected a finite number from 0 on", i, (double)energy[i]);
		most = energy[i] > most ? energy[i] : most;
	}
	if (told == NULL && (told = alloc_get(s->n, sizeof(*told), e)) == NULL)
		return -ERR_SYS;
	for (i = 0; i < s->n; i++) {
		told[i] = most > 0 ? (float)detmath_exp(s->power *
		    detmath_log((double)(energy[i] / most) + SCORE_EPS)) : 1;
		if (told[i] < (float)SCORE_EDGE)
			told[i] = (float)SCORE_EDGE;
	}
	s->told = told;
	return 0;
}

static void
score_step(float *w, const double *g, unsigned n, double rate)
{
	unsigned j;

	for (j = 0; j < n; j++) {
		w[j] += (float)(rate * g[j]);
		w[j] = w[j] < -SCORE_WMAX ? -SCORE_WMAX :
		    w[j] > SCORE_WMAX ? SCORE_WMAX : w[j];
	}
}

/* Set the mean and the deviation of log(benefit + SCORE_EPS) over the groups with a benefit above
 * 0.  Return 0, or -ERR_DATA if a benefit is negative or not finite. */
static int
score_labels(const struct score *s, const float *benefit, double *mean,
    double *dev, struct err *e)
{
	struct score_moments m = { 0, 0, 0 };
	size_t i;

	for (i = 0; i < s->n; i++) {
		if (!isfinite(benefit[i]) || benefit[i] < 0)
			return err_set(e, ERR_DATA, "corrupt: the benefit of group %zu is %g, "
			    "expected a finite number from 0 on", i, (double)benefit[i]);
		if (benefit[i] > 0)
			score_add(&m, detmath_log((double)benefit[i] + SCORE_EPS));
	}
	score_moments(&m, mean, dev);
	return 0;
}

/* Add group i's part of the negative gradient to gw (of W) and gu (of u); y: its label. */
static void
score_gradient(const struct score *s, size_t i, double y,
    double gw[SCORE_TEMPORAL], double gu[SCORE_STRUCTURAL])
{
	const struct score_group *h = &s->group[i];
	double t, u, d;
	int j;

	d = y - score_mix(s, i, 1, &t, &u);
	t = d * s->alpha * t * (1 - t);
	u = d * (1 - s->alpha) * u * (1 - u);
	gw[0] += t * (double)h->z[0];
	gw[1] += t * (double)h->z[1];
	gw[2] += t;
	for (j = 0; j < SCORE_PLACE; j++)
		gu[j] += u * (double)s->place[i][j];
	gu[3] += u;
}

/* Return the label y_i (score_learn) of a group with this benefit. */
static double
score_label(float benefit, double mean, double dev)
{
	return detmath_sigmoid(benefit > 0 ? score_z(detmath_log((double)benefit +
	    SCORE_EPS), mean, dev) : -SCORE_ZMAX);
}

/* Return the correlation of the labels with I, by the learnt weights or, if learnt is 0, by
 * the first ones.  Return 0 if the labels or I are constant. */
static double
score_worth(const struct score *s, int learnt, const float *benefit,
    double mean, double dev)
{
	double x, y, t, u, sx = 0, sy = 0, xx = 0, yy = 0, xy = 0;
	double n = (double)s->n;
	size_t i;

	for (i = 0; i < s->n; i++) {
		x = score_mix(s, i, learnt, &t, &u) - 0.5;
		y = score_label(benefit[i], mean, dev) - 0.5;
		sx += x;
		sy += y;
		xx += x * x;
		yy += y * y;
		xy += x * y;
	}
	xx -= sx * sx / n;
	yy -= sy * sy / n;
	return xx > 1e-12 && yy > 1e-12 ? (xy - sx * sy / n) / sqrt(xx * yy) : 0;
}

static void
score_steps(struct score *s, const float *benefit, double mean, double dev, double rate)
{
	double gw[SCORE_TEMPORAL], gu[SCORE_STRUCTURAL];
	size_t i;
	int k;

	for (k = 0; k < SCORE_STEPS; k++) {
		memset(gw, 0, sizeof(gw));
		memset(gu, 0, sizeof(gu));
		for (i = 0; i < s->n; i++)
			score_gradient(s, i, score_label(benefit[i], mean,
			    dev), gw, gu);
		score_step(s->all.w, gw, SCORE_TEMPORAL, rate / (double)s->n);
		score_step(s->all.u, gu, SCORE_STRUCTURAL, rate / (double)s->n);
	}
}

int
score_learn(struct score *s, const float *benefit, double rate, struct err *e)
{
	double mean = 0, dev = 0, keep;
	float *worth = s->all.worth;
	size_t i;
	int r, k;

	if (s->n == 0)
		return 0;
	if ((r = score_labels(s, benefit, &mean, &dev, e)) < 0)
		return r;
	keep = s->all.lessons > 0 ? SCORE_MEMORY : 0;
	for (k = 0; k < 2; k++)
		worth[k] = (float)(keep * (double)worth[k] + (1 - keep) *
		    score_worth(s, k, benefit, mean, dev));
	score_steps(s, benefit, mean, dev, rate);
	for (i = 0; i < s->n; i++)
		s->group[i].benefit = s->all.lessons > 0 ? (float)(SCORE_DECAY *
		    (double)s->group[i].benefit + (1 - SCORE_DECAY) *
		    (double)benefit[i]) : benefit[i];
	if (s->all.lessons < 16777215.0f)
		s->all.lessons += 1;
	return 0;
}

/* ---- the history as arrays ---- */

const char *const score_columns[SCORE_COLUMNS] = {
	"m1", "m2", "mean", "z1", "z2", "score", "benefit"
};

static float *
score_cell(struct score_group *h, unsigned c)
{
	float *const cell[SCORE_COLUMNS] = { &h->m1, &h->m2, &h->mean,
	    &h->z[0], &h->z[1], &h->score, &h->benefit };

	return cell[c];
}

void
score_get_column(const struct score *s, unsigned c, float *x)
{
	size_t i;

	for (i = 0; i < s->n; i++)
		x[i] = *score_cell(&s->group[i], c);
}

int
score_put_column(struct score *s, unsigned c, const float *x, struct err *e)
{
	int nonneg = c < 2 || c > 4;
	size_t i;

	for (i = 0; i < s->n; i++) {
		if (!isfinite(x[i]) || (nonneg && x[i] < 0))
			return err_set(e, ERR_DATA, "corrupt: row '%s' of the score history is %g "
			    "for group %zu, expected a finite number%s", score_columns[c],
			    (double)x[i], i, nonneg ? " from 0 on" : "");
		*score_cell(&s->group[i], c) = x[i];
	}
	return 0;
}

void
score_get_all(const struct score *s, float x[SCORE_ALL])
{
	memset(x, 0, SCORE_ALL * sizeof(*x));
	memcpy(x, &s->all, sizeof(s->all));
}

int
score_put_all(struct score *s, const float x[SCORE_ALL], struct err *e)
{
	size_t i;

	_Static_assert(sizeof(struct score_all) <= SCORE_ALL * sizeof(float),
	    "fits");
	for (i = 0; i < SCORE_ALL; i++)
		if (!isfinite(x[i]))
			return err_set(e, ERR_DATA, "corrupt: number %zu of the score history "
			    "is %g, expected a finite number", i, (double)x[i]);
	memcpy(&s->all, x, sizeof(s->all));
	if (s->all.dev[0] < 0 || s->all.dev[1] < 0 || s->all.shards < 0 ||
	    s->all.lessons < 0)
		return err_set(e, ERR_DATA, "corrupt: the score history has a negative deviation "
		    "or count");
	return 0;
}
