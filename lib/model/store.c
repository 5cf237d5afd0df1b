#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/at.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/io.h"
#include "base/limits_file.h"
#include "base/opt.h"
#include "base/scan.h"
#include "base/temp.h"
#include "format/shard.h"
#include "model/store.h"

#define STORE_DRAFT ".next"

static const struct opt store_rows[] = {
	{ 0, "patches", "N", "If there are more than N files, the oldest are removed.",
	    OPT_U64(struct store_limits, patches, 2, 1024), .def = "64" },
	{ 0, "bytes", "SIZE", "Also if all files have more bytes than this; 0: no limit.",
	    OPT_SIZE(struct store_limits, bytes), .def = "0" },
	{ 0, "anchor", "N", "A whole model is stored after N patches, or sooner if they "
	    "have as many bytes; 0: never.",
	    OPT_U64(struct store_limits, anchor, 0, 1024), .def = "16" },
	OPT_END
};

static void
store_name(const struct route *w, char name[STORE_NAME])
{
	char before[MODEL_HEX], after[MODEL_HEX];

	shard_hex(w->before, before);
	shard_hex(w->after, after);
	(void)snprintf(name, STORE_NAME, "%08" PRIu64 ".%s.%s.%" PRIu64 ".aceg",
	    w->nth, before, after, w->step);
}

static char *
store_path(const struct store *s, const struct route *w, struct err *e)
{
	char name[STORE_NAME];

	store_name(w, name);
	return alloc_path(s->dir, name, e);
}

/* ---- the list ---- */

static int
store_each(void *arg, const char *path, const char *name, struct err *e)
{
	const unsigned char none[MODEL_HASH] = { 0 };
	struct store *s = arg;
	char before[MODEL_HEX], after[MODEL_HEX], again[STORE_NAME];
	struct route w = { .nth = 0 };
	struct stat st;

	/* ignore other names: they are not our files */
	if (sscanf(name, "%" SCNu64 ".%32[0-9a-f].%32[0-9a-f].%" SCNu64, &w.nth,
	    before, after, &w.step) != 4 || !model_unhex(before, w.before) ||
	    !model_unhex(after, w.after))
		return 0;
	store_name(&w, again);
	if (strcmp(name, again) != 0)
		return 0;
	w.bytes = fstatat(AT(path), &st, 0) == 0 ? (uint64_t)st.st_size : 0;
	w.whole = memcmp(w.before, none, MODEL_HASH) == 0;
	return w.bytes == 0 ? 0 : route_add(&s->w, &w, e);
}

static int
store_by_nth(const void *a, const void *b)
{
	const struct route *x = a, *y = b;

	return (x->nth > y->nth) - (x->nth < y->nth);
}

int
store_create(const char *state, struct err *e)
{
	static const char head[] =
	    "# The patches that ace-diff -S keeps for receivers that missed some; it "
	    "reads this\n# when it starts.  A line is NAME VALUE; a name without a line "
	    "has its default.\n# SIZE is bytes: 64M, 2Gi.  The last whole model, and what "
	    "leads from it to the\n# newest, is kept.\n";
	char *dir = alloc_path(state, "patches", e);
	char *limits = alloc_path(state, LIMITS_FILE, e);
	int r = dir == NULL || limits == NULL ? -ERR_SYS : 0;

	if (r == 0 && mkdirat(AT(dir), 0700) < 0 && errno != EEXIST)
		r = err_sys(e, "'%s'", dir);
	if (r == 0)
		temp_sweep(dir);
	if (r == 0 && faccessat(AT(limits), F_OK, 0) < 0)
		r = limits_file_write(limits, head, store_rows, IO_SYNC_FULL, e);
	alloc_free(dir);
	alloc_free(limits);
	return r;
}

int
store_open(struct store *s, const char *state, struct err *e)
{
	struct store_limits other;
	char *limits = alloc_path(state, LIMITS_FILE, e);
	int r = -ERR_SYS;

	if (limits != NULL && (s->dir = alloc_path(state, "patches", e)) != NULL &&
	    (r = opt_defaults(store_rows, &s->limits, e)) == 0 &&
	    (r = limits_file_read(limits, store_rows, &s->limits, &other, NULL,
	    e)) == 0)
		r = scan(s->dir, 0, store_each, s, e);
	if (s->w.n > 1)
		qsort(s->w.p, s->w.n, sizeof(*s->w.p), store_by_nth);
	alloc_free(limits);
	return r;
}

void
store_close(struct store *s)
{
	alloc_free(s->dir);
	route_release(&s->w);
	*s = (struct store)STORE_INIT;
}

const struct route *
store_newest(const struct store *s)
{
	return s->w.n > 0 ? &s->w.p[s->w.n - 1] : NULL;
}

const struct route *
store_known(const struct store *s, const unsigned char hash[MODEL_HASH])
{
	size_t i;

	for (i = s->w.n; i-- > 0;)
		if (memcmp(s->w.p[i].after, hash, MODEL_HASH) == 0)
			return &s->w.p[i];
	return NULL;
}

int
store_way(struct store *s, const unsigned char *from, size_t **list, size_t *n,
    struct err *e)
{
	const struct route *to = store_newest(s), *w;
	size_t i, best = ROUTE_FIRST;

	*list = NULL;
	*n = 0;
	if (to == NULL)
		return 0;
	if (from != NULL && memcmp(from, to->after, MODEL_HASH) == 0)
		return 1;
	route_find(&s->w, from);
	for (i = 0; i < s->w.n; i++) {
		w = &s->w.p[i];
		if (w->cost < UINT64_MAX &&
		    memcmp(w->after, to->after, MODEL_HASH) == 0 &&
		    (best == ROUTE_FIRST || w->cost < s->w.p[best].cost))
			best = i;
	}
	return best == ROUTE_FIRST ? 0 : route_list(&s->w, best, list, n, e) < 0 ?
	    -ERR_SYS : 1;
}

/* ---- adding a file ---- */

char *
store_draft(const struct store *s, struct err *e)
{
	return alloc_path(s->dir, STORE_DRAFT, e);
}

int
store_add(struct store *s, struct route *w, struct err *e)
{
	const struct route *last = store_newest(s);
	size_t i = last != NULL &&
	    memcmp(last->after, w->after, MODEL_HASH) == 0 ? 0 : s->w.n;
	char *draft = store_draft(s, e), *path = NULL;
	struct stat st;
	int r = -ERR_SYS;

	w->nth = last != NULL ? last->nth + 1 : 1;
	if (draft == NULL || (path = store_path(s, w, e)) == NULL)
		goto out;
	while (i < s->w.n && (memcmp(s->w.p[i].before, w->before, MODEL_HASH) != 0 ||
	    memcmp(s->w.p[i].after, w->after, MODEL_HASH) != 0))
		i++;
	if (i < s->w.n) {
		(void)unlinkat(AT(draft), 0);
		r = 0;
	} else if (fstatat(AT(draft), &st, 0) < 0 || renameat(AT(draft), AT(path)) < 0) {
		r = err_sys(e, "'%s'", path);
	} else {
		w->bytes = (uint64_t)st.st_size;
		r = route_add(&s->w, w, e);
	}
	/* a killed process may have renamed the file without this sync */
	if (r == 0)
		r = io_sync_path(path, e);
out:
	alloc_free(draft);
	alloc_free(path);
	return r;
}

int
store_due(struct store *s, int *due, struct err *e)
{
	uint64_t patches = 0;
	size_t *list, n, most;
	int r = store_way(s, NULL, &list, &n, e);

	if (r > 0) {
		/* list[0] is a whole model; at most this many patches may follow it */
		most = (size_t)(s->limits.anchor < s->limits.patches - 1 ?
		    s->limits.anchor : s->limits.patches - 1);
		patches = s->w.p[list[n - 1]].cost - s->w.p[list[0]].bytes;
		*due = n - 1 >= most || patches >= s->w.p[list[0]].bytes;
	} else {
		*due = 1;
	}
	*due = *due && s->limits.anchor != 0;
	alloc_free(list);
	return r < 0 ? r : 0;
}

int
store_prune(struct store *s, struct err *e)
{
	uint64_t bytes = 0, files = s->w.n;
	size_t *list, n, i, k;
	char *path;
	int r = store_way(s, NULL, &list, &n, e);

	for (i = 0; i < s->w.n; i++)
		bytes += s->w.p[i].bytes;
	for (i = 0; r >= 0 && i + 1 < s->w.n && (files > s->limits.patches ||
	    (s->limits.bytes != 0 && bytes > s->limits.bytes)); i++) {
		for (k = 0; k < n && list[k] != i; k++)
			;
		if (k < n)
			continue;
		if ((path = store_path(s, &s->w.p[i], e)) == NULL)
			r = -ERR_SYS;
		else if (unlinkat(AT(path), 0) < 0 && errno != ENOENT)
			r = err_sys(e, "'%s'", path);
		alloc_free(path);
		bytes -= s->w.p[i].bytes;
		files--;
	}
	alloc_free(list);
	return r < 0 ? r : 0;
}

int
store_fd(const struct store *s, size_t i, struct err *e)
{
	char *path = store_path(s, &s->w.p[i], e);
	struct stat st;
	int fd = -1;

	if (path != NULL)
		(void)fd_open(path, FD_OURS, &fd, &st, e);
	alloc_free(path);
	return fd;
}
