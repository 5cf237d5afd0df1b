/*
 * An order-0 entropy coder for bytes: rANS with four interleaved states
 * (Duda 2013; Giesen 2014), counts scaled to 4096, 16 bits at a time.
 *
 *   code := table  u32 state[4]  u16 word[...]
 *   table: for byte values 0..255 varint count; a count of 0 is followed by
 *   varint m, m more counts of 0; the counts sum to 4096
 *
 * Byte i belongs to state i % 4.
 */
#ifndef ACE_RANS_H
#define ACE_RANS_H

#include <stddef.h>
#include <stdint.h>

struct bytes;

enum { RANS_SYMBOLS = 256 };

/* rans_log2(v): in units of 2^-16, v > 0: whole numbers, so that what is
 * decided by it is decided alike on every machine. */
uint64_t rans_log2(uint32_t v);

/* rans_estimate(count, n): the bytes n symbols with these counts will take,
 * within a few; never less than their entropy. */
size_t rans_estimate(const uint32_t count[RANS_SYMBOLS], size_t n);

/* rans_bound(n): no code of n symbols is longer. */
size_t rans_bound(size_t n);

/* rans_put(p, s, n, count): n > 0 symbols with these counts, to p, which has
 * room for rans_bound(n); the bytes written. */
size_t rans_put(unsigned char *p, const unsigned char *s, size_t n,
    const uint32_t count[RANS_SYMBOLS]);

/* rans_get(b, s, n): all of b's bytes; 0, or -1 when they are no code of n
 * symbols. */
int rans_get(struct bytes *b, unsigned char *s, size_t n);

#endif
