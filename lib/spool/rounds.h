/*
 * The aggregator's side of a spool: one step after another is waited for, closed,
 * handed out as paths of its shards, and done.
 *
 * A step is over as soon as `expect' shards of it are there, or, where that is not
 * known and there is no deadline, `quorum' of them; and with a quorum at the deadline.
 * The deadline counts by the times of the step's files, so that a process that is
 * started again goes on counting; while it waits it counts by a clock that does not
 * jump.
 *
 * A step that fewer than a quorum sent is passed over once a step after it is over:
 * nobody else may ever send it.  What was accepted of it is in the list of that later
 * step, since its device keeps nothing of it; what comes from now on is late.
 */
#ifndef ACE_ROUNDS_H
#define ACE_ROUNDS_H

#include "base/io.h"

struct err;
struct rounds;

struct rounds_opts {
	const char *dir;
	const char *run;	/* see inbox_fits; NULL: the only one there is */
	enum io_sync sync;
	size_t expect;		/* shards of a step; 0: not known */
	size_t quorum;		/* so many are enough, at least 1 */
	double deadline;	/* seconds after these were there; 0: none */
	int published;		/* a step is done when its aggregate is in the
				   spool; who puts it there reads our output */
	uint64_t keep;		/* steps whose shards stay; 0: all */
	int create;		/* make the directory if it is not there */
	struct progress *wait;	/* or NULL */
	int out;		/* where the aggregate goes: when nobody reads it
				   any more there is nothing to wait for; -1 */
	const char *confined;	/* the sandbox that is in force, in words */
};

/* rounds_open(out, o, e): waits until there is a run; -ERR_USAGE when there
 * are several and none is named, -ERR_SYS when there is no directory.  o has
 * to live as long. */
int rounds_open(struct rounds **out, const struct rounds_opts *o,
    struct err *e);
void rounds_free(struct rounds *r);

/* rounds_made(r, n, e): how many steps were closed and done, by whomever. */
int rounds_made(const struct rounds *r, uint64_t *n, struct err *e);

/* rounds_file(r, name, e): the path of a file of the run, allocated. */
char *rounds_file(const struct rounds *r, const char *name, struct err *e);

/* rounds_next(r, step, paths, n, e): waits for the next step that is over and closes
 * it: the shards accepted by now are in it, and what comes later, to it or to steps
 * before it, is late.  *paths are its shards and those of steps before it that are in
 * no average, in the order to sum in, until rounds_done.  A step that was closed before
 * and not done comes again, the same.  wait_orphan's error when nobody reads o->out. */
int rounds_next(struct rounds *r, uint64_t *step, char ***paths, size_t *n,
    struct err *e);
/* rounds_exclude(r, i, count, waits, why, paths, n, e): take `count' of these shards
 * from the i-th on out of the step's average, in its manifest, which is on disk when
 * this returns.  waits 1: they are counted in the next average; 0: they are of no
 * use.  *paths are what is left; none where these are fewer than a quorum, and they
 * wait, too. */
int rounds_exclude(struct rounds *r, size_t i, size_t count, int waits,
    const char *why, char ***paths, size_t *n, struct err *e);
/* rounds_done(r, e): the step's aggregate was written (or there is none, since
 * no shard was left).  With `published' it waits until it is in the spool.  Then it
 * removes the directories of steps that need not be kept.  Their manifests stay, so
 * that a shard that is sent again gets the same verdict however late it comes. */
int rounds_done(struct rounds *r, struct err *e);

#endif
