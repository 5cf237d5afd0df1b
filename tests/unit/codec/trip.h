/*
 * Coding and decoding, shared by the codecs' own tests.
 */
#ifndef TRIP_H
#define TRIP_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../../normal.h"
#include "../test.h"
#include "base/bytes.h"
#include "base/err.h"
#include "codec/codec.h"

enum { TRIP_N = 65536 };

struct trip {
	struct codec_ctx ctx;
	float x[TRIP_N], y[TRIP_N];
	struct buf body;	/* struct trip is static: its last body is not released */
	uint32_t codec;
	uint8_t param;
};

static inline void
trip_gauss(struct trip *t, uint32_t seed, size_t n, double sigma)
{
	size_t i;

	for (i = 0; i < n; i++)
		t->x[i] = (float)(sigma * normal(seed, 0, 0, (uint32_t)i));
}

/* Code n values of x by plan p into body and decode them into y; return the body's
 * length.  If that fails, end the test. */
static inline size_t
trip_plan(struct trip *t, const struct codec_plan *p, size_t n)
{
	struct err e = ERR_INIT;
	char s[CODEC_TEXT];

	t->body.n = 0;
	if (codec_encode(p, &t->ctx, t->x, n, &t->body, &t->param, &e) < 0 ||
	    codec_decode(p->codec, t->param, &t->ctx, t->body.p, t->body.n,
	    t->y, n, &e) < 0) {
		(void)printf("Bail out! %s: %s\n", codec_format(p, s), ERR_MSG(&e));
		exit(1);
	}
	t->codec = p->codec;
	return t->body.n;
}

static inline size_t
trip(struct trip *t, const char *spec, size_t n)
{
	struct codec_plan p;
	struct err e = ERR_INIT;

	if (codec_parse(spec, &p, &e) < 0) {
		(void)printf("Bail out! %s\n", ERR_MSG(&e));
		exit(1);
	}
	return trip_plan(t, &p, n);
}

/* Like trip, with the plan of this codec for error feedback. */
static inline size_t
trip_feedback(struct trip *t, uint32_t codec, uint8_t param, size_t n)
{
	struct codec_plan p = { codec, param, 0 };

	p = codec_contracting(&p);
	return trip_plan(t, &p, n);
}

/* |x - y|^2 / |x|^2 */
static inline double
trip_nmse(const struct trip *t, size_t n)
{
	double d = 0, s = 0, v;
	size_t i;

	for (i = 0; i < n; i++) {
		v = (double)t->x[i] - (double)t->y[i];
		d += v * v;
		s += (double)t->x[i] * (double)t->x[i];
	}
	return d / s;
}

/* Check that the mean of `runs' steps has less than 2 / runs of one step's squared error. */
static inline void
trip_unbiased(struct trip *t, const char *spec, size_t n, size_t runs)
{
	double *mean = calloc(n, sizeof(*mean)), d = 0, s = 0, one = 0, v;
	size_t i, k;

	if (mean == NULL)
		exit(1);
	for (k = 0; k < runs; k++) {
		t->ctx.step = 1000 + k;
		(void)trip(t, spec, n);
		one += trip_nmse(t, n) / (double)runs;
		for (i = 0; i < n; i++)
			mean[i] += (double)t->y[i] / (double)runs;
	}
	for (i = 0; i < n; i++) {
		v = mean[i] - (double)t->x[i];
		d += v * v;
		s += (double)t->x[i] * (double)t->x[i];
	}
	ok(d / s < 2 * one / (double)runs,
	    "%s of %zu values is unbiased: error %.4f of one, %.6f of the mean "
	    "of %zu", spec, n, one, d / s, runs);
	free(mean);
}

/* Check that the noise does not repeat: values at several distances, and values at the same
 * place with another group, step or seed, decode to the same in less than 60 % of cases.
 * t->x must hold values that round up or down with equal probability. */
static inline void
trip_noise(struct trip *t, const char *spec, size_t n)
{
	static const size_t apart[] = { 1, 2, 3, 4, 5, 8, 16, 32, 64, 128, 256,
	    320, 512, 640, 1024 };
	float *was = calloc(n, sizeof(*was));
	size_t i, k, same, worst = 0;

	if (was == NULL)
		exit(1);
	(void)trip(t, spec, n);
	memcpy(was, t->y, n * sizeof(*was));
	for (k = 0; k < sizeof(apart) / sizeof(apart[0]); k++) {
		for (i = apart[k], same = 0; i < n; i++)
			same += t->y[i] == t->y[i - apart[k]];
		worst = same > worst ? same : worst;
	}
	for (k = 0; k < 3; k++) {
		t->ctx.group += k == 0;
		t->ctx.step += k == 1;
		t->ctx.seed += k == 2;
		(void)trip(t, spec, n);
		for (i = 0, same = 0; i < n; i++)
			same += t->y[i] == was[i];
		worst = same > worst ? same : worst;
		memcpy(was, t->y, n * sizeof(*was));
	}
	ok(worst < n * 6 / 10, "%s: the noise repeats nowhere (%zu of %zu the "
	    "same)", spec, worst, n);
	free(was);
}

/* Return 1 if p[len] is refused, as corrupt or unsupported, as the body of n values. */
static inline int
trip_refused(const struct trip *t, uint32_t codec, uint8_t param,
    const unsigned char *p, size_t len, size_t n)
{
	float *y = calloc(n + 1, sizeof(*y));
	unsigned char *copy = malloc(len + 1);
	struct err e = ERR_INIT;
	int r;

	if (y == NULL || copy == NULL)
		exit(1);
	memcpy(copy, p, len);
	r = codec_decode(codec, param, &t->ctx, copy, len, y, n, &e);
	free(copy);
	free(y);
	return r == -ERR_DATA && (strncmp(ERR_MSG(&e), "corrupt", 7) == 0 ||
	    strncmp(ERR_MSG(&e), "unsupported", 11) == 0);
}

#endif
