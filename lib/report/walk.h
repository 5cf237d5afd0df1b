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

/* The sizes of one or more tensors, and how much of them was sent. */
struct tally {
	uint64_t elements, groups;	/* as in the schema, sent or not */
	uint64_t sent, sent_groups;	/* how many of these were sent */
	uint64_t bytes;			/* bytes of the bodies */
	uint64_t codec[CODEC_MAX];	/* number of groups coded with each codec */
	uint64_t coded[CODEC_MAX];	/* bytes of these groups */
};

/* How many groups of a tensor were sent, and the bytes of their bodies, whatever glob is. */
struct walk_sent {
	uint32_t groups;
	uint64_t bytes;
};

/* Callbacks may be NULL.  An error < 0 that one returns ends the walk. */
struct walk {
	const char *glob;	/* visit tensors whose name matches; NULL: all */
	/* called for each group that was sent, except those of kind model whose body alone does
	 * not give the values (codec_values) */
	int (*group)(void *arg, const struct schema_tensor *t, const float *x,
	    size_t n, struct err *e);
	/* called for each tensor after its groups, also if none was sent */
	int (*tensor)(void *arg, const struct schema_tensor *t,
	    const struct tally *y, struct err *e);
	int (*note)(void *arg, const struct reader *r, struct err *e);	/* for READER_NOTE */
	void *arg;
	struct walk_sent *sent;	/* [tensors], to which the walk adds; NULL: not needed */
	struct tally total;	/* totals of all tensors that matched */
	uint64_t framed;	/* bytes of all the shard's frames, with heads and padding */
	/* below: private */
	struct tally now;
	float *x;
	size_t cap, at;
	int wanted;		/* 1: tensor `at' matches */
};

/* Read a shard, of which r has just returned READER_SHARD, up to READER_SEND. The caller
 * sets glob, arg, sent and the callbacks, and clears all other members before the first
 * shard. Return 0 or -ERR_x. */
int walk_shard(struct walk *w, struct reader *r, struct err *e);
void walk_release(struct walk *w);

/* Return the bits of the bodies per element, sent or not; 0 if there are no elements. */
double walk_bits(const struct tally *y);

#endif
