/*
 * A model is replaced by the next one as a whole: whatever kills the process or the
 * machine, there is the old one or the new one afterwards, at the latest when the next
 * ace-patch looks at it.
 *
 * Beside the model, in MODEL.ace-patch, is what that needs:
 *
 *	lock	held by the one process that changes the model
 *	new	the next model while it is written; for a moment, what it replaced
 *	old	what it replaced, which is to be removed
 *	ready	says that it is whole and on disk, and which one it is
 *	redo	the values to set in place, whole and on disk: from then on the model
 *		is the next one, and who finds this file sets them again, if the model
 *		becomes what redo says, all of it, when they are set
 *	marker	which model there is, as far as we made it
 *
 * With new, the commit is one rename that exchanges the two: what comes back is looked
 * at, and if somebody changed it in the last moment they are exchanged again.  Of files,
 * where the file system cannot exchange them, the rename replaces the old one.
 */
#ifndef ACE_SWAP_H
#define ACE_SWAP_H

#include <stddef.h>
#include <stdint.h>

#include "base/statedir.h"
#include "model/model.h"

struct cli;
struct err;
struct io;

/* How the next model is made; in this order where nothing else is said. */
enum swap_way { SWAP_REFLINK, SWAP_PLACE, SWAP_COPY, SWAP_ANY };
extern const char *const swap_ways[];	/* their names, for options */

/* What is known of a model that we made. */
struct swap_mark {
	unsigned char hash[MODEL_HASH];
	uint64_t step;
	uint64_t stamp;		/* the marker's: model_stamp; ready's: how all looks that
				 * is to be replaced, what is no tensor, too */
	/* ready's alone: */
	uint64_t was;		/* the part of stamp that the exchange does not change */
	uint64_t inode, next;	/* of the next model, by which it is known where it was
				 * put in place; and how all of it looks */
	unsigned char from[MODEL_HASH];	/* hash of what is to be replaced */
};

enum { SWAP_NAMES = 6 };

struct swap {
	const struct cli *cli;	/* whom to speak for */
	char *path, *home, *at[SWAP_NAMES];	/* at: the files in home */
	struct statedir dir;	/* home, and its lock */
	int marked, staged;	/* there is a marker, a model that is ready */
	struct swap_mark mark, ready;
	/* while the next model is written */
	enum swap_way way;
	const struct model *m;
	int *fd;		/* of each file that changes, else -1 */
	uint64_t took;		/* how what was linked or copied looked then */
	int placed;		/* they are exchanged: what came back is not looked at */
	int watch;		/* inotify descriptor on the model, or -1 */
	struct io *redo;
	struct buf set;		/* words of a group that change */
};
#define SWAP_INIT { .dir = STATE_INIT, .watch = -1 }

/* swap_open(s, path, cli, e): finds the model, links followed, and makes the
 * directory beside it. */
int swap_open(struct swap *s, const char *path, const struct cli *cli,
    struct err *e);
void swap_close(struct swap *s);
/* swap_lock(s, e): waits until nobody else changes the model, and brings to an end
 * what was not; then marked and staged are known. */
int swap_lock(struct swap *s, struct err *e);

/* swap_begin(s, m, touched, way, staging, e): begins the next model, which differs
 * from m in the files for which touched[i] is 1.  staging: not in place, since it is
 * not committed at once. */
int swap_begin(struct swap *s, struct model *m,
    const unsigned char *touched, enum swap_way way, int staging,
    struct err *e);
/* swap_group(s, span, old, new, after, e): the next of its groups, every one in turn,
 * and the hash of its new bytes; new is old where nothing changes. */
int swap_group(struct swap *s, const struct model_span *span,
    const unsigned char *old, const unsigned char *new,
    const unsigned char after[MODEL_HASH], struct err *e);
/* swap_ready(s, from, hash, step, e): makes the next model durable, except for words to
 * be set in place.  from: hash of the model that it was made of; hash: its own. */
int swap_ready(struct swap *s, const unsigned char from[MODEL_HASH],
    const unsigned char hash[MODEL_HASH], uint64_t step, struct err *e);
/* swap_still(s, e): the model that the next one was made of is as it was then, and so
 * is all in its directory, or -ERR_REFUSED. */
int swap_still(const struct swap *s, struct err *e);
/* swap_commit(s, e): the model is the next one, if it still is the one that that was
 * made of. */
int swap_commit(struct swap *s, struct err *e);
/* swap_known(s, m, hash, step): the model was found to be this one, which the marker says
 * from now on, if it can be written and does not say a later step of it. */
void swap_known(struct swap *s, const struct model *m,
    const unsigned char hash[MODEL_HASH], uint64_t step);
/* swap_discard(s): there is no next model. */
void swap_discard(struct swap *s);

#endif
