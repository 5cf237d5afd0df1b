/*
 * A plan as text, to be read, changed and given back: a line for each group,
 *
 *   GROUP CODEC TENSOR
 *
 * in rising order; the tensor's name is for the reader only.  Empty lines and
 * lines that begin with # are passed over; a group without a line is not sent.
 */
#ifndef ACE_PLAN_TEXT_H
#define ACE_PLAN_TEXT_H

#include <stddef.h>
#include <stdint.h>

#include "base/alloc.h"
#include "codec/codec.h"

struct err;
struct schema;
struct shard;

enum { PLAN_TEXT_MAX = 64 << 20 };	/* bytes of a file */

/* plan_text_head(out, s, e): appends the line "# shard 'DEVICE/STEP'". */
int plan_text_head(struct buf *out, const struct shard *s, struct err *e);
/* plan_text_put(out, sc, g, p, e): appends the line of group g with plan p. */
int plan_text_put(struct buf *out, const struct schema *sc, uint32_t g,
    const struct codec_plan *p, struct err *e);

struct plan_text {
	struct codec_plan *p;	/* [n]: of groups 0 to n - 1 */
	size_t n, cap;
};
#define PLAN_TEXT_INIT { NULL, 0, 0 }

/* plan_text_read(t, path, e): reads such a file.  -ERR_USAGE with the number
 * of the line that is wrong, -ERR_SYS when the file cannot be read. */
int plan_text_read(struct plan_text *t, const char *path, struct err *e);
void plan_text_release(struct plan_text *t);

#endif
