/*
 * The connection of a device.  Each shard is read to its verified end, put into the spool
 * and given a verdict.  The device gets a receipt for each shard and, if it asked for
 * averages, the average of the shard's step as soon as there is one.
 *
 * One process reads the shards and another answers; the first tells the second through a
 * pipe what to answer.  A single process would block if the device writes its next shard
 * while the answer to the last one is on its way.
 */
#ifndef ACE_RECEIVE_H
#define ACE_RECEIVE_H

#include <stdint.h>

#include "spool/limits.h"
#include "spool/spool.h"
#include "spool/steps.h"

struct cli;
struct err;
struct reader;
struct reader_opts;
struct writer;

/* Bytes of a tensor table, unpacked, at most.  The table of a large model takes a hundredth
 * of this limit; without the limit each connection could make us allocate half a gigabyte. */
enum { RECEIVE_TABLE = 16 << 20 };

struct receive_opts {
	const char *device, *run;	/* the only ones whose shards are taken; device
					   NULL: any; run NULL: the spool's run */
	struct limits limits;
	int tells;			/* 1: answer requests for averages */
	const struct cli *cli;		/* the program, for messages */
};

/* receive_all(s, in, o, to, e): receive every shard of in, to the end of in; `to' is the
 * pipe to the process that answers (receive_answer).  -ERR_DATA: a shard is of another
 * device or run than o's, cannot be decoded, takes too long or is far too large;
 * -ERR_REFUSED: the spool has no room for it (limits_room).  The connection then ends, and
 * that shard gets no receipt. */
int receive_all(const struct spool *s, struct reader *in,
    const struct receive_opts *o, int to, struct err *e);

struct receive_answers {
	const struct spool *spool;
	struct steps given;		/* steps whose averages this connection
					 * has sent */
	int aggregate;			/* 1: averages and receipts; 0: receipts */
	const struct reader_opts *in;	/* how averages are read */
	struct writer *out;		/* writes to the device */
	double patience;		/* seconds until SIGALRM interrupts an
					 * answer that the device does not
					 * read; 0: none */
	int (*gave_up)(void *reading);	/* returns 1 if the reading process ended
					 * before all was read */
	void *reading;			/* argument of gave_up */
};

/* receive_answer(o, from, e): send the device the answers that come through the pipe `from', each
 * average once; then SIGALRM stays due, for the stream's end, which the caller writes.  Return 1
 * if the reading process ended before all was read. */
int receive_answer(struct receive_answers *o, int from, struct err *e);

/* receive_publish(s, in, e): put each shard of `in', an average, into the spool,
 * where the processes that answer devices wait for it.  The average that a step has
 * already stays; a different one is refused. */
int receive_publish(const struct spool *s, struct reader *in, struct err *e);

#endif
