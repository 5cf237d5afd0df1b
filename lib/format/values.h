/* The values of a shard, group by group: decoded records, zeros for absent groups. */
#ifndef ACE_VALUES_H
#define ACE_VALUES_H

#include <stddef.h>
#include <stdint.h>

#include "codec/codec.h"
#include "format/reader.h"

/* Set ctx to the codec's context for group g of a shard (struct codec_ctx). */
void values_ctx(const struct schema *sc, const struct shard *s, uint32_t g,
    struct codec_ctx *ctx);

/* Return p, or the plan of codec exact if values of group g must not change (schema_exact)
 * and p's codec is lossy or CODEC_NONE. */
struct codec_plan values_plan(const struct schema *sc, uint32_t g, struct codec_plan p);

/* Decode a record of n values.  If l is not NULL, store those that are not zero in l; the
 * codec must list them (codec_lists).  Otherwise set *x to the values: to rec->body if that is
 * an aligned f32 array in this machine's byte order, else to buf f32[n].  t->nonzero becomes
 * the count of finite values other than 0; without l, *t becomes the statistics. */
struct kern_stat;
int values_record(const struct record *rec, const struct codec_ctx *ctx, size_t n,
    float *buf, struct codec_list *l, const float **x, struct kern_stat *t,
    struct err *e);

/* Decode one record of r's current frame into x f32[cap]; set *n to its number of values. */
int values_decode(const struct reader *r, const struct record *rec, float *x,
    size_t cap, size_t *n, struct err *e);

/* Like values_decode, and also set *t to the statistics of the values. If the body is an
 * aligned f32 array in this machine's byte order, set *x to the body, which is valid until
 * the next frame; otherwise to buf f32[cap]. */
int values_view(const struct reader *r, const struct record *rec, float *buf,
    size_t cap, const float **x, size_t *n, struct kern_stat *t, struct err *e);

/* Return -ERR_REFUSED because value i of group g of r's shard is not finite; the message
 * names the tensor and the position. */
int values_refuse(const struct reader *r, uint32_t g, size_t i, struct err *e);

/* Return -ERR_REFUSED because value i of group g and its residual together exceed f32; the
 * message names the tensor and the position. */
int values_overflow(const struct schema *sc, uint32_t g, size_t i, struct err *e);

/* Return -ERR_DATA if one of the n values x of tensor t, from its index `first' on, is
 * not finite or is larger than VALUES_MOST in magnitude. */
struct kern;
int values_bounded(const struct kern *k, const struct schema_tensor *t,
    uint64_t first, const float *x, size_t n, struct err *e);

/* Return -ERR_DATA if the values of shard s are differences to a history or a model, for
 * callers that have neither; otherwise 0. */
int values_whole(const struct shard *s, struct err *e);

/*
 * Iterate over all groups of the current shard in order, absent ones included.
 *
 *   values_begin(&v, r, e);                 after READER_SHARD
 *   while ((k = values_next(&v, e)) > 0)    v.group, v.x[v.n], v.sent
 *   k == 0: READER_SEND was seen and verified
 *
 * v.note, unless it is NULL, is called for each annotation of the shard, in order.
 */
/* Largest magnitude accepted from other devices. Gradients are smaller. A residual to which
 * larger values are added repeatedly would become infinite. */
#define VALUES_MOST 1e18f

struct values {
	struct reader *r;
	uint32_t group;		/* the group whose values are in x */
	const float *x;		/* f32[n], zeros if not sent; in buf or in the frame */
	size_t n;
	int sent;		/* 1: the shard has the group */
	const struct record *rec;	/* the record, or NULL if not sent */
	int (*note)(void *arg, const struct reader *r, struct err *e);
	void *arg;		/* argument of note */
	/* 1: accept a shard of differences (values_whole); 0: refuse it as a mismatch */
	int differences;
	float *buf;		/* f32[cap]: room for any group of the shard */
	size_t cap;
	/* below: private */
	const struct record *list;
	size_t at, nlist;
	uint32_t next;
	int ended;
};
#define VALUES_INIT { .r = NULL }

int values_begin(struct values *v, struct reader *r, struct err *e);
int values_next(struct values *v, struct err *e);
void values_release(struct values *v);

#endif
