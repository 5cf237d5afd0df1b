/*
 * The shortest way among patches and whole models equals that of another algorithm, from
 * each model, in random graphs with cycles; and following it leads to the model.
 */
#include "../test.h"
#include "base/err.h"
#include "base/rng.h"
#include "model/route.h"

enum { MODELS = 7, MOST = 24, GRAPHS = 400 };

static struct err e;

static void
model(unsigned char hash[MODEL_HASH], unsigned i)
{
	memset(hash, 0, MODEL_HASH);
	hash[MODEL_HASH - 1] = (unsigned char)i;
}

static void
add(struct routes *x, unsigned from, unsigned to, uint64_t bytes)
{
	struct route w = { .bytes = bytes, .whole = from == 0, .nth = x->n };

	model(w.before, from);
	model(w.after, to);
	if (route_add(x, &w, &e) < 0)
		abort();
}

/* Compute the fewest bytes to each model, from no model or from model `from' (0: none). */
static void
fewest(const struct routes *x, unsigned from, uint64_t to[MODELS])
{
	size_t i, k;

	for (i = 0; i < MODELS; i++)
		to[i] = i == 0 || i == from ? 0 : UINT64_MAX;
	for (k = 0; k < MODELS; k++)
		for (i = 0; i < x->n; i++) {
			const struct route *w = &x->p[i];
			const uint64_t at = to[w->before[MODEL_HASH - 1]];
			uint64_t *there = &to[w->after[MODEL_HASH - 1]];

			if (at != UINT64_MAX && at + w->bytes < *there)
				*there = at + w->bytes;
		}
}

/* Check that each patch continues the previous one, the first from the given model, and
 * that the bytes add up. */
static int
leads(const struct routes *x, const unsigned char *from, size_t last)
{
	uint64_t bytes = 0;
	size_t *list, n, i;
	int good;

	if (route_list(x, last, &list, &n, &e) < 0)
		return 0;
	good = n > 0 && list[n - 1] == last && (x->p[list[0]].whole ||
	    (from != NULL && memcmp(x->p[list[0]].before, from, MODEL_HASH) == 0));
	for (i = 0; i < n; bytes += x->p[list[i++]].bytes)
		good &= i == 0 || (!x->p[list[i]].whole &&
		    memcmp(x->p[list[i]].before, x->p[list[i - 1]].after,
		    MODEL_HASH) == 0);
	free(list);
	return good && bytes == x->p[last].cost;
}

TEST(test_chance)
{
	struct routes x = { NULL, 0, 0 };
	unsigned char hash[MODEL_HASH];
	uint64_t to[MODELS];
	unsigned g, from, bad = 0, none = 0, long_ones = 0;
	uint32_t r[4];
	size_t i;

	for (g = 0; g < GRAPHS; g++) {
		x.n = 0;
		rng_block(1, 0, 0, g, r);
		for (i = r[0] % MOST + 1; i > 0; i--) {
			rng_block(2, 0, g, (uint32_t)i, r);
			add(&x, r[0] % 4 == 0 ? 0 : r[1] % MODELS,
			    1 + r[2] % (MODELS - 1), 1 + r[3] % 50);
		}
		for (from = 0; from < MODELS; from++) {
			model(hash, from);
			route_find(&x, from == 0 ? NULL : hash);
			fewest(&x, from, to);
			for (i = 0; i < x.n; i++) {
				const struct route *w = &x.p[i];
				const uint64_t at = to[w->before[MODEL_HASH - 1]];

				none += w->cost == UINT64_MAX;
				long_ones += w->prior != ROUTE_FIRST;
				if (w->cost == UINT64_MAX)
					bad += at != UINT64_MAX;
				else
					bad += w->cost != at + w->bytes ||
					    !leads(&x, from == 0 ? NULL : hash, i);
			}
		}
	}
	ok(bad == 0, "%u graphs, from each model: the least bytes", GRAPHS);
	ok(none > 1000 && long_ones > 1000, "%u lead from nowhere, %u behind "
	    "another", none, long_ones);
	route_release(&x);
}

TEST(test_edges)
{
	struct routes x = { NULL, 0, 0 };
	unsigned char one[MODEL_HASH];
	size_t *list, n;

	model(one, 1);
	route_find(&x, one);
	ok(x.n == 0, "of nothing");
	/* a whole model equal to the present one is no step of a way */
	add(&x, 0, 1, 5);
	add(&x, 1, 2, UINT64_MAX - 1);
	add(&x, 2, 3, 1);
	route_find(&x, one);
	is_u64(x.p[1].cost, UINT64_MAX - 1, "from the one that is there");
	is_u64(x.p[2].cost, UINT64_MAX, "no sum beyond 64 bits");
	route_find(&x, NULL);
	is_u64(x.p[1].cost, UINT64_MAX, "nor behind a whole one");
	x.p[1].bytes = 7;
	route_find(&x, NULL);
	is_u64(x.p[2].cost, 13, "a whole one and two patches");
	ok(route_list(&x, 2, &list, &n, &e) == 0 && n == 3 && list[0] == 0 &&
	    list[1] == 1 && list[2] == 2, "patches in their order");
	free(list);
	/* for equal bytes the earlier one */
	add(&x, 1, 2, 7);
	route_find(&x, NULL);
	ok(x.p[2].prior == 1, "of two equal ways the first");
	route_release(&x);
}
