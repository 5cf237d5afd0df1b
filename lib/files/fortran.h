/*
 * A tensor that lies in Fortran order (first index fastest), given out in C
 * order (last index fastest), in bounded memory: what does not fit a block is
 * kept in a file of $TMPDIR without a name and gathered from there.
 */
#ifndef ACE_FORTRAN_H
#define ACE_FORTRAN_H

#include <stddef.h>
#include <stdint.h>

#include "format/schema.h"

struct err;
struct fortran;

enum { FORTRAN_BLOCK = 16 << 20 };	/* bytes */

/* fortran_open(out, t, size, block, e): t's shape, values of size bytes.
 * block: bytes of memory, 0 for FORTRAN_BLOCK (tests want less). */
int fortran_open(struct fortran **out, const struct schema_tensor *t,
    size_t size, size_t block, struct err *e);
/* First all bytes of the tensor, in any pieces, as they lie ... */
int fortran_put(struct fortran *f, const void *p, size_t n, struct err *e);
/* ... then all values in C order, n at a time. */
int fortran_get(struct fortran *f, void *p, size_t n, struct err *e);
void fortran_free(struct fortran *f);

#endif
