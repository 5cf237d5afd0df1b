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
	size_t *who;		/* [n] index of the contributor that states v[i] */
	size_t n;
	double *sorted;		/* the same numbers, sorted */
	double low, high;	/* the two middle numbers; equal for odd n */
};

static void
policy_merge_release(struct asked *a)
{
	alloc_free(a->v);
	alloc_free(a->who);
	alloc_free(a->sorted);
}

static int
policy_merge_begin(struct asked *a, size_t n, struct err *e)
{
	a->v = alloc_get(n + 1, sizeof(*a->v), e);
	a->who = alloc_get(n + 1, sizeof(*a->who), e);
	a->sorted = alloc_get(n + 1, sizeof(*a->sorted), e);
	return a->v != NULL && a->who != NULL && a->sorted != NULL ? 0 : -ERR_SYS;
}

/* Collect the numbers under a key of the shards' policies (policy 1) or heads (0).  Unless
 * `of' is NULL, use only contributors that also have the key `of'.  Return 1 if more than
 * half of all contributors have given a number, else 0. */
static int
policy_merge_collect(struct asked *a, struct gather *g, int policy, const char *key,
    const char *of, struct err *e)
{
	const struct text_kv *kv;
	size_t i, all = 0;
	int r;

	for (i = 0, a->n = 0; i < g->n; i++) {
		if (g->in[i].left)
			continue;
		all++;
		kv = policy ? &g->in[i].s->policy : &g->in[i].s->head.kv;
		if (of != NULL && text_get(kv, of) == NULL)
			continue;
		if ((r = keys_real(kv, key, &a->v[a->n],
		    shard_device(&g->in[i].s->head), e)) < 0)
			return gather_blame(g, i, r);
		if (r > 0)
			a->who[a->n++] = i;
	}
	if (a->n * 2 <= all)
		return 0;
	memcpy(a->sorted, a->v, a->n * sizeof(*a->v));
	qsort(a->sorted, a->n, sizeof(*a->sorted), compare_f64);
	a->low = a->sorted[(a->n - 1) / 2];
	a->high = a->sorted[a->n / 2];
	return 1;
}

/* Up to half of the devices may be bad.  So the functions below use the less harmful of two
 * middle values: the smaller, or the larger for KEYS_FORCE. */

static int
policy_merge_delay(const struct asked *a, struct text_kv *kv, struct err *e)
{
	return text_setf(kv, KEYS_DELAY, e, "%.0f", fmin(a->sorted[a->n - 1],
	    fmax(a->low, 1) * (double)POLICY_MERGE_FACTOR));
}

/* Return the lower limit on intervals; smaller requests are raised to it. */
static double
policy_merge_least(const struct asked *a)
{
	return ceil(a->low / (double)POLICY_MERGE_FACTOR);
}

static int
policy_merge_interval(const struct asked *a, struct text_kv *kv, struct err *e)
{
	return text_setf(kv, KEYS_INTERVAL, e, "%.0f",
	    fmax(a->sorted[0], policy_merge_least(a)));
}

/* Set a key with the interval of each device whose interval is not the common one.  Set no
 * key if together they take more than POLICY_MERGE_TEXT bytes. */
static int
policy_merge_own(const struct asked *a, const struct gather *g, struct text_kv *kv,
    struct err *e)
{
	struct text_kv own = TEXT_KV_INIT;
	const char *all = text_get(kv, KEYS_INTERVAL), *name;
	char key[TEXT_MAX_KEY + 1], v[NUM_TEXT];
	size_t i, bytes = 0;
	int r = 0;

	for (i = 0; i < a->n && r == 0 && bytes <= POLICY_MERGE_TEXT; i++) {
		name = shard_device(&g->in[a->who[i]].s->head);
		if (strlen(KEYS_INTERVAL_OF) + strlen(name) > TEXT_MAX_KEY ||
		    name[strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789._-")]
		    != '\0')
			continue;	/* no key can have that name */
		(void)snprintf(key, sizeof(key), KEYS_INTERVAL_OF "%s", name);
		(void)snprintf(v, sizeof(v), "%.0f", fmin(fmax(a->v[i],
		    policy_merge_least(a)), a->low * (double)POLICY_MERGE_FACTOR));
		if (strcmp(v, all) == 0)
			continue;
		bytes += strlen(key) + strlen(v) + 2;
		r = text_set(&own, key, v, e);
	}
	if (r == 0 && bytes <= POLICY_MERGE_TEXT)
		r = text_add(kv, &own, e);
	text_release(&own);
	return r;
}

/* Set the keys of the cuts to those of the slowest contributor within the bounds; if several
 * are equally slow, of the first by name. */
static int
policy_merge_cuts(const struct asked *a, const struct gather *g, struct text_kv *kv,
    struct err *e)
{
	const double bound = a->low * (double)POLICY_MERGE_FACTOR;
	const struct gather_in *in, *last = NULL;
	const char *cuts, *seconds;
	double most = -1;
	size_t i;
	int r;

	/* no cuts suit two halves of the devices that differ so much */
	if (a->high > bound)
		return 0;
	for (i = 0; i < a->n; i++) {
		in = &g->in[a->who[i]];
		cuts = text_get(&in->s->policy, KEYS_CUTS);
		seconds = text_get(&in->s->policy, KEYS_CUTS_SECONDS);
		if (strlen(cuts) + strlen(seconds) > POLICY_MERGE_CUTS ||
		    a->v[i] > bound || a->v[i] < most || (a->v[i] <= most &&
		    strcmp(shard_device(&in->s->head), shard_device(&last->s->head)) > 0))
			continue;
		most = a->v[i];
		last = in;
	}
	if (last == NULL)	/* all lists of cuts are too long */
		return 0;
	r = text_set(kv, KEYS_CUTS, text_get(&last->s->policy, KEYS_CUTS), e);
	return r < 0 ? r : text_set(kv, KEYS_CUTS_SECONDS,
	    text_get(&last->s->policy, KEYS_CUTS_SECONDS), e);
}

int
policy_merge_write(struct gather *g, int own, struct text_kv *kv, struct err *e)
{
	struct asked a;
	int r = policy_merge_begin(&a, g->n, e);

	if (r == 0 && (r = policy_merge_collect(&a, g, 1, KEYS_DELAY, NULL, e)) > 0)
		r = policy_merge_delay(&a, kv, e);
	if (r == 0 && (r = policy_merge_collect(&a, g, 1, KEYS_INTERVAL, NULL, e)) > 0 &&
	    (r = policy_merge_interval(&a, kv, e)) == 0 && own)
		r = policy_merge_own(&a, g, kv, e);
	if (r == 0 && (r = policy_merge_collect(&a, g, 1, KEYS_FORCE, NULL, e)) > 0)
		r = text_setf(kv, KEYS_FORCE, e, "%.0f", a.high);
	if (r == 0 && (r = policy_merge_collect(&a, g, 1, KEYS_CUTS_SECONDS, KEYS_CUTS,
	    e)) > 0)
		r = policy_merge_cuts(&a, g, kv, e);
	policy_merge_release(&a);
	return r;
}

int
policy_merge_norm(struct gather *g, struct text_kv *kv, struct err *e)
{
	struct asked a;
	double sum = 0;
	size_t i;
	int r = policy_merge_begin(&a, g->n, e);

	if (r == 0 && (r = policy_merge_collect(&a, g, 0, SHARD_KEY_NORM, NULL, e)) > 0) {
		for (i = 0; i < a.n; i++)
			sum += fmin(a.v[i], a.low * (double)POLICY_MERGE_FACTOR);
		r = text_setf(kv, SHARD_KEY_NORM, e, "%.9g", sum / (double)a.n);
	}
	policy_merge_release(&a);
	return r;
}
