/*
 * The drawing of course.h: measures of runs, step by step.
 */
#ifndef ACE_COURSE_DRAW_H
#define ACE_COURSE_DRAW_H

#include <stddef.h>
#include <stdint.h>

#include "codec/codec.h"

struct err;
struct io;
struct report;

/* One step of a run: sums over its shards, and how many had it. */
struct course_point {
	uint64_t step, shards;
	uint64_t bytes, coded[CODEC_MAX];
	double residual, bandwidth, interval;
	uint64_t residuals, bandwidths, intervals;
};

struct course_run {
	const char *name;
	struct course_point *at;	/* [n] in rising order of steps */
	size_t n, cap;
};

void course_draw_text(struct report *p, const struct course_run *c, size_t n);
int course_draw_svg(struct io *out, const struct course_run *c, size_t n,
    struct err *e);

#endif
