/*
 * Byte planes: the first bytes of all values, then the second bytes, and so on, each
 * plane coded by the method that suits it.
 *
 *   code := plane[planes]
 *   plane := u8 mode  data
 *   mode 128 + ... of the first plane: values whose first byte is 0 are 0; the other
 *       planes omit them, and are absent if no value remains
 *   mode 0: the bytes unchanged           1: one byte, equal to all bytes
 *        2: varint length, LZ4 block      3: varint length, rans.h
 */
#ifndef ACE_PLANES_H
#define ACE_PLANES_H

#include <stddef.h>

struct bytes;

/* Return the largest size in bytes that planes_put writes. */
size_t planes_bound(size_t n, size_t planes);
/* Code s u8[planes][n], which is overwritten, to out. Return where the code ends. */
unsigned char *planes_put(unsigned char *out, unsigned char *s, size_t n,
    size_t planes);
/* Decode into s u8[planes][n]. Return 0, or -1 if b does not begin with such a code. */
int planes_get(struct bytes *b, unsigned char *s, size_t n, size_t planes);

#endif
