/*
 * The patches that a run keeps (patches/ in the directory of ace-diff -S), and now and
 * then a whole model.  A file is SEQ.BEFORE.AFTER.STEP.aceg, with 32 zeros for the BEFORE
 * of a whole model: so the list of names says all that there is, no index can be wrong,
 * and a file is there as a whole or not.  The newest model is what the last one makes.
 *
 * Another process removes what is over the limits, so who reads opens all that it is
 * going to read under the lock of the list of receivers.
 */
#ifndef ACE_STORE_H
#define ACE_STORE_H

#include <stddef.h>
#include <stdint.h>

#include "model/model.h"
#include "model/ways.h"

struct err;

enum { STORE_NAME = 128 };

/* What the file `limits' beside patches/ says. */
struct store_limits {
	uint64_t patches, bytes, anchor;
};

struct store {
	char *dir;		/* .../patches */
	struct ways w;		/* by nth, which is SEQ */
	struct store_limits limits;
};
#define STORE_INIT { NULL, { NULL, 0, 0 }, { 0, 0, 0 } }

/* store_open(s, state, e): reads the list.  store_create makes directory and limits
 * where they are not yet. */
int store_create(const char *state, struct err *e);
int store_open(struct store *s, const char *state, struct err *e);
void store_close(struct store *s);

/* store_newest(s): the last one, or NULL.  store_known(s, hash): one that makes this
 * model, or NULL. */
const struct way *store_newest(const struct store *s);
const struct way *store_known(const struct store *s,
    const unsigned char hash[MODEL_HASH]);
/* store_way(s, from, list, n, e): the shortest way from a model, NULL: from nothing, to
 * the newest: 1; 0: there is none.  Where that is what there is, *n is 0. */
int store_way(struct store *s, const unsigned char *from, size_t **list,
    size_t *n, struct err *e);

/* store_draft(s, e): the name under which the next file is written. */
char *store_draft(const struct store *s, struct err *e);
/* store_add(s, w, e): what was written there is w, whose nth and bytes are set here.  Where
 * the newest is that model already, and there is the like, it is dropped. */
int store_add(struct store *s, struct way *w, struct err *e);
/* store_due(s, due, e): whether the next whole model is due. */
int store_due(struct store *s, int *due, struct err *e);
/* store_prune(s, e): removes the oldest that are over the limits, never what is on the
 * way from nothing to the newest, nor the last. */
int store_prune(struct store *s, struct err *e);
/* store_fd(s, i, e): opens the i-th, or < 0. */
int store_fd(const struct store *s, size_t i, struct err *e);

#endif
