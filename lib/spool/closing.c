#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/at.h"
#include "base/cli.h"
#include "base/clock.h"
#include "base/compare.h"
#include "base/err.h"
#include "base/temp.h"
#include "base/wait.h"
#include "pipe/filter.h"
#include "spool/closing.h"
#include "spool/manifest.h"
#include "spool/receipt_list.h"
#include "spool/roster.h"
#include "spool/steps.h"
#include "spool/waiting.h"

/* closing_look lists the directories of the open steps up to the first one with a quorum, or of
 * all.  Pauses grow with the number of open steps, so that a device that is far ahead does not
 * keep a processor busy. */
enum { CLOSING_LOOKS = 16 };	/* the pause gets one unit longer per so many open steps */

struct closing {
	const struct closing_opts *o;
	struct spool in;
	uint64_t step;		/* the current step */
	struct receipt_list list;	/* the step's manifest */
	struct array_names paths;	/* files of the shards to average */
	size_t open;		/* number of open steps at the last look */
};

int
closing_open(struct closing **out, const struct closing_opts *o, struct err *e)
{
	struct closing *r = alloc_get(1, sizeof(*r), e);
	int k;

	*out = r;
	if (r == NULL)
		return -ERR_SYS;
	r->o = o;
	r->in = (struct spool)SPOOL_INIT;
	r->in.sync = o->sync;
	r->in.wait = o->wait;
	if ((k = spool_open(&r->in, o->dir, o->create, e)) == 0)
		temp_sweep(r->in.state.dir);
	return k;
}

int
closing_made(const struct closing *r, uint64_t *n, struct err *e)
{
	struct steps l = STEPS_INIT;
	int k = steps_list(&l, &r->in, STEPS_DONE, 0, e);

	*n = l.n;
	steps_release(&l);
	return k;
}

void
closing_free(struct closing *r)
{
	if (r == NULL)
		return;
	array_release(&r->paths);
	receipt_list_release(&r->list);
	spool_close(&r->in);
	alloc_free(r);
}

/* ---- closing ---- */

/* Find the files of the shards that a manifest lists, since it has only their receipts.  An
 * excluded shard needs no file.  Damage to a file is found when the shard is averaged. */
static int
closing_names(const struct closing *r, struct receipt_list *l, struct err *e)
{
	struct receipt_list have = { .n = 0 };
	const struct receipt_list_line *file;
	struct receipt_list_line *x;
	size_t i;
	int k = 0;

	for (i = 0; i < l->n && k == 0; i++)	/* the list is in order of steps */
		if (i == 0 || l->line[i].r.step != l->line[i - 1].r.step)
			k = steps_shards(&have, &r->in, l->line[i].r.step, l, e);
	receipt_list_sort(&have);
	for (x = l->line; x < l->line + l->n && k == 0; x++) {
		if (!receipt_is_accepted(&x->r))
			continue;
		if ((file = receipt_list_find(&have, &x->r)) != NULL)
			memcpy(x->name, file->name, RECEIPT_LIST_NAME);
		else
			k = err_set(e, ERR_DATA, "mismatch: a shard that '%s/closed' lists is "
			    "absent from '%s/%llu': restore that folder from a backup",
			    r->in.state.dir, r->in.state.dir, (unsigned long long)x->r.step);
	}
	receipt_list_release(&have);
	return k;
}

/*
 * The step that is waited for: the first open step that has a quorum of shards, or else
 * the first one that has any.  Earlier steps without a quorum are passed over, so that one
 * device does not hold up all others.
 */
struct closing_watch {
	struct closed run;	/* at the last look */
	uint64_t step;
	struct array_names files;	/* its shards; none: no open step has shards */
	uint64_t first;		/* the first open step that has shards */
	int dated;		/* 1: `since' is set for `step' */
	double since;		/* when the step had a quorum, by clock_now */
};

/* Find the step to wait for, after the closed steps. */
static int
closing_look(struct closing *r, struct closing_watch *w, struct err *e)
{
	struct array_names files = ARRAY_NAMES_INIT;
	struct steps l = STEPS_INIT;
	const uint64_t before = w->step;
	size_t i;
	int k = steps_list(&l, &r->in, "", w->run.open, e);

	array_release(&w->files);
	r->open = l.n;
	for (i = 0; i < l.n && k == 0 && w->files.n < r->o->quorum; i++) {
		k = steps_files(&files, &r->in, l.step[i], e);
		if (w->files.n == 0)
			w->first = l.step[i];
		if (w->files.n == 0 || files.n >= r->o->quorum) {
			array_release(&w->files);
			w->step = l.step[i];
			w->files = files;
			files = (struct array_names)ARRAY_NAMES_INIT;
		}
		array_release(&files);
	}
	w->dated &= w->step == before;
	steps_release(&l);
	return k;
}

/* Add to l the accepted shards of earlier steps that no average has counted: those of
 * open steps, which are passed over, and those that the newest manifest left for the
 * next average.  Return 1 if one of these open steps has a quorum and must be closed first. */
static int
closing_carry(const struct closing *r, const struct closed *d, uint64_t step,
    struct receipt_list *l, struct err *e)
{
	struct steps x = STEPS_INIT;
	struct receipt_list last = { .n = 0 };
	size_t i, n = l->n;
	int k = d->open != 0 ? manifest_of(&r->in, d->open - 1, &last, e) : 0;

	for (i = 0; i < last.n && k >= 0; i++)
		if (last.line[i].r.verdict == RECEIPT_DUPLICATE) {
			last.line[i].r.verdict = RECEIPT_ACCEPTED;
			last.line[i].r.reason[0] = '\0';
			k = receipt_list_add(l, &last.line[i].r, "", e);
		}
	receipt_list_sort(l);
	if (k >= 0 && l->n != n)
		k = closing_names(r, l, e);
	if (k >= 0)
		k = steps_list(&x, &r->in, "", d->open, e);
	for (i = 0; i < x.n && x.step[i] < step && k == 0; i++) {
		n = l->n;
		if ((k = steps_shards(l, &r->in, x.step[i], NULL, e)) == 0)
			k = l->n != n && l->n - n >= r->o->quorum;
	}
	receipt_list_release(&last);
	steps_release(&x);
	return k;
}

/* Exclude `count' of the accepted shards, from the i-th on, with this verdict. */
static void
closing_refuse(struct closing *r, size_t i, size_t count,
    enum receipt_verdict verdict, const char *why)
{
	struct receipt *rc;
	size_t k, at = 0;

	for (k = 0; k < r->list.n; k++) {
		rc = &r->list.line[k].r;
		if (rc->verdict != RECEIPT_ACCEPTED || at++ < i || at > i + count)
			continue;
		rc->verdict = verdict;
		(void)snprintf(rc->reason, sizeof(rc->reason), "%.150s", why);
	}
}

/* If some shards are excluded and fewer than a quorum remain, let the remaining ones wait
 * for the next average. */
static void
closing_short(struct closing *r)
{
	size_t i, k, left = 0, devices = 0;
	const struct receipt *one, *other;
	char text[120];

	for (i = 0; i < r->list.n; i++)
		left += r->list.line[i].r.verdict == RECEIPT_ACCEPTED;
	if (left == r->list.n || left == 0)
		return;
	for (i = 0; i < r->list.n; i++) {
		one = &r->list.line[i].r;
		if (one->verdict != RECEIPT_ACCEPTED)
			continue;
		/* the shards of a device make one contribution */
		for (k = 0; k < i; k++) {
			other = &r->list.line[k].r;
			if (other->verdict == RECEIPT_ACCEPTED &&
			    memcmp(other->device, one->device, SHARD_ID) == 0)
				break;
		}
		devices += k == i;
	}
	if (devices >= r->o->quorum)
		return;
	(void)snprintf(text, sizeof(text), "quorum not reached: shards of %zu device%s are left, "
	    "expected %zu", devices, devices == 1 ? "" : "s", r->o->quorum);
	closing_refuse(r, 0, left, RECEIPT_DUPLICATE, text);
}

/* Print which shards of a closed step were damaged after they were accepted. */
static void
closing_tell(const struct closing *r)
{
	const struct receipt_list_line *x;
	char device[SHARD_NAME + 1];

	for (x = r->list.line; x < r->list.line + r->list.n; x++) {
		if (x->r.verdict != RECEIPT_LATE || r->in.wait == NULL)
			continue;
		(void)spool_device(x->name, device, NULL);
		cli_say(r->in.wait->f->cli, 0, "'%s/%llu/%s', the shard of device "
		    "'%s', is %s; no average counts it", r->in.state.dir,
		    (unsigned long long)x->r.step, x->name, device, x->r.reason);
	}
}

enum closing_result {
	CLOSING_DONE,
	CLOSING_AGAIN		/* look again: this call closed no step */
};

/* Close a step.  Return an enum closing_result.  seen: shards of the step that were read
 * before the run was locked, so that few have to be read under the lock. */
static int
closing_one(struct closing *r, uint64_t step, const struct receipt_list *seen,
    struct err *e)
{
	struct receipt_list *l = &r->list;
	struct closed d;
	int fd, k = spool_lock(&r->in, &fd, e);

	if (k < 0)
		return k;
	if ((k = manifest_closed(&r->in, &d, e)) == 0 &&
	    (d.made != d.open || d.open > step))
		k = CLOSING_AGAIN;	/* another process closed the step */
	if (k == 0 && (k = steps_shards(l, &r->in, step, seen, e)) == 0 &&
	    l->n < r->o->quorum)
		k = CLOSING_AGAIN;	/* a damaged file was removed meanwhile */
	if (k == 0 && (k = closing_carry(r, &d, step, l, e)) == 0) {
		receipt_list_sort(l);
		closing_short(r);
		k = manifest_close(&r->in, &d, l, e);
	}
	(void)close(fd);
	if (k != CLOSING_DONE)
		receipt_list_release(l);
	else
		closing_tell(r);
	return k;
}

/* ---- waiting for a step ---- */

/* Set w->since by the times of the step's files. */
static int
closing_since(const struct closing *r, struct closing_watch *w, struct err *e)
{
	struct timespec now = { 0, 0 };
	double *came = alloc_get(w->files.n, sizeof(*came), e), age = 0;
	char path[SPOOL_PATH];
	struct stat st;
	size_t i, n = 0;

	if (came == NULL)
		return -ERR_SYS;
	for (i = 0; i < w->files.n; i++) {
		spool_path(&r->in, &w->step, w->files.p[i], path);
		if (fstatat(AT(path), &st, 0) == 0)
			came[n++] = (double)st.st_mtim.tv_sec +
			    (double)st.st_mtim.tv_nsec * 1e-9;
	}
	(void)clock_gettime(CLOCK_REALTIME, &now);
	if (n >= r->o->quorum) {
		qsort(came, n, sizeof(*came), compare_f64);
		age = (double)now.tv_sec + (double)now.tv_nsec * 1e-9 -
		    came[r->o->quorum - 1];
	}
	w->since = clock_now() - (age > 0 ? age : 0);
	w->dated = 1;
	alloc_free(came);
	return 0;
}

/* Return 1 if the step of w is over, else 0.  The deadline runs from the time at which the
 * step got its quorum.  If it ran from the first shard, a fast device would leave the
 * others less time. */
static int
closing_ripe(const struct closing *r, struct closing_watch *w, struct err *e)
{
	const struct closing_opts *o = r->o;
	const int limited = o->deadline >= 0;
	struct array_names missing = ARRAY_NAMES_INIT;
	size_t expect = o->expect;
	int k;

	if (w->files.n < o->quorum)
		return 0;
	if (limited && !w->dated && (k = closing_since(r, w, e)) < 0)
		return k;
	if ((k = roster_missing(&missing, &r->in, &w->files, 0, e)) > 0)
		expect = w->files.n + missing.n;
	array_release(&missing);
	if (k < 0)
		return k;
	if (expect != 0 ? w->files.n >= expect : !limited)
		return 1;
	return limited && clock_now() - w->since >= o->deadline;
}

/* Take the closed step whose average was not made or, if there is none, close the first step
 * with a quorum if it is over.  Return an enum closing_result.  Earlier steps, without a quorum,
 * are passed over only then. */
static int
closing_try(struct closing *r, struct closing_watch *w, struct err *e)
{
	struct receipt_list seen = { .n = 0 };
	int k = manifest_closed(&r->in, &w->run, e);

	if (k == 0 && w->run.made != w->run.open) {
		r->step = w->run.open - 1;
		/* the process that closed the step may have died before a sync */
		return (k = spool_durable(&r->in, NULL, e)) < 0 ||
		    (k = manifest_of(&r->in, r->step, &r->list,
		    e)) < 0 ? k : closing_names(r, &r->list, e);
	}
	if (k < 0 || (k = closing_look(r, w, e)) < 0 ||
	    (k = closing_ripe(r, w, e)) <= 0)
		return k < 0 ? k : CLOSING_AGAIN;
	k = steps_shards(&seen, &r->in, w->step, NULL, e);
	receipt_list_sort(&seen);
	if (k == 0)
		k = closing_one(r, w->step, &seen, e);
	receipt_list_release(&seen);
	if (k != CLOSING_DONE)
		return k;
	r->step = w->step;
	if (w->first != r->step && r->in.wait != NULL)
		cli_say(r->in.wait->f->cli, 0, "fewer than %zu devices sent step %llu: the "
		    "next average is of step %llu, with the accepted shards of the "
		    "skipped steps", r->o->quorum, (unsigned long long)w->first,
		    (unsigned long long)r->step);
	return CLOSING_DONE;
}

static int
closing_wait(struct closing *r, struct err *e)
{
	struct closing_watch w = { .files = ARRAY_NAMES_INIT };
	struct wait pause = wait_begin(-1, r->o->out);
	double took;
	size_t i, looks;
	int k;

	waiting_begin(r->in.wait);
	do {
		took = clock_now();
		if ((k = closing_try(r, &w, e)) != CLOSING_AGAIN)
			break;
		if (waiting_due(r->in.wait))
			waiting_step(&r->in, w.files.n != 0 ? w.step : w.run.made - 1,
			    w.files.n, r->o->expect != 0 ? r->o->expect : r->o->quorum);
		/* pause for some four times as long as the look took, at most 10 s */
		took = clock_now() - took;
		looks = (size_t)fmin(400 * took, 1000) + r->open / CLOSING_LOOKS;
		for (i = 0; i < looks && k >= 0; i++)
			k = wait_more(&pause, e);
	} while (k >= 0 && (k = wait_more(&pause, e)) >= 0 &&
	    (k = statedir_there(&r->in.state, e)) == 0);
	array_release(&w.files);
	return k;
}

/* ---- a step ---- */

static int
closing_paths(struct closing *r, struct err *e)
{
	const struct receipt_list_line *x;
	char path[SPOOL_PATH];
	int k = 0;

	array_release(&r->paths);
	for (x = r->list.line; x < r->list.line + r->list.n && k == 0; x++)
		if (x->r.verdict == RECEIPT_ACCEPTED)
			k = array_add(&r->paths, spool_path(&r->in, &x->r.step, x->name,
			    path), e);
	return k;
}

int
closing_next(struct closing *r, uint64_t *step, const struct array_names **paths,
    struct err *e)
{
	int k;

	receipt_list_release(&r->list);
	if ((k = closing_wait(r, e)) == 0)
		k = closing_paths(r, e);
	*step = r->step;
	*paths = &r->paths;
	return k;
}

int
closing_exclude(struct closing *r, size_t i, size_t count,
    enum receipt_verdict verdict, const char *why, struct err *e)
{
	struct closed d;
	int fd, k;

	closing_refuse(r, i, count, verdict, why);
	closing_short(r);
	if ((k = spool_lock(&r->in, &fd, e)) < 0)
		return k;
	/* if another process has closed a later step, its manifest stays */
	if ((k = manifest_closed(&r->in, &d, e)) == 0 && d.made != d.open && d.open - 1 == r->step)
		k = manifest_close(&r->in, &d, &r->list, e);
	(void)close(fd);
	return k == 0 ? closing_paths(r, e) : k;
}

/* Wait until the step's average is in the spool.  The program that puts it there reads
 * our output; without a reader, fail with wait_orphan's error. */
static int
closing_published(const struct closing *r, struct err *e)
{
	struct wait w = wait_begin(-1, -1);
	int k, gone = 0;

	waiting_begin(r->in.wait);
	while ((k = spool_has(&r->in, &r->step, SPOOL_AVERAGE, e)) == 0) {
		if ((gone && (k = wait_orphan(r->o->out, 0, e)) < 0) ||
		    (k = statedir_there(&r->in.state, e)) < 0)
			return k;
		if (waiting_due(r->in.wait))
			waiting_say(r->in.wait, r->step, "", "waiting for the average of %s "
			    "%llu in the spool (ace-recv --publish)", r->in.wait->f->events != 0 ?
			    "round" : "step", (unsigned long long)r->step +
			    (r->in.wait->f->events != 0));
		/* look once more: the reader may have stored the average just before it
		 * ended */
		if (!(gone = wait_gone(r->o->out, 0)))
			(void)wait_more(&w, e);
	}
	/* the process that stored it may have died before the name was durable */
	return k < 0 ? k : spool_durable(&r->in, &r->step, e);
}

int
closing_done(struct closing *r, struct err *e)
{
	const struct closing_opts *o = r->o;
	uint64_t before = o->keep != 0 && r->step >= o->keep ?
	    r->step - o->keep + 1 : 0;
	size_t i;
	int k = 0;

	/* keep shards that wait for the next average, and those that this step counted: a
	 * power cut may reopen this step until the next one is closed */
	for (i = 0; i < r->list.n; i++)
		if (r->list.line[i].r.step < before)
			before = r->list.line[i].r.step;
	if (o->published && r->paths.n != 0)
		k = closing_published(r, e);
	if (k == 0)
		k = manifest_done(&r->in, r->step, e);
	if (k == 0 && before != 0)
		k = steps_remove(&r->in, before, e);
	return k;
}
