/*
 * The patches, and now and then a whole model, that a run keeps (patches/ in the
 * directory of ace-diff -S).  A file is named SEQ.BEFORE.AFTER.STEP.aceg; the BEFORE of a
 * whole model is 32 zeros.  The names are the only index, so it cannot be wrong, and a
 * file is complete or absent.  The last file makes the newest model.
 *
 * Another process may remove files that exceed the limits.  A reader therefore opens all
 * files that it needs under the lock of the list of receivers.
 */
#ifndef ACE_STORE_H
#define ACE_STORE_H

#include <stddef.h>
#include <stdint.h>

#include "model/model.h"
#include "model/route.h"

struct err;

enum { STORE_NAME = 128 };

/* The values of the file `limits' beside patches/. */
struct store_limits {
	uint64_t patches, bytes, anchor;
};

struct store {
	char *dir;		/* .../patches */
	struct routes w;		/* sorted by nth, which is SEQ */
	struct store_limits limits;
};
#define STORE_INIT { NULL, { NULL, 0, 0 }, { 0, 0, 0 } }

/* store_create: make the directory and the file `limits' if they are absent.
 * store_open: read the list of files. */
int store_create(const char *state, struct err *e);
int store_open(struct store *s, const char *state, struct err *e);
void store_close(struct store *s);

/* store_newest: return the last file, or NULL.  store_known: return the last file that
 * makes the model with this hash, or NULL. */
const struct route *store_newest(const struct store *s);
const struct route *store_known(const struct store *s,
    const unsigned char hash[MODEL_HASH]);
/* List the files with the fewest bytes that lead from a model (NULL: from nothing) to the
 * newest one.  Return 1, or 0 if no files do.  *n is 0 if `from' is the newest. */
int store_way(struct store *s, const unsigned char *from, size_t **list,
    size_t *n, struct err *e);

/* Return the path at which the next file is written; the caller frees it. */
char *store_draft(const struct store *s, struct err *e);
/* Add the file at store_draft as w, and set w's nth and bytes.  If w's model is already
 * the newest and a file leads to it from the same model, remove the draft instead. */
int store_add(struct store *s, struct route *w, struct err *e);
/* Set *due to 1 if the next whole model is due, otherwise to 0. */
int store_due(struct store *s, int *due, struct err *e);
/* Remove the oldest files beyond the limits, but never the last one nor those that lead
 * from nothing to the newest model. */
int store_prune(struct store *s, struct err *e);
/* Open file i.  Return its descriptor, or < 0 on an error. */
int store_fd(const struct store *s, size_t i, struct err *e);

#endif
