#include "sync/quorum.h"

#include "../tap.h"

static const char *const names[] = { "wait", "over", "failed" };

static void
is(struct quorum q, size_t here, int all, double waited, enum quorum_now want)
{
	enum quorum_now got = quorum_now(&q, here, all, waited);

	ok(got == want, "expect %zu, quorum %zu, deadline %g: %zu after %g s%s: "
	    "%s, not %s", q.expect, q.quorum, q.deadline, here, waited,
	    all ? ", no more to come" : "", names[got], names[want]);
}

int
main(void)
{
	const struct quorum only = { 0, 3, 0 }, patient = { 0, 3, 10 },
	    both = { 5, 3, 10 }, ever = { 5, 3, 0 };

	/* a quorum alone: as soon as it is there */
	is(only, 0, 0, 1e9, QUORUM_WAIT);
	is(only, 2, 0, 1e9, QUORUM_WAIT);
	is(only, 3, 0, 0, QUORUM_OVER);
	is(only, 2, 1, 0, QUORUM_FAILED);
	/* with a deadline: there may be more until then */
	is(patient, 3, 0, 0, QUORUM_WAIT);
	is(patient, 99, 0, 9.99, QUORUM_WAIT);
	is(patient, 3, 0, 10, QUORUM_OVER);
	is(patient, 2, 0, 10, QUORUM_FAILED);
	is(patient, 3, 1, 0, QUORUM_OVER);
	is(patient, 2, 1, 0, QUORUM_FAILED);
	/* with nothing there the clock does not run */
	is(patient, 0, 0, 1e9, QUORUM_WAIT);
	is(patient, 0, 1, 1e9, QUORUM_WAIT);
	/* and who is expected */
	is(both, 5, 0, 0, QUORUM_OVER);
	is(both, 6, 0, 0, QUORUM_OVER);
	is(both, 4, 0, 9.99, QUORUM_WAIT);
	is(both, 3, 0, 10, QUORUM_OVER);
	is(both, 2, 0, 10, QUORUM_FAILED);
	is(both, 4, 1, 0, QUORUM_OVER);
	/* without a deadline all of them */
	is(ever, 4, 0, 1e9, QUORUM_WAIT);
	is(ever, 5, 0, 0, QUORUM_OVER);
	is(ever, 4, 1, 0, QUORUM_OVER);
	is(ever, 2, 1, 0, QUORUM_FAILED);
	/* more needed than expected: never less than was asked for */
	is((struct quorum){ 2, 3, 0 }, 2, 0, 0, QUORUM_OVER);

	ok(quorum_left(&only, 5) < 0, "no deadline, nothing to wait for");
	ok(!(quorum_left(&patient, 4) < 6) && !(quorum_left(&patient, 4) > 6),
	    "6 of 10 seconds left");
	ok(!(quorum_left(&patient, 12) < 0) && !(quorum_left(&patient, 12) > 0),
	    "none left");
	return done_testing();
}
