#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/err.h"
#include "base/scan.h"
#include "spool/accepted.h"
#include "spool/steps.h"

struct accepted {
	const struct inbox *s;
	const char *run;
	const struct shard *of;
	struct ledger *got, *gone;
};

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
	size_t len = strlen(d->path) + strlen(name) + 1;
	struct receipt r;
	char *path;
	int k;

	if (!inbox_is_shard(name))
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
	struct steps all = STEPS_INIT;	/* that have a directory, or had */
	size_t i;
	int k;

	if ((k = steps_list(&all, s, a.run, "", 0, e)) == 0)
		k = steps_list(&all, s, a.run, "old", 0, e);
	for (i = 0; i < all.n && k == 0; i++)
		k = accepted_step(&a, all.step[i], e);
	steps_release(&all);
	return k;
}
