/*
 * The verdict on a shard: accepted, invalid, late, duplicate, equivocation or fenced.
 * One function decides, by the state of the run, while the spool's lock prevents closing and
 * other verdicts.  The files from which the verdict follows are durable before the device
 * gets it.
 */
#ifndef ACE_VERDICT_H
#define ACE_VERDICT_H

#include "spool/spool.h"

struct err;
struct history;
struct schema;

/* verdict_run(s, sh, sc, why, e): compare the shard's model with the run's, which is that of
 * the first shard accepted.  Return an enum verdict_run; VERDICT_OTHER: why says what
 * differs; VERDICT_NEW: no shard was accepted yet.  -ERR_DATA: the shard is of another run. */
enum verdict_run { VERDICT_SAME, VERDICT_OTHER, VERDICT_NEW };
int verdict_run(const struct spool *s, const struct shard *sh, const struct schema *sc,
    char why[256], struct err *e);
/* verdict_head(s, sh, sc, r, e): write a refusal to r if the run's model is known and the
 * shard has another one.  Return 1 if the shard has the run's model, else 0.  Call it before
 * values are decoded, since a few bytes may stand for any number of values. */
int verdict_head(const struct spool *s, const struct shard *sh,
    const struct schema *sc, struct receipt *r, struct err *e);

/*
 * verdict_shard(s, sh, sc, model, path, m, r, e): decide on a shard that was read to its
 * verified end into the temporary file at path, which this function removes.  If the
 * shard is a difference, m has its reconstruction.  model is what verdict_head returned.
 * r has the shard's name and digest, and `accepted' or the reader's refusal; this function
 * sets the final verdict.  After a failure the device gets no receipt, and has to send the
 * shard again.
 */
int verdict_shard(const struct spool *s, const struct shard *sh,
    const struct schema *sc, int model, const char *path, struct history *m,
    struct receipt *r, struct err *e);

#endif
