/* The factor over time. */
#include <math.h>

#include "../tap.h"
#include "sync/pace.h"

static void
test_rate(void)
{
	struct pace p = PACE_INIT;
	int i;

	ok(pace_rate(&p, -1) < 0, "unknown stays unknown");
	ok(pace_rate(&p, 200e6) == 200e6, "the first is believed");
	ok(pace_rate(&p, -1) == 200e6, "unknown changes nothing");
	ok(pace_rate(&p, 5e6) == 5e6, "a fall is believed at once");
	ok(pace_rate(&p, 5.2e6) == 5e6 && pace_rate(&p, 4.8e6) == 5e6,
	    "small changes are none");
	ok(pace_rate(&p, 15e6) == 10e6 && pace_rate(&p, 15e6) == 12.5e6,
	    "a rise by half of what is left");
	for (i = 0; i < 20; i++)
		(void)pace_rate(&p, 15e6);
	ok(fabs(p.rate / 15e6 - 1) <= 0.05, "and arrives");
	ok(pace_rate(&p, 0) == 0 && pace_rate(&p, 1e6) == 5e5,
	    "from a dead link too");
}

static void
test_factor(void)
{
	struct pace p = PACE_INIT;

	ok(pace_factor(&p, 100, 0) == 100, "none asked for: the link's");
	p.warmup = 4;
	ok(fabs(pace_factor(&p, 256, 0) - 4) < 1e-9 &&
	    fabs(pace_factor(&p, 256, 2) - 64) < 1e-9 &&
	    pace_factor(&p, 256, 4) == 256, "c^(1/4), c^(3/4), c");
	ok(fabs(pace_factor(&p, 1, 1) - 1) < 1e-12, "of 1: 1");
}

int
main(void)
{
	test_rate();
	test_factor();
	return done_testing();
}
