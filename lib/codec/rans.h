/*
 * An order-0 entropy coder for bytes: rANS with four interleaved states (Duda 2013;
 * Giesen 2014). Counts are scaled to 4096; states write words of 16 bits.
 *
 *   code := table  u32 state[4]  u16 word[...]
 *   table: a varint count for each of the byte values 0..255; after a count of 0 comes a
 *       varint m, and the next m counts, also 0, are left out; the counts sum to 4096
 *
 * Byte i belongs to state i % 4.
 */
#ifndef ACE_RANS_H
#define ACE_RANS_H

#include <stddef.h>
#include <stdint.h>

struct bytes;

enum { RANS_SYMBOLS = 256 };

/* Return the binary logarithm of v > 0 in units of 2^-16. It uses integer arithmetic, so
 * that decisions based on it are the same on every machine. */
uint64_t rans_log2(uint32_t v);

/* Count how often each symbol occurs in s[n]. */
void rans_count(const unsigned char *s, size_t n, uint32_t count[RANS_SYMBOLS]);

/* Estimate the bytes of the code of n symbols with these counts, from their entropy and
 * the size of the table. */
size_t rans_estimate(const uint32_t count[RANS_SYMBOLS], size_t n);

/* Return the largest size in bytes of the code of n symbols. */
size_t rans_bound(size_t n);

/* Code n > 0 symbols with these counts to p, which has room for rans_bound(n) bytes.
 * Return the number of bytes written. */
size_t rans_put(unsigned char *p, const unsigned char *s, size_t n,
    const uint32_t count[RANS_SYMBOLS]);

/* Decode the rest of b into s[n]. Return 0, or -1 if that is not the code of n symbols. */
int rans_get(struct bytes *b, unsigned char *s, size_t n);

#endif
