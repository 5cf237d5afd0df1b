/*
 * nonzero: every bit comes back, and sparse groups take few bytes. Codecs that list
 * values: the list equals the decoded values.
 */
#include "kern/kern.h"
#include "trip.h"

static struct trip t = { .ctx = { 5, 6, 7, 256, 0 } };

/* Set every m-th of n values to one of odd[], and all others to 0. */
static void
fill(size_t n, size_t m)
{
	static const float odd[] = { 1, -0.0f, 0x1p-149f, -0x1p-149f,
	    0x1.fffffep127f, -0x1.fffffep127f, 0x1.234568p-7f };
	size_t i;

	for (i = 0; i < n; i++)
		t.x[i] = i % m == m - 1 ? odd[i / m % 7] : 0;
}

TEST(test_exact)
{
	static const size_t m[] = { 1, 2, 3, 7, 100, 5000 };
	size_t n, i, good = 1;

	for (n = 0; n < 300; n++)
		for (i = 0; i < 6; i++) {
			fill(n, m[i]);
			(void)trip(&t, "nonzero", n);
			good &= memcmp(t.x, t.y, n * 4) == 0;
		}
	ok(good, "up to 300 values, some, all or none: the same bits");
	for (i = 0; i < 6; i++) {
		fill(TRIP_N, m[i]);
		n = trip(&t, "nonzero", TRIP_N);
		ok(memcmp(t.x, t.y, sizeof(t.x)) == 0 &&
		    n < TRIP_N / m[i] * 6 + 16 && (i > 0 || n <= 4 * TRIP_N + 8),
		    "one of %zu: %zu bytes", m[i],
		    n);
	}
}

static void
test_list(const char *spec, float sigma)
{
	static float y[TRIP_N];
	struct codec_list l = CODEC_LIST_INIT;
	struct err e = ERR_INIT;
	size_t i, n, good = 1;

	for (n = 1; n <= TRIP_N; n = n * 5 + 1) {
		trip_gauss(&t, (uint32_t)n, n, sigma);
		(void)trip(&t, spec, n);
		good &= codec_lists(t.codec) && codec_decode_list(t.codec,
		    t.param, &t.ctx, t.body.p, t.body.n, n, &l, &e) == 0;
		memset(y, 0, sizeof(y));
		for (i = 0; good && i < l.k; i++) {
			good &= l.pos[i] < n &&
			    (i == 0 || l.pos[i] > l.pos[i - 1]);
			y[l.pos[i]] = l.x[i];
		}
		good &= memcmp(y, t.y, n * sizeof(*y)) == 0;
		/* an invalid body does not give a list */
		good &= codec_decode_list(t.codec, t.param, &t.ctx, t.body.p,
		    t.body.n + 1, n, &l, NULL) < 0;
	}
	ok(good, "%s: the listed values equal the decoded ones", spec);
	ok(codec_decode_list(t.codec, t.param, &t.ctx, t.body.p, 1,
	    0, &l, NULL) == -ERR_DATA && codec_decode_list(t.codec, t.param,
	    &t.ctx, t.body.p, 0, 0, &l, NULL) == 0 && l.k == 0,
	    "%s: no values give an empty list", spec);
	codec_list_release(&l);
}

TEST(test_lists)
{
	static const char *const spec[] = { "topk:0.01",
	    "topk:0.3:q2", "topk:1:mag", "chunk:4/16",
	    "nonzero" };
	size_t i;

	for (i = 0; i < 5; i++) {
		test_list(spec[i], 1);
		test_list(spec[i], 1e-38f);	/* some of them become 0 as f16 */
	}
	ok(!codec_lists(CODEC_F32) && !codec_lists(CODEC_ECQ) &&
	    !codec_lists(15) && !codec_lists(9999) && !codec_known(15) &&
	    codec_known(CODEC_NONZERO) && !codec_known(CODEC_MAX),
	    "no other codec lists values, nor does the unused number 15");
}
