#include <time.h>

#include "base/clock.h"

void
clock_settle(struct timespec t)
{
	const struct timespec pause = { 0, 1000000 };
	struct timespec now;
	double ms = 0;

	while (ms >= 0 && clock_gettime(CLOCK_REALTIME_COARSE, &now) == 0) {
		ms = (double)(t.tv_sec - now.tv_sec) * 1e3 +
		    (double)(t.tv_nsec - now.tv_nsec) * 1e-6;
		if (ms > (double)CLOCK_SETTLE_MS)
			return;
		if (ms >= 0)
			(void)nanosleep(&pause, NULL);
	}
}

double
clock_now(void)
{
	struct timespec t = { 0, 0 };

	(void)clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}
