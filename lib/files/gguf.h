/*
 * GGUF files, as llama.cpp has them: a head, metadata, a table of tensors, and behind it
 * their data, each at a multiple of the alignment that the metadata says.  All numbers
 * are little-endian here; versions 2 and 3 differ in nothing else.
 *
 *	"GGUF"  u32 version  u64 tensors  u64 keys
 *	for each key: string, u32 type, value
 *	for each tensor: string, u32 dimensions, u64 each, the innermost first,
 *	    u32 type (format/ggml.h), u64 where its data are, behind the table
 *
 * A string is u64 bytes and these; a value of an array u32 type, u64 how many, and these.
 * As ggml, we want no holes in the data and no more behind them than fills the last one
 * up; in which order they stand is free.
 */
#ifndef ACE_GGUF_H
#define ACE_GGUF_H

#include <stddef.h>
#include <stdint.h>

#include "format/schema.h"

struct err;

enum { GGUF_KEYS = 4096, GGUF_KEY = 1024 };	/* at most; bytes of one */

/* What the metadata say, without general.alignment, which is of the file. */
struct gguf_keys {
	struct gguf_key {
		char *name;
		unsigned char hash[16];		/* of its type and its value */
	} *p;				/* by name */
	size_t n, cap;
};

/* gguf_is(fd, path, e): 1 when the file begins as one, else 0. */
int gguf_is(int fd, const char *path, struct err *e);

/* Is told each tensor, in the order of the data, and where in the file its data
 * are.  *t lasts for the call; numel is not set. */
typedef int gguf_tensor_fn(void *arg, const struct schema_tensor *t, uint64_t at,
    struct err *e);
/* gguf_read(fd, path, size, keys, fn, arg, e): looks at the head of a file of so many
 * bytes, and at no data.  -ERR_DATA with the key's or the tensor's name. */
int gguf_read(int fd, const char *path, uint64_t size, struct gguf_keys *keys,
    gguf_tensor_fn *fn, void *arg, struct err *e);

/* gguf_differs(a, b): the first key that is not in both, or not the same; or NULL. */
const char *gguf_differs(const struct gguf_keys *a, const struct gguf_keys *b);
void gguf_release(struct gguf_keys *keys);

#endif
