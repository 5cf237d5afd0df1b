/*
 * How much of a shard its code keeps: for what was to be sent, p, and what it
 * decodes to, C(p),
 *
 *   alpha = 1 - ||p - C(p)||^2 / ||p||^2
 *
 * the contraction of error feedback as it is, which for a good code is far
 * larger than the share of the bits that it takes.  In the state, for
 * ace-policy: the last shard's.
 */
#ifndef ACE_CONTRACTION_H
#define ACE_CONTRACTION_H

#include <stddef.h>
#include <stdint.h>

#include "device/memory.h"
#include "kern/kern.h"

struct err;

#define CONTRACTION_FILE "code"
#define CONTRACTION_ALPHA "contraction"	/* 0 to 1; 0 also where it is below */
#define CONTRACTION_SHARE "share"		/* coded bytes / dense bytes */

struct contraction {
	double energy, lost;	/* ||p||^2, ||p - C(p)||^2 */
	double values, bytes;
};
#define CONTRACTION_INIT { 0, 0, 0, 0 }

/* contraction_group(c, k, p, dec, n, bytes): a group; dec NULL: not sent. */
void contraction_group(struct contraction *c, const struct kern *k, const float *p,
    const float *dec, size_t n, size_t bytes);

/* contraction_save(c, s, e): the shard's to the state; nothing when all of it was
 * zero. */
int contraction_save(const struct contraction *c, const struct state *s,
    struct err *e);

#endif
