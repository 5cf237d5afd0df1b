#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "train_queue.h"

static struct message *
message_new(size_t n, struct ace_error *e)
{
	struct message *m = calloc(1, sizeof *m + n * sizeof *m->x);

	if (m == NULL) {
		e->code = 4;
		(void)snprintf(e->message, sizeof e->message, "out of memory");
	}
	return m;
}

static void
append(struct queue *q, struct message *m)
{
	*q->last = m;
	q->last = &m->next;
	(void)pthread_cond_broadcast(&q->change);
}

/* Wait until another round was sent or the queue ends.  Return 1 if an average is to be
 * read, else 0. */
static int
more(struct queue *q)
{
	int yes;

	(void)pthread_mutex_lock(&q->lock);
	while (q->taken == q->sent && !q->done)
		(void)pthread_cond_wait(&q->change, &q->lock);
	yes = q->taken < q->sent;
	(void)pthread_mutex_unlock(&q->lock);
	return yes;
}

static void *
take(void *arg)
{
	struct queue *q = arg;
	struct ace_error e = { 0, "" };
	struct message *m;
	int r = 0;

	while (r == 0 && more(q)) {
		if ((m = message_new(q->n, &e)) == NULL)
			r = -4;
		else
			r = link_receive(q->link, q->taken, m->x, &m->word,
			    &e);
		(void)pthread_mutex_lock(&q->lock);
		if (r == 0) {
			append(q, m);
			q->taken++;
		} else {
			free(m);
			q->error = r;
			q->why = e;
			(void)pthread_cond_broadcast(&q->change);
		}
		(void)pthread_mutex_unlock(&q->lock);
	}
	return NULL;
}

int
queue_init(struct queue *q, struct link *link, size_t n, uint64_t from,
    struct ace_error *e)
{
	memset(q, 0, sizeof *q);
	q->link = link;
	q->sent = q->taken = from;
	q->n = n;
	q->last = &q->first;
	(void)pthread_mutex_init(&q->lock, NULL);
	(void)pthread_cond_init(&q->change, NULL);
	if (link == NULL)
		return 0;
	if (pthread_create(&q->thread, NULL, take, q) != 0) {
		e->code = 4;
		(void)snprintf(e->message, sizeof e->message,
		    "cannot start a thread");
		return -4;
	}
	q->running = 1;
	return 0;
}

void
queue_sent(struct queue *q)
{
	(void)pthread_mutex_lock(&q->lock);
	q->sent++;
	(void)pthread_cond_broadcast(&q->change);
	(void)pthread_mutex_unlock(&q->lock);
}

int
queue_put(struct queue *q, const float *x, struct ace_error *e)
{
	struct message *m = message_new(q->n, e);

	if (m == NULL)
		return -4;
	memcpy(m->x, x, q->n * sizeof *x);
	append(q, m);
	return 0;
}

int
queue_get(struct queue *q, struct message **m, struct ace_error *e)
{
	int r = 0;

	(void)pthread_mutex_lock(&q->lock);
	while (q->first == NULL && q->error == 0 && q->running)
		(void)pthread_cond_wait(&q->change, &q->lock);
	*m = q->first;
	if (q->first == NULL) {
		*e = q->why;
		r = q->error;
	} else if ((q->first = q->first->next) == NULL)
		q->last = &q->first;
	(void)pthread_mutex_unlock(&q->lock);
	return r;
}

void
queue_end(struct queue *q)
{
	if (!q->running)
		return;
	(void)pthread_mutex_lock(&q->lock);
	q->done = 1;
	(void)pthread_cond_broadcast(&q->change);
	(void)pthread_mutex_unlock(&q->lock);
	(void)pthread_join(q->thread, NULL);
	q->running = 0;
}

void
queue_release(struct queue *q)
{
	struct message *m;

	if (q->running) {
		/* the thread may wait for a pipe without a writer */
		(void)pthread_cancel(q->thread);
		(void)pthread_join(q->thread, NULL);
	}
	while ((m = q->first) != NULL) {
		q->first = m->next;
		free(m);
	}
}
