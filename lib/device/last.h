/*
 * The shard that was coded last, which a codec may start from (lowrank does).
 * It is read from the residual's file, which holds it until the next commit:
 * so it changes together with the residual or not at all, and a step that is
 * coded again after a kill starts from the same shard.
 */
#ifndef ACE_LAST_H
#define ACE_LAST_H

#include <stddef.h>
#include <stdint.h>

#include "codec/codec.h"
#include "device/residual.h"

struct err;

struct last {
	struct residual q;
	int open, done;
	const struct record *rec;	/* of the frame at hand */
	size_t n, i;
};

/* last_group(l, s, step, g, c, e): 1 and *c is the body of group g in the shard
 * of that step, until the next call; 0: it has none.  g rises from call to
 * call; l begins as zeros. */
int last_group(struct last *l, const struct state *s, uint64_t step,
    uint32_t g, struct codec_last *c, struct err *e);
void last_close(struct last *l);

#endif
