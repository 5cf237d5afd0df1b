/*
 * Lists a stream without decoding it: each shard with its tensors, how each was
 * coded and how many bytes it takes; or, made for runs of thousands, a line for
 * each shard.  Values are not read where they can be passed over.
 */
#ifndef ACE_LIST_H
#define ACE_LIST_H

struct err;
struct reader;
struct report;

int list_stream(struct report *p, struct reader *r, struct err *e);

/* list_brief(p, r, e): a line for each shard, in any form; p goes on from file to
 * file.  A shard that is damaged has a line too, which says so. */
int list_brief(struct report *p, struct reader *r, struct err *e);

#endif
