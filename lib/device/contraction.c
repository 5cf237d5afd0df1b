#include <math.h>

#include "base/err.h"
#include "device/contraction.h"

void
contraction_group(struct contraction *c, double energy, double lost, size_t n,
    size_t bytes)
{
	c->energy += energy;
	c->lost += lost;
	c->values += (double)n;
	c->bytes += (double)bytes;
}

int
contraction_save(struct contraction *c, const struct statedir *s,
    const struct shard *sh, struct err *e)
{
	struct err old = ERR_INIT;
	struct learned h;
	double alpha, share, before = 0;
	int r;

	if (!(c->energy > 0))
		return 0;
	c->growing = 0;
	if (c->lost >= c->energy && c->bytes > 0) {
		if ((r = learned_before(&h, s, CONTRACTION_FILE, sh->step, &old)) > 0)
			r = learned_list(&h, CONTRACTION_GROWING, &before, 1, &old);
		learned_release(&h);
		if (r < 0 && r != -ERR_DATA)	/* a damaged file is replaced */
			return err_move(e, &old);
		c->growing = 1 + (unsigned)fmin(fmax(before, 0), 1e6);
	}
	h = (struct learned)LEARNED_INIT;
	alpha = fmax(0, 1 - c->lost / c->energy);
	share = c->bytes / (4 * c->values);
	if ((r = text_setf(&h.kv, CONTRACTION_ALPHA, e, "%.9g", alpha)) == 0 &&
	    (r = text_setf(&h.kv, CONTRACTION_SHARE, e, "%.9g", share)) == 0 &&
	    (c->growing == 0 || (r = text_setf(&h.kv, CONTRACTION_GROWING, e,
	    "%u", c->growing)) == 0))
		r = learned_save_again(&h, s, CONTRACTION_FILE, sh, e);
	learned_release(&h);
	return r;
}
