#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "train_data.h"
#include "train_model.h"

enum { STRIPE = 8 };	/* windows in a stripe of interleaved data */

static int
append(struct data *d, size_t *room, FILE *f)
{
	size_t r;

	do {
		if (*room - d->n < 65536) {
			size_t more = *room + *room / 2 + 1048576;
			uint8_t *p = realloc(d->text, more);

			if (p == NULL)
				return -1;
			d->text = p;
			*room = more;
		}
		r = fread(d->text + d->n, 1, *room - d->n, f);
		d->n += r;
	} while (r > 0);
	return ferror(f) ? -1 : 0;
}

int
data_read(struct data *d, char *const *file, size_t n, double valid,
    const char **bad)
{
	size_t room = 0, i;
	int r = 0;

	memset(d, 0, sizeof *d);
	for (i = 0; i < n && r == 0; i++) {
		FILE *f = fopen(file[i], "rb");

		*bad = file[i];
		if (f == NULL)
			return -1;
		r = append(d, &room, f);
		(void)fclose(f);
	}
	d->train = d->n - (size_t)((double)d->n * valid);
	return r;
}

void
data_free(struct data *d)
{
	free(d->text);
	memset(d, 0, sizeof *d);
}

int
data_enough(const struct data *d, size_t of, size_t t)
{
	return d->train / of >= STRIPE * (t + 1) &&
	    d->n - d->train >= 2 * (t + 1);
}

/* The text is a sequence of windows, each of which shares one byte with the next.  A device
 * reads all its windows in each pass, in a new order; their beginnings are shifted by a
 * number of bytes that depends only on the seed and the pass. */
size_t
data_windows(const struct data *d, const struct data_share *s, size_t t)
{
	const size_t stripes = STRIPE * s->of, skip = STRIPE * s->index;
	size_t all, left;

	if (!s->interleaved)
		return (d->train / s->of - t) / t;
	all = (d->train - t) / t;
	left = all % stripes < skip ? 0 : all % stripes - skip;
	return all / stripes * STRIPE + (left < STRIPE ? left : STRIPE);
}

/* Return the place of x when 0..n-1 are shuffled by a key: apply a Feistel network over
 * the next power of four until the result is below n (Black and Rogaway 2002). */
static uint64_t
shuffled(uint64_t x, uint64_t n, uint64_t key)
{
	unsigned half = 1, i;

	while (n > (uint64_t)1 << 2 * half)
		half++;
	do {
		uint64_t left = x >> half, mask = ((uint64_t)1 << half) - 1;
		uint64_t right = x & mask;

		for (i = 0; i < 6; i++) {
			uint64_t f = left ^
			    (model_random(key, i, right) & mask);

			left = right;
			right = f;
		}
		x = left << half | right;
	} while (x >= n);
	return x;
}

/* Return where in the text the window begins that this device reads as number k, from 0. */
static size_t
start(const struct data *d, const struct data_share *s, size_t t,
    uint64_t seed, uint64_t k)
{
	const uint64_t n = data_windows(d, s, t);
	const uint64_t key = model_random(seed, 1000 + s->index, k / n);
	const size_t w = (size_t)shuffled(k % n, n, key);
	const size_t first = (size_t)(model_random(seed, 999, k / n) % t);

	if (!s->interleaved)
		return d->train / s->of * s->index + first + w * t;
	return first + t * (w % STRIPE +
	    STRIPE * (w / STRIPE * s->of + s->index));
}

void
data_batch(const struct data *d, const struct data_share *s, size_t b,
    size_t t, uint64_t seed, uint64_t step, uint8_t *out)
{
	size_t i;

	for (i = 0; i < b; i++)
		memcpy(out + i * (t + 1), d->text +
		    start(d, s, t, seed, step * b + i), t + 1);
}

void
data_window(const struct data *d, size_t i, size_t count, size_t t,
    uint8_t *out)
{
	const size_t room = d->n - d->train - (t + 1);

	memcpy(out, d->text + d->train + (size_t)((double)room * (double)i /
	    (double)count), t + 1);
}

void
data_unigram(const struct data *d, double *loss, double *top1)
{
	double seen[256], sum = 0;
	size_t i, best = 0, hits = 0;

	for (i = 0; i < 256; i++)
		seen[i] = 1;		/* count each byte as if it had been seen once before */
	for (i = 0; i < d->train; i++)
		seen[d->text[i]]++;
	for (i = 1; i < 256; i++)
		best = seen[i] > seen[best] ? i : best;
	for (i = d->train; i < d->n; i++) {
		sum -= log(seen[d->text[i]] / (double)(d->train + 256));
		hits += d->text[i] == best;
	}
	*loss = sum / (double)(d->n - d->train);
	*top1 = (double)hits / (double)(d->n - d->train);
}
