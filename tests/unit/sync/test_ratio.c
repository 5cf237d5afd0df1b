#include <math.h>

#include "../tap.h"
#include "sync/ratio.h"

int
main(void)
{
	double beta = ratio_beta(5e6), last = 1e9, c, b;
	int falls = 1;

	ok(ratio_factor(2, 300, beta, 0) == 300, "no bandwidth: c_max");
	ok(fabs(ratio_factor(2, 300, beta, 5e6) - 151) < 1e-9,
	    "half way at B_half");
	ok(fabs(ratio_factor(2, 300, beta, 10e6) - (2 + 298 / 4.0)) < 1e-9,
	    "a quarter at twice that");
	ok(ratio_factor(2, 300, beta, 1e12) == 2, "much bandwidth: c_min");
	for (b = 0; b < 1e8; b += 1e6, last = c) {
		c = ratio_factor(2, 300, beta, b);
		falls &= c < last;
	}
	ok(falls, "falls all the way");
	ok(ratio_budget(1000, 32) == 125, "32 times smaller than 4000 bytes");
	ok(ratio_budget(1000, 7) == 571 && ratio_budget(1000, 6) == 666, "rounded down, never over");
	return done_testing();
}
