/*
 * The aggregator's side of a spool: which step is next, whose shards are in it,
 * and the moment at which it is closed.
 */
#ifndef ACE_CLOSING_H
#define ACE_CLOSING_H

#include "spool/inbox.h"
#include "spool/ledger.h"

struct err;

/* When a step is over: as soon as `expect' shards of it are there, or, where
 * that is not known and there is no deadline, `quorum' of them; and with a
 * quorum at the deadline. */
struct quorum {
	size_t expect;		/* shards of a step; 0: not known */
	size_t quorum;		/* so many are enough, at least 1 */
	double deadline;	/* seconds after these were there; 0: none */
};

/*
 * closing_wait(s, run, step, q, out, l, e): waits for an open step that is over
 * by the rule q, and closes it: the shards accepted by now are in it, and what comes later, to it or to
 * steps before it, is late.  *step and l become the step and its list of
 * receipts, in the order to sum in.  A step that was closed and has no average yet is
 * given at once, with the same list.
 *
 * A step that fewer than a quorum sent is passed over once a step after it is over:
 * nobody else may ever send it.  What was accepted of it is in the list of that later
 * step, since its device keeps nothing of it; what comes from now on is late.
 *
 * The deadline counts by the times of the step's files, so that a process that
 * is started again goes on counting; while it waits it counts by a clock that
 * does not jump.
 *
 * wait_orphan's error when nobody reads the pipe `out' any more (-1: there is
 * none).
 */
int closing_wait(const struct inbox *s, const char *run, uint64_t *step,
    const struct quorum *q, int out, struct ledger *l, struct err *e);

/* closing_list(s, run, step, have, l, n, e): counts the shards of a step into *n,
 * unless it is NULL; with l it lists them too, and does not read again those that
 * `have', or NULL, already names. */
int closing_list(const struct inbox *s, const char *run, uint64_t step,
    const struct ledger *have, struct ledger *l, size_t *n, struct err *e);

/* closing_aside(s, run, l, e): l is the manifest of the newest closed step from now on,
 * since some of its shards turned out to be of no use. */
int closing_aside(const struct inbox *s, const char *run, struct ledger *l,
    struct err *e);

/* closing_published(s, run, step, out, e): waits until the step's aggregate is
 * in the spool.  Whoever puts it there reads descriptor `out': when nobody
 * does any more, that is wait_orphan's error. */
int closing_published(const struct inbox *s, const char *run, uint64_t step,
    int out, struct err *e);
/* closing_forget(s, run, before, e): removes the directories of the steps before
 * this one, all of them closed.  Their manifests are kept, so that a shard that is
 * sent again gets the same verdict however late it comes. */
int closing_forget(const struct inbox *s, const char *run, uint64_t before,
    struct err *e);

#endif
