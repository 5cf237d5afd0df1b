/*
 * The records that ace-patch keeps of a model, in the directory beside it (model/replace.h).
 *
 * marker and ready are text: a line "NAME VALUE" for each member of struct journal_mark.
 *
 * redo is the journal of a change in place.  It has for each group of the model, in order:
 *
 *	u32 file  u32 bytes of the changes  u64 place in the file  u64 bytes of the group
 *	XXH3-128 of the group's new bytes
 *	for each block of 128 bytes that changes: u16 number of the block  u64 with a bit
 *	    for each pair of its bytes  the new pairs whose bit is 1
 *
 * and at its end file 2^32 - 1, u32 0, u64 step, the hash of the model that it makes, and
 * u64 JOURNAL_MAGIC.  Numbers are little-endian.
 *
 * The rename of redo to its name makes it valid.  The change is then finished even if the
 * process is killed: pairs may be set again if some were set before.  The groups' hashes,
 * also those of unchanged groups, show that redo is intact and that it is for this model.
 */
#ifndef ACE_JOURNAL_H
#define ACE_JOURNAL_H

#include <stdint.h>

#include "base/alloc.h"
#include "model/model.h"

struct err;
struct io;

/* A model that we made, as the files marker and ready describe it. */
struct journal_mark {
	unsigned char hash[MODEL_HASH];
	uint64_t step;
	uint64_t stamp;		/* only in marker: model_stamp */
	/* only in ready: */
	uint64_t was;		/* the state of all files to be replaced, also of those without
				 * tensors; the exchange does not change it */
	uint64_t inode, next;	/* inode: of the next model, shows whether it is in place;
				 * next: the state of all its files */
};

/* Return 1, or 0 if the file does not exist; -ERR_DATA if it is not valid. */
int journal_mark_read(const char *path, struct journal_mark *mark, struct err *e);
/* Write the file to disk. */
int journal_mark_write(const char *path, const struct journal_mark *mark,
    struct err *e);

struct journal {
	const struct model *m;	/* the model that changes; set both before any call */
	int *fd;		/* [m->nfiles] its files, opened here for writing, or -1 */
	/* private: */
	struct io *io;		/* redo while it is written */
	struct buf set;		/* the changes of a group */
};

/* Begin the journal at path, and open the files with touched[i] = 1: once the journal is
 * complete, a missing permission would leave a change that cannot be finished. */
int journal_begin(struct journal *j, const char *path, const unsigned char *touched,
    struct err *e);
/* Add the next group.  after: the hash of its new bytes; new == old: nothing changes. */
int journal_group(struct journal *j, const struct model_span *span,
    const unsigned char *old, const unsigned char *new,
    const unsigned char after[MODEL_HASH], struct err *e);
/* End the journal with the step and hash of the model that it makes. */
int journal_end(struct journal *j, const struct journal_mark *makes, struct err *e);
/* Go through the journal f, which then is at its start again: check that it turns the
 * model into the one that it names, or with `write' change the model's files and sync them.
 * Set *makes to the step and hash of that model.  -ERR_REFUSED: it is for another model. */
int journal_apply(struct journal *j, struct io *f, int write,
    struct journal_mark *makes, struct err *e);
/* Free the memory, and remove a journal that has not ended. */
void journal_drop(struct journal *j);

#endif
