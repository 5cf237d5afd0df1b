/*
 * Shards from a device's connection into the spool: each is verified whole,
 * gets its verdict, and whoever answers the device is told.
 */
#ifndef ACE_RECEIVE_H
#define ACE_RECEIVE_H

#include <stdint.h>

#include "spool/admit.h"
#include "spool/inbox.h"

struct cli;
struct err;
struct reader;

struct receive_opts {
	const char *device, *run;	/* theirs only, or NULL; NULL for the run:
					   that of the spool */
	struct admit admit;
	double silence, time;		/* seconds: without a byte in a shard;
					   without a shard; 0: any */
	int once;			/* one shard only */
	const struct cli *cli;		/* whom to speak for */
};

/* receive_all(s, in, o, to, e): every shard of in, to its end; `to' is the pipe
 * to the process that answers (answer_all).  -ERR_DATA at a
 * shard of another device or run than o's, or one that cannot be decoded or
 * takes too long: the connection ends, and it gets no receipt. */
int receive_all(const struct inbox *s, struct reader *in,
    const struct receive_opts *o, int to, struct err *e);

/* receive_publish(s, in, e): the shards of in are aggregates: each goes where
 * those who wait for its step look. */
int receive_publish(const struct inbox *s, struct reader *in, struct err *e);

#endif
