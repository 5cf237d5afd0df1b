/*
 * Replace a model by the next one as a whole.  After a kill or a power cut the model is
 * either the old or the new one, at the latest when the next ace-patch has run.
 *
 * The directory MODEL.ace-patch, beside the model, has these files:
 *
 *	lock	held by the one process that changes the model
 *	new	the next model while it is written; after the exchange, the old one
 *	ready	says that new is complete and on disk, and which model it is.  The removal
 *		of ready is synced before new is removed
 *	redo	a journal of the values to set in place (model/journal.h).  When it is
 *		complete and on disk, the model counts as replaced.  A process that finds
 *		redo sets the values again, if the result is the model with redo's hash
 *	marker	which model is in place, if ace-patch made or verified it
 *
 * With `new', the commit is one rename that exchanges new and the model.  The old model is
 * compared with its state in `ready' before the rename and again after it.  If it changed in
 * between, a second rename exchanges them back; a write to a link's target, or to a single
 * file whose mtime is set back, is not seen then.  Without exchange, new replaces the model.
 */
#ifndef ACE_REPLACE_H
#define ACE_REPLACE_H

#include <stddef.h>
#include <stdint.h>

#include "base/statedir.h"
#include "model/journal.h"

struct cli;
struct err;

enum { REPLACE_NAMES = 5 };

struct replace {
	const struct cli *cli;	/* for messages */
	char path[TEMP_PATH], *home, *at[REPLACE_NAMES];	/* at: paths of the files in home */
	struct statedir dir;	/* home, with its lock */
	int marked, staged;	/* 1: the marker exists; 1: a next model is ready */
	struct journal_mark mark, ready;
	/* set while the next model is written */
	int in_place;		/* 1: redo is written instead of new files */
	const struct model *m;
	int *fd;		/* [m->nfiles] the copy of a file that changes (in place: the
				 * file), or -1 */
	char *cloned;		/* [m->nfiles] 1: the copy shares the bytes of the file */
	uint64_t was;		/* state of the files before they were linked or copied */
	int placed;		/* 1: exchanged, but the old model, at `new', is not compared
				 * with its state in `ready' yet */
	struct journal redo;
};
#define REPLACE_INIT { .dir = STATE_INIT }

/* Find the model, following links, and make the directory beside it. */
int replace_open(struct replace *s, const char *path, const struct cli *cli,
    struct err *e);
void replace_close(struct replace *s);
/* Take the lock, which replace_close releases, when no other process has it, and finish or
 * undo a change that was interrupted.  Set marked, staged, mark and ready. */
int replace_lock(struct replace *s, struct err *e);

/* Begin the next model, which differs from m in the files with touched[i] = 1.  The next model is
 * a new file or directory, which shares bytes with m if the file system can; or, in_place,
 * a journal of the values that change. */
int replace_begin(struct replace *s, struct model *m, const unsigned char *touched,
    int in_place, struct err *e);
/* Write the next group.  Call this for every group in turn, with new == old if the group
 * does not change.  after: the hash of the new bytes. */
int replace_group(struct replace *s, const struct model_span *span,
    const unsigned char *old, const unsigned char *new,
    const unsigned char after[MODEL_HASH], struct err *e);
/* Complete `new', sync it and write `ready', with the next model's hash and step.  In place,
 * only store hash and step for replace_commit.  -ERR_REFUSED: the old model changed after
 * replace_begin, or its directory has what cannot be linked, such as another directory. */
int replace_ready(struct replace *s, const unsigned char hash[MODEL_HASH], uint64_t step,
    struct err *e);
/* Return 0 if the old model, with all files in its directory, and `new' are as `ready' says,
 * otherwise -ERR_REFUSED.  In place, only call model_same. */
int replace_still(const struct replace *s, struct err *e);
/* Replace the model by the next one.  -ERR_REFUSED as replace_still, or if the model can only
 * be changed in place. */
int replace_commit(struct replace *s, struct err *e);
/* Record in the marker that m has this hash and this step, or the marker's step if that is
 * later and of the same hash.  Do nothing if m has changed since model_open.  Ignore errors. */
void replace_known(struct replace *s, const struct model *m,
    const unsigned char hash[MODEL_HASH], uint64_t step);
/* Remove the next model, or the old one after the exchange.  If the old one is not compared
 * yet, keep it: replace_lock of the next process compares it. */
void replace_discard(struct replace *s);

#endif
