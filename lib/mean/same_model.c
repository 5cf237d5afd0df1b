#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/err.h"
#include "format/shard.h"
#include "mean/gather.h"
#include "mean/same_model.h"

/* The statement of one contribution. */
struct same_model_said {
	const char *digest;
	uint64_t version;
	uint64_t came;			/* when it came, in ns, or 0 if that does not matter */
	size_t at;			/* its index in the step */
};

/* n statements in a row with the same version and digest. */
struct same_model_run {
	const struct same_model_said *first;	/* the first that came */
	size_t n;
};

/* Return 1 if run a has more statements than run b, or as many and an earlier first one. */
static int
same_model_more(const struct same_model_run *a, const struct same_model_run *b)
{
	return a->n != b->n ? a->n > b->n : a->n != 0 && a->first->came < b->first->came;
}

static int
same_model_order(const void *a, const void *b)
{
	const struct same_model_said *x = a, *y = b;
	const int k = strcmp(x->digest, y->digest);

	if (x->version != y->version)
		return x->version < y->version ? -1 : 1;
	if (k == 0 && x->came != y->came)
		return x->came < y->came ? -1 : 1;
	return k != 0 ? k : x->at < y->at ? -1 : x->at > y->at;
}

/* Return how many of the sorted statements s[n] have the version of the first.  Set top to
 * the two runs of these that come first by same_model_more; a missing run has n = 0. */
static size_t
same_model_runs(const struct same_model_said *s, size_t n, struct same_model_run top[2])
{
	struct same_model_run run;
	size_t i, k;

	top[0] = top[1] = (struct same_model_run){ s, 0 };
	for (i = 0; i < n && s[i].version == s->version; i = k) {
		for (k = i + 1; k < n && s[k].version == s->version &&
		    strcmp(s[k].digest, s[i].digest) == 0; k++)
			;
		run = (struct same_model_run){ s + i, k - i };
		if (same_model_more(&run, &top[0])) {
			top[1] = top[0];
			top[0] = run;
		} else if (same_model_more(&run, &top[1])) {
			top[1] = run;
		}
	}
	return i;
}

static const char *
same_model_device(const struct gather *g, const struct same_model_said *s)
{
	return shard_device(&g->in[s->at].s->head);
}

/* Set the error for one version with two digests or more.  Names are cut so that the
 * remedy fits into a receipt. */
static int
same_model_differ(struct gather *g, const struct same_model_run top[2], struct err *e)
{
	const struct same_model_said *most = top[0].first, *odd = top[1].first;
	const unsigned long long version = most->version;

	if (!same_model_more(&top[0], &top[1]))
		return err_set(e, ERR_DATA, "mismatch: '%.24s' has model %.16s, '%.24s' "
		    "has %.16s at version %llu, and neither model has a majority: load "
		    "one on all devices",
		    same_model_device(g, most), most->digest, same_model_device(g, odd),
		    odd->digest, version);
	if (top[0].n == top[1].n)
		return gather_blame(g, odd->at, err_set(e, ERR_DATA, "mismatch: '%.24s' "
		    "has model %.16s: load model %.16s, which '%.24s' sent before, and "
		    "go on from version %llu", same_model_device(g, odd), odd->digest,
		    most->digest, same_model_device(g, most), version));
	return gather_blame(g, odd->at, err_set(e, ERR_DATA, "mismatch: '%.24s' has "
	    "model %.16s: load model %.16s, which %zu devices have, and go on "
	    "from version %llu", same_model_device(g, odd), odd->digest, most->digest,
	    top[0].n, version));
}

int
same_model_check(struct gather *g, int first, struct err *e)
{
	const size_t n = g->n;
	struct same_model_said *s = alloc_get(n + 1, sizeof(*s), e);
	struct same_model_run top[2];
	const struct shard *sh;
	size_t i, k = 0;
	int r = 0;

	if (s == NULL)
		return -ERR_SYS;
	for (i = 0; i < n; i++) {
		sh = &g->in[i].s->head;
		s[k] = (struct same_model_said){ text_get(&sh->kv,
		    SHARD_KEY_MODEL), sh->base_version, first ? gather_came(g, i) : 0, i };
		k += s[k].digest != NULL;
	}
	qsort(s, k, sizeof(*s), same_model_order);
	for (i = 0; i < k && r == 0;) {
		i += same_model_runs(s + i, k - i, top);
		if (top[1].n != 0)
			r = same_model_differ(g, top, e);
	}
	alloc_free(s);
	return r;
}

int
same_model_put(const struct gather *g, struct text_kv *kv, struct err *e)
{
	const struct shard *sh, *first = NULL;
	const char *digest, *all = NULL;
	size_t i;

	for (i = 0; i < g->n; i++) {
		if (g->in[i].left)
			continue;
		sh = &g->in[i].s->head;
		digest = text_get(&sh->kv, SHARD_KEY_MODEL);
		if (first == NULL) {
			first = sh;
			all = digest;
		}
		if (digest == NULL || all == NULL || strcmp(digest, all) != 0 ||
		    sh->base_version != first->base_version)
			return 0;
	}
	return all != NULL ? text_set(kv, SHARD_KEY_MODEL, all, e) : 0;
}
