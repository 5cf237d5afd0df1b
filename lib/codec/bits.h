/*
 * Codes of a fixed width, packed: bits fill bytes from the least significant
 * one, the padding of the last byte is 0.
 */
#ifndef ACE_BITS_H
#define ACE_BITS_H

#include <stddef.h>

/* bits_size(n, w): how many bytes n codes of w bits each take. */
static inline size_t
bits_size(size_t n, unsigned w)
{
	return n / 8 * w + (n % 8 * w + 7) / 8;
}

/* bits_pack(p, c, n, w): packs the n codes in c, each below 2^w with w from 1
 * to 8, into the bits_size(n, w) bytes at p. */
void bits_pack(unsigned char *p, const unsigned char *c, size_t n, unsigned w);

/* bits_unpack(c, p, n, w): the inverse of bits_pack.  0, or -1 when the
 * padding of the last byte is not 0. */
int bits_unpack(unsigned char *c, const unsigned char *p, size_t n,
    unsigned w);

#endif
