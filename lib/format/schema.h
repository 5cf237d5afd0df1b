/*
 * The tensor table (frame SCHM, ace-stream(5)): names, shapes, and the division into
 * groups that follows from the shapes.
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
#define SCHEMA_MAX_ELEMENTS ((uint64_t)1 << 36)	/* default limit (--max-elements) */
#define SCHEMA_MAX_BYTES ((size_t)512 << 20)	/* limit on the bytes of the unpacked table */

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
	uint8_t dtype, ndim;	/* dtype: enum schema_dtype; ndim: dimensions */
	uint32_t kind;		/* enum schema_kind */
	uint64_t roles;		/* bits SCHEMA_ROLE_* */
	uint64_t dim[SCHEMA_MAX_DIM];	/* [ndim] */
	uint64_t numel;		/* number of elements */
	uint64_t base;		/* number of elements in earlier tensors */
	uint32_t group;		/* number of the tensor's first group in the model */
	uint32_t ngroups;	/* groups of the tensor */
};

struct schema {
	struct schema_tensor *t;	/* [n], in canonical order */
	size_t n, cap;
	uint32_t group_size;	/* values per group; a tensor's last group may have fewer */
	uint32_t ngroups;	/* groups of all tensors */
	uint64_t total;		/* elements of all tensors */
	unsigned char id[16];	/* XXH3-128 of the canonical encoding */
};
#define SCHEMA_INIT { NULL, 0, 0, SCHEMA_GROUP, 0, 0, { 0 } }

/* Check name, dimensions and limits of t and append a copy of it. numel, base and groups
 * are computed; kind and roles are copied. */
int schema_add(struct schema *s, const struct schema_tensor *t, struct err *e);
/* Set kind and roles from name and shape, to keep biases and norms from being sparsified. */
void schema_guess(struct schema_tensor *t);
/* Check that names are unique (-ERR_DATA) and compute the id. Call it after the last tensor
 * and before using the schema. */
int schema_finish(struct schema *s, struct err *e);
int schema_copy(struct schema *to, const struct schema *from, struct err *e);
void schema_release(struct schema *s);

/* The position of a group. */
struct schema_span {
	uint32_t tensor;	/* index of the group's tensor */
	uint32_t cols;		/* last dimension of the tensor; 1 if absent or 2^32 or more */
	uint64_t offset;	/* index of the group's first element in the tensor */
	uint64_t first;		/* index of that element in all tensors together */
	size_t n;		/* elements of the group */
};
void schema_span(const struct schema *s, uint32_t g, struct schema_span *out);
/* Return the name of the tensor of group g. */
const char *schema_name(const struct schema *s, uint32_t g);

/* Return 0 if a and b have the same id, else 1, and describe the first difference in `why'. */
int schema_diff(const struct schema *a, const struct schema *b, char why[256]);

/* Append the table, as SCHM frames hold it, to out. */
int schema_encode(const struct schema *s, struct buf *out, struct err *e);

/* Set *size to the size of a table in bytes, given its first bytes p[n]. max: the user's
 * limit on elements; wire: bytes of p[n] on the wire. Before memory is allocated, refuse more
 * elements than max, elements for more full groups than wire + the larger of 2^20 and
 * max / 2^16, and more bytes than SCHEMA_MAX_BYTES. */
int schema_bytes(const unsigned char *p, size_t n, uint64_t max, size_t wire,
    size_t *size, struct err *e);
/* Decode the whole table p[n], whose first bytes schema_bytes accepted, in place of what s has.
 * On errors s is empty. */
int schema_decode(struct schema *s, const unsigned char *p, size_t n, struct err *e);

/* Return 1 for types whose values must not change: integers, booleans, and floats of 8 bits
 * or fewer. Such tensors are coded losslessly, have no residual and are never averaged. */
static inline int
schema_exact(unsigned dtype)
{
	return dtype >= SCHEMA_I32;
}
/* Like schema_exact, for the tensor of group g. */
int schema_exact_group(const struct schema *s, uint32_t g);

/* Return 1 if values of this type are only sent as bits, by codec exact, and never as f32. */
static inline int
schema_bits(unsigned dtype)
{
	return dtype >= SCHEMA_F8E8M0;
}

const char *schema_dtype_name(unsigned dtype);	/* "f32", ... */
const char *schema_kind_name(unsigned kind);	/* "weight", ... */

#endif
