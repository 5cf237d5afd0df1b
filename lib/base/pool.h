/*
 * Threads that share the items of a job.  Any thread may do an item, so an item's result must
 * depend on the item alone.  Before or after the job, the caller does what needs an order.
 *
 * The caller is one of the threads.  The first job with enough work starts the others, with
 * all signals blocked, so that signals go to the caller.  If the system refuses a thread,
 * there are fewer, and all work is still done.  The caller does small jobs alone.
 */
#ifndef ACE_POOL_H
#define ACE_POOL_H

#include <stddef.h>

struct err;
struct pool;

enum {
	POOL_MOST = 256,
	POOL_USUAL = 4,		/* most threads, unless the user asks for more */
	POOL_LITTLE = 1 << 17	/* number of values below which a job is not shared */
};

/* Create a pool of at most `threads' threads, 1 to POOL_MOST, including the caller.
 * threads 0: one per processor that this process may use, at most POOL_USUAL. */
int pool_new(struct pool **out, unsigned threads, struct err *e);
void pool_free(struct pool *p);
/* Return how many items may run at the same time. */
unsigned pool_size(const struct pool *p);

/* Do item i of a job.  who, below pool_size, is the number of the thread, to select its
 * own scratch memory. */
typedef int pool_work(void *arg, unsigned who, size_t i, struct err *e);

/* Do items 0 to n - 1, which have about `values' values together.  Return 0 when all are
 * done, or the error of the first item, in order, that failed. */
int pool_run(struct pool *p, size_t n, size_t values, pool_work *work,
    void *arg, struct err *e);

/*
 * Do a job in the background: pool_begin starts the job and returns, and pool_end
 * helps with what is left and returns when all is done.  With one thread or little
 * work, pool_begin does all of it and returns its error.  One job at a time; pool_end
 * without a job does nothing.
 */
int pool_begin(struct pool *p, size_t n, size_t values, pool_work *work,
    void *arg, struct err *e);
int pool_end(struct pool *p, struct err *e);

/* Lock and unlock what the items of a job share. */
void pool_lock(struct pool *p);
void pool_unlock(struct pool *p);

#endif
