/*
 * The bytes of values in planes: the bytes at the same place of all values, one
 * plane after another, each coded as suits it.
 *
 *   code := plane[planes]
 *   plane := u8 mode  data
 *   mode 128 + ... of the first plane: the others leave out the values whose
 *        byte in the first is 0; they are 0
 *   mode 0: the bytes as they are      1: one byte, all are it
 *        2: varint length, LZ4 block   3: varint length, rans.h
 */
#ifndef ACE_PLANES_H
#define ACE_PLANES_H

#include <stddef.h>

struct bytes;

/* planes_bound(n, planes): the most bytes that planes_put writes. */
size_t planes_bound(size_t n, size_t planes);
/* planes_put(out, s, n, planes): codes s u8[planes][n], which is used up, to out;
 * returns where the code ends. */
unsigned char *planes_put(unsigned char *out, unsigned char *s, size_t n,
    size_t planes);
/* planes_get(b, s, n, planes): the inverse; 0, or -1 when b has no such code. */
int planes_get(struct bytes *b, unsigned char *s, size_t n, size_t planes);

#endif
