/* Compare weighted sums with long double; overflow is refused. */
#include "base/err.h"
#include "sync/robust.h"

#include "../test.h"

enum { N = 1000 };

/* Adding a list of values gives the same bits as adding all values, if those not listed are
 * 0: with several weights, the smallest values, and listed zeros of both signs. */
static void
test_some(struct robust_sum *c)
{
	static const float v[] = { 1.5f, -0.0f, 0x1p-149f, -0x1p-149f, 3e38f };
	static const double f[] = { 1, 0, 0.3, 0x1p-60, 7e5 };
	static float x[N], one[N];
	static uint32_t pos[N];
	static double want[N];
	size_t i, j, k;

	robust_sum_begin(c, N);
	for (j = 0; j < 5; j++) {
		for (i = 0; i < N; i++)
			x[i] = (i * 7 + j) % 11 < 3 ? v[(i + j) % 5] : 0;
		robust_sum_add(c, f[j], x);
	}
	memcpy(want, c->acc, sizeof(want));
	robust_sum_begin(c, N);
	for (j = 0; j < 5; j++) {
		for (i = k = 0; i < N; i++)
			if ((i * 7 + j) % 11 < 3) {
				pos[k] = (uint32_t)i;
				one[k++] = v[(i + j) % 5];
			}
		robust_sum_add_some(c, f[j], pos, one, k);
	}
	ok(memcmp(want, c->acc, sizeof(want)) == 0,
	    "a sum of some values equals the bits of a sum of all");
}

TEST(test_sums)
{
	static float a[N], b[N];
	struct err e = ERR_INIT;
	struct robust_sum c = { .kern = kern_get(&e) };
	const float *y;
	int i, bad = 0;

	for (i = 0; i < N; i++) {
		a[i] = sinf((float)i);
		b[i] = ldexpf(cosf((float)i), i % 40 - 20);
	}
	ok(robust_sum_room(&c, N, &e) == 0, "room");
	robust_sum_begin(&c, N);
	robust_sum_add(&c, 3, a);
	robust_sum_add(&c, 0.25, b);
	y = robust_sum_round(&c, 3.25);
	for (i = 0; y != NULL && i < N; i++)
		bad += fabsl((3.0L * a[i] + 0.25L * b[i]) / 3.25L - y[i]) >
		    ldexpl(1, -24) * fabsl((long double)y[i]) + 1e-44L;
	ok(y != NULL && bad == 0, "a mean is within half a unit: %d", bad);
	robust_sum_begin(&c, 3);
	robust_sum_add(&c, 2, a);
	y = robust_sum_round(&c, 1);
	ok(y != NULL && y[1] <= 2 * a[1] && y[1] >= 2 * a[1],
	    "a sum is not divided");
	a[1] = 3e38f;
	robust_sum_begin(&c, 3);
	robust_sum_add(&c, 2, a);
	ok(robust_sum_round(&c, 1) == NULL, "an overflow");
	robust_sum_begin(&c, 3);
	robust_sum_add(&c, 2, a);
	ok(robust_sum_round(&c, 2) != NULL, "a mean that does not");
	test_some(&c);
	robust_sum_release(&c);
}
