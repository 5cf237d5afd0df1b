#include <math.h>
#include <stdio.h>

#include "base/err.h"
#include "device/contraction.h"

void
contraction_group(struct contraction *c, const struct kern *k, const float *p,
    const float *dec, size_t n, size_t bytes)
{
	struct kern_stat st;
	double lost = 0, d;
	size_t i;

	k->stat(p, n, &st);
	c->energy += st.sumsq;
	c->values += (double)n;
	c->bytes += (double)bytes;
	for (i = 0; i < n && dec != NULL; i++) {
		d = (double)p[i] - (double)dec[i];
		lost += d * d;
	}
	c->lost += dec != NULL ? lost : st.sumsq;
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
