/*
 * Groups of a shard that are coded side by side, by several threads, and then
 * settled one after another: the bytes are those of one thread.
 *
 *   coding_slot, which is filled in, and coding_add; where that says full, or
 *   what comes next has to stand behind these groups: coding_run
 */
#ifndef ACE_CODING_H
#define ACE_CODING_H

#include <stddef.h>
#include <stdint.h>

#include "base/alloc.h"
#include "codec/codec.h"
#include "kern/kern.h"

struct err;
struct pool;
struct rate;

struct coding_group {
	uint32_t group;
	size_t n;
	float *acc, *u;		/* f32[n]: what is to be coded; see feedback.h.
				 * In the slot's room, or elsewhere */
	struct kern_stat seen;	/* of acc, where it is made already */
	struct codec_plan plan;	/* as it is coded */
	int made;		/* sent, body and param are there already */
	int sent;
	struct buf body;
	uint8_t param;
	float *dec;		/* f32[n]: what the body says, if it is sent */
	float *room;		/* f32[3 * cap]: acc, u, dec */
};

struct coding {
	struct pool *pool;
	struct rate *rate;	/* codes: rate_encode */
	struct coding_group *w;
	size_t size, n;		/* slots, and those that are filled */
	size_t cap;		/* values */
};

/* coding_open(c, pool, rate, e): both stay the caller's. */
int coding_open(struct coding *c, struct pool *pool, struct rate *rate,
    struct err *e);
void coding_close(struct coding *c);
/* coding_begin(c, n, e): groups of a shard come, of at most n values. */
int coding_begin(struct coding *c, size_t n, struct err *e);

/* coding_slot(c): the next one, with acc and u in its room. */
struct coding_group *coding_slot(struct coding *c);
/* coding_add(c): it is filled in.  1: coding_run has to come next. */
int coding_add(struct coding *c);
/* coding_run(c, settle, arg, e): codes what was added, and finds what it says;
 * then calls settle for each, in the order in which they were added. */
int coding_run(struct coding *c, int (*settle)(void *arg,
    struct coding_group *w, struct err *e), void *arg, struct err *e);

#endif
