/* topk and chunk: which values are kept, their bytes beside the entropy, and their error. */
#include "codec/levels.h"
#include "codec/largest.h"
#include "kern/kern.h"
#include "trip.h"

static struct trip t = { .ctx = { 5, 6, 7, 256, 0 } };

static double
entropy(double p)
{
	return -p * log2(p) - (1 - p) * log2(1 - p);
}

static size_t
nonzero(size_t from, size_t n)
{
	size_t i, k = 0;

	for (i = from; i < from + n; i++)
		k += t.y[i] != 0;
	return k;
}

/* Compare the bytes of positions with their entropy, p being the share of sent values: with a
 * single magnitude the body holds only positions and signs. */
static void
test_positions(const char *spec, double p)
{
	double bits;

	trip_gauss(&t, 1, TRIP_N, 1e-3);
	bits = (double)trip(&t, spec, TRIP_N) * 8 / (double)TRIP_N;
	ok(bits < (entropy(p) + p) * 1.05 + 40.0 / (double)TRIP_N,
	    "%s: %.5f bits, entropy and signs %.5f", spec, bits,
	    entropy(p) + p);
}

/* If all values are sent, positions take no bytes; if all but two are sent, a few bytes. */
TEST(test_all)
{
	size_t all;

	trip_gauss(&t, 1, TRIP_N, 1e-3);
	all = trip(&t, "topk:1:q2", TRIP_N);
	ok(all <= TRIP_N / 4 + 8, "topk:1:q2: %zu bytes, two bits a value", all);
	t.x[7] = t.x[TRIP_N - 1] = 0;
	ok(trip(&t, "topk:1:q2", TRIP_N) <= all + 8 && t.y[7] == 0 &&
	    t.y[TRIP_N - 1] == 0 && nonzero(0, TRIP_N) == TRIP_N - 2,
	    "two zeros among them: a few bytes more");
}

/* If fewer values than planned are nonzero, their positions still fit the bound. */
TEST(test_bound)
{
	static const char *const spec[] = { "topk:1:q2", "topk:0.9:q2", "topk:1:mag",
	    "chunk:16/16" };
	struct codec_plan p;
	struct err e = ERR_INIT;
	size_t i, j, len;

	for (i = 0; i < TRIP_N; i++)
		t.x[i] = normal(9, 0, 0, (uint32_t)i) > 0 ? 1e-3F : 0;
	for (j = 0; j < sizeof(spec) / sizeof(spec[0]); j++) {
		len = trip(&t, spec[j], TRIP_N);
		ok(codec_parse(spec[j], &p, &e) == 0 && len <=
		    codec_bound(&p, TRIP_N), "%s, half of the values 0: %zu bytes of "
		    "at most %zu", spec[j], len, codec_bound(&p, TRIP_N));
	}
}

/* Send half the positions of every 16th row of 256 and none elsewhere: a code that knew the
 * rows would take 2 bits and a sign per value sent. */
TEST(test_clusters)
{
	size_t i, k = 0;
	double bits;

	for (i = 0; i < TRIP_N; i++) {
		uint32_t r[4];

		rng_block(3, 0, 0, (uint32_t)i, r);
		t.x[i] = i / 256 % 16 == 5 && r[0] & 1 ? 1 : 0;
		k += t.x[i] != 0;
	}
	bits = (double)trip(&t, "topk:1:mag", TRIP_N) * 8 / (double)k;
	ok(bits < 4.1 && memcmp(t.x, t.y, sizeof(t.x)) == 0,
	    "hot rows: %.2f bits a position and sign, %.2f at random", bits,
	    entropy((double)k / (double)TRIP_N) * (double)TRIP_N / (double)k + 1);
}

/* SparseLoCo, 64 of 4096 values with 2 bits: the paper has 0.219 bits per parameter and an
 * NMSE of 0.882; with positions at their entropy it would take 0.147 bits. */
TEST(test_sparseloco)
{
	size_t i, len, good = 1;
	double bits, mass = 0, all = 0;

	trip_gauss(&t, 2, TRIP_N, 1e-3);
	len = trip(&t, "chunk:64/4096:q2", TRIP_N);
	bits = (double)len * 8 / (double)TRIP_N;
	for (i = 0; i < TRIP_N; i += 4096)
		good &= nonzero(i, 4096) == 64;
	for (i = 0; i < TRIP_N; i++) {
		all += (double)t.x[i] * (double)t.x[i];
		mass += t.y[i] != 0 ? (double)t.x[i] * (double)t.x[i] : 0;
	}
	ok(good && bits <= 0.153, "chunk:64/4096:q2: 64 of each 4096, %.4f bits",
	    bits);
	ok(trip_nmse(&t, TRIP_N) < 0.883 &&
	    trip_nmse(&t, TRIP_N) < 1 - mass / all * 0.985,
	    "NMSE %.4f, exact values %.4f", trip_nmse(&t, TRIP_N),
	    1 - mass / all);
	(void)trip(&t, "chunk:64/4096", 5000);
	ok(nonzero(0, 4096) == 64 && nonzero(4096, 904) == 14,
	    "a short last chunk keeps its share of values");
	(void)trip(&t, "chunk:64/4096", 20);
	ok(nonzero(0, 20) == 1, "a group shorter than a chunk keeps one value");
}

TEST(test_f16)
{
	size_t i, a;
	float y[3];

	trip_gauss(&t, 1, TRIP_N, 1e-3);
	a = trip(&t, "topk:0.01", TRIP_N);
	ok(nonzero(0, TRIP_N) == 655, "topk:0.01 keeps 655");
	ok((double)TRIP_N * 4 / (double)a >= 170, "%.1f times smaller",
	    (double)TRIP_N * 4.0 / (double)a);
	for (i = 0; i < 3; i++)
		t.x[i] = (float)i * -0x1p-149f;
	(void)trip(&t, "topk:1", 3);
	y[0] = t.y[0];
	ok(y[0] == 0 && t.y[1] == t.x[1] && t.y[2] == t.x[2],
	    "subnormal values are kept");
	t.x[1] = 0x1.fffffep127f;
	(void)trip(&t, "topk:1", 3);
	ok(t.y[1] == 0x1.ffcp127f, "the largest f32 stays finite");
}

TEST(test_picks)
{
	static uint32_t at[TRIP_N + 1];
	size_t k, i;

	for (i = 0; i < 100; i++)
		t.x[i] = i % 3 == 0 ? 0 : 2;
	k = largest_of(kern_get(NULL), t.x, 100, 5, at);
	ok(k == 5 && at[0] == 1 && at[4] == 7, "of equal values the first ones are kept");
	ok(largest_of(kern_get(NULL), t.x, 100, 90, at) == 66 &&
	    largest_of(kern_get(NULL), t.x, 100, 0, at) == 0,
	    "zeros are not kept");
}

TEST(test_levels)
{
	static const float m[] = { 1, 1, 1.5f, 4, 4, 4.5f };
	uint16_t c[6];
	struct levels l = { .n = 2 };
	float *a = t.x;

	levels_fit(&l, m, 6);
	levels_code(&l, m, 6, c);
	ok(fabsf(l.v[0] - 3.5f / 3) < 0.005f && fabsf(l.v[1] - 12.5f / 3) <
	    0.03f && c[2] == 0 && c[3] == 1, "two means: %g, %g",
	    (double)l.v[0], (double)l.v[1]);
	a[0] = 0x1p-149f;
	a[1] = 0x1.fffffep127f;
	levels_fit(&l, a, 2);
	ok(isfinite(l.v[1]), "levels are finite for huge and for small values");
}

TEST(test_kinds)
{
	static const char *const spec[] = { "topk:0.05", "topk:0.05:q2",
	    "topk:0.05:mag" };
	static const double most[] = { 1e-6, 0.02, 0.08 };
	double mass, all, lost;
	size_t i, j;

	trip_gauss(&t, 1, TRIP_N, 1e-3);
	for (j = 0; j < 3; j++) {
		(void)trip(&t, spec[j], TRIP_N);
		mass = all = 0;
		for (i = 0; i < TRIP_N; i++) {
			all += (double)t.x[i] * (double)t.x[i];
			mass += t.y[i] != 0 ?
			    (double)t.x[i] * (double)t.x[i] : 0;
		}
		lost = trip_nmse(&t, TRIP_N) - (1 - mass / all);
		ok(lost <= most[j] && nonzero(0, TRIP_N) == 3277,
		    "%s: %.5f of the energy is lost to cheaper positions", spec[j],
		    lost);
	}
}

/* A last, shorter chunk keeps the same share of its values, rounded to nearest. */
TEST(test_chunks)
{
	const struct kern *kern = kern_get(NULL);
	static uint32_t at[512];
	size_t n, bad = 0;

	trip_gauss(&t, 8, 1024, 1);
	for (n = 1; n < 256; n++)
		bad += largest_chunks(kern, t.x, 256 + n, 3, 256, at) !=
		    3 + (3 * n + 128) / 256;
	ok(bad == 0, "three of 256, and of fewer as many as it comes to");
	ok(largest_chunks(kern, t.x, 1, 3, 256, at) == 1, "one of a single value");
}

TEST(test_entropy)
{
	test_positions("topk:0.001:mag", 66.0 / (double)TRIP_N);
	test_positions("topk:0.01:mag", 655.0 / (double)TRIP_N);
	test_positions("topk:0.1:mag", 6554.0 / (double)TRIP_N);
	test_positions("topk:0.5:mag", 0.5);
	test_positions("topk:0.9:mag", 58982.0 / (double)TRIP_N);
}
