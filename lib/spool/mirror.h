/*
 * What the spool keeps of devices that send differences to a history
 * (device/feedback.h): DIR/RUN/device/DEVICE.history/history.STEP, what was
 * reconstructed of the shard of that step, dense.  It is the history of the
 * device's next shard, byte for byte the one in the device's state, and what
 * ace-aggregate sums.  It is durable before the shard is accepted.
 *
 * The newest and the one that it is a difference to stay, for a shard that comes
 * again, and those of steps whose aggregate was not made yet.
 */
#ifndef ACE_MIRROR_H
#define ACE_MIRROR_H

#include "spool/inbox.h"

struct err;
struct feedback_cache;
struct schema;

struct mirror {		/* of the shard that is being received */
	struct feedback_cache *cache;	/* NULL: it is no difference */
	char *dir, *temp;
	uint32_t next;			/* group */
};
#define MIRROR_INIT { NULL, NULL, NULL, 0 }

/* mirror_begin(m, s, sh, sc, r, e): refuses in r a difference to a history that
 * the spool does not have. */
int mirror_begin(struct mirror *m, const struct inbox *s,
    const struct shard *sh, const struct schema *sc, struct receipt *r,
    struct err *e);
/* mirror_upto(m, sc, g, x, e): the groups before g that were not sent; x f32 has
 * room for any.  mirror_group(m, g, x, n, e): the next one, decoded; x becomes
 * what is reconstructed. */
int mirror_upto(struct mirror *m, const struct schema *sc, uint32_t g,
    float *x, struct err *e);
int mirror_group(struct mirror *m, uint32_t g, float *x, size_t n,
    struct err *e);
/* mirror_end(m, s, sc, x, e): all groups were seen; it is on the disk, without its
 * name. */
int mirror_end(struct mirror *m, const struct inbox *s,
    const struct schema *sc, float *x, struct err *e);
/* mirror_keep(m, s, sh, last, e): gives it its name, under the run's lock alone, before
 * the shard gets its own.  last: the last step whose average was made, or NULL. */
int mirror_keep(struct mirror *m, const struct inbox *s, const struct shard *sh,
    const uint64_t *last, struct err *e);
void mirror_drop(struct mirror *m);

/* mirror_open(d, path, sh, sc, e): opens what was reconstructed of the shard sh in
 * the spool's file at path. */
struct dense;
int mirror_open(struct dense *d, const char *path, const struct shard *sh,
    const struct schema *sc, struct err *e);

#endif
