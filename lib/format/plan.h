/*
 * The plan as it arrives: pLAN annotations, before or after the data they
 * speak of, asked for group by group in rising order.
 */
#ifndef ACE_PLAN_H
#define ACE_PLAN_H

#include <stdint.h>

#include "base/alloc.h"
#include "codec/codec.h"

struct err;

enum { PLAN_MAX = 32 << 20 };	/* bytes of plan waiting for their data */

struct plan {
	struct plan_part {
		uint32_t first, n;
		unsigned char *entry;	/* NOTE_PLAN bytes each */
	} *part;
	size_t n, cap, bytes;
	int any;		/* some plan was seen in this shard */
};
#define PLAN_INIT { NULL, 0, 0, 0, 0 }

/* plan_add(p, payload, len, ngroups, e): adds the payload of one pLAN frame. */
int plan_add(struct plan *p, const unsigned char *payload, size_t len,
    uint32_t ngroups, struct err *e);
/* plan_has(p, g): 1 when group g's entry has arrived, 0 when it has not. */
int plan_has(const struct plan *p, uint32_t g);
/* plan_get(p, g, out): the same, with the entry in *out; what is kept of the
 * groups before g may be freed. */
int plan_get(struct plan *p, uint32_t g, struct codec_plan *out);
/* plan_clear(p): forgets everything, before the next shard. */
void plan_clear(struct plan *p);
void plan_release(struct plan *p);

#endif
