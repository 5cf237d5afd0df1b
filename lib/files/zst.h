/*
 * Zstandard frames, only for the directories of model changes that other programs write and
 * read (model/delta.h); our own streams use LZ4 and our codecs. Only zst.c includes zstd.h.
 */
#ifndef ACE_ZST_H
#define ACE_ZST_H

#include <stddef.h>
#include <stdint.h>

struct err;

/* ---- reading one frame of a file, and no byte after it ---- */

struct zst_in;
/* Open the frame in the n bytes of fd from byte `at' on. Return -ERR_DATA if no frame
 * begins there. */
int zst_open(struct zst_in **out, int fd, uint64_t at, uint64_t n,
    const char *name, struct err *e);
/* Return 1, or 0 if the frame states another unpacked size than n. */
int zst_says(const struct zst_in *z, uint64_t n);
/* Read exactly the next n bytes, or return -ERR_DATA. This takes at most 2^ZST_WINDOW
 * bytes of memory and some 200 KiB, whatever the frame states. */
enum { ZST_WINDOW = 23 };	/* log2 of a window that every decoder must support */
int zst_read(struct zst_in *z, void *p, size_t n, struct err *e);
/* Return -ERR_DATA unless the frame and its n bytes end here. */
int zst_end(struct zst_in *z, struct err *e);
void zst_close(struct zst_in *z);

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
