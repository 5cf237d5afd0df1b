/*
 * The verdict on a shard that came in: one for a shard's name, for ever, and on
 * disk before anyone is told.
 */
#ifndef ACE_VERDICT_H
#define ACE_VERDICT_H

#include "spool/inbox.h"

struct err;
struct schema;

/*
 * verdict_settle(s, sh, sc, path, r, e): the verdict on a shard that was read to
 * its verified end.  r comes with key and digest; with verdict accepted it is a
 * proposal (whole, finite, of this device), otherwise final.  On disk when
 * this returns 0.  -ERR_SYS: no verdict was given.
 */
int verdict_settle(const struct inbox *s, const struct shard *sh,
    const struct schema *sc, const char *path, struct receipt *r,
    struct err *e);

#endif
