#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/at.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/wait.h"
#include "device/contraction.h"
#include "device/error_feedback.h"
#include "device/learned.h"
#include "device/pending.h"
#include "pipe/filter.h"
#include "sync/compensate.h"

const char *const feedback_names[] = {
	"ef", "cache", NULL
};

#define FEEDBACK_LEARNS 5.0	/* seconds to wait for an average */

struct feedback {
	struct feedback_opts o;
	char how[64];			/* the kind, with rho for cache, as in "cache:0.9" */
	const struct kern *kern;
	struct statedir state;
	struct residual old;
	struct pending_last last;		/* the previous shard, as it was sent */
	struct residual_new *next;
	int scratch;			/* file in which the coded shard is made; or -1 */
	struct feedback_history history;
	char old_name[CACHE_NAME], new_name[CACHE_NAME];	/* history's files; "": none */
	struct pending pending;
	struct dense back[PENDING_MAX];	/* values of rejected shards, to add back */
	size_t nback;
	int compensated;		/* 1: an earlier program has added the residual */
	int redo;		/* 1: code the target of the refused shard again */
	int sent;		/* 1: this process has sent the state's last shard */
	struct contraction contract;	/* contraction of the current shard */
	const struct schema *schema;
};

/* If files are synced, sync the residual's directory: the process that committed it may have
 * been killed between the rename and this sync. */
static int
feedback_durable(const struct feedback *f, const struct residual *q, struct err *e)
{
	return f->o.sync == IO_SYNC_FULL && q->d.r != NULL ?
	    fd_sync_name(reader_name(q->d.r), e) : 0;
}

int
feedback_open(struct feedback **out, const char *dir,
    const struct feedback_opts *o, struct err *e)
{
	struct feedback *f = alloc_get(1, sizeof(*f), e);
	int r;

	*out = NULL;
	if (f == NULL)
		return -ERR_SYS;
	f->o = *o;
	f->scratch = -1;
	f->state = (struct statedir)STATE_INIT;
	f->state.durable = o->sync == IO_SYNC_FULL;
	f->state.again = o->sync != IO_SYNC_RENAME;
	(void)snprintf(f->how, sizeof(f->how), o->kind == FEEDBACK_CACHE ? "%s:%.9g" : "%s",
	    feedback_names[o->kind], o->decay);
	/* the receiver knows only these digits */
	if (o->kind == FEEDBACK_CACHE)
		f->history.rho = (float)num_read(strchr(f->how, ':') + 1, NULL);
	r = (f->kern = kern_get(e)) != NULL ? 0 : -ERR_USAGE;
	if (r < 0 || (r = statedir_open(&f->state, dir, e)) < 0 ||
	    (r = statedir_lock(&f->state, STATE_LOCK, e)) < 0 ||
	    (f->state.durable && (r = statedir_durable(&f->state, e)) < 0)) {
		feedback_free(f);
		return r;
	}
	*out = f;
	return 0;
}

static void
feedback_drop(struct feedback *f)
{
	residual_close(&f->old);
	pending_last_close(&f->last);
	feedback_history_close(&f->history);
	while (f->nback != 0)
		dense_close(&f->back[--f->nback]);
	residual_free(f->next);
	f->next = NULL;
}

void
feedback_free(struct feedback *f)
{
	if (f == NULL)
		return;
	feedback_drop(f);
	if (f->scratch >= 0)
		(void)close(f->scratch);
	statedir_close(&f->state);
	alloc_free(f);
}

static int
feedback_steps(const struct feedback *f, const struct shard *sh, struct err *e)
{
	const struct residual *q = &f->old;
	unsigned long long step = sh->step, old = q->step;

	if (f->o.window != 0 && sh->kind > SHARD_MEAN)
		return err_set(e, ERR_DATA, "mismatch: step %llu of '%s' has kind %s, "
		    "expected gradient, delta, sum or mean", step, shard_device(sh),
		    shard_kind_name(sh->kind));
	if (q->d.r == NULL)
		return 0;
	if (sh->step < q->step)
		return err_set(e, ERR_REFUSED, "step %llu of '%s' is not after step "
		    "%llu, the last one in the state: the trainer is older than its "
		    "state, or shards are out of order (restore the newer checkpoint or "
		    "spool, or take an empty state and a new device name)", step,
		    shard_device(sh), old);
	if (sh->step > q->step && sh->step - q->step > 1 && !f->o.gap && !shard_is_abreast(sh))
		return err_set(e, ERR_REFUSED, "steps are missing between %llu and "
		    "%llu of '%s': send step %llu next, pass --allow-gap or, if the "
		    "state is from a backup, run ace-ack --restart", old, step,
		    shard_device(sh), old + 1);
	return sh->step == q->step;
}

/* If the window is 1 and the state learns of averages, refuse a shard that comes before the
 * average of the last shard that this process sent. Wait first, because the trainer may have
 * the average before the state does. Accept a shard whose trainer knows all averages: the
 * trainer may have read them without this state. */
static int
feedback_answered(const struct feedback *f, const struct shard *sh, struct err *e)
{
	const uint64_t last = f->old.step;
	struct wait w = wait_begin(FEEDBACK_LEARNS, f->o.piped ? STDOUT_FILENO : -1);
	struct learned h;
	uint64_t known;
	int r;

	if (!f->sent || f->o.window != 1 || shard_is_abreast(sh))
		return 0;
	do {
		if ((r = learned_load(&h, &f->state, LEARNED_FEEDBACK, e)) <= 0)
			return r;
		known = h.step;
		learned_release(&h);
		if (known >= last)
			return 0;
	} while ((r = wait_more(&w, e)) == WAIT_LOOK);
	return r < 0 ? r : err_set(e, ERR_REFUSED, "step %llu of '%s' came before the "
	    "average of step %llu: the training program has to send one shard per "
	    "round, and to read that round's average before the next round",
	    (unsigned long long)sh->step, shard_device(sh), (unsigned long long)last);
}

static int
feedback_stamp(struct feedback *f, const struct shard *sh, struct err *e)
{
	const char *stamp = text_get(&sh->kv, SHARD_KEY_STAMP);

	f->compensated = stamp != NULL;
	if (stamp == NULL)
		return 0;
	if (f->o.kind == FEEDBACK_EF && f->o.gamma < 1)
		return err_set(e, ERR_USAGE, "the residual was added before coding: set its "
		    "factor with --gamma (of ace-expand or ace-step), not with "
		    "--error-feedback ef:%g", f->o.gamma);
	if (strcmp(stamp, f->old.d.stamp) != 0)
		return err_set(e, ERR_REFUSED, "step %llu of '%s' includes a residual "
		    "that differs from the state's: run ace-expand on the "
		    "trainer's shard again, with the same -S", (unsigned long long)sh->step,
		    shard_device(sh));
	return 0;
}

/* ---- pending shards ---- */

/* Return 1 if a window was given, now or by an earlier call: then shards stay pending until
 * their receipts come, so that a later call without the option does not lose them. */
static int
feedback_keeps(const struct feedback *f, const struct residual *q)
{
	return f->o.window != 0 || (q->d.r != NULL &&
	    text_get(&reader_shard(q->d.r)->kv, FEEDBACK_KEY_KEEPS) != NULL);
}

/* Judge the pending shards beside residual q by the receipts.  If the state has no file of
 * receipts and never had a window, sent shards count as delivered. */
static int
feedback_judge(struct feedback *f, const struct residual *q, struct err *e)
{
	struct receipts rc;
	size_t i;
	int r = f->pending.n != 0 ? receipts_load(&rc, &f->state, e) : 0;

	if (r < 0 || f->pending.n == 0)
		return r;
	pending_judge(&f->pending, &rc, reader_shard(q->d.r));
	for (i = 0; i < f->pending.n && !rc.managed && !feedback_keeps(f, q); i++)
		f->pending.p[i].fate = PENDING_ACCEPTED;
	return 0;
}

/* Wait for receipts until the window of pending shards has room. */
static int
feedback_wait(struct feedback *f, struct err *e)
{
	struct wait w = wait_begin(f->o.wait, f->o.piped ? STDOUT_FILENO : -1);
	/* with cache, the next difference depends on which history the receiver has */
	const size_t window = f->o.kind == FEEDBACK_CACHE ? 1 :
	    f->o.window != 0 ? f->o.window : PENDING_MAX;
	int r;

	do {
		if ((r = feedback_judge(f, &f->old, e)) < 0 ||
		    pending_count(&f->pending) < window)
			return r;
	} while ((r = wait_more(&w, e)) == WAIT_LOOK);
	return r < 0 ? r : err_set(e, ERR_REFUSED, "shards without a receipt in state '%s': %zu "
	    "after a wait of %g s, expected fewer than %zu%s: pass their receipts to "
	    "ace-ack, or run ace-compress --resend", f->state.dir,
	    pending_count(&f->pending), f->o.wait, window,
	    f->o.kind == FEEDBACK_CACHE ? " (with cache, whatever --window is)" : "");
}

/* Open the rejected shards, whose values are added back to the next target. */
static int
feedback_take_back(struct feedback *f, struct err *e)
{
	size_t i;
	int r;

	if (f->o.kind == FEEDBACK_CACHE)	/* feedback_history opens the history instead */
		return 0;
	for (i = 0; i < f->pending.n; i++) {
		if (f->pending.p[i].fate != PENDING_REJECTED)
			continue;
		if ((r = pending_values(&f->back[f->nback++], &f->state,
		    f->pending.p[i].step, e)) < 0)
			return r;
	}
	return 0;
}

/* Open the state's history f->old_name; -ERR_DATA if it is absent. */
static int
feedback_history_open(const struct feedback *f, struct dense *d, struct err *e)
{
	int r = dense_open(d, &f->state, f->old_name, SHARD_HISTORY, RESIDUAL_ANEW, e);

	return r < 0 || d->r != NULL ? r : err_set(e, ERR_DATA, "mismatch: file '%s' is "
	    "absent from state '%s': restore the whole state from one copy" RESIDUAL_ANEW,
	    f->old_name, f->state.dir);
}

/* With cache, open the history that the receiver has: the history of the last step or, if the
 * last shard was rejected, of the step before.  In that case the last history is the
 * reconstruction of the rejected shard, and its values are added back to the target.  After an
 * invalid shard begin a new history, because the receiver may have lost its own. */
static int
feedback_history(struct feedback *f, uint64_t step, struct err *e)
{
	const struct pending_one *p = pending_find(&f->pending, f->old.step);
	const char *before;
	int r;

	f->old_name[0] = f->new_name[0] = '\0';
	if (f->o.kind != FEEDBACK_CACHE)
		return 0;
	(void)snprintf(f->new_name, CACHE_NAME, DENSE_HISTORY, (unsigned long long)step);
	if (f->old.d.r == NULL)
		return 0;
	(void)snprintf(f->old_name, CACHE_NAME, DENSE_HISTORY, (unsigned long long)f->old.step);
	if (p != NULL && p->fate == PENDING_REJECTED) {
		if ((r = feedback_history_open(f, &f->back[f->nback++], e)) < 0)
			return r;
		before = text_get(&reader_shard(f->old.d.r)->kv, FEEDBACK_KEY_BEFORE);
		f->old_name[0] = '\0';
		/* begin with zeros: there is no history before, or the receiver may lack
		 * it, and then refuses each difference to it */
		if (before == NULL || p->invalid)
			return 0;
		(void)snprintf(f->old_name, CACHE_NAME, "history.%.20s", before);
	}
	return feedback_history_open(f, &f->history.h, e);
}

/* Refuse a state that was made with another kind of feedback or another rho. */
static int
feedback_same_kind(const struct feedback *f, struct err *e)
{
	const char *made;

	if (f->old.d.r == NULL)
		return 0;
	made = text_get(&reader_shard(f->old.d.r)->kv, FEEDBACK_KEY_STATE);
	return made != NULL && strcmp(made, f->how) == 0 ? 0 : err_set(e, ERR_REFUSED,
	    "state '%s' was made with feedback %s, not %s: keep that --error-feedback, or "
	    "give another state directory", f->state.dir, made != NULL ? made : "unknown", f->how);
}

/* Set the incarnation to that of the residual, or to that of feedback_restart if there is no
 * residual.  If there was no restart either, it stays. */
static int
feedback_incarnation(const struct feedback *f, struct shard *s, struct err *e)
{
	double n = 0;
	int r = 0;

	if (f->old.d.r != NULL)
		s->incarnation = reader_shard(f->old.d.r)->incarnation;
	else if ((r = learned_number(&f->state, LEARNED_RESTART,
	    LEARNED_INCARNATION, &n, e)) > 0)
		s->incarnation = (uint32_t)fmin(n, SHARD_INCARNATIONS);
	return r < 0 ? r : 0;
}

/* Set s, the coded shard, to a copy of `from'; then set the flags, keys and incarnation of s. */
static int
feedback_describe(const struct feedback *f, struct shard *s,
    const struct shard *from, struct err *e)
{
	int r = shard_copy(s, from, e);

	/* the stamp has been checked; the receiver does not need it */
	if (r == 0)
		r = text_set(&s->kv, SHARD_KEY_STAMP, NULL, e);
	if (r == 0)
		r = feedback_incarnation(f, s, e);
	s->flags |= SHARD_ERROR_FEEDBACK;
	if (r < 0 || f->o.kind != FEEDBACK_CACHE)
		return r;
	s->flags |= SHARD_PREDICTED;
	if ((r = text_set(&s->kv, SHARD_KEY_PREDICT, f->how, e)) == 0)
		r = text_set(&s->kv, SHARD_KEY_HISTORY,
		    f->history.h.r != NULL ? f->history.h.stamp : "none", e);
	return r;
}

static int
feedback_create(struct feedback *f, const struct shard *sh,
    const struct schema *sc, struct err *e)
{
	const char *const before = strchr(f->old_name, '.');
	struct text_kv kv = TEXT_KV_INIT;
	struct shard s;
	int r;

	shard_init(&s);
	if ((r = text_set(&kv, FEEDBACK_KEY_STATE, f->how, e)) == 0 && (before == NULL ||
	    (r = text_set(&kv, FEEDBACK_KEY_BEFORE, before + 1, e)) == 0) &&
	    (!feedback_keeps(f, &f->old) ||
	    (r = text_set(&kv, FEEDBACK_KEY_KEEPS, "1", e)) == 0) &&
	    (r = feedback_describe(f, &s, sh, e)) == 0 && (f->scratch >= 0 ||
	    (r = temp_open(f->state.dir, &f->scratch, e)) == 0))
		r = residual_begin(&f->next, &f->state, f->scratch, &s, &kv, sc, e);
	if (r == 0 && f->new_name[0] != '\0')
		r = dense_create(&f->history.next, &f->state, f->new_name, &s,
		    SHARD_HISTORY, NULL, sc, e);
	shard_release(&s);
	text_release(&kv);
	return r;
}

/* Return 1 if the last shard was refused as invalid. Its step may then come again with other
 * annotations, and the refused values are coded again with these. With cache fail: the step's
 * history would replace the file from which these values are read. */
static int
feedback_refused(const struct feedback *f, struct err *e)
{
	const struct pending_one *p = pending_find(&f->pending, f->old.step);

	if (p == NULL || !p->invalid || f->o.kind == FEEDBACK_EF)
		return p != NULL && p->invalid;
	return err_set(e, ERR_REFUSED, "step %llu of '%s' was refused as invalid, and "
	    "with cache it is not coded again: send the next step, which adds the "
	    "refused values",
	    (unsigned long long)f->old.step, shard_device(reader_shard(f->old.d.r)));
}

int
feedback_begin(struct feedback *f, const struct shard *sh,
    const struct schema *sc, struct err *e)
{
	int r;

	feedback_drop(f);
	f->contract = (struct contraction)CONTRACTION_INIT;
	f->schema = sc;
	f->compensated = 0;
	if ((r = residual_open(&f->old, &f->state, e)) < 0 ||
	    (r = dense_check(&f->old.d, sh, sc, e)) < 0 ||
	    (r = pending_scan(&f->pending, &f->state, e)) < 0 ||
	    (r = feedback_steps(f, sh, e)) < 0)
		return r;
	if (r != 0 && ((r = feedback_judge(f, &f->old, e)) < 0 ||
	    (r = feedback_refused(f, e)) <= 0))
		return r < 0 ? r : 1;
	f->redo = r;
	if ((!f->redo && ((r = feedback_answered(f, sh, e)) < 0 ||
	    (r = feedback_stamp(f, sh, e)) < 0)) ||
	    (r = feedback_wait(f, e)) < 0 || (r = feedback_same_kind(f, e)) < 0 ||
	    (r = feedback_history(f, sh->step, e)) < 0 ||
	    (r = feedback_take_back(f, e)) < 0)
		return r;
	/* do not verify the residual again if an earlier program added it */
	if (f->old.d.r != NULL && f->compensated)
		reader_skip_checks(f->old.d.r);
	return feedback_create(f, sh, sc, e);
}

struct residual_new *
feedback_next(const struct feedback *f)
{
	return f->next;
}

const struct statedir *
feedback_state(const struct feedback *f)
{
	return &f->state;
}

int
feedback_last(struct feedback *f, uint32_t g, struct codec_last *c, struct err *e)
{
	return f->old.d.r == NULL ? 0 :
	    pending_last_group(&f->last, &f->state, f->old.step, g, c, e);
}

int
feedback_plain(const struct feedback *f)
{
	return f->compensated && f->nback == 0;
}

int
feedback_target(struct feedback *f, uint32_t g, const float *v, size_t n,
    float *a, struct err *e)
{
	const float *res = NULL, *back[PENDING_MAX];
	struct compensate_from from;
	const int alone = schema_exact_group(f->schema, g);
	size_t i, nback = 0;
	int r;

	for (i = 0; i < f->nback && !alone; i++) {
		if ((r = dense_group(&f->back[i], g, &back[nback], e)) < 0)
			return r;
		nback += back[nback] != NULL;
	}
	v = f->redo && !alone ? NULL : v;	/* the residual and the shard have it */
	if (!alone && !f->compensated && (r = dense_group(&f->old.d, g, &res, e)) < 0)
		return r;
	if (v == NULL && res == NULL && nback == 0 &&
	    (alone || f->history.h.r == NULL))
		return 1;
	from = (struct compensate_from){ v, res, back, nback };
	compensate_target(f->kern, f->redo ? 1 : (float)f->o.gamma, &from, n, a);
	return 0;
}

/* Subtract c->dec from the target a if `decoded' is 1; set c->error to the statistics of a. */
static void
feedback_minus(const struct feedback *f, float *a, size_t n, int decoded,
    struct feedback_code *c)
{
	if (decoded)
		f->kern->add_scaled(a, a, -1, c->dec, n);
	f->kern->stat(a, n, &c->error);
}

void
feedback_error(const struct feedback *f, float *a, size_t n, struct feedback_code *c)
{
	if (f->history.next == NULL)
		feedback_minus(f, a, n, c->sent, c);
}

int
feedback_settle(struct feedback *f, uint32_t g, float *a, size_t n,
    struct feedback_code *c, struct err *e)
{
	int r;

	if (c->sent && (r = writer_record_seen(residual_writer(f->next), g, c->codec,
	    c->param, c->body.p, c->body.n, &c->decoded, n, e)) < 0)
		return r;
	if (f->history.next != NULL) {
		if ((r = feedback_history_group(&f->history, f->schema, g, c->sent,
		    c->dec, n, e)) < 0)
			return r;
		feedback_minus(f, a, n, 1, c);
	}
	if (!schema_exact_group(f->schema, g))
		contraction_group(&f->contract, c->target.sumsq, c->sent ?
		    c->error.sumsq : c->target.sumsq, n, c->sent ? c->body.n : 0);
	return residual_put(f->next, g, a, n, &c->error, e);
}

int
feedback_commit(struct feedback *f, const struct shard *sh, struct writer *w,
    unsigned *growing, struct err *e)
{
	struct writer *file;
	int r;

	/* save this first: once the step is committed, it is not coded again */
	if ((r = contraction_save(&f->contract, &f->state, sh, e)) < 0)
		return r;
	*growing = f->contract.growing;
	if (f->history.next != NULL && ((r = writer_send(f->history.next, NULL,
	    e)) < 0 || (r = writer_end(f->history.next, f->o.sync, e)) < 0))
		return r;
	if ((r = residual_whole(f->next, &file, e)) < 0 ||
	    (r = pending_copy(&f->pending, &f->old, file, UINT64_MAX,
	    e)) < 0 || (r = residual_commit(f->next, f->o.sync, e)) < 0)
		return r;
	f->sent = 1;
	f->state.settled = f->o.sync == IO_SYNC_FULL;
	/* keep the previous history, which is needed if this step is rejected */
	if (f->new_name[0] != '\0')
		statedir_prune(&f->state, UINT64_MAX, f->new_name, f->old_name);
	r = residual_made(f->next, w, e);
	feedback_drop(f);
	return r;
}

int
feedback_resume(struct feedback *f, uint64_t before, struct writer *w, struct err *e)
{
	struct residual q;
	int r;

	if ((r = residual_open(&q, &f->state, e)) == 0 &&
	    (r = pending_scan(&f->pending, &f->state, e)) == 0 &&
	    (r = feedback_judge(f, &q, e)) == 0 && pending_owed(&f->pending, before) &&
	    (r = feedback_durable(f, &q, e)) == 0) {
		reader_skip_checks(q.d.r);
		r = pending_copy(&f->pending, &q, w, before, e);
	}
	residual_close(&q);
	return r;
}

int
feedback_send(struct feedback *f, uint64_t step, struct writer *w, struct err *e)
{
	struct residual q;
	int r;

	feedback_drop(f);
	f->sent = 1;
	if ((r = residual_find(&q, &f->state, step, e)) > 0 &&
	    (r = feedback_durable(f, &q, e)) == 0)
		r = filter_copy(q.d.r, w, e);
	else if (r == 0)
		r = err_set(e, ERR_REFUSED, "'%s/residual' lacks the coded shard of its step, "
		    "%llu: restore the whole state from one copy" RESIDUAL_ANEW, f->state.dir,
		    (unsigned long long)step);
	residual_close(&q);
	return r;
}

/* ---- a new incarnation ---- */

/* Determine what the state contains and its incarnation; an unreadable residual is not an
 * error. */
static int
feedback_look(const struct statedir *s, struct feedback_lost *l,
    uint32_t *incarnation, struct err *e)
{
	struct pending p;
	struct receipts rc;
	struct residual q;
	int r;

	if ((r = residual_open(&q, s, e)) == 0 && q.d.r != NULL) {
		l->what = LOST_RESIDUAL;
		l->step = q.step;
		*incarnation = reader_shard(q.d.r)->incarnation;
		do {
			r = reader_blame(q.d.r, reader_next(q.d.r, e), e);
		} while (r > 0 && r != READER_SEND);
		if (r > 0)
			l->norm = sqrt(reader_end_of_shard(q.d.r)->sums.sumsq);
		if (r > 0 && (r = pending_scan(&p, s, e)) == 0) {
			(void)receipts_load(&rc, s, NULL);	/* those before any damage */
			pending_judge(&p, &rc, reader_shard(q.d.r));
			l->pending = pending_count(&p);
		}
	}
	residual_close(&q);
	if (r == -ERR_DATA) {
		err_clear(e);
		l->what = LOST_UNREADABLE;
		r = 0;
	}
	return r;
}

static int
feedback_incarnation_save(const struct statedir *s, uint64_t n, enum io_sync sync,
    struct err *e)
{
	struct learned h = LEARNED_INIT;
	int r = text_setf(&h.kv, LEARNED_INCARNATION, e, "%llu", (unsigned long long)n);

	if (r == 0)
		r = learned_save(&h, s, LEARNED_RESTART, NULL, sync, e);
	learned_release(&h);
	return r;
}

/* Save the new number before anything is removed: a state without a residual must not send
 * shards under an earlier incarnation. */
int
feedback_restart(const struct statedir *s, uint64_t n, struct feedback_lost *l,
    struct err *e)
{
	const enum io_sync sync = s->durable ? IO_SYNC_FULL : IO_SYNC_RENAME;
	uint32_t incarnation = 0;
	struct receipts q;
	double before = 0;
	char path[STATE_PATH];
	int r;

	*l = (struct feedback_lost){ .what = LOST_NOTHING_THERE };
	if ((r = feedback_look(s, l, &incarnation, e)) < 0)
		return r;
	/* if this file is absent or damaged, only the residual has the incarnation */
	(void)learned_number(s, LEARNED_RESTART, LEARNED_INCARNATION, &before, NULL);
	if (n <= incarnation || (double)n < before)
		return err_set(e, ERR_REFUSED, "state '%s' already has "
		    "incarnation %llu: give --restart a larger number", s->dir,
		    (unsigned long long)(incarnation > before ? incarnation : before));
	if (!((double)n > before) && l->what == LOST_NOTHING_THERE)
		l->what = LOST_BEFORE;
	if ((r = feedback_incarnation_save(s, n, sync, e)) < 0)
		return r;
	if (unlinkat(AT(statedir_path(s, "residual", path)), 0) < 0 && errno != ENOENT)
		return err_sys(e, "'%s'", path);
	/* if the file of receipts is damaged, keep the receipts before the damage */
	if (receipts_load(&q, s, NULL) == -ERR_DATA && (r = receipts_save(&q, s, sync, e)) < 0)
		return r;
	statedir_prune(s, UINT64_MAX, NULL, NULL);
	return s->durable ? fd_sync_name(statedir_path(s, "residual", path), e) : 0;
}
