/*
 * Send gradients during the backward pass: tensor by tensor, from the last layer to the
 * first, flushed at the cuts (DynaComm, JSAC 2022).
 *
 * Cuts name a tensor by its row in the table of emit_profile.  Row 1 is the first tensor of
 * the model and is sent last; row ntensors is sent first.
 */
#ifndef TRAIN_EMIT_H
#define TRAIN_EMIT_H

#include "train_link.h"

struct emit {
	struct link *link;
	struct model *m;
	size_t *order;		/* [ntensors]: the tensors in the order of sending */
	unsigned char *cut;	/* [ntensors], in the order of sending: 1: flush after it */
	unsigned char *next_cut;	/* [ntensors]: the cuts being parsed */
	double *secs;		/* [ntensors], in this order: seconds to compute, all rounds */
	double *took;		/* [ntensors], in this order: seconds in the last round */
	double last;		/* when the last tensor, or the shard's header, was sent */
	size_t next, rounds;	/* index in `order' of the next tensor; rounds so far */
	int error;
	struct ace_error why;
};

/* emit_init(x, link, m, cuts, e): begin with cuts "all", "none", or rows separated by commas;
 * set link->order; call it before link_open.  emit_obey(x, cuts): use other cuts from now on,
 * if they are valid. */
int emit_init(struct emit *x, struct link *link, struct model *m,
    const char *cuts, struct ace_error *e);
void emit_obey(struct emit *x, const char *cuts);

/* Call these before m's forward pass, and after its backward pass.  They send the shard and,
 * if link->compute >= 0, the computing time of each tensor in the previous round. */
int emit_begin(struct emit *x, uint64_t round, uint64_t version,
    uint64_t samples, struct ace_error *e);
int emit_end(struct emit *x, struct ace_error *e);

/* emit_profile(x, file, e): write the table of bytes and mean seconds for ace-advise dynacomm. */
int emit_profile(const struct emit *x, const char *file, struct ace_error *e);
void emit_release(struct emit *x);

#endif
