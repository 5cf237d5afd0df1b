/*
 * The aggregate of the step before, from which the rule `center' measures: in
 * memory, 4 bytes a value, and the one that is being made beside it; for a
 * spool in files, too, so that a program that is started again goes on with
 * the same.
 *
 *	center_begin -> center_group, center_put for each group -> center_commit
 *
 * Of two files one is of the last step and the other of the one before: a step
 * that is made again after a kill has to begin where it began.
 */
#ifndef ACE_CENTER_H
#define ACE_CENTER_H

#include <stddef.h>
#include <stdint.h>

#include "base/io.h"
#include "base/statedir.h"

struct err;
struct schema;
struct shard;

struct center {
	float *x, *next;		/* f32[values]; x is of the step before */
	size_t cap;			/* values that both have room for */
	uint64_t values;		/* of the model that they are of, */
	unsigned char model[16];	/* and its schema's id */
	int known;			/* x is of some step and not zeros */
	struct statedir dir;		/* dir.dir NULL: no files */
	int bad;			/* the files are: no shard is to blame */
	int newest;			/* the file that was written last, 0 or 1 */
	enum io_sync sync;
};
#define CENTER_INIT { NULL, NULL, 0, 0, { 0 }, 0, STATE_INIT, 0, 1, IO_SYNC_NONE }

/* center_keep(c, dir, sync): files in the directory dir, which becomes c's own. */
void center_keep(struct center *c, char *dir, enum io_sync sync);

/* center_begin(c, sh, sc, e): the step of shard sh of the model sc begins.  Of
 * another model than the step before nothing is known. */
int center_begin(struct center *c, const struct shard *sh,
    const struct schema *sc, struct err *e);
/* center_group(c, first): the values from the first of a group on, or NULL:
 * zeros.  center_put(c, first, y, n): the group's in this step's aggregate, which
 * are zeros otherwise. */
const float *center_group(const struct center *c, uint64_t first);
void center_put(struct center *c, uint64_t first, const float *y, size_t n);
/* center_commit(c, sh, sc, e): this step's becomes the one before. */
int center_commit(struct center *c, const struct shard *sh,
    const struct schema *sc, struct err *e);
void center_release(struct center *c);

#endif
