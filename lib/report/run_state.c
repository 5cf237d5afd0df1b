#include <fcntl.h>
#include <math.h>
#include <search.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/at.h"
#include "base/err.h"
#include "base/io.h"
#include "base/scan.h"
#include "format/reader.h"
#include "report/run_state.h"
#include "spool/receipt_list.h"
#include "spool/roster.h"
#include "spool/steps.h"

enum { STATUS_DEPTH = 8 };

/* ---- bytes on disk ---- */

struct run_state_tree {
	int depth;
	uint64_t bytes;
};

static int
run_state_each_file(void *arg, const char *path, const char *name, struct err *e)
{
	struct run_state_tree *t = arg, below = { t->depth + 1, 0 };
	struct stat st;

	if (fstatat(AT(path), &st, AT_SYMLINK_NOFOLLOW) < 0)
		return 0;
	t->bytes += (uint64_t)st.st_blocks * 512;
	if (!S_ISDIR(st.st_mode) || below.depth == STATUS_DEPTH)
		return 0;
	(void)scan(path, 0, run_state_each_file, &below, e);
	t->bytes += below.bytes;
	return 0;
}

uint64_t
run_state_disk(const char *dir)
{
	struct run_state_tree t = { 0, 0 };

	(void)scan(dir, 0, run_state_each_file, &t, NULL);
	return t.bytes;
}

/* ---- devices ---- */

/* Compare ids; a struct run_state_device begins with its id. */
static int
run_state_by_id(const void *a, const void *b)
{
	return memcmp(a, b, SHARD_ID);
}

/* Return the device with this id; add it if it is new.  NULL: error.  The search uses a tree
 * instead of a hash table, since devices could choose names that collide in a table. */
static struct run_state_device *
run_state_device(struct run_state *s, const unsigned char id[SHARD_ID], struct err *e)
{
	struct run_state_device *d, **had = tfind(id, &s->tree, run_state_by_id);
	char hex[33];

	if (had != NULL)
		return *had;
	if (alloc_grow(&s->d, &s->cap, s->n + 1, sizeof(*s->d), e) < 0 ||
	    (d = alloc_get(1, sizeof(*d), e)) == NULL)
		return NULL;
	memcpy(d->id, id, SHARD_ID);
	if (tsearch(d, &s->tree, run_state_by_id) == NULL) {
		alloc_free(d);
		(void)err_set(e, ERR_SYS, "out of memory");
		return NULL;
	}
	s->d[s->n++] = d;
	shard_hex(id, hex);
	(void)snprintf(d->name, sizeof(d->name), "#%.12s", hex);
	return d;
}

/* Return the device whose shard or receipts are in this file of a step's directory. */
static struct run_state_device *
run_state_of(struct run_state *s, const char *file, struct err *e)
{
	unsigned char id[SHARD_ID];
	char name[SHARD_NAME + 1];
	struct run_state_device *d;
	int whole = spool_device(file, name, id);

	if ((d = run_state_device(s, id, e)) != NULL)
		(void)snprintf(d->name, sizeof(d->name), "%.*s%s",
		    SHARD_NAME - 3, name, whole ? "" : "...");
	return d;
}

static void
run_state_step(struct run_state_device *d, uint64_t step)
{
	if (!d->any || step < d->first)
		d->first = step;
	if (!d->any || step > d->step)
		d->step = step;
	d->any = 1;
}

/* Return the number of steps in x below `end'. */
static size_t
run_state_before(const struct steps *x, uint64_t end)
{
	size_t lo = 0, hi = x->n, mid;

	while (lo < hi) {
		mid = (lo + hi) / 2;
		if (x->step[mid] < end)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo;
}

/* Note the receipts in the manifest of this step.  A shard that waits for the next average has
 * a receipt in the next manifest, too, and is counted there once that exists.  The receipt of a
 * step that is not in `all' answers none of the steps there. */
static int
run_state_count(struct run_state *s, const struct steps *all, uint64_t step,
    const struct receipt_list *l, struct err *e)
{
	struct run_state_device *d;
	const struct receipt *r;
	size_t i;

	for (i = 0; i < l->n; i++) {
		r = &l->line[i].r;
		if ((d = run_state_device(s, r->device, e)) == NULL)
			return -ERR_SYS;
		run_state_step(d, r->step);
		if (r->step == step)
			d->counted = step + 1;
		if (r->verdict == RECEIPT_DUPLICATE && step + 1 != s->run.open)
			continue;
		d->answered += run_state_before(all, r->step + 1) -
		    run_state_before(all, r->step);
		d->verdict[receipt_is_accepted(r) ? RECEIPT_ACCEPTED : r->verdict]++;
	}
	return 0;
}

/* ---- the directory of a step ---- */

struct run_state_dir {
	struct run_state *s;
	uint64_t step;
	int current;		/* 1: it has no average, and no earlier step is current */
	int closed;		/* 1: the step has a manifest of its own */
	int over;		/* 1: a manifest has the step's accepted shards */
	struct receipt_list l;	/* that manifest */
	size_t shards;		/* number of shards in the directory */
	double oldest;		/* arrival of the first of them, Unix seconds; 0: none */
};

static int
run_state_shard(struct run_state_dir *x, const char *name,
    const struct stat *st, struct err *e)
{
	struct run_state_device *d = run_state_of(x->s, name, e);
	const double at = (double)st->st_mtim.tv_sec +
	    (double)st->st_mtim.tv_nsec * 1e-9;

	if (d == NULL)
		return -ERR_SYS;
	if (!d->any || x->step >= d->step) {
		d->bytes = (uint64_t)st->st_size;
		d->at = at;
	}
	run_state_step(d, x->step);
	d->here |= x->current;
	d->disk += (uint64_t)st->st_blocks * 512;
	if (!x->over)
		d->verdict[RECEIPT_ACCEPTED]++;
	x->shards++;
	if (!(x->oldest > 0) || at < x->oldest)
		x->oldest = at;
	return 0;
}

/* Count the receipts of a device's rejected shards.  If the step is closed and its manifest has
 * no receipt of the device, they also count as one answer. */
static int
run_state_refused(struct run_state_dir *x, const char *name, const struct receipt_list *no,
    struct err *e)
{
	struct run_state_device *d = run_state_of(x->s, name, e);
	size_t i;

	if (d == NULL)
		return -ERR_SYS;
	run_state_step(d, x->step);
	for (i = 0; i < no->n; i++)
		d->verdict[no->line[i].r.verdict]++;
	d->answered += x->closed && d->counted != x->step + 1;
	return 0;
}

static int
run_state_each_shard(void *arg, const char *path, const char *name, struct err *e)
{
	struct run_state_dir *x = arg;
	const size_t n = strlen(name);
	struct receipt_list no = { .n = 0 };
	struct stat st;
	int k;

	if (fstatat(AT(path), &st, AT_SYMLINK_NOFOLLOW) < 0)
		return 0;		/* it was removed meanwhile */
	if (spool_is_shard(name))
		return run_state_shard(x, name, &st, e);
	if (n < 4 || strcmp(name + n - 3, ".no") != 0)
		return 0;
	if ((k = receipt_list_read(&no, path, e)) > 0)
		k = run_state_refused(x, name, &no, e);
	receipt_list_release(&no);
	return k;
}

/* Read a step: its shards, its receipts and, if it has one, its manifest. If it is the
 * current step, set s->now and s->step. */
static int
run_state_look(struct run_state *s, const struct spool *in, const struct steps *all,
    uint64_t step, struct err *e)
{
	struct run_state_dir x = { .s = s, .step = step };
	char dir[SPOOL_PATH];
	int k = manifest_of(in, step, &x.l, e);

	x.over = k > 0;
	x.closed = k > 0 && x.l.line[x.l.n - 1].r.step == step;
	x.current = s->now == STATUS_IDLE && step >= s->run.made;
	if (x.closed)
		k = run_state_count(s, all, step, &x.l, e);
	if (k >= 0 && (k = spool_there(spool_path(in, &step, "", dir), e)) > 0)
		k = scan(dir, 0, run_state_each_shard, &x, e);
	if (k >= 0 && x.current && (x.closed || x.shards != 0)) {
		s->now = x.closed ? STATUS_CLOSED : STATUS_OPEN;
		s->step = step;
		s->since = x.oldest;
	}
	receipt_list_release(&x.l);
	return k;
}

/* ---- all steps ---- */

static int
run_state_all(struct run_state *s, const struct spool *in, struct err *e)
{
	struct steps all = STEPS_INIT;
	struct run_state_device *d;
	size_t i, closed;
	int k = steps_list(&all, in, "", 0, e);

	s->steps = all.n;
	if (k == 0)
		k = steps_list(&all, in, STEPS_DONE, 0, e);
	for (i = 0; i < all.n && k >= 0; i++)
		k = run_state_look(s, in, &all, all.step[i], e);
	for (i = 0; i < s->n && k >= 0; i++) {
		d = s->d[i];
		closed = !d->any || d->first >= s->run.open ? 0 : run_state_before(&all,
		    s->run.open) - run_state_before(&all, d->first);
		d->missed = closed > d->answered ? closed - d->answered : 0;
	}
	steps_release(&all);
	return k;
}

/* ---- devices that the step waits for ---- */

static int
run_state_roster(struct run_state *s, const struct spool *in, struct err *e)
{
	struct array_names t = ARRAY_NAMES_INIT;
	unsigned char id[SHARD_ID];
	struct run_state_device *d;
	size_t i;
	int k = roster_read(&t, in, e);

	s->listed = k > 0;
	for (i = 0; i < t.n && k >= 0; i++) {
		shard_id(t.p[i], id);
		if ((d = run_state_device(s, id, e)) != NULL) {
			(void)snprintf(d->name, sizeof(d->name), "%s", t.p[i]);
			d->listed = 1;
		} else {
			k = -ERR_SYS;
		}
	}
	array_release(&t);
	return k < 0 ? k : 0;
}

static int
run_state_order(const void *a, const void *b)
{
	const struct run_state_device *const *x = a, *const *y = b;

	return strcmp((*x)->name, (*y)->name);
}

/* Return the word for the device's state.  missing 1: the current step waits for it. */
static const char *
run_state_where(const struct run_state *r, const struct run_state_device *d, int missing)
{
	if (!d->any)
		return "never";
	if (r->listed && !d->listed && !d->here)
		return "left";
	if (r->now == STATUS_IDLE)
		return d->step + 1 < r->run.made ? "behind" : "done";
	if (d->here)
		return "here";
	return missing ? "missing" : "left";
}

/* Compute the derived members.  The current step waits for the devices on the list or, if
 * there is no list, for those of the last average; before the first average, for all. */
static void
run_state_derive(struct run_state *s, double now)
{
	static const char *const is[] = { "idle", "open", "closed" };
	struct run_state_device *d;
	size_t i;
	int missing;

	s->is = is[s->now];
	s->ago = fmax(now - s->since, 0);
	s->last = s->run.made - 1;
	s->have = (s->run.made != 0 ? STATUS_LAST : 0u) |
	    (s->now != STATUS_IDLE ? STATUS_STEP : 0u);
	for (i = 0; i < s->n; i++) {
		d = s->d[i];
		missing = s->now != STATUS_IDLE && !d->here && (s->listed ?
		    d->listed : s->run.made != 0 ? d->counted >= s->run.made : d->any);
		s->here += (uint64_t)d->here;
		s->missing += (uint64_t)missing;
		d->awaited = missing && s->now == STATUS_OPEN;
		d->is = run_state_where(s, d, missing);
		d->ago = fmax(now - d->at, 0);
		d->accepted = d->verdict[RECEIPT_ACCEPTED];
		d->refused = d->verdict[RECEIPT_INVALID] + d->verdict[RECEIPT_LATE];
		d->have = (d->any ? STATUS_SEEN : 0u) |
		    (d->bytes != 0 ? STATUS_SENT : 0u);
	}
}

int
run_state_read(struct run_state *s, const struct spool *in, double now, struct err *e)
{
	struct reader *r;
	int k = spool_run(in, &r, e);

	memset(s, 0, sizeof(*s));
	if (k > 0 && (s->name = alloc_dup(spool_run_of(reader_shard(r)), e)) == NULL)
		k = -ERR_SYS;
	reader_free(r);
	if (k <= 0 ||
	    (k = manifest_closed(in, &s->run, e)) < 0 ||
	    (k = run_state_all(s, in, e)) < 0 || (k = run_state_roster(s, in, e)) < 0)
		return k;
	if (s->n != 0)
		qsort(s->d, s->n, sizeof(*s->d), run_state_order);
	s->disk = run_state_disk(in->state.dir);
	run_state_derive(s, now);
	return 1;
}

void
run_state_release(struct run_state *s)
{
	alloc_free(s->name);
	tdestroy(s->tree, alloc_free);
	alloc_free(s->d);
	memset(s, 0, sizeof(*s));
}
