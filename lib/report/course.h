/*
 * How a run went: what its shards took, by which codecs, the residual, and the
 * bandwidth and the interval that the policy had, over the steps; several runs
 * above one another.
 */
#ifndef ACE_COURSE_H
#define ACE_COURSE_H

#include <stddef.h>

struct err;
struct reader_opts;
struct report;

enum course_how {
	COURSE_TEXT,		/* rows of bars, as wide as the terminal */
	COURSE_GNUPLOT		/* a program for gnuplot, which writes an SVG */
};

enum { COURSE_RUNS = 8 };	/* that can be drawn together */

/* course_draw(p, how, path, n, o, e): each of the n operands is a run. */
int course_draw(struct report *p, enum course_how how, char **path, size_t n,
    const struct reader_opts *o, struct err *e);

#endif
