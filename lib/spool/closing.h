/*
 * The aggregator's side of a spool: which step is next, who is in it, and the
 * one moment at which it closes.
 */
#ifndef ACE_CLOSING_H
#define ACE_CLOSING_H

#include "spool/inbox.h"
#include "spool/ledger.h"
#include "sync/quorum.h"

struct err;

/*
 * closing_wait(s, run, step, q, out, l, e): until there is a step after *step (any,
 * when *step is UINT64_MAX) that is over by the rule q.  Its first shard came
 * when the oldest of those files that are there was written, so who is started
 * again goes on counting; from then on a clock counts that does not jump.  Closes
 * it: what is accepted now is in, what comes later, to it or to steps before
 * it, is late.  *step and l are the step and its list, in the order to sum in.
 * A step that was closed before, by a process that died, is the same list at
 * once.  A deadline without a quorum is -ERR_REFUSED.  When nobody reads the pipe
 * `out' any more (-1 none) there is nothing to wait for: wait_orphan's error.
 */
int closing_wait(const struct inbox *s, const char *run, uint64_t *step,
    const struct quorum *q, int out, struct ledger *l, struct err *e);

/* closing_aside(s, run, step, l, e): the list of a closed step is l from now on:
 * some of it has turned out to be of no use. */
int closing_aside(const struct inbox *s, const char *run, uint64_t step,
    const struct ledger *l, struct err *e);

/* closing_published(s, run, step, out, e): until the aggregate is in the spool,
 * or nobody reads descriptor out, who was to put it there. */
int closing_published(const struct inbox *s, const char *run, uint64_t step,
    int out, struct err *e);
/* closing_done(s, run, step, e): the aggregate went out; `last' is step. */
int closing_done(const struct inbox *s, const char *run, uint64_t step,
    struct err *e);
/* closing_forget(s, run, limit, e): the directories of the steps up to limit,
 * all closed, are removed, but their manifests are kept: they answer duplicates
 * for ever. */
int closing_forget(const struct inbox *s, const char *run, uint64_t limit,
    struct err *e);

#endif
