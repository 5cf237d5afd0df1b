#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/alloc.h"
#include "base/compare.h"
#include "base/err.h"
#include "base/io.h"
#include "device/error_feedback.h"
#include "device/pending.h"
#include "format/values.h"
#include "report/conserve.h"
#include "spool/manifest.h"
#include "spool/receipt_list.h"
#include "spool/spool.h"
#include "spool/steps.h"
#include "sync/compensate.h"

enum {
	CONSERVE_WORDS = 5,	/* 64-bit words, for bits 2^-149 to 2^170: room for 2^42 f32 */
	CONSERVE_BLOCK = 1 << 20	/* elements per pass */
};

struct conserve_sum {
	uint64_t w[CONSERVE_WORDS];	/* two's complement, times 2^-149 */
	double size, given;		/* size: sum of all magnitudes; given: sum of the inputs */
};

struct conserve_run {
	struct conserve *c;
	const struct conserve_in *in;
	struct statedir state;
	struct spool spool;
	struct residual now;		/* the residual, and the state's device, run and model */
	struct pending pending;
	struct receipt_list got;		/* accepted shards with their files */
	struct steps steps;		/* steps of the inputs */
	uint64_t lo, hi;		/* this pass sums the elements [lo, hi) */
	size_t cap;
	struct conserve_sum *sum;	/* [hi - lo] */
	float *x;			/* f32[cap]: values of one group */
	size_t nth;			/* number of shards of the current file so far */
	/* 1: the current accepted shard has the state's incarnation */
	int own;
	int cached;			/* 1: shards are differences to a history */
	float rho;
	/* history and reconstruction of this pass's elements */
	float *h, *made;
};

/* Add sign * x to s; x is finite. */
static void
conserve_add(struct conserve_sum *s, float x, int sign)
{
	uint64_t m, part[2], add, old;
	unsigned char carry = 0;
	int exp, at, i, minus = signbit(x) ? sign > 0 : sign < 0;

	if (x == 0)
		return;
	s->size += fabs((double)x);
	s->given += sign > 0 ? (double)x : 0;
	m = (uint64_t)ldexpf(frexpf(fabsf(x), &exp), 24);
	at = exp - 24 + 149;		/* place of m's lowest bit */
	if (at < 0) {			/* subnormal: the bits shifted out are zero */
		m >>= -at;
		at = 0;
	}
	part[0] = m << at % 64;
	part[1] = at % 64 > 40 ? m >> (64 - at % 64) : 0;
	for (i = at / 64; i < CONSERVE_WORDS; i++) {
		add = i - at / 64 < 2 ? part[i - at / 64] : 0;
		old = s->w[i];
		if (minus) {
			s->w[i] = old - add - carry;
			carry = old < add || (carry && old == add);
		} else {
			s->w[i] = old + add + carry;
			carry = s->w[i] < old || (carry && s->w[i] == old);
		}
	}
}

/* Return the sum as f64, approximately, for messages. */
static double
conserve_value(const struct conserve_sum *s)
{
	int minus = s->w[CONSERVE_WORDS - 1] >> 63 != 0, i;
	uint64_t w, carry = 1;
	double v = 0;

	for (i = 0; i < CONSERVE_WORDS; i++) {
		w = s->w[i];
		if (minus) {
			w = ~w + carry;
			carry = carry && w == 0;
		}
		v += ldexp((double)w, 64 * i - 149);
	}
	return minus ? -v : v;
}

/* ---- the accepted shards ---- */

/* Return 1 if the receipt is for an accepted shard of the residual's device. */
static int
conserve_counts(const struct conserve_run *x, const struct receipt *r)
{
	return shard_is_of(reader_shard(x->now.d.r), r->run, r->device) &&
	    receipt_is_accepted(r);
}

static int
conserve_gone(const struct conserve_run *x, uint64_t step, struct err *e)
{
	return err_set(e, ERR_REFUSED, "the shard of step %llu of '%s' was accepted, "
	    "but is no longer in the spool: give a copy of the spool that still has it "
	    "(ace-aggregate --keep removes shards)",
	    (unsigned long long)step, x->c->device);
}

/* Add the device's shards of this step that its manifest accepts to x->got, taking the
 * names of their files from `have'. Fail if the file of such a shard was removed, or the
 * directory of another step of which the manifest counts a shard (spool/manifest.h). */
static int
conserve_listed(struct conserve_run *x, uint64_t step, const struct receipt_list *list,
    const struct receipt_list *have, struct err *e)
{
	const struct receipt *r;
	size_t i, j;
	int k = 0;

	for (i = 0; i < list->n && k == 0; i++) {
		r = &list->line[i].r;
		if (!conserve_counts(x, r))
			continue;
		if (r->step != step) {
			k = spool_has(&x->spool, &r->step, "", e);
			k = k == 0 && r->verdict == RECEIPT_ACCEPTED ?
			    conserve_gone(x, r->step, e) : k < 0 ? k : 0;
			continue;
		}
		for (j = 0; j < have->n; j++)
			if (memcmp(have->line[j].r.digest, r->digest,
			    SHARD_DIGEST) == 0)
				break;
		k = j == have->n ? conserve_gone(x, step, e) :
		    receipt_list_add(&x->got, r, have->line[j].name, e);
	}
	return k;
}

static int
conserve_step(struct conserve_run *x, uint64_t step, struct err *e)
{
	struct receipt_list have = { .n = 0 }, list;
	size_t i;
	int k;

	if ((k = steps_shards(&have, &x->spool, step, NULL, e)) == 0 &&
	    (k = manifest_of(&x->spool, step, &list, e)) >= 0) {
		if (k > 0)
			k = conserve_listed(x, step, &list, &have, e);
		else
			for (i = 0; i < have.n && k == 0; i++)
				if (conserve_counts(x, &have.line[i].r))
					k = receipt_list_add(&x->got, &have.line[i].r,
					    have.line[i].name, e);
		receipt_list_release(&list);
	}
	receipt_list_release(&have);
	return k;
}

/* Find the shards of the residual's device that the spool has accepted in all steps of
 * the run: in closed steps those in the manifest, in open steps those whose files
 * exist.  Put their receipts, in the order of steps and with file names, into x->got. */
static int
conserve_find(struct conserve_run *x, struct err *e)
{
	struct steps all = STEPS_INIT;	/* each has or had a directory */
	size_t i;
	int k;

	if ((k = steps_list(&all, &x->spool, "", 0, e)) == 0)
		k = steps_list(&all, &x->spool, STEPS_DONE, 0, e);
	for (i = 0; i < all.n && k == 0; i++)
		k = conserve_step(x, all.step[i], e);
	steps_release(&all);
	return k;
}

/* ---- the state and the spool ---- */

/* Mark the pending shards that the spool or a receipt shows as accepted, and count the
 * others.  The state keeps a shard that has a receipt until the next step. */
static void
conserve_judge(struct conserve_run *x, const struct receipts *q)
{
	struct pending *p = &x->pending;
	size_t i, j;

	pending_judge(p, q, reader_shard(x->now.d.r));
	for (i = 0; i < p->n; i++)
		for (j = 0; j < x->got.n; j++)
			if (x->got.line[j].r.step == p->p[i].step &&
			    memcmp(x->got.line[j].r.digest, p->p[i].digest,
			    SHARD_DIGEST) == 0)
				p->p[i].fate = PENDING_ACCEPTED;
	for (i = 0; i < p->n; i++)
		x->c->pending += p->p[i].fate != PENDING_ACCEPTED;
}

/* ---- adding up ---- */

/* Add the frame's values, times sign, to the sums; with sign 0, store them in x->made. */
static int
conserve_records(struct conserve_run *x, struct reader *r, int sign, struct err *e)
{
	const struct schema *sc = reader_schema(r);
	const struct record *rec;
	struct schema_span span;
	uint64_t at;
	size_t i, k, n, count;
	int err;

	rec = reader_records(r, &count);
	for (i = 0; i < count; i++) {
		schema_span(sc, rec[i].group, &span);
		at = sc->t[span.tensor].base + span.offset;
		if (at + span.n <= x->lo || at >= x->hi)
			continue;
		if ((err = values_decode(r, &rec[i], x->x, x->cap, &n, e)) < 0)
			return err;
		for (k = 0; k < n; k++) {
			if (at + k < x->lo || at + k >= x->hi)
				continue;
			if (sign == 0)
				x->made[at + k - x->lo] = x->x[k];
			/* values that are not finite were refused or set to zero */
			else if (isfinite(x->x[k]))
				conserve_add(&x->sum[at + k - x->lo], x->x[k], sign);
		}
	}
	return 0;
}

/* Set x->made as if no group of an accepted difference was sent. conserve_records then
 * replaces the groups that were sent. Return 1. */
static int
conserve_made(struct conserve_run *x, const struct shard *sh, struct err *e)
{
	const size_t n = (size_t)(x->hi - x->lo);
	const char *base;
	int k = feedback_cache_how(&x->rho, sh, &base, e);

	if (k < 0)
		return k;
	if (strcmp(base, "none") == 0)
		memset(x->h, 0, n * sizeof(*x->h));
	compensate_absent(x->rho, x->h, x->made, n);
	return 1;
}

/* Subtract the reconstruction, and keep it as the history of the next shard. */
static void
conserve_made_add(struct conserve_run *x)
{
	const size_t n = (size_t)(x->hi - x->lo);
	size_t i;

	for (i = 0; i < n; i++)
		conserve_add(&x->sum[i], x->made[i], -1);
	memcpy(x->h, x->made, n * sizeof(*x->h));
}

/* Return 1 if the input shard at r counts: it is the device's, and not after the residual's
 * step. The first pass also lists its step. */
static int
conserve_input(struct conserve_run *x, const struct reader *r, struct err *e)
{
	const struct shard *sh = reader_shard(r);
	int k;

	if (memcmp(sh->device, reader_shard(x->now.d.r)->device,
	    SHARD_ID) != 0 || sh->step > x->now.step)
		return 0;
	if ((k = dense_check(&x->now.d, sh, reader_schema(r), e)) < 0)
		return k;
	if (text_get(&sh->kv, SHARD_KEY_STAMP) != NULL)
		return err_set(e, ERR_DATA, "mismatch: the input, '%s' step %llu, "
		    "contains the residual: give the input of ace-expand",
		    shard_device(sh), (unsigned long long)sh->step);
	if (x->lo != 0)
		return 1;
	k = steps_add(&x->steps, sh->step, e);
	return k < 0 ? k : 1;
}

/* Return 1 if the shard counts, or 0 if it has another incarnation, whose inputs are not
 * given here. */
static int
conserve_accepted(struct conserve_run *x, const struct reader *r, struct err *e)
{
	const struct shard *sh = reader_shard(r);
	int k = dense_check(&x->now.d, sh, reader_schema(r), e);

	x->own = sh->incarnation == reader_shard(x->now.d.r)->incarnation;
	if (k < 0 || !x->own)
		return k;
	x->c->accepted += x->lo == 0;
	return x->cached ? conserve_made(x, sh, e) : 1;
}

/* Return 1: the whole history counts, since it is the reconstruction of a pending shard. */
static int
conserve_whole(struct conserve_run *x, const struct reader *r, struct err *e)
{
	int k = dense_check(&x->now.d, reader_shard(r), reader_schema(r), e);

	return k < 0 ? k : 1;
}

/* Return 1 if this shard of the residual's file counts: the residual, or a pending shard that
 * was not accepted. With `cached', histories count in place of pending shards. */
static int
conserve_kept(struct conserve_run *x, const struct reader *r, struct err *e)
{
	size_t n = x->nth;

	return n == 0 || (!x->cached && (n > x->pending.n ||
	    x->pending.p[n - 1].fate != PENDING_ACCEPTED));
}

static int
conserve_file(struct conserve_run *x, const char *path, int sign,
    const struct reader_opts *o, int (*counts)(struct conserve_run *,
    const struct reader *, struct err *), struct err *e)
{
	struct reader *r;
	int k, on = 0;

	x->nth = 0;
	if ((k = reader_file(&r, path, o, e)) < 0)
		return k;
	if (x->lo != 0 && !io_can_seek(reader_io(r)))
		k = err_set(e, ERR_USAGE, "'%s' is read several times: give a "
		    "regular file", reader_name(r));
	while (k == 0 && (k = reader_next(r, e)) > 0) {
		if (k == READER_SHARD) {
			k = on = counts(x, r, e);
			x->nth++;
		} else if (k == READER_DATA && on) {
			k = conserve_records(x, r, sign, e);
		}
		k = k < 0 ? reader_blame(r, k, e) : 0;
	}
	reader_free(r);
	return k;
}

static int
conserve_pass(struct conserve_run *x, struct err *e)
{
	struct reader_opts any = { .max_elements = SCHEMA_MAX_TOTAL };
	char path[STATE_PATH], name[CACHE_NAME], shard[SPOOL_PATH];
	size_t i;
	int k = 0;

	memset(x->sum, 0, (size_t)(x->hi - x->lo) * sizeof(*x->sum));
	if (x->cached)
		memset(x->h, 0, (size_t)(x->hi - x->lo) * sizeof(*x->h));
	for (i = 0; i < x->in->n && k == 0; i++)
		k = conserve_file(x, x->in->input[i], 1, x->in->in, conserve_input, e);
	for (i = 0; i < x->got.n && k == 0; i++) {
		spool_path(&x->spool, &x->got.line[i].r.step, x->got.line[i].name,
		    shard);
		k = conserve_file(x, shard, x->cached ? 0 : -1, &any,
		    conserve_accepted, e);
		if (k == 0 && x->cached && x->own)
			conserve_made_add(x);
	}
	for (i = 0; i < x->pending.n && k == 0 && x->cached; i++) {
		if (x->pending.p[i].fate == PENDING_ACCEPTED)
			continue;
		(void)snprintf(name, sizeof(name), DENSE_HISTORY,
		    (unsigned long long)x->pending.p[i].step);
		k = conserve_file(x, statedir_path(&x->state, name, path), -1, &any,
		    conserve_whole, e);
	}
	return k < 0 ? k : conserve_file(x, statedir_path(&x->state, "residual", path),
	    -1, &any, conserve_kept, e);
}

/* After the first pass, count the steps and check that none occurs twice. */
static int
conserve_steps(struct conserve_run *x, struct err *e)
{
	const struct steps *l = &x->steps;
	size_t i;

	if (l->n != 0)
		qsort(l->step, l->n, sizeof(*l->step), compare_u64);
	for (i = 1; i < l->n; i++)
		if (l->step[i] == l->step[i - 1])
			return err_set(e, ERR_DATA, "mismatch: the inputs have step "
			    "%llu of '%s' twice", (unsigned long long)l->step[i],
			    x->c->device);
	x->c->steps = l->n;
	return 0;
}

static void
conserve_compare(struct conserve_run *x, const struct schema *sc)
{
	struct conserve *c = x->c;
	uint64_t i, at;
	double v, bound;
	size_t t = 0;
	int k;

	for (i = 0; i < x->hi - x->lo; i++) {
		for (k = 0; k < CONSERVE_WORDS && x->sum[i].w[k] == 0; k++)
			continue;
		if (k == CONSERVE_WORDS)
			continue;
		c->off++;
		v = conserve_value(&x->sum[i]);
		c->worst = fmax(c->worst, fabs(v));
		bound = ldexp(x->sum[i].size, -23) * (double)c->steps;
		if (fabs(v) <= bound || c->violated++ != 0)
			continue;
		at = x->lo + i;
		while (t + 1 < sc->n && sc->t[t + 1].base <= at)
			t++;
		(void)snprintf(c->tensor, sizeof(c->tensor), "%s", sc->t[t].name);
		c->index = at - sc->t[t].base;
		c->given = x->sum[i].given;
		c->missing = v;
	}
}

/* Set x->cached. Refuse a state whose feedback is neither ef nor cache: the equation does not
 * hold for its residual. */
static int
conserve_kind(struct conserve_run *x, struct err *e)
{
	const char *how = text_get(&reader_shard(x->now.d.r)->kv, "feedback");

	x->cached = how != NULL && strncmp(how, "cache:", 6) == 0;
	if (how == NULL || strcmp(how, "ef") == 0 || x->cached)
		return 0;
	return err_set(e, ERR_DATA, "unsupported: state '%s' has feedback %.40s, which cannot be "
	    "audited: expected ef or cache", x->in->state, how);
}

static int
conserve_open(struct conserve_run *x, struct err *e)
{
	const struct shard *sh;
	struct stat st;
	int k;

	if (stat(x->in->state, &st) < 0 || stat(x->in->spool, &st) < 0)
		return err_sys(e, "'%s'", stat(x->in->state, &st) < 0 ?
		    x->in->state : x->in->spool);
	if ((k = statedir_open(&x->state, x->in->state, e)) < 0 ||
	    (k = spool_open(&x->spool, x->in->spool, 0, e)) < 0 ||
	    (k = residual_open(&x->now, &x->state, e)) < 0)
		return k;
	if (x->now.d.r == NULL)
		return err_set(e, ERR_DATA, "mismatch: state '%s' has no residual: give the state "
		    "of a device that has coded a shard (ace-compress -S)", x->in->state);
	sh = reader_shard(x->now.d.r);
	x->c->step = sh->step;
	(void)snprintf(x->c->device, sizeof(x->c->device), "%s", shard_device(sh));
	return 0;
}

/* Check all elements. Read residual and receipts before the spool: a shard accepted in
 * between is then both pending in the state and accepted in the spool, and is counted once. */
static int
conserve_all(struct conserve_run *x, struct err *e)
{
	const struct schema *sc;
	struct residual again;
	struct receipts q;
	uint64_t lo, block;
	int k;

	if ((k = conserve_open(x, e)) < 0 || (k = conserve_kind(x, e)) < 0 ||
	    (k = pending_scan(&x->pending, &x->state, e)) < 0 ||
	    (k = receipts_load(&q, &x->state, e)) < 0 ||
	    (k = conserve_find(x, e)) < 0)
		return k;
	conserve_judge(x, &q);
	sc = reader_schema(x->now.d.r);
	x->c->elements = sc->total;
	block = sc->total < CONSERVE_BLOCK ? sc->total : CONSERVE_BLOCK;
	x->cap = sc->group_size;
	if ((x->sum = alloc_get((size_t)block, sizeof(*x->sum), e)) == NULL ||
	    (x->x = alloc_get(x->cap, sizeof(*x->x), e)) == NULL ||
	    (x->cached && ((x->h = alloc_get((size_t)block, sizeof(*x->h),
	    e)) == NULL || (x->made = alloc_get((size_t)block,
	    sizeof(*x->made), e)) == NULL)))
		return -ERR_SYS;
	for (lo = 0; k == 0 && (lo < sc->total || lo == 0); lo += block) {
		x->lo = lo;
		x->hi = lo + block < sc->total ? lo + block : sc->total;
		if ((k = conserve_pass(x, e)) == 0 && (lo != 0 ||
		    (k = conserve_steps(x, e)) == 0))
			conserve_compare(x, sc);
		if (block == 0)
			break;
	}
	if (k < 0)
		return k;
	k = residual_open(&again, &x->state, e);
	if (k == 0 && strcmp(again.d.stamp, x->now.d.stamp) != 0)
		k = err_set(e, ERR_REFUSED, "state '%s' changed while it was read: "
		    "try again when no program writes the state", x->in->state);
	residual_close(&again);
	return k;
}

int
conserve_check(struct conserve *c, const struct conserve_in *in, struct err *e)
{
	struct conserve_run x = { .c = c, .in = in, .state = STATE_INIT,
	    .spool = SPOOL_INIT };
	int k;

	memset(c, 0, sizeof(*c));
	x.spool.sync = IO_SYNC_NONE;	/* the spool is only read */
	k = conserve_all(&x, e);
	residual_close(&x.now);
	statedir_close(&x.state);
	spool_close(&x.spool);
	receipt_list_release(&x.got);
	steps_release(&x.steps);
	alloc_free(x.sum);
	alloc_free(x.x);
	alloc_free(x.h);
	alloc_free(x.made);
	if (k < 0 || c->violated == 0)
		return k;
	return err_set(e, ERR_DATA, "mismatch: tensor '%.80s' at index %llu: the %llu "
	    "inputs of '%.80s' up to step %llu add up to %.9g, but %.9g is delivered "
	    "(shards: %llu) or kept; elements that differ: %llu: give all inputs and "
	    "the run's spool", c->tensor,
	    (unsigned long long)c->index, (unsigned long long)c->steps, c->device,
	    (unsigned long long)c->step, c->given, c->given - c->missing,
	    (unsigned long long)c->accepted, (unsigned long long)c->violated);
}
