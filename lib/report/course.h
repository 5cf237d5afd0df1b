/*
 * How a run went: what its shards took, by which codecs, the residual, and the
 * bandwidth and the interval that the policy had, over the steps; several runs
 * above one another.
 */
#ifndef ACE_COURSE_H
#define ACE_COURSE_H

#include <stddef.h>

struct err;
struct io;
struct reader_opts;
struct report;

enum { COURSE_RUNS = 8 };	/* that can be drawn together */

/* course_draw(p, out, path, n, o, e): each of the n operands is a run.  They are
 * drawn into out as a picture, or where that is NULL as text: rows of bars, as
 * wide as the terminal. */
int course_draw(struct report *p, struct io *out, char **path, size_t n,
    const struct reader_opts *o, struct err *e);

#endif
