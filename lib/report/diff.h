/*
 * Compares two streams value by value, reading their shards in pairs.
 *
 *   NMSE   = sum (x - y)^2 / sum y^2       0 when equal, infinite when only
 *                                          y is all zero
 *   cosine = sum x*y / sqrt(sum x^2 * sum y^2)     1 when both are zero, 0
 *                                          when one is
 *
 * where x are the f32 values of the inspected stream and y those of the other
 * one, the original.  Values that were not sent are zero.  Sums are f64, in
 * stream order.  A pair in which a value is not finite stays out of the sums; it
 * counts as different unless both values are the same.
 */
#ifndef ACE_DIFF_H
#define ACE_DIFF_H

struct err;
struct reader;
struct report;

/*
 * diff_streams(p, x, y, e): returns 0 when the streams are equal.  Returns
 * -ERR_NO, without a message, when a tensor's NMSE is above p->tolerance (by
 * default: when any value differs) or when a shard has no partner.  Streams
 * with different schemas: -ERR_DATA, "mismatch: ...".
 */
int diff_streams(struct report *p, struct reader *x, struct reader *y,
    struct err *e);

#endif
