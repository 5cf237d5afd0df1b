/*
 * Finds the name of the device that a receipt is for.  The receipt has only a
 * hash of the name, but in a spool the files of shards beside it begin with the
 * name itself, as in DEVICE.(...).
 */
#ifndef ACE_NAMES_H
#define ACE_NAMES_H

#include "format/shard.h"

/* names_beside(path, id, out): looks in the directory of the file at path for a
 * name whose hash is id.  Returns 1 with the name in out, or 0 with the hash in
 * hex. */
int names_beside(const char *path, const unsigned char id[SHARD_ID],
    char out[SHARD_NAME + 1]);

#endif
