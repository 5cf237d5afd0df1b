/*
 * The changes that a patch makes: the two models, the number of changed values per tensor
 * and type, and the bits that they take.
 */
#ifndef ACE_CHANGES_H
#define ACE_CHANGES_H

#include <stddef.h>
#include <stdint.h>

#include "model/model.h"
#include "report/walk.h"

struct err;
struct reader;
struct report;

struct changes {
	struct walk_sent *sent;	/* [tensors], filled by the walk; NULL: not needed */
	uint64_t *changed;	/* [tensors]: changed words of each tensor */
	struct model_note note;
	int known;		/* 1: the shard has a frame mODL, as patches do */
};
#define CHANGES_INIT { NULL, NULL, MODEL_NOTE_INIT, 0 }

/* Call it before the walk through the shard at which r stands. */
int changes_begin(struct changes *c, const struct reader *r, struct err *e);
/* Call at the shard's mODL frame, after the walk through all groups. */
int changes_note(struct changes *c, const struct reader *r, struct err *e);
/* Print the changes of the tensors that p->glob matches; nothing if the shard is not a
 * patch. */
void changes_put(const struct changes *c, struct report *p, const struct schema *sc);
void changes_release(struct changes *c);

#endif
