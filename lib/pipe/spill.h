/*
 * Setting shards aside: their frames are copied into one unnamed temporary
 * file, each shard as a stream of its own, so that they can be read later, more
 * than once, and any number of them with one open file.
 */
#ifndef ACE_SPILL_H
#define ACE_SPILL_H

#include <stdint.h>

#include "format/reader.h"

struct err;

struct spill {
	int fd;			/* -1: nothing was set aside yet */
};
#define ASIDE_INIT { -1 }

/* spill_put(a, from, at, e): sets aside the shard that `from' stands at, which
 * is read to its verified end; *at is its place in the file. */
int spill_put(struct spill *a, struct reader *from, uint64_t *at,
    struct err *e);
/* spill_get(a, at, out, o, e): *out becomes a reader that stands at the shard
 * at that place. */
int spill_get(const struct spill *a, uint64_t at, struct reader **out,
    const struct reader_opts *o, struct err *e);
/* spill_empty(a, e): what was set aside is no longer needed. */
int spill_empty(struct spill *a, struct err *e);
void spill_close(struct spill *a);

#endif
