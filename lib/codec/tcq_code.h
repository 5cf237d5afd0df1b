/*
 * The coded part of a TCQ body (tcq.c): levels decided by the least sum of error
 * and bits over all paths through the trellis of each lane (kern/kern_tcq.h),
 * coded and read as ECQ's are (ecq_code.h).
 *
 * Of a chunk the bits are the signs of the symbols that are not 0, then, value
 * by value,
 *
 *   the escape, where the symbol is 14 or 15:  with e = (k >> (shift + 1)) - 7,
 *       written as ECQ's
 *   bits 1 to `shift' of k, from the lowest
 *   the sign, where the symbol is 0 and k is not
 *   of k = KERN_QMAX the 31 bits of |x| as f32
 */
#ifndef ACE_TCQ_CODE_H
#define ACE_TCQ_CODE_H

#include <stddef.h>
#include <stdint.h>

#include "codec/ecq_code.h"

struct err;

/* tcq_code_put(in, p, limit, s, len, e): writes the code to p, which has room
 * for limit bytes, and fills s.  *len is the number of bytes, or 0 when the
 * code would take more than limit, or all values are 0.  0 or -ERR_SYS. */
int tcq_code_put(const struct ecq_in *in, unsigned char *p, size_t limit,
    struct ecq_side *s, size_t *len, struct err *e);

#endif
