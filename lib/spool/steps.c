#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/err.h"
#include "base/compare.h"
#include "base/scan.h"
#include "spool/steps.h"

struct steps_scan {
	struct steps *to;
	uint64_t from;
};

int
steps_add(struct steps *x, uint64_t step, struct err *e)
{
	int k = alloc_grow(&x->step, &x->cap, x->n + 1, sizeof(*x->step), e);

	if (k == 0)
		x->step[x->n++] = step;
	return k;
}

/* Sort the steps and drop repeated ones. */
static void
steps_sort(struct steps *x)
{
	size_t i, n = 0;

	if (x->n == 0)
		return;
	qsort(x->step, x->n, sizeof(*x->step), compare_u64);
	for (i = 0; i < x->n; i++)
		if (i == 0 || x->step[i] != x->step[i - 1])
			x->step[n++] = x->step[i];
	x->n = n;
}

static int
steps_in(const struct inbox *s, const uint64_t *step, const char *below,
    int (*each)(void *, const char *, struct err *), void *arg, struct err *e)
{
	char *dir = inbox_path(s, step, below, e);
	int k = dir != NULL ? scan(dir, each, arg, e) : -ERR_SYS;

	alloc_free(dir);
	return k;
}

static int
steps_each(void *arg, const char *name, struct err *e)
{
	struct steps_scan *c = arg;
	struct steps *x = c->to;
	uint64_t step;

	if (name[strspn(name, "0123456789")] != '\0' ||
	    (step = strtoull(name, NULL, 10)) < c->from)
		return 0;
	return steps_add(x, step, e);
}

int
steps_list(struct steps *x, const struct inbox *s, const char *below,
    uint64_t from, struct err *e)
{
	struct steps_scan c = { x, from };
	int k = steps_in(s, NULL, below, steps_each, &c, e);

	if (k == 0)
		steps_sort(x);
	return k;
}

void
steps_release(struct steps *x)
{
	alloc_free(x->step);
	memset(x, 0, sizeof(*x));
}

/* ---- the files of a step ---- */

static int
steps_each_count(void *arg, const char *name, struct err *e)
{
	(void)e;
	*(size_t *)arg += inbox_is_shard(name) != 0;
	return 0;
}

int
steps_count(size_t *n, const struct inbox *s, uint64_t step, struct err *e)
{
	*n = 0;
	return steps_in(s, &step, "", steps_each_count, n, e);
}

static int
steps_each_file(void *arg, const char *name, struct err *e)
{
	return inbox_is_shard(name) ? array_add(arg, name, e) : 0;
}

int
steps_files(struct array_names *l, const struct inbox *s, uint64_t step,
    struct err *e)
{
	return steps_in(s, &step, "", steps_each_file, l, e);
}

int
steps_devices(struct array_names *l, const struct inbox *s, uint64_t step,
    struct err *e)
{
	struct array_names files = ARRAY_NAMES_INIT;
	char device[SHARD_NAME + 1];
	size_t i;
	int k = steps_files(&files, s, step, e);

	for (i = 0; i < files.n && k == 0; i++)
		if (inbox_device(files.p[i], device, NULL) && device[0] != '\0')
			k = array_add(l, device, e);
	array_release(&files);
	return k;
}

/* Return the receipt of this file, or NULL.  Begin at the *at-th, since a directory is
 * usually listed in the same order each time. */
static const struct receipt *
steps_had(const struct ledger *l, const char *name, size_t *at)
{
	size_t i, j;

	for (i = 0; l != NULL && i < l->n; i++) {
		j = (*at + i) % l->n;
		if (strcmp(l->line[j].name, name) == 0) {
			*at = j + 1;
			return &l->line[j].r;
		}
	}
	return NULL;
}

int
steps_shards(struct ledger *l, const struct inbox *s, uint64_t step,
    const struct ledger *have, struct err *e)
{
	struct array_names files = ARRAY_NAMES_INIT;
	const struct receipt *had;
	struct receipt r;
	size_t i, at = 0;
	char *path;
	int k = steps_files(&files, s, step, e);

	for (i = 0; i < files.n && k >= 0; i++) {
		if ((had = steps_had(have, files.p[i], &at)) != NULL) {
			k = ledger_add(l, had, files.p[i], e);
			continue;
		}
		path = inbox_path(s, &step, files.p[i], e);
		k = path != NULL ? ledger_shard(path, &r, NULL, e) : -ERR_SYS;
		alloc_free(path);
		if (k > 0)	/* 0: it was removed meanwhile */
			k = ledger_add(l, &r, files.p[i], e);
	}
	array_release(&files);
	return k < 0 ? k : 0;
}
