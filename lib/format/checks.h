/*
 * What ace-stream(5) says of the keys and the annotations of a shard, checked for
 * who lets in or verifies what others wrote.  Who only passes one on, or has no
 * use for it, does not look into it.
 */
#ifndef ACE_CHECKS_H
#define ACE_CHECKS_H

#include <stdint.h>

#include "format/shard.h"

struct err;
struct reader;

/* Of one shard; zeros before it. */
struct checks {
	uint64_t names;			/* of contributors */
	char last[SHARD_NAME + 1];	/* of these */
	int sign;			/* a signature came: it is the last */
	int model;			/* the hashes of a patch came */
};

/* checks_shard(s, e): what stands in SHRD.  -ERR_DATA, without where. */
int checks_shard(const struct shard *s, struct err *e);
/* checks_loose(r, e): a frame between shards. */
int checks_loose(const struct reader *r, struct err *e);
/* checks_note(c, r, e): the annotation that r stands at.  -ERR_DATA, with where. */
int checks_note(struct checks *c, const struct reader *r, struct err *e);
/* checks_data(c, r, e): the same of DATA: none follows a signature. */
int checks_data(const struct checks *c, const struct reader *r, struct err *e);

#endif
