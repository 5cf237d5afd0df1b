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
#include "format/reader.h"
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
	char dir[SPOOL_PATH];
	int k;

	x->from = from;
	if ((k = scan(spool_path(s, NULL, below, dir), 0, steps_each, x, e)) == 0)
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
	char dir[SPOOL_PATH];

	return scan(spool_path(s, &step, "", dir), 0, steps_each_file, l, e);
}

/* Append the name of the device whose shard is in the file at path, since the file's name has
 * only the beginning of it.  A damaged file names nobody. */
static int
steps_long_name(struct array_names *l, const char *path, struct err *e)
{
	struct reader *r = NULL;
	struct err bad = ERR_INIT;
	int k = spool_reader(&r, path, &bad);

	if (k > 0 && (k = reader_to_shard(r, &bad)) > 0)
		k = array_add(l, spool_device_of(reader_shard(r)), &bad);
	reader_free(r);
	return k == -ERR_DATA || k > 0 ? 0 : k < 0 ? err_move(e, &bad) : 0;
}

int
steps_devices(struct array_names *l, const struct spool *s, uint64_t step,
    struct err *e)
{
	struct array_names files = ARRAY_NAMES_INIT;
	char path[SPOOL_PATH], device[SHARD_NAME + 1];
	size_t i;
	int k = steps_files(&files, s, step, e);

	for (i = 0; i < files.n && k == 0; i++)
		if (!spool_device(files.p[i], device, NULL))
			k = steps_long_name(l, spool_path(s, &step, files.p[i], path), e);
		else if (device[0] != '\0')
			k = array_add(l, device, e);
	array_release(&files);
	return k;
}

/* Set r, which has step and device, to the receipt of a shard whose file cannot be read any
 * more because of the error e, which is cleared. */
static void
steps_damaged(struct receipt *r, struct err *e)
{
	char line[ERR_LINE];

	r->verdict = RECEIPT_LATE;
	(void)snprintf(r->reason, sizeof(r->reason), "damaged in the spool: %.120s",
	    err_format(e, line));
	err_clear(e);
}

int
steps_shards(struct receipt_list *l, const struct spool *s, uint64_t step,
    const struct receipt_list *have, struct err *e)
{
	struct array_names files = ARRAY_NAMES_INIT;
	const struct receipt_list_line *had;
	struct receipt r, named = { .step = step };
	size_t i;
	char path[SPOOL_PATH], device[SHARD_NAME + 1];
	int k = steps_files(&files, s, step, e);

	for (i = 0; i < files.n && k >= 0; i++) {
		(void)spool_device(files.p[i], device, named.device);
		had = have != NULL ? receipt_list_find(have, &named) : NULL;
		/* a damaged file is read again: its device may have sent the shard again */
		if (had != NULL && had->r.verdict == RECEIPT_ACCEPTED) {
			k = receipt_list_add(l, &had->r, files.p[i], e);
			continue;
		}
		k = spool_shard(spool_path(s, &step, files.p[i], path), &r, e);
		if (k == -ERR_DATA) {
			r = named;
			steps_damaged(&r, e);
		}
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
