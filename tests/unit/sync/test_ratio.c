/* Test the ratio as a function of bandwidth and time, and the interval. */
#include "../test.h"
#include "sync/ratio.h"

TEST(test_bandwidth)
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
	ok(falls, "the ratio falls as the bandwidth grows");
	ok(ratio_budget(1000, 32) == 125, "32 times smaller than 4000 bytes");
	ok(ratio_budget(1000, 7) == 571 && ratio_budget(1000, 6) == 666, "rounded down");
}

TEST(test_rate)
{
	double p = -1;
	int i;

	ok(ratio_acted(p, -1) < 0, "unknown stays unknown");
	ok((p = ratio_acted(p, 200e6)) == 200e6, "the first rate is used");
	ok(ratio_acted(p, -1) == 200e6, "unknown changes nothing");
	ok((p = ratio_acted(p, 5e6)) == 5e6, "a fall is used immediately");
	ok(ratio_acted(p, 5.2e6) == 5e6 && ratio_acted(p, 4.8e6) == 5e6,
	    "small changes are ignored");
	ok((p = ratio_acted(p, 15e6)) == 10e6 && (p = ratio_acted(p, 15e6)) == 12.5e6,
	    "a rise is followed by half at each step");
	for (i = 0; i < 20; i++)
		p = ratio_acted(p, 15e6);
	ok(fabs(p / 15e6 - 1) <= 0.05, "until it is reached");
	ok(ratio_acted(p, 0) == 0 && ratio_acted(0, 1e6) == 5e5,
	    "also from a rate of 0");
}

TEST(test_factor)
{
	ok(ratio_paced(0, 100, 0) == 100, "without warm-up: the link's ratio");
	ok(fabs(ratio_paced(4, 256, 0) - 4) < 1e-9 &&
	    fabs(ratio_paced(4, 256, 2) - 64) < 1e-9 &&
	    ratio_paced(4, 256, 4) == 256, "c^(1/4), c^(3/4), c");
	ok(fabs(ratio_paced(4, 1, 1) - 1) < 1e-12, "warm-up to ratio 1 is 1");
}

TEST(test_interval)
{
	struct interval o = { 0.01, 1, 1000 };
	uint64_t h = 50;
	int t;

	ok(interval_next(&o, 10, 0.01) == 10, "on target: stays");
	ok(interval_next(&o, 10, 0.0225) == 7, "sqrt(target/r), rounded");
	o.target = 0.25;
	ok(interval_next(&o, 10, 1) == 5 && interval_next(&o, 10, 0.9) == 5,
	    "at most halved");
	ok(interval_next(&o, 10, 1.01) == 1, "or, above four times the target, "
	    "the least at once");
	o.target = 0.01;
	ok(interval_next(&o, 10, 1e-9) == 20, "at most doubled");
	ok(interval_next(&o, 10, 0) == 20, "no drift: doubled");
	ok(interval_next(&o, 1, 5) == 1 && interval_next(&o, 900, 0) == 1000,
	    "the interval stays within 1 and 1000");
	ok(!interval_force(&o, 0.04) && interval_force(&o, 0.041),
	    "forced above four times the target");
	ok(interval_force(&o, NAN) && interval_next(&o, 50, NAN) == 1 &&
	    interval_next(&o, 50, INFINITY) == 1, "and by NaN and infinity");
	/* drift linear in H, 0.0004 per step: the interval that meets 0.01 is 25 */
	for (t = 0; t < 30; t++)
		h = interval_next(&o, h, 0.0004 * (double)h);
	ok(h >= 24 && h <= 26, "settles where the drift is the target: %u",
	    (unsigned)h);
}
