/*
 * A model-sized array kept in a state directory: residual, momentum, history.
 * Each is a stream of one dense shard, in which groups that are all zero are
 * left out.  It is read group by group beside the current shard, and replaced
 * by one rename.
 */
#ifndef ACE_DENSE_H
#define ACE_DENSE_H

#include <stdint.h>

#include "base/io.h"
#include "base/statedir.h"
#include "format/values.h"
#include "format/writer.h"

struct err;

enum { DENSE_STAMP = 33 };	/* 32 hex digits and a zero */

/* The name of what is kept beside the residual after a step. */
#define DENSE_HISTORY "history.%llu"

struct dense {
	struct reader *r;	/* NULL: there is no file, all zeros */
	struct values v;
	char stamp[DENSE_STAMP];	/* identifies the file's contents */
};

/* dense_open(d, s, name, kind, e): opens the file as it is now; a later commit
 * does not change what is read.  The reader stands at the first shard, which
 * must be of that kind.  No file is no error: then d->r is NULL and the stamp
 * "none". */
int dense_open(struct dense *d, const struct statedir *s, const char *name,
    enum shard_kind kind, struct err *e);

/* dense_check(d, sh, sc, e): is it of the same run and device as shard sh, and
 * of the model sc?  -ERR_DATA "mismatch: ..." when not. */
int dense_check(const struct dense *d, const struct shard *sh,
    const struct schema *sc, struct err *e);

/* dense_group(d, g, x, e): *x = f32[n] of group g, or NULL when it is all
 * zero.  g must rise from call to call. */
int dense_group(struct dense *d, uint32_t g, const float **x, struct err *e);

void dense_close(struct dense *d);

/* dense_create(w, s, name, sh, kind, kv, sc, e): begins a file that appears at
 * writer_end.  It says run, device, step and incarnation of sh and nothing
 * else, so that two parties who keep the same array have the same bytes, and
 * the same stamp.  kv: keys to add, or NULL.
 * dense_begin: the same in io, which is the writer's from now on. */
int dense_create(struct writer **w, const struct statedir *s, const char *name,
    const struct shard *sh, enum shard_kind kind, const struct text_kv *kv,
    const struct schema *sc, struct err *e);
struct io;
int dense_begin(struct writer **w, struct io *io, const struct statedir *s,
    const struct shard *sh, enum shard_kind kind, const struct text_kv *kv,
    const struct schema *sc, struct err *e);
/* dense_put(w, g, x, n, e): group g, in rising order; left out if all are
 * zero. */
int dense_put(struct writer *w, uint32_t g, const float *x, size_t n,
    struct err *e);

#endif
