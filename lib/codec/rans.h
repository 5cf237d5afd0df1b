/*
 * An order-0 entropy coder for bytes: rANS with four interleaved states
 * (Duda 2013; Giesen 2014), counts scaled to 4096, 16 bits at a time.
 *
 *   code := table  u32 state[4]  u16 word[...]
 *   table: a varint count for each of the byte values 0..255; a count of 0 is
 *   followed by a varint m, the number of further counts of 0, which are left
 *   out; the counts sum to 4096
 *
 * Byte i belongs to state i % 4.
 */
#ifndef ACE_RANS_H
#define ACE_RANS_H

#include <stddef.h>
#include <stdint.h>

struct bytes;

enum { RANS_SYMBOLS = 256 };

/* rans_log2(v): the binary logarithm of v > 0 in units of 2^-16.  It is
 * computed in whole numbers, so that decisions that depend on it are the same
 * on every machine. */
uint64_t rans_log2(uint32_t v);

/* rans_count(s, n, count): how often each symbol occurs. */
void rans_count(const unsigned char *s, size_t n,
    uint32_t count[RANS_SYMBOLS]);

/* rans_estimate(count, n): how many bytes n symbols with these counts will
 * take, within a few bytes; never less than their entropy. */
size_t rans_estimate(const uint32_t count[RANS_SYMBOLS], size_t n);

/* rans_bound(n): the most bytes that the code of n symbols can take. */
size_t rans_bound(size_t n);

/* rans_put(p, s, n, count): codes n > 0 symbols, which occur as often as count
 * says, to p, which has room for rans_bound(n) bytes.  Returns the number of
 * bytes written. */
size_t rans_put(unsigned char *p, const unsigned char *s, size_t n,
    const uint32_t count[RANS_SYMBOLS]);

/* rans_get(b, s, n): decodes all of b's bytes into s[n].  0, or -1 when they
 * are not the code of n symbols. */
int rans_get(struct bytes *b, unsigned char *s, size_t n);

#endif
