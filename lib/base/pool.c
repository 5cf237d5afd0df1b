#include <pthread.h>
#include <sched.h>
#include <signal.h>

#include "base/alloc.h"
#include "base/err.h"
#include "base/pool.h"

struct pool_thread {
	struct pool *p;
	unsigned who;
	pthread_t id;
};

struct pool {
	unsigned size;			/* threads, including the caller */
	unsigned started;		/* other threads that were started */
	int tried;			/* 1: the start was attempted */
	struct pool_thread *thread;	/* [size - 1] */
	pthread_mutex_t shared;		/* taken by pool_lock */
	pthread_mutex_t m;		/* protects all members below */
	pthread_cond_t work, done;
	int quit;
	/* the current job */
	pool_work *fn;
	void *arg;
	size_t n, next;			/* n: number of items; next: the next one to start */
	unsigned busy;			/* number of threads that work on an item */
	int r;				/* error of item `bad'; 0: none has failed */
	size_t bad;			/* first item, in order, that failed */
	struct err e;
};

/* Do items until none is left; p->m is locked before and after. */
static void
pool_take(struct pool *p, unsigned who)
{
	struct err own;
	size_t i;
	int r;

	while (p->next < p->n) {
		i = p->next++;
		p->busy++;
		(void)pthread_mutex_unlock(&p->m);
		own = (struct err)ERR_INIT;
		r = p->fn(p->arg, who, i, &own);
		(void)pthread_mutex_lock(&p->m);
		p->busy--;
		if (r < 0 && (p->r == 0 || i < p->bad)) {
			p->r = r;
			p->bad = i;
			p->e = own;
		}
		if (r < 0)
			p->next = p->n;	/* start no more items; running ones continue */
	}
	if (p->busy == 0)
		(void)pthread_cond_signal(&p->done);
}

static void *
pool_main(void *arg)
{
	struct pool_thread *t = arg;
	struct pool *p = t->p;

	(void)pthread_mutex_lock(&p->m);
	while (!p->quit) {
		if (p->next < p->n)
			pool_take(p, t->who);
		else
			(void)pthread_cond_wait(&p->work, &p->m);
	}
	(void)pthread_mutex_unlock(&p->m);
	return NULL;
}

/* Start the other threads, or as many as the system allows. */
static void
pool_start(struct pool *p)
{
	sigset_t all, was;
	unsigned i;

	p->tried = 1;
	(void)sigfillset(&all);
	if (pthread_sigmask(SIG_SETMASK, &all, &was) != 0)
		return;
	for (i = 0; i + 1 < p->size; i++) {
		p->thread[i] = (struct pool_thread){ .p = p, .who = i + 1 };
		if (pthread_create(&p->thread[i].id, NULL, pool_main,
		    &p->thread[i]) != 0)
			break;
		p->started++;
	}
	(void)pthread_sigmask(SIG_SETMASK, &was, NULL);
}

static unsigned
pool_processors(void)
{
	cpu_set_t may;
	int n;

	if (sched_getaffinity(0, sizeof(may), &may) < 0)
		return 1;
	n = CPU_COUNT(&may);
	return n < POOL_USUAL ? (unsigned)n : POOL_USUAL;
}

int
pool_new(struct pool **out, unsigned threads, struct err *e)
{
	struct pool *p = alloc_get(1, sizeof(*p), e);

	*out = NULL;
	if (p == NULL)
		return -ERR_SYS;
	if (threads == 0)
		threads = pool_processors();
	p->size = threads < 1 ? 1 : threads > POOL_MOST ? POOL_MOST : threads;
	if ((p->thread = alloc_get(p->size, sizeof(*p->thread), e)) == NULL) {
		alloc_free(p);
		return -ERR_SYS;
	}
	(void)pthread_mutex_init(&p->shared, NULL);
	(void)pthread_mutex_init(&p->m, NULL);
	(void)pthread_cond_init(&p->work, NULL);
	(void)pthread_cond_init(&p->done, NULL);
	*out = p;
	return 0;
}

void
pool_free(struct pool *p)
{
	unsigned i;

	if (p == NULL)
		return;
	(void)pthread_mutex_lock(&p->m);
	p->quit = 1;
	(void)pthread_cond_broadcast(&p->work);
	(void)pthread_mutex_unlock(&p->m);
	for (i = 0; i < p->started; i++)
		(void)pthread_join(p->thread[i].id, NULL);
	(void)pthread_mutex_destroy(&p->shared);
	(void)pthread_mutex_destroy(&p->m);
	(void)pthread_cond_destroy(&p->work);
	(void)pthread_cond_destroy(&p->done);
	alloc_free(p->thread);
	alloc_free(p);
}

unsigned
pool_size(const struct pool *p)
{
	return p->size;
}

int
pool_begin(struct pool *p, size_t n, size_t values, pool_work *work, void *arg,
    struct err *e)
{
	size_t i;
	int r = 0;

	if (p->size == 1 || values < POOL_LITTLE) {
		for (i = 0; i < n && r == 0; i++)
			r = work(arg, 0, i, e);
		return r;
	}
	if (!p->tried)
		pool_start(p);
	(void)pthread_mutex_lock(&p->m);
	p->fn = work;
	p->arg = arg;
	p->n = n;
	p->next = 0;
	p->r = 0;
	(void)pthread_cond_broadcast(&p->work);
	(void)pthread_mutex_unlock(&p->m);
	return 0;
}

int
pool_run(struct pool *p, size_t n, size_t values, pool_work *work, void *arg,
    struct err *e)
{
	int r = pool_begin(p, n, n == 1 ? 0 : values, work, arg, e);

	(void)pthread_mutex_lock(&p->m);
	pool_take(p, 0);
	while (p->busy != 0)
		(void)pthread_cond_wait(&p->done, &p->m);
	p->n = p->next = 0;
	if (r == 0 && p->r < 0)
		r = err_move(e, &p->e);
	p->r = 0;
	(void)pthread_mutex_unlock(&p->m);
	return r;
}

int
pool_end(struct pool *p, struct err *e)
{
	/* a job without items changes nothing: only help and wait */
	return pool_run(p, 0, 0, NULL, NULL, e);
}

void
pool_lock(struct pool *p)
{
	(void)pthread_mutex_lock(&p->shared);
}

void
pool_unlock(struct pool *p)
{
	(void)pthread_mutex_unlock(&p->shared);
}
