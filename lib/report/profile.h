/*
 * The layers of a stream as a table for ace-advise dynacomm: their bytes, as
 * they are coded there, and how long the gradient of each takes, as the shards
 * say (frames tIMe).  Means over the shards, the first layer first.
 */
#ifndef ACE_PROFILE_H
#define ACE_PROFILE_H

#include <stdio.h>

struct err;
struct reader;

/* profile_print(f, r, e): reads r to its end.  -ERR_DATA: no shard has times,
 * or two have other tensors. */
int profile_print(FILE *f, struct reader *r, struct err *e);

#endif
