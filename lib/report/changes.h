/*
 * Report a patch: the two models and, per tensor and type, the number of changed values and
 * the bits that they take.
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
	int known;		/* 1: the shard is a patch: it has a frame mODL */
};
#define CHANGES_INIT { NULL, NULL, MODEL_NOTE_INIT, 0 }

/* Prepare c for r's current shard.  Call this before walk_shard. */
int changes_begin(struct changes *c, const struct reader *r, struct err *e);
/* Read the shard's mODL frame, which follows all groups. */
int changes_note(struct changes *c, const struct reader *r, struct err *e);
/* Print the changes of the tensors that match p->glob; do nothing if the shard is not a
 * patch. */
void changes_put(const struct changes *c, struct report *p, const struct schema *sc);
void changes_release(struct changes *c);

#endif
