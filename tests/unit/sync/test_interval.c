
#include "../tap.h"
#include "sync/interval.h"

int
main(void)
{
	struct interval o = INTERVAL_INIT;
	uint64_t h = 50;
	int t;

	ok(interval_drift(4, 100) == 0.2, "relative drift");
	ok(interval_drift(4, 0) == 0, "of a zero model: 0");
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
	    "inside its limits");
	ok(!interval_force(&o, 0.04) && interval_force(&o, 0.041),
	    "forced above four times the target");
	ok(interval_force(&o, NAN) && interval_next(&o, 50, NAN) == 1 &&
	    interval_next(&o, 50, INFINITY) == 1, "and by what is no number");
	/* drift linear in H, 0.0004 per step: the interval that meets 0.01 is 25 */
	for (t = 0; t < 30; t++)
		h = interval_next(&o, h, 0.0004 * (double)h);
	ok(h >= 24 && h <= 26, "settles where the drift is the target: %u",
	    (unsigned)h);
	return done_testing();
}
