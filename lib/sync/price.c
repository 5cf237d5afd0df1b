#include <math.h>
#include <string.h>

#include "base/err.h"
#include "sync/elem.h"
#include "sync/price.h"

#define PRICE_LN2 0.69314718055994530942
/* A little is left for the last groups: one of them starved costs more than
 * half a per cent for all. */
#define PRICE_AIM 0.995
enum { PRICE_LOW = -100, PRICE_OCTAVE = 16 };	/* 2^-100 to 2^60 a byte */

static double
price_clamp(double v, double lo, double hi)
{
	return v < lo ? lo : v > hi ? hi : v;
}

/* The price at which a shard spends so many bytes: 0 when it has not got so
 * many to spend. */
static double
price_at(const float slope[PRICE_SLOPES], double bytes)
{
	double sum = 0, part;
	int b;

	for (b = PRICE_SLOPES - 1; b >= 0; b--) {
		if (!(slope[b] > 0))
			continue;
		if (sum + (double)slope[b] < bytes) {
			sum += (double)slope[b];
			continue;
		}
		/* inside the bin: the dearer part of it */
		part = 1 - price_clamp((bytes - sum) / (double)slope[b], 0, 1);
		return elem_exp(((b + part) / PRICE_OCTAVE + PRICE_LOW) *
		    PRICE_LN2);
	}
	return 0;
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

void
price_begin(struct price *p, double budget, double total)
{
	memset(&p->now, 0, sizeof(p->now));
	p->budget = budget * PRICE_AIM;
	p->total = total > 0 ? total : 1;
	p->at = p->spent = p->energy = p->want = 0;
	p->base = p->known ? price_at(p->before.slope,
	    p->budget / price_bias(p)) : 0;
}

void
price_look(struct price *p, const struct select_level *l, size_t m)
{
	uint8_t hull[SELECT_LEVELS];
	size_t n = select_hull(l, m, hull), i;
	double bytes, s;
	int b;

	i = select_price(l, m, p->base);
	p->want = i < m ? (double)l[i].rate : 0;
	if (n > 0)		/* what it takes at any price */
		p->now.slope[PRICE_SLOPES - 1] += (float)l[hull[0]].rate;
	for (i = 1; i < n; i++) {
		bytes = (double)(l[hull[i]].rate - l[hull[i - 1]].rate);
		s = (l[hull[i - 1]].dist - l[hull[i]].dist) / bytes;
		if (!(s > 0))
			continue;
		b = (int)floor((elem_log(s) / PRICE_LN2 - PRICE_LOW) *
		    PRICE_OCTAVE);
		b = b < 0 ? 0 : b >= PRICE_SLOPES ? PRICE_SLOPES - 1 : b;
		p->now.slope[b] += (float)bytes;
	}
}

/* Of a quantity by place, what lies before place v (a share of the shard). */
static double
price_before(const float place[PRICE_PLACES], double v, double *all)
{
	double at = v * PRICE_PLACES, sum = 0;
	int i;

	for (*all = 0, i = 0; i < PRICE_PLACES; i++) {
		*all += (double)place[i];
		sum += (double)place[i] * price_clamp(at - i, 0, 1);
	}
	return sum;
}

double
price_of(const struct price *p, double n)
{
	double v = p->at / p->total, all, there, ratio, price, energy;
	double left = p->budget - p->spent;

	if (left <= 0)
		return HUGE_VAL;
	if (!p->known)
		return price_at(p->now.slope, (p->at + n) / p->total * left /
		    (1 - v) / price_bias(p));
	there = price_before(p->before.wanted, v, &all);
	if (!(all > 0))
		return 0;
	ratio = all > there ? left / p->budget * all / (all - there) : 1;
	price = price_at(p->before.slope, p->budget / price_bias(p) *
	    price_clamp(ratio, 0.1, 10));
	energy = price_before(p->before.energy, v, &all);
	/* a tenth of all as known beforehand: few groups tell little */
	if (all > 0)
		price *= price_clamp((p->energy + 0.1 * all) /
		    (energy + 0.1 * all), 1.0 / 64, 64);
	return price;
}

/* Adds q to the places from `at' on, n values long. */
static void
price_spread(float place[PRICE_PLACES], double at, double n, double total,
    double q)
{
	double a = at / total * PRICE_PLACES, z = (at + n) / total *
	    PRICE_PLACES, part;
	int i = (int)price_clamp(floor(a), 0, PRICE_PLACES - 1);

	for (; i < PRICE_PLACES && i < z; i++) {
		part = (fmin(z, i + 1) - fmax(a, i)) / (z - a);
		place[i] += (float)(q * part);
	}
}

void
price_paid(struct price *p, double n, double told, double bytes,
    double energy)
{
	if (n > 0) {
		price_spread(p->now.wanted, p->at, n, p->total,
		    p->known ? p->want : bytes);
		price_spread(p->now.energy, p->at, n, p->total, energy);
	}
	p->now.told += (float)told;
	p->now.took += (float)bytes;
	p->at += n;
	p->spent += bytes;
	p->energy += energy;
}

void
price_end(struct price *p)
{
	p->before = p->now;
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
	p->known = 1;
	return 0;
}
