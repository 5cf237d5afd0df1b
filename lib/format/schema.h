/*
 * The tensor table (frame SCHM, ace-stream(5)): names, shapes, and from them
 * the cut into groups.
 */
#ifndef ACE_SCHEMA_H
#define ACE_SCHEMA_H

#include <stddef.h>
#include <stdint.h>

#include "base/alloc.h"

struct err;

enum {
	SCHEMA_MAX_DIM = 8,
	SCHEMA_MAX_TENSORS = 1 << 20,
	SCHEMA_MAX_NAME = 255,
	SCHEMA_GROUP = 65536,		/* default group size */
	SCHEMA_MAX_GROUP = 1 << 20	/* 8 MiB of i64, half a frame */
};
#define SCHEMA_MAX_TOTAL ((uint64_t)1 << 40)
#define SCHEMA_MAX_ELEMENTS ((uint64_t)1 << 36)	/* unless one allows more */
#define SCHEMA_MAX_BYTES ((size_t)512 << 20)	/* of the table, unpacked */

enum schema_dtype {
	SCHEMA_F32 = 0, SCHEMA_F16 = 1, SCHEMA_BF16 = 2, SCHEMA_F64 = 3,
	SCHEMA_I32 = 4, SCHEMA_I64 = 5, SCHEMA_U8 = 6, SCHEMA_BOOL = 7,
	SCHEMA_F8E4M3 = 8, SCHEMA_F8E5M2 = 9, SCHEMA_I8 = 10, SCHEMA_I16 = 11,
	SCHEMA_F8E8M0 = 12, SCHEMA_F4 = 13, SCHEMA_U16 = 14, SCHEMA_U32 = 15,
	SCHEMA_U64 = 16,
	SCHEMA_NDTYPE = 17
};
enum schema_kind {
	SCHEMA_OTHER = 0, SCHEMA_WEIGHT = 1, SCHEMA_BIAS = 2, SCHEMA_NORM = 3,
	SCHEMA_EMBEDDING = 4, SCHEMA_CONV = 5, SCHEMA_NKIND = 6
};
#define SCHEMA_ROLE_DENSE ((uint64_t)1)	/* roles bit 0: never sparsify */

struct schema_tensor {
	char *name;
	uint8_t dtype, ndim;
	uint32_t kind;
	uint64_t roles;
	uint64_t dim[SCHEMA_MAX_DIM];
	uint64_t numel;
	uint64_t base;		/* elements before it */
	uint32_t group;		/* its first group */
	uint32_t ngroups;
};

struct schema {
	struct schema_tensor *t;
	size_t n, cap;
	uint32_t group_size;
	uint32_t ngroups;
	uint64_t total;
	unsigned char id[16];	/* XXH3-128 of the canonical encoding */
};
#define SCHEMA_INIT { NULL, 0, 0, SCHEMA_GROUP, 0, 0, { 0 } }

/* schema_add(s, t, e): appends a copy of t (numel, base, groups are derived;
 * kind and roles as given).  Checks the name, dims, limits. */
int schema_add(struct schema *s, const struct schema_tensor *t, struct err *e);
/* schema_guess(t): sets kind and roles from the name and the shape, so that
 * biases, norms and vectors are never sparsified. */
void schema_guess(struct schema_tensor *t);
/* schema_finish(s, e): called after the last tensor; checks that the names are
 * unique and computes the id.  Needed before anything below. */
int schema_finish(struct schema *s, struct err *e);
int schema_copy(struct schema *to, const struct schema *from, struct err *e);
void schema_release(struct schema *s);

/* Where group g lies. */
struct schema_span {
	uint32_t tensor;
	uint32_t cols;		/* last dim of the tensor, at least 1 */
	uint64_t offset;	/* of its first element in the tensor */
	size_t n;
};
void schema_span(const struct schema *s, uint32_t g, struct schema_span *out);

/* schema_diff(a, b, why): 0 when they are the same; 1, with the first
 * difference in words in why, when they are not. */
int schema_diff(const struct schema *a, const struct schema *b, char why[256]);

int schema_encode(const struct schema *s, struct buf *out, struct err *e);

/* schema_bytes(p, n, max, wire, size, e): from the first bytes of a table, how
 * many it has in all.  max: the operator's limit on the elements; wire: the
 * bytes that were there to say this.  A table that claims more elements than
 * max, or more groups than the larger of 2^20 and max / 2^16 and one more for
 * each byte of `wire', is refused before anything is made of it. */
int schema_bytes(const unsigned char *p, size_t n, uint64_t max, size_t wire,
    size_t *size, struct err *e);
/* The same limits, again for the whole table. */
int schema_decode(struct schema *s, const unsigned char *p, size_t n,
    uint64_t max, size_t wire, struct err *e);

/* schema_exact(dtype): 1 when values of this type mean nothing but themselves: whole
 * numbers, truth values, and floats of 8 bits or fewer.  They are coded without loss, no
 * residual is kept of them, and there is no mean of them. */
static inline int
schema_exact(unsigned dtype)
{
	return dtype >= SCHEMA_I32;
}
/* schema_exact_group(s, g): the same of the tensor that group g is of. */
int schema_exact_group(const struct schema *s, uint32_t g);

/* schema_bits(dtype): 1 when only the bits of such values travel, with codec
 * exact, and never as f32. */
static inline int
schema_bits(unsigned dtype)
{
	return dtype >= SCHEMA_F8E8M0;
}

const char *schema_dtype_name(unsigned dtype);	/* "f32", ... */
const char *schema_kind_name(unsigned kind);	/* "weight", ... */

#endif
