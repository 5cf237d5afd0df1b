/*
 * bench-score [NAME] <RUN: how well what is known of a group before a step
 * foretells what it will be worth in it, over a recorded training run: rank
 * correlation with the energy per value, and how much of it the best fifth of
 * the groups by that order holds, of what the best fifth could.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/io.h"
#include "codec/stat.h"
#include "format/values.h"
#include "sync/score.h"

enum { LAST, AVERAGE, PAPER, PAPER_LEARNT, LEVEL, LEVEL_LEARNT, WAYS,
	WARM = 4, SCORES = WAYS - PAPER };
static const char *const names[WAYS] = {
	"last norm", "average of norms, 0.9", "score of the paper",
	"  learnt", "score", "  learnt"
};

static size_t n;
static const double *by;

static int
cmp(const void *a, const void *b)
{
	double x = by[*(const size_t *)a], y = by[*(const size_t *)b];

	return (x > y) - (x < y);
}

static void *
zeros(size_t size)
{
	void *p = calloc(n > 0 ? n : 1, size);

	if (p == NULL)
		exit(1);
	return p;
}

/* Ranks, the mean of ties. */
static double *
ranks(const double *v)
{
	double *r = zeros(sizeof(*r));
	size_t *o = zeros(sizeof(*o)), i, j, k;

	for (i = 0; i < n; i++)
		o[i] = i;
	by = v;
	qsort(o, n, sizeof(*o), cmp);
	for (i = 0; i < n; i = j) {
		for (j = i; j < n && v[o[j]] <= v[o[i]]; j++)
			;
		for (k = i; k < j; k++)
			r[o[k]] = (double)(i + j - 1) / 2;
	}
	free(o);
	return r;
}

static void
judge(const double *foretold, const double *real, double sum[2])
{
	double *a = ranks(foretold), *b = ranks(real), m = (double)(n - 1) / 2;
	double ab = 0, aa = 0, bb = 0, held = 0, could = 0;
	size_t i;

	for (i = 0; i < n; i++) {
		ab += (a[i] - m) * (b[i] - m);
		aa += (a[i] - m) * (a[i] - m);
		bb += (b[i] - m) * (b[i] - m);
		held += a[i] >= 0.8 * (double)n ? real[i] : 0;
		could += b[i] >= 0.8 * (double)n ? real[i] : 0;
	}
	sum[0] += aa > 0 && bb > 0 ? ab / sqrt(aa * bb) : 0;
	sum[1] += could > 0 ? held / could : 1;
	free(a);
	free(b);
}

static struct score *
make(const struct schema *sc, enum score_form form)
{
	struct score_place *p = zeros(sizeof(*p));
	struct score *s;
	double field;
	uint32_t g;
	size_t i;
	unsigned d;

	for (i = 0; i < sc->n; i++) {
		for (field = 1, d = 1; d < sc->t[i].ndim; d++)
			field *= (double)sc->t[i].dim[d];
		for (g = sc->t[i].group; g < sc->t[i].group + sc->t[i].ngroups;
		    g++) {
			p[g].depth = sc->n > 1 ? (double)i /
			    (double)(sc->n - 1) : 0.5;
			p[g].params = (double)sc->t[i].numel;
			p[g].field = field;
		}
	}
	if (score_new(&s, form, p, n, NULL) < 0)
		exit(1);
	free(p);
	return s;
}

/* What is known after the shard: foretells the next. */
static void
know(double *const way[WAYS], struct score *const score[SCORES],
    const double *real, int first)
{
	size_t i;
	int k;

	for (i = 0; i < n; i++) {
		way[LAST][i] = real[i];
		way[AVERAGE][i] = first ? real[i] :
		    0.9 * way[AVERAGE][i] + 0.1 * real[i];
	}
	for (k = 0; k < SCORES; k++) {
		score_scale(score[k]);
		for (i = 0; i < n; i++)
			way[PAPER + k][i] = (double)score_of(score[k], i);
	}
}

static int
shards(struct reader *r, double sum[WAYS][2], int *count, struct err *e)
{
	struct values v = VALUES_INIT;
	struct score *score[SCORES] = { NULL };
	double *way[WAYS] = { NULL }, *real = NULL;
	float *b = NULL;
	struct stat_group s;
	int k, t = 0, i;

	while ((k = reader_next(r, e)) > 0) {
		if (k != READER_SHARD)
			continue;
		if (score[0] == NULL) {
			n = reader_schema(r)->ngroups;
			for (i = 0; i < SCORES; i++)
				score[i] = make(reader_schema(r), i < 2 ?
				    SCORE_PAPER : SCORE_LEVEL);
			real = zeros(sizeof(*real));
			b = zeros(sizeof(*b));
			for (i = 0; i < WAYS; i++)
				way[i] = zeros(sizeof(**way));
		}
		k = values_begin(&v, r, e);
		while (k >= 0 && (k = values_next(&v, e)) > 0) {
			if (stat_group_of(v.x, v.n, &s) != 0)
				return -ERR_DATA;
			real[v.group] = (double)s.sumsq / (double)v.n;
			b[v.group] = (float)real[v.group];
			for (i = 0; i < SCORES; i++)
				score_observe(score[i], v.group, &s);
		}
		if (k < 0)
			return k;
		for (i = 0; i < WAYS && t >= WARM; i++)
			judge(way[i], real, sum[i]);
		*count += t >= WARM;
		for (i = 1; i < SCORES && t > 0; i += 2)
			if (score_learn(score[i], b, 4, e) < 0)
				return -ERR_DATA;
		know(way, score, real, t++ == 0);
	}
	for (i = 0; i < SCORES; i++)
		score_free(score[i]);
	for (i = 0; i < WAYS; i++)
		free(way[i]);
	free(real);
	free(b);
	values_release(&v);
	return k;
}

int
main(int argc, char **argv)
{
	double sum[WAYS][2] = { { 0 } };
	struct reader *r = NULL;
	struct err e = ERR_INIT;
	struct io *io;
	int count = 0, i;

	if (io_open(&io, NULL, &e) < 0 || reader_open(&r, io, NULL, &e) < 0 ||
	    shards(r, sum, &count, &e) < 0) {
		(void)fprintf(stderr, "bench-score: %s\n", ERR_MSG(&e));
		return 1;
	}
	(void)printf("%s, %zu groups, %d steps ahead by one\n",
	    argc > 1 ? argv[1] : "run", n, count);
	for (i = 0; i < WAYS && count > 0; i++)
		(void)printf("  %-22s rank correlation %.4f, best fifth %.4f\n",
		    names[i], sum[i][0] / count, sum[i][1] / count);
	reader_free(r);
	return 0;
}
