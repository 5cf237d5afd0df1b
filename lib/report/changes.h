/*
 * What a patch of a model changes: between which models it is, and how many values
 * of each tensor, and of each type, are other ones, and the bits that says so takes.
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
	struct walk_sent *sent;	/* for the walk, [tensors]; NULL: not asked for */
	uint64_t *changed;	/* words of each */
	struct model_note note;
	int known;		/* the shard is a patch */
};
#define CHANGES_INIT { NULL, NULL, MODEL_NOTE_INIT, 0 }

/* changes_begin(c, r, e): before the walk through the shard that r stands at. */
int changes_begin(struct changes *c, const struct reader *r, struct err *e);
/* changes_note(c, r, e): at its mODL, when all its groups were walked through. */
int changes_note(struct changes *c, const struct reader *r, struct err *e);
/* changes_put(c, p, sc): prints it, of the tensors that p->glob names; nothing of a
 * shard that is no patch. */
void changes_put(const struct changes *c, struct report *p,
    const struct schema *sc);
void changes_release(struct changes *c);

#endif
