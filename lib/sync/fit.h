/*
 * A plan for a whole shard within its budget, when the shard can be seen again
 * and again: foretell, solve, measure what was chosen, solve again, until all
 * that is chosen is known; then give what the knapsack's steps left over to
 * the groups that take most, whose knob is free.  Few groups: all of it once
 * more, with finer steps, and the better plan stays.  Ours.
 *
 * The shard stays the caller's: this asks for passes over it.
 */
#ifndef ACE_FIT_H
#define ACE_FIT_H

#include <stddef.h>
#include <stdint.h>

#include "codec/codec.h"
#include "codec/measure.h"
#include "codec/stat.h"
#include "sync/allot.h"

struct err;

enum { FIT_LADDER = 19 };	/* steps that "ecq" without a step stands for */

struct fit {
	/* given */
	size_t n;			/* groups */
	const struct stat_group *stat;	/* [n], zeros: not in the shard */
	const float *weight;		/* [n] */
	const uint8_t *dense;		/* [n] not to be sparsified */
	uint64_t budget;		/* bytes of the coded shard */
	void *arg;			/* for the functions */
	/* one pass over the shard: each group that want says 1 for goes to
	 * each, in order */
	int (*pass)(void *arg, int (*want)(const struct fit *f, uint32_t g),
	    int (*each)(struct fit *f, uint32_t g, const float *x, size_t n,
	    struct err *e), struct fit *f, struct err *e);
	void (*ctx)(void *arg, uint32_t g, struct codec_ctx *ctx);
	/* the coded shard's bytes: group g has a body of body(f, g) bytes as
	 * plan(f, g) says, codec none: it is not in it */
	uint64_t (*size)(void *arg, const struct fit *f);

	/* found */
	struct codec_plan *plan;	/* [n] */
	uint64_t bytes;			/* by size */
	struct select_result res;	/* as of the knapsack, dist as it is */
	int relaxed;			/* too little for the dense groups */
	size_t sent;			/* groups */

	/* private */
	struct allot *a;
	struct measure m;
	uint8_t *best;
	double step;
	struct codec_plan fine[SELECT_LEVELS];	/* the finer levels */
	int found, measured;
	uint32_t knob;
};

/* fit_ladder(level): FIT_LADDER levels of ECQ, their steps a quarter of an
 * octave apart around 1. */
void fit_ladder(struct codec_plan level[FIT_LADDER]);

/*
 * fit_levels(level, m, ladder, list, what, e): codecs separated by commas, for
 * fit_plan; the first "ecq" without a step is a ladder.  what: the option, for
 * messages.  -ERR_USAGE.
 */
int fit_levels(struct codec_plan level[SELECT_LEVELS], size_t *m,
    size_t *ladder, const char *list, const char *what, struct err *e);

/* fit_plan(f, level, m, ladder, e): level[m], the first none; ladder: where
 * fit_ladder's begin, 0 for none.  Fills in what is found.  A budget too small
 * for any group gives a plan that sends none (sent == 0). */
int fit_plan(struct fit *f, const struct codec_plan *level, size_t m,
    size_t ladder, struct err *e);

/* For size. */
size_t fit_body(const struct fit *f, uint32_t g);
struct codec_plan fit_choice(const struct fit *f, uint32_t g);

/* fit_release(f): what is found and private; f can be used again. */
void fit_release(struct fit *f);

#endif
