/*
 * Zstandard frames, only for the directories of model changes that other programs write and
 * read (model/delta.h); our own streams use LZ4 and our codecs. Only zst.c includes zstd.h.
 */
#ifndef ACE_ZST_H
#define ACE_ZST_H

#include <stddef.h>
#include <stdint.h>

struct err;

/* ---- reading ---- */

/* Unpack the frame in the n bytes of fd from byte `at' on, and call put for its bytes in
 * turn, with at most ZST_PIECE of them in a call.  name: the file's name in messages.
 * Return -ERR_DATA if the n bytes are not exactly one frame.  This takes at most
 * 2^ZST_WINDOW bytes of memory and some 750 KiB, whatever the frame states. */
enum {
	ZST_WINDOW = 23,	/* log2 of a window that every decoder must support */
	ZST_PIECE = 1 << 17
};
typedef int zst_put_fn(void *arg, const unsigned char *p, size_t n, struct err *e);
int zst_unpack(int fd, uint64_t at, uint64_t n, const char *name, zst_put_fn *put,
    void *arg, struct err *e);

/* ---- writing ---- */

struct zst_out;
int zst_create(struct zst_out **out, int fd, const char *name, struct err *e);
/* Begin a frame of `size' bytes, written from byte `at' of the file on. */
int zst_begin(struct zst_out *z, uint64_t at, uint64_t size, struct err *e);
int zst_write(struct zst_out *z, const void *p, size_t n, struct err *e);
/* End the frame; set *end to the position after it. */
int zst_finish(struct zst_out *z, uint64_t *end, struct err *e);
void zst_free(struct zst_out *z);

#endif
