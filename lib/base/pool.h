/*
 * Threads that share out the items of a job.  Which of them takes an item is
 * left to chance, so an item's result must depend on nothing but the item; what
 * has an order is done by the caller, before or after.
 *
 * The caller is one of the threads.  The others are started by the first job
 * that has work for them, with all signals blocked, so that signals are the
 * caller's.  Where the system refuses one there are fewer, and everything is
 * done all the same.  A job of so little work that it takes longer to wake them
 * is done by the caller alone.
 */
#ifndef ACE_POOL_H
#define ACE_POOL_H

#include <stddef.h>

struct err;
struct pool;

enum {
	POOL_MOST = 256,
	POOL_USUAL = 4,		/* unless more are asked for */
	POOL_LITTLE = 1 << 17	/* values that are no work to share */
};

/* pool_new(out, threads, e): at most so many, the caller among them, 1 to
 * POOL_MOST; 0: as many as the processors that this process may use, at most
 * POOL_USUAL. */
int pool_new(struct pool **out, unsigned threads, struct err *e);
void pool_free(struct pool *p);
/* pool_size(p): how many items may be at work at a time. */
unsigned pool_size(const struct pool *p);

/* A pool_work function does item i of a job; who, below pool_size, is the thread
 * that does it, for scratch of its own. */
typedef int pool_work(void *arg, unsigned who, size_t i, struct err *e);

/* pool_run(p, n, values, work, arg, e): items 0 to n - 1, which have about so many
 * values together, and returns when all are done: 0, or the error of the first
 * item, in their order, that has one. */
int pool_run(struct pool *p, size_t n, size_t values, pool_work *work,
    void *arg, struct err *e);

/*
 * The same while the caller goes on: pool_begin returns at once where there is
 * another thread, and pool_end when all are done, of which the caller does what is
 * left then.  With one thread, or little work, pool_begin does it.  One job at a
 * time; to end none is nothing.
 */
int pool_begin(struct pool *p, size_t n, size_t values, pool_work *work,
    void *arg, struct err *e);
int pool_end(struct pool *p, struct err *e);

/* Around what the items of a job share. */
void pool_lock(struct pool *p);
void pool_unlock(struct pool *p);

#endif
