/*
 * The bits per value and the error of ecq and tcq at a given quantiser step.
 */
#ifndef RATE_H
#define RATE_H

#include "trip.h"

struct rate {
	double bits, nmse;	/* bits: per value */
};

/* Fill t->x with normal values of standard deviation sigma; another key gives other values. */
static inline void
rate_gauss(struct trip *t, uint32_t key, double sigma)
{
	uint32_t i;

	for (i = 0; i < TRIP_N; i++)
		t->x[i] = (float)(sigma * normal(31, 0, key, i));
}

/* Code n values of t->x with this step, and set r. Return 0, or -1 if coding fails or the
 * values do not decode to those that the encoder reported. */
static inline int
rate_of(struct trip *t, uint32_t codec, double step, size_t n, struct rate *r)
{
	static float told[TRIP_N];
	struct codec_plan p = { codec, 0, (float)step };
	struct err e = ERR_INIT;

	t->body.n = 0;
	if (codec_encode_after(&p, &t->ctx, NULL, t->x, n, NULL, &t->body, &t->param,
	    told, &e) < 0 || codec_decode(codec, t->param, &t->ctx, t->body.p,
	    t->body.n, t->y, n, &e) < 0) {
		(void)printf("# %s\n", ERR_MSG(&e));
		return -1;
	}
	r->bits = 8.0 * (double)t->body.n / (double)n;
	r->nmse = trip_nmse(t, n);
	return memcmp(told, t->y, n * sizeof(*told)) == 0 ? 0 : -1;
}

/* Set r to the rate at the step with which t->x takes about `bits' per value or, if bits is
 * 0, has about the error nmse.  Return 0, or -1 as rate_of does. */
static inline int
rate_find(struct trip *t, uint32_t codec, double bits, double nmse, struct rate *r)
{
	double lo = 1e-6, hi = 1e3, step;
	int i;

	for (i = 0; i < 24; i++) {
		step = sqrt(lo * hi);
		if (rate_of(t, codec, step, TRIP_N, r) < 0)
			return -1;
		if (bits > 0 ? r->bits > bits : r->nmse < nmse)
			lo = step;
		else
			hi = step;
	}
	return 0;
}

/* Fill t->x with a matrix of rows of `cols' values.  by[0] and by[1]: standard deviations of
 * the logarithms of the rows' and columns' scales.  The random numbers use key to key + 2. */
static inline void
rate_matrix(struct trip *t, uint32_t cols, uint32_t key, const double by[2])
{
	uint32_t i;

	for (i = 0; i < TRIP_N; i++)
		t->x[i] = (float)(normal(31, 0, key, i) *
		    exp(by[0] * normal(31, 0, key + 1, i / cols) +
		    by[1] * normal(31, 0, key + 2, i % cols)));
}

#endif
