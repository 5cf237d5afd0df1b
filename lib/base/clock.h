/* A clock for durations, independent of changes to the system's date and time. */
#ifndef ACE_CLOCK_H
#define ACE_CLOCK_H

#include <time.h>

/* Return seconds since an arbitrary fixed moment. */
double clock_now(void);

/* Wait some milliseconds, so that a file last changed at t gets another time stamp if
 * it is changed from now on. A time in whole seconds is assumed to be of a file system
 * with that resolution (FAT: two seconds). A future time, from another machine's clock,
 * is not waited for. Return whether it waited. */
enum { CLOCK_SETTLE_MS = 100, CLOCK_WHOLE_MS = 2000 };
int clock_settle(struct timespec t);

#endif
