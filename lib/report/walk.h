/*
 * Visit the current shard tensor by tensor and call functions for the groups that were
 * sent. Groups that were not sent take no time.
 */
#ifndef ACE_WALK_H
#define ACE_WALK_H

#include <stdint.h>

#include "codec/codec.h"
#include "format/reader.h"

struct err;

/* What was sent of one or more tensors. */
struct tally {
	uint64_t elements, groups;	/* numbers of the schema */
	uint64_t sent, sent_groups;	/* how many of these were sent */
	uint64_t bytes;			/* bytes of the bodies */
	uint64_t codec[CODEC_MAX];	/* number of groups coded with each codec */
	uint64_t coded[CODEC_MAX];	/* bytes of these groups */
};

/* The groups of a tensor that a shard has, whatever the glob. */
struct walk_sent {
	uint32_t groups;
	uint64_t bytes;
};

struct walk {
	const char *glob;	/* only tensors whose name matches, or NULL */
	/* called for each group sent; NULL: decode nothing */
	int (*group)(void *arg, const struct schema_tensor *t, const float *x,
	    size_t n, struct err *e);
	/* called for each tensor after its groups */
	int (*tensor)(void *arg, const struct schema_tensor *t,
	    const struct tally *y, struct err *e);
	int (*note)(void *arg, const struct reader *r, struct err *e);
	void *arg;
	struct walk_sent *sent;	/* [tensors], increased by the walk; or NULL */
	struct tally total;	/* totals of all tensors that matched */
	uint64_t framed;	/* bytes of all the shard's frames */
	/* below: private */
	struct tally now;
	float *x;
	size_t cap, at;
	int wanted;		/* 1: tensor `at' matches */
};

/* Read a shard, of which r has just returned READER_SHARD, up to READER_SEND. The caller
 * sets glob, arg, sent and the callbacks; this function sets all other members. Return 0
 * or -ERR_x. */
int walk_shard(struct walk *w, struct reader *r, struct err *e);
void walk_release(struct walk *w);

/* Return the mean bits per element, sent or not. */
double walk_bits(const struct tally *y);

#endif
