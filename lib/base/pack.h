/*
 * Checksums and LZ4 blocks.  Only pack.c includes xxhash.h and lz4.h.
 */
#ifndef ACE_PACK_H
#define ACE_PACK_H

#include <stddef.h>
#include <stdint.h>

struct err;

uint64_t pack_hash64(const void *p, size_t n);			/* XXH3-64 */
void pack_hash128(const void *p, size_t n, unsigned char out[16]);
/* Compute XXH3-128 into out and return XXH3-64; one pass for n above 240. */
uint64_t pack_hash_both(const void *p, size_t n, unsigned char out[16]);

/* XXH3-128 of bytes that come in pieces. pack_sum_get returns the checksum so far; more
 * may be added. pack_sum_copy saves a state to return to. pack_sum_new: NULL if there
 * is no memory. */
struct pack_sum;
struct pack_sum *pack_sum_new(struct err *e);
void pack_sum_reset(struct pack_sum *s);
void pack_sum_add(struct pack_sum *s, const void *p, size_t n);
void pack_sum_get(const struct pack_sum *s, unsigned char out[16]);
void pack_sum_copy(struct pack_sum *to, const struct pack_sum *from);
void pack_sum_free(struct pack_sum *s);

/* One LZ4 block without a frame. pack_lz4 returns the bytes written, 0 if they exceed
 * cap. pack_unlz4 must produce exactly n bytes: 0, or -1. */
size_t pack_lz4(void *out, size_t cap, const void *p, size_t n);
int pack_unlz4(void *out, size_t n, const void *p, size_t len);

/* "xxhash 0.8.1 lz4 1.9.4", for --version. */
const char *pack_versions(void);

#endif
