/*
 * List a stream without decoding it: for each shard its tensors, their codecs and
 * bytes; or one line per shard, for runs of thousands of shards. Values are skipped if
 * the input can seek.
 */
#ifndef ACE_LIST_H
#define ACE_LIST_H

struct err;
struct reader;
struct report;

int list_stream(struct report *p, struct reader *r, struct err *e);

/* Print a line per shard, in any form of output; p continues across files. For a damaged
 * shard the line says so. */
int list_brief(struct report *p, struct reader *r, struct err *e);

#endif
