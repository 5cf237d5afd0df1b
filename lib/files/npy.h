/*
 * The head of a .npy file (NumPy enhancement proposal 1, versions 1.0 to 3.0):
 * a magic, a version, a length and a Python dict, padded to 64 bytes.
 */
#ifndef ACE_NPY_H
#define ACE_NPY_H

#include <stddef.h>
#include <stdint.h>

#include "base/alloc.h"
#include "format/schema.h"

struct err;

enum { NPY_MAX_HEAD = 10000 };	/* numpy's own limit for untrusted files */

struct npy_head {
	unsigned dtype;		/* enum schema_dtype */
	unsigned lay;		/* BACKEND_SWAP, BACKEND_FORTRAN */
	unsigned ndim;
	uint64_t dim[SCHEMA_MAX_DIM];
};

/* Reads at most n bytes: fewer only at the end. */
typedef int npy_get(void *from, void *p, size_t n, size_t *got, struct err *e);

/* npy_read(h, get, from, what, e): the head, whatever it comes from; `what'
 * names it in messages: "'f.npz' entry 'w.npy'". */
int npy_read(struct npy_head *h, npy_get *get, void *from, const char *what,
    struct err *e);

/* npy_parse: the dict alone; strict: the three keys, each once, no other. */
int npy_parse(struct npy_head *h, const char *text, size_t n, const char *what,
    struct err *e);

/* npy_has(dtype): 0 when NumPy has no such type; it is then f32. */
int npy_has(unsigned dtype);
/* npy_make: a whole head, version 1.0, as numpy writes it; dtype is the
 * file's, not bf16, which numpy does not have. */
int npy_make(struct buf *out, const struct schema_tensor *t, unsigned dtype,
    struct err *e);

#endif
