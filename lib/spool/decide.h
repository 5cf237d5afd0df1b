/*
 * The decisions of a spool: whether there is room for a shard, which verdict it gets,
 * which step is closed, and whether a step has an average.  One state of a run answers
 * all of them, and one rename changes that state.
 *
 * To close a step is to write its manifest over DIR/closed: that step and all before
 * it are closed then.  The manifest has a receipt for each shard of the step, and for
 * each earlier shard that no average has counted yet:
 *
 *   accepted	counted in this average
 *   invalid	excluded from it
 *   duplicate	counted in the next average
 *
 * The last receipt is of the step itself.  Each has as its version the last step whose
 * average was made before.
 *
 * Once the average is made the manifest gets a second name, DIR/done/STEP.  This link
 * is durable at the latest before the next manifest replaces the first name.  If a power
 * cut takes it before, the step is aggregated again, from the same list.
 *
 * To accept a shard is to link its file into its step while a lock prevents closing.
 * Every file that is there when the step is closed is in the manifest.  So a shard that
 * was accepted is counted, and a shard that is not counted was not accepted.
 */
#ifndef ACE_DECIDE_H
#define ACE_DECIDE_H

#include "spool/inbox.h"
#include "spool/ledger.h"

struct admit;
struct err;
struct mirror;
struct schema;

struct decided {
	int any;		/* a step is closed: */
	uint64_t closed;	/* this one, and all before it */
	int made;		/* the average of `closed' was made */
	int has_last;		/* the average of some step was made: */
	uint64_t last;		/* the last such step */
};

/* decide_load(s, d, e): read the state of a run.  A manifest is read once, however
 * many shards come. */
int decide_load(const struct inbox *s, struct decided *d, struct err *e);

/* decide_manifest(s, step, l, e): read into l the manifest that lists the step's
 * shards: 1, and the caller calls ledger_release; or 0 if the step is open.  It is the
 * step's own, or, if the step was passed over, that of the step whose average counts its
 * shards; then it lists shards of other steps, too. */
int decide_manifest(const struct inbox *s, uint64_t step, struct ledger *l,
    struct err *e);

/* decide_aggregate(s, step, path, e): find out whether the step's average is in the
 * spool: an enum decide_when, or < 0; with DECIDE_HERE *path is its path, allocated. */
enum decide_when { DECIDE_COMING, DECIDE_HERE, DECIDE_NEVER };
int decide_aggregate(const struct inbox *s, uint64_t step, char **path,
    struct err *e);

/* ---- a step is closed ---- */

/* decide_close(s, d, l, e): make l the manifest of the newest closed step, after the
 * names of its shards are durable; d is the state from which l was made.  The caller
 * holds the run's exclusive lock.
 * decide_done(s, step, e): record that the average of this step, the newest closed
 * one, was made. */
int decide_close(const struct inbox *s, const struct decided *d,
    struct ledger *l, struct err *e);
int decide_done(const struct inbox *s, uint64_t step, struct err *e);

/* ---- a shard comes ---- */

/* decide_room(a, s, sh, sc, coming, e): check that the spool has room for the shard,
 * while `coming' others of its device are being received: 0, or 1 if its step is closed,
 * so that the shard is late, whatever else is wrong with it.
 * -ERR_REFUSED: its step is too far ahead, or the device is above its quota.  The
 * connection then ends without a verdict, and the device sends the shard again later.  A
 * verdict would have to be stored, since the device takes back what was refused and the
 * same bytes must not be accepted later; and a device that invents steps could fill the
 * disk with stored verdicts. */
int decide_room(const struct admit *a, const struct inbox *s,
    const struct shard *sh, const struct schema *sc, uint64_t coming,
    struct err *e);

/* decide_head(s, sh, sc, r, e): refuse in r a shard whose model is not the run's, if that
 * is known: 1 if it is the run's model.  Call it before values are decoded, since a few
 * bytes may stand for any number of values. */
int decide_head(const struct inbox *s, const struct shard *sh,
    const struct schema *sc, struct receipt *r, struct err *e);

/*
 * decide_shard(s, sh, sc, model, path, m, r, e): decide on a shard that was read to its
 * verified end into the temporary file at path, which this function removes.  A
 * difference was reconstructed into m.  model is what decide_head returned.  r has the
 * shard's name and digest and the reader's verdict: `accepted', which may become another
 * one here, or a refusal.  The verdict is on disk when this returns 0; -ERR_SYS: there is
 * no verdict.
 */
int decide_shard(const struct inbox *s, const struct shard *sh,
    const struct schema *sc, int model, const char *path, struct mirror *m,
    struct receipt *r, struct err *e);

#endif
