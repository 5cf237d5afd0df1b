/*
 * A program that waits for other processes says what it waits for: once, when
 * that has lasted, and each time that a signal asks for it.
 */
#ifndef ACE_PROGRESS_H
#define ACE_PROGRESS_H

#include <signal.h>
#include <stddef.h>
#include <stdint.h>

struct filter;
struct inbox;

struct progress {
	const struct filter *f;			/* the program that waits */
	const volatile sig_atomic_t *asked;	/* signals so far */
	sig_atomic_t answered;			/* of these */
	double since;
	int said;
};
enum {
	WAITING_SILENT = 10,	/* seconds before it is said unasked; as an event */
	WAITING_EVENT = 5	/* earlier, for what a front says */
};

/* progress_begin(w): a wait begins.  w may be NULL here and in progress_due: then
 * nothing is ever said. */
void progress_begin(struct progress *w);
/* progress_due(w): 1 when it is time to call progress_say; once for each
 * reason. */
int progress_due(struct progress *w);
void progress_say(const struct progress *w, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));
/* progress_wait(w, round, missing, fmt, ...): the same of a wait, which becomes an
 * event where there are any.  missing: names of devices, behind ": "; or "". */
void progress_wait(const struct progress *w, uint64_t round, const char *missing,
    const char *fmt, ...) __attribute__((format(printf, 4, 5)));
/* progress_step(s, run, step, n, want): says through s->wait that n of `want'
 * shards of this step are there; with n = 0 that there is no step after this
 * one (UINT64_MAX: no step at all). */
void progress_step(const struct inbox *s, const char *run, uint64_t step,
    size_t n, size_t want);

/* progress_device(s, run, step): says through s->wait why the aggregate of this
 * step has not come: who is missing there, of the list of devices or else of those
 * who were in the last step that was closed, and when they sent last; that it is
 * closed, and the aggregate is not in the spool yet; that nobody sums the run's
 * steps. */
void progress_device(const struct inbox *s, const char *run, uint64_t step);

#endif
