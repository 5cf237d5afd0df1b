#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/err.h"
#include "base/scan.h"
#include "base/temp.h"
#include "base/wait.h"
#include "spool/clients.h"
#include "spool/decide.h"
#include "spool/rounds.h"
#include "spool/steps.h"
#include "spool/progress.h"

struct rounds {
	const struct rounds_opts *o;
	struct inbox in;
	char *run;
	uint64_t step;		/* UINT64_MAX: none was done yet */
	struct ledger list;	/* of its manifest */
	char **path;		/* of those that count */
	size_t n;
	int sums;		/* descriptor of clients_sums, or -1 */
};

struct rounds_names {
	const struct inbox *s;
	const char *want;
	char *name;		/* the first, allocated */
	int n;
};

static int
rounds_each_run(void *arg, const char *name, struct err *e)
{
	struct rounds_names *r = arg;
	char *run;
	int k = inbox_run_name(r->s, name, &run, e);

	if (run != NULL && inbox_fits(r->want, run) && r->n++ == 0) {
		r->name = run;
		run = NULL;
	}
	alloc_free(run);
	return k < 0 ? k : 0;
}

int
rounds_count(const struct inbox *s, const char *want, char **name,
    struct err *e)
{
	struct rounds_names r = { s, want, NULL, 0 };
	int k = scan(s->state.dir, rounds_each_run, &r, e);

	if (k == 0 && r.n == 1) {
		*name = r.name;
		return ROUNDS_ONE_RUN;
	}
	alloc_free(r.name);
	return k < 0 ? k : r.n > 1 ? ROUNDS_RUNS : ROUNDS_NO_RUN;
}

/* The run to aggregate: the one that was named, or the only one there is that the
 * name fits. */
static int
rounds_run(struct rounds *r, struct err *e)
{
	const char *want = r->o->run;
	struct wait w = wait_begin(-1, r->o->out);
	int k;

	if (want != NULL && want[strcspn(want, "*")] == '\0') {
		r->run = alloc_dup(want, e);
		return r->run != NULL ? 0 : -ERR_SYS;
	}
	progress_begin(r->in.wait);
	while ((k = rounds_count(&r->in, want, &r->run, e)) == ROUNDS_NO_RUN) {
		if (progress_due(r->in.wait))
			progress_wait(r->in.wait, 0, "", "waiting for a first "
			    "shard in '%s'%s%s (ace-recv --spool)", r->in.state.dir,
			    want != NULL ? " of run " : "",
			    want != NULL ? want : "");
		if ((k = wait_more(&w, e)) < 0)
			return k;
	}
	if (k == ROUNDS_RUNS)
		return err_set(e, ERR_USAGE, "several runs in '%s': --run NAME",
		    r->in.state.dir);
	return k < 0 ? k : 0;
}

int
rounds_open(struct rounds **out, const struct rounds_opts *o, struct err *e)
{
	struct rounds *r = alloc_get(1, sizeof(*r), e);
	struct decided d;
	char *path;
	int k;

	*out = r;
	if (r == NULL)
		return -ERR_SYS;
	r->o = o;
	r->sums = -1;
	r->in = (struct inbox)INBOX_INIT;
	r->in.sync = o->sync;
	r->in.wait = o->wait;
	if (!o->create && access(o->dir, F_OK) < 0 && errno == ENOENT)
		return err_set(e, ERR_SYS, "no spool '%s': ace-recv makes it, "
		    "or --create", o->dir);
	if ((k = inbox_open(&r->in, o->dir, e)) < 0)
		return k;
	clients_note(&r->in, "ace-aggregate", o->confined);
	if ((k = rounds_run(r, e)) < 0 ||
	    (k = clients_sums(&r->in, r->run, &r->sums, e)) < 0)
		return k;
	if ((path = rounds_file(r, "", e)) == NULL)
		return -ERR_SYS;
	temp_sweep(path);
	alloc_free(path);
	if ((k = decide_load(&r->in, r->run, &d, e)) == 0)
		r->step = d.has_last ? d.last : UINT64_MAX;
	return k;
}

int
rounds_made(const struct rounds *r, uint64_t *n, struct err *e)
{
	struct steps l = STEPS_INIT;
	int k = steps_list(&l, &r->in, r->run, STEPS_DONE, 0, e);

	*n = l.n;
	steps_release(&l);
	return k;
}

static void
rounds_forget(struct rounds *r)
{
	while (r->n != 0)
		alloc_free(r->path[--r->n]);
	alloc_free(r->path);
	r->path = NULL;
	ledger_release(&r->list);
}

void
rounds_free(struct rounds *r)
{
	if (r == NULL)
		return;
	rounds_forget(r);
	alloc_free(r->run);
	if (r->sums >= 0)
		(void)close(r->sums);
	inbox_close(&r->in);
	alloc_free(r);
}

char *
rounds_file(const struct rounds *r, const char *name, struct err *e)
{
	return inbox_path(&r->in, r->run, NULL, name, e);
}

/* The paths of those that count. */
static int
rounds_paths(struct rounds *r, struct err *e)
{
	const struct ledger *l = &r->list;
	size_t i;

	while (r->n != 0)
		alloc_free(r->path[--r->n]);
	alloc_free(r->path);
	if ((r->path = alloc_get(l->n + 1, sizeof(*r->path), e)) == NULL)
		return -ERR_SYS;
	for (i = 0; i < l->n; i++) {
		if (l->r[i].verdict != RECEIPT_ACCEPTED)
			continue;
		if ((r->path[r->n] = inbox_path(&r->in, r->run, &l->r[i].step,
		    l->name[i], e)) == NULL)
			return -ERR_SYS;
		r->n++;
	}
	return 0;
}

int
rounds_next(struct rounds *r, uint64_t *step, char ***paths, size_t *n,
    struct err *e)
{
	int k;

	rounds_forget(r);
	if ((k = closing_wait(&r->in, r->run, &r->step, &r->o->rule,
	    r->o->out, &r->list, e)) == 0)
		k = rounds_paths(r, e);
	*step = r->step;
	*paths = r->path;
	*n = r->n;
	return k;
}

/* Those of the list from the i-th that counts on, `count' of them, do not count, with
 * this verdict: `invalid', or `duplicate' where they wait for the next average. */
static void
rounds_refuse(struct rounds *r, size_t i, size_t count,
    enum receipt_verdict verdict, const char *why)
{
	struct receipt *rc;
	size_t k, at = 0;

	for (k = 0; k < r->list.n; k++) {
		rc = &r->list.r[k];
		if (rc->verdict != RECEIPT_ACCEPTED || at++ < i || at > i + count)
			continue;
		rc->verdict = verdict;
		(void)snprintf(rc->reason, sizeof(rc->reason), "%.150s", why);
	}
}

int
rounds_aside(struct rounds *r, size_t i, size_t count, int waits,
    const char *why, char ***paths, size_t *n, struct err *e)
{
	const size_t quorum = r->o->rule.quorum;
	const size_t left = r->n - count;
	char text[120];
	int k;

	rounds_refuse(r, i, count, waits ? RECEIPT_DUPLICATE : RECEIPT_INVALID, why);
	if (left != 0 && left < quorum) {
		(void)snprintf(text, sizeof(text), "quorum not reached: %zu of "
		    "%zu shards are left", left, quorum);
		rounds_refuse(r, 0, left, RECEIPT_DUPLICATE, text);
	}
	if ((k = closing_aside(&r->in, r->run, &r->list, e)) == 0)
		k = rounds_paths(r, e);
	*paths = r->path;
	*n = r->n;
	return k;
}

int
rounds_done(struct rounds *r, struct err *e)
{
	const struct rounds_opts *o = r->o;
	const int any = r->n != 0;
	uint64_t before = o->keep != 0 && r->step >= o->keep ?
	    r->step - o->keep + 1 : 0;
	size_t i;
	int k = 0;

	/* what waits stays; and all that the step is made of, until the next one is
	 * closed: a power cut may bring it back */
	for (i = 0; i < r->list.n; i++)
		if (r->list.r[i].step < before)
			before = r->list.r[i].step;
	rounds_forget(r);
	if (o->published && any)
		k = closing_published(&r->in, r->run, r->step, r->o->out,
		    e);
	if (k == 0)
		k = decide_done(&r->in, r->run, r->step, e);
	if (k == 0 && before != 0)
		k = closing_forget(&r->in, r->run, before, e);
	return k;
}
