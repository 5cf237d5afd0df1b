#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/err.h"
#include "kern/kern.h"
#include "state/accepted.h"
#include "state/fence.h"
#include "state/pending.h"
#include "stream/filter.h"

/* ---- the receiver ---- */

/* The shard in a file, frame for frame. */
static int
fence_shard(const struct inbox *s, const char *run, const struct receipt *rc,
    const char *name, struct writer *w, struct err *e)
{
	struct reader_opts any = { SCHEMA_MAX_TOTAL, NULL };
	char *path = inbox_path(s, run, &rc->step, name, e);
	int k = path != NULL ? filter_copy_file(path, &any, w, e) : -ERR_SYS;

	alloc_free(path);
	return k;
}

static int
fence_answer(const struct inbox *s, const char *run, uint64_t step,
    const struct ledger *got, const struct ledger *gone, struct writer *w,
    struct err *e)
{
	size_t i;
	int k = 0;

	for (i = 0; i < gone->n && k == 0; i++)
		k = writer_receipt(w, &gone->r[i], e);
	for (i = 0; i < got->n && k == 0; i++)
		k = got->r[i].step <= step ?
		    writer_receipt(w, &got->r[i], e) :
		    fence_shard(s, run, &got->r[i], got->name[i], w, e);
	return k;
}

int
fence_send(const struct inbox *s, const char *run, const char *device,
    uint64_t step, struct writer *w, struct err *e)
{
	struct ledger got, gone;
	struct receipt r;
	struct shard of;
	int k;

	memset(&got, 0, sizeof(got));
	memset(&gone, 0, sizeof(gone));
	memset(&r, 0, sizeof(r));
	shard_init(&of);
	if ((k = shard_set_run(&of, run, e)) == 0 &&
	    (k = shard_set_device(&of, device, e)) == 0 &&
	    (k = inbox_sign(s, run, &r, e)) == 0) {
		memcpy(r.run, of.run, SHARD_ID);
		memcpy(r.device, of.device, SHARD_ID);
		r.step = step;
		r.verdict = RECEIPT_FENCED;
		/* first nothing old is accepted any more, then one looks */
		k = inbox_raise(s, run, device, &r.version, e);
	}
	if (k == 0 && (k = accepted_find(s, &of, &got, &gone, e)) == 0 &&
	    (k = writer_receipt(w, &r, e)) == 0)
		k = fence_answer(s, run, step, &got, &gone, w, e);
	ledger_release(&got);
	ledger_release(&gone);
	shard_release(&of);
	return k;
}

/* ---- the device ---- */

struct fence {
	struct state *s;
	const struct kern *kern;
	enum io_sync sync;
	uint64_t incarnation;	/* 0: not told yet */
	struct ledger had;	/* receipts */
	int settled;		/* what was pending is decided */
	float *x;
	size_t cap;
};

/* What becomes of group g: e and what is added to it or taken away. */
struct fence_step {
	struct dense *back;	/* += */
	size_t nback;
	struct values *minus;	/* -=, or NULL */
};

static int
fence_group(struct fence *f, struct residual *old, uint32_t g, size_t n,
    const struct fence_step *q, struct err *e)
{
	const float *v;
	size_t i;
	int k;

	if ((k = dense_group(&old->d, g, &v, e)) < 0)
		return k;
	memset(f->x, 0, n * sizeof(*f->x));
	if (v != NULL)
		memcpy(f->x, v, n * sizeof(*f->x));
	for (i = 0; i < q->nback; i++) {
		if ((k = dense_group(&q->back[i], g, &v, e)) < 0)
			return k;
		if (v != NULL)
			f->kern->add_scaled(f->x, f->x, 1, v, n);
	}
	if (q->minus == NULL)
		return 0;
	if ((k = values_next(q->minus, e)) <= 0 || q->minus->group != g)
		return k < 0 ? k : err_set(e, ERR_DATA, "corrupt: group %lu is "
		    "not in its order", (unsigned long)g);
	f->kern->sub(f->x, f->x, q->minus->x, n);
	return 0;
}

/* One commit: the residual at that step, nothing pending. */
static int
fence_commit(struct fence *f, struct residual *old, uint64_t step,
    const struct fence_step *q, struct err *e)
{
	const struct schema *sc = reader_schema(old->d.r);
	const struct shard *sh = reader_shard(old->d.r);
	struct shard now = *sh;		/* shares its keys */
	struct schema_span span;
	struct writer *w;
	uint32_t g;
	int k;

	now.step = step;
	now.incarnation = (uint32_t)f->incarnation;
	k = dense_create(&w, f->s, "residual", &now, SHARD_RESIDUAL, &sh->kv,
	    sc, e);
	for (g = 0; g < sc->ngroups && k == 0; g++) {
		schema_span(sc, g, &span);
		if ((k = fence_group(f, old, g, span.n, q, e)) == 0)
			k = dense_put(w, g, f->x, span.n, e);
	}
	/* to its verified end, before it counts */
	if (k == 0 && q->minus != NULL && (k = values_next(q->minus, e)) > 0)
		k = err_set(e, ERR_DATA, "corrupt: more groups than there are");
	if (k == 0 && (k = writer_send(w, NULL, e)) == 0)
		k = writer_end(w, f->sync, e);
	writer_free(w);
	return k;
}

static int
fence_room(struct fence *f, size_t n, struct err *e)
{
	if (n <= f->cap)
		return 0;
	alloc_free(f->x);
	f->cap = 0;
	if ((f->x = alloc_get(n, sizeof(*f->x), e)) == NULL)
		return -ERR_SYS;
	f->cap = n;
	return 0;
}

/* The residual, fit to be restored. */
static int
fence_open(struct fence *f, struct residual *old, struct err *e)
{
	const char *how;
	int k = residual_open(old, f->s, e);

	if (k < 0)
		return k;
	if (old->d.r == NULL)
		return err_set(e, ERR_DATA, "mismatch: no residual in '%s'",
		    f->s->dir);
	how = text_get(&reader_shard(old->d.r)->kv, "feedback");
	if (how != NULL && strcmp(how, "ef") != 0)
		return err_set(e, ERR_REFUSED, "state '%s' of feedback %.40s "
		    "cannot be restored: begin with a new one", f->s->dir, how);
	return fence_room(f, reader_schema(old->d.r)->group_size, e);
}

static int
fence_is_accepted(const struct fence *f, const struct pending_one *p)
{
	size_t i;

	for (i = 0; i < f->had.n; i++)
		if (f->had.r[i].step == p->step &&
		    memcmp(f->had.r[i].digest, p->digest, SHARD_DIGEST) == 0)
			return 1;
	return 0;
}

/* After the last receipt: pending shards were accepted, or never will be. */
static int
fence_settle(struct fence *f, struct err *e)
{
	struct dense back[PENDING_MAX];
	struct fence_step q = { back, 0, NULL };
	struct residual old;
	struct pending p;
	size_t i;
	int k;

	f->settled = 1;
	memset(back, 0, sizeof(back));
	if ((k = fence_open(f, &old, e)) < 0 ||
	    (k = pending_scan(&p, f->s, e)) < 0)
		goto out;
	for (i = 0; i < f->had.n; i++)
		if (f->had.r[i].step > old.step) {
			k = err_set(e, ERR_REFUSED, "the shard of step %llu was "
			    "accepted and cannot be had any more",
			    (unsigned long long)f->had.r[i].step);
			goto out;
		}
	for (i = 0; i < p.n && k == 0; i++)
		if (!fence_is_accepted(f, &p.p[i]))
			k = pending_values(&back[q.nback++], f->s,
			    p.p[i].step, e);
	if (k == 0)
		k = fence_commit(f, &old, old.step, &q, e);
out:
	for (i = 0; i < q.nback; i++)
		dense_close(&back[i]);
	residual_close(&old);
	return k;
}

/* in stands at a shard that was accepted. */
static int
fence_count(struct fence *f, struct reader *in, struct err *e)
{
	struct values v = VALUES_INIT;
	struct fence_step q = { NULL, 0, &v };
	const struct shard *sh = reader_shard(in);
	struct residual old;
	int k;

	if (!f->settled && (k = fence_settle(f, e)) < 0)
		return k;
	if ((k = fence_open(f, &old, e)) == 0 && sh->step > old.step &&
	    (k = dense_check(&old.d, sh, reader_schema(in), e)) == 0 &&
	    (k = values_begin(&v, in, e)) == 0)
		k = fence_commit(f, &old, sh->step, &q, e);
	values_release(&v);
	residual_close(&old);
	return k;
}

static int
fence_event(struct fence *f, struct reader *in, int event, struct err *e)
{
	const struct chain_frame *fr = reader_frame(in);
	struct receipt r;
	int k;

	if (event == READER_SHARD)
		return f->incarnation != 0 ? fence_count(f, in, e) :
		    err_set(e, ERR_DATA, "mismatch: not what ace-recv --fence "
		    "answers");
	if (event != READER_RCPT)
		return 0;
	if ((k = receipt_decode(&r, fr->raw, fr->raw_len, e)) < 0)
		return k;
	if (r.verdict == RECEIPT_FENCED && f->incarnation == 0) {
		f->incarnation = r.version;
		return 0;
	}
	if (f->incarnation == 0 || !receipt_is_accepted(&r))
		return err_set(e, ERR_DATA, "mismatch: not what ace-recv "
		    "--fence answers");
	return ledger_add(&f->had, &r, "", e);
}

/* Nothing is changed before the answer is known to be whole or a shard of it
 * is. */
int
fence_take(struct state *s, struct reader *in, enum io_sync sync, uint64_t *n,
    struct err *e)
{
	struct fence f = { .s = s, .kern = kern_get(e), .sync = sync };
	int k;

	if (f.kern == NULL)
		return -ERR_USAGE;
	while ((k = reader_next(in, e)) > 0)
		if ((k = fence_event(&f, in, k, e)) < 0)
			break;
	if (k == 0 && f.incarnation == 0)
		k = err_set(e, ERR_DATA, "mismatch: not what ace-recv --fence "
		    "answers");
	if (k == 0 && !f.settled)
		k = fence_settle(&f, e);
	*n = f.incarnation;
	ledger_release(&f.had);
	alloc_free(f.x);
	return k;
}
