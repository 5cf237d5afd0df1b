/*
 * From one end to another without a copy, where both are pipes (base/share.h).
 */
#ifndef ACE_IO_SHARE_H
#define ACE_IO_SHARE_H

#include <stddef.h>

struct err;
struct io;

/* io_share(io, to): what is read from io may be written to `to' as it is.  If
 * both are pipes, 1; io_share_keep(io, n) before the next n bytes are read then
 * keeps them in the system, and io_share_pass moves them on without a copy. */
int io_share(struct io *io, const struct io *to);
void io_share_keep(struct io *io, size_t n);
/* io_share_pass(io, from, p, n, e): writes the n bytes at p, which are what was
 * read after the last io_share_keep(from, n). */
int io_share_pass(struct io *io, struct io *from, const void *p, size_t n,
    struct err *e);
/* io_share_move(io, from, n, got, e): moves what there is, at most n bytes,
 * unseen: 1, and *got is 0 at the end of the input.  0: they have to be read
 * and written. */
int io_share_move(struct io *io, struct io *from, size_t n, size_t *got,
    struct err *e);

#endif
