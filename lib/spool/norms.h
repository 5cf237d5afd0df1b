/*
 * How long the shards of the last steps were: the median of the norms of each
 * step's contributions, in a file "STEP NORM\n" line by line, or in memory.
 *
 * A step that is made again, after a kill, finds what it found the first time:
 * only steps before it count.
 */
#ifndef ACE_NORMS_H
#define ACE_NORMS_H

#include <stddef.h>
#include <stdint.h>

#include "base/io.h"

struct err;

enum { NORMS_WINDOW = 16 };

struct norms {
	char *path;		/* NULL: memory */
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

/* norms_median(s, step): of the steps before it, the newest NORMS_WINDOW; of an
 * even number the mean of the middle two; 0 when there are none. */
double norms_median(const struct norms *s, uint64_t step);
/* norms_add(s, step, norm, e): steps from this one on are forgotten; on disk
 * when it returns. */
int norms_add(struct norms *s, uint64_t step, double norm, struct err *e);

#endif
