/*
 * Prints the layers of a stream as a table for ace-advise dynacomm: how many
 * bytes each layer takes as coded in the stream, and how long its gradient takes
 * to compute, from the tIMe frames of the shards.  Both are means over the
 * shards; the first layer comes first.
 */
#ifndef ACE_PROFILE_H
#define ACE_PROFILE_H

#include <stdio.h>

struct err;
struct reader;

/* profile_print(f, r, e): reads r to its end and prints the table to f.
 * -ERR_DATA: no shard has times, or two shards have different tensors. */
int profile_print(FILE *f, struct reader *r, struct err *e);

#endif
