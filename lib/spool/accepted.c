#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/err.h"
#include "base/scan.h"
#include "spool/accepted.h"

struct accepted {
	const struct inbox *s;
	const char *run;
	const struct shard *of;
	struct ledger *got, *gone;
	uint64_t *step;		/* those that have a directory, or had */
	size_t n, cap;
};

/* ---- which steps ---- */

static int
accepted_number(void *arg, const char *name, struct err *e)
{
	struct accepted *a = arg;
	char *end;
	uint64_t v;
	int r;

	if (name[0] < '0' || name[0] > '9')
		return 0;
	v = strtoull(name, &end, 10);
	if (*end != '\0')
		return 0;
	if ((r = alloc_grow(&a->step, &a->cap, a->n + 1, sizeof(*a->step),
	    e)) == 0)
		a->step[a->n++] = v;
	return r;
}

static int
accepted_steps(struct accepted *a, const char *dir, struct err *e)
{
	char *path = inbox_path(a->s, a->run, NULL, dir, e);
	int r = path != NULL ? scan(path, accepted_number, a, e) : -ERR_SYS;

	alloc_free(path);
	return r;
}

static int
accepted_order(const void *a, const void *b)
{
	const uint64_t *x = a, *y = b;

	return (*x > *y) - (*x < *y);
}

/* ---- one step ---- */

static int
accepted_ours(const struct accepted *a, const struct receipt *r)
{
	return memcmp(r->run, a->of->run, SHARD_ID) == 0 &&
	    memcmp(r->device, a->of->device, SHARD_ID) == 0;
}

struct accepted_dir {
	struct accepted *a;
	const char *path;
	struct ledger *l;
};

static int
accepted_file(void *arg, const char *name, struct err *e)
{
	const struct accepted_dir *d = arg;
	size_t n = strlen(name), len = strlen(d->path) + n + 1;
	struct receipt r;
	char *path;
	int k;

	if (n < 5 || strcmp(name + n - 5, ".aceg") != 0 ||
	    strcmp(name, "aggregate.aceg") == 0)
		return 0;
	if ((path = alloc_get(len, 1, e)) == NULL)
		return -ERR_SYS;
	(void)snprintf(path, len, "%s%s", d->path, name);
	k = ledger_shard(path, &r, e);
	alloc_free(path);
	if (k <= 0 || !accepted_ours(d->a, &r))
		return k < 0 ? k : 0;
	return ledger_add(d->l, &r, name, e);
}

static int
accepted_files(struct accepted *a, uint64_t step, struct ledger *l,
    struct err *e)
{
	char *path = inbox_path(a->s, a->run, &step, "", e);
	struct accepted_dir d = { a, path, l };
	int r = path != NULL ? scan(path, accepted_file, &d, e) : -ERR_SYS;

	alloc_free(path);
	return r;
}

/* Lists what the manifest names, as far as the files are still there. */
static int
accepted_listed(struct accepted *a, const struct ledger *list,
    const struct ledger *have, struct err *e)
{
	const struct receipt *r;
	size_t i, j;
	int k = 0;

	for (i = 0; i < list->n && k == 0; i++) {
		r = &list->r[i];
		if (!accepted_ours(a, r) || !receipt_is_accepted(r))
			continue;	/* or was set aside */
		for (j = 0; j < have->n; j++)
			if (memcmp(have->r[j].digest, r->digest,
			    SHARD_DIGEST) == 0)
				break;
		k = j < have->n ?
		    ledger_add(a->got, r, have->name[j], e) :
		    ledger_add(a->gone, r, "", e);
	}
	return k;
}

static int
accepted_step(struct accepted *a, uint64_t step, struct err *e)
{
	struct ledger have, list;
	size_t i;
	int k;

	memset(&have, 0, sizeof(have));
	if ((k = accepted_files(a, step, &have, e)) == 0 &&
	    (k = inbox_manifest(a->s, a->run, step, &list, e)) >= 0) {
		if (k > 0)
			k = accepted_listed(a, &list, &have, e);
		else
			for (i = 0; i < have.n && k == 0; i++)
				k = ledger_add(a->got, &have.r[i],
				    have.name[i], e);
		ledger_release(&list);
	}
	ledger_release(&have);
	return k;
}

int
accepted_find(const struct inbox *s, const struct shard *of,
    struct ledger *got, struct ledger *gone, struct err *e)
{
	const char *run = text_get(&of->kv, SHARD_KEY_RUN);
	struct accepted a = { .s = s, .run = run != NULL ? run : "", .of = of,
	    .got = got, .gone = gone };
	size_t i;
	int k;

	if ((k = accepted_steps(&a, "", e)) == 0)
		k = accepted_steps(&a, "old/", e);
	if (a.n != 0)
		qsort(a.step, a.n, sizeof(*a.step), accepted_order);
	for (i = 0; i < a.n && k == 0; i++)
		if (i == 0 || a.step[i] != a.step[i - 1])
			k = accepted_step(&a, a.step[i], e);
	alloc_free(a.step);
	return k;
}
