/*
 * Real codes of random groups meet a budget.
 */
#include "../../rnd.h"
#include "../tap.h"
#include "base/alloc.h"
#include "codec/codec.h"
#include "kern/kern.h"
#include "sync/rate_control.h"

enum { GROUPS = 120, SIZE = 1500, SHARDS = 300 };

struct shard {
	struct rate_control_group g[GROUPS];
	float x[GROUPS][SIZE];
	struct buf body;
	unsigned order;		/* times a group without a rate was coded again, or too late */
};

static struct shard s;

static void
make(struct rate_control *l, size_t i)
{
	struct codec_ctx ctx = { 1, 1, s.g[i].group, 1, 0 };
	struct codec_plan p = codec_turn(&s.g[i].plan, exp(s.g[i].code.t));

	s.order += !codec_rate(&s.g[i].plan) && (l->made > 0 ||
	    s.g[i].code.t != 0 || s.g[i].other.t < HUGE_VAL);
	s.g[i].code.len = s.body.n = 0;
	if (p.codec == CODEC_NONE)
		return;
	(void)codec_encode(&p, &ctx, s.x[i], s.g[i].n, &s.body,
	    &s.g[i].code.param, NULL);
	s.g[i].code.len = s.body.n;
}

static uint64_t
cost(uint32_t codec, size_t len, int param)
{
	return len + (len > 0 ? 3 : 0);
}

static uint64_t
size(const struct rate_control *l)
{
	uint64_t all = 100;
	size_t i;

	for (i = 0; i < l->n; i++)
		all += cost(0, s.g[i].code.len, 0);
	return all;
}

/* Code the shard. Return 0 if it fits its budget, 1 if not, -1 if memory runs out. */
static int
run(struct rate_control *l)
{
	size_t i;

	if (rate_control_open(l, NULL) < 0)
		return -1;
	while (rate_control_next(l, size(l)))
		for (i = 0; i < l->many; i++)
			make(l, l->which[i]);
	rate_control_close(l);
	return l->bytes > l->budget;
}

/* Make a shard of 1 to `groups' groups of 50 to `most' values, without codes. */
static struct rate_control
shard_of(size_t groups, size_t most)
{
	struct rate_control l = { .g = s.g, .cost = cost };
	double step = exp(4 * rnd() - 4);
	size_t i, j;

	l.n = 1 + (size_t)((double)groups * rnd() * rnd());
	s.order = 0;
	for (i = 0; i < l.n; i++) {
		s.g[i].group = (uint32_t)i;
		s.g[i].n = 50 + (uint32_t)((double)(most - 50) * rnd());
		for (j = 0; j < s.g[i].n; j++)
			s.x[i][j] = (float)((rnd() + rnd() + rnd() - 1.5) *
			    exp(3 * rnd()));
		s.g[i].plan = (struct codec_plan){ CODEC_ECQ, 0, (float)step };
		if (rnd() < 0.1)
			s.g[i].plan = (struct codec_plan){ CODEC_SIGN, 0, 0 };
		kern_list()[0]->stat(s.x[i], s.g[i].n, &s.g[i].seen);
		s.g[i].code.t = HUGE_VAL;
	}
	return l;
}

TEST(test_never_over)
{
	unsigned i, over = 0;
	struct rate_control l;
	int r;

	for (i = 0; i < 10000; i++) {
		l = shard_of(6, 150);
		l.budget = 100 + (uint64_t)(rnd() * rnd() * 150 * (double)l.n);
		r = run(&l);
		over += r < 0 || (r == 0 && l.bytes > l.budget) || l.bytes != size(&l);
	}
	ok(over == 0, "10000 small shards and budgets: never over");
}

TEST(test_random)
{
	unsigned i, over = 0, under = 0, fixed = 0, wrong = 0, order = 0;
	double tried = 0, values = 0;
	static struct rate_control_group again[GROUPS];
	struct rate_control l;
	size_t g, known, was;
	int r;

	for (i = 0; i < SHARDS; i++) {
		l = shard_of(GROUPS, SIZE);
		for (known = g = 0; g < l.n; g++)
			known += codec_rate(&s.g[g].plan) ? 0 : s.g[g].n;
		l.budget = 400 + known + (uint64_t)(rnd() * 40 * (double)l.n) +
		    (uint64_t)(rnd() * rnd() * 500 * (double)l.n);
		r = run(&l);
		wrong += r < 0 || l.bytes != size(&l);
		fixed += r == 1;
		over += r == 0 && l.bytes > l.budget;
		under += r == 0 && l.k > 0 && l.bytes + l.budget / 200 + 16 < l.budget;
		order += s.order;
		tried += (double)l.tried;
		for (g = 0; g < l.n; g++)
			values += s.g[g].n;
		if (i % 10 != 0)
			continue;
		memcpy(again, s.g, sizeof(again));
		was = l.made;
		for (g = 0; g < l.n; g++)
			s.g[g].code.t = HUGE_VAL;
		(void)run(&l);
		for (g = 0; g < l.n; g++)
			wrong += again[g].code.t != s.g[g].code.t ||
			    again[g].code.len != s.g[g].code.len;
		wrong += l.made != was;
	}
	ok(over == 0 && wrong == 0, "%d random shards and budgets: never over, "
	    "the same again the same", SHARDS);
	ok(under <= SHARDS / 100, "within half a per cent below the budget (%u not)",
	    under);
	ok(fixed == 0 && order == 0, "codes without a rate are coded once, before the others");
	ok(tried < 5 * values, "%.1f codings a value", tried / values);
}

TEST(test_cannot)
{
	struct rate_control l = shard_of(GROUPS, SIZE);
	size_t i;

	for (i = 0; i < l.n; i++)
		s.g[i].plan = (struct codec_plan){ CODEC_Q8, 0, 0 };
	l.budget = 90;
	ok(run(&l) == 1, "too large codes without a rate do not fit");
	for (i = 0; i < l.n; i++)
		s.g[i].plan = (struct codec_plan){ CODEC_ECQ, 0, 0.1f };
	l.budget = 101;
	ok(run(&l) == 0 && l.bytes == 100, "coarser until nothing "
	    "is left");
	l.budget = 99;
	ok(run(&l) == 1, "even the shortest codes do not fit");
	l.budget = 1u << 30;
	ok(run(&l) == 0 && l.bytes <= l.budget, "a budget for everything");
}

/* Using the last bytes of a budget must not give a group a rate far from those of the
 * others, with 60 groups or with 120. */
TEST(test_beside)
{
	double lo, hi, most = 1;
	struct rate_control l;
	unsigned k;
	size_t i;

	for (k = 0; k < 100; k++) {
		l = shard_of(k % 4 == 0 ? GROUPS : 60, SIZE);
		for (i = 0; i < l.n; i++)
			s.g[i].plan = (struct codec_plan){ CODEC_ECQ, 0, 0.5f };
		l.budget = 300 * l.n;
		if (run(&l) != 0)
			continue;
		lo = HUGE_VAL, hi = 0;
		for (i = 0; i < l.n; i++) {
			lo = fmin(lo, exp(s.g[i].code.t));
			hi = fmax(hi, exp(s.g[i].code.t));
		}
		most = fmax(most, hi / lo);
	}
	ok(most < 1.12, "in 100 shards by a factor of %.3f at most", most);
}

/* Before the search, code group i by its plan times e^t. */
static void
give(size_t i, double t)
{
	struct rate_control l = { .made = 0 };

	s.g[i].code.t = t;
	make(&l, i);
}

/* Make a shard for a second search: search once, which codes *fresh values; change the values a
 * little; plan one step, e^fine times finer than the mean one found; and code each group at t of
 * `fine' plus or minus up to `off'. If fine > 0, each fifth group has no code. */
static struct rate_control
given(double off, double fine, double *fresh)
{
	struct rate_control l;
	double mean = 0;
	size_t i, j;

	do
		l = shard_of(GROUPS, SIZE);
	while (l.n < 70);
	for (i = 0; i < l.n; i++)
		s.g[i].plan = (struct codec_plan){ CODEC_ECQ, 0, 0.5f };
	l.budget = 100 * l.n;
	(void)run(&l);
	*fresh = (double)l.tried;
	for (i = 0; i < l.n; i++)
		mean += s.g[i].code.t / (double)l.n;
	for (i = 0; i < l.n; i++) {
		for (j = 0; j < s.g[i].n; j++)
			s.x[i][j] *= (float)(1 + 0.1 * (rnd() - 0.5));
		kern_list()[0]->stat(s.x[i], s.g[i].n, &s.g[i].seen);
		/* plan one step for all: e^fine times finer than the mean step found */
		s.g[i].plan.arg = (float)(0.5 * exp(mean - fine));
		give(i, fine + off * (2 * rnd() - 1));
		if (fine > 0 && i % 5 == 4)
			s.g[i].code = (struct rate_control_code){ .t = HUGE_VAL };
	}
	return l;
}

TEST(test_given)
{
	static const double absurd[] = { 5, -5, 80, -80, 1e300, -HUGE_VAL, NAN };
	unsigned i, over = 0, under = 0;
	double fresh, tried = 0, all = 0;
	struct rate_control l;
	size_t g;
	int r;

	for (i = 0; i < 40; i++) {
		l = given(0.01, i % 2 * 1.2, &fresh);
		r = run(&l);
		over += r != 0 || l.bytes > l.budget || l.bytes != size(&l);
		under += l.bytes + l.budget / 200 + 16 < l.budget;
		tried += (double)l.tried;
		all += fresh;
	}
	ok(over == 0 && under == 0, "given the codes of a right price: within "
	    "the budget, half a percent below");
	ok(tried < 0.15 * all, "few are coded again: %.2f of all", tried / all);
	for (over = under = i = 0; i < 40; i++) {
		l = given(0.1, 0, &fresh);
		for (g = 0; g < l.n; g++)
			if (g % (1 + i % 5) == 0) {
				give(g, fmax(fmin(absurd[i % 7], 80), -80));
				s.g[g].code.t = absurd[(i + g) % 7];
			}
		r = run(&l);
		over += r != 0 || l.bytes > l.budget || l.bytes != size(&l);
		under += l.bytes + l.budget / 200 + 16 < l.budget;
	}
	ok(over == 0 && under == 0, "given the codes of an absurd price: the same");
}

int
main(void)
{
	rnd_seed = 11;
	run_tests();
	buf_release(&s.body);
	return done_testing();
}
