/*
 * RICE128: increasing positions, in blocks of 128 gaps.
 *
 *   gap[i] = pos[i] - pos[i-1] - 1,  gap[0] = pos[0]
 *
 * A block is one byte r <= 30, the low r bits of its gaps packed and padded
 * to a byte, then gap >> r of each in unary (so many 0, then 1), padded to a
 * byte; bits fill bytes from the least significant one, padding is 0.  The
 * encoder takes the r that gives the shortest block; with r = 0 a block is a
 * bitmap of the positions it spans, so nothing is worse than a bitmap.
 */
#ifndef ACE_RICE_H
#define ACE_RICE_H

#include <stddef.h>
#include <stdint.h>

struct bytes;

/* rice_bound(count, span): the most bytes that the code of count positions
 * below span can take. */
size_t rice_bound(size_t count, size_t span);

/* rice_put(p, pos, count): writes the code to p, which has room for
 * rice_bound bytes.  Returns the number of bytes written. */
size_t rice_put(unsigned char *p, const uint32_t *pos, size_t count);

/* rice_get(b, pos, count, span): reads pos[count] from b.  0, or -1 when the
 * bytes are not the code of exactly count positions below span. */
int rice_get(struct bytes *b, uint32_t *pos, size_t count, size_t span);

#endif
