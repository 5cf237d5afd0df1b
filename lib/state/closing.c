#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <time.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/err.h"
#include "state/closing.h"

/* Calls each(arg, name) for the entries of a directory; 0 when it is not
 * there. */
static int
closing_scan(const char *path, int (*each)(void *, const char *,
    struct err *), void *arg, struct err *e)
{
	DIR *d = opendir(path);
	struct dirent *de;
	int r = 0;

	if (d == NULL)
		return errno == ENOENT ? 0 : err_sys(e, "'%s'", path);
	while (r == 0 && (errno = 0, de = readdir(d)) != NULL)
		if (de->d_name[0] != '.')
			r = each(arg, de->d_name, e);
	if (r == 0 && errno != 0)
		r = err_sys(e, "'%s'", path);
	(void)closedir(d);
	return r;
}

/* ---- runs and steps ---- */

struct closing_run {
	char *name;
	int n;
};

static int
closing_each_run(void *arg, const char *name, struct err *e)
{
	struct closing_run *r = arg;

	if (strcmp(name, "lock") == 0)
		return 0;
	if (r->n++ == 0 && (r->name = alloc_dup(name, e)) == NULL)
		return -ERR_SYS;
	return 0;
}

/* %XX back to bytes; a hashed name cannot be turned back and is kept. */
static void
closing_unescape(char *s)
{
	char *to = s, hex[3] = "";

	if (strcmp(s, "%") == 0) {
		s[0] = '\0';
		return;
	}
	for (; *s != '\0'; s++) {
		if (s[0] == '%' && s[1] != '\0' && s[2] != '\0') {
			memcpy(hex, s + 1, 2);
			*to++ = (char)strtol(hex, NULL, 16);
			s += 2;
		} else {
			*to++ = *s;
		}
	}
	*to = '\0';
}

char *
closing_run(const struct inbox *s, int *several, struct err *e)
{
	struct closing_run r = { NULL, 0 };

	*several = 0;
	if (closing_scan(s->state.dir, closing_each_run, &r, e) < 0 ||
	    r.n != 1) {
		*several = r.n > 1;
		alloc_free(r.name);
		return NULL;
	}
	closing_unescape(r.name);
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

int
closing_next(const struct inbox *s, const char *run, uint64_t *step,
    struct err *e)
{
	struct closing_step q = { *step, 0, *step == UINT64_MAX, 0 };
	char *path = inbox_path(s, run, NULL, "", e);
	int r;

	if (path == NULL)
		return -ERR_SYS;
	r = closing_scan(path, closing_each_step, &q, e);
	alloc_free(path);
	if (r == 0 && q.found)
		*step = q.best;
	return r < 0 ? r : q.found;
}

/* ---- one step ---- */

struct closing_count {
	size_t n;
	struct ledger *l;		/* NULL: only count */
	const char *dir;
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
	struct closing_count *c = arg;
	struct receipt r;
	char *path;
	size_t n;
	int k;

	if (!closing_is_shard(name))
		return 0;
	c->n++;
	if (c->l == NULL)
		return 0;
	n = strlen(c->dir) + strlen(name) + 1;
	if ((path = alloc_get(n, 1, e)) == NULL)
		return -ERR_SYS;
	memcpy(path, c->dir, strlen(c->dir));
	memcpy(path + strlen(c->dir), name, strlen(name) + 1);
	k = ledger_shard(path, &r, e);
	alloc_free(path);
	return k < 0 ? k : ledger_add(c->l, &r, name, e);
}

static int
closing_list(const struct inbox *s, const char *run, uint64_t step,
    struct ledger *l, size_t *n, struct err *e)
{
	char *path = inbox_path(s, run, &step, "", e);
	struct closing_count c = { 0, l, path };
	int r;

	if (path == NULL)
		return -ERR_SYS;
	r = closing_scan(path, closing_each_shard, &c, e);
	alloc_free(path);
	*n = c.n;
	return r;
}

int
closing_count(const struct inbox *s, const char *run, uint64_t step, size_t *n,
    struct err *e)
{
	return closing_list(s, run, step, NULL, n, e);
}

static double
closing_now(void)
{
	struct timespec t;

	(void)clock_gettime(CLOCK_MONOTONIC, &t);	/* wall clocks jump */
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

/* The next step that is not done: 1, or 0 not there yet. */
static int
closing_step(const struct inbox *s, const char *run, uint64_t after,
    uint64_t *step, struct err *e)
{
	int r;

	*step = after;
	while ((r = closing_next(s, run, step, e)) > 0 &&
	    closing_is_done(s, run, *step))
		continue;
	return r;
}

int
closing_wait(const struct inbox *s, const char *run, uint64_t *step,
    const struct closing_rule *w, struct err *e)
{
	struct timespec t = { 0, 1000000 };
	size_t want = w->want != 0 ? w->want : w->quorum, n;
	uint64_t at = 0;
	double since = 0;
	int r;

	for (;;) {
		n = 0;
		if ((r = closing_step(s, run, *step, &at, e)) < 0 ||
		    (r > 0 && (r = closing_count(s, run, at, &n, e)) < 0))
			return r;
		if (n != 0 && since == 0)
			since = closing_now();
		if (n >= want && n != 0)
			break;
		if (n != 0 && w->deadline > 0 &&
		    closing_now() - since >= w->deadline) {
			if (n >= w->quorum)
				break;
			return err_set(e, ERR_REFUSED, "quorum not reached: "
			    "%zu of %zu shards of step %llu after %g s", n,
			    w->quorum, (unsigned long long)at, w->deadline);
		}
		(void)nanosleep(&t, NULL);
		if (t.tv_nsec < 10000000)
			t.tv_nsec += t.tv_nsec / 2;
	}
	*step = at;
	return 0;
}

static int
closing_order(const struct receipt *a, const struct receipt *b)
{
	int c = memcmp(a->device, b->device, SHARD_ID);

	return c != 0 ? c : (a->part > b->part) - (a->part < b->part);
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
	if ((r = closing_list(s, run, step, &have, &n, e)) == 0)
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

int
closing_manifest(const struct inbox *s, const char *run, uint64_t step,
    struct ledger *l, struct err *e)
{
	char *path = inbox_path(s, run, &step, "manifest", e);
	char *lock = inbox_path(s, run, &step, "lock", e);
	size_t n;
	int fd = -1, r = -ERR_SYS;

	memset(l, 0, sizeof(*l));
	if (path == NULL || lock == NULL)
		goto out;
	fd = open(lock, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (fd < 0 || flock(fd, LOCK_EX) < 0) {
		r = err_sys(e, "'%s'", lock);
		goto out;
	}
	if ((r = ledger_read(l, path, e)) < 0)
		goto out;
	if (r > 0) {
		r = closing_names(s, run, step, l, e);
		goto out;
	}
	if ((r = closing_list(s, run, step, l, &n, e)) < 0)
		goto out;
	closing_sort(l);
	r = ledger_write(l, path, s->sync, e);
out:
	if (fd >= 0)
		(void)close(fd);
	alloc_free(path);
	alloc_free(lock);
	return r;
}

int
closing_is_done(const struct inbox *s, const char *run, uint64_t step)
{
	char *path = inbox_path(s, run, &step, "done", NULL);
	int r = path != NULL && access(path, F_OK) == 0;

	alloc_free(path);
	return r;
}

int
closing_done(const struct inbox *s, const char *run, uint64_t step,
    struct err *e)
{
	char *done = inbox_path(s, run, &step, "done", e);
	char *last = inbox_path(s, run, NULL, "last", e);
	int r = -ERR_SYS;

	if (done != NULL && last != NULL &&
	    (r = ledger_set_number(done, step, s->sync, e)) == 0)
		r = ledger_set_number(last, step, IO_SYNC_RENAME, e);
	alloc_free(done);
	alloc_free(last);
	return r;
}

int
closing_forget(const struct inbox *s, const char *run, uint64_t step,
    struct err *e)
{
	struct ledger l;
	size_t i, n;
	char *path;
	int r;

	memset(&l, 0, sizeof(l));
	r = closing_list(s, run, step, &l, &n, e);
	for (i = 0; i < l.n && r == 0; i++) {
		path = inbox_path(s, run, &step, l.name[i], e);
		if (path == NULL)
			r = -ERR_SYS;
		else
			(void)unlink(path);
		alloc_free(path);
	}
	ledger_release(&l);
	return r;
}
