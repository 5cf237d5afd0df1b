#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/err.h"
#include "base/num.h"
#include "format/array.h"
#include "format/keys.h"
#include "format/schema.h"
#include "format/reader.h"
#include "stage/policy_dynacomm.h"
#include "sync/dynacomm.h"

#define POLICY_DYNACOMM_LONGEST 1e7	/* limit on computing and sending, s */
enum { POLICY_DYNACOMM_TEXT = 32 * 1024 };	/* limit on the list of cuts, in bytes */

int
policy_dynacomm_hear(struct policy_dynacomm *c, const unsigned char *p,
    size_t len, size_t n, struct err *e)
{
	double *v = alloc_get(n, sizeof(*v), e), t;
	int k = v != NULL ? array_get_times(p, len, n, v, e) : -ERR_SYS;
	size_t i;

	if (k < 0) {
		alloc_free(v);
		return k;
	}
	/* the first layer is the last tensor */
	for (i = 0; i < n / 2; i++) {
		t = v[i];
		v[i] = v[n - 1 - i];
		v[n - 1 - i] = t;
	}
	alloc_free(c->heard);
	c->heard = v;
	return 0;
}

void
policy_dynacomm_begin(struct policy_dynacomm *c)
{
	alloc_free(c->heard);
	c->heard = NULL;
}

/* Add the layer times of this shard to the moving averages.  Return 1, or 0 if it has none. */
static int
policy_dynacomm_learn(struct policy_dynacomm *c, size_t n, struct err *e)
{
	double gain = 1 - exp2(-1.0 / POLICY_DYNACOMM_HALF);
	double *v = c->heard;
	size_t i;

	c->heard = NULL;
	if (v == NULL)
		return 0;
	if (c->n == n) {
		for (i = 0; i < n; i++)
			c->seconds[i] += gain * (v[i] - c->seconds[i]);
		alloc_free(v);
		return 1;
	}
	policy_dynacomm_release(c);	/* first shard, or another model */
	c->seconds = v;
	if ((c->cut = alloc_get(n, sizeof(*c->cut), e)) == NULL)
		return -ERR_SYS;
	c->n = n;
	return 1;
}

/* Set up the problem in whole nanoseconds. Return 1, or 0 if computing and sending a
 * shard takes more than POLICY_DYNACOMM_LONGEST seconds. */
static int
policy_dynacomm_model(const struct policy_dynacomm *c, const struct schema *sc, double bits,
    struct dynacomm *d, struct err *e)
{
	int64_t *gt = alloc_get(c->n, sizeof(*gt), e);
	int64_t *bc = alloc_get(c->n, sizeof(*bc), e);
	int r = gt != NULL && bc != NULL ? 1 : -ERR_SYS;
	double all = 0, t;
	size_t i;

	for (i = 0; i < c->n && r > 0; i++) {
		t = bits * (double)sc->t[c->n - 1 - i].numel;
		all += t + c->seconds[i] + c->dt;
		r = all <= POLICY_DYNACOMM_LONGEST;
		if (r > 0) {
			gt[i] = (int64_t)(t * 1e9 + 0.5);
			bc[i] = (int64_t)(c->seconds[i] * 1e9 + 0.5);
		}
	}
	if (r > 0 && (r = dynacomm_init(d, gt, bc, c->n, (int64_t)(c->dt *
	    1e9 + 0.5), e)) == 0)
		r = 1;
	alloc_free(gt);
	alloc_free(bc);
	return r;
}

/* Find the best plan, and adopt it if it gains enough.  Return 1 if it was adopted, else 0;
 * set *t to the time that the plan in use takes, in ns. */
static int
policy_dynacomm_plan(struct policy_dynacomm *c, const struct dynacomm *d, int64_t *t, struct err *e)
{
	size_t *cut = alloc_get(c->n, sizeof(*cut), e), k;
	int64_t best;
	int r;

	if (cut == NULL)
		return -ERR_SYS;
	if ((r = dynacomm_best(d, cut, &k, e)) < 0) {
		alloc_free(cut);
		return r;
	}
	best = dynacomm_backward(d, cut, k);
	*t = c->k > 0 ? dynacomm_backward(d, c->cut, c->k) : INT64_MAX;
	if ((double)best < (1 - POLICY_DYNACOMM_GAIN) * (double)*t) {
		memcpy(c->cut, cut, k * sizeof(*cut));
		c->k = k;
		*t = best;
		r = 1;
	}
	alloc_free(cut);
	return r;
}

/* Set KEYS_CUTS in kv to the lowest layer of each transmission, in the order of sending, and
 * KEYS_CUTS_SECONDS to seconds.  Return 1, or 0 if the list exceeds POLICY_DYNACOMM_TEXT. */
static int
policy_dynacomm_put(const struct policy_dynacomm *c, double seconds, struct text_kv *kv,
    struct err *e)
{
	struct buf b = BUF_INIT;
	char s[40];
	size_t j;
	int r = 0, n;

	for (j = c->k; j-- > 0 && r == 0 && b.n <= POLICY_DYNACOMM_TEXT;) {
		n = snprintf(s, sizeof(s), "%zu%s", (j > 0 ? c->cut[j - 1] :
		    0) + 1, j > 0 ? "," : "");
		r = buf_put(&b, s, (size_t)n + (j == 0), e);
	}
	if (r == 0 && b.n <= POLICY_DYNACOMM_TEXT && (r = text_set(kv, KEYS_CUTS,
	    (const char *)b.p, e)) == 0 &&
	    (r = text_setf(kv, KEYS_CUTS_SECONDS, e, "%.9g", seconds)) == 0)
		r = 1;
	buf_release(&b);
	return r;
}

int
policy_dynacomm_decide(struct policy_dynacomm *c, const struct schema *sc,
    double bandwidth, double share, struct text_kv *kv, char words[256],
    struct err *e)
{
	struct dynacomm d = DYNACOMM_INIT;
	size_t one = sc->n;
	char rate[NUM_TEXT];
	int64_t t = 0;
	int r, changed;

	(void)num_text(bandwidth, "bit/s", rate);
	(void)snprintf(words, 256, "cuts: %s", c->heard != NULL ? "bandwidth not known yet" :
	    "none are chosen: the shard has no times of its layers (annotation tIMe) before "
	    "its values: see ace-policy(1)");
	if (sc->n == 0 || (r = policy_dynacomm_learn(c, sc->n, e)) == 0)
		return 0;
	if (r < 0 || !(bandwidth > 0) || c->n != sc->n)
		return r < 0 ? r : 0;
	if ((r = policy_dynacomm_model(c, sc, 32 * share / bandwidth, &d, e)) == 0)
		(void)snprintf(words, 256, "cuts: none are chosen: to compute a shard and send it "
		    "at %s takes more than %g s", rate, (double)POLICY_DYNACOMM_LONGEST);
	if (r <= 0)
		return r;
	changed = policy_dynacomm_plan(c, &d, &t, e);
	if (changed >= 0)
		(void)snprintf(words, 256, "cuts: %s %zu of %zu layers' ends, "
		    "%.4g s to the last gradient's end, %.4g s without cuts; %s, "
		    "%.4g of the bytes, %.4g s a transmission", changed ?
		    "now" : "still", c->k, c->n, (double)t * 1e-9,
		    (double)dynacomm_backward(&d, &one, 1) * 1e-9, rate,
		    share, c->dt);
	dynacomm_release(&d);
	r = changed < 0 ? changed : policy_dynacomm_put(c, (double)t * 1e-9, kv, e);
	if (r == 0)
		(void)snprintf(words, 256, "cuts: none are chosen: the list of %zu cuts takes "
		    "more than %d bytes: give --cuts a longer time", c->k, POLICY_DYNACOMM_TEXT);
	return r;
}

void
policy_dynacomm_release(struct policy_dynacomm *c)
{
	alloc_free(c->seconds);
	alloc_free(c->heard);
	alloc_free(c->cut);
	c->seconds = c->heard = NULL;
	c->cut = NULL;
	c->n = c->k = 0;
}
