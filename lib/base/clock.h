/*
 * A clock for measuring how long something takes, which setting the date and
 * time of the system does not change.
 */
#ifndef ACE_CLOCK_H
#define ACE_CLOCK_H

#include <time.h>

/* clock_now(): seconds since some fixed moment. */
double clock_now(void);

/* clock_settle(t): wait, some milliseconds, until a file that was last changed at t and
 * is changed from now on has another time.  A time in whole seconds is taken for that of
 * a file system that has no others (FAT: even ones).  A time in the future, from another
 * machine's clock, is not waited for.  Return whether it waited. */
enum { CLOCK_SETTLE_MS = 100, CLOCK_WHOLE_MS = 2000 };
int clock_settle(struct timespec t);

#endif
