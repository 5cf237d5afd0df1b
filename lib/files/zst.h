/*
 * Zstandard frames, for the directories in which other programs send what changed in
 * a model (model/delta.h), and for nothing else: our own streams have LZ4 and codecs
 * of their own.  Only zst.c includes zstd.h.
 */
#ifndef ACE_ZST_H
#define ACE_ZST_H

#include <stddef.h>
#include <stdint.h>

struct err;

/* ---- reading: one frame, which lies in a file, and not more than it ---- */

struct zst_in;
/* zst_open(out, fd, at, n, name, e): the frame in the n bytes of fd from byte `at' on.
 * -ERR_DATA when no frame begins there. */
int zst_open(struct zst_in **out, int fd, uint64_t at, uint64_t n,
    const char *name, struct err *e);
/* zst_says(z, n): 0 when the frame says that it unpacks to another size. */
int zst_says(const struct zst_in *z, uint64_t n);
/* zst_read(z, p, n, e): the next n bytes, all of them, or -ERR_DATA.  Nothing that a
 * frame says makes it take more memory than ZST_WINDOW and some 200 KiB. */
enum { ZST_WINDOW = 23 };	/* log2 of its bytes: what all have to read */
int zst_read(struct zst_in *z, void *p, size_t n, struct err *e);
/* zst_end(z, e): -ERR_DATA unless the frame ends here, and the n bytes with it. */
int zst_end(struct zst_in *z, struct err *e);
void zst_close(struct zst_in *z);

/* ---- writing ---- */

struct zst_out;
int zst_create(struct zst_out **out, int fd, const char *name, struct err *e);
/* zst_begin(z, at, size, e): a frame of `size' bytes, to be written from byte `at' of
 * the file on. */
int zst_begin(struct zst_out *z, uint64_t at, uint64_t size, struct err *e);
int zst_write(struct zst_out *z, const void *p, size_t n, struct err *e);
/* zst_finish(z, end, e): *end is the byte behind the frame. */
int zst_finish(struct zst_out *z, uint64_t *end, struct err *e);
void zst_free(struct zst_out *z);

#endif
