#include <math.h>
#include <stdio.h>

#include "base/err.h"
#include "device/contraction.h"

enum { LANES = 8 };

void
contraction_group(struct contraction *c, double energy, const float *p,
    const float *dec, size_t n, size_t bytes)
{
	double lane[LANES] = { 0 }, lost = 0, d;
	size_t i, j;

	c->energy += energy;
	c->values += (double)n;
	c->bytes += (double)bytes;
	/* sums that do not wait for each other */
	for (i = 0; i + LANES <= n && dec != NULL; i += LANES)
		for (j = 0; j < LANES; j++) {
			d = (double)p[i + j] - (double)dec[i + j];
			lane[j] += d * d;
		}
	for (j = 0; i + j < n && dec != NULL; j++) {
		d = (double)p[i + j] - (double)dec[i + j];
		lane[j] += d * d;
	}
	for (j = 0; j < LANES; j++)
		lost += lane[j];
	c->lost += dec != NULL ? lost : energy;
}

static int
contraction_put(struct memory *h, const char *key, double v, struct err *e)
{
	char s[40];

	(void)snprintf(s, sizeof(s), "%.9g", v);
	return text_set(&h->kv, key, s, e);
}

int
contraction_save(const struct contraction *c, const struct state *s,
    struct err *e)
{
	struct memory h = MEMORY_INIT;
	float row[2];
	double alpha, share;
	int r;

	if (!(c->energy > 0))
		return 0;
	alpha = fmax(0, 1 - c->lost / c->energy);
	share = c->bytes / (4 * c->values);
	row[0] = (float)alpha;
	row[1] = (float)share;
	if ((r = contraction_put(&h, CONTRACTION_ALPHA, alpha, e)) == 0 &&
	    (r = contraction_put(&h, CONTRACTION_SHARE, share, e)) == 0 &&
	    (r = memory_put(&h, CONTRACTION_FILE, row, 2, e)) == 0)
		r = memory_save(&h, s, CONTRACTION_FILE, NULL, "ace-compress", e);
	memory_release(&h);
	return r;
}
