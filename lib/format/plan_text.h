/*
 * A plan as text that can be edited and read back: one line per group,
 *
 *   GROUP CODEC TENSOR
 *
 * in rising order; the tensor's name is a comment.  Empty lines and lines that begin with #
 * are ignored; a group without a line is not sent.
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

enum { PLAN_TEXT_MAX = 64 << 20 };	/* limit on the bytes of a file */

/* Append the line "# shard 'DEVICE/STEP'". */
int plan_text_head(struct buf *out, const struct shard *s, struct err *e);
/* Append the line of group g with plan p. */
int plan_text_put(struct buf *out, const struct schema *sc, uint32_t g,
    const struct codec_plan *p, struct err *e);

struct plan_text {
	struct codec_plan *p;	/* [n] plans of groups 0 to n - 1 */
	size_t n, cap;
};
#define PLAN_TEXT_INIT { NULL, 0, 0 }

/* Read a plan as text. Return -ERR_USAGE with the number of an invalid line, -ERR_DATA if
 * the file is too large or has a zero byte, or -ERR_SYS if it cannot be read. */
int plan_text_read(struct plan_text *t, const char *path, struct err *e);
void plan_text_release(struct plan_text *t);

#endif
