/*
 * Weighted sums against the same in long double; what overflows is refused.
 */
#include <math.h>

#include "base/err.h"
#include "sync/combine.h"

#include "../tap.h"

enum { N = 1000 };

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
	combine_release(&c);
	return done_testing();
}
