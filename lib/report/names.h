/*
 * A receipt says whose it is by the hash of a name.  In a spool the name itself
 * stands beside it: shards are files DEVICE.(...).
 */
#ifndef ACE_NAMES_H
#define ACE_NAMES_H

#include "format/shard.h"

/* names_beside(path, id, out): the name whose hash id is, from the directory of
 * the file at path: 1, or 0 and out is the hash in hex. */
int names_beside(const char *path, const unsigned char id[SHARD_ID],
    char out[SHARD_NAME + 1]);

#endif
