#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/detmath.h"
#include "base/err.h"
#include "base/pool.h"
#include "base/memlimit.h"
#include "device/error_feedback.h"
#include "format/values.h"
#include "pipe/size.h"
#include "stage/coding.h"
#include "sync/select.h"

/* Limits in bytes on the waiting values and bodies in memory; more of them wait in files. */
enum { CODING_VALUES = 64 << 20, CODING_BODIES = 16 << 20 };
/* Up to this many bytes wait in memory even if the residual's file has pages for them,
 * because each coding of a group would read its values from the file. */
enum { CODING_LITTLE = 8 << 20 };
/* A model with fewer than CODING_EARLY values or CODING_GROUP values per group is not
 * coded early, since too little is left to read meanwhile. */
enum { CODING_EARLY = 1 << 22, CODING_GROUP = 1 << 14 };
/* Bytes beyond an empty shard that usually suffice to send some group, also if the shard is the
 * average of a few devices. */
enum { CODING_SOMETHING = 512 };

/* CODING_ENTRY: limit on the bytes of a group in the residual beside its values (record entry
 * and frame head).  CODING_BACK: limit on the file's buffer and all bytes before the data. */
enum { CODING_ENTRY = 256, CODING_BACK = 16 << 20 };

static int
coding_scratch(void *arg, int *fd, uint64_t *from, struct err *e)
{
	const struct coding *c = arg;

	return temp_open(feedback_state(c->fb)->dir, fd, e);
}

/* Let values wait in the residual's file, a little after the place where their residual
 * will be written, so that each group is read before it is overwritten.  The file's pages
 * are then allocated only once. */
static int
coding_ahead(void *arg, int *fd, uint64_t *from, struct err *e)
{
	const struct coding *c = arg;
	const uint64_t each = c->most * sizeof(float) + CODING_ENTRY;

	return io_ahead(residual_io(feedback_next(c->fb)), CODING_BACK +
	    (c->slots + 1) * each + (uint64_t)c->schema->ngroups * CODING_ENTRY,
	    fd, from, e);
}

int
coding_open(struct coding *c, struct feedback *fb, struct pool *pool, struct err *e)
{
	const size_t threads = pool_size(pool);
	/* two per thread, since groups take different times */
	const size_t slots = threads == 1 ? 1 : 2 * threads;

	*c = (struct coding){ .fb = fb, .pool = pool };
	c->values = (struct scratch)SCRATCH_INIT(memlimit_of(CODING_VALUES));
	c->bodies = (struct scratch)SCRATCH_INIT(memlimit_of(CODING_BODIES));
	if (fb != NULL) {
		c->bodies.file = coding_scratch;
		c->values.file = coding_ahead;
		c->values.arg = c->bodies.arg = c;
	}
	if ((c->all = alloc_get(2 * slots, sizeof(*c->all), e)) == NULL)
		return -ERR_SYS;
	c->slots = slots;
	c->slot = c->all;
	c->before = c->all + slots;
	return 0;
}

void
coding_close(struct coding *c)
{
	size_t i;

	if (c->pool != NULL)
		(void)pool_end(c->pool, NULL);
	for (i = 0; i < 2 * c->slots; i++)
		buf_release(&c->all[i].code.body);
	alloc_free(c->all);
	alloc_free(c->room);
	scratch_release(&c->values);
	scratch_release(&c->bodies);
	alloc_free(c->g);
	*c = (struct coding){ .fb = NULL };
}

int
coding_begin(struct coding *c, const struct schema *sc,
    const struct shard *sh, struct err *e)
{
	const size_t n = sc->group_size;
	size_t i;
	int r = coding_settled(c, e);

	if (r < 0)
		return r;
	c->schema = sc;
	c->shard = sh;
	c->dropped = c->filled = c->running = 0;
	c->now = c->last = c->values_last = 0;
	c->open = sc->total;
	coding_drop(c, c->n);
	if (n <= c->most)
		return 0;
	alloc_free(c->room);
	c->most = 0;
	if ((c->room = alloc_raw(4 * c->slots * n, sizeof(*c->room), e)) == NULL)
		return -ERR_SYS;
	for (i = 0; i < 2 * c->slots; i++)
		c->all[i].room = c->room + 2 * i * n;
	c->most = n;
	return 0;
}

/* ---- one group ---- */

/* Code the values x f32[n] of group g, whose statistics are `seen', by plan p.  Return 1, with
 * the decoded values in y f32[n] unless y is NULL, or 0 if the group is not to be sent. */
static int
coding_encode(struct coding *q, uint32_t g, const struct codec_plan *p,
    const float *x, size_t n, const struct kern_stat *seen, struct buf *body,
    uint8_t *param, float *y, struct err *e)
{
	struct codec_plan plan = *p;
	struct codec_ctx ctx;
	struct codec_last last;
	size_t bad;
	int r = 0;

	/* leave out a group of zeros: absent groups are read as zeros or, with cache, as rho h,
	 * and the residual keeps the difference */
	if (p->codec == CODEC_NONE || seen->nonzero + seen->nonfinite == 0)
		return 0;
	values_ctx(q->schema, q->shard, g, &ctx);
	body->n = 0;
	if (codec_after(p) && q->fb != NULL &&
	    (r = feedback_last(q->fb, g, &last, e)) < 0)
		return r;
	if (q->contracting)
		plan = codec_contracting(p);
	r = codec_encode_after(&plan, &ctx, r > 0 ? &last : NULL, x, n, seen, body,
	    param, y, e);
	if (r == -ERR_DATA && (bad = kern_first_nonfinite(x, n)) < n) {
		err_clear(e);
		return err_after(e, values_overflow(q->schema, g, bad, e),
		    ", shard '%.80s/%llu'", shard_device(q->shard),
		    (unsigned long long)q->shard->step);
	}
	return r == -ERR_DATA ? err_after(e, r, ", in group %lu of shard '%.80s/%llu'",
	    (unsigned long)g, shard_device(q->shard),
	    (unsigned long long)q->shard->step) : r < 0 ? r : 1;
}

/* ---- groups whose plan is known ---- */

struct coding_slot *
coding_slot(struct coding *c)
{
	struct coding_slot *w = &c->slot[c->filled];

	w->acc = w->room;
	w->code.dec = w->acc + c->most;
	w->seen = w->made = 0;
	return w;
}

/* Code the group of a slot in one thread, unless it is coded already, and decode it; with error
 * feedback, compute its error. */
static int
coding_one(void *arg, unsigned who, size_t i, struct err *e)
{
	struct coding *q = arg;
	struct coding_slot *w = &q->before[i];
	struct feedback_code *c = &w->code;
	const struct kern *kern = kern_get(e);
	struct codec_ctx ctx;
	int r;

	if (kern == NULL)
		return -ERR_USAGE;
	if (w->made) {
		values_ctx(q->schema, q->shard, w->group, &ctx);
		r = c->sent == 0 ? 0 : codec_again(&w->plan, &ctx, w->acc, &c->target,
		    c->param, c->body.p, c->body.n, c->dec, w->n, e);
	} else {
		if (!w->seen)
			kern->stat(w->acc, w->n, &c->target);
		r = coding_encode(q, w->group, &w->plan, w->acc, w->n, &c->target,
		    &c->body, &c->param, c->dec, e);
		c->sent = r > 0;
	}
	if (r < 0)
		return r;
	c->codec = (uint8_t)w->plan.codec;
	if (c->sent)
		kern->stat(c->dec, w->n, &c->decoded);
	if (q->fb != NULL)
		feedback_error(q->fb, w->acc, w->n, c);
	return 0;
}

/* Wait for the slots that are being coded, begin to code the filled ones, and settle the
 * former meanwhile. */
static int
coding_turn_slots(struct coding *c, struct err *e)
{
	struct coding_slot *const done = c->before;
	const size_t ndone = c->running;
	size_t i, n = 0;
	int r = pool_end(c->pool, e);

	for (i = 0; i < c->filled; i++)
		n += c->slot[i].n;
	c->before = c->slot;
	c->running = c->filled;
	c->slot = done;
	c->filled = 0;
	if (r == 0)
		r = pool_begin(c->pool, c->running, n, coding_one, c, e);
	for (i = 0; i < ndone && r == 0; i++)
		r = c->settle(c->arg, &done[i], e);
	return r;
}

int
coding_run(struct coding *c, struct err *e)
{
	const int r = coding_turn_slots(c, e);

	return r < 0 ? r : coding_turn_slots(c, e);
}

int
coding_add(struct coding *c, struct err *e)
{
	const int after = codec_after(&c->slot[c->filled++].plan);

	/* feedback_last serves one thread: code no other group that uses it beside this one */
	if (!after && c->filled < c->slots)
		return 0;
	/* without a state the next program waits for the codes: do not hold them back */
	return after || c->slots == 1 || c->fb == NULL ? coding_run(c, e) :
	    coding_turn_slots(c, e);
}

/* ---- groups that wait ---- */

/* Set *x to the values of waiting group w: in place or, from the file, in `room'.  Threads
 * share q->values, so this locks the pool meanwhile. */
static int
coding_values(const struct coding *q, const struct rate_control_group *w, float *room,
    float **x, struct err *e)
{
	int r = 0;

	pool_lock(q->pool);
	if ((*x = scratch_at(&q->values, w->at)) == NULL)
		r = scratch_get(&q->values, w->at, *x = room, w->n * sizeof(**x), e);
	pool_unlock(q->pool);
	return r;
}

int
coding_get(const struct coding *q, size_t i, struct coding_slot *w, struct err *e)
{
	const struct rate_control_group *g = &q->g[i];

	w->group = g->group;
	w->n = g->n;
	w->code.target = g->seen;
	w->seen = 1;
	return coding_values(q, g, w->room, &w->acc, e);
}

/* Code group q->which[k] in one thread, coarser than its plan by the factor e^code.t. */
static int
coding_turn(void *arg, unsigned who, size_t k, struct err *e)
{
	struct coding *q = arg;
	struct rate_control_group *w = &q->g[q->which[k]];
	const struct codec_plan p = codec_turn(&w->plan, detmath_exp(w->code.t));
	struct buf *body = &q->slot[who].code.body;
	float *x;
	int r;

	w->code.len = 0;
	if (p.codec == CODEC_NONE)
		return 0;
	if ((r = coding_values(q, w, q->slot[who].room, &x, e)) < 0 ||
	    (r = coding_encode(q, w->group, &p, x, w->n, &w->seen, body,
	    &w->code.param, NULL, e)) <= 0)
		return r;
	w->code.len = body->n;
	pool_lock(q->pool);
	r = scratch_put(&q->bodies, body->p, body->n, &w->code.at, e);
	pool_unlock(q->pool);
	return r;
}

/* ---- coded early ---- */

/* Wait for the batch that is being coded.  Add its bytes, converted to the rates of the previous
 * shard, to q->now, and its bytes in that shard to q->last.  Their ratio sets the rates of the
 * next batch; the weight of older batches halves with each batch. */
static int
coding_wait(struct coding *q, struct err *e)
{
	struct coding_batch *b = &q->batch[0];
	const double t = b->n != 0 ? q->g[b->which[0]].code.t : 0;
	size_t i, now = 0;
	int r = pool_end(q->pool, e);

	for (i = 0; i < b->n; i++)
		now += q->g[b->which[i]].code.len;
	if (b->n != 0) {
		q->last = q->last / 2 + (double)b->bytes;
		q->values_last = q->values_last / 2 + (double)b->values;
		q->now = q->now / 2 + (double)now *
		    detmath_exp(rate_control_steep(q->last, q->values_last) * t);
	}
	b->n = 0;
	return r;
}

/* Wait for the batch that is being coded, then begin to code the gathered one. */
static int
coding_start(struct coding *q, struct err *e)
{
	double t = 0;
	size_t i;
	int r = coding_wait(q, e);

	if (r < 0)
		return r;
	if (q->last > 0 && q->now > 0)
		t = detmath_log(q->now / q->last) / rate_control_steep(q->last,
		    q->values_last);
	q->batch[0] = q->batch[1];
	q->batch[1] = (struct coding_batch){ .n = 0 };
	for (i = 0; i < q->batch[0].n; i++)
		q->g[q->batch[0].which[i]].code.t = fmax(fmin(t, 1), -1);
	q->which = q->batch[0].which;
	return pool_begin(q->pool, q->batch[0].n, q->batch[0].values, coding_turn, q, e);
}

int
coding_settled(struct coding *q, struct err *e)
{
	int r = q->batch[1].n != 0 ? coding_start(q, e) : 0;

	return r < 0 ? r : coding_wait(q, e);
}

/* In a large model, if the previous shard has the newest waiting group, coded by a codec with a
 * rate, queue the group to be coded early at about that rate. */
static int
coding_early(struct coding *q, struct err *e)
{
	struct rate_control_group *w = &q->g[q->n - 1];
	struct coding_batch *b = &q->batch[1];
	struct codec_last last;
	int r;

	if (q->fb == NULL || q->schema->total < CODING_EARLY ||
	    q->schema->total / q->schema->ngroups < CODING_GROUP)
		return 0;
	if ((r = feedback_last(q->fb, w->group, &last, e)) <= 0 ||
	    !codec_turned(&last, &w->plan))
		return r < 0 ? r : 0;
	b->which[b->n++] = (uint32_t)(q->n - 1);
	b->values += w->n;
	b->bytes += last.len;
	return b->n < CODING_BATCH ? 0 : coding_start(q, e);
}

void
coding_plan(struct coding *q, size_t i, const struct codec_plan *p)
{
	struct rate_control_group *w = &q->g[i];
	const struct codec_plan was = w->plan;
	const struct codec_plan to = values_plan(q->schema, w->group, *p);
	const int same = w->code.t < HUGE_VAL && was.codec == to.codec &&
	    was.param == to.param && to.arg > 0;

	w->plan = to;
	w->code.t = same ? w->code.t + detmath_log((double)was.arg /
	    (double)to.arg) : HUGE_VAL;
	if (!same)
		w->code.len = 0;
}

int
coding_next(struct coding *q, struct coding_slot *w, struct err *e)
{
	const size_t each = sizeof(*w->acc);
	void *p;
	int r;

	/* q->g may move, and threads may be using it */
	if (q->n == q->cap && ((r = coding_wait(q, e)) < 0 ||
	    (r = alloc_grow(&q->g, &q->cap, q->n + 1, sizeof(*q->g), e)) < 0))
		return r;
	/* separate memory gains nothing if the residual's file has pages for the values */
	if (q->n == 0)
		q->values.most = each * q->open > CODING_LITTLE &&
		    q->fb != NULL &&
		    io_over(residual_io(feedback_next(q->fb))) ? 0 :
		    memlimit_of(CODING_VALUES);
	pool_lock(q->pool);
	r = scratch_next(&q->values, each * w->n, each * q->open, &p, e);
	pool_unlock(q->pool);
	if (r == 0 && p != NULL)
		w->acc = p;
	return r;
}

int
coding_put(struct coding *q, struct coding_slot *w, int absent, struct err *e)
{
	struct rate_control_group *g = &q->g[q->n];
	int r;

	/* finish the slots first: the threads that code groups early use their rooms */
	if (q->filled + q->running != 0 && (r = coding_run(q, e)) < 0)
		return r;
	if (!w->seen)
		kern_get(NULL)->stat(w->acc, w->n, &w->code.target);
	*g = (struct rate_control_group){ .group = w->group, .n = (uint32_t)w->n,
	    .absent = (uint8_t)absent, .plan = { CODEC_NONE, 0, 0 },
	    .seen = w->code.target, .code = { .t = HUGE_VAL } };
	pool_lock(q->pool);
	r = scratch_put(&q->values, w->acc, w->n * sizeof(*w->acc), &g->at, e);
	pool_unlock(q->pool);
	if (r < 0)
		return r;
	q->open -= w->n < q->open ? w->n : q->open;
	q->n++;
	return coding_early(q, e);
}

void
coding_drop(struct coding *q, size_t k)
{
	q->n -= k;
	if (q->n != 0)
		memmove(q->g, q->g + k, q->n * sizeof(*q->g));
	else {
		scratch_clear(&q->values);
		scratch_clear(&q->bodies);
	}
}

int
coding_code(const struct coding *q, size_t i, struct coding_slot *w, struct err *e)
{
	const struct rate_control_group *g = &q->g[i];
	int r;

	w->made = 1;
	w->plan = g->plan;
	w->code.body.n = 0;
	w->code.sent = g->code.len != 0;
	if (!w->code.sent)
		return 0;
	if ((r = buf_room(&w->code.body, g->code.len, e)) < 0 ||
	    (r = scratch_get(&q->bodies, g->code.at, w->code.body.p, g->code.len,
	    e)) < 0)
		return r;
	w->code.body.n = g->code.len;
	w->plan = codec_turn(&g->plan, detmath_exp(g->code.t));
	w->code.param = g->code.param;
	return 0;
}

/* ---- within a budget ---- */

/* Code the n groups of `which' by coding_turn, in several threads if possible. */
static int
coding_turn_all(struct coding *q, const uint32_t *which, size_t n, struct err *e)
{
	size_t i, values = 0;
	int after = 0;

	for (i = 0; i < n; i++) {
		after |= codec_after(&q->g[which[i]].plan);
		values += q->g[which[i]].n;
	}
	q->which = which;
	/* if a codec uses the previous shard, code the groups one after another */
	return pool_run(q->pool, n, after ? 0 : values, coding_turn, q, e);
}

/* Return the bytes of the coded shard, without the padding of its last records. */
static uint64_t
coding_size(const struct coding *q)
{
	struct size z = { .bytes = q->base };
	uint64_t bytes;
	size_t i;

	for (i = 0; i < q->n; i++)
		if (q->g[i].code.len != 0)
			size_record(&z, q->g[i].group, q->g[i].plan.codec,
			    q->g[i].code.param, q->g[i].code.len);
	bytes = size_send(&z);
	return bytes - z.pad;
}

/* ---- what does not fit ---- */

/* Leave out groups of the plan until the shard fits, those with the least energy per byte
 * first. */
static int
coding_leave(struct coding *q, uint64_t budget, struct err *e)
{
	struct select_level *level = alloc_get(q->n, 2 * sizeof(*level), e);
	uint8_t *choice = alloc_get(q->n, 1, e);
	struct select_result res = { .bytes = 0 };
	struct rate_control_group *w;
	uint64_t bytes;
	int64_t room = 1;
	size_t i;
	int r = level != NULL && choice != NULL ? 0 : -ERR_SYS;

	for (i = 0; i < q->n && r == 0; i++) {
		w = &q->g[i];
		level[2 * i] = (struct select_level){ 0, w->seen.sumsq };
		level[2 * i + 1].bytes = w->code.len == 0 || schema_exact_group(q->schema,
		    w->group) ? 0 : (int64_t)size_cost(w->plan.codec, w->code.len, 1);
		res.bytes += level[2 * i + 1].bytes;
	}
	while (r == 0 && (bytes = coding_size(q)) > budget && room > 0) {
		room = res.bytes - (int64_t)(bytes - budget);
		r = select_budget(level, q->n, 2, room > 0 ? room : 0, choice, &res, e);
		for (i = 0; i < q->n && r == 0; i++) {
			if (choice[i] != 0 || level[2 * i + 1].bytes == 0)
				continue;
			q->g[i].plan.codec = CODEC_NONE;
			q->g[i].code.len = 0;
			level[2 * i + 1] = level[2 * i];
			q->dropped++;
		}
	}
	alloc_free(level);
	alloc_free(choice);
	return r;
}

/* Refuse a shard that exceeds the budget even without groups: `least' bytes. The message has
 * the number of bits per value that would suffice to send some group. */
static int
coding_small(const struct coding *q, uint64_t budget, uint64_t least, struct err *e)
{
	const uint64_t n = q->schema->total, some = n != 0 ? n : 1;
	uint64_t need = least + CODING_SOMETHING;
	size_t i;

	for (i = 0; i < q->n; i++)
		if (schema_exact_group(q->schema, q->g[i].group))
			need += size_cost(q->g[i].plan.codec, codec_bound(&q->g[i].plan,
			    q->g[i].n), 1);
	return err_set(e, ERR_REFUSED, "shard '%.100s/%llu': a budget of %s%llu byte%s "
	    "is too small: an empty shard takes %llu bytes, and this shard has %llu "
	    "value%s (--bits %llu is enough)", shard_device(q->shard),
	    (unsigned long long)q->shard->step, budget == 1 ? "at most " : "",
	    (unsigned long long)budget, budget == 1 ? "" : "s",
	    (unsigned long long)least, (unsigned long long)n, n == 1 ? "" : "s",
	    (unsigned long long)((8 * need + some - 1) / some));
}

int
coding_fit(struct coding *q, uint64_t base, uint64_t budget, struct err *e)
{
	struct rate_control l = { .g = q->g, .n = q->n, .cost = size_cost,
	    .budget = budget / 8 * 8 };		/* frames are padded to 8 bytes */
	struct size z = { .bytes = base };
	const uint64_t least = size_send(&z);
	int r;

	if (least > budget)
		return coding_small(q, budget, least, e);
	q->base = base;
	r = rate_control_open(&l, e);
	while (r == 0 && rate_control_next(&l, coding_size(q)))
		r = coding_turn_all(q, l.which, l.many, e);
	rate_control_close(&l);
	if (r == 0 && l.bytes > l.budget)
		r = coding_leave(q, l.budget, e);
	return r < 0 || coding_size(q) <= l.budget ? r : err_set(e, ERR_REFUSED,
	    "shard '%.100s/%llu': a budget of %llu bytes is too small: with the tensors "
	    "that are sent without loss, the shard takes %llu bytes", shard_device(q->shard),
	    (unsigned long long)q->shard->step, (unsigned long long)budget,
	    (unsigned long long)(coding_size(q) + 7) / 8 * 8);
}
