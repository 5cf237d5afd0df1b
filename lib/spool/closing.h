/*
 * A spool as ace-aggregate sees it: wait for a step, close it, hand out the paths of
 * its shards, record that its average was made, and go on with the next.
 *
 * A step needs a quorum of shards.  It is over as soon as `expect' of its shards are there,
 * or `deadline' seconds after a quorum was there.  With a list of devices (spool/roster.h) it
 * is over as soon as all listed devices have sent, whatever `expect' is.  Without `expect',
 * list and deadline a quorum is enough.  The deadline is computed from the times of the
 * step's files, so that it also holds for a process that is restarted; during a wait, a clock
 * that does not jump measures it.
 *
 * A step with fewer shards than a quorum is passed over once a later step is over, since
 * the other devices may never send theirs.  Its accepted shards are counted in that later
 * step, since their devices have discarded the values.  A shard of the step that was passed
 * over is late if it comes afterwards.
 */
#ifndef ACE_CLOSING_H
#define ACE_CLOSING_H

#include "base/io.h"
#include "format/array.h"
#include "format/receipt.h"

struct err;
struct closing;

struct closing_opts {
	const char *dir;
	enum io_sync sync;
	size_t expect;		/* shards that a step should have; 0: not known */
	size_t quorum;		/* fewest shards for an average, at least 1 */
	double deadline;	/* seconds to wait after a quorum; -1: no limit */
	int published;		/* 1: a step is done when the reader of our output has put
				   its average into the spool */
	uint64_t keep;		/* keep the shards of steps > STEP - keep after the average
				   of STEP; 0: keep all */
	int create;		/* make the directory if it is absent */
	struct waiting *wait;	/* for messages during waits; or NULL */
	int out;		/* descriptor of the output; a wait ends when it
				   has no reader any more; -1: none */
};

/* closing_open(out, o, e): open the spool.  o must live as long as *out.  Call closing_free
 * also after a failure. */
int closing_open(struct closing **out, const struct closing_opts *o,
    struct err *e);
void closing_free(struct closing *r);

/* closing_made(r, n, e): set *n to the number of steps of this run that are done, by this
 * process or another: those that have a file in DIR/done. */
int closing_made(const struct closing *r, uint64_t *n, struct err *e);

/* closing_next(r, step, paths, e): wait for the next step that is over, and close it:
 * shards that come later, for it or for steps before it, are late.  *paths, valid until
 * closing_done, are its shards and those of earlier steps that no average has counted, in
 * the order in which to add them.  A step that was closed before and is not done comes
 * again with the same shards.  If o->out has no reader: wait_orphan's error. */
int closing_next(struct closing *r, uint64_t *step, const struct array_names **paths,
    struct err *e);
/* closing_exclude(r, i, count, verdict, why, e): exclude `count' shards of *paths, from
 * the i-th on (from 0), from the step's average.  The changed manifest is on disk when this
 * returns, unless another process has recorded the average or closed a later step: then the
 * manifest stays.  For the verdicts see spool/manifest.h.  *paths becomes the remaining
 * shards.  If they are fewer than a quorum, they wait for the next average, and *paths becomes
 * empty. */
int closing_exclude(struct closing *r, size_t i, size_t count,
    enum receipt_verdict verdict, const char *why, struct err *e);
/* closing_done(r, e): record that the step's average was written, or that no shard is
 * left for one.  With `published', first wait until the average, if any, is in the spool.
 * Then remove the directories of the steps that `keep' does not keep, and that are before each
 * shard in this step's manifest.  All manifests stay, so that a shard in one of them gets the
 * same verdict when it is sent again, however late that is. */
int closing_done(struct closing *r, struct err *e);

#endif
