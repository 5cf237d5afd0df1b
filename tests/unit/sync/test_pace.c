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
	ok(fabs(p.seen.rate / 15e6 - 1) <= 0.05, "and arrives");
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
	p.warmup = 0;
	p.window = 1;
	ok(pace_factor(&p, 100, 9) == 50 && pace_factor(&p, 1.5, 9) == 1,
	    "critical: half of it, at least 1");
}

static void
test_windows(void)
{
	static const double norm[] = { 4, 4, 4, 5, 5, 8, 3 };
	static const int critical[] = { 1, 0, 0, 0, 0, 1, 1 };
	struct pace p = PACE_INIT;
	int i, right = 0;

	p.window = 3;
	for (i = 0; i < 7; i++) {
		pace_see(&p, norm[i] * norm[i]);
		pace_see(&p, 0);
		right += i == 0 || p.seen.critical == critical[i - 1];
		pace_see(&p, 0);
		right += p.seen.critical == critical[i];
	}
	ok(right == 14, "changes by half make a window critical: %d of 14",
	    right);
	ok(pace_check(&p) == 0, "what it leaves behind is right");
	p.seen.sum = NAN;
	ok(pace_check(&p) < 0, "what is not a number is not");
	for (i = 0; i < 4; i++) {	/* numbers that it never leaves behind */
		p = (struct pace)PACE_INIT;
		right = pace_check(&p) == 0;
		*(i == 0 ? &p.seen.last : i == 1 ? &p.seen.sum : i == 2 ?
		    &p.seen.shards : &p.seen.critical) = i < 3 ? -1 : 2;
		ok(right == 1 && pace_check(&p) < 0, "%d: out of range", i);
	}
	p = (struct pace)PACE_INIT;
	p.seen.critical = 0;
	ok(pace_check(&p) == 0, "not critical, no rate yet");
	p = (struct pace)PACE_INIT;
	p.window = 1;
	pace_see(&p, 16);
	pace_see(&p, 16);
	right = p.seen.critical == 0;
	pace_see(&p, 36);
	right += p.seen.critical == 1;
	pace_see(&p, 36);
	right += p.seen.critical == 0;
	pace_see(&p, 9.1);
	ok(right == 3 && p.seen.critical == 0, "a half of it exactly is critical, "
	    "less is not");
	p = (struct pace)PACE_INIT;
	p.window = 1;
	for (i = 0; i < 3; i++)
		pace_see(&p, 4);
	right = p.seen.critical == 0;
	pace_see(&p, INFINITY);
	right += p.seen.critical == 1;
	pace_see(&p, NAN);
	ok(right == 2 && p.seen.critical == 1 && pace_check(&p) == 0,
	    "what is no number is critical");
	p = (struct pace)PACE_INIT;
	p.window = 1;
	pace_see(&p, 0);
	pace_see(&p, 0);
	ok(p.seen.critical == 1, "a norm of zero before: critical");
}

int
main(void)
{
	test_rate();
	test_factor();
	test_windows();
	return done_testing();
}
