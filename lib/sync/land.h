/*
 * Rate control: makes a coded shard take its budget, though the bytes foretold
 * of its plan are a few per cent off (ours).
 *
 * The knobs of all groups that have one are turned by a common factor f,
 * coarser where f > 1.  In one sweep they are coded at what was foretold,
 * corrected by what those before them took (sync/sweep.h); then one group, or as
 * few as it takes, are coded at a second factor beside it until the size is
 * within a small window under the budget.  The outcome depends on the shard, the
 * plan and the budget alone.
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
	/* about how many bytes group i would take, its knob turned by f; < 0:
	 * that cannot be told.  It is asked of at most TOLD_ASKED groups, of
	 * which this is number k; NULL: never */
	double (*foretell)(void *arg, size_t i, size_t k, double f);
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

/* land_run(l, e): 0: the size is within the budget; 1: it is above it, however
 * the knobs are turned; < 0: an error of l->make. */
int land_run(struct land *l, struct err *e);

/* ---- for sweep.c ---- */

enum { LAND_AT_ONCE = 256 };	/* groups that are handed out together */

/* land_make_many(l, which, k, f, e): codes k <= LAND_AT_ONCE groups at f. */
int land_make_many(struct land *l, const uint32_t *which, size_t k, double f,
    struct err *e);
/* land_bytes(l, q): the bytes of the first q bodies of the order. */
double land_bytes(const struct land *l, size_t q);
/* land_aim(l, now): the bytes that the bodies with a knob should take, so that
 * the whole fits, of which they take `now'. */
double land_aim(const struct land *l, double now);
/* land_apart(l): how far log f of some groups may be from that of the others. */
double land_apart(const struct land *l);

#endif
