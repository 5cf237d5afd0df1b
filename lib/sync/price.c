#include <math.h>
#include <string.h>

#include "base/err.h"
#include "sync/elem.h"
#include "sync/price.h"

#define PRICE_LN2 0.69314718055994530942
#define PRICE_AIM 0.995
#define PRICE_DECAY 0.6		/* of the past, from shard to shard */
#define PRICE_TRUST 0.1		/* of its energy is believed beforehand */
enum { PRICE_LOW = -80, PRICE_OCTAVE = 4 };	/* 2^-80 to 2^40 a byte */

static double
price_clamp(double v, double lo, double hi)
{
	return v < lo ? lo : v > hi ? hi : v;
}

/* Bins that a factor moves a slope by. */
static double
price_shift(double factor)
{
	return elem_log(factor) / PRICE_LN2 * PRICE_OCTAVE;
}

void
price_begin(struct price *p, double budget, double total)
{
	memset(&p->now, 0, sizeof(p->now));
	p->budget = budget * PRICE_AIM;
	p->total = total > 0 ? total : 1;
	p->at = p->n = p->spent = p->energy = 0;
}

/* Adds q[n] to the places of the group looked at, each its part. */
static void
price_spread(const struct price *p, float *place, size_t stride, const float *q,
    size_t n)
{
	double a = p->at / p->total * PRICE_PLACES;
	double z = (p->at + p->n) / p->total * PRICE_PLACES, part;
	int i = (int)price_clamp(floor(a), 0, PRICE_PLACES - 1);
	size_t b;

	for (; i < PRICE_PLACES && i < z; i++) {
		part = (fmin(z, i + 1) - fmax(a, i)) / (z - a);
		for (b = 0; b < n; b++)
			if (q[b] != 0)
				place[(size_t)i * stride + b] +=
				    (float)((double)q[b] * part);
	}
}

void
price_look(struct price *p, const struct select_level *l, size_t m, double n)
{
	uint8_t hull[SELECT_LEVELS];
	size_t k = select_hull(l, m, hull), i;
	double bytes, s;
	int b;

	p->n = n;
	memset(p->own, 0, sizeof(p->own));
	if (k > 0)		/* what it takes at any price */
		p->own[PRICE_SLOPES - 1] += (float)l[hull[0]].rate;
	for (i = 1; i < k; i++) {
		bytes = (double)(l[hull[i]].rate - l[hull[i - 1]].rate);
		s = (l[hull[i - 1]].dist - l[hull[i]].dist) / bytes;
		if (!(s > 0))
			continue;
		b = (int)floor(price_shift(s) - PRICE_LOW * PRICE_OCTAVE);
		b = b < 0 ? 0 : b >= PRICE_SLOPES ? PRICE_SLOPES - 1 : b;
		p->own[b] += (float)bytes;
	}
	if (n > 0)
		price_spread(p, p->now.steps[0], PRICE_SLOPES, p->own,
		    PRICE_SLOPES);
}

/* Bytes there are for a byte foretold. */
static double
price_bias(const struct price *p)
{
	double told = (double)p->now.told, took = (double)p->now.took;

	if (p->known) {
		told += (double)p->before.told;
		took += (double)p->before.took;
	}
	return told > 0 && took > 0 ? price_clamp(took / told, 0.25, 4) : 1;
}

/* What lies from `from' (in places) on, of the past, by slope. */
static void
price_behind(const struct price *p, double from, double sum[PRICE_SLOPES])
{
	double part;
	int i, b;

	for (i = (int)price_clamp(floor(from), 0, PRICE_PLACES);
	    i < PRICE_PLACES; i++) {
		part = fmin(i + 1 - from, 1);
		for (b = 0; b < PRICE_SLOPES; b++)
			sum[b] += part * (double)p->before.steps[i][b];
	}
}

/* The price at which so many bytes are spent: 0 when there is less to buy. */
static double
price_at(const double slope[PRICE_SLOPES], double bytes)
{
	double sum = 0, part;
	int b;

	for (b = PRICE_SLOPES - 1; b >= 0; b--) {
		if (!(slope[b] > 0))
			continue;
		if (sum + slope[b] < bytes) {
			sum += slope[b];
			continue;
		}
		/* inside the bin: the dearer part of it */
		part = 1 - price_clamp((bytes - sum) / slope[b], 0, 1);
		return elem_exp(((b + part) / PRICE_OCTAVE + PRICE_LOW) *
		    PRICE_LN2);
	}
	return 0;
}

/* The energy of the whole shard, as far as it can be known. */
static double
price_whole(const struct price *p)
{
	double at = p->at / p->total * PRICE_PLACES, share = 0;
	int i;

	for (i = 0; i < PRICE_PLACES; i++)
		share += (double)p->before.energy[i] *
		    price_clamp(at - i, 0, 1);
	return (p->energy + PRICE_TRUST * (double)p->before.all) /
	    (share + PRICE_TRUST);
}

double
price_of(const struct price *p)
{
	double sum[PRICE_SLOPES] = { 0 }, left = p->budget - p->spent, whole;
	int b, i, shift;

	if (left <= 0)
		return HUGE_VAL;
	left /= price_bias(p);
	if (!p->known || !(p->before.all > 0)) {
		for (i = 0; i < PRICE_PLACES; i++)
			for (b = 0; b < PRICE_SLOPES; b++)
				sum[b] += (double)p->now.steps[i][b];
		return price_at(sum, left * (p->at + p->n) /
		    fmax(p->total - p->at, 1));
	}
	whole = price_whole(p);
	if (!(whole > 0))
		return 0;
	price_behind(p, (p->at + p->n) / p->total * PRICE_PLACES, sum);
	shift = (int)floor(price_shift(whole) + 0.5);
	for (b = 0; b < PRICE_SLOPES; b++) {
		i = b - shift;
		i = i < 0 ? 0 : i >= PRICE_SLOPES ? PRICE_SLOPES - 1 : i;
		sum[i] += (double)p->own[b];
	}
	return price_at(sum, left) * whole;
}

void
price_paid(struct price *p, double told, double bytes, double energy)
{
	float e = (float)energy;

	if (p->n > 0)
		price_spread(p, p->now.energy, 1, &e, 1);
	p->now.told += (float)told;
	p->now.took += (float)bytes;
	p->at += p->n;
	p->spent += bytes;
	p->energy += energy;
}

static void
price_mix(float *was, float is, float keep)
{
	*was = keep * *was + (1 - keep) * is;
}

void
price_end(struct price *p)
{
	struct price_shard *was = &p->before;
	const struct price_shard *is = &p->now;
	float keep = p->known ? (float)PRICE_DECAY : 0, all = (float)p->energy;
	int i, b, from, shift;

	if (!(all > 0))
		return;			/* nothing to learn from */
	shift = (int)floor(price_shift((double)all) + 0.5);
	for (i = 0; i < PRICE_PLACES; i++) {
		for (b = 0; b < PRICE_SLOPES; b++) {
			from = b + shift;
			price_mix(&was->steps[i][b], from >= 0 &&
			    from < PRICE_SLOPES - 1 && b < PRICE_SLOPES - 1 ?
			    is->steps[i][from] : 0, keep);
		}
		/* what is taken at any price has no slope to be scaled */
		was->steps[i][PRICE_SLOPES - 1] += (1 - keep) *
		    is->steps[i][PRICE_SLOPES - 1];
		price_mix(&was->energy[i], is->energy[i] / all, keep);
	}
	was->all = all;		/* energies fall or jump: the last is best */
	price_mix(&was->told, is->told, keep);
	price_mix(&was->took, is->took, keep);
	p->known = 1;
}

void
price_get(const struct price *p, float x[PRICE_NUMBERS])
{
	_Static_assert(sizeof(p->before) == PRICE_NUMBERS * sizeof(*x),
	    "rows of floats");
	memcpy(x, &p->before, sizeof(p->before));
}

int
price_put(struct price *p, const float x[PRICE_NUMBERS], struct err *e)
{
	size_t i;

	for (i = 0; i < PRICE_NUMBERS; i++)
		if (!isfinite(x[i]) || x[i] < 0)
			return err_set(e, ERR_DATA,
			    "corrupt: number %zu of the prices", i);
	memcpy(&p->before, x, sizeof(p->before));
	p->known = p->before.all > 0;
	return 0;
}
