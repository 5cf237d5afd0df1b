/*
 * Wait between checks for what another process does, or for a given time. Pauses between
 * checks grow from 1 to 10 ms; waiting ends early if nobody reads our output.
 */
#ifndef ACE_WAIT_H
#define ACE_WAIT_H

struct err;

struct wait {
	int out;		/* a pipe that must have a reader, or -1 */
	int ms;			/* next pause, in milliseconds */
	double until;		/* a time of clock_now; < 0: no limit */
};

enum wait_end {
	WAIT_OVER,		/* the time has passed */
	WAIT_LOOK		/* check again */
};

/* Start to wait for at most secs seconds, without limit if secs < 0; out is the output
 * pipe to watch, or -1. */
struct wait wait_begin(double secs, int out);

/* Pause; call it after each check that found nothing. Return an enum wait_end, or
 * wait_orphan's error. */
int wait_more(struct wait *w, struct err *e);

/* Wait for the whole time. Return 0, or wait_orphan's error. */
int wait_secs(double secs, int out, struct err *e);

/* Wait up to ms milliseconds. Return 1 as soon as the pipe `out' has no reader any more,
 * else 0. */
int wait_gone(int out, int ms);
/* Wait up to ms milliseconds and return 0. If the pipe out has no reader any more, act as
 * write(2) would: raise SIGPIPE, or return a quiet error if SIGPIPE is ignored. */
int wait_orphan(int out, int ms, struct err *e);

#endif
