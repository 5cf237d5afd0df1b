/*
 * The verdict on a shard that came in: one for a shard's name, for ever, and on
 * disk before anyone is told.
 */
#ifndef ACE_VERDICT_H
#define ACE_VERDICT_H

#include "spool/inbox.h"

struct err;
struct mirror;
struct schema;

/*
 * verdict_settle(s, sh, sc, path, m, r, e): decides on a shard that was read to
 * its verified end into the temporary file at path, and m into which it was
 * reconstructed, if it is a difference.  r comes with the shard's
 * name and digest, and with what its reader found: accepted (whole, finite, of
 * this device), which may still become another verdict here, or one that
 * refuses it.  The verdict is on disk when this returns 0; -ERR_SYS: none was
 * given.
 */
int verdict_settle(const struct inbox *s, const struct shard *sh,
    const struct schema *sc, const char *path, struct mirror *m,
    struct receipt *r, struct err *e);

/* verdict_head(s, sh, sc, r, e): refuses in r a shard of another model than the
 * run's, where that is known, before anything of it is decoded: a few bytes may
 * stand for any number of values of a model that nobody trains. */
int verdict_head(const struct inbox *s, const struct shard *sh,
    const struct schema *sc, struct receipt *r, struct err *e);

#endif
