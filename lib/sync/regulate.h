/*
 * Rate control: makes a coded shard take its budget, though the bytes foretold
 * of its plan are a few per cent off (ours).
 *
 * The knobs of all groups that have one are turned by a common factor e^t,
 * coarser where t > 0.  What they take at three factors is foretold; then all
 * are coded, some after others, so that what these took tells how far those have
 * to be turned; then one group, or as few as it takes, are coded again beside
 * the common factor, by what they took so far (secants), until the size is
 * within a narrow band under the budget.  The outcome depends on the shard, the
 * plan, the budget and the codes that were there before alone.
 *
 * It is arithmetic only.  Whoever codes does as it says:
 *
 *	regulate_open(r, e);
 *	while (slot < r->asked)		regulate_tell(r, slot, ...);
 *	while (regulate_next(r, size of the coded shard))
 *		code g[which[0]] to g[which[many - 1]] with the knobs of their
 *		plans turned by f, and fill in their code but for its t
 *	regulate_close(r);
 */
#ifndef ACE_REGULATE_H
#define ACE_REGULATE_H

#include <stddef.h>
#include <stdint.h>

#include "codec/codec.h"
#include "kern/kern.h"

struct err;

/* How far under the budget the size may be, as a share of it, and 16 bytes at
 * least: what is aimed at, and what will do where sizes jump. */
#define REGULATE_BAND 0.002
#define REGULATE_WIDE 0.0045

enum { REGULATE_ASKED = 64, REGULATE_POINTS = 3 };

/* One group of a shard, from when its values wait until it is coded. */
struct regulate_group {
	uint32_t group, n;		/* its number; values */
	int absent;			/* not in the input */
	uint64_t at;			/* where the values wait: the caller's */
	struct codec_plan plan;
	struct kern_stat seen;		/* of the values */
	struct regulate_code {
		double t;		/* log of the factor; infinite: none yet */
		uint64_t at;		/* where the body is: the caller's */
		size_t len;		/* of the body; 0: it is not sent */
		uint8_t param;
	} code;
};

struct regulate {
	/* given */
	struct regulate_group *g;	/* [n] */
	size_t n;
	uint64_t budget;
	int given;			/* codes with a finite t are there; what is
					 * far off the plan is coded anew */

	/* the groups that are asked for, g[order[0]] to g[order[asked - 1]] */
	uint32_t *order;
	size_t asked;

	/* the groups to be coded next; none: only the size is asked for */
	uint32_t *which;
	size_t many;
	double f;

	/* found */
	uint64_t bytes;			/* the size */
	size_t made, tried;		/* codings, and values in them */

	/* private */
	int phase;
	size_t k;			/* groups with a knob */
	size_t coded;			/* of these, at least once */
	double t;			/* of the groups in which */
	double all;			/* log factor at which all take the aim */
	double e;			/* - d log bytes / d log factor */
	double gain;			/* bytes over those foretold */
	double band;
	struct regulate_shape {
		double b, c;		/* log bytes at t, over at 0: b t + c t^2 */
		/* in bytes at 0, of the groups of that shape: coded; of these
		 * to be coded again; foretold of those coded; of the others */
		double base, moves, done, open;
	} *shape;			/* of each group, or of all */
	size_t shapes;
	double *weight;			/* [k] bytes at 0, foretold */
	double told[REGULATE_POINTS];	/* of all that are asked for */
	struct regulate_sample {	/* of their sizes, reckoned in two ways */
		double sum, square, product;
	} by[2];
	double stay;			/* bytes of those not coded again */
	struct regulate_code *was;	/* [n] of the groups in which, before */
	struct regulate_end {		/* all were coded at t: log bytes */
		double t, bytes;
		int known;
	} over, within;			/* the nearest on each side */
	struct regulate_code fits, much;	/* of the group that is turned */
	uint64_t least, last;		/* bytes with fits; a round before */
	int passes, round, whole, stuck, turns, coarse, fills;
	double reach;
};

int regulate_open(struct regulate *r, struct err *e);
void regulate_close(struct regulate *r);

/* regulate_knob(r, slot, p): the plan of group order[slot] at a point of its
 * curve.  regulate_tell(r, slot, told): about how many bytes the values of that
 * group take at each; < 0: that cannot be told.  In the order of the slots. */
struct codec_plan regulate_knob(const struct regulate *r, size_t slot,
    int point);
void regulate_tell(struct regulate *r, size_t slot,
    const double told[REGULATE_POINTS]);

/* regulate_next(r, bytes): 1: there is more to be coded, or only the size is
 * asked for; 0: the end, and r->bytes is above the budget only if it cannot be
 * met however the knobs are turned. */
int regulate_next(struct regulate *r, uint64_t bytes);

#endif
