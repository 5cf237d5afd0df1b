#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/at.h"
#include "base/compare.h"
#include "base/err.h"
#include "base/scan.h"
#include "spool/receipt_list.h"
#include "spool/steps.h"

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
steps_in(const struct spool *s, const uint64_t *step, const char *below,
    scan_fn *each, void *arg, struct err *e)
{
	char dir[SPOOL_PATH];

	return scan(spool_path(s, step, below, dir), 0, each, arg, e);
}

static int
steps_each(void *arg, const char *path, const char *name, struct err *e)
{
	struct steps *x = arg;
	uint64_t step;

	(void)path;
	if (name[strspn(name, "0123456789")] != '\0' ||
	    (step = strtoull(name, NULL, 10)) < x->from)
		return 0;
	return steps_add(x, step, e);
}

int
steps_list(struct steps *x, const struct spool *s, const char *below,
    uint64_t from, struct err *e)
{
	int k;

	x->from = from;
	if ((k = steps_in(s, NULL, below, steps_each, x, e)) == 0)
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
steps_each_file(void *arg, const char *path, const char *name, struct err *e)
{
	(void)path;
	return spool_is_shard(name) ? array_add(arg, name, e) : 0;
}

int
steps_files(struct array_names *l, const struct spool *s, uint64_t step,
    struct err *e)
{
	return steps_in(s, &step, "", steps_each_file, l, e);
}

int
steps_devices(struct array_names *l, const struct spool *s, uint64_t step,
    struct err *e)
{
	struct array_names files = ARRAY_NAMES_INIT;
	char device[SHARD_NAME + 1];
	size_t i;
	int k = steps_files(&files, s, step, e);

	for (i = 0; i < files.n && k == 0; i++)
		if (spool_device(files.p[i], device, NULL) && device[0] != '\0')
			k = array_add(l, device, e);
	array_release(&files);
	return k;
}

/* Return the receipt of this file, or NULL.  Try the *at-th first, since a directory is
 * usually listed in the same order each time.  A damaged file is read again, since its
 * device may have sent the shard again. */
static const struct receipt *
steps_had(const struct receipt_list *l, const char *name, size_t *at)
{
	size_t i, j;

	for (i = 0; l != NULL && i < l->n; i++) {
		j = (*at + i) % l->n;
		if (strcmp(l->line[j].name, name) == 0) {
			*at = j + 1;
			return l->line[j].r.verdict == RECEIPT_ACCEPTED ?
			    &l->line[j].r : NULL;
		}
	}
	return NULL;
}

/* Set r to the receipt of a shard whose file cannot be read any more because of the error
 * e, which is cleared.  The device is taken from the file's name. */
static void
steps_damaged(struct receipt *r, uint64_t step, const char *file, struct err *e)
{
	char line[ERR_LINE], device[SHARD_NAME + 1];

	*r = (struct receipt){ .step = step, .verdict = RECEIPT_LATE };
	(void)spool_device(file, device, r->device);
	(void)snprintf(r->reason, sizeof(r->reason), "damaged in the spool: %.120s",
	    err_format(e, line));
	err_clear(e);
}

int
steps_shards(struct receipt_list *l, const struct spool *s, uint64_t step,
    const struct receipt_list *have, struct err *e)
{
	struct array_names files = ARRAY_NAMES_INIT;
	const struct receipt *had;
	struct receipt r;
	size_t i, at = 0;
	char path[SPOOL_PATH];
	int k = steps_files(&files, s, step, e);

	for (i = 0; i < files.n && k >= 0; i++) {
		if ((had = steps_had(have, files.p[i], &at)) != NULL) {
			k = receipt_list_add(l, had, files.p[i], e);
			continue;
		}
		k = spool_shard(spool_path(s, &step, files.p[i], path), &r, NULL, e);
		if (k == -ERR_DATA)
			steps_damaged(&r, step, files.p[i], e);
		if (k != 0 && k != -ERR_SYS)	/* 0: it was removed meanwhile */
			k = receipt_list_add(l, &r, files.p[i], e);
	}
	array_release(&files);
	return k < 0 ? k : 0;
}

/* ---- removing ---- */

/* Remove a file of a step's directory if it is ours: *.aceg*, *.no or .synced. */
static int
steps_remove_file(void *arg, const char *path, const char *name, struct err *e)
{
	const size_t n = strlen(name);

	(void)arg;
	if (name[0] == '.' ? strcmp(name, SPOOL_SYNCED) != 0 :
	    strstr(name, ".aceg") == NULL &&
	    (n < 4 || strcmp(name + n - 3, ".no") != 0))
		return 0;
	return unlinkat(AT(path), 0) < 0 && errno != ENOENT ?
	    err_sys(e, "'%s'", path) : 0;
}

int
steps_remove(const struct spool *s, uint64_t before, struct err *e)
{
	struct steps l = STEPS_INIT;
	char dir[SPOOL_PATH];
	size_t i;
	int k = steps_list(&l, s, "", 0, e);

	for (i = 0; k == 0 && i < l.n && l.step[i] < before; i++) {
		spool_path(s, &l.step[i], "", dir);
		if ((k = scan(dir, 1, steps_remove_file, NULL, e)) == 0)
			(void)unlinkat(AT(dir), AT_REMOVEDIR);
	}
	steps_release(&l);
	return k;
}
