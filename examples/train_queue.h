/*
 * A queue of averages until they are applied to the model, in order.  A round's average may
 * be applied some rounds later (DD-EF-SGD, arXiv 2507.17346); until then it is in this
 * queue or in the pipe.
 *
 * A thread reads the average of each round that this device has sent as soon as it comes, so
 * that the program that writes it does not wait while the device computes or sends a later one.
 */
#ifndef TRAIN_QUEUE_H
#define TRAIN_QUEUE_H

#include <pthread.h>

#include "train_link.h"

struct message {
	struct message *next;
	struct link_word word;	/* decisions of the policy */
	float x[];		/* f32[n] */
};

struct queue {
	struct link *link;	/* NULL: only queue_put adds averages */
	size_t n;		/* values of a message */
	struct message *first, **last;
	uint64_t sent, taken;	/* the next round to be sent; the next average to be read */
	int done, error;
	struct ace_error why;
	pthread_t thread;
	int running;
	pthread_mutex_t lock;
	pthread_cond_t change;
};

/* queue_init(q, link, n, from, e): read averages of n values from link, of round
 * `from' and later. link NULL: the queue holds only what queue_put adds. */
int queue_init(struct queue *q, struct link *link, size_t n, uint64_t from,
    struct ace_error *e);
/* queue_sent(q): note that one more round was sent, so one more average may come. */
void queue_sent(struct queue *q);
/* queue_put(q, x, e): add an average that was formed in this process. */
int queue_put(struct queue *q, const float *x, struct ace_error *e);
/* queue_get(q, m, e): wait for the next average, which the caller frees with free. Return 0, or
 * the error that ended the thread. */
int queue_get(struct queue *q, struct message **m, struct ace_error *e);
/* queue_end: wait for the thread's end; call it after the last queue_get. queue_release
 * ends the thread in any state, and frees the averages. */
void queue_end(struct queue *q);
void queue_release(struct queue *q);

#endif
