#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>

#include "base/err.h"
#include "base/pool.h"
#include "../tap.h"

enum { ITEMS = 1000, SLOTS = POOL_MOST };

/* allowed: threads that our pthread_create still starts, -1: any number; asked: its calls. */
static int allowed = -1, asked;
static sigset_t masks[SLOTS];

int
pthread_create(pthread_t *id, const pthread_attr_t *a, void *(*run)(void *),
    void *arg)
{
	int (*real)(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *);
	void *sym = dlsym(RTLD_NEXT, "pthread_create");

	asked++;
	if (allowed == 0)
		return EAGAIN;
	if (allowed > 0)
		allowed--;
	memcpy(&real, &sym, sizeof(real));
	return real(id, a, run, arg);
}

static struct err e = ERR_INIT;

struct job {
	struct pool *pool;
	unsigned char done[ITEMS];
	unsigned used[SLOTS];
	unsigned most;		/* largest `who' seen */
	size_t bad;		/* this item and all after it fail; 0: none */
	long sum;
};

static int
work(void *arg, unsigned who, size_t i, struct err *err)
{
	struct job *j = arg;

	j->done[i]++;
	pool_lock(j->pool);
	j->used[who]++;
	if (who > j->most)
		j->most = who;
	j->sum += (long)i;
	pool_unlock(j->pool);
	(void)pthread_sigmask(SIG_BLOCK, NULL, &masks[who]);
	if (j->bad != 0 && i >= j->bad)
		return err_set(err, ERR_DATA, "item %zu", i);
	return 0;
}

static int
all_once(const struct job *j, size_t n)
{
	size_t i;

	for (i = 0; i < ITEMS; i++)
		if (j->done[i] != (i < n))
			return 0;
	return 1;
}

/* Test pool_begin and pool_end, if pthread_create starts `given' threads (-1: any number). */
static void
test_beside(unsigned threads, int given, const char *what)
{
	static struct job j;
	int r;

	memset(&j, 0, sizeof(j));
	allowed = given;
	ok(pool_new(&j.pool, threads, &e) == 0, "%s", what);
	ok(pool_end(j.pool, &e) == 0, "ending without a job does nothing");
	r = pool_begin(j.pool, ITEMS, ITEMS * POOL_LITTLE, work, &j, &e);
	ok(r == 0 && pool_end(j.pool, &e) == 0 && all_once(&j, ITEMS),
	    "every item is done once");
	memset(j.done, 0, sizeof(j.done));
	r = pool_begin(j.pool, 7, 0, work, &j, &e);
	ok(r == 0 && pool_end(j.pool, &e) == 0 && all_once(&j, 7),
	    "little work, too");
	j.bad = 500;
	e = (struct err)ERR_INIT;
	r = pool_begin(j.pool, ITEMS, ITEMS * POOL_LITTLE, work, &j, &e);
	if (r == 0)
		r = pool_end(j.pool, &e);
	ok(r == -ERR_DATA && strcmp(ERR_MSG(&e), "item 500") == 0,
	    "the first error: %s", ERR_MSG(&e));
	j.bad = 0;
	r = pool_begin(j.pool, 3, 3 * POOL_LITTLE, work, &j, &e);
	ok(r == 0 && pool_end(j.pool, &e) == 0, "and then no job is left");
	pool_free(j.pool);
	allowed = -1;
}

static void
test_work(unsigned threads, int given, const char *what)
{
	static struct job j;
	struct pool *p;
	int k, good = 1;

	allowed = given;
	if (pool_new(&p, threads, &e) < 0)
		return;
	for (k = 0; k < 50; k++) {
		memset(&j, 0, sizeof(j));
		j.pool = p;
		good = good && pool_run(p, ITEMS, POOL_LITTLE, work, &j, &e) == 0 &&
		    all_once(&j, ITEMS) && j.sum == ITEMS * (ITEMS - 1L) / 2 &&
		    j.most < threads;
		if (given >= 0)
			good = good && j.most <= (unsigned)given;
	}
	ok(good && e.code == ERR_OK, "%u threads, %s: each item once, fifty "
	    "times", threads, what);
	memset(&j, 0, sizeof(j));
	j.pool = p;
	ok(pool_run(p, 0, POOL_LITTLE, work, &j, &e) == 0 && all_once(&j, 0) &&
	    pool_run(p, 1, POOL_LITTLE, work, &j, &e) == 0 && all_once(&j, 1) &&
	    j.used[0] == 1, "none, and one, which is the caller's");
	pool_free(p);
	allowed = -1;
}

/* The error of the first item in order is returned, whichever failed first in time. */
static void
test_error(unsigned threads)
{
	static struct job j;
	struct pool *p;
	int k, good = 1;

	if (pool_new(&p, threads, &e) < 0)
		return;
	for (k = 0; k < 200; k++) {
		memset(&j, 0, sizeof(j));
		j.pool = p;
		j.bad = 17;
		err_clear(&e);
		good = good && pool_run(p, 200, POOL_LITTLE, work, &j,
		    &e) == -ERR_DATA && strcmp(ERR_MSG(&e), "item 17") == 0;
	}
	ok(good, "%u threads: the first error in order", threads);
	err_clear(&e);
	memset(&j, 0, sizeof(j));
	j.pool = p;
	ok(pool_run(p, ITEMS, POOL_LITTLE, work, &j, &e) == 0 && all_once(&j, ITEMS),
	    "and the next job has none");
	pool_free(p);
}

/* By default a pool has a thread per processor, at most 4; little work starts none. */
TEST(test_usual)
{
	static struct job j;
	cpu_set_t may, one;
	struct pool *p;
	size_t i;

	if (pool_new(&p, 0, &e) < 0 || sched_getaffinity(0, sizeof(may), &may) < 0)
		return;
	ok(pool_size(p) == (unsigned)(CPU_COUNT(&may) < POOL_USUAL ?
	    CPU_COUNT(&may) : POOL_USUAL), "as many as processors: %u", pool_size(p));
	pool_free(p);
	for (i = 0; !CPU_ISSET(i, &may); i++)
		continue;
	CPU_ZERO(&one);
	CPU_SET(i, &one);
	(void)sched_setaffinity(0, sizeof(one), &one);
	(void)pool_new(&p, 0, &e);
	ok(pool_size(p) == 1, "one thread on one processor");
	pool_free(p);
	(void)sched_setaffinity(0, sizeof(may), &may);
	(void)pool_new(&p, 4, &e);
	j.pool = p;
	asked = 0;
	ok(pool_run(p, ITEMS, POOL_LITTLE - 1, work, &j, &e) == 0 &&
	    all_once(&j, ITEMS) && j.used[0] == ITEMS && asked == 0,
	    "no thread is started for little work");
	pool_free(p);
}

TEST(test_signals)
{
	static struct job j;
	struct pool *p;
	unsigned i, blocked = 0, others = 0;

	if (pool_new(&p, 4, &e) < 0)
		return;
	j.pool = p;
	for (i = 0; i < 1000 && j.most == 0; i++) {
		memset(j.done, 0, sizeof(j.done));
		(void)pool_run(p, ITEMS, POOL_LITTLE, work, &j, &e);
	}
	for (i = 1; i < 4; i++)
		if (j.used[i] > 0) {
			others++;
			blocked += sigismember(&masks[i], SIGTERM) == 1 &&
			    sigismember(&masks[i], SIGUSR1) == 1;
		}
	ok(others > 0 && blocked == others && sigismember(&masks[0],
	    SIGTERM) == 0, "threads block all signals");
	pool_free(p);
}

int
main(void)
{
	struct pool *p;

	test_work(1, -1, "one");
	ok(asked == 0, "a pool of one starts no thread");
	test_work(2, -1, "two");
	test_work(8, -1, "eight");
	test_work(8, 3, "of which three are given");
	test_work(8, 0, "of which none is given");
	test_beside(1, -1, "one, beside");
	test_beside(4, -1, "four");
	test_beside(4, 2, "of which two are given");
	test_beside(4, 0, "of which none is given");
	test_error(1);
	test_error(6);
	run_tests();
	asked = 0;
	ok(pool_new(&p, 8, &e) == 0 && asked == 0, "no thread is started before a job");
	pool_free(p);
	pool_free(NULL);
	return done_testing();
}
