/*
 * The steps of a spool for ace-aggregate: one after another is waited for,
 * closed, handed out as paths of its shards, and done.
 */
#ifndef ACE_ROUNDS_H
#define ACE_ROUNDS_H

#include "spool/closing.h"

struct err;
struct rounds;

struct rounds_opts {
	const char *dir;
	const char *run;	/* see inbox_fits; NULL: the only one there is */
	enum io_sync sync;
	struct quorum rule;
	int published;		/* a step is done when its aggregate is in the
				   spool; who puts it there reads our output */
	uint64_t keep;		/* steps whose shards stay; 0: all */
	int create;		/* make the directory if it is not there */
	struct progress *wait;	/* or NULL */
	int out;		/* where the aggregate goes: when nobody reads it
				   any more there is nothing to wait for; -1 */
	const char *confined;	/* the sandbox that is in force, in words */
};

/* rounds_count(s, want, name, e): how many runs there are in the spool that fit
 * `want' (inbox_fits), one of these; ONE: its name in *name, allocated.  A run is
 * there from its first shard on. */
enum { ROUNDS_NO_RUN, ROUNDS_ONE_RUN, ROUNDS_RUNS };
int rounds_count(const struct inbox *s, const char *want, char **name,
    struct err *e);

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

/* rounds_next(r, step, paths, n, e): waits for the next step that can be closed and
 * closes it (closing_wait); *paths are its shards and those of steps before it that
 * are in no average, in the order to sum in, until rounds_done.  A step that was
 * closed before and not done comes again, the same. */
int rounds_next(struct rounds *r, uint64_t *step, char ***paths, size_t *n,
    struct err *e);
/* rounds_aside(r, i, count, waits, why, paths, n, e): take `count' of these shards
 * from the i-th on out of the step's average, in its manifest, which is on disk when
 * this returns.  waits 1: they are counted in the next average; 0: they are of no
 * use.  *paths are what is left; none where these are fewer than a quorum, and they
 * wait, too. */
int rounds_aside(struct rounds *r, size_t i, size_t count, int waits,
    const char *why, char ***paths, size_t *n, struct err *e);
/* rounds_done(r, e): the step's aggregate was written (or there is none, since
 * no shard was left).  With `published' it waits until it is in the spool. */
int rounds_done(struct rounds *r, struct err *e);

#endif
