/*
 * Setting a shard aside: its frames are copied into an unnamed temporary file,
 * as a stream of their own, so that they can be read later and more than once.
 */
#ifndef ACE_ASIDE_H
#define ACE_ASIDE_H

#include "format/reader.h"

struct err;

/* aside_shard(out, fd, from, o, e): sets aside the shard that `from' stands at,
 * which is read to its verified end; *out is a reader of the file and stands at
 * the shard.  aside_again: *out becomes a new reader that stands there again.
 * The caller closes *fd, after *out was freed. */
int aside_shard(struct reader **out, int *fd, struct reader *from,
    const struct reader_opts *o, struct err *e);
int aside_again(struct reader **out, int fd, const struct reader_opts *o,
    struct err *e);

#endif
