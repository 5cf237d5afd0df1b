/*
 * When a step is over, for those who collect shards: one rule for inputs and for
 * a spool.  Numbers in, what to do out.
 *
 *   at once         with `expect' shards; where that is not known and there is
 *                   no deadline, with `quorum'
 *   at the deadline, or when nobody is left who could still send
 *                   with `quorum', or it has failed
 */
#ifndef ACE_QUORUM_H
#define ACE_QUORUM_H

#include <stddef.h>

struct quorum {
	size_t expect;		/* shards of a step; 0: not known */
	size_t quorum;		/* so many are enough, at least 1 */
	double deadline;	/* seconds after its first shard; 0: none */
};

enum quorum_now { QUORUM_WAIT, QUORUM_OVER, QUORUM_FAILED };

/* quorum_now(q, here, all, waited): `here' shards of a step have come, the first
 * of them `waited' seconds ago; all: nobody who could add one is left.  While
 * there is none, the clock does not run. */
enum quorum_now quorum_now(const struct quorum *q, size_t here, int all,
    double waited);

/* quorum_left(q, waited): seconds until that answer changes though nothing
 * comes, 0 or more; -1 it does not. */
double quorum_left(const struct quorum *q, double waited);

#endif
