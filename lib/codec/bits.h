/*
 * Codes of a fixed width, packed: bits fill bytes from the least significant
 * one, the padding of the last byte is 0.
 */
#ifndef ACE_BITS_H
#define ACE_BITS_H

#include <stddef.h>

/* bits_size(n, w): the bytes of n codes of w bits. */
static inline size_t
bits_size(size_t n, unsigned w)
{
	return n / 8 * w + (n % 8 * w + 7) / 8;
}

/* bits_pack(p, c, n, w): n codes below 2^w, w from 1 to 8, into
 * bits_size(n, w) bytes. */
void bits_pack(unsigned char *p, const unsigned char *c, size_t n, unsigned w);

/* bits_unpack(c, p, n, w): the inverse; -1 when padding is not 0. */
int bits_unpack(unsigned char *c, const unsigned char *p, size_t n,
    unsigned w);

#endif
