/*
 * The spool's history of devices that send differences to a history
 * (device/error_feedback.h).  DIR/device/DEVICE.history/history.STEP is what was
 * reconstructed from the shard of that step, dense.  The device's next shard is a
 * difference to it; the file in the device's state has the same bytes.  ace-aggregate
 * averages the file's values.  The file is durable before the shard is accepted.
 *
 * When a history is added, the histories of steps after the last average stay.  So does the
 * history to which the new shard is a difference, since that shard may be sent again.
 */
#ifndef ACE_HISTORY_H
#define ACE_HISTORY_H

#include "spool/spool.h"

struct err;
struct feedback_cache;
struct schema;

struct history {		/* history for the shard that is being received */
	struct feedback_cache *cache;	/* NULL: nothing is to be reconstructed */
	char temp[SPOOL_PATH];		/* path of its file; "": there is none */
	uint32_t next;			/* the group to reconstruct next */
};
#define HISTORY_INIT { .cache = NULL }

/* history_begin(m, s, sh, sc, r, e): begin with the shard sh if it is a difference and r is
 * not a refusal already.  Write a refusal to r if the history to which sh is a difference is
 * absent or damaged. */
int history_begin(struct history *m, const struct spool *s,
    const struct shard *sh, const struct schema *sc, struct receipt *r,
    struct err *e);
/* history_upto(m, sc, g, x, e): reconstruct the groups before g that were not sent; x has
 * room for the values of any group.  history_group(m, g, sent, x, n, e): reconstruct the
 * next group from its decoded values x[n], in place; they are zeros if sent is 0.  These
 * functions and the next two do nothing if the shard is not a difference. */
int history_upto(struct history *m, const struct schema *sc, uint32_t g,
    float *x, struct err *e);
int history_group(struct history *m, uint32_t g, int sent, float *x, size_t n,
    struct err *e);
/* history_end(m, s, sc, x, e): reconstruct the groups that are left, and end; x as above.  The
 * file then has a temporary name, and its bytes are durable if s->sync is IO_SYNC_FULL. */
int history_end(struct history *m, const struct spool *s,
    const struct schema *sc, float *x, struct err *e);
/* history_keep(m, s, sh, keep, e): give the file its name, and remove the device's histories of
 * steps before `keep' (struct closed) that no shard needs.  Call it before the shard's file gets
 * its name, with the spool locked. */
int history_keep(struct history *m, const struct spool *s, const struct shard *sh,
    uint64_t keep, struct err *e);
/* history_drop(m): release m, and remove the file unless history_keep gave it its name. */
void history_drop(struct history *m);

/* history_open(d, path, sh, sc, e): open the history that was reconstructed from the shard sh,
 * of model sc.  path: the shard's own file in the spool.  Close d also after a failure. */
struct dense;
int history_open(struct dense *d, const char *path, const struct shard *sh,
    const struct schema *sc, struct err *e);

#endif
