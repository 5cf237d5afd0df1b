#include <time.h>

#include "base/clock.h"

int
clock_settle(struct timespec t)
{
	const double tick = t.tv_nsec == 0 ? CLOCK_WHOLE_MS : 0;
	struct timespec now, pause = { 0, 1000000 };
	double ms;
	int waited;

	for (waited = 0; clock_gettime(CLOCK_REALTIME_COARSE, &now) == 0; waited = 1) {
		ms = (double)(t.tv_sec - now.tv_sec) * 1e3 +
		    (double)(t.tv_nsec - now.tv_nsec) * 1e-6;
		if (ms > (double)CLOCK_SETTLE_MS || ms + tick < 0)
			break;
		(void)nanosleep(&pause, NULL);
	}
	return waited;
}

double
clock_now(void)
{
	struct timespec t = { 0, 0 };

	(void)clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}
