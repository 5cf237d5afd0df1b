/*
 * What a device hears: a receipt for each shard, and where it asked for it the
 * step's aggregate as soon as there is one.
 *
 * Who reads the shards is another process (receive_all), and tells this one
 * through a pipe: a device that writes its next shard while the answer to the
 * last one is on its way would otherwise block both.
 */
#ifndef ACE_ANSWER_H
#define ACE_ANSWER_H

#include "format/receipt.h"
#include "spool/inbox.h"

struct err;
struct io;
struct reader_opts;
struct writer;

/* What the reading process tells the answering one. */
struct answer {
	struct receipt r;
	char run[SHARD_NAME + 1];
	char device[SHARD_NAME + 1];	/* asks, from r.step on (join_answer);
					   "": it sent a shard */
	int end;		/* all was read; without it the answers are
				   an aborted stream */
};

int answer_tell(struct io *to, const struct answer *a, struct err *e);

struct answer_opts {
	const struct inbox *inbox;
	int aggregate;			/* not the receipts alone */
	const struct reader_opts *in;	/* for aggregates */
	struct writer *out;		/* to the device */
	double patience;		/* seconds after which SIGALRM comes in
					 * an answer that the device does not
					 * take; 0: none */
};

/* answer_all(o, from, e): all that is told through `from' to the device.  1: the
 * reading process ended before all was read. */
int answer_all(const struct answer_opts *o, int from, struct err *e);

#endif
