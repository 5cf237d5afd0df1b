#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/at.h"
#include "base/err.h"
#include "base/scan.h"
#include "format/text.h"
#include "spool/inbox.h"
#include "spool/ledger.h"
#include "spool/roster.h"
#include "spool/steps.h"

#define ROSTER_FILE "devices"
enum { ROSTER_BYTES = 1 << 20 };

void
roster_release(struct roster *t)
{
	while (t->n != 0)
		alloc_free(t->name[--t->n]);
	alloc_free(t->name);
	*t = (struct roster)ROSTER_INIT;
}

/* The place of a name, or where it would be. */
static size_t
roster_place(const struct roster *t, const char *name)
{
	size_t lo = 0, hi = t->n, mid;

	while (lo < hi) {
		mid = (lo + hi) / 2;
		if (strcmp(t->name[mid], name) < 0)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo;
}

static int
roster_has(const struct roster *t, const char *name)
{
	const size_t i = roster_place(t, name);

	return i < t->n && strcmp(t->name[i], name) == 0;
}

/* Append a name; after the last one roster_sort is due. */
static int
roster_add(struct roster *t, const char *name, struct err *e)
{
	char *copy;

	if (alloc_grow(&t->name, &t->cap, t->n + 1, sizeof(*t->name), e) < 0 ||
	    (copy = alloc_dup(name, e)) == NULL)
		return -ERR_SYS;
	t->name[t->n++] = copy;
	return 0;
}

static int
roster_order(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

void
roster_sort(struct roster *t)
{
	size_t i, n = 0;

	if (t->n == 0)
		return;
	qsort(t->name, t->n, sizeof(*t->name), roster_order);
	for (i = 0; i < t->n; i++)
		if (n != 0 && strcmp(t->name[n - 1], t->name[i]) == 0)
			alloc_free(t->name[i]);
		else
			t->name[n++] = t->name[i];
	t->n = n;
}

static void
roster_remove(struct roster *t, const char *name)
{
	const size_t i = roster_place(t, name);

	if (!roster_has(t, name))
		return;
	alloc_free(t->name[i]);
	t->n--;
	memmove(t->name + i, t->name + i + 1, (t->n - i) * sizeof(*t->name));
}

/* Would this name be read again from its line as it is? */
static int
roster_is_line(const char *name)
{
	static const char blank[] = " \t\r";
	const size_t n = strlen(name);

	return n != 0 && n <= SHARD_NAME && text_clean(name, n) &&
	    strchr(blank, name[0]) == NULL && strchr(blank, name[n - 1]) == NULL;
}

/* Takes the lines of a text apart; it may have been written by hand, so that
 * blanks around a name and lines without one are passed over. */
static int
roster_lines(struct roster *t, char *s, const char *path, struct err *e)
{
	char *line, *rest = s;
	size_t n;
	int k;

	while ((line = strsep(&rest, "\n")) != NULL) {
		line += strspn(line, " \t\r");
		for (n = strlen(line); n != 0 &&
		    strchr(" \t\r", line[n - 1]) != NULL; n--)
			line[n - 1] = '\0';
		if (n == 0)
			continue;
		if (n > SHARD_NAME || !text_clean(line, n))
			return err_set(e, ERR_DATA, "corrupt: '%s' is to have "
			    "the name of a device in each line", path);
		if ((k = roster_add(t, line, e)) < 0)
			return k;
	}
	roster_sort(t);
	return 0;
}

int
roster_read(struct roster *t, const struct inbox *s, const char *run,
    struct err *e)
{
	char *path = inbox_path(s, run, NULL, ROSTER_FILE, e), *text = NULL;
	int k = -ERR_SYS;

	if (path == NULL)
		return -ERR_SYS;
	if (faccessat(AT(path), F_OK, 0) < 0)
		k = errno == ENOENT ? 0 : err_sys(e, "'%s'", path);
	else if ((text = alloc_get(ROSTER_BYTES + 1, 1, e)) != NULL &&
	    (k = ledger_text(path, text, ROSTER_BYTES + 1, e)) > 0) {
		if (strlen(text) == ROSTER_BYTES)
			k = err_set(e, ERR_DATA, "limit: '%s' has more than "
			    "1 MiB", path);
		else if ((k = roster_lines(t, text, path, e)) == 0)
			k = 1;
	}
	alloc_free(text);
	alloc_free(path);
	return k;
}

/* ---- who was seen ---- */

int
roster_each_file(void *arg, const char *name, struct err *e)
{
	char device[SHARD_NAME + 1];

	/* a name that was too long for a file cannot be told */
	if (!inbox_is_shard(name) || !inbox_device(name, device, NULL))
		return 0;
	return roster_add(arg, device, e);
}

/* Adds the devices whose shards are in the run's directories. */
static int
roster_seen(struct roster *t, const struct inbox *s, const char *run,
    struct err *e)
{
	struct steps x = STEPS_INIT;
	char *dir;
	size_t i;
	int k = steps_list(&x, s, run, "", 0, e);

	for (i = 0; i < x.n && k == 0; i++) {
		dir = inbox_path(s, run, &x.step[i], "", e);
		k = dir != NULL ? scan(dir, roster_each_file, t, e) : -ERR_SYS;
		alloc_free(dir);
	}
	steps_release(&x);
	roster_sort(t);
	return k;
}

/* ---- a step ---- */

int
roster_missing(const struct roster *t, const struct inbox *s, const char *run,
    uint64_t step, struct roster *out, struct err *e)
{
	char *path;
	size_t i;
	int k = 0;

	for (i = 0; i < t->n && k == 0; i++) {
		path = inbox_of(s, run, &step, t->name[i], "aceg", e);
		k = path == NULL ? -ERR_SYS : faccessat(AT(path), F_OK, 0) == 0 ? 0 :
		    errno != ENOENT ? err_sys(e, "'%s'", path) :
		    roster_add(out, t->name[i], e);
		alloc_free(path);
	}
	return k;
}

int
roster_expect(const struct inbox *s, const char *run, uint64_t step, size_t n,
    size_t *expect, struct err *e)
{
	struct roster t = ROSTER_INIT, missing = ROSTER_INIT;
	int k = roster_read(&t, s, run, e);

	if (k > 0 &&
	    (k = roster_missing(&t, s, run, step, &missing, e)) == 0)
		*expect = n + missing.n;
	roster_release(&t);
	roster_release(&missing);
	return k;
}

/* ---- changing ---- */

static int
roster_write(const struct roster *t, const char *path, enum io_sync sync,
    struct err *e)
{
	struct buf b = BUF_INIT;
	size_t i;
	int k = 0;

	for (i = 0; i < t->n && k == 0; i++)
		if ((k = buf_put(&b, t->name[i], strlen(t->name[i]), e)) == 0)
			k = buf_put(&b, "\n", 1, e);
	if (k == 0 && b.n >= ROSTER_BYTES)
		k = err_set(e, ERR_REFUSED, "too many devices for '%s'", path);
	if (k == 0 && (k = buf_put(&b, "", 1, e)) == 0)
		k = ledger_set_text(path, (const char *)b.p, sync, e);
	buf_release(&b);
	return k;
}

static int
roster_run(const struct inbox *s, const char *run, int joins, struct err *e)
{
	int k = inbox_has(s, run, NULL, "", e);

	if (k == 0 && !joins)
		return err_set(e, ERR_REFUSED, "no run '%.80s' in '%s'", run,
		    s->state.dir);
	return k < 0 ? k : inbox_begin(s, run, NULL, e);
}

int
roster_change(const struct inbox *s, const char *run, const char *device,
    int joins, struct err *e)
{
	struct roster t = ROSTER_INIT;
	char *path = inbox_path(s, run, NULL, ROSTER_FILE, e);
	int fd, k;

	if (path == NULL)
		return -ERR_SYS;
	k = joins && !roster_is_line(device) ? err_set(e, ERR_USAGE, "'%.80s' "
	    "is no name for a line of the list of devices", device) : 0;
	if (k < 0 || (k = roster_run(s, run, joins, e)) < 0 ||
	    (k = inbox_lock(s, run, LOCK_EX, &fd, e)) < 0) {
		alloc_free(path);
		return k;
	}
	if ((k = roster_read(&t, s, run, e)) == 0)
		k = roster_seen(&t, s, run, e);
	if (k >= 0 && !joins && !roster_has(&t, device))
		k = err_set(e, ERR_REFUSED, "run '%.80s' has no device '%.80s'",
		    run, device);
	if (k >= 0 && joins && (k = roster_add(&t, device, e)) == 0)
		roster_sort(&t);
	else if (k >= 0)
		roster_remove(&t, device);
	if (k >= 0)
		k = roster_write(&t, path, s->sync, e);
	(void)close(fd);
	roster_release(&t);
	alloc_free(path);
	return k;
}
