/*
 * Lists what is in a stream without decoding it: the shards, their tensors, and
 * how each tensor was coded and how many bytes it takes.
 */
#ifndef ACE_LIST_H
#define ACE_LIST_H

struct err;
struct reader;
struct report;

int list_stream(struct report *p, struct reader *r, struct err *e);

#endif
