/*
 * A plan group by group, when the shard is seen only once: each group takes
 * what is best at the price of a byte (price.h), measured before it is said,
 * and never more than fits.  Ours.
 */
#ifndef ACE_ONCE_H
#define ACE_ONCE_H

#include <stddef.h>
#include <stdint.h>

#include "codec/codec.h"
#include "codec/measure.h"
#include "codec/stat.h"
#include "sync/allot.h"
#include "sync/price.h"

struct err;

struct once {
	struct price price;
	double dist, energy;	/* of the shard so far, weighted */
	/* found by once_group */
	struct codec_plan plan;
	size_t body;		/* bytes */
	/* private */
	struct codec_plan level[SELECT_LEVELS];
	size_t m, ladder;
	struct allot *row;
	struct measure measure;
};

/* One group, its values, and what is known of it. */
struct once_group {
	const struct stat_group *stat;
	double weight;
	int dense;		/* not to be sparsified */
	struct codec_ctx ctx;
	const float *x;
	size_t n;
	/* 1 when the shard keeps its budget with this body added */
	int (*fits)(void *arg, const struct codec_plan *p, size_t body);
	void *arg;
};

/* once_new: levels as for fit_plan.  once_free(NULL) is fine. */
int once_new(struct once **out, const struct codec_plan *level, size_t m,
    size_t ladder, struct err *e);
void once_free(struct once *o);

/* once_begin(o, budget, total): a shard of total values, budget bytes for its
 * groups.  Ends with price_end(&o->price). */
void once_begin(struct once *o, double budget, double total);
/* once_look(o, g, own): g comes next, of which only the statistics count.
 * once_group(o, g, own, e): it is decided, of those looked at the first. */
void once_look(struct once *o, const struct once_group *g,
    struct price_own *own);
int once_group(struct once *o, const struct once_group *g,
    const struct price_own *own, struct err *e);

/* once_least(o, n): bytes of the cheapest level for n values that are not to
 * be sparsified, 0 when there is none. */
uint64_t once_least(const struct once *o, size_t n);

#endif
