/*
 * What a spool decides: whether there is room for a shard, what becomes of it, which
 * step is closed, whether a step has an average.  One state of a run answers all of it,
 * and one rename changes that state.
 *
 * To close a step is to write its manifest, the receipts of the shards in its average,
 * over DIR/RUN/closed: that step and all before it are closed then.  A shard of a step
 * before it that was passed over is in the same manifest.  Its own verdict is
 * `accepted'; `invalid' where it was set aside; `duplicate' where it waits for the
 * next average.  The last receipt is of the step itself, and the version of each is the
 * last step whose average was made by then.
 *
 * When the average was made the manifest gets a second name, DIR/RUN/done/STEP.  That
 * link is durable at the latest before the next manifest takes the first name.  A power
 * cut may take it before: then the step is given out again, with the same list.
 *
 * To accept a shard is to link its file into its step, while no step can be closed.  A
 * file that is there when the step is closed is in its manifest, so what is accepted is
 * counted, and what is not counted was not accepted.
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
	int made;		/* its average was made */
	int has_last;
	uint64_t last;		/* the last step whose average was made */
};

/* decide_load(s, run, d, e): the state of a run, of which the manifest is read once and
 * not for each shard. */
int decide_load(const struct inbox *s, const char *run, struct decided *d,
    struct err *e);

/* decide_manifest(s, run, step, l, e): 1 and l, for ledger_release, is the manifest
 * that lists the step's shards: its own, or, where the step was passed over, that of
 * the step whose average counts them.  It lists shards of other steps, too.  0: the
 * step is open. */
int decide_manifest(const struct inbox *s, const char *run, uint64_t step,
    struct ledger *l, struct err *e);

/* decide_next(s, run, next, e): the first step that is not closed. */
int decide_next(const struct inbox *s, const char *run, uint64_t *next,
    struct err *e);

/* decide_aggregate(s, run, step, path, e): is the step's aggregate there?  An
 * enum decide_when, or < 0; with DECIDE_HERE *path is where, allocated. */
enum decide_when { DECIDE_COMING, DECIDE_HERE, DECIDE_NEVER };
int decide_aggregate(const struct inbox *s, const char *run, uint64_t step,
    char **path, struct err *e);

/* ---- a step is closed ---- */

/* decide_close(s, run, d, l, e): the manifest l becomes that of the newest closed step,
 * under the run's lock alone; d is the state that it was made from.  The names of its
 * shards are durable.
 * decide_done(s, run, step, e): the average of the newest closed step was made. */
int decide_close(const struct inbox *s, const char *run, const struct decided *d,
    struct ledger *l, struct err *e);
int decide_done(const struct inbox *s, const char *run, uint64_t step,
    struct err *e);

/* ---- a shard comes ---- */

/* decide_room(a, s, sh, sc, coming, e): is there room in the spool for the shard, while
 * `coming' others of its device are being received?  1: its step is over, and the shard
 * late, whatever else is wrong with it.
 * -ERR_REFUSED: its step is too far ahead, or the device above its quota.  That is
 * no verdict: one would have to be kept, lest the same bytes be let in later when
 * the device has taken them back, and somebody who invents steps could fill the
 * disk with receipts.  So the device keeps the shard, and sends it again. */
int decide_room(const struct admit *a, const struct inbox *s,
    const struct shard *sh, const struct schema *sc, uint64_t coming,
    struct err *e);

/* decide_head(s, sh, sc, r, e): refuses in r a shard of another model than the
 * run's, where that is known, before anything of it is decoded: a few bytes may
 * stand for any number of values of a model that nobody trains.  1: it is of the
 * run's model. */
int decide_head(const struct inbox *s, const struct shard *sh,
    const struct schema *sc, struct receipt *r, struct err *e);

/*
 * decide_shard(s, sh, sc, model, path, m, r, e): decides on a shard that was read to
 * its verified end into the temporary file at path, and m into which it was
 * reconstructed, if it is a difference.  model is what decide_head returned.  r comes
 * with the shard's name and digest, and with what its reader found: accepted (whole,
 * finite, of this device), which may still become another verdict here, or one that
 * refuses it.  The verdict is on disk when this returns 0; -ERR_SYS: none was given.
 */
int decide_shard(const struct inbox *s, const struct shard *sh,
    const struct schema *sc, int model, const char *path, struct mirror *m,
    struct receipt *r, struct err *e);

/* decide_sign(s, run, r, e): fills in clock and version of a receipt. */
int decide_sign(const struct inbox *s, const char *run, struct receipt *r,
    struct err *e);

#endif
