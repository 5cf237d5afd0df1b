#include <string.h>

#include "base/alloc.h"
#include "base/bytes.h"
#include "base/err.h"
#include "device/pending.h"
#include "device/restore.h"
#include "format/values.h"
#include "kern/kern.h"

struct restore {
	struct statedir *s;
	const struct kern *kern;
	enum io_sync sync;
	struct residual_owner owner;	/* of the state as it was */
	uint64_t incarnation;	/* 0: not told yet */
	struct receipt *had;	/* what it accepted */
	size_t nhad, had_cap;
	int settled;		/* what was pending is decided */
	float *x;
	size_t cap;
};

/* What is to be done with group g: values are added to e or taken away. */
struct restore_step {
	struct dense *back;	/* += */
	size_t nback;
	struct values *minus;	/* -=, or NULL */
};

static int
restore_group(struct restore *f, struct residual *old, uint64_t step,
    uint32_t g, size_t n, const struct restore_step *q, struct err *e)
{
	const struct schema *sc = reader_schema(old->d.r);
	struct schema_span span;
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
	schema_span(sc, g, &span);
	if (f->kern->max_bits(q->minus->x, n) > bytes_u32(VALUES_MOST))
		return err_set(e, ERR_DATA, "limit: the shard of step %llu has "
		    "values beyond %g in tensor '%.80s'",
		    (unsigned long long)step, (double)VALUES_MOST,
		    sc->t[span.tensor].name);
	f->kern->sub(f->x, f->x, q->minus->x, n);
	if ((i = f->kern->first_nonfinite(f->x, n)) == n)
		return 0;
	return err_set(e, ERR_REFUSED, "the shard of step %llu that was "
	    "accepted leaves no finite residual: tensor '%.80s' at index %llu",
	    (unsigned long long)step, sc->t[span.tensor].name,
	    (unsigned long long)(span.offset + i));
}

/* Writes one commit: the residual at that step, with nothing pending. */
static int
restore_commit(struct restore *f, struct residual *old, uint64_t step,
    const struct restore_step *q, struct err *e)
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
		if ((k = restore_group(f, old, step, g, span.n, q, e)) == 0)
			k = dense_put(w, g, f->x, span.n, e);
	}
	/* the shard is read to its verified end before it counts */
	if (k == 0 && q->minus != NULL && (k = values_next(q->minus, e)) > 0)
		k = err_set(e, ERR_DATA, "corrupt: more groups than there are");
	if (k == 0 && (k = writer_send(w, NULL, e)) == 0)
		k = writer_end(w, f->sync, e);
	writer_free(w);
	return k;
}

static int
restore_room(struct restore *f, size_t n, struct err *e)
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

/* Opens the residual and checks that it can be restored. */
static int
restore_open(struct restore *f, struct residual *old, struct err *e)
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
	return restore_room(f, reader_schema(old->d.r)->group_size, e);
}

static int
restore_is_accepted(const struct restore *f, const struct pending_one *p)
{
	size_t i;

	for (i = 0; i < f->nhad; i++)
		if (f->had[i].step == p->step &&
		    memcmp(f->had[i].digest, p->digest, SHARD_DIGEST) == 0)
			return 1;
	return 0;
}

/* After the last receipt it is known of every pending shard whether it was
 * accepted; what was not accepted by now never will be. */
static int
restore_settle(struct restore *f, struct err *e)
{
	struct dense back[PENDING_MAX];
	struct restore_step q = { back, 0, NULL };
	struct residual old;
	struct pending p;
	size_t i;
	int k;

	f->settled = 1;
	memset(back, 0, sizeof(back));
	if ((k = restore_open(f, &old, e)) < 0 ||
	    (k = pending_scan(&p, f->s, e)) < 0)
		goto out;
	for (i = 0; i < f->nhad; i++)
		if (f->had[i].step > old.step) {
			k = err_set(e, ERR_REFUSED, "the shard of step %llu was "
			    "accepted and cannot be had any more",
			    (unsigned long long)f->had[i].step);
			goto out;
		}
	for (i = 0; i < p.n && k == 0; i++)
		if (!restore_is_accepted(f, &p.p[i]))
			k = pending_values(&back[q.nback++], f->s,
			    p.p[i].step, e);
	if (k == 0)
		k = restore_commit(f, &old, old.step, &q, e);
out:
	for (i = 0; i < q.nback; i++)
		dense_close(&back[i]);
	residual_close(&old);
	return k;
}

/* Is this shard one that the device may have sent after the backup?  Steps that
 * are far ahead would stand in the way of all that come. */
static int
restore_check(const struct restore *f, const struct shard *sh, struct err *e)
{
	if (!residual_owns(&f->owner, sh->run, sh->device))
		return err_set(e, ERR_DATA, "mismatch: a shard of '%.80s', whose "
		    "state this is not", shard_device(sh));
	if (sh->incarnation >= f->incarnation)
		return err_set(e, ERR_DATA, "mismatch: step %llu is of "
		    "incarnation %lu, the answer of %llu",
		    (unsigned long long)sh->step,
		    (unsigned long)sh->incarnation,
		    (unsigned long long)f->incarnation);
	if (sh->step > f->owner.step && sh->step - f->owner.step > RESTORE_AHEAD)
		return err_set(e, ERR_DATA, "limit: step %llu is more than %d "
		    "after %llu, the state's",
		    (unsigned long long)sh->step, RESTORE_AHEAD,
		    (unsigned long long)f->owner.step);
	return 0;
}

/* The input stands at a shard that was accepted. */
static int
restore_count(struct restore *f, struct reader *in, struct err *e)
{
	struct values v = VALUES_INIT;
	struct restore_step q = { NULL, 0, &v };
	const struct shard *sh = reader_shard(in);
	struct residual old;
	int k;

	if ((k = restore_check(f, sh, e)) < 0 ||
	    (!f->settled && (k = restore_settle(f, e)) < 0))
		return k;
	if ((k = restore_open(f, &old, e)) == 0 && sh->step > old.step &&
	    (k = dense_check(&old.d, sh, reader_schema(in), e)) == 0 &&
	    (k = values_begin(&v, in, e)) == 0)
		k = restore_commit(f, &old, sh->step, &q, e);
	values_release(&v);
	residual_close(&old);
	return k;
}

/* The receipt that the answer begins with has the new incarnation, which is larger
 * than all that the device had: an answer that was taken before is an old one.
 * Where taking it was interrupted it has this incarnation already, and has sent
 * nothing under it; then it is taken on. */
static int
restore_begins(struct restore *f, const struct receipt *r, struct err *e)
{
	static const unsigned char none[SHARD_DIGEST];
	struct pending p = { .n = 0 };
	int k;

	if (memcmp(r->digest, none, SHARD_DIGEST) != 0)
		return err_set(e, ERR_DATA, "mismatch: not what ace-recv "
		    "--fence answers");
	if (r->version == 0 || r->version > SHARD_INCARNATIONS)
		return err_set(e, ERR_DATA, "limit: incarnation %llu, "
		    "from 1 to %lu", (unsigned long long)r->version,
		    (unsigned long)SHARD_INCARNATIONS);
	if (r->version == f->owner.incarnation &&
	    (k = pending_scan(&p, f->s, e)) < 0)
		return k;
	if (r->version < f->owner.incarnation || p.n != 0)
		return err_set(e, ERR_DATA, "mismatch: an old answer: "
		    "incarnation %llu, and the state is of %lu",
		    (unsigned long long)r->version,
		    (unsigned long)f->owner.incarnation);
	f->incarnation = r->version;
	return 0;
}

static int
restore_event(struct restore *f, struct reader *in, int event, struct err *e)
{
	const struct chain_frame *fr = reader_frame(in);
	struct receipt r;
	int k;

	if (event == READER_SHARD)
		return f->incarnation != 0 ? restore_count(f, in, e) :
		    err_set(e, ERR_DATA, "mismatch: not what ace-recv --fence "
		    "answers");
	if (event != READER_RCPT)
		return 0;
	if ((k = receipt_decode(&r, fr->raw, fr->raw_len, e)) < 0)
		return k;
	if (!residual_owns(&f->owner, r.run, r.device))
		return err_set(e, ERR_DATA, "mismatch: an answer for another "
		    "run or device");
	if (r.verdict == RECEIPT_FENCED && f->incarnation == 0)
		return restore_begins(f, &r, e);
	if (f->incarnation == 0 || !receipt_is_accepted(&r))
		return err_set(e, ERR_DATA, "mismatch: not what ace-recv "
		    "--fence answers");
	if ((k = alloc_grow(&f->had, &f->had_cap, f->nhad + 1,
	    sizeof(*f->had), e)) < 0)
		return k;
	f->had[f->nhad++] = r;
	return 0;
}

/* Nothing is changed before the answer, or at least one shard of it, is known
 * to be whole. */
int
restore_take(struct statedir *s, struct reader *in, enum io_sync sync,
    uint64_t *n, struct err *e)
{
	struct restore f = { .s = s, .kern = kern_get(e), .sync = sync };
	int k;

	if (f.kern == NULL)
		return -ERR_USAGE;
	if ((k = residual_owner(&f.owner, s, e)) <= 0)
		return k < 0 ? k : err_set(e, ERR_DATA, "mismatch: no residual "
		    "in '%s'", s->dir);
	while ((k = reader_next(in, e)) > 0)
		if ((k = restore_event(&f, in, k, e)) < 0)
			break;
	if (k == 0 && f.incarnation == 0)
		k = err_set(e, ERR_DATA, "mismatch: not what ace-recv --fence "
		    "answers");
	if (k == 0 && !f.settled)
		k = restore_settle(&f, e);
	*n = f.incarnation;
	alloc_free(f.had);
	alloc_free(f.x);
	return k;
}
