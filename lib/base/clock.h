/*
 * A clock for measuring how long something takes, which setting the date and
 * time of the system does not change.
 */
#ifndef ACE_CLOCK_H
#define ACE_CLOCK_H

#include <time.h>

/* clock_now(): seconds since some fixed moment. */
double clock_now(void);

/* clock_settle(t): waits, some milliseconds, until the clock by which files get their
 * times is beyond t: then a file that was last changed at t and is changed from now on
 * has another time.  A time in the future, from another machine's clock, is not waited
 * for. */
enum { CLOCK_SETTLE_MS = 100 };
void clock_settle(struct timespec t);

#endif
