/*
 * The norms of the last steps: of each step the median of its contributions'
 * Euclidean norms, in memory and, for a spool, in a file with a line "STEP
 * NORM" for each.
 *
 * Only steps before the one that asks count, so that a step that is made again
 * after a kill is decided by the same numbers as the first time.
 */
#ifndef ACE_NORMS_H
#define ACE_NORMS_H

#include <stddef.h>
#include <stdint.h>

#include "base/io.h"

struct err;

enum { NORMS_WINDOW = 16 };

struct norms {
	char *path;		/* NULL: there is no file */
	enum io_sync sync;
	size_t n;
	struct norms_step {
		uint64_t step;
		double norm;
	} last[NORMS_WINDOW];	/* rising steps */
};
#define NORMS_INIT { NULL, IO_SYNC_FULL, 0, { { 0, 0 } } }

/* norms_open(s, path, sync, e): takes path, which is allocated, and reads it if
 * it is there. */
int norms_open(struct norms *s, char *path, enum io_sync sync, struct err *e);
void norms_release(struct norms *s);

/* norms_median(s, step): the median over the newest NORMS_WINDOW steps before
 * this one; of an even number the mean of the middle two; 0 when there are
 * none. */
double norms_median(const struct norms *s, uint64_t step);
/* norms_add(s, step, norm, e): sets the norm of this step and forgets those of
 * later ones; on disk when it returns. */
int norms_add(struct norms *s, uint64_t step, double norm, struct err *e);

#endif
