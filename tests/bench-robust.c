/*
 * Measure the error of each rule's mean: K devices, F of them bad, in memory.
 *
 * A model of 4,096 values has a constant gradient g.  An honest device sends g plus noise whose
 * norm is twice that of g, new in each step.  The bad devices know the rules and what all
 * honest devices send.  The figure printed is
 *
 *   || aggregate - m || / || m ||,  m the mean of the honest values without loss by coding,
 *
 * as the mean of the last ten of 50 steps ("a step"), and for the sums of all 50 ("in all"):
 * attacks add up, and the sum is where a model would be.  + marks aggregates that point away from
 * m: in most of the ten steps, or their sum.  The devices send their gradient ("plain"), its
 * momentum of 0.9 ("momentum"), or with error feedback the tenth of the momentum that is
 * largest in magnitude ("sparse").
 * examples/results/README.md has the effect on a model that is trained.
 *
 *   flip    -m        large   noise with 100 times the norm of m       zero    nothing
 *   loud    against m, 1.9 times the honest ones' median norm: just within norm-ratio:2
 *   loud3   the same at 2.9 times: just within norm-ratio:3
 *   alie    m - 1.5 standard deviations of the honest values (Baruch et al. 2019)
 *   ipm     -m / 2 (Xie et al. 2019)
 *   mimic   what the first honest device sends (Karimireddy et al. 2022)
 *   cover   -m plus noise of an honest norm: no single step shows who is bad
 *   pulse   as loud in every fifth step, as an honest device in the others
 *
 * The column "alone" is the tolerating rule without its memory of earlier steps
 * (mean/center.h).
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/rng.h"
#include "format/schema.h"
#include "mean/center.h"
#include "normal.h"
#include "sync/robust.h"

enum { N = 4096, MOST = 20, STEPS = 50, LAST = 10, ATTACKS = 11, WAYS = 3, SIZES = 4,
	RULES = 7 };

static const char *const attacks[ATTACKS] = { "none", "flip", "large", "zero", "loud",
	"loud3", "alie", "ipm", "mimic", "cover", "pulse" };
static const char *const ways[WAYS] = { "plain", "momentum", "sparse" };

struct device {
	float g[N], u[N], left[N], sent[N];
};
static struct device dev[MOST];
static float grad[N], noise[MOST][STEPS][N], honest[N];
static struct center past = CENTER_INIT;
static struct schema model;
static struct shard who[MOST];

static double
dot(const float *a, const float *b)
{
	double s = 0;
	size_t i;

	for (i = 0; i < N; i++)
		s += (double)a[i] * b[i];
	return s;
}

static int
down(const void *a, const void *b)
{
	const float x = *(const float *)a, y = *(const float *)b;

	return (x < y) - (x > y);
}

/* Add u to the residual.  Send the tenth of the sum that is largest in magnitude, and keep
 * the rest as the residual. */
static void
sparse(struct device *d)
{
	static float size[N];
	float least;
	size_t i;

	for (i = 0; i < N; i++) {
		d->left[i] += d->u[i];
		size[i] = fabsf(d->left[i]);
	}
	qsort(size, N, sizeof(*size), down);
	least = size[N / 10];
	for (i = 0; i < N; i++) {
		d->sent[i] = fabsf(d->left[i]) > least ? d->left[i] : 0;
		d->left[i] -= d->sent[i];
	}
}

/* Make what k honest devices send at a step; `honest' becomes the mean of what they would
 * send without loss.  way: an index of ways[]. */
static void
good(size_t k, uint32_t step, int way)
{
	struct device *d;
	size_t i;

	(void)memset(honest, 0, sizeof(honest));
	for (d = dev; d < dev + k; d++) {
		for (i = 0; i < N; i++) {
			d->g[i] = grad[i] + (float)(2 / sqrt(N)) *
			    noise[d - dev][step][i];
			d->u[i] = way == 0 ? d->g[i] : 0.9f * d->u[i] + 0.1f * d->g[i];
			honest[i] += d->u[i] / (float)k;
		}
		if (way == 2)
			sparse(d);
		else
			(void)memcpy(d->sent, d->u, sizeof(d->u));
	}
}

static double
median_norm(size_t k)
{
	float norm[MOST];
	size_t i;

	for (i = 0; i < k; i++)
		norm[i] = (float)sqrt(dot(dev[i].sent, dev[i].sent));
	qsort(norm, k, sizeof(*norm), down);
	return (double)norm[k / 2];
}

/* Return the root mean square distance of k honest devices' values from `honest'. */
static double
spread(size_t k)
{
	double d, s = 0;
	size_t i, j;

	for (i = 0; i < k; i++)
		for (j = 0; j < N; j++) {
			d = (double)dev[i].sent[j] - (double)honest[j];
			s += d * d;
		}
	return sqrt(s / (double)k);
}

/* Set y to what the nth of all devices, a bad one, sends at a step beside k honest ones. */
static void
bad(float *y, const char *attack, size_t k, uint32_t nth, uint32_t step)
{
	const double size = sqrt(dot(honest, honest));
	double mean, square, f = 0, noisy = 0;
	size_t i, j;

	if (strncmp(attack, "loud", 4) == 0)
		f = -(attack[4] == '3' ? 2.9 : 1.9) * median_norm(k) / size;
	else if (strcmp(attack, "flip") == 0)
		f = -1;
	else if (strcmp(attack, "ipm") == 0)
		f = -0.5;
	else if (strcmp(attack, "cover") == 0)
		f = -1, noisy = spread(k);
	else if (strcmp(attack, "pulse") == 0 && step % 5 == 4)
		f = -1.9 * median_norm(k) / size;
	else if (strcmp(attack, "pulse") == 0)
		f = 1, noisy = spread(k);
	for (i = 0; i < N; i++) {
		y[i] = (float)f * honest[i] +
		    (float)(noisy / sqrt(N)) * noise[nth][step][i];
		if (strcmp(attack, "large") == 0)
			y[i] = (float)(100 * size / sqrt(N)) * noise[nth][step][i];
		else if (strcmp(attack, "mimic") == 0)
			y[i] = dev[0].sent[i];
		if (strcmp(attack, "alie") != 0)
			continue;
		for (j = 0, mean = square = 0; j < k; j++) {
			mean += (double)dev[j].sent[i];
			square += (double)dev[j].sent[i] * dev[j].sent[i];
		}
		mean /= (double)k;
		y[i] = (float)(mean - 1.5 * sqrt(fmax(square / (double)k - mean * mean, 0)));
	}
}

/* From the second step on, sketch the center y and each x[i] for center_judge, which compares
 * them with earlier steps. */
static int
look_back(const float *y, const float **x, size_t k, struct err *e)
{
	size_t i;
	int r;

	if ((r = center_begin(&past, &who[0], &model, k, e)) < 0 || !past.known)
		return r;
	if ((r = center_group(&past, 0, N, e)) < 0)
		return r;
	center_add(&past, k, y);
	for (i = 0; i < k; i++) {
		center_device(&past, i, &who[i]);
		center_add(&past, i, x[i]);
	}
	return 0;
}

/* Set y to the aggregate of x[k] by a rule, as ace-aggregate makes it. On entry y is the
 * aggregate of the previous step.  back: remember earlier steps, as center.h does. */
static int
rule(float *y, const struct robust_rule *q, int back, const float **x, size_t k,
    struct err *e)
{
	static float in[N];
	struct robust_step t = { .k = 0 };
	double f, sum[N] = { 0 }, weight = 0, kept = 0;
	float tmp[MOST];
	size_t i, j, n;
	int r = robust_step(&t, k, e);

	for (i = 0; r == 0 && i < k; i++) {
		t.one[i].weight = 1;
		t.one[i].norm2 = dot(x[i], x[i]);
		t.one[i].values = t.one[i].nonzero = N;
		for (j = 0; j < N; j++)
			in[j] = x[i][j] - y[j];
		t.one[i].far2 = dot(in, in);
	}
	if (r == 0)
		r = robust_judge(q, &t, e);
	if (r == 0 && back && (r = look_back(y, x, k, e)) == 0 &&
	    (r = center_judge(&past, &t, e)) == 0)
		r = center_commit(&past, &who[0], &model, e);
	for (i = n = 0; r == 0 && i < k; i++) {
		if (!robust_counts(&t.one[i]))
			continue;
		f = t.one[i].scale;
		weight++, kept += f;
		for (j = 0; j < N; j++)
			sum[j] += f * (double)x[i][j];
		t.x[n++] = x[i];
	}
	if (r == 0 && robust_elements(q)) {
		robust_combine(q, sum, t.x, n, N, tmp);
		weight = 1;
	}
	for (j = 0; r == 0 && j < N; j++)
		y[j] = (float)((sum[j] + (robust_centered(q) ? weight - kept : 0) *
		    (double)y[j]) / weight);
	robust_release(&t);
	return r;
}

/* Return || a - b || / || b ||. */
static double
apart(const double *a, const double *b)
{
	double d = 0, n = 0;
	size_t i;

	for (i = 0; i < N; i++) {
		d += (a[i] - b[i]) * (a[i] - b[i]);
		n += b[i] * b[i];
	}
	return sqrt(d / n);
}

static int
away(const double *a, const double *b)
{
	double d = 0;
	size_t i;

	for (i = 0; i < N; i++)
		d += a[i] * b[i];
	return d < 0;
}

struct cell {
	double step, all;	/* mean error of the last steps, error of the sum of
				 * all; NAN: the rule refuses so few shards */
	int step_away, all_away;
};

static const struct { const char *name; enum robust_kind kind; double ratio; int back; }
rules[RULES] = {
	{ "mean", ROBUST_MEAN, 0, 0 }, { "ratio:2", ROBUST_MEAN, 2, 0 },
	{ "trim", ROBUST_TRIM, 0, 0 }, { "median", ROBUST_MEDIAN, 0, 0 },
	{ "center", ROBUST_CENTER, 0, 1 }, { "tolerate", ROBUST_CENTER, 3, 1 },
	{ "alone", ROBUST_CENTER, 3, 0 } };

/* Run rules[which] for all steps with k devices, f of them bad.  The rule knows f. */
static void
cell(struct cell *c, int which, size_t k, size_t f, const char *attack, int way)
{
	static float y[N], from[MOST][N];
	struct robust_rule q = { .kind = rules[which].kind, .f = f,
		.max_ratio = rules[which].ratio, .senders = way == 2 };
	double sum[N] = { 0 }, want[N] = { 0 }, a[N], b[N];
	struct err e = ERR_INIT;
	const float *x[MOST];
	size_t i, h = strcmp(attack, "none") == 0 ? k : k - f;
	uint32_t s;

	*c = (struct cell){ .step = 0 };
	(void)memset(y, 0, sizeof(y));
	(void)memset(dev, 0, sizeof(dev));
	center_release(&past);
	for (s = 0; s < STEPS; s++) {
		good(h, s, way);
		for (i = 0; i < k; i++) {
			if (i >= h)
				bad(from[i], attack, h, (uint32_t)i, s);
			x[i] = i < h ? dev[i].sent : from[i];
		}
		if (rule(y, &q, rules[which].back, x, k, &e) < 0) {
			c->step = c->all = NAN;
			return;
		}
		for (i = 0; i < N; i++) {
			sum[i] += a[i] = (double)y[i];
			want[i] += b[i] = (double)honest[i];
		}
		if (s >= STEPS - LAST) {
			c->step += apart(a, b) / (double)LAST;
			c->step_away += away(a, b);
		}
	}
	c->step_away = c->step_away > LAST / 2;
	c->all = apart(sum, want);
	c->all_away = away(sum, want);
}

static void
line(const struct cell *c, int all)
{
	int i;

	for (i = 0; i < RULES; i++) {
		if (isnan(c[i].step))
			(void)printf(" %9s ", "-");
		else
			(void)printf(" %9.2f%c", all ? c[i].all : c[i].step,
			    (all ? c[i].all_away : c[i].step_away) ? '+' : ' ');
	}
	(void)printf("\n");
}

static const struct { int k, f; } sizes[SIZES] = { { 8, 1 }, { 8, 2 }, { 8, 3 }, { 20, 5 } };

/* Print the results of one way of sending, for one size, or for all sizes if `only' < 0. */
static void
table(int way, int only)
{
	static struct cell c[SIZES][ATTACKS][RULES];
	const int from = only < 0 ? 0 : only, to = only < 0 ? SIZES : only + 1;
	int i, a, r, all;

	for (i = from; i < to; i++)
		for (a = 0; a < ATTACKS; a++)
			for (r = 0; r < RULES; r++)
				cell(&c[i][a][r], r, (size_t)sizes[i].k,
				    (size_t)sizes[i].f, attacks[a], way);
	for (all = 0; all < 2; all++) {
		(void)printf("\n%-8s %-6s  K F", ways[way], all ? "in all" : "a step");
		for (r = 0; r < RULES; r++)
			(void)printf(" %9s ", rules[r].name);
		(void)printf("\n");
		for (i = from; i < to; i++)
			for (a = 0; a < ATTACKS; a++) {
				(void)printf("%-15s %2d %d", attacks[a], sizes[i].k,
				    sizes[i].f);
				line(c[i][a], all);
			}
	}
}

/* Usage: bench-robust [WAY [K F]]; without arguments it measures everything. */
int
main(int argc, char **argv)
{
	int w, only;
	size_t i;
	uint32_t d, s;

	model.n = 1;
	for (i = 0; i < MOST; i++)
		who[i].device[0] = (unsigned char)(i + 1);
	for (i = 0; i < N; i++) {
		grad[i] = (float)(normal(7, 0, 0, (uint32_t)i) / sqrt(N));
		for (d = 0; d < MOST; d++)
			for (s = 0; s < STEPS; s++)
				noise[d][s][i] = (float)normal(7, d + 1, s, (uint32_t)i);
	}
	for (only = argc > 3 ? SIZES - 1 : -1; only >= 0; only--)
		if (atoi(argv[2]) == sizes[only].k && atoi(argv[3]) == sizes[only].f)
			break;
	for (w = 0; w < WAYS; w++)
		if (argc < 2 || strcmp(argv[1], ways[w]) == 0)
			table(w, only);
	return 0;
}
