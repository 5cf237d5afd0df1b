/*
 * The rules of ace-stream(5) for keys and annotations of a shard, for programs that
 * admit or verify streams of others. Programs that only pass annotations on do not
 * check them.
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
	int sign;			/* a signature was seen: it must be last */
	int model;			/* the hashes of a patch came */
};

/* Check SHRD. The message of -ERR_DATA does not say where. */
int checks_shard(const struct shard *s, struct err *e);
/* Check a frame between shards. */
int checks_loose(const struct reader *r, struct err *e);
/* Check the annotation that r stands at. The message of -ERR_DATA says where. */
int checks_note(struct checks *c, const struct reader *r, struct err *e);
/* Check that DATA does not follow a signature. */
int checks_data(const struct checks *c, const struct reader *r, struct err *e);

#endif
