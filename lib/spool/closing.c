#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/mono.h"
#include "base/scan.h"
#include "base/temp.h"
#include "spool/closing.h"

/* ---- runs and steps ---- */

struct closing_run {
	const struct inbox *s;
	char *name;
	int n;
};

/* The directory's name may be a hash: the real one is in the schema's file,
 * which comes before the first shard. */
static int
closing_each_run(void *arg, const char *name, struct err *e)
{
	struct closing_run *r = arg;
	size_t n = strlen(r->s->state.dir) + strlen(name) + 32;
	char *path = alloc_get(n, 1, e);
	int k;

	if (path == NULL)
		return -ERR_SYS;
	(void)snprintf(path, n, "%s/%s/schema.aceg", r->s->state.dir, name);
	if (access(path, F_OK) < 0)
		k = errno == ENOENT || errno == ENOTDIR ? 0 :
		    err_sys(e, "'%s'", path);
	else if (r->n++ == 0)
		k = ledger_run(path, &r->name, e);
	else
		k = 0;
	alloc_free(path);
	return k;
}

char *
closing_run(const struct inbox *s, int *several, struct err *e)
{
	struct closing_run r = { s, NULL, 0 };

	*several = 0;
	if (scan(s->state.dir, closing_each_run, &r, e) < 0 ||
	    r.n != 1) {
		*several = r.n > 1;
		alloc_free(r.name);
		return NULL;
	}
	return r.name;
}

struct closing_step {
	uint64_t after, best;
	int any, found;
};

static int
closing_each_step(void *arg, const char *name, struct err *e)
{
	struct closing_step *s = arg;
	unsigned long long v;
	char *end;

	(void)e;
	if (name[0] < '0' || name[0] > '9')
		return 0;
	v = strtoull(name, &end, 10);
	if (*end != '\0' || (!s->any && v <= s->after))
		return 0;
	if (!s->found || v < s->best) {
		s->best = v;
		s->found = 1;
	}
	return 0;
}

/* The first step after *step, or any, that has a directory: 1, or 0. */
static int
closing_next(const struct inbox *s, const char *run, uint64_t *step,
    struct err *e)
{
	struct closing_step q = { *step, 0, *step == UINT64_MAX, 0 };
	char *path = inbox_path(s, run, NULL, "", e);
	int r;

	if (path == NULL)
		return -ERR_SYS;
	r = scan(path, closing_each_step, &q, e);
	alloc_free(path);
	if (r == 0 && q.found)
		*step = q.best;
	return r < 0 ? r : q.found;
}

/* ---- the shards of a step ---- */

struct closing_list {
	const char *dir;
	const struct ledger *have;	/* looked at before, or NULL */
	struct ledger *l;		/* NULL: only count */
	size_t n;
};

static int
closing_is_shard(const char *name)
{
	size_t n = strlen(name);

	return n > 5 && strcmp(name + n - 5, ".aceg") == 0 &&
	    strcmp(name, "aggregate.aceg") != 0;
}

static int
closing_each_shard(void *arg, const char *name, struct err *e)
{
	struct closing_list *c = arg;
	const struct ledger *h = c->have;
	struct receipt r;
	char *path;
	size_t i, n;
	int k;

	if (!closing_is_shard(name))
		return 0;
	c->n++;
	if (c->l == NULL)
		return 0;
	for (i = 0; h != NULL && i < h->n; i++)
		if (strcmp(h->name[i], name) == 0)
			return ledger_add(c->l, &h->r[i], name, e);
	n = strlen(c->dir) + strlen(name) + 1;
	if ((path = alloc_get(n, 1, e)) == NULL)
		return -ERR_SYS;
	(void)snprintf(path, n, "%s%s", c->dir, name);
	k = ledger_shard(path, &r, e);
	alloc_free(path);
	return k < 0 ? k : ledger_add(c->l, &r, name, e);
}

/* How many are there; with l the list, which names what `have' names without
 * reading it again. */
static int
closing_list(const struct inbox *s, const char *run, uint64_t step,
    const struct ledger *have, struct ledger *l, size_t *n, struct err *e)
{
	char *path = inbox_path(s, run, &step, "", e);
	struct closing_list c = { path, have, l, 0 };
	int r;

	if (path == NULL)
		return -ERR_SYS;
	r = scan(path, closing_each_shard, &c, e);
	alloc_free(path);
	*n = c.n;
	return r;
}

static int
closing_has(const struct inbox *s, const char *run, uint64_t step,
    const char *name, struct err *e)
{
	char *path = inbox_path(s, run, &step, name, e);
	int r;

	if (path == NULL)
		return -ERR_SYS;
	r = access(path, F_OK) == 0;
	if (r == 0 && errno != ENOENT)
		r = err_sys(e, "'%s'", path);
	alloc_free(path);
	return r;
}

static int
closing_order(const struct receipt *a, const struct receipt *b)
{
	return memcmp(a->device, b->device, SHARD_ID);
}

/* Insertion: receipts and file names move together, steps are small. */
static void
closing_sort(struct ledger *l)
{
	char name[LEDGER_NAME];
	struct receipt r;
	size_t i, j;

	for (i = 1; i < l->n; i++) {
		r = l->r[i];
		memcpy(name, l->name[i], LEDGER_NAME);
		for (j = i; j > 0 &&
		    closing_order(&l->r[j - 1], &r) > 0; j--) {
			l->r[j] = l->r[j - 1];
			memcpy(l->name[j], l->name[j - 1], LEDGER_NAME);
		}
		l->r[j] = r;
		memcpy(l->name[j], name, LEDGER_NAME);
	}
}

/* The list of a manifest has receipts only; files are found by them. */
static int
closing_names(const struct inbox *s, const char *run, uint64_t step,
    struct ledger *l, struct err *e)
{
	struct ledger have;
	size_t i, j, n;
	int r;

	memset(&have, 0, sizeof(have));
	if ((r = closing_list(s, run, step, NULL, &have, &n, e)) == 0)
		for (i = 0; i < l->n && r == 0; i++) {
			for (j = 0; j < have.n; j++)
				if (closing_order(&l->r[i],
				    &have.r[j]) == 0)
					break;
			if (j == have.n || memcmp(l->r[i].digest,
			    have.r[j].digest, SHARD_DIGEST) != 0)
				r = err_set(e, ERR_DATA, "mismatch: a shard in "
				    "the manifest of step %llu is not in the "
				    "spool", (unsigned long long)step);
			else
				memcpy(l->name[i], have.name[j], LEDGER_NAME);
		}
	ledger_release(&have);
	return r;
}

/* ---- closing ---- */

/* The first step after `after' that has shards: 1, with *n of them, SIZE_MAX
 * when it is closed already; 0 there is none. */
static int
closing_first(const struct inbox *s, const char *run, uint64_t after,
    uint64_t *step, size_t *n, struct err *e)
{
	int r;

	*step = after;
	while ((r = closing_next(s, run, step, e)) > 0) {
		if ((r = closing_has(s, run, *step, "manifest", e)) < 0)
			return r;
		if (r > 0) {
			*n = SIZE_MAX;
			return 1;
		}
		if ((r = closing_list(s, run, *step, NULL, NULL, n, e)) < 0)
			return r;
		if (*n != 0)
			return 1;
	}
	return r;
}

/* What killed processes left. */
static void
closing_sweep(const struct inbox *s, const char *run, const uint64_t *step)
{
	char *path = inbox_path(s, run, step, "", NULL);

	if (path != NULL)
		temp_sweep(path);
	alloc_free(path);
}

/* Under the run's lock alone.  `closed' first: then there is no moment at
 * which a step before this one could still grow. */
static int
closing_write(const struct inbox *s, const char *run, uint64_t step,
    const struct ledger *seen, struct ledger *l, struct err *e)
{
	char *path = inbox_path(s, run, &step, "manifest", e);
	char *floor = inbox_path(s, run, NULL, "closed", e);
	size_t n;
	int r = -ERR_SYS;

	/* what the manifest lists is durable before it is: who linked it may
	 * have died in between */
	if (path != NULL && floor != NULL &&
	    (r = closing_list(s, run, step, seen, l, &n, e)) == 0 &&
	    (s->sync != IO_SYNC_FULL || (r = io_sync_path(path, e)) == 0) &&
	    (r = ledger_set_number(floor, step, s->sync, e)) == 0) {
		closing_sort(l);
		r = ledger_write(l, path, s->sync, e);
		closing_sweep(s, run, NULL);
		closing_sweep(s, run, &step);
	}
	alloc_free(path);
	alloc_free(floor);
	return r;
}

/* Closes step, the first after `after': 0; 1 a shard of a step before it came
 * in between, look again. */
static int
closing_close(const struct inbox *s, const char *run, uint64_t after,
    uint64_t step, struct ledger *l, struct err *e)
{
	struct ledger seen;
	uint64_t first;
	size_t n;
	int fd, r;

	memset(&seen, 0, sizeof(seen));
	memset(l, 0, sizeof(*l));
	/* most of the reading is done while others may still add */
	if ((r = closing_list(s, run, step, NULL, &seen, &n, e)) == 0 &&
	    (r = inbox_lock(s, run, LOCK_EX, &fd, e)) == 0) {
		if ((r = closing_first(s, run, after, &first, &n, e)) > 0)
			r = first == step ?
			    closing_write(s, run, step, &seen, l, e) : 1;
		(void)close(fd);
	}
	ledger_release(&seen);
	return r;
}

static int
closing_again(const struct inbox *s, const char *run, uint64_t step,
    struct ledger *l, struct err *e)
{
	char *path = inbox_path(s, run, &step, "manifest", e);
	int r;

	memset(l, 0, sizeof(*l));
	if (path == NULL)
		return -ERR_SYS;
	if ((r = ledger_read(l, path, e)) > 0)
		r = closing_names(s, run, step, l, e);
	alloc_free(path);
	return r;
}

/* A step that is being waited for. */
struct closing_watch {
	uint64_t step;
	double since;		/* 0: nothing is there yet */
};

/* 1: it is time to close it. */
static int
closing_ripe(struct closing_watch *c, const struct closing_rule *w,
    uint64_t step, size_t n, struct err *e)
{
	size_t want = w->want != 0 ? w->want : w->quorum;

	if (c->since == 0 || c->step != step) {
		c->step = step;
		c->since = mono_now();
	}
	if (n >= want)
		return 1;
	if (w->deadline <= 0 || mono_now() - c->since < w->deadline)
		return 0;
	if (n >= w->quorum)
		return 1;
	return err_set(e, ERR_REFUSED, "quorum not reached: %zu of %zu shards "
	    "of step %llu after %g s", n, w->quorum, (unsigned long long)step,
	    w->deadline);
}

int
closing_wait(const struct inbox *s, const char *run, uint64_t *step,
    const struct closing_rule *w, int out, struct ledger *l, struct err *e)
{
	struct closing_watch c = { 0, 0 };
	uint64_t at;
	size_t n;
	int r, ms = 1;

	memset(l, 0, sizeof(*l));
	for (;;) {
		if ((r = closing_first(s, run, *step, &at, &n, e)) > 0) {
			if (n == SIZE_MAX) {
				r = closing_again(s, run, at, l, e);
				break;
			}
			if ((r = closing_ripe(&c, w, at, n, e)) > 0 &&
			    (r = closing_close(s, run, *step, at, l, e)) <= 0)
				break;
		}
		if (r < 0 || (r = fd_orphan(out, ms, e)) < 0)
			return r;
		if (ms < 10)
			ms++;
	}
	*step = at;
	return r;
}

/* ---- closed ---- */

int
closing_published(const struct inbox *s, const char *run, uint64_t step,
    int out, struct err *e)
{
	int ms = 1, r, gone = 0;

	while ((r = closing_has(s, run, step, "aggregate.aceg", e)) == 0) {
		if (gone < 0)
			return gone;
		/* look once more: it may have done its work and ended */
		if ((gone = fd_orphan(out, ms, e)) == 0 && ms < 10)
			ms++;
	}
	return r < 0 ? r : 0;
}

int
closing_done(const struct inbox *s, const char *run, uint64_t step,
    struct err *e)
{
	char *last = inbox_path(s, run, NULL, "last", e);
	uint64_t before;
	int r = last != NULL ? inbox_last(s, run, &before, e) : -ERR_SYS;

	/* the one before too: who published it may have lived longer than who
	 * closed it, and have been killed since */
	if (r > 0 && before != step)
		closing_sweep(s, run, &before);
	if (r >= 0)
		r = ledger_set_number(last, step, s->sync, e);
	closing_sweep(s, run, &step);
	alloc_free(last);
	return r;
}

static int
closing_remove(void *arg, const char *name, struct err *e)
{
	const char *dir = arg;
	char path[PATH_MAX];

	if (snprintf(path, sizeof(path), "%s%s", dir, name) < PATH_MAX &&
	    unlink(path) < 0 && errno != ENOENT)
		return err_sys(e, "'%s'", path);
	return 0;
}

static int
closing_forget_one(const struct inbox *s, const char *run, uint64_t step,
    struct err *e)
{
	char name[32];
	char *dir = inbox_path(s, run, &step, "", e);
	char *from = inbox_path(s, run, &step, "manifest", e);
	char *old = inbox_path(s, run, NULL, "old", e), *to = NULL;
	int r = -ERR_SYS;

	(void)snprintf(name, sizeof(name), "old/%llu",
	    (unsigned long long)step);
	if (dir == NULL || from == NULL || old == NULL ||
	    (to = inbox_path(s, run, NULL, name, e)) == NULL)
		goto out;
	r = 0;
	if (access(from, F_OK) == 0) {
		if ((mkdir(old, 0700) < 0 && errno != EEXIST) ||
		    rename(from, to) < 0)
			r = err_sys(e, "'%s'", to);
		else if (s->sync == IO_SYNC_FULL &&
		    (r = io_sync_path(to, e)) == 0)
			r = io_sync_path(old, e);
	} else if (errno != ENOENT) {
		r = err_sys(e, "'%s'", from);
	}
	if (r == 0 && (r = scan(dir, closing_remove, dir, e)) == 0)
		(void)rmdir(dir);
out:
	alloc_free(dir);
	alloc_free(from);
	alloc_free(old);
	alloc_free(to);
	return r;
}

int
closing_forget(const struct inbox *s, const char *run, uint64_t limit,
    struct err *e)
{
	uint64_t step = UINT64_MAX;
	int r;

	while ((r = closing_next(s, run, &step, e)) > 0 && step <= limit)
		if ((r = closing_forget_one(s, run, step, e)) < 0)
			return r;
	return r < 0 ? r : 0;
}
