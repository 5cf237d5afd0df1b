/*
 * f16: a value beyond its range becomes the largest f16 for which the difference is
 * exact, so that error feedback keeps all of it.
 */
#include "trip.h"

static struct trip t = { .ctx = { 5, 6, 7, 256, 0 } };

/* Return the largest f16 that is a multiple of 2^place. */
static double
largest(int place)
{
	double best = 0, v;
	int e, m;

	for (e = 0; e < 16; e++)
		for (m = 1024; m < 2048; m++) {
			v = ldexp(m, e - 10);
			if (v > best && fmod(v, ldexp(1, place)) == 0)
				best = v;
		}
	return best;
}

TEST(test_f16)
{
	double rest;
	int i, place, near = 0, exact = 0;

	/* 2^16 to 2^47, each with its last bit set */
	for (i = 0; i < 32; i++)
		t.x[i] = (i % 2 ? -1 : 1) * nextafterf(ldexpf(1, 16 + i),
		    INFINITY);
	(void)trip(&t, "f16", 32);
	for (i = 0; i < 32; i++) {
		place = 16 + i - 23;
		near += fabs((double)t.y[i]) != largest(place > 0 ? place : 0) ||
		    (t.y[i] != 0 && (t.y[i] < 0) != (i % 2));
		rest = (double)t.x[i] - (double)t.y[i];
		exact += rest != (double)(float)rest;
	}
	ok(near == 0, "the largest value that fits");
	ok(exact == 0, "all other values are exact");
	t.x[0] = 65504;
	t.x[1] = -65519;
	(void)trip(&t, "f16", 2);
	ok(t.y[0] == 65504 && t.y[1] == -65504, "what can be said is");
	/* half way to infinity, where rounding to even would overflow */
	t.x[0] = 65520;
	t.x[1] = -65520;
	(void)trip(&t, "f16", 2);
	ok(t.y[0] == 65504 && t.y[1] == -65504, "the next one does not become infinite");
}
