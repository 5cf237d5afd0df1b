/*
 * Report a patch: the hashes of its two models and, per tensor, per type and in all, how many
 * values changed and how many bits the patch takes per value.
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
	struct walk_sent *sent;	/* [tensors], for walk.sent; NULL: the shard's kind is not model */
	uint64_t *changed;	/* [tensors]: changed values; 4-bit values are counted in pairs */
	struct model_note note;
	int known;		/* 1: the shard is a patch: it has a frame mODL */
};
#define CHANGES_INIT { NULL, NULL, MODEL_NOTE_INIT, 0 }

/* Prepare c for r's current shard, before walk_shard.  After a failure release c, too. */
int changes_begin(struct changes *c, const struct reader *r, struct err *e);
/* Read r's current frame, a mODL, which follows all groups of the shard. */
int changes_note(struct changes *c, const struct reader *r, struct err *e);
/* Print the changes of the tensors that match p->glob; do nothing if the shard is not a
 * patch. */
void changes_put(const struct changes *c, struct report *p, const struct schema *sc);
void changes_release(struct changes *c);

#endif
