/*
 * The coded part of a TCQ body (tcq.c). For each lane, the encoder chooses the path
 * through the trellis with the least sum of error and weighted bits (kern/kern_tcq.h).
 * Values are coded like ECQ's (ecq_code.h), by symbols and plain bits; k is |q|.
 *
 * The plain bits of a chunk are first the signs of its non-zero symbols, then for each value
 *
 *   the escape, where the symbol is 14 or 15:  e = (k >> (shift + 1)) - 7, written as ECQ's e
 *   bits 1 to `shift' of k, from the lowest
 *   the sign, where the symbol is 0 and k is not
 *   the 31 bits of |x| as f32, where k is KERN_QMAX
 */
#ifndef ACE_TCQ_CODE_H
#define ACE_TCQ_CODE_H

#include <stddef.h>
#include <stdint.h>

#include "codec/ecq_code.h"

struct err;

/* Write the code to p, which has room for limit bytes, and fill s. *len is its size in
 * bytes, or 0 if it might exceed limit or all values are 0. Return 0 or -ERR_SYS. */
int tcq_code_put(const struct ecq_in *in, unsigned char *p, size_t limit,
    struct ecq_side *s, size_t *len, struct err *e);

#endif
