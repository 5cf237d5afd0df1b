/*
 * Who waits for others says what for: once when it has lasted, and whenever
 * somebody asks.
 */
#ifndef ACE_WAITING_H
#define ACE_WAITING_H

#include <signal.h>
#include <stddef.h>
#include <stdint.h>

struct inbox;

struct waiting {
	void (*say)(void *arg, const char *what);
	void *arg;
	const volatile sig_atomic_t *asked;	/* counts who asked */
	sig_atomic_t answered;
	double since;
	int said;
};
enum { WAITING_SILENT = 10 };	/* seconds before it is said unasked */

/* w may be NULL: nobody wants to know. */
void waiting_begin(struct waiting *w);
/* waiting_due(w): 1 waiting_say is due, and until then no more. */
int waiting_due(struct waiting *w);
void waiting_say(const struct waiting *w, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));
/* waiting_step(s, run, step, n, want): to s->wait: n of `want' shards of a step
 * are there; n = 0: there is no step after this one, or none (UINT64_MAX). */
void waiting_step(const struct inbox *s, const char *run, uint64_t step,
    size_t n, size_t want);

#endif
