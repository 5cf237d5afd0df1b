/*
 * The averages on their way to the model, in order.  A round's average may be
 * applied some rounds later (DD-EF-SGD, arXiv 2507.17346): until then it is
 * here or still in the pipe, and none is ever dropped.
 *
 * A thread takes them out of the pipe as they come, so that whoever sends them
 * never waits for a device that is just computing or sending.
 */
#ifndef TRAIN_QUEUE_H
#define TRAIN_QUEUE_H

#include <pthread.h>

#include "train_link.h"

struct message {
	struct message *next;
	struct link_word word;	/* of the policy */
	float x[];		/* f32[n] */
};

struct queue {
	struct link *link;	/* NULL: nothing comes, all is put */
	size_t n;		/* values of a message */
	struct message *first, **last;
	uint64_t sent, taken;	/* rounds sent; averages out of the pipe */
	int done, error;
	struct ace_error why;
	pthread_t thread;
	int running;
	pthread_mutex_t lock;
	pthread_cond_t change;
};

/* queue_init(q, link, n, from, e): averages of n values from link, of round
 * `from' and later, or, NULL, only what queue_put puts. */
int queue_init(struct queue *q, struct link *link, size_t n, uint64_t from,
    struct ace_error *e);
/* queue_sent(q): one more round was sent, so one more average may come. */
void queue_sent(struct queue *q);
/* queue_put(q, x, e): an average that was formed here. */
int queue_put(struct queue *q, const float *x, struct ace_error *e);
/* queue_get(q, m, e): waits for the next one; free() it. */
int queue_get(struct queue *q, struct message **m, struct ace_error *e);
/* After the last one was got.  queue_release ends it whatever it does. */
void queue_end(struct queue *q);
void queue_release(struct queue *q);

#endif
