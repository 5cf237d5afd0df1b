#include <math.h>
#include <string.h>

#include "base/elem.h"
#include "base/err.h"
#include "sync/price.h"

#define PRICE_LN2 0.69314718055994530942
#define PRICE_DECAY 0.5		/* of the past, from shard to shard */
#define PRICE_TRUST 0.2	/* of the budget is believed beforehand */
#define PRICE_JUMP 20		/* octaves that all may move by at once */
enum {
	PRICE_LOW = -120, PRICE_OCTAVE = 4,	/* 2^-120 to 2^40 a byte */
	PRICE_ROUNDS = 4
};

static double
price_clamp(double v, double lo, double hi)
{
	return v < lo ? lo : v > hi ? hi : v;
}

/* A slope as a bin, with its fraction; and back. */
static double
price_bin(double slope)
{
	return (elem_log(slope) / PRICE_LN2 - PRICE_LOW) * PRICE_OCTAVE;
}

static double
price_slope(double bin)
{
	return elem_exp((bin / PRICE_OCTAVE + PRICE_LOW) * PRICE_LN2);
}

void
price_begin(struct price *p, double budget, double total)
{
	memset(&p->now, 0, sizeof(p->now));
	memset(p->open, 0, sizeof(p->open));
	p->budget = budget;
	p->total = total > 0 ? total : 1;
	p->at = p->spent = 0;
}

/* ---- what a group asks for ---- */

static void
price_steps(const struct select_level *l, size_t m, struct price_own *own)
{
	uint8_t hull[SELECT_LEVELS];
	size_t k = select_hull(l, m, hull), i;
	double bytes, s, b;

	own->n = 0;
	if (k > 0 && l[hull[0]].rate > 0) {	/* what it takes at any price */
		own->bin[0] = PRICE_SLOPES - 1;
		own->bytes[own->n++] = (float)l[hull[0]].rate;
	}
	for (i = 1; i < k; i++) {
		bytes = (double)(l[hull[i]].rate - l[hull[i - 1]].rate);
		s = (l[hull[i - 1]].dist - l[hull[i]].dist) / bytes;
		if (!(s > 0))
			continue;
		b = price_clamp(floor(price_bin(s)), 0, PRICE_SLOPES - 2);
		own->bin[own->n] = (uint16_t)b;
		own->bytes[own->n++] = (float)bytes;
	}
}

/* Into the places that the group covers, each its part. */
static void
price_spread(struct price *p, const struct price_own *own, double n)
{
	double a = p->at / p->total * PRICE_PLACES;
	double z = (p->at + n) / p->total * PRICE_PLACES, part;
	int i = (int)price_clamp(floor(a), 0, PRICE_PLACES - 1);
	unsigned k;

	for (; i < PRICE_PLACES && i < z; i++) {
		part = (fmin(z, i + 1) - fmax(a, i)) / (z - a);
		for (k = 0; k < own->n; k++)
			p->now.steps[i][own->bin[k]] +=
			    (float)((double)own->bytes[k] * part);
	}
}

void
price_look(struct price *p, const struct select_level *l, size_t m, double n,
    struct price_own *own)
{
	unsigned k;

	price_steps(l, m, own);
	for (k = 0; k < own->n; k++)
		p->open[own->bin[k]] += (double)own->bytes[k];
	if (n > 0)
		price_spread(p, own, n);
	p->at += n;
}

void
price_paid(struct price *p, const struct price_own *own, double told,
    double bytes)
{
	unsigned k;

	for (k = 0; k < own->n; k++)
		p->open[own->bin[k]] = fmax(0, p->open[own->bin[k]] -
		    (double)own->bytes[k]);
	p->now.told += (float)told;
	p->now.took += (float)bytes;
	p->spent += bytes;
}

/* ---- demand ---- */

/* Of the places from .. to (in places), by slope. */
static void
price_sum(const struct price_shard *s, double from, double to,
    double sum[PRICE_SLOPES])
{
	double part;
	int i, b;

	for (i = (int)price_clamp(floor(from), 0, PRICE_PLACES);
	    i < PRICE_PLACES && i < to; i++) {
		part = fmin(i + 1, to) - fmax(i, from);
		for (b = 0; b < PRICE_SLOPES; b++)
			sum[b] += part * (double)s->steps[i][b];
	}
}

/* The bin, with its fraction, at which so many bytes are asked for: the whole
 * range's ends where more or less is. */
static double
price_at(const double slope[PRICE_SLOPES], double bytes)
{
	double sum = 0;
	int b;

	for (b = PRICE_SLOPES - 1; b >= 0; b--) {
		if (slope[b] > 0 && sum + slope[b] >= bytes)
			/* inside the bin: the dearer part of it */
			return b + 1 - price_clamp((bytes - sum) / slope[b], 0,
			    1);
		sum += slope[b];
	}
	return 0;
}

/* The bytes that are asked for at this bin. */
static double
price_demand(const double slope[PRICE_SLOPES], double bin)
{
	double sum = 0;
	int b;

	for (b = PRICE_SLOPES - 1; b >= 0 && b + 1 > bin; b--)
		sum += slope[b] * fmin(1, b + 1 - bin);
	return sum;
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

/*
 * Bins by which the past has moved: now[] asks at `bin' for what the past asked
 * for in the same places at bin - move.  trust: bytes that speak for no move.
 */
static double
price_move(const double now[PRICE_SLOPES], const double past[PRICE_SLOPES],
    double bin, double trust)
{
	double asks = price_demand(now, bin), was = price_demand(past, bin);
	double move = price_clamp(bin - price_at(past, asks),
	    -PRICE_JUMP * PRICE_OCTAVE, PRICE_JUMP * PRICE_OCTAVE);
	double weight = (asks + was) / 2;

	return weight > 0 ? move * weight / (weight + trust) : 0;
}

/* What is open, and what lies behind, moved. */
static void
price_all(const struct price *p, double move, double sum[PRICE_SLOPES])
{
	double behind[PRICE_SLOPES] = { 0 }, part = move - floor(move), v;
	int b, i, by = (int)floor(move);

	price_sum(&p->before, p->at / p->total * PRICE_PLACES, PRICE_PLACES,
	    behind);
	memcpy(sum, p->open, sizeof(p->open));
	sum[PRICE_SLOPES - 1] += behind[PRICE_SLOPES - 1];
	for (b = 0; b < PRICE_SLOPES - 1; b++) {
		if (!((v = behind[b]) > 0))
			continue;
		i = (int)price_clamp(b + by, 0, PRICE_SLOPES - 2);
		sum[i] += v * (1 - part);
		i = (int)price_clamp(b + by + 1, 0, PRICE_SLOPES - 2);
		sum[i] += v * part;
	}
}

static double
price_first(const struct price *p, double left)
{
	double sum[PRICE_SLOPES] = { 0 };
	double share = p->at / fmax(p->total, p->at);
	int b;

	price_sum(&p->now, 0, PRICE_PLACES, sum);
	for (b = 0; b < PRICE_SLOPES; b++)
		sum[b] = sum[b] * (1 - share) / fmax(share, 1e-9) + p->open[b];
	return price_at(sum, left);
}

double
price_of(const struct price *p)
{
	double now[PRICE_SLOPES] = { 0 }, past[PRICE_SLOPES] = { 0 };
	double sum[PRICE_SLOPES], left = p->budget - p->spent, bin;
	int i;

	if (left <= 0)
		return HUGE_VAL;
	left /= price_bias(p);
	if (!p->known) {
		bin = price_first(p, left);
	} else {
		price_sum(&p->now, 0, PRICE_PLACES, now);
		price_sum(&p->before, 0, p->at / p->total * PRICE_PLACES,
		    past);
		bin = price_bin((double)p->before.price);
		for (i = 0; i < PRICE_ROUNDS; i++) {
			price_all(p, price_move(now, past, bin,
			    PRICE_TRUST * p->budget), sum);
			bin = price_at(sum, left);
		}
	}
	return bin > 0 ? price_slope(bin) : 0;
}

/* ---- from shard to shard ---- */

/* to = keep * to, moved, + (1 - keep) * from */
static void
price_mix(float to[PRICE_SLOPES], const float from[PRICE_SLOPES], int move,
    float keep)
{
	float was[PRICE_SLOPES];
	int b, i;

	memcpy(was, to, sizeof(was));
	for (b = 0; b < PRICE_SLOPES; b++)
		to[b] = (1 - keep) * from[b];
	for (b = 0; b < PRICE_SLOPES - 1; b++) {
		i = (int)price_clamp(b + move, 0, PRICE_SLOPES - 2);
		to[i] += keep * was[b];
	}
	to[PRICE_SLOPES - 1] += keep * was[PRICE_SLOPES - 1];
}

void
price_end(struct price *p)
{
	struct price_shard *was = &p->before;
	double now[PRICE_SLOPES] = { 0 }, past[PRICE_SLOPES] = { 0 }, bin, by;
	float keep = p->known ? (float)PRICE_DECAY : 0;
	int i;

	price_sum(&p->now, 0, PRICE_PLACES, now);
	if (!(price_demand(now, 0) > 0))
		return;			/* nothing to learn from */
	bin = fmax(1, price_at(now, p->budget / price_bias(p)));
	price_sum(was, 0, PRICE_PLACES, past);
	by = floor(price_move(now, past, bin, 0) + 0.5);
	for (i = 0; i < PRICE_PLACES; i++)
		price_mix(was->steps[i], p->now.steps[i], (int)by, keep);
	was->price = (float)price_slope(bin);
	was->told = keep * was->told + (1 - keep) * p->now.told;
	was->took = keep * was->took + (1 - keep) * p->now.took;
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
	p->known = p->before.price > 0;
	return 0;
}
