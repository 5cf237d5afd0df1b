/*
 * Where a plan goes: into the stream, beside the data it speaks of, or out as
 * text without the data.
 */
#ifndef ACE_PLANNED_H
#define ACE_PLANNED_H

#include <stdint.h>

#include "base/alloc.h"
#include "codec/codec.h"

struct err;
struct io;
struct reader;
struct writer;

enum { PLANNED_MOST = 65536 };	/* groups of one annotation */

struct planned {
	struct reader *in;
	struct writer *out;		/* NULL: as text */
	struct io *text;
	struct buf note;		/* private */
};
#define PLANNED_INIT { NULL, NULL, NULL, BUF_INIT }

/* planned_shard(p, e): in's shard begins. */
int planned_shard(struct planned *p, struct err *e);
/* planned_groups(p, first, plan, n, e): of groups first to first + n - 1, any
 * number. */
int planned_groups(struct planned *p, uint32_t first,
    const struct codec_plan *plan, uint32_t n, struct err *e);
/* planned_frame(p, event, e): in's data, or an annotation, which goes on, but
 * for an older plan. */
int planned_frame(struct planned *p, int event, struct err *e);
/* planned_send(p, e): in's shard ends. */
int planned_send(struct planned *p, struct err *e);
/* planned_end(p, r, e): the stream ends, as filter_end. */
int planned_end(struct planned *p, int r, struct err *e);
/* planned_release(p): out and text too. */
void planned_release(struct planned *p);

#endif
