/*
 * Manifests: which steps of a spool are closed, and with which shards.
 *
 * To close a step is to write its manifest over DIR/closed: that step and all before
 * it are closed then.  The manifest has a receipt for each shard of the step, and for
 * each earlier shard that no average has counted yet:
 *
 *   accepted	counted in this average
 *   invalid	excluded from it
 *   duplicate	counted in the next average
 *   late	damaged in the spool: in no average; without run and digest if the damage
 *		was found when the step was closed
 *
 * The last receipt is of a shard of the step itself.  The version in each receipt is the
 * last step that was done when this step was closed, or 0 if there was none.
 *
 * A step is done once its average is made, or no shard is left for one: then the manifest
 * gets a second name, DIR/done/STEP.  This link
 * is durable at the latest before the next manifest replaces the first name.  If a power
 * cut removes the link before that, the step is aggregated again, from the same list.
 *
 * To accept a shard is to link its file into its step while a lock prevents closing.
 * Every file that is there when the step is closed is in the manifest.  So the manifest has
 * every accepted shard, and a shard that it does not have was not accepted.
 */
#ifndef ACE_MANIFEST_H
#define ACE_MANIFEST_H

#include "spool/receipt_list.h"
#include "spool/spool.h"

struct err;

struct closed {
	uint64_t open;	/* the first open step; all before it are closed */
	uint64_t made;	/* the step after the last one that is done: its average was made, or it
			   gets none; or 0.  Less than `open': the newest closed step is not done */
	uint64_t keep;	/* `made' or, if an average may still count an earlier shard, its step */
};

/* manifest_closed(s, d, e): read the state of a run.  DIR/closed is read again only after it
 * was replaced. */
int manifest_closed(const struct spool *s, struct closed *d, struct err *e);

/* manifest_of(s, step, l, e): read into l the manifest that lists the step's shards.
 * Return 1, after which the caller calls receipt_list_release; or 0 if the step is open.
 * A step that was passed over has no manifest.  Its shards are in the manifest of the later
 * step whose average counts them.  That one is read; it lists shards of other steps, too. */
int manifest_of(const struct spool *s, uint64_t step, struct receipt_list *l,
    struct err *e);

/* manifest_average(s, step, e): find out whether the step's average, SPOOL_AVERAGE, is in
 * the spool.  Return an enum manifest_when, or < 0. */
enum manifest_when {
	MANIFEST_COMING,	/* the step is open, or its average is to be made from a shard */
	MANIFEST_HERE,		/* the average is there; durable if s->sync is IO_SYNC_FULL */
	MANIFEST_NEVER		/* no shard counts, or the step was passed over or removed */
};
int manifest_average(const struct spool *s, uint64_t step, struct err *e);

/* ---- a step is closed ---- */

/* manifest_close(s, d, l, e): make the names of the shards in l durable, set the versions in l,
 * and write l, which is sorted, as the manifest of the newest closed step: that of its last
 * receipt.  d is the state from which l was made.  The caller holds the spool's lock.
 * manifest_done(s, step, e): record that step, the newest closed one, is done. */
int manifest_close(const struct spool *s, const struct closed *d,
    struct receipt_list *l, struct err *e);
int manifest_done(const struct spool *s, uint64_t step, struct err *e);

#endif
