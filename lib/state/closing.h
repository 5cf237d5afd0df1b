/*
 * The aggregator's side of a spool: which step is next, who is in it, and the
 * one moment at which it closes.
 */
#ifndef ACE_CLOSING_H
#define ACE_CLOSING_H

#include "state/ledger.h"
#include "state/inbox.h"

struct err;

/* closing_run(s, several, e): the only run in the spool, allocated, or NULL when
 * there is none or there are several (*several). */
char *closing_run(const struct inbox *s, int *several, struct err *e);
/* closing_next(s, run, step, e): the first step after *step (or any, when *step
 * is UINT64_MAX) that has a directory: 1, or 0. */
int closing_next(const struct inbox *s, const char *run, uint64_t *step,
    struct err *e);
/* closing_count(s, run, step, n, e): shards accepted. */
int closing_count(const struct inbox *s, const char *run, uint64_t step,
    size_t *n, struct err *e);
/* closing_wait(s, run, step, w, e): until a step after *step is there (or any,
 * when *step is UINT64_MAX) and w->want shards of it are, or w->deadline is over
 * since its first was seen and w->quorum are: 0, and *step.  A deadline without
 * a quorum is -ERR_REFUSED.  Steps that are done are passed over. */
struct closing_rule {
	size_t want;		/* close at once with so many; 0: the quorum */
	size_t quorum;
	double deadline;	/* seconds; 0: none */
};
int closing_wait(const struct inbox *s, const char *run, uint64_t *step,
    const struct closing_rule *w, struct err *e);
/* closing_manifest(s, run, step, l, e): closes the step if it is open: what is
 * accepted now is in, what comes later is late.  The list, in its order. */
int closing_manifest(const struct inbox *s, const char *run, uint64_t step,
    struct ledger *l, struct err *e);
int closing_is_done(const struct inbox *s, const char *run, uint64_t step);
/* closing_done(s, run, step, e): the aggregate went out; `last' is step. */
int closing_done(const struct inbox *s, const char *run, uint64_t step,
    struct err *e);
/* closing_forget(s, run, step, e): the shards of a closed step are removed, its
 * manifest stays: it answers duplicates for ever. */
int closing_forget(const struct inbox *s, const char *run, uint64_t step,
    struct err *e);

#endif
