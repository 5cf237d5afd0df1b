#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/at.h"
#include "base/err.h"
#include "base/clock.h"
#include "base/compare.h"
#include "base/scan.h"
#include "base/temp.h"
#include "base/wait.h"
#include "spool/closing.h"
#include "spool/decide.h"
#include "spool/roster.h"
#include "spool/steps.h"
#include "spool/progress.h"

/* ---- the shards of a step ---- */

struct closing_list {
	const char *dir;
	const struct ledger *have;	/* looked at before, or NULL */
	size_t at;			/* where to look first */
	struct ledger *l;		/* NULL: only count */
	size_t n;
};

static int
closing_each_shard(void *arg, const char *name, struct err *e)
{
	struct closing_list *c = arg;
	const struct ledger *h = c->have;
	struct receipt r;
	char *path;
	size_t i, j, n;
	int k;

	if (!inbox_is_shard(name))
		return 0;
	c->n++;
	if (c->l == NULL)
		return 0;
	/* a directory is usually listed in the same order as the last time */
	for (i = 0; h != NULL && i < h->n; i++) {
		j = (c->at + i) % h->n;
		if (strcmp(h->name[j], name) == 0) {
			c->at = j + 1;
			return ledger_add(c->l, &h->r[j], name, e);
		}
	}
	n = strlen(c->dir) + strlen(name) + 1;
	if ((path = alloc_get(n, 1, e)) == NULL)
		return -ERR_SYS;
	(void)snprintf(path, n, "%s%s", c->dir, name);
	k = ledger_shard(path, &r, e);
	alloc_free(path);
	/* 0: it was removed meanwhile */
	return k <= 0 ? k : ledger_add(c->l, &r, name, e);
}

int
closing_list(const struct inbox *s, const char *run, uint64_t step,
    const struct ledger *have, struct ledger *l, size_t *n, struct err *e)
{
	char *path = inbox_path(s, run, &step, "", e);
	struct closing_list c = { path, have, 0, l, 0 };
	int r;

	if (path == NULL)
		return -ERR_SYS;
	r = scan(path, closing_each_shard, &c, e);
	alloc_free(path);
	if (n != NULL)
		*n = c.n;
	return r;
}

/* Find the files of the shards that a manifest lists, which holds receipts only.  A
 * shard that was set aside needs no file. */
static int
closing_names(const struct inbox *s, const char *run, struct ledger *l,
    struct err *e)
{
	struct ledger have;
	size_t i, j;
	int r = 0;

	memset(&have, 0, sizeof(have));
	for (i = 0; i < l->n && r == 0; i++)	/* in order of steps */
		if (i == 0 || l->r[i].step != l->r[i - 1].step)
			r = closing_list(s, run, l->r[i].step, NULL, &have, NULL, e);
	if (r == 0)
		r = ledger_sort(&have, e);
	for (i = 0, j = 0; i < l->n && r == 0; i++) {
		if (!receipt_is_accepted(&l->r[i]))
			continue;
		while (j < have.n && ledger_compare(&have.r[j], &l->r[i]) < 0)
			j++;
		if (j == have.n || memcmp(l->r[i].digest, have.r[j].digest,
		    SHARD_DIGEST) != 0)
			r = err_set(e, ERR_DATA, "mismatch: a shard of step %llu "
			    "is in a manifest and not in the spool",
			    (unsigned long long)l->r[i].step);
		else
			memcpy(l->name[i], have.name[j], LEDGER_NAME);
	}
	ledger_release(&have);
	return r;
}

/* ---- closing ---- */

/* A step with shards that was found, or is waited for. */
struct closing_at {
	uint64_t step;
	size_t n;		/* its shards; 0: there is no such step */
};

/*
 * Look for the first open step that has shards, into *first, and the first with `enough'
 * of them, into *next.  They are usually the same.  Where they are not, fewer than a
 * quorum sent the first, and it can never be told from a step that nobody else
 * will send: one device alone could then hold up all others.
 */
static int
closing_first(const struct inbox *s, const char *run, const struct decided *d,
    size_t enough, struct closing_at *first, struct closing_at *next,
    struct err *e)
{
	struct steps l = STEPS_INIT;
	struct closing_at a = { 0, 0 };
	size_t i;
	int r = steps_list(&l, s, run, "", d->any ? d->closed + 1 : 0, e);

	*first = *next = a;
	for (i = 0; i < l.n && r == 0 && next->n == 0; i++) {
		a.step = l.step[i];
		r = closing_list(s, run, a.step, NULL, NULL, &a.n, e);
		if (first->n == 0)
			*first = a;
		if (a.n != 0 && a.n >= enough)
			*next = a;
	}
	steps_release(&l);
	return r;
}

/* Add to l the shards that were accepted for steps before this one and are in no
 * average: those of open steps, all of which are passed over, and those that the newest
 * manifest lets wait.  1: one of these steps has `enough' and comes first. */
static int
closing_carry(const struct inbox *s, const char *run, const struct decided *d,
    size_t enough, uint64_t step, struct ledger *l, struct err *e)
{
	struct steps x = STEPS_INIT;
	struct ledger last = { .n = 0 };
	size_t i, n = l->n;
	int r = d->any ? decide_manifest(s, run, d->closed, &last, e) : 0;

	for (i = 0; i < last.n && r >= 0; i++)
		if (last.r[i].verdict == RECEIPT_DUPLICATE) {
			last.r[i].verdict = RECEIPT_ACCEPTED;
			last.r[i].reason[0] = '\0';
			r = ledger_add(l, &last.r[i], "", e);
		}
	if (r >= 0 && l->n != n && (r = ledger_sort(l, e)) == 0)
		r = closing_names(s, run, l, e);
	if (r >= 0)
		r = steps_list(&x, s, run, "", d->any ? d->closed + 1 : 0, e);
	for (i = 0; i < x.n && x.step[i] < step && r == 0; i++)
		if ((r = closing_list(s, run, x.step[i], NULL, l, &n, e)) == 0)
			r = n != 0 && n >= enough;
	ledger_release(&last);
	steps_release(&x);
	return r;
}

enum closing_closed {
	CLOSING_DONE,
	CLOSING_AGAIN		/* a step before it came meanwhile */
};

/* Close a step; returns an enum closing_closed.  seen: its shards, most of which are
 * read before others are locked out. */
static int
closing_close(const struct inbox *s, const char *run, size_t enough,
    uint64_t step, const struct ledger *seen, struct ledger *l, struct err *e)
{
	struct decided d;
	int fd, r = inbox_lock(s, run, LOCK_EX, &fd, e);

	if (r < 0)
		return r;
	if ((r = decide_load(s, run, &d, e)) == 0 && d.any &&
	    (!d.made || d.closed >= step))
		r = CLOSING_AGAIN;	/* another process closed it */
	if (r == 0 && (r = closing_list(s, run, step, seen, l, NULL, e)) == 0 &&
	    (r = closing_carry(s, run, &d, enough, step, l, e)) == 0 &&
	    (r = ledger_sort(l, e)) == 0)
		r = decide_close(s, run, &d, l, e);
	(void)close(fd);
	if (r != CLOSING_DONE)
		ledger_release(l);
	return r;
}

/* ---- waiting for a step ---- */

struct closing_age {
	const char *dir;
	double *came;		/* the times of its shards */
	size_t n, room;
};

static int
closing_each_age(void *arg, const char *name, struct err *e)
{
	struct closing_age *a = arg;
	char path[PATH_MAX];
	struct stat st;

	(void)e;
	/* a file that is gone, or whose name is too long, is no shard */
	if (!inbox_is_shard(name) || snprintf(path, sizeof(path), "%s%s",
	    a->dir, name) >= PATH_MAX || fstatat(AT(path), &st, 0) < 0)
		return 0;
	if (alloc_grow(&a->came, &a->room, a->n + 1, sizeof(*a->came), e) < 0)
		return -ERR_SYS;
	a->came[a->n++] = (double)st.st_mtim.tv_sec +
	    (double)st.st_mtim.tv_nsec * 1e-9;
	return 0;
}

/* Finds when, by clock_now, as many shards of a step were there as a quorum, into
 * *since. */
static int
closing_since(const struct inbox *s, const char *run, uint64_t step,
    size_t quorum, double *since, struct err *e)
{
	struct closing_age a = { inbox_path(s, run, &step, "", e), NULL, 0, 0 };
	struct timespec now = { 0, 0 };
	double age = 0;
	int r = a.dir != NULL ? scan(a.dir, closing_each_age, &a, e) : -ERR_SYS;

	(void)clock_gettime(CLOCK_REALTIME, &now);
	if (a.n >= quorum && quorum > 0) {
		qsort(a.came, a.n, sizeof(*a.came), compare_f64);
		age = (double)now.tv_sec + (double)now.tv_nsec * 1e-9 -
		    a.came[quorum - 1];
	}
	*since = clock_now() - (age > 0 ? age : 0);
	alloc_free((char *)(uintptr_t)a.dir);
	alloc_free(a.came);
	return r;
}

/* A step that is being waited for. */
struct closing_watch {
	int any;		/* there is one */
	uint64_t step;
	double since;
};

/* Is this step over?  1 or 0.  The deadline counts from when a quorum is there: a
 * device that sends at once would otherwise take from the others the time that
 * they need. */
static int
closing_ripe(const struct inbox *s, const char *run, struct closing_watch *c,
    const struct quorum *q, const struct closing_at *a, struct err *e)
{
	const int dated = q->deadline > 0;
	size_t expect = q->expect;
	int r;

	if (a->n < q->quorum)
		return 0;
	if (dated && (!c->any || c->step != a->step)) {
		if ((r = closing_since(s, run, a->step, q->quorum, &c->since,
		    e)) < 0)
			return r;
		c->any = 1;
		c->step = a->step;
	}
	if ((r = roster_expect(s, run, a->step, a->n, &expect, e)) < 0)
		return r;
	if (expect != 0 ? a->n >= expect : !dated)
		return 1;
	return dated && clock_now() - c->since >= q->deadline;
}

/* Close the first step that is over: an enum closing_closed, and *step and l; or take
 * the one that is closed and has no average yet.  A step without a quorum waits for one
 * until a later step is over. */
static int
closing_try(const struct inbox *s, const char *run, uint64_t *step,
    const struct quorum *q, struct closing_watch c[2], struct closing_at *a,
    struct ledger *l, struct err *e)
{
	struct ledger seen = { .n = 0 };
	struct closing_at next;
	struct decided d;
	uint64_t from;
	int r = decide_load(s, run, &d, e);

	if (r == 0 && d.any && !d.made) {
		*step = d.closed;
		/* the process that wrote it may have died before it was durable */
		return (r = inbox_durable(s, run, NULL, e)) < 0 ||
		    (r = decide_manifest(s, run, *step, l, e)) < 0 ? r :
		    closing_names(s, run, l, e);
	}
	if (r < 0 || (r = closing_first(s, run, &d, q->quorum, a, &next, e)) < 0 ||
	    a->n == 0)
		return r < 0 ? r : CLOSING_AGAIN;
	from = a->step;
	r = closing_ripe(s, run, &c[0], q, a, e);
	if (r == 0 && next.n != 0 && next.step != a->step) {
		*a = next;
		r = closing_ripe(s, run, &c[1], q, a, e);
	}
	if (r <= 0)
		return r < 0 ? r : CLOSING_AGAIN;
	if ((r = closing_list(s, run, a->step, NULL, &seen, NULL, e)) == 0)
		r = closing_close(s, run, q->quorum, a->step, &seen, l, e);
	ledger_release(&seen);
	if (r != CLOSING_DONE)
		return r;
	*step = a->step;
	if (from != *step && s->wait != NULL)
		progress_say(s->wait, "fewer than %zu sent step %llu of run '%s': it "
		    "and those before step %llu are passed over, and what was "
		    "accepted of them is in the average of step %llu",
		    q->quorum, (unsigned long long)from, run,
		    (unsigned long long)*step, (unsigned long long)*step);
	return CLOSING_DONE;
}

int
closing_wait(const struct inbox *s, const char *run, uint64_t *step,
    const struct quorum *q, int out, struct ledger *l, struct err *e)
{
	struct closing_watch c[2] = { { 0, 0, 0 }, { 0, 0, 0 } };
	struct closing_at a;
	struct wait w = wait_begin(-1, out);
	int r;

	memset(l, 0, sizeof(*l));
	progress_begin(s->wait);
	do {
		r = closing_try(s, run, step, q, c, &a, l, e);
		if (r != CLOSING_AGAIN)
			return r;
		if (progress_due(s->wait))
			progress_step(s, run, a.n != 0 ? a.step : *step, a.n,
			    q->expect != 0 ? q->expect : q->quorum);
	} while ((r = wait_more(&w, e)) >= 0);
	return r;
}

/* ---- closed ---- */

int
closing_published(const struct inbox *s, const char *run, uint64_t step,
    int out, struct err *e)
{
	struct wait w = wait_begin(-1, -1);
	int r, gone = 0;

	progress_begin(s->wait);
	while ((r = inbox_has(s, run, &step, "aggregate.aceg", e)) == 0) {
		if (gone && (r = wait_orphan(out, 0, e)) < 0)
			return r;
		if (progress_due(s->wait))
			progress_wait(s->wait, step, "", "waiting for the "
			    "aggregate of step %llu of run '%s' in the spool (ace-recv "
			    "--publish)", (unsigned long long)step, run);
		/* look once more: the other process may have closed it and
		 * ended */
		if (!(gone = wait_gone(out, 0)))
			(void)wait_more(&w, e);
	}
	/* the process that published it may have died before it was durable */
	return r < 0 ? r : inbox_durable(s, run, &step, e);
}

int
closing_aside(const struct inbox *s, const char *run, struct ledger *l,
    struct err *e)
{
	struct decided d;
	int fd, r = inbox_lock(s, run, LOCK_EX, &fd, e);

	if (r < 0)
		return r;
	/* where another process went on, its list counts */
	if ((r = decide_load(s, run, &d, e)) == 0 && !d.made &&
	    d.closed == l->r[l->n - 1].step)
		r = decide_close(s, run, &d, l, e);
	(void)close(fd);
	return r;
}

/* Of the names that a step has; others were made by somebody else. */
static int
closing_remove(void *arg, const char *name, struct err *e)
{
	const size_t n = strlen(name);
	const char *dir = arg;
	char path[PATH_MAX];

	if (strstr(name, ".aceg") == NULL &&
	    (n < 4 || strcmp(name + n - 3, ".no") != 0))
		return 0;
	if (snprintf(path, sizeof(path), "%s%s", dir, name) < PATH_MAX &&
	    unlinkat(AT(path), 0) < 0 && errno != ENOENT)
		return err_sys(e, "'%s'", path);
	return 0;
}

int
closing_forget(const struct inbox *s, const char *run, uint64_t before,
    struct err *e)
{
	struct steps l = STEPS_INIT;
	char *dir;
	size_t i;
	int r = steps_list(&l, s, run, "", 0, e);

	for (i = 0; r == 0 && i < l.n && l.step[i] < before; i++) {
		dir = inbox_path(s, run, &l.step[i], "", e);
		r = dir != NULL ? scan(dir, closing_remove, dir, e) : -ERR_SYS;
		if (r == 0)
			inbox_unmake(dir);
		alloc_free(dir);
	}
	steps_release(&l);
	return r;
}
