/*
 * Turns a tensor from Fortran order (first index fastest) into C order (last
 * index fastest), in bounded memory: a tensor larger than a block is kept in an
 * unlinked file in $TMPDIR, and its values are gathered from there.
 */
#ifndef ACE_FORTRAN_H
#define ACE_FORTRAN_H

#include <stddef.h>
#include <stdint.h>

#include "format/schema.h"

struct err;
struct fortran;

enum { FORTRAN_BLOCK = 16 << 20 };	/* bytes */

/* fortran_open(out, t, size, block, e): for a tensor of t's shape whose values
 * have size bytes each.  block: the memory to use, in bytes; 0 stands for
 * FORTRAN_BLOCK (tests use less). */
int fortran_open(struct fortran **out, const struct schema_tensor *t,
    size_t size, size_t block, struct err *e);
/* First takes all bytes of the tensor in file order, in any pieces ... */
int fortran_put(struct fortran *f, const void *p, size_t n, struct err *e);
/* ... then gives all values in C order, n values at a time. */
int fortran_get(struct fortran *f, void *p, size_t n, struct err *e);
void fortran_free(struct fortran *f);

#endif
