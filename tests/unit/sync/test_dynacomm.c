
#include "../test.h"
#include "base/err.h"
#include "base/rng.h"
#include "sync/dynacomm.h"

enum { MOST = 14, CASES = 1500 };

/* Hand-made profiles; the values follow the model in sync/dynacomm.h. */
static const struct {
	const char *name;
	size_t n;
	int64_t pt[6], fc[6], dt, sequential, layers, best;
	size_t k, cuts[6];
} known[] = {
	{ "mixed", 5, { 3, 1, 4, 1, 5 }, { 2, 7, 1, 8, 2 }, 2, 36, 27, 26, 3,
	    { 2, 4, 5 } },
	{ "even", 4, { 10, 10, 10, 10 }, { 10, 10, 10, 10 }, 1, 81, 54, 54, 4,
	    { 1, 2, 3, 4 } },
	{ "overhead", 6, { 5, 5, 5, 5, 5, 5 }, { 1, 1, 1, 1, 1, 1 }, 4, 40, 55,
	    39, 2, { 5, 6 } },
	{ "free layers", 3, { 0, 0, 9 }, { 4, 4, 4 }, 3, 24, 22, 19, 2,
	    { 2, 3 } },
	{ "nothing costs", 3, { 0, 0, 0 }, { 0, 0, 0 }, 0, 0, 0, 0, 1, { 3 } },
	{ "one layer", 1, { 7 }, { 9 }, 2, 18, 18, 18, 1, { 1 } },
};

TEST(test_known)
{
	struct dynacomm d;
	size_t i, k, cuts[6];

	for (i = 0; i < sizeof(known) / sizeof(*known); i++) {
		(void)dynacomm_init(&d, known[i].pt, known[i].fc, known[i].n,
		    known[i].dt, NULL);
		k = dynacomm_sequential(&d, cuts);
		ok(dynacomm_forward(&d, cuts, k) == known[i].sequential &&
		    dynacomm_backward(&d, cuts, k) == known[i].sequential,
		    "%s: sequential", known[i].name);
		k = dynacomm_layers(&d, cuts);
		ok(dynacomm_forward(&d, cuts, k) == known[i].layers &&
		    dynacomm_backward(&d, cuts, k) == known[i].layers,
		    "%s: layer by layer", known[i].name);
		(void)dynacomm_best(&d, cuts, &k, NULL);
		ok(dynacomm_forward(&d, cuts, k) == known[i].best &&
		    dynacomm_backward(&d, cuts, k) == known[i].best &&
		    k == known[i].k &&
		    memcmp(cuts, known[i].cuts, k * sizeof(*cuts)) == 0,
		    "%s: optimum and cuts", known[i].name);
		dynacomm_release(&d);
	}
}

/* Simulate the backward pass layer by layer from the top, without the library's formulas.
 * Return its time. */
static int64_t
events_backward(const int64_t *gt, const int64_t *bc, size_t n, int64_t dt,
    const size_t *cuts, size_t k)
{
	int64_t computed = 0, link = 0, size;
	size_t j = k, i = n, lo;

	while (j-- > 0) {
		lo = j > 0 ? cuts[j - 1] : 0;
		for (size = dt; i > lo; i--) {
			computed += bc[i - 1];
			size += gt[i - 1];
		}
		link = (link > computed ? link : computed) + size;
	}
	return link;
}

static int64_t
events_forward(const int64_t *pt, const int64_t *fc, int64_t dt,
    const size_t *cuts, size_t k)
{
	int64_t computed = 0, link = 0, work;
	size_t j, i = 0;

	for (j = 0; j < k; j++) {
		link += dt;
		for (work = 0; i < cuts[j]; i++) {
			link += pt[i];
			work += fc[i];
		}
		computed = (link > computed ? link : computed) + work;
	}
	return computed;
}

struct brute {
	int64_t forward, backward;
	size_t k, cuts[MOST];	/* fewest cuts, then longest first segments */
	int wrong;
};

/* Return whether a has a longer segment than b where their k cuts first differ. */
static int
longer(const size_t *a, const size_t *b, size_t k)
{
	size_t i;

	for (i = 0; i < k && a[i] == b[i]; i++)
		continue;
	return i < k && a[i] > b[i];
}

/* Try all 2^(n-1) sets of cuts. */
static struct brute
all_cuts(const struct dynacomm *d, const int64_t *pt, const int64_t *fc)
{
	struct brute b = { .forward = INT64_MAX, .backward = INT64_MAX };
	size_t cuts[MOST], k, i, set, n = d->n;
	int64_t f, g;

	for (set = 0; set < (size_t)1 << (n - 1); set++) {
		for (k = i = 0; i < n; i++)
			if (i == n - 1 || (set >> i & 1))
				cuts[k++] = i + 1;
		f = events_forward(pt, fc, d->dt, cuts, k);
		g = events_backward(pt, fc, n, d->dt, cuts, k);
		b.wrong += f != dynacomm_forward(d, cuts, k) ||
		    g != dynacomm_backward(d, cuts, k);
		if (f < b.forward || (f == b.forward && (k < b.k ||
		    (k == b.k && longer(cuts, b.cuts, k))))) {
			b.k = k;
			memcpy(b.cuts, cuts, k * sizeof(*cuts));
		}
		b.forward = f < b.forward ? f : b.forward;
		b.backward = g < b.backward ? g : b.backward;
	}
	return b;
}

static void
draw(uint32_t c, int64_t *pt, int64_t *fc, size_t *n, int64_t *dt)
{
	uint32_t r[4];
	size_t i;

	rng_block(7, c, 0, 0, r);
	*n = c < MOST ? c + 1 : 1 + r[0] % (c % 50 == 0 ? MOST : 10);
	*dt = r[1] % 4 == 0 ? 0 : r[1] % 13;
	for (i = 0; i < *n; i++) {
		rng_block(7, c, 1, (uint32_t)i, r);
		pt[i] = r[0] % 5 == 0 ? 0 : r[0] % 20;
		fc[i] = r[1] % 5 == 0 ? 0 : r[1] % 20;
	}
}

TEST(test_brute)
{
	int model = 0, mirror = 0, bad = 0, many = 0, worse = 0, tie = 0;
	int64_t pt[MOST], fc[MOST], dt;
	size_t cuts[MOST], k, n;
	struct dynacomm d;
	struct brute b;
	uint32_t c;

	for (c = 0; c < CASES; c++) {
		draw(c, pt, fc, &n, &dt);
		(void)dynacomm_init(&d, pt, fc, n, dt, NULL);
		b = all_cuts(&d, pt, fc);
		model += b.wrong;
		mirror += b.forward != b.backward;
		(void)dynacomm_best(&d, cuts, &k, NULL);
		bad += dynacomm_forward(&d, cuts, k) != b.forward ||
		    dynacomm_backward(&d, cuts, k) != b.forward ||
		    cuts[k - 1] != n;
		many += k != b.k;
		tie += memcmp(cuts, b.cuts, k * sizeof(*cuts)) != 0;
		k = dynacomm_ibatch(&d, cuts);
		worse += dynacomm_forward(&d, cuts, k) < b.forward ||
		    cuts[k - 1] != n;
		k = dynacomm_ibatch_backward(&d, cuts);
		worse += dynacomm_backward(&d, cuts, k) < b.forward ||
		    cuts[k - 1] != n;
		dynacomm_release(&d);
	}
	ok(model == 0, "the times are those of the events");
	ok(mirror == 0, "backward is forward in reversed time");
	ok(bad == 0, "as good as all sets of cuts");
	ok(many == 0, "with the fewest segments");
	ok(tie == 0, "of equal cuts, those with the most layers first");
	ok(worse == 0, "ibatch: complete, and no better than the optimum");
}

TEST(test_ibatch)
{
	static const int64_t pt[] = { 4, 2, 2, 2, 9 }, fc[] = { 6, 1, 1, 1, 1 };
	static const int64_t bt[] = { 1, 1, 1, 9 };
	size_t cuts[5], k;
	struct dynacomm d;

	(void)dynacomm_init(&d, pt, fc, 5, 2, NULL);
	k = dynacomm_ibatch(&d, cuts);
	/* layers 2 and 3 arrive during the 6 of layer 1, none during layers 2 and 3 */
	ok(k == 4 && cuts[0] == 1 && cuts[1] == 3 && cuts[2] == 4,
	    "ibatch forward: the layers that fit, at least one");
	dynacomm_release(&d);
	(void)dynacomm_init(&d, bt, (const int64_t[]){ 3, 3, 3, 3 }, 4, 1,
	    NULL);
	k = dynacomm_ibatch_backward(&d, cuts);
	/* the top layer is sent at 3, the link is free at 13 */
	ok(k == 2 && cuts[0] == 3 && cuts[1] == 4,
	    "ibatch backward: all layers that wait for the link");
	dynacomm_release(&d);
}

enum { LARGE = 1000000 };

/* Return the number of transmissions of a forward pass that ends by t, each as long as that
 * allows; 0: t is too short. */
static size_t
walked(const int64_t *pt, const int64_t *fc, size_t n, int64_t dt, int64_t t)
{
	int64_t left = 0, sent = 0;	/* remaining computing time; when the link is free */
	size_t i, a, k = 0;

	for (i = 0; i < n; i++)
		left += fc[i];
	for (i = 0; i < n; k++) {
		for (sent += dt, a = i; i < n && sent + pt[i] + left <= t; i++)
			sent += pt[i];
		if (i == a)
			return 0;
		for (; a < i; a++)
			left -= fc[a];
	}
	return k;
}

TEST(test_large)
{
	static int64_t pt[LARGE], fc[LARGE];
	static size_t a[LARGE];
	struct err e = ERR_INIT;
	struct dynacomm d;
	size_t i, k = 0;
	int64_t best;
	uint32_t r[4];

	for (i = 0; i < LARGE; i++) {
		rng_block(3, 0, 0, (uint32_t)i, r);
		pt[i] = r[0] % 2000000;
		fc[i] = r[1] % 2000000;
	}
	ok(dynacomm_init(&d, pt, fc, LARGE, 5000000, &e) == 0 &&
	    dynacomm_best(&d, a, &k, &e) == 0, "a million layers");
	best = dynacomm_forward(&d, a, k);
	is_u64(walked(pt, fc, LARGE, 5000000, best), k,
	    "as few segments as take that time");
	is_u64(walked(pt, fc, LARGE, 5000000, best - 1), 0, "none takes less");
	dynacomm_release(&d);
	for (i = 0; i < LARGE; i++)
		pt[i] = INT64_MAX / 8;
	e = (struct err)ERR_INIT;
	ok(dynacomm_init(&d, pt, fc, LARGE, 0, &e) == -ERR_DATA &&
	    strstr(ERR_MSG(&e), "up to layer 2 add") != NULL, "no overflow: %s", ERR_MSG(&e));
	pt[0] = -1;
	ok(dynacomm_init(&d, pt, fc, 1, 0, NULL) == -ERR_USAGE &&
	    dynacomm_init(&d, fc, fc, 0, 0, NULL) == -ERR_USAGE &&
	    dynacomm_init(&d, fc, fc, 1, -1, NULL) == -ERR_USAGE,
	    "negative times and no layers are refused");
}
