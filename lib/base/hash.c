#include <stdio.h>

#include <xxhash.h>

#include "base/bytes.h"
#include "base/err.h"
#include "base/hash.h"

/* Functions of libxxhash that choose the vector instructions of this processor. Not all
 * builds of libxxhash have them, and their header is often missing. The checksums are the
 * same without them. */
XXH64_hash_t XXH3_64bits_dispatch(const void *, size_t) __attribute__((weak));
XXH128_hash_t XXH3_128bits_dispatch(const void *, size_t) __attribute__((weak));
XXH_errorcode XXH3_128bits_update_dispatch(XXH3_state_t *, const void *,
    size_t) __attribute__((weak));

/* struct hash_sum is XXH3_state_t under another name */
#define STATE(s) ((XXH3_state_t *)(s))

uint64_t
hash_64(const void *p, size_t n)
{
	return XXH3_64bits_dispatch != NULL ? XXH3_64bits_dispatch(p, n) :
	    XXH3_64bits(p, n);
}

static void
hash_store128(XXH128_hash_t h, unsigned char out[16])
{
	bytes_set64(out, h.low64);
	bytes_set64(out + 8, h.high64);
}

void
hash_128(const void *p, size_t n, unsigned char out[16])
{
	hash_store128(XXH3_128bits_dispatch != NULL ?
	    XXH3_128bits_dispatch(p, n) : XXH3_128bits(p, n), out);
}

uint64_t
hash_both(const void *p, size_t n, unsigned char out[16])
{
	/* for inputs above 240 bytes XXH3-64 is, by definition, the lower half of
	 * XXH3-128 */
	enum { STRIPES = 240 };

	hash_128(p, n, out);
	return n > STRIPES ? bytes_le64(out) : hash_64(p, n);
}

struct hash_sum *
hash_sum_new(struct err *e)
{
	struct hash_sum *s = (struct hash_sum *)XXH3_createState();

	if (s != NULL)
		hash_sum_reset(s);
	else
		(void)err_set(e, ERR_SYS, "out of memory");
	return s;
}

void
hash_sum_reset(struct hash_sum *s)
{
	(void)XXH3_128bits_reset(STATE(s));
}

void
hash_sum_add(struct hash_sum *s, const void *p, size_t n)
{
	if (XXH3_128bits_update_dispatch != NULL)
		(void)XXH3_128bits_update_dispatch(STATE(s), p, n);
	else
		(void)XXH3_128bits_update(STATE(s), p, n);
}

void
hash_sum_get(const struct hash_sum *s, unsigned char out[16])
{
	hash_store128(XXH3_128bits_digest((const XXH3_state_t *)s), out);
}

void
hash_sum_free(struct hash_sum *s)
{
	(void)XXH3_freeState(STATE(s));
}

const char *
hash_version(void)
{
	static char s[40];

	(void)snprintf(s, sizeof(s), "%u.%u.%u", XXH_versionNumber() / 10000,
	    XXH_versionNumber() / 100 % 100, XXH_versionNumber() % 100);
	return s;
}
