/*
 * The values of a shard, group by group: records decoded, absent groups known.
 */
#ifndef ACE_VALUES_H
#define ACE_VALUES_H

#include <stddef.h>
#include <stdint.h>

#include "codec/codec.h"
#include "format/reader.h"

/* What both sides know about group g of a shard without being told. */
void values_ctx(const struct schema *sc, const struct shard *s, uint32_t g,
    struct codec_ctx *ctx);

/* values_plan(sc, g, p): p, or lossless where p would change the values of group g and
 * these mean only themselves. */
struct codec_plan values_plan(const struct schema *sc, uint32_t g,
    struct codec_plan p);

/* values_decode(r, rec, x, cap, n, e): one record of r's current frame into
 * x f32[cap]; *n values. */
int values_decode(const struct reader *r, const struct record *rec, float *x,
    size_t cap, size_t *n, struct err *e);

/* values_view(r, rec, buf, cap, x, n, t, e): the same, and their statistics; but
 * values that are in the frame as they are in memory are left there, and *x
 * points to them until the next frame. */
struct kern_stat;
int values_view(const struct reader *r, const struct record *rec, float *buf,
    size_t cap, const float **x, size_t *n, struct kern_stat *t,
    struct err *e);

/* values_refuse(r, g, i, e): value i of group g of r's shard is not finite:
 * -ERR_REFUSED, by name and place. */
int values_refuse(const struct reader *r, uint32_t g, size_t i, struct err *e);

/* values_bounded(k, t, first, x, n, e): -ERR_DATA when one of the n values of tensor
 * t, from its first-th on, is not finite or larger than VALUES_MOST. */
struct kern;
int values_bounded(const struct kern *k, const struct schema_tensor *t,
    uint64_t first, const float *x, size_t n, struct err *e);

/* values_whole(s, e): -ERR_DATA when the values of shard s are differences to a
 * history, which nobody without that history may take for values. */
int values_whole(const struct shard *s, struct err *e);

/*
 * Every group of the current shard in order, also those that were not sent.
 *
 *   values_begin(&v, r, e);                 after READER_SHARD
 *   while ((k = values_next(&v, e)) > 0)    v.group, v.x[v.n], v.sent
 *   k == 0: READER_SEND was seen and verified
 *
 * Annotations met on the way are given to `note' (may be NULL), in order.
 */
/* What may come from somebody else.  No gradient is so large, and a residual that
 * gets such values again and again would overflow at some step, for ever. */
#define VALUES_MOST 1e18f

struct values {
	struct reader *r;
	uint32_t group;		/* of the values in x */
	const float *x;		/* f32[n], zeros when not sent; in buf, or in
				 * the frame, where they are as in memory */
	size_t n;
	int sent;
	const struct record *rec;	/* as it came, NULL when not sent */
	int (*note)(void *arg, const struct reader *r, struct err *e);
	void *arg;
	int differences;	/* take a shard that is a difference to a
				   history; otherwise it is a mismatch */
	int lists;		/* x is not wanted where `listed' has it all
				   or nothing was sent */
	int is_listed;		/* of this group: it is in `listed', not x */
	struct codec_list listed;
	float *buf;		/* f32[cap]: room for any group of the shard */
	size_t cap;
	/* below: private */
	const struct record *list;
	size_t at, nlist;
	uint32_t next;
	int ended;
};
#define VALUES_INIT { .listed = CODEC_LIST_INIT }

int values_begin(struct values *v, struct reader *r, struct err *e);
int values_next(struct values *v, struct err *e);
void values_release(struct values *v);

#endif
