/*
 * The records that ace-patch keeps of a model, in the directory beside it (model/replace.h).
 *
 * marker and ready are text: a line "NAME VALUE" for each member of struct journal_mark.
 *
 * redo is the journal of a change in place.  It has for each group of the model, in order:
 *
 *	u32 file  u32 bytes of the changes  u64 place in the file  u64 bytes of the group
 *	XXH3-128 of the group's new bytes
 *	for each block of 128 bytes that changes: u16 number of the block  u64 whose bit i
 *	    is 1 if bytes 2i and 2i + 1 change  the new bytes of these pairs
 *
 * and at its end file 2^32 - 1, u32 0, u64 step, the hash of the model that it makes, and
 * u64 JOURNAL_MAGIC.  Numbers are little-endian.
 *
 * The rename of redo to its name makes it valid.  If the process is killed after that, the next
 * one sets all pairs again; some of them may be set already.  The groups' hashes,
 * also those of unchanged groups, show that redo is intact and that it is for this model.
 */
#ifndef ACE_JOURNAL_H
#define ACE_JOURNAL_H

#include <stdint.h>

#include "base/alloc.h"
#include "model/model.h"

struct err;
struct io;

/* A model that ace-patch made, as the files marker and ready describe it. */
struct journal_mark {
	unsigned char hash[MODEL_HASH];
	uint64_t step;
	uint64_t stamp;		/* in marker: model_stamp; in ready: `to' of struct looks */
	/* only in ready: */
	uint64_t was;		/* the state of all files to be replaced, also of those without
				 * tensors; the exchange does not change it */
	uint64_t inode, next;	/* inode: of the next model, shows whether it is in place;
				 * next: the state of all its files */
};

/* Read marker or ready.  Return 1, or 0 if the file does not exist; -ERR_DATA if it is not
 * valid. */
int journal_mark_read(const char *path, struct journal_mark *mark, struct err *e);
/* Replace marker or ready, and sync the file and its directory. */
int journal_mark_write(const char *path, const struct journal_mark *mark,
    struct err *e);

struct journal {
	const struct model *m;	/* the model that changes; the caller sets m and fd */
	int *fd;		/* [m->nfiles] files that the journal opened for writing, or -1 */
	/* private: */
	struct io *io;		/* redo while it is written */
	struct buf set;		/* the changes of a group */
};

/* Begin the journal at path.  Open the files with touched[i] = 1 for writing now: if one of
 * them cannot be opened once the journal is complete, the change cannot be finished. */
int journal_begin(struct journal *j, const char *path, const unsigned char *touched,
    struct err *e);
/* Add the next group.  after: the hash of its new bytes; new == old: nothing changes. */
int journal_group(struct journal *j, const struct model_span *span,
    const unsigned char *old, const unsigned char *new,
    const unsigned char after[MODEL_HASH], struct err *e);
/* End the journal with the step and hash of the model that it makes, and sync it. */
int journal_end(struct journal *j, const struct journal_mark *makes, struct err *e);
/* Read the journal f, then seek to its start again.  write 0: check that each group of the
 * model gets the hash in the journal.  write 1: write the groups that change, and sync their
 * files.  Set *makes to the step and hash of the model that the journal makes.  -ERR_REFUSED:
 * the journal is for another model; -ERR_DATA: it is damaged. */
int journal_apply(struct journal *j, struct io *f, int write,
    struct journal_mark *makes, struct err *e);
/* Free the memory, and remove a journal that has not ended.  The caller closes the files of fd. */
void journal_drop(struct journal *j);

#endif
