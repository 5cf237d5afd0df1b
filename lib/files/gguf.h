/*
 * GGUF files of llama.cpp: a head, metadata, a table of tensors, then the tensors' data,
 * each at a multiple of the alignment that the metadata gives.  Version 3 differs from
 * version 2 only in that it may be big-endian, which we refuse.
 *
 * 	"GGUF"  u32 version  u64 tensors  u64 keys
 * 	for each key: string, u32 type, value
 * 	for each tensor: string, u32 dimensions, u64 each, the innermost first,
 * 	    u32 type (format/ggml.h), u64 offset of its data after the table
 *
 * A string is u64 length and its bytes; an array is u32 type, u64 count, and its values.
 * As ggml does, we refuse holes in the data and more bytes after the data than alignment
 * needs; tensors' data may be in any order.
 */
#ifndef ACE_GGUF_H
#define ACE_GGUF_H

#include <stddef.h>
#include <stdint.h>

#include "format/schema.h"

struct err;

enum { GGUF_KEYS = 4096, GGUF_KEY = 1024 };	/* limits on keys, and on bytes of a key */

/* Metadata without general.alignment, which is about the file and not the model. */
struct gguf_keys {
	struct gguf_key {
		char *name;
		unsigned char hash[16];		/* hash of the type and the value of a key */
	} *p;				/* sorted by name */
	size_t n, cap;
};

/* Return 1 if the file begins as a GGUF file, else 0. */
int gguf_is(int fd, const char *path, struct err *e);

/* Called for each tensor, in the order of the data, with the position of its data. *t
 * is valid during the call; numel is not set. */
typedef int gguf_tensor_fn(void *arg, const struct schema_tensor *t, uint64_t at,
    struct err *e);
/* Read the head of a file of this size, but no data. The message of -ERR_DATA names the
 * invalid key or tensor. */
int gguf_read(int fd, const char *path, uint64_t size, struct gguf_keys *keys,
    gguf_tensor_fn *fn, void *arg, struct err *e);

/* Return the first key that is missing or different in one of the two files, or NULL. */
const char *gguf_differs(const struct gguf_keys *a, const struct gguf_keys *b);
void gguf_release(struct gguf_keys *keys);

#endif
