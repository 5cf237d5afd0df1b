/*
 * Rate control: makes a coded shard take its budget, though the bytes foretold
 * of its plan are a few per cent off (ours).
 *
 * The knobs of all groups that have one are turned by a common factor f,
 * coarser where f > 1, until the true size is nearly right; then, group by
 * group in an order that is spread evenly over the shard, they are coded at a
 * second factor beside it until the size is within a small window under the
 * budget.  A large shard is not coded to see that the first factor was wrong:
 * an eighth of its groups tell.  The outcome depends on the shard, the plan
 * and the budget alone.
 */
#ifndef ACE_LAND_H
#define ACE_LAND_H

#include <stddef.h>
#include <stdint.h>

struct err;

/* How far under the budget the size may be, as a share of it, and 16 bytes at
 * least: what is aimed at, and what will do where sizes jump. */
#define LAND_WINDOW 0.002
#define LAND_WIDE 0.0045

/* How a group is coded, and where its body is kept. */
struct land_code {
	double f;
	uint64_t at;		/* the caller's */
	size_t len;		/* 0: it is not sent */
	uint8_t param;
};

struct land {
	/* given */
	size_t n;			/* groups */
	const uint8_t *knob;		/* [n] */
	const uint32_t *values;		/* [n] */
	uint64_t budget;
	void *arg;			/* for the functions */
	/* codes group i with its knob turned by f.  Groups without a knob come
	 * once and first, in order, with f = 1. */
	int (*make)(void *arg, size_t i, double f, struct land_code *c,
	    struct err *e);
	/* the same for k groups in any order, c land_code[k]; NULL: by make */
	int (*many)(void *arg, const uint32_t *which, size_t k, double f,
	    struct land_code *c, struct err *e);
	/* codes one of `parts' parts of group i so, for its length alone */
	int (*part)(void *arg, size_t i, double f, unsigned parts, size_t *len,
	    struct err *e);
	/* the bytes of the coded shard, as code says */
	uint64_t (*size)(void *arg, const struct land *l);

	/* found */
	struct land_code *code;		/* [n], the caller's */
	uint64_t bytes;
	size_t made;			/* codings */
	size_t tried;			/* values that were coded */

	/* private */
	uint32_t *order;		/* [k] groups with a knob */
	size_t k;
	double e;			/* - d log bytes / d log f */
	double window;
	struct land_end {		/* all groups were coded at f: log f, */
		double f, bytes;	/* and the log of what all bodies took */
		int known;
	} over, within;			/* the nearest on each side */
	double turned, gained;		/* what e is learnt from */
	size_t since;			/* turns since the size was exact */
};

/* land_part(y, x, n, cols, parts): puts one row of so many of x f32[n], or where
 * it has few of them one piece, into y f32[n]; returns how many values. */
size_t land_part(float *y, const float *x, size_t n, size_t cols,
    unsigned parts);

/* land_run(l, e): 0: the size is within the budget; 1: it is above it, however
 * the knobs are turned; < 0: an error of l->make. */
int land_run(struct land *l, struct err *e);

#endif
