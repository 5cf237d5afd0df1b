/* XXH3 checksums, those of 128 bits as 16 bytes, lowest first.  Only hash.c includes xxhash.h. */
#ifndef ACE_HASH_H
#define ACE_HASH_H

#include <stddef.h>
#include <stdint.h>

struct err;

uint64_t hash_64(const void *p, size_t n);			/* XXH3-64 */
void hash_128(const void *p, size_t n, unsigned char out[16]);
/* Compute XXH3-128 into out and return XXH3-64; one pass for n above 240. */
uint64_t hash_both(const void *p, size_t n, unsigned char out[16]);

/* XXH3-128 of bytes that come in pieces. hash_sum_new: NULL, with ERR_SYS, if there is no
 * memory. hash_sum_get: write the checksum so far to out; more bytes may be added. */
struct hash_sum;
struct hash_sum *hash_sum_new(struct err *e);
void hash_sum_reset(struct hash_sum *s);
void hash_sum_add(struct hash_sum *s, const void *p, size_t n);
void hash_sum_get(const struct hash_sum *s, unsigned char out[16]);
void hash_sum_free(struct hash_sum *s);

const char *hash_version(void);		/* version of libxxhash, such as "0.8.2" */

#endif
