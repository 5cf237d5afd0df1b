/*
 * Weighted sums against the same in long double; what overflows is refused.
 */
#include "base/err.h"
#include "sync/combine.h"

#include "../tap.h"

enum { N = 1000 };

/* The values that are not 0, and where they are, give the bits that all values
 * give: at any weight, with the smallest values, and with zeros of both signs. */
static void
test_some(struct combine *c)
{
	static const float v[] = { 1.5f, -0.0f, 0x1p-149f, -0x1p-149f, 3e38f };
	static const double f[] = { 1, 0, 0.3, 0x1p-60, 7e5 };
	static float x[N], one[N];
	static uint32_t pos[N];
	static double want[N];
	size_t i, j, k;

	combine_begin(c, N);
	for (j = 0; j < 5; j++) {
		for (i = 0; i < N; i++)
			x[i] = (i * 7 + j) % 11 < 3 ? v[(i + j) % 5] : 0;
		combine_add(c, f[j], x);
	}
	memcpy(want, c->acc, sizeof(want));
	combine_begin(c, N);
	for (j = 0; j < 5; j++) {
		for (i = k = 0; i < N; i++)
			if ((i * 7 + j) % 11 < 3) {
				pos[k] = (uint32_t)i;
				one[k++] = v[(i + j) % 5];
			}
		combine_add_some(c, f[j], pos, one, k);
	}
	ok(memcmp(want, c->acc, sizeof(want)) == 0,
	    "some values are added to the bits of all");
}

/* A cluster's mean less the mean of all, and a weight of all below 1. */
static void
less(struct combine *c)
{
	const float one[2] = { 6, -3 }, all[2] = { 8, 20 };
	struct combine b = { .kern = c->kern };
	struct err e = ERR_INIT;
	const float *y;

	ok(combine_room(&b, 2, &e) == 0, "room for all");
	combine_begin(c, 2);
	combine_begin(&b, 2);
	combine_add(c, 1, one);
	combine_add(&b, 1, all);
	combine_less(c, 3, &b, 4);
	y = combine_round(c, 0.5);
	ok(y != NULL && !(y[0] < 0 || y[0] > 0) && !(y[1] < -12 || y[1] > -12),
	    "6/3 - 8/4 and -3/3 - 20/4, divided by a half");
	combine_release(&b);
}

int
main(void)
{
	static float a[N], b[N];
	struct err e = ERR_INIT;
	struct combine c = { .kern = kern_get(&e) };
	const float *y;
	int i, bad = 0;

	for (i = 0; i < N; i++) {
		a[i] = sinf((float)i);
		b[i] = ldexpf(cosf((float)i), i % 40 - 20);
	}
	ok(combine_room(&c, N, &e) == 0, "room");
	combine_begin(&c, N);
	combine_add(&c, 3, a);
	combine_add(&c, 0.25, b);
	y = combine_round(&c, 3.25);
	for (i = 0; y != NULL && i < N; i++)
		bad += fabsl((3.0L * a[i] + 0.25L * b[i]) / 3.25L - y[i]) >
		    ldexpl(1, -24) * fabsl((long double)y[i]) + 1e-44L;
	ok(y != NULL && bad == 0, "a mean is within half a unit: %d", bad);
	combine_begin(&c, 3);
	combine_add(&c, 2, a);
	y = combine_round(&c, 1);
	ok(y != NULL && y[1] <= 2 * a[1] && y[1] >= 2 * a[1],
	    "a sum is not divided");
	a[1] = 3e38f;
	combine_begin(&c, 3);
	combine_add(&c, 2, a);
	ok(combine_round(&c, 1) == NULL, "an overflow");
	combine_begin(&c, 3);
	combine_add(&c, 2, a);
	ok(combine_round(&c, 2) != NULL, "a mean that does not");
	test_some(&c);
	less(&c);
	combine_release(&c);
	return done_testing();
}
