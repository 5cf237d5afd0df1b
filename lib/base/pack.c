#include <limits.h>
#include <stdio.h>
#include <string.h>

#include <lz4.h>
#include <xxhash.h>

#include "base/alloc.h"
#include "base/bytes.h"
#include "base/err.h"
#include "base/pack.h"

/* XXH3 with the vectors of this processor, if the library was built so
 * (xxh_x86dispatch.h, often not installed); else with the baseline's. The checksums are
 * equal. */
XXH64_hash_t XXH3_64bits_dispatch(const void *, size_t) __attribute__((weak));
XXH128_hash_t XXH3_128bits_dispatch(const void *, size_t) __attribute__((weak));
XXH_errorcode XXH3_128bits_update_dispatch(XXH3_state_t *, const void *,
    size_t) __attribute__((weak));

struct pack_sum {
	XXH3_state_t *x;
};

uint64_t
pack_hash64(const void *p, size_t n)
{
	return XXH3_64bits_dispatch != NULL ? XXH3_64bits_dispatch(p, n) :
	    XXH3_64bits(p, n);
}

static void
pack_store128(XXH128_hash_t h, unsigned char out[16])
{
	bytes_set64(out, h.low64);
	bytes_set64(out + 8, h.high64);
}

void
pack_hash128(const void *p, size_t n, unsigned char out[16])
{
	pack_store128(XXH3_128bits_dispatch != NULL ?
	    XXH3_128bits_dispatch(p, n) : XXH3_128bits(p, n), out);
}

uint64_t
pack_hash_both(const void *p, size_t n, unsigned char out[16])
{
	/* XXH3 defines this hash, for inputs above 240 bytes, as the lower
	 * half of the 128-bit hash. */
	enum { STRIPES = 240 };

	pack_hash128(p, n, out);
	return n > STRIPES ? bytes_le64(out) : pack_hash64(p, n);
}

struct pack_sum *
pack_sum_new(struct err *e)
{
	struct pack_sum *s = alloc_get(1, sizeof(*s), e);

	if (s == NULL)
		return NULL;
	s->x = XXH3_createState();
	if (s->x == NULL) {
		(void)err_set(e, ERR_SYS, "out of memory");
		alloc_free(s);
		return NULL;
	}
	pack_sum_reset(s);
	return s;
}

void
pack_sum_reset(struct pack_sum *s)
{
	(void)XXH3_128bits_reset(s->x);
}

void
pack_sum_add(struct pack_sum *s, const void *p, size_t n)
{
	if (XXH3_128bits_update_dispatch != NULL)
		(void)XXH3_128bits_update_dispatch(s->x, p, n);
	else
		(void)XXH3_128bits_update(s->x, p, n);
}

void
pack_sum_get(const struct pack_sum *s, unsigned char out[16])
{
	pack_store128(XXH3_128bits_digest(s->x), out);
}

void
pack_sum_copy(struct pack_sum *to, const struct pack_sum *from)
{
	XXH3_copyState(to->x, from->x);
}

void
pack_sum_free(struct pack_sum *s)
{
	if (s == NULL)
		return;
	(void)XXH3_freeState(s->x);
	alloc_free(s);
}

size_t
pack_lz4(void *out, size_t cap, const void *p, size_t n)
{
	int r;

	if (n > LZ4_MAX_INPUT_SIZE)
		return 0;
	if (cap > INT_MAX)
		cap = INT_MAX;
	r = LZ4_compress_default(p, out, (int)n, (int)cap);
	return r > 0 ? (size_t)r : 0;
}

int
pack_unlz4(void *out, size_t n, const void *p, size_t len)
{
	int r;

	if (n > INT_MAX || len > INT_MAX)
		return -1;
	r = LZ4_decompress_safe(p, out, (int)len, (int)n);
	return r >= 0 && (size_t)r == n ? 0 : -1;
}

const char *
pack_versions(void)
{
	static char s[64];

	(void)snprintf(s, sizeof(s), "xxhash %u.%u.%u, lz4 %s",
	    XXH_versionNumber() / 10000, XXH_versionNumber() / 100 % 100,
	    XXH_versionNumber() % 100, LZ4_versionString());
	return s;
}
