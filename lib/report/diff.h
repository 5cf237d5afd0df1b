/*
 * Two streams, value by value, shard by shard in lockstep.
 *
 *   NMSE   = sum (x - y)^2 / sum y^2       0 when equal, infinite when only
 *                                          y is all zero
 *   cosine = sum x*y / sqrt(sum x^2 * sum y^2)     1 when both are zero, 0
 *                                          when one is
 *
 * x f32, the inspected stream; y f32, the other one, the original; what was not
 * sent is zero.  f64 sums in stream order.  A pair with a value that is not
 * finite stays out of the sums; it counts as different unless both are the same.
 */
#ifndef ACE_DIFF_H
#define ACE_DIFF_H

struct err;
struct reader;
struct report;

/*
 * diff_streams(p, x, y, e): 0 equal; -ERR_NO without a message when they are
 * not: a tensor whose NMSE is above p->tolerance (by default: any value), or
 * shards without a partner.  Other schemas: -ERR_DATA, "mismatch: ...".
 */
int diff_streams(struct report *p, struct reader *x, struct reader *y,
    struct err *e);

#endif
