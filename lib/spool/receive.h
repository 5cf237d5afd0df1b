/*
 * A device's connection.  Its shards go into the spool: each is read to its
 * verified end and gets its verdict.  What the device hears is a receipt for each,
 * and where it asked for it the step's aggregate as soon as there is one.
 *
 * Who reads the shards is another process than who answers, and tells that one
 * through a pipe: a device that writes its next shard while the answer to the last
 * one is on its way would otherwise block both.
 */
#ifndef ACE_RECEIVE_H
#define ACE_RECEIVE_H

#include <stdint.h>

#include "spool/admit.h"
#include "spool/inbox.h"
#include "spool/steps.h"

struct cli;
struct err;
struct reader;
struct reader_opts;
struct writer;

/* The most bytes of a tensor table, unpacked; that of a large model is a hundredth
 * of it.  Who is let in could otherwise ask for half a gigabyte with each
 * connection. */
enum { RECEIVE_TABLE = 16 << 20 };

struct receive_opts {
	const char *device, *run;	/* take shards of these only; NULL: of
					   any device, of the spool's run */
	struct admit admit;
	int tells;			/* what others know, to who asks */
	const struct cli *cli;		/* the program, for messages */
};

/* receive_all(s, in, o, to, e): every shard of in, to its end; `to' is the pipe
 * to the process that answers (receive_answer).  -ERR_DATA at a
 * shard of another device or run than o's, or one that cannot be decoded or
 * takes too long: the connection ends, and it gets no receipt. */
int receive_all(const struct inbox *s, struct reader *in,
    const struct receive_opts *o, int to, struct err *e);

struct receive_answers {
	const struct inbox *inbox;
	const struct admit *admit;
	struct steps given;		/* a number for each aggregate that it
					 * was handed */
	int aggregate;			/* not the receipts alone */
	const struct reader_opts *in;	/* for aggregates */
	struct writer *out;		/* to the device */
	double patience;		/* seconds after which SIGALRM comes in
					 * an answer that the device does not
					 * take; 0: none */
	int (*gave_up)(void *reading);	/* 1: the reading process ended before
					 * all was read */
	void *reading;
};

/* receive_answer(o, from, e): all that is told through `from' to the device, each
 * aggregate once, whatever comes twice.  1: the reading process ended before all was
 * read. */
int receive_answer(struct receive_answers *o, int from, struct err *e);

/* receive_publish(s, run, in, e): put each shard of `in', an average, into the spool,
 * where the processes that answer devices wait for it.  An average that is there already
 * is left as it is, and another one of its step is refused.  run: averages of other runs
 * are refused; NULL: of none. */
int receive_publish(const struct inbox *s, const char *run, struct reader *in,
    struct err *e);

#endif
