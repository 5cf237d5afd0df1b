/*
 * A model is replaced by the next one as a whole: whatever kills the process or the
 * machine, there is the old one or the new one afterwards, at the latest when the next
 * ace-patch looks at it.
 *
 * Beside the model, in MODEL.ace-patch, is what that needs:
 *
 *	lock	held by the one process that changes the model
 *	new	the next model while it is written
 *	try	exists while it is tried whether one directory can take the place of another
 *	ready	says that it is whole and on disk, and which one it is
 *	redo	the values to set in place, whole and on disk: from then on the model
 *		is the next one, and who finds this file sets them again, if the model
 *		becomes what redo says, all of it, when they are set
 *	marker	which model there is, as far as we made it
 *
 * With new, the commit is one rename; of directories one that exchanges the two.
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
struct pack_sum;

/* How the next model is made; in this order where nothing else is said. */
enum swap_way { SWAP_REFLINK, SWAP_PLACE, SWAP_COPY, SWAP_ANY };
extern const char *const swap_ways[];	/* their names, for options */

/* What is known of a model that we made. */
struct swap_mark {
	unsigned char hash[MODEL_HASH];
	uint64_t step;
	uint64_t stamp;		/* the marker's: model_stamp; ready's: of all that is
				 * to be replaced, what is no tensor, too */
	uint64_t inode, next;	/* ready: of the next model, by which it is known
				 * where it was put in place; as long, and last
				 * written then, as what it has now */
};

struct swap {
	const struct cli *cli;	/* whom to speak for */
	char *path, *home;
	struct statedir dir;	/* home, and its lock */
	int marked, staged;	/* there is a marker, a model that is ready */
	struct swap_mark mark, ready;
	/* while the next model is written */
	enum swap_way way;
	const struct model *m;
	int *fd;		/* of each file that changes, else -1 */
	struct io *redo;
	struct pack_sum *sum;
	struct buf set;		/* words of a group that change */
};
#define SWAP_INIT { .dir = STATE_INIT }

/* swap_open(s, path, cli, e): finds the model, links followed, and makes the
 * directory beside it. */
int swap_open(struct swap *s, const char *path, const struct cli *cli,
    struct err *e);
void swap_close(struct swap *s);
/* swap_scratch(s, fd, e): a file without a name there. */
int swap_scratch(const struct swap *s, int *fd, struct err *e);
/* swap_lock(s, e): waits until nobody else changes the model, and brings to an end
 * what was not; then marked and staged are known. */
int swap_lock(struct swap *s, struct err *e);

/* swap_begin(s, m, touched, way, staging, e): begins the next model, which differs
 * from m in the files for which touched[i] is 1.  staging: not in place, since it is
 * not committed at once. */
int swap_begin(struct swap *s, const struct model *m,
    const unsigned char *touched, enum swap_way way, int staging,
    struct err *e);
/* swap_group(s, span, old, new, after, e): the next of its groups, every one in turn,
 * and the hash of its new bytes; new is old where nothing changes. */
int swap_group(struct swap *s, const struct model_span *span,
    const unsigned char *old, const unsigned char *new,
    const unsigned char after[MODEL_HASH], struct err *e);
/* swap_ready(s, hash, step, e): it is whole: on disk, but for what is set in place. */
int swap_ready(struct swap *s, const unsigned char hash[MODEL_HASH],
    uint64_t step, struct err *e);
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
