/*
 * Messages of a program that waits for other processes: one when a signal asks for it, and one
 * when a wait has lasted for some seconds without a message.
 */
#ifndef ACE_WAITING_H
#define ACE_WAITING_H

#include <signal.h>
#include <stddef.h>
#include <stdint.h>

struct filter;
struct spool;

struct waiting {
	const struct filter *f;			/* the program that waits */
	const volatile sig_atomic_t *asked;	/* signals so far */
	sig_atomic_t answered;			/* number of signals that were answered */
	double since;				/* clock_now when the wait began */
	int said;				/* 1: a message was due */
};
enum {
	WAITING_SILENT = 10,	/* seconds before the message */
	WAITING_EVENT = 5	/* seconds before the event (--events) */
};

struct waiting_names {
	char text[400];		/* names of devices after ": ", or "" */
	size_t n;
};
/* waiting_add(c, name): append a name, or "..." if there is no room for more. */
void waiting_add(struct waiting_names *c, const char *name);

/* waiting_begin(w): begin a wait.  w may be NULL here and in waiting_due: then there
 * are no messages. */
void waiting_begin(struct waiting *w);
/* waiting_due(w): return 1 if a message is due: when a signal has asked for it, or after
 * WAITING_SILENT seconds (for an event WAITING_EVENT) of a wait in which none was due before. */
int waiting_due(struct waiting *w);
/* waiting_say(w, round, missing, fmt, ...): print what is waited for or, with --events, write
 * it as an event.  round: the step; missing: names of devices after ": ", or "". */
void waiting_say(const struct waiting *w, uint64_t round, const char *missing,
    const char *fmt, ...) __attribute__((format(printf, 4, 5)));
/* waiting_step(s, step, n, want): print through s->wait that n of `want' shards of this step
 * have come; if listed devices are missing, n plus their number replaces want.  n = 0: print
 * that no shard of a later step has come; step UINT64_MAX: that no shard at all has come. */
void waiting_step(const struct spool *s, uint64_t step, size_t n, size_t want);

/* waiting_device(s, step): print through s->wait that the average of this step has not come.
 * If the step is closed, say so; otherwise name the devices that have sent a shard, and those
 * of the list or, without a list, of the last average that have not. */
void waiting_device(const struct spool *s, uint64_t step);

#endif
