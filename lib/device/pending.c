#include <string.h>

#include "base/err.h"
#include "device/pending.h"
#include "pipe/filter.h"

int
pending_scan(struct pending *p, const struct statedir *s, struct err *e)
{
	struct residual q;
	int k, in = 0;

	memset(p, 0, sizeof(*p));
	if ((k = residual_open(&q, s, e)) < 0 || q.d.r == NULL)
		goto out;
	reader_skip_checks(q.d.r);
	while ((k = reader_next(q.d.r, e)) > 0) {
		if (k == READER_SHARD) {
			in = 1;
		} else if (k == READER_SEND && in) {
			if (p->n == PENDING_MAX) {
				k = err_set(e, ERR_DATA,
				    "limit: '%s/residual' has more than %d shards without a "
				    "receipt" RESIDUAL_ANEW, s->dir, PENDING_MAX);
				break;
			}
			p->p[p->n].step = reader_shard(q.d.r)->step;
			memcpy(p->p[p->n++].digest,
			    reader_end_of_shard(q.d.r)->digest, SHARD_DIGEST);
		}
	}
out:
	residual_close(&q);
	return k;
}

void
pending_judge(struct pending *p, const struct receipts *q, const struct shard *of)
{
	struct shard key = *of;
	const struct receipt *r;
	size_t i;

	for (i = 0; i < p->n; i++) {
		key.step = p->p[i].step;
		if ((r = receipts_find(q, &key, p->p[i].digest)) == NULL)
			continue;
		p->p[i].fate = receipt_is_accepted(r) ? PENDING_ACCEPTED :
		    PENDING_REJECTED;
		p->p[i].invalid = r->verdict == RECEIPT_INVALID;
	}
}

size_t
pending_count(const struct pending *p)
{
	size_t i, n = 0;

	for (i = 0; i < p->n; i++)
		n += p->p[i].fate == PENDING_OPEN;
	return n;
}

const struct pending_one *
pending_find(const struct pending *p, uint64_t step)
{
	size_t i;

	for (i = 0; i < p->n; i++)
		if (p->p[i].step == step)
			return &p->p[i];
	return NULL;
}

/* Make the checks of pending_answers, with the state's residual open as q. */
static int
pending_compare(const struct residual *q, const struct pending *p,
    const struct receipts *heard, const struct shard *sh, const struct schema *sc,
    struct err *e)
{
	const struct shard *own = reader_shard(q->d.r);
	char why[256];
	size_t i;

	if (memcmp(own->run, sh->run, SHARD_ID) != 0)
		return err_set(e, ERR_DATA, "mismatch: the shard of '%.80s' is of run "
		    "'%.80s', but this state is of run '%.80s': give the state of the "
		    "shard's run", shard_device(sh), shard_run(sh), shard_run(own));
	if (!shard_is_average(sh))
		return err_set(e, ERR_DATA, "mismatch: the shard of '%.80s' has kind "
		    "%s, expected an average: kind mean, sum or delta",
		    shard_device(sh), shard_kind_name(sh->kind));
	for (i = 0; i < heard->n && heard->r[i].step != sh->step; i++)
		;
	if (i == heard->n && pending_find(p, sh->step) == NULL)
		return err_set(e, ERR_DATA, "mismatch: the average is of step %llu, whose shard "
		    "has its receipt already or was not sent from this state (last step: %llu)",
		    (unsigned long long)sh->step, (unsigned long long)q->step);
	if (schema_diff(sc, reader_schema(q->d.r), why) != 0)
		return err_set(e, ERR_DATA, "mismatch: the shard of '%.80s' is of another "
		    "model than this state: %s: give the state of that model",
		    shard_device(sh), why);
	return 0;
}

int
pending_answers(const struct statedir *s, const struct receipts *heard,
    const struct shard *sh, const struct schema *sc, struct err *e)
{
	struct residual q;
	struct pending p;
	int k = pending_scan(&p, s, e);

	if (k < 0)
		return k;
	if ((k = residual_open(&q, s, e)) == 0)
		k = q.d.r != NULL ? pending_compare(&q, &p, heard, sh, sc, e) :
		    !shard_is_average(sh) ? 0 : err_set(e, ERR_DATA, "mismatch: the "
		    "average is of step %llu of run '%.80s', but state '%s' has sent "
		    "nothing since it was made or restarted: give the state with which "
		    "ace-compress or ace-step sent that step",
		    (unsigned long long)sh->step, shard_run(sh), s->dir);
	residual_close(&q);
	return k;
}

static int
pending_is_owed(const struct pending_one *one, uint64_t before)
{
	return one->fate == PENDING_OPEN && one->step < before;
}

int
pending_owed(const struct pending *p, uint64_t before)
{
	size_t i;

	for (i = 0; i < p->n && !pending_is_owed(&p->p[i], before); i++)
		continue;
	return i < p->n;
}

int
pending_copy(const struct pending *p, struct residual *q, struct writer *w,
    uint64_t before, struct err *e)
{
	const struct pending_one *one;
	int k;

	while ((k = residual_pending(q, e)) > 0) {
		one = pending_find(p, reader_shard(q->d.r)->step);
		if (one == NULL || !pending_is_owed(one, before))
			continue;
		if ((k = filter_copy(q->d.r, w, e)) < 0)
			return k;
	}
	return k;
}

int
pending_values(struct dense *d, const struct statedir *s, uint64_t step, struct err *e)
{
	struct residual q;
	int k = residual_find(&q, s, step, e);

	*d = q.d;
	d->v.differences = 1;
	if (k > 0)
		return values_begin(&d->v, d->r, e);
	return k < 0 ? k : err_set(e, ERR_DATA, "mismatch: '%s/residual' lacks the shard "
	    "of step %llu that was refused: restore the whole state from one copy" RESIDUAL_ANEW,
	    s->dir, (unsigned long long)step);
}

/* ---- the shard that was coded last ---- */

/* Read frames until record l->i exists; at the shard's end, set l->done. */
static int
pending_last_next(struct pending_last *l, struct err *e)
{
	int k;

	while (l->i == l->n && !l->done) {
		if ((k = reader_next(l->q.d.r, e)) < 0)
			return reader_blame(l->q.d.r, k, e);
		if (k == READER_SEND || k == 0)
			l->done = 1;
		if (k != READER_DATA)
			continue;
		l->rec = reader_records(l->q.d.r, &l->n);
		l->i = 0;
	}
	return 0;
}

int
pending_last_group(struct pending_last *l, const struct statedir *s,
    uint64_t step, uint32_t g, struct codec_last *c, struct err *e)
{
	int k;

	if (g < l->group)
		pending_last_close(l);
	l->group = g;
	if (!l->open) {
		l->open = 1;
		if ((k = residual_find(&l->q, s, step, e)) < 0)
			return k;
		l->done = k == 0;
	}
	for (;; l->i++) {
		if ((k = pending_last_next(l, e)) < 0)
			return k;
		if (l->done || l->rec[l->i].group > g)
			return 0;
		if (l->rec[l->i].group == g)
			break;
	}
	c->codec = l->rec[l->i].codec;
	c->param = l->rec[l->i].param;
	c->body = l->rec[l->i].body;
	c->len = l->rec[l->i].len;
	return 1;
}

void
pending_last_close(struct pending_last *l)
{
	if (l->open)
		residual_close(&l->q);
	memset(l, 0, sizeof(*l));
}
