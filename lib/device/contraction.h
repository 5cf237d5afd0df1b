/*
 * How much of a shard its code preserves. With p the values to send and C(p) their
 * decoded values,
 *
 *   alpha = 1 - ||p - C(p)||^2 / ||p||^2
 *
 * is the contraction of the theory of error feedback, measured.  With a good code, alpha is
 * far larger than the coded bytes' share of the dense bytes.  The state keeps alpha and this
 * share of the last shard, for ace-policy.
 */
#ifndef ACE_CONTRACTION_H
#define ACE_CONTRACTION_H

#include <stddef.h>
#include <stdint.h>

#include "device/learned.h"

struct err;

#define CONTRACTION_FILE "code"
#define CONTRACTION_ALPHA "contraction"	/* alpha; 0 if it is negative */
#define CONTRACTION_SHARE "share"		/* coded bytes / dense bytes */
#define CONTRACTION_GROWING "growing"	/* `growing' of struct contraction; absent if 0 */
/* value of `growing' from which the user is warned */
enum { CONTRACTION_PATIENCE = 5 };

struct contraction {
	double energy, lost;	/* ||p||^2, ||p - C(p)||^2 */
	double values, bytes;	/* number of values; bytes of the groups' bodies */
	unsigned growing;	/* a number of shards, see contraction_save */
};
#define CONTRACTION_INIT { 0, 0, 0, 0, 0 }

/* Add a group of n values.  energy: the sum of their squares; lost: the sum of squared
 * coding errors; bytes: the size of its body.  If it was not sent: lost = energy, bytes = 0. */
void contraction_group(struct contraction *c, double energy, double lost,
    size_t n, size_t bytes);

/* Save alpha and share of shard sh in the state. Set c->growing to the number of consecutive
 * shards, up to sh, that sent values and had alpha <= 0; a repeated step counts once.  Do
 * nothing if ||p|| is 0. */
int contraction_save(struct contraction *c, const struct statedir *s,
    const struct shard *sh, struct err *e);

#endif
