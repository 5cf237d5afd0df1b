#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/bytes.h"
#include "base/err.h"
#include "base/pool.h"
#include "base/room.h"
#include "codec/estimate.h"
#include "device/feedback.h"
#include "format/values.h"
#include "kern/kern.h"
#include "pipe/size.h"
#include "stage/rate.h"
#include "sync/select.h"

/* Bytes in memory, where there is as much; what is more waits in files. */
enum { RATE_VALUES = 64 << 20, RATE_BODIES = 16 << 20 };
/* More --bits there are not; and with so many bytes beside its head something of a
 * shard can be sent. */
enum { RATE_BITS = 64, RATE_SOMETHING = 128 };

static int
rate_scratch(void *fb, int *fd, struct err *e)
{
	return feedback_scratch(fb, fd, e);
}

void
rate_init(struct rate *q, struct feedback *fb, struct pool *pool)
{
	memset(q, 0, sizeof(*q));
	q->fb = fb;
	q->pool = pool;
	q->values = (struct hold)HOLD_INIT(room_of(RATE_VALUES));
	q->bodies = (struct hold)HOLD_INIT(room_of(RATE_BODIES));
	if (fb != NULL) {
		q->values.scratch = q->bodies.scratch = rate_scratch;
		q->values.arg = q->bodies.arg = fb;
		q->beside = feedback_beside(fb);
	}
}

void
rate_release(struct rate *q)
{
	size_t i;

	for (i = 0; q->thread != NULL && i < pool_size(q->pool); i++) {
		alloc_free(q->thread[i].x);
		buf_release(&q->thread[i].body);
	}
	alloc_free(q->thread);
	hold_release(&q->values);
	hold_release(&q->bodies);
	alloc_free(q->g);
	alloc_free(q->estimate);
	alloc_free(q->land.code);
	alloc_free(q->knob);
	alloc_free(q->count);
}

void
rate_begin(struct rate *q, const struct schema *sc, const struct shard *sh)
{
	q->schema = sc;
	q->shard = sh;
	q->weight = NULL;
	q->cheaper = q->dropped = 0;
	q->open = sc->total;
	rate_drop(q, q->n);
}

/* ---- what waits ---- */

int
rate_next(struct rate *q, size_t n, float **a, float **u, struct err *e)
{
	const size_t each = (1 + (size_t)q->beside) * sizeof(**a);
	void *p;
	int r = hold_next(&q->values, each * n, each * q->open, &p, e);

	if (r < 0 || p == NULL)
		return r;
	*a = p;
	if (q->beside)
		*u = *a + n;
	return 0;
}

int
rate_put(struct rate *q, uint32_t g, int absent, const float *a,
    const float *u, size_t n, const struct kern_stat *seen, struct err *e)
{
	struct rate_group *w;
	uint64_t at;
	int r;

	if ((r = alloc_grow(&q->g, &q->cap, q->n + 1, sizeof(*w), e)) < 0)
		return r;
	w = &q->g[q->n];
	w->group = g;
	w->n = (uint32_t)n;
	w->absent = absent;
	w->plan = (struct codec_plan){ CODEC_NONE, 0, 0 };
	if (seen != NULL)
		w->seen = *seen;
	else
		kern_get(NULL)->stat(a, n, &w->seen);
	if ((r = hold_put(&q->values, a, n * sizeof(*a), &w->at, e)) < 0 ||
	    (q->beside && (r = hold_put(&q->values, u, n * sizeof(*u), &at,
	    e)) < 0))
		return r;
	q->open -= n < q->open ? n : q->open;
	q->n++;
	return 0;
}

/* n bytes that wait, there or at *p. */
static int
rate_there(const struct rate *q, uint64_t at, float **p, size_t n,
    struct err *e)
{
	void *there = hold_at(&q->values, at);

	if (there == NULL)
		return hold_get(&q->values, at, *p, n, e);
	*p = there;
	return 0;
}

int
rate_get(const struct rate *q, size_t i, float **a, float **u, struct err *e)
{
	const struct rate_group *w = &q->g[i];
	const size_t n = w->n * sizeof(**a);
	int r = rate_there(q, w->at, a, n, e);

	return r < 0 || !q->beside ? r : rate_there(q, w->at + n, u, n, e);
}

/* The values of group i: where they wait, or in t, which has room for them. */
static int
rate_values(const struct rate *q, size_t i, struct rate_thread *t,
    const float **x, struct err *e)
{
	const struct rate_group *w = &q->g[i];
	int r;

	/* all that wait are there: none of them moves any more */
	if ((*x = hold_at(&q->values, w->at)) != NULL)
		return 0;
	*x = t->x;
	pool_lock(q->pool);
	r = hold_get(&q->values, w->at, t->x, w->n * sizeof(*t->x), e);
	pool_unlock(q->pool);
	return r;
}

void
rate_drop(struct rate *q, size_t k)
{
	q->n -= k;
	if (q->n != 0)
		memmove(q->g, q->g + k, q->n * sizeof(*q->g));
	else {
		hold_clear(&q->values);
		hold_clear(&q->bodies);
	}
}

/* ---- one group ---- */

static int
rate_zeros(const float *x, size_t n)
{
	size_t i;

	for (i = 0; i < n && x[i] == 0; i++)
		continue;
	return i == n;
}

int
rate_encode(struct rate *q, uint32_t g, const struct codec_plan *p,
    const float *x, size_t n, const struct kern_stat *seen, struct buf *body,
    uint8_t *param, float *y, struct err *e)
{
	struct codec_ctx ctx;
	struct codec_last last;
	int r = 0;

	/* a group of zeros is left out: to the receiver that means the same */
	if (p->codec == CODEC_NONE || (seen != NULL ? seen->nonzero == 0 &&
	    seen->nonfinite == 0 : rate_zeros(x, n)))
		return 0;
	values_ctx(q->schema, q->shard, g, &ctx);
	body->n = 0;
	if (codec_after(p) && q->fb != NULL &&
	    (r = feedback_last(q->fb, g, &last, e)) < 0)
		return r;
	r = codec_encode_after(p, &ctx, r > 0 ? &last : NULL, x, n, seen, body,
	    param, y, e);
	return r < 0 ? r : 1;
}

/* Codes group i by one thread. What waits, and where bodies are kept, is
 * everybody's. */
static int
rate_work(struct rate *q, unsigned who, size_t i, double f,
    struct land_code *c, struct err *e)
{
	const struct rate_group *w = &q->g[i];
	const struct codec_plan p = codec_turn(&w->plan, f);
	struct rate_thread *t = &q->thread[who];
	const float *x;
	int r;

	if (p.codec == CODEC_NONE)
		return 0;
	if ((r = rate_values(q, i, t, &x, e)) < 0 ||
	    (r = rate_encode(q, w->group, &p, x, w->n, &w->seen, &t->body,
	    &c->param, NULL, e)) <= 0)
		return r;
	c->len = t->body.n;
	pool_lock(q->pool);
	r = hold_put(&q->bodies, t->body.p, t->body.n, &c->at, e);
	pool_unlock(q->pool);
	return r;
}

static int
rate_make(void *arg, size_t i, double f, struct land_code *c, struct err *e)
{
	return rate_work(arg, 0, i, f, c, e);
}

struct rate_many {
	struct rate *q;
	const uint32_t *which;
	double f;
	struct land_code *c;
};

static int
rate_one_of(void *arg, unsigned who, size_t i, struct err *e)
{
	const struct rate_many *m = arg;

	return rate_work(m->q, who, m->which[i], m->f, &m->c[i], e);
}

/* The same for n groups, by all threads. */
static int
rate_many(void *arg, const uint32_t *which, size_t n, double f,
    struct land_code *c, struct err *e)
{
	struct rate_many m = { arg, which, f, c };
	size_t i;
	int r = 0, after = 0;

	for (i = 0; i < n; i++)
		after |= codec_after(&m.q->g[which[i]].plan);
	if (!after)
		return pool_run(m.q->pool, n, rate_one_of, &m, e);
	/* those that look at the shard before are coded one by one */
	for (i = 0; i < n && r == 0; i++)
		r = rate_one_of(&m, 0, i, e);
	return r;
}

/* About how many bytes group i takes; its values were counted when it was
 * asked for first. */
static double
rate_foretell(void *arg, size_t i, size_t slot, double f)
{
	struct rate *q = arg;
	const struct rate_group *w = &q->g[i];
	const struct codec_plan p = codec_turn(&w->plan, f);
	struct codec_ctx ctx;
	const float *x;

	if (!q->counted[slot]) {
		if (rate_values(q, i, q->thread, &x, NULL) < 0)
			return -1;
		values_ctx(q->schema, q->shard, w->group, &ctx);
		estimate_values(&q->estimate[slot], x, w->n, w->seen.max_abs,
		    &ctx);
		q->counted[slot] = 1;
	}
	return (double)codec_rate(&p, &q->estimate[slot]);
}

int
rate_code(const struct rate *q, size_t i, struct codec_plan *plan,
    struct buf *body, uint8_t *param, struct err *e)
{
	const struct land_code *c = &q->land.code[i];
	int r;

	body->n = 0;
	*plan = q->g[i].plan;
	if (c->len == 0)
		return 0;
	if ((r = buf_room(body, c->len, e)) < 0 ||
	    (r = hold_get(&q->bodies, c->at, body->p, c->len, e)) < 0)
		return r;
	body->n = c->len;
	*plan = codec_turn(plan, c->f);
	*param = c->param;
	return 1;
}

/* ---- all of them ---- */

/* The size in bytes of the coded shard, without the padding of its last
 * records. */
static uint64_t
rate_size(void *arg, const struct land *l)
{
	const struct rate *q = arg;
	struct size z = { .bytes = q->base };
	uint64_t bytes;
	size_t i;

	for (i = 0; i < l->n; i++)
		if (l->code[i].len != 0)
			size_record(&z, q->g[i].group, l->code[i].param,
			    l->code[i].len);
	bytes = size_send(&z);
	return bytes - z.pad;
}

/* ---- what does not fit ---- */

enum { RATE_WAYS = 32 };	/* codecs to choose from, at most */

/* The plan's codecs without a knob whose sizes are fixed. */
static size_t
rate_ways(const struct rate *q, struct codec_plan way[RATE_WAYS])
{
	const struct codec_plan *p;
	size_t i, k, n = 0;

	for (i = 0; i < q->n && n < RATE_WAYS; i++) {
		p = &q->g[i].plan;
		if (q->knob[i] || p->codec == CODEC_NONE || !codec_fixed(p))
			continue;
		for (k = 0; k < n && (way[k].codec != p->codec ||
		    way[k].arg != p->arg || way[k].param != p->param); k++)
			continue;
		if (k == n)
			way[n++] = *p;
	}
	return n;
}

/* What group i may become: not sent, as it is, or coded in one of the ways. */
static int
rate_levels(struct rate *q, size_t i, const struct codec_plan *way, size_t n,
    struct select_level *l, struct err *e)
{
	const struct rate_group *w = &q->g[i];
	const size_t len = q->land.code[i].len;
	const double weight = q->weight != NULL ?
	    (double)q->weight[w->group] : 1;
	struct estimate *m = q->estimate;
	struct codec_ctx ctx;
	const float *x;
	size_t k;
	int r;

	l[0] = (struct select_level){ 0, weight * w->seen.sumsq };
	for (k = 1; k < n + 2; k++)
		l[k].rate = -1;
	if (len == 0 || q->knob[i])
		return 0;
	if ((r = rate_values(q, i, q->thread, &x, e)) < 0)
		return r;
	values_ctx(q->schema, q->shard, w->group, &ctx);
	estimate_values(m, x, w->n, w->seen.max_abs, &ctx);
	for (k = 0; k <= n; k++) {
		const struct codec_plan *p = k == 0 ? &w->plan : &way[k - 1];
		const double error = codec_error(p, m);

		l[k + 1].dist = weight * (error < 0 && k == 0 ? 0 : error);
		l[k + 1].rate = error < 0 && k != 0 ? -1 : (int64_t)size_cost(
		    k == 0 ? len : codec_size(p, &ctx, w->n), 1);
	}
	return 0;
}

/* Takes from the groups without a knob until the rest fits, so that as little
 * as possible of what matters is lost, and codes again what changed. */
static int
rate_cheaper(struct rate *q, struct err *e)
{
	struct land *l = &q->land;
	struct codec_plan way[RATE_WAYS];
	const size_t n = rate_ways(q, way), m = n + 2;
	struct select_level *level = alloc_get(l->n, m * sizeof(*level), e);
	uint8_t *choice = alloc_get(l->n, 1, e);
	struct select_result res = { .rate = 0 };
	int64_t room;
	uint64_t over;
	size_t i;
	int r = level != NULL && choice != NULL ? 0 : -ERR_SYS;

	for (i = 0; i < l->n && r == 0; i++) {
		r = rate_levels(q, i, way, n, level + i * m, e);
		if (level[i * m + 1].rate > 0)
			res.rate += level[i * m + 1].rate;
	}
	room = res.rate;
	while (r == 0 && (l->bytes = rate_size(q, l)) > l->budget && room > 0) {
		over = l->bytes - l->budget;
		room = res.rate - (int64_t)over;
		r = select_budget(level, l->n, m, room > 0 ? room : 0,
		    SELECT_AUTO, choice, &res, e);
		for (i = 0; i < l->n && r == 0; i++) {
			struct codec_plan *p = &q->g[i].plan;

			if (l->code[i].len == 0 || q->knob[i] || choice[i] == 1)
				continue;
			*p = choice[i] == 0 ? (struct codec_plan){ CODEC_NONE,
			    0, 0 } : way[choice[i] - 2];
			q->cheaper += choice[i] != 0;
			q->dropped += choice[i] == 0;
			l->code[i] = (struct land_code){ 1, 0, 0, 0 };
			r = rate_make(q, i, 1, &l->code[i], e);
			level[i * m + 1] = level[i * m + choice[i]];
		}
	}
	alloc_free(level);
	alloc_free(choice);
	return r;
}

/* The energy (sum of squares) that one byte of group i carries. */
static double
rate_worth(const struct rate *q, size_t i)
{
	return q->g[i].seen.sumsq / (double)q->land.code[i].len;
}

/* Leaves groups out until the rest fits the budget: those with the least energy
 * for a byte. */
static int
rate_fit(struct rate *q, struct err *e)
{
	struct land *l = &q->land;
	size_t i, at;
	int r = rate_cheaper(q, e);

	while (r == 0 && (l->bytes = rate_size(q, l)) > l->budget) {
		for (at = l->n, i = 0; i < l->n; i++)
			if (l->code[i].len != 0 && (at == l->n ||
			    rate_worth(q, i) < rate_worth(q, at)))
				at = i;
		if (at == l->n)
			break;
		l->code[at].len = 0;
		q->g[at].plan.codec = CODEC_NONE;
		q->dropped++;
	}
	return r;
}

static int
rate_room(struct rate *q, struct err *e)
{
	size_t i, most = 1, asked = 0;
	int r;

	for (i = 0; i < q->n; i++)
		most = q->g[i].n > most ? q->g[i].n : most;
	if ((r = alloc_grow(&q->land.code, &q->code_cap, q->n,
	    sizeof(*q->land.code), e)) < 0 ||
	    (r = alloc_grow(&q->knob, &q->knob_cap, q->n, 1, e)) < 0 ||
	    (r = alloc_grow(&q->count, &q->values_cap, q->n,
	    sizeof(*q->count), e)) < 0)
		return r;
	if (q->estimate == NULL && (r = alloc_grow(&q->estimate, &asked,
	    TOLD_ASKED, sizeof(*q->estimate), e)) < 0)
		return r;
	if (q->thread == NULL && (q->thread = alloc_get(pool_size(q->pool),
	    sizeof(*q->thread), e)) == NULL)
		return -ERR_SYS;
	for (i = 0; i < pool_size(q->pool) && r == 0; i++)
		r = alloc_grow(&q->thread[i].x, &q->thread[i].cap, most,
		    sizeof(float), e);
	return r;
}

/* The shard is so small that its head alone is more than the budget: how many bits
 * a value would be enough to send something of it. */
static int
rate_small(const struct rate *q, uint64_t budget, uint64_t least,
    struct err *e)
{
	const uint64_t n = q->schema->total;
	const uint64_t bits = n == 0 ? RATE_BITS + 1 :
	    ((least + RATE_SOMETHING) * 8 + n - 1) / n;
	char how[64];

	if (bits > RATE_BITS)
		(void)snprintf(how, sizeof(how), "no --bits is enough, -c CODEC "
		    "needs none");
	else
		(void)snprintf(how, sizeof(how), "--bits %llu is enough",
		    (unsigned long long)bits);
	return err_set(e, ERR_REFUSED, "shard '%.100s/%llu': %llu bytes are too "
	    "few: it takes %llu with nothing in it, and has %llu values (%s)",
	    shard_device(q->shard), (unsigned long long)q->shard->step,
	    (unsigned long long)budget, (unsigned long long)least,
	    (unsigned long long)n, how);
}

int
rate_run(struct rate *q, uint64_t base, uint64_t budget, struct err *e)
{
	struct land *l = &q->land;
	struct size z = { .bytes = base };
	const uint64_t least = size_send(&z);
	size_t i;
	int r;

	if (least > budget)
		return rate_small(q, budget, least, e);
	if ((r = rate_room(q, e)) < 0)
		return r;
	for (i = 0; i < q->n; i++) {
		q->knob[i] = (uint8_t)codec_knob(&q->g[i].plan);
		q->count[i] = q->g[i].n;
	}
	q->base = base;
	l->n = q->n;
	l->knob = q->knob;
	l->values = q->count;
	l->budget = budget / 8 * 8;	/* as all frames are padded */
	l->arg = q;
	l->make = rate_make;
	l->many = rate_many;
	l->foretell = rate_foretell;
	memset(q->counted, 0, sizeof(q->counted));
	l->size = rate_size;
	if ((r = land_run(l, e)) == 1)
		r = rate_fit(q, e);
	return r;
}
