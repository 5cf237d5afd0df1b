/*
 * A model-sized array in a state directory: residual, history. Its file is a stream whose
 * first shard has the array, dense but without all-zero groups. The file is read group by
 * group together with the current shard. A new file gets its name by one rename.
 */
#ifndef ACE_DENSE_H
#define ACE_DENSE_H

#include <stdint.h>

#include "base/io.h"
#include "base/statedir.h"
#include "format/values.h"
#include "format/writer.h"

struct err;

enum { DENSE_STAMP = 33 };	/* 32 hex digits and a NUL */

/* File name of the history after a step. */
#define DENSE_HISTORY "history.%llu"

struct dense {
	struct reader *r;	/* NULL: no file, all zeros */
	struct values v;
	char stamp[DENSE_STAMP];	/* identifies the file's contents */
};

/* Open the file as it is now; the next commit does not change what is read. The reader stands
 * at the first shard. -ERR_DATA: the file is damaged, or this shard is not of the given kind.
 * End messages about damage, then and later, with `remedy', unless it is NULL. If the file is
 * absent, return 0 with d->r NULL and the stamp "none". */
int dense_open(struct dense *d, const struct statedir *s, const char *name,
    enum shard_kind kind, const char *remedy, struct err *e);

/* Check that d, unless its file is absent, has the run and device of shard sh and the model
 * sc. Return -ERR_DATA "mismatch: ..." if not. */
int dense_check(const struct dense *d, const struct shard *sh,
    const struct schema *sc, struct err *e);

/* Set *x to f32[n] of group g, valid until the next call, or to NULL if the group is all
 * zero. Call it in rising order of g. */
int dense_group(struct dense *d, uint32_t g, const float **x, struct err *e);

void dense_close(struct dense *d);

/* Begin a file that gets its name at writer_end. Its head has only run, device, step and
 * incarnation of sh, so that a sender and a receiver that have the same array have the same
 * bytes and stamp. kv: keys to add, or NULL. dense_begin writes the file to io, which it
 * owns, also on failure. Free *w in any case. */
int dense_create(struct writer **w, const struct statedir *s, const char *name,
    const struct shard *sh, enum shard_kind kind, const struct text_kv *kv,
    const struct schema *sc, struct err *e);
struct io;
int dense_begin(struct writer **w, struct io *io, const struct statedir *s,
    const struct shard *sh, enum shard_kind kind, const struct text_kv *kv,
    const struct schema *sc, struct err *e);
/* Write group g unless it is all zero. Call it in rising order of g. */
int dense_put(struct writer *w, uint32_t g, const float *x, size_t n, struct err *e);

#endif
