#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "base/detmath.h"
#include "base/err.h"
#include "device/learned.h"
#include "device/shares.h"
#include "format/values.h"
#include "sync/rate_control.h"

/* The memory's rows.  Each has one number per group. */
enum { CODEC, PARAM, KNOB, BYTES, ROWS };
static const char *const shares_row[ROWS] = {
	"codec", "param", "rate", "bytes"
};

/* The largest factor between the bytes of a group and their estimate at another rate. */
#define SHARES_FAR 16.0

void
shares_release(struct shares *s)
{
	alloc_free(s->of);
	*s = (struct shares){ 0 };
}

/* Read a group's plan and bytes from the memory; CODEC_NONE and 0 bytes if they are invalid. */
static void
shares_read(struct share *h, const float *const row[ROWS], size_t g)
{
	const float codec = row[CODEC][g], param = row[PARAM][g];

	h->plan = (struct codec_plan){ CODEC_NONE, 0, 0 };
	h->bytes = 0;
	if (!(codec >= 0 && codec < (float)CODEC_MAX && param >= 0 && param < 256 &&
	    isfinite(row[KNOB][g]) && row[BYTES][g] >= 0 &&
	    isfinite(row[BYTES][g])) || !codec_known((uint64_t)codec) ||
	    !codec_takes((uint32_t)codec, (uint8_t)param))
		return;
	h->plan.codec = (uint32_t)codec;
	h->plan.param = (uint8_t)param;
	h->plan.arg = row[KNOB][g];
	/* round the argument to one that the codec accepts */
	h->plan = codec_turn(&h->plan, 1);
	h->bytes = (double)row[BYTES][g];
}

int
shares_begin(struct shares *s, const struct statedir *st,
    const struct shard *sh, size_t n, struct err *e)
{
	const float *row[ROWS];
	struct learned h;
	size_t g, k = 0;
	int r;

	if ((r = alloc_grow(&s->of, &s->cap, n, sizeof(*s->of), e)) < 0 ||
	    (r = learned_before(&h, st, SHARES_FILE, sh->step, e)) < 0)
		return r;
	memset(s->of, 0, n * sizeof(*s->of));
	s->n = n;
	s->on = 1;
	s->left = 0;
	while (k < ROWS && (row[k] = learned_row(&h, shares_row[k], n)) != NULL)
		k++;
	s->known = k == ROWS;
	for (g = 0; g < n && s->known; g++) {
		shares_read(&s->of[g], row, g);
		s->left += s->of[g].bytes;
	}
	learned_release(&h);
	return 0;
}

void
shares_coded(struct shares *s, size_t g, const struct codec_plan *p,
    size_t len, size_t values)
{
	s->of[g].coded = *p;
	s->of[g].len = len;
	s->of[g].values = values;
}

/* ---- the shares for the next shard ---- */

/* Return the log of the factor by which a group was coded coarser than `want'. */
static double
shares_coarser(const struct share *h, const struct codec_plan *want)
{
	const struct codec_plan more = codec_turn(want, 2);
	const double t = detmath_log((double)h->coded.arg / (double)want->arg);

	return more.arg < want->arg ? -t : t;
}

/* Return the bytes that the group would have taken by its plan; < 0 if that is
 * unknown. */
static double
shares_would(const struct share *h, const struct codec_ctx *ctx, size_t n)
{
	const struct codec_plan *want = &h->plan;
	const double len = (double)h->len;
	double far;

	if (want->codec == CODEC_NONE || h->values == 0)
		return 0;
	if (codec_fixed(want))
		return (double)codec_size(want, ctx, n);
	if (h->len == 0)
		return -1;
	if (h->coded.codec != want->codec || !codec_rate(want) ||
	    !(h->coded.arg > 0) || !(want->arg > 0))
		return len;
	far = detmath_exp(shares_coarser(h, want) * rate_control_steep(len,
	    (double)h->values));
	return len * fmax(1 / SHARES_FAR, fmin(SHARES_FAR, far));
}

/* Set the bytes of all groups for the next shard.  Groups that were not sent, and whose plan
 * does not fix their bytes, get as many per value as the others (1 if there are none), so that
 * shares have room for them.  A group of zeros without a plan gets the plan of the group before. */
static void
shares_next(struct shares *s, const struct shard *sh, const struct schema *sc)
{
	double bytes = 0, values = 0;
	struct schema_span span;
	struct codec_ctx ctx;
	struct share *h;
	uint32_t g;

	for (g = 0; g < s->n; g++) {
		h = &s->of[g];
		schema_span(sc, g, &span);
		values_ctx(sc, sh, g, &ctx);
		h->bytes = shares_would(h, &ctx, span.n);
		if (h->bytes > 0) {
			bytes += h->bytes;
			values += (double)h->values;
		}
		if (h->plan.codec == CODEC_NONE && h->values == 0 && g > 0)
			h->plan = s->of[g - 1].plan;
	}
	for (g = 0; g < s->n; g++)
		if (s->of[g].bytes < 0)
			s->of[g].bytes = values > 0 ? bytes *
			    (double)s->of[g].values / values :
			    (double)s->of[g].values;
}

int
shares_save(struct shares *s, const struct statedir *st,
    const struct shard *sh, const struct schema *sc, struct err *e)
{
	struct learned h = LEARNED_INIT;
	float *row = alloc_get(s->n, ROWS * sizeof(*row), e);
	const struct share *q;
	size_t g, k;
	int r = row != NULL ? 0 : -ERR_SYS;

	shares_next(s, sh, sc);
	for (g = 0; g < s->n && r == 0; g++) {
		q = &s->of[g];
		row[CODEC * s->n + g] = q->plan.codec < CODEC_MAX ?
		    (float)q->plan.codec : -1;
		row[PARAM * s->n + g] = (float)q->plan.param;
		row[KNOB * s->n + g] = q->plan.arg;
		row[BYTES * s->n + g] = (float)q->bytes;
	}
	for (k = 0; k < ROWS && r == 0; k++)
		r = learned_put(&h, shares_row[k], row + k * s->n, s->n, e);
	if (r == 0)
		r = learned_save_again(&h, st, SHARES_FILE, sh, e);
	learned_release(&h);
	alloc_free(row);
	return r;
}
