/*
 * Checks of the rules of ace-stream(5) for a shard's keys and annotations, for programs
 * that admit or verify shards. Programs that only pass annotations on do not check them.
 */
#ifndef ACE_CHECKS_H
#define ACE_CHECKS_H

#include <stddef.h>
#include <stdint.h>

#include "format/shard.h"

struct err;
struct reader;

/* State of the checks of one shard; starts as zeros. Release `policy' after the shard. */
struct checks {
	uint64_t names;			/* number of contributors' names so far */
	char last[SHARD_NAME + 1];	/* the last name so far */
	int sign;			/* 1: a signature was seen, which must be last */
	int model;			/* 1: the hashes of a patch were seen */
	struct text_kv policy;		/* the keys of all its policies */
};

/* Check SHRD. The message of -ERR_DATA does not give the position. */
int checks_shard(const struct shard *s, struct err *e);
/* Check the annotation at which r stands. The message of -ERR_DATA gives the position. */
int checks_note(struct checks *c, const struct reader *r, struct err *e);
/* Check p[n], the payload of frame sIGN, except the signature itself. */
enum { CHECKS_SIGN = 104 };
int checks_sign(const unsigned char *p, size_t n, struct err *e);
/* Return -ERR_DATA, with the position, if a signature was seen; for frames that must not
 * follow it. */
int checks_data(const struct checks *c, const struct reader *r, struct err *e);

#endif
