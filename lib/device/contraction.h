/*
 * How much of a shard its code keeps.  With p the values that were to be sent
 * and C(p) what their code decodes to,
 *
 *   alpha = 1 - ||p - C(p)||^2 / ||p||^2
 *
 * is the contraction that the theory of error feedback speaks of, as measured.
 * With a good code it is far larger than the share of the bits.  The state
 * keeps the last shard's, for ace-policy --deco.
 */
#ifndef ACE_CONTRACTION_H
#define ACE_CONTRACTION_H

#include <stddef.h>
#include <stdint.h>

#include "device/memory.h"

struct err;

#define CONTRACTION_FILE "code"
#define CONTRACTION_ALPHA "contraction"	/* 0 to 1; 0 also where it is below */
#define CONTRACTION_SHARE "share"		/* coded bytes / dense bytes */
#define CONTRACTION_GROWING "growing"	/* shards in a row without any */
enum { CONTRACTION_PATIENCE = 5 };	/* shards, and it is a matter for people */

struct contraction {
	double energy, lost;	/* ||p||^2, ||p - C(p)||^2 */
	double values, bytes;
	unsigned growing;	/* behind contraction_save: its last line */
};
#define CONTRACTION_INIT { 0, 0, 0, 0, 0 }

/* contraction_group(c, energy, lost, n, bytes): adds a group of n values with this
 * sum of squares, and that of what its code lost, all of it when it was not sent;
 * bytes of its body. */
void contraction_group(struct contraction *c, double energy, double lost,
    size_t n, size_t bytes);

/* contraction_save(c, s, e): writes the shard's into the state; does nothing
 * when all values were zero.  c->growing: 0, or in so many shards in a row
 * something was sent and yet alpha was not above 0. */
int contraction_save(struct contraction *c, const struct statedir *s,
    struct err *e);

#endif
