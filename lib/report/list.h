/*
 * List the shards of a stream that p->pick selects, without decoding them: for each shard
 * its tensors, their codecs and bytes; or one line per shard, for runs of thousands of
 * shards. Values are skipped if the input can seek. Return 0 or -ERR_x.
 */
#ifndef ACE_LIST_H
#define ACE_LIST_H

struct err;
struct reader;
struct report;

int list_stream(struct report *p, struct reader *r, struct err *e);

/* Print a line (JSON: an object) per shard. Several files may share p: then the list goes on.
 * The line of a damaged shard says so, and the list ends with the error. */
int list_brief(struct report *p, struct reader *r, struct err *e);

#endif
