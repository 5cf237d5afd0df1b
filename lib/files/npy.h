/*
 * The head of a .npy file (NumPy enhancement proposal 1, versions 1.0 to 3.0):
 * a magic number, a version, a length and a Python dict as text, padded to a
 * multiple of 64 bytes.
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
	struct schema_tensor t;	/* without a name */
	unsigned char swap;	/* 1: the values are big-endian */
	unsigned char fortran;	/* 1: the first index varies fastest */
};

/* Read n bytes to p, fewer only at the end of the input; set *got to their number. */
typedef int npy_get(void *from, void *p, size_t n, size_t *got, struct err *e);

/* Read a head through get, called with `from'. `what' names the input in messages, for
 * example "'f.npz', entry 'w.npy'". */
int npy_read(struct npy_head *h, npy_get *get, void *from, const char *what,
    struct err *e);

/* Parse text[n], the head's dict, which must have each of its three keys exactly once and no
 * other. Refuse Fortran order if it differs from C order. what: as in npy_read. */
int npy_parse(struct npy_head *h, const char *text, size_t n, const char *what,
    struct err *e);

/* dtype: not one of schema_bits.  Return 1 if NumPy has this type; else 0: write f32 instead. */
int npy_has(unsigned dtype);
/* Append a whole head, version 1.0, as numpy writes it. dtype is one that numpy has
 * (npy_has). */
int npy_make(struct buf *out, const struct schema_tensor *t, unsigned dtype,
    struct err *e);

#endif
