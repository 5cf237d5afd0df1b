/* A clock for durations, independent of changes to the system's date and time. */
#ifndef ACE_CLOCK_H
#define ACE_CLOCK_H

#include <time.h>

/* Return seconds since an arbitrary fixed moment. */
double clock_now(void);

/* Wait until a file that was last changed at t would get another time stamp: some
 * milliseconds, or 2 s after t if t is in whole seconds, as on a file system without
 * fractions (FAT: two seconds). Do not wait if t is more than 0.1 s in the future, as
 * another machine's clock may set it. Return 1 if this waited, else 0. */
enum { CLOCK_SETTLE_MS = 100, CLOCK_WHOLE_MS = 2000 };
int clock_settle(struct timespec t);

#endif
