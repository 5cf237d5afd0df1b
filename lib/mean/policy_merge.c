#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/compare.h"
#include "base/err.h"
#include "base/num.h"
#include "format/keys.h"
#include "format/text.h"
#include "mean/gather.h"
#include "mean/policy_merge.h"

/* The numbers that contributors state under one key. */
struct asked {
	double *v;
	size_t *who;		/* the contributor of each */
	size_t n, all;		/* all: contributors, with the key or not */
};

static void
policy_merge_release(struct asked *a)
{
	alloc_free(a->v);
	alloc_free(a->who);
}

static int
policy_merge_begin(struct asked *a, size_t n, struct err *e)
{
	a->n = a->all = 0;
	a->v = alloc_get(n + 1, sizeof(*a->v), e);
	a->who = alloc_get(n + 1, sizeof(*a->who), e);
	return a->v != NULL && a->who != NULL ? 0 : -ERR_SYS;
}

/* Collect a key from the policies, or else from the heads of the shards.  With `of', only
 * contributors that also have that key count; NULL: all. */
static int
policy_merge_collect(struct asked *a, struct gather *g, int policy, const char *key,
    const char *of, struct err *e)
{
	const struct text_kv *kv;
	size_t i;
	int r;

	for (i = 0, a->n = a->all = 0; i < g->n; i++) {
		if (g->in[i].left)
			continue;
		a->all++;
		kv = policy ? &g->in[i].policy : &g->in[i].head.kv;
		if (of != NULL && text_get(kv, of) == NULL)
			continue;
		if ((r = keys_real(kv, key, &a->v[a->n],
		    shard_device(&g->in[i].head), e)) < 0)
			return gather_blame(g, i, r);
		if (r > 0)
			a->who[a->n++] = i;
	}
	return 0;
}

/* Compute the median.  Return 1, or 0 unless more than half of the contributors state a
 * number.  Of an even number take the middle value that cannot harm the model, since half
 * of the devices may be bad: the smaller one, or for KEYS_FORCE the larger one (up 1). */
static int
policy_merge_median(const struct asked *a, int up, double *median, struct err *e)
{
	double *v;

	if (a->n * 2 <= a->all)
		return 0;
	if ((v = alloc_get(a->n, sizeof(*v), e)) == NULL)
		return -ERR_SYS;
	memcpy(v, a->v, a->n * sizeof(*v));
	qsort(v, a->n, sizeof(*v), compare_f64);
	*median = v[up ? a->n / 2 : (a->n - 1) / 2];
	alloc_free(v);
	return 1;
}

static double
policy_merge_extreme(const struct asked *a, int most)
{
	double v = a->v[0];
	size_t i;

	for (i = 1; i < a->n; i++)
		if (most ? a->v[i] > v : a->v[i] < v)
			v = a->v[i];
	return v;
}

static int
policy_merge_delay(struct asked *a, struct text_kv *kv, struct err *e)
{
	double m, v;
	int r = policy_merge_median(a, 0, &m, e);

	if (r <= 0)
		return r;
	m = m >= 1 ? m * (double)POLICY_MERGE_FACTOR : (double)POLICY_MERGE_FACTOR;
	v = policy_merge_extreme(a, 1);
	return text_setf(kv, KEYS_DELAY, e, "%.0f", v < m ? v : m);
}

static int
policy_merge_interval(struct asked *a, struct text_kv *kv, struct err *e)
{
	double m, v, least;
	int r = policy_merge_median(a, 0, &m, e);

	if (r <= 0)
		return r;
	v = policy_merge_extreme(a, 0);
	least = ceil(m / (double)POLICY_MERGE_FACTOR);
	return text_setf(kv, KEYS_INTERVAL, e, "%.0f", v > least ? v : least);
}

/* Put the interval of each device that asks for another one than the common interval; put
 * none if they take more than POLICY_MERGE_TEXT bytes. */
static int
policy_merge_own(const struct asked *a, struct gather *g, struct text_kv *kv,
    struct err *e)
{
	struct text_kv own = TEXT_KV_INIT;
	const char *all = text_get(kv, KEYS_INTERVAL), *name;
	char key[TEXT_MAX_KEY + 1], v[NUM_TEXT];
	size_t i, bytes = 0;
	double m;
	int r = policy_merge_median(a, 0, &m, e);

	for (i = 0; i < a->n && r > 0; i++) {
		name = shard_device(&g->in[a->who[i]].head);
		if (strlen(KEYS_INTERVAL_OF) + strlen(name) > TEXT_MAX_KEY ||
		    name[strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789._-")]
		    != '\0')
			continue;	/* no key can have that name */
		(void)snprintf(key, sizeof(key), KEYS_INTERVAL_OF "%s", name);
		(void)snprintf(v, sizeof(v), "%.0f", fmin(fmax(a->v[i],
		    ceil(m / (double)POLICY_MERGE_FACTOR)), m * (double)POLICY_MERGE_FACTOR));
		if (strcmp(v, all) == 0)
			continue;
		bytes += strlen(key) + strlen(v) + 2;
		if ((r = text_set(&own, key, v, e)) == 0)
			r = bytes <= POLICY_MERGE_TEXT;
	}
	if (r > 0)
		r = text_add(kv, &own, e);
	text_release(&own);
	return r < 0 ? r : 0;
}

static int
policy_merge_force(struct asked *a, struct text_kv *kv, struct err *e)
{
	double m;
	int r = policy_merge_median(a, 1, &m, e);

	return r <= 0 ? r : text_setf(kv, KEYS_FORCE, e, "%.0f", m);
}

/* Put the cuts of the slowest contributor within the bounds; of equally slow ones, the
 * first by name. */
static int
policy_merge_cuts(struct asked *a, struct gather *g, struct text_kv *kv, struct err *e)
{
	const char *name, *cuts, *seconds;
	double m, upper, most = -1;
	size_t i, last = 0;
	int r = policy_merge_median(a, 0, &m, e);

	/* no value suits two halves of the devices that are so far apart */
	if (r <= 0 || (r = policy_merge_median(a, 1, &upper, e)) <= 0 ||
	    upper > m * (double)POLICY_MERGE_FACTOR)
		return r < 0 ? r : 0;
	for (i = 0; i < a->n; i++) {
		name = shard_device(&g->in[a->who[i]].head);
		cuts = text_get(&g->in[a->who[i]].policy, KEYS_CUTS);
		seconds = text_get(&g->in[a->who[i]].policy, KEYS_CUTS_SECONDS);
		if (strlen(cuts) + strlen(seconds) > POLICY_MERGE_CUTS ||
		    a->v[i] > m * (double)POLICY_MERGE_FACTOR || a->v[i] < most ||
		    (a->v[i] <= most && strcmp(name,
		    shard_device(&g->in[last].head)) > 0))
			continue;
		most = a->v[i];
		last = a->who[i];
	}
	if (most < 0)		/* all lists of cuts are too long */
		return 0;
	r = text_set(kv, KEYS_CUTS, text_get(&g->in[last].policy, KEYS_CUTS), e);
	return r < 0 ? r : text_set(kv, KEYS_CUTS_SECONDS,
	    text_get(&g->in[last].policy, KEYS_CUTS_SECONDS), e);
}

int
policy_merge_write(struct gather *g, int own, struct text_kv *kv, struct err *e)
{
	struct asked a;
	int r = policy_merge_begin(&a, g->n, e);

	if (r == 0 && (r = policy_merge_collect(&a, g, 1, KEYS_DELAY, NULL, e)) == 0 &&
	    (r = policy_merge_delay(&a, kv, e)) == 0 &&
	    (r = policy_merge_collect(&a, g, 1, KEYS_INTERVAL, NULL, e)) == 0 &&
	    (r = policy_merge_interval(&a, kv, e)) == 0 &&
	    (!own || (r = policy_merge_own(&a, g, kv, e)) == 0) &&
	    (r = policy_merge_collect(&a, g, 1, KEYS_FORCE, NULL, e)) == 0 &&
	    (r = policy_merge_force(&a, kv, e)) == 0 &&
	    (r = policy_merge_collect(&a, g, 1, KEYS_CUTS_SECONDS, KEYS_CUTS, e)) == 0)
		r = policy_merge_cuts(&a, g, kv, e);
	policy_merge_release(&a);
	return r;
}

int
policy_merge_norm(struct gather *g, struct text_kv *kv, struct err *e)
{
	struct asked a;
	double sum = 0, m;
	size_t i;
	int r = policy_merge_begin(&a, g->n, e);

	if (r == 0 && (r = policy_merge_collect(&a, g, 0, SHARD_KEY_NORM, NULL, e)) == 0 &&
	    (r = policy_merge_median(&a, 0, &m, e)) > 0) {
		for (i = 0; i < a.n; i++)
			sum += a.v[i] < m * (double)POLICY_MERGE_FACTOR ? a.v[i] :
			    m * (double)POLICY_MERGE_FACTOR;
		r = text_setf(kv, SHARD_KEY_NORM, e, "%.9g", sum / (double)a.n);
	}
	policy_merge_release(&a);
	return r;
}
