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
#ifndef ACE_CONTRACT_H
#define ACE_CONTRACT_H

#include <stddef.h>
#include <stdint.h>

#include "kern/kern.h"
#include "state/history.h"

struct err;

#define CONTRACT_FILE "code"
#define CONTRACT_ALPHA "contraction"	/* 0 to 1; 0 also where it is below */
#define CONTRACT_SHARE "share"		/* coded bytes / dense bytes */

struct contract {
	double energy, lost;	/* ||p||^2, ||p - C(p)||^2 */
	double values, bytes;
};
#define CONTRACT_INIT { 0, 0, 0, 0 }

/* contract_group(c, k, p, dec, n, bytes): a group; dec NULL: not sent. */
void contract_group(struct contract *c, const struct kern *k, const float *p,
    const float *dec, size_t n, size_t bytes);

/* contract_save(c, s, e): the shard's to the state; nothing when all of it was
 * zero. */
int contract_save(const struct contract *c, const struct state *s,
    struct err *e);

#endif
