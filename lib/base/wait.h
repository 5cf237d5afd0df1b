/*
 * Waiting for what another process will do, a file it writes, a descriptor it
 * reads: one pause between two looks, 1 ms at first and then longer, and one
 * reason to leave early, that nobody reads what we write.
 */
#ifndef ACE_WAIT_H
#define ACE_WAIT_H

struct err;

struct wait {
	int out;		/* what must be read by somebody, or -1 */
	int ms;			/* the next pause */
	double until;		/* mono_now; < 0: for ever */
};

enum wait_end {
	WAIT_OVER,		/* the time is over */
	WAIT_LOOK		/* look again */
};

/* wait_begin(secs, out): secs < 0: as long as it takes. */
struct wait wait_begin(double secs, int out);

/* wait_more(w, e): after each look that found nothing: an enum wait_end, or
 * wait_orphan's error. */
int wait_more(struct wait *w, struct err *e);

/* wait_secs(secs, out, e): all of the time: 0, or wait_orphan's error. */
int wait_secs(double secs, int out, struct err *e);

/* wait_orphan(out, ms, e): waits up to ms milliseconds: 0, or the error that
 * writing there would be, when nobody reads what is written to the pipe. */
int wait_orphan(int out, int ms, struct err *e);

#endif
