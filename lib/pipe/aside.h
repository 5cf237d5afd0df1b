/*
 * A shard set aside: its frames in an unnamed file, as a stream of their own.
 */
#ifndef ACE_ASIDE_H
#define ACE_ASIDE_H

#include "format/reader.h"

struct err;

/* aside_shard(out, fd, from, o, e): the shard that `from' stands at, read to
 * its verified end; *out stands at it again.  aside_again: back to there, with
 * a new reader.  *fd is the caller's to close, after *out was freed. */
int aside_shard(struct reader **out, int *fd, struct reader *from,
    const struct reader_opts *o, struct err *e);
int aside_again(struct reader **out, int fd, const struct reader_opts *o,
    struct err *e);

#endif
