/*
 * Waiting for what another process will do, a file it writes, a descriptor it
 * reads: one pause between two looks, 1 ms at first and then longer, and one
 * reason to leave early, that nobody reads what we write.
 */
#ifndef ACE_WAIT_H
#define ACE_WAIT_H

struct err;

struct wait {
	int out;		/* a pipe that somebody must read, or -1 */
	int ms;			/* the next pause, in milliseconds */
	double until;		/* a time of clock_now; < 0: for ever */
};

enum wait_end {
	WAIT_OVER,		/* the time is over */
	WAIT_LOOK		/* look again */
};

/* wait_begin(secs, out): to wait for secs seconds at most, or as long as it takes
 * when secs < 0; out is the pipe to watch, or -1. */
struct wait wait_begin(double secs, int out);

/* wait_more(w, e): pauses; to be called after each look that found nothing.
 * Returns an enum wait_end, or wait_orphan's error. */
int wait_more(struct wait *w, struct err *e);

/* wait_secs(secs, out, e): waits for all of the time.  Returns 0, or
 * wait_orphan's error. */
int wait_secs(double secs, int out, struct err *e);

/* wait_gone(out, ms): waits up to ms milliseconds, and less when nobody reads the pipe
 * out any more.  Returns 1 when that is so. */
int wait_gone(int out, int ms);
/* wait_orphan(out, ms, e): waits up to ms milliseconds.  Returns 0.  When nobody
 * reads the pipe out any more, it does what write(2) to it would: SIGPIPE is raised,
 * and where that is ignored, a quiet error is returned. */
int wait_orphan(int out, int ms, struct err *e);

#endif
