#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/cli.h"
#include "base/err.h"
#include "base/io.h"
#include "base/num.h"
#include "device/contraction.h"
#include "device/memory.h"
#include "format/frame.h"
#include "format/keys.h"
#include "format/text.h"
#include "stage/stage.h"
#include "stage/stage_policy.h"
#include "sync/interval.h"
#include "sync/ratio.h"

#define POLICY_FILE "policy"		/* in the state directory */
#define POLICY_RATE "rate"		/* key in it: the one acted on */

struct policy_replay {
	struct reader *from;	/* the recording; NULL: there is none */
	int end;		/* it stands at the end of the shard */
};

struct stage_policy {
	struct stage s;
	struct stage_policy_opts o;	/* and what was found since */
	struct stage_shard sh;		/* at hand */
	struct state state;
	struct policy_replay replay;	/* instead of deciding */
	int waits;			/* the shard's times may still come */
	uint64_t asked;			/* interval of a device that diverges */
	struct buf note;
};

/* ---- options ---- */

/* Reads "8", or "8,4,16" with the least and the largest value. */
static int
policy_set_steps(void *arg, const struct opt *row, const char *val,
    struct err *e)
{
	struct stage_policy_opts *o = arg;
	uint64_t *to[] = { &o->steps, &o->interval.min, &o->interval.max };
	char word[24];
	size_t n, i;
	int r;

	(void)row;
	for (i = 0; i < 3; i++, val += n + 1) {
		n = strcspn(val, ",");
		if (n >= sizeof(word))
			break;
		memcpy(word, val, n);
		word[n] = '\0';
		if ((r = num_u64(to[i], word, 1, 1000000, "--interval",
		    e)) < 0)
			return r;
		if (val[n] == '\0' && i != 1)
			return 0;
		if (val[n] == '\0')
			break;
	}
	return err_set(e, ERR_USAGE, "--interval: FIRST or FIRST,MIN,MAX");
}

static int
policy_set_cuts(void *arg, const struct opt *row, const char *val,
    struct err *e)
{
	struct stage_policy_opts *o = arg;

	(void)row, (void)val, (void)e;
	o->cuts.on = 1;
	return 0;
}

/* A rate above KEYS_RATE_MOST is no valid value of its key. */
const struct opt stage_policy_rows[] = {
	{ 'S', "state", "DIR",
	    "take the link's rate from DIR, keep the interval there",
	    OPT_PATH(struct stage_policy_opts, dir, OPT_DIR) },
	{ 0, "cmin", "X", "least compression factor",
	    OPT_F64(struct stage_policy_opts, cmin, 1, 1e9), .def = "2" },
	{ 0, "cmax", "X", "largest",
	    OPT_F64(struct stage_policy_opts, cmax, 1, 1e9), .def = "300" },
	{ 0, "half", "RATE", "where it is half way",
	    OPT_RATE(struct stage_policy_opts, half), .lo.f = 1e-300,
	    .def = "10Mbit" },
	{ 0, "bandwidth", "RATE", "of the link, if not measured",
	    OPT_RATE(struct stage_policy_opts, bandwidth),
	    .hi.f = KEYS_RATE_MOST },
	{ 0, "warmup", "STEPS", "reach the factor over so many",
	    OPT_U64(struct stage_policy_opts, pace.warmup, 0, UINT64_MAX),
	    .def = "0" },
	{ 0, "deadline", "TIME", "no more than the link carries in TIME",
	    OPT_TIME(struct stage_policy_opts, deadline) },
	{ 0, "cuts", "TIME",
	    "at which layers to send; TIME: each sending costs more",
	    OPT_TIME(struct stage_policy_opts, cuts.dt),
	    .set = policy_set_cuts },
	{ 0, "deco", NULL, "the budget and the delay after DeCo-SGD",
	    OPT_FLAG(struct stage_policy_opts, stale.on) },
	{ 0, "compute", "TIME", "deco: of a step, if the shards do not say it",
	    OPT_TIME(struct stage_policy_opts, stale.compute) },
	{ 0, "latency", "TIME", "deco: of the link, if not measured",
	    OPT_TIME(struct stage_policy_opts, stale.latency) },
	{ 0, "target-divergence", "X",
	    "relative drift to aim at; gives the interval",
	    OPT_F64(struct stage_policy_opts, interval.target, 1e-300,
	    POLICY_BIG) },
	{ 0, "model-norm", "X", "the norm of the model",
	    OPT_F64(struct stage_policy_opts, norm, 1e-300, POLICY_BIG) },
	{ 0, "interval", "FIRST[,MIN,MAX]",
	    "the first interval, and its limits",
	    OPT_CALL(policy_set_steps), .def = "1,1,1000" },
	{ 0, "replay", "FILE", "decide as in FILE, a stream",
	    OPT_PATH(struct stage_policy_opts, replay, OPT_READ) },
	OPT_END
};

static int
policy_check(const struct stage_policy_opts *o, struct err *e)
{
	if (o->cmin > o->cmax)
		return err_set(e, ERR_USAGE, "--cmin is above --cmax");
	if (o->interval.min > o->interval.max)
		return err_set(e, ERR_USAGE,
		    "--interval: the least is above the largest");
	if (o->replay != NULL && (o->dir != NULL || o->stale.on ||
	    o->interval.target > 0 || o->cuts.on))
		return err_set(e, ERR_USAGE, "--replay decides nothing: it goes "
		    "with no -S, --deco, --cuts or --target-divergence");
	if (o->stale.on && (o->pace.warmup > 0 || o->deadline >= 0))
		return err_set(e, ERR_USAGE, "--deco has neither --warmup nor "
		    "--deadline");
	return 0;
}

/* ---- decisions as text ---- */

/* A line on standard error, if -v was given. */
static void __attribute__((format(printf, 2, 3)))
policy_say(const struct stage_policy_opts *o, const char *fmt, ...)
{
	char line[512];
	va_list ap;

	va_start(ap, fmt);
	(void)vsnprintf(line, sizeof(line), fmt, ap);
	va_end(ap);
	cli_say(o->f->cli, 1, "%s", line);
}

static int
policy_real(struct text_kv *kv, const char *key, double v, struct err *e)
{
	char s[40];

	(void)snprintf(s, sizeof(s), "%.9g", v);
	return text_set(kv, key, s, e);
}

static int
policy_whole(struct text_kv *kv, const char *key, double v, struct err *e)
{
	char s[40];

	(void)snprintf(s, sizeof(s), "%.0f", v);
	return text_set(kv, key, s, e);
}

/* ---- how hard to compress a shard, by equation (5) ---- */

/* Notes which numbers the factor and the budget were calculated from. */
static void
policy_ratio_why(const struct stage_policy_opts *o,
    const struct stage_shard *sh, double rate, double acted, double base,
    double c, uint64_t budget)
{
	const struct pace *q = &o->pace;
	uint64_t step = sh->shard->step;
	char is[NUM_RATE_TEXT], taken[NUM_RATE_TEXT];

	num_rate_text(rate, is);
	num_rate_text(fmax(acted, 0), taken);
	if (rate < 0)
		policy_say(o, "  link: never measured, so taken as %s",
		    taken);
	else
		policy_say(o, "  link: %s, %s; taken as %s: a "
		    "fall counts at once, a rise by %.3g of it, less than %.3g is "
		    "no change", is, o->bandwidth >= 0 ?
		    "as the option says" : "as ace-meter measured", taken,
		    q->rise, q->still);
	policy_say(o, "  factor: %.4g + (%.4g - %.4g) exp(-%.4g * %.4g) = "
	    "%.4g, equation (5)", o->cmin, o->cmax, o->cmin, ratio_beta(o->half),
	    fmax(acted, 0), base);
	if (step < q->warmup)
		policy_say(o, "  warm-up: step %llu of %llu, so the power "
		    "%.4g of it", (unsigned long long)step,
		    (unsigned long long)q->warmup, ((double)step + 1) /
		    (double)q->warmup);
	policy_say(o, "  budget: 4 bytes * %llu values / %.4g = %llu bytes",
	    (unsigned long long)sh->schema->total, c,
	    (unsigned long long)budget);
}

/* Limits the budget to what the link can carry in time, and adapts the
 * factor. */
static int
policy_ratio_late(const struct stage_policy_opts *o,
    const struct stage_shard *sh, double rate, double acted,
    uint64_t *budget, double *c)
{
	double most = acted / 8 * o->deadline;

	if (o->deadline < 0 || rate < 0 || most >= (double)*budget)
		return 0;
	*budget = (uint64_t)most;
	*c = 4 * (double)sh->schema->total /
	    fmax((double)*budget, 1);
	return 1;
}

/* Puts the keys ratio, budget_bytes and the numbers they are from into kv, and what
 * it learnt of the link into o->pace.  rate in bit/s, < 0 unknown. */
static int
policy_ratio_decide(struct stage_policy_opts *o, const struct stage_shard *sh,
    double rate, struct text_kv *kv, struct err *e)
{
	double acted = pace_rate(&o->pace, rate);
	double base = ratio_factor(o->cmin, o->cmax, ratio_beta(o->half),
	    fmax(acted, 0));
	double c = pace_factor(&o->pace, base, sh->shard->step);
	uint64_t budget = ratio_budget(sh->schema->total, c);
	char where[160], taken[NUM_RATE_TEXT];
	int r, late = policy_ratio_late(o, sh, rate, acted, &budget, &c);

	num_rate_text(fmax(acted, 0), taken);
	policy_say(o, "%s: %s %s, factor %.4g, %llu bytes",
	    reader_where(sh->in, where), rate >= 0 ? "link" : "link unknown,",
	    taken, c, (unsigned long long)budget);
	policy_ratio_why(o, sh, rate, acted, base, c, budget);
	if (late)
		policy_say(o, "  the link carries no more in the %.4g s "
		    "that a shard may take", o->deadline);
	if ((r = policy_real(kv, KEYS_RATIO, c, e)) < 0 ||
	    (r = policy_whole(kv, KEYS_BUDGET, (double)budget, e)) < 0)
		return r;
	return rate >= 0 ? policy_whole(kv, KEYS_BANDWIDTH, rate, e) : 0;
}

/* ---- how many local steps before the next shard, by equation (9) ---- */

/* The norm || theta ||, from the option or else from the shard. */
static int
policy_interval_norm(const struct stage_policy_opts *o, const struct shard *s,
    double *norm, struct err *e)
{
	int r;

	*norm = o->norm;
	if (*norm > 0)
		return 0;
	if ((r = keys_real(&s->kv, SHARD_KEY_NORM, norm, shard_device(s),
	    e)) < 0)
		return r;
	if (r == 0)
		return err_set(e, ERR_USAGE, "--target-divergence needs "
		    "--model-norm, or the key " SHARD_KEY_NORM " in the shards");
	return *norm > 0 ? 0 : err_set(e, ERR_DATA, "corrupt: key "
	    SHARD_KEY_NORM " of '%s': nothing is relative to 0",
	    shard_device(s));
}

/* Notes which numbers the interval was calculated from. */
static void
policy_interval_why(const struct stage_policy_opts *o, double norm,
    double drift, uint64_t was, int force)
{
	const struct interval *q = &o->interval;

	policy_say(o, "  drift: || shard || / || model || = %.4g / %.4g = "
	    "%.4g, equation (9); aimed at %.4g", drift * norm, norm, drift,
	    q->target);
	if (force)
		policy_say(o, "  interval: %s%s", interval_force(q, drift) ?
		    "above four times that, so the least" : "a device diverges "
		    "and asks for it", ", at once");
	else
		policy_say(o, "  interval: %llu * sqrt(%.4g / %.4g), at most "
		    "halved or doubled, within %llu to %llu",
		    (unsigned long long)was, q->target, drift,
		    (unsigned long long)q->min, (unsigned long long)q->max);
}

/* Decided at the end of shard s, whose values have these sums: the interval goes
 * into o->steps, and the keys divergence, interval and force into kv.  *asked: the
 * interval that a diverging device asked for, or 0; it is set to 0, having been
 * heard. */
static int
policy_interval_decide(struct stage_policy_opts *o, const struct shard *s,
    const struct shard_sums *sums, uint64_t *asked, struct text_kv *kv,
    struct err *e)
{
	const struct interval *q = &o->interval;
	double norm, drift;
	uint64_t was;
	int force, r;

	if ((r = policy_interval_norm(o, s, &norm, e)) < 0)
		return r;
	drift = interval_drift(sums->sumsq / norm / norm, 1);
	if (s->kind == SHARD_SUM)
		drift /= s->weight;
	was = o->steps;
	o->steps = interval_next(q, was, drift);
	force = interval_force(q, drift);
	if (*asked != 0 && *asked < o->steps) {
		o->steps = *asked < q->min ? q->min : *asked;
		force = 1;
	}
	*asked = 0;
	policy_say(o, "'%s/%llu': relative drift %.4g, interval %llu",
	    shard_device(s), (unsigned long long)s->step, drift,
	    (unsigned long long)o->steps);
	policy_interval_why(o, norm, drift, was, force);
	/* a drift that is not finite is not written, but it forces a
	 * synchronisation */
	if (drift <= POLICY_BIG)
		r = policy_real(kv, KEYS_DIVERGENCE, drift, e);
	if (r == 0 && (r = policy_whole(kv, KEYS_INTERVAL,
	    (double)o->steps, e)) == 0)
		r = policy_whole(kv, KEYS_FORCE, force, e);
	return r;
}

/*
 * ---- a recorded policy instead of decisions ----
 *
 * The pOLi frames of a stream's shards are given to the same shards of another
 * stream.  Only these frames of the recording count; how its values are coded does
 * not matter.
 */

/* Are these the same shard, even if the values have been changed since? */
static int
policy_replay_same(const struct shard *a, const struct shard *b)
{
	return memcmp(a->run, b->run, SHARD_ID) == 0 &&
	    memcmp(a->device, b->device, SHARD_ID) == 0 &&
	    a->step == b->step;
}

/* Goes forward to shard s; shards before it are skipped. */
static int
policy_replay_find(struct policy_replay *p, const struct shard *s, struct err *e)
{
	int k;

	while ((k = reader_next(p->from, e)) > 0)
		if (k == READER_SHARD && policy_replay_same(reader_shard(p->from), s))
			return 0;
	return k < 0 ? k : err_set(e, ERR_DATA, "mismatch: the recording has "
	    "no shard '%s/%llu' here", shard_device(s),
	    (unsigned long long)s->step);
}

/* Passes an annotation on unchanged, but only if it is a policy. */
static int
policy_replay_pass(struct policy_replay *p, struct stage *to, struct err *e)
{
	const struct chain_frame *f = reader_frame(p->from);
	struct text_kv kv = TEXT_KV_INIT;
	int r = keys_add(&kv, p->from, e);

	text_release(&kv);
	return r < 0 ? r : stage_make(to, f->type, f->raw, f->raw_len, e);
}

/* What it says until its data, or until its end. */
static int
policy_replay_until(struct policy_replay *p, int event, struct stage *to,
    struct err *e)
{
	int k;

	while (!p->end && (k = reader_next(p->from, e)) != event) {
		if (k < 0)
			return k;
		if (k == READER_SEND)
			p->end = 1;
		else if (k == READER_NOTE &&
		    reader_frame(p->from)->type == FRAME_POLI &&
		    (k = policy_replay_pass(p, to, e)) < 0)
			return k;
	}
	return 0;
}

/* Gives the stage `to' the policy frames that the recording has before the data of
 * shard s; -ERR_DATA "mismatch: ..." when it has no such shard after the one
 * before. */
static int
policy_replay_shard(struct policy_replay *p, const struct shard *s,
    struct stage *to, struct err *e)
{
	int r;

	p->end = 0;
	r = policy_replay_find(p, s, e);
	return r < 0 ? r : policy_replay_until(p, READER_DATA, to, e);
}

/* Those behind it. */
static int
policy_replay_end(struct policy_replay *p, struct stage *to, struct err *e)
{
	return policy_replay_until(p, READER_SEND, to, e);
}

/* ---- decisions ---- */

static int
policy_load(struct stage_policy *p, struct err *e)
{
	struct memory h = MEMORY_INIT;
	int r;

	if (p->o.dir == NULL)
		return 0;
	if ((r = memory_load(&h, &p->state, POLICY_FILE, e)) < 0)
		return r;
	r = keys_whole(&h.kv, KEYS_INTERVAL, &p->o.steps, "the state's policy", e);
	if (r >= 0 && p->o.stale.on)
		r = policy_deco_load(&p->o.stale, &h, e);
	if (r >= 0 && (r = memory_list(&h, POLICY_RATE, &p->o.pace.rate, 1,
	    e)) > 0 && !isfinite(p->o.pace.rate))
		r = err_set(e, ERR_DATA, "corrupt: " POLICY_RATE " in "
		    "'%s/policy'", p->o.dir);
	memory_release(&h);
	return r < 0 ? r : 0;
}

static int
policy_save(struct stage_policy *p, struct err *e)
{
	struct memory h = MEMORY_INIT;
	float row = (float)p->o.steps;
	char v[32];
	int r;

	if (p->o.dir == NULL || (p->o.pace.rate < 0 &&
	    !(p->o.interval.target > 0) && !p->o.stale.on))
		return 0;		/* nothing to remember */
	(void)snprintf(v, sizeof(v), "%llu", (unsigned long long)p->o.steps);
	if ((r = text_set(&h.kv, KEYS_INTERVAL, v, e)) == 0 &&
	    (!p->o.stale.on || (r = policy_deco_save(&p->o.stale, &h, e)) == 0) &&
	    (r = memory_put_list(&h, POLICY_RATE, &p->o.pace.rate, 1,
	    e)) == 0 &&
	    (r = memory_put(&h, KEYS_INTERVAL, &row, 1, e)) == 0)
		r = memory_save(&h, &p->state, POLICY_FILE,
		    p->sh.shard, "ace-policy", e);
	memory_release(&h);
	return r;
}

/* What the link was last measured at: 1 known, 0 not. It is read again for
 * every shard, since ace-meter may be measuring in the same pipe. */
static int
policy_rate(struct stage_policy *p, double *v, struct err *e)
{
	if (p->o.bandwidth >= 0) {
		*v = p->o.bandwidth;
		return 1;
	}
	if (p->o.dir == NULL)
		return 0;
	return memory_number(&p->state, MEMORY_LINK, MEMORY_BANDWIDTH, v,
	    e);
}

/* Decides the cuts (DynaComm) once the number of bytes is known: as many as
 * the last shard took when it was coded, if a state says that, or else as many
 * as were just decided. */
static int
policy_cuts(struct stage_policy *p, double rate, struct text_kv *kv, struct err *e)
{
	char where[160], words[256];
	double share = 1, v;
	int r = keys_real(kv, KEYS_RATIO, &v, "the policy", e);

	if (r > 0)
		share = 1 / fmax(v, 1);
	if (r < 0 || (r = p->o.dir == NULL ? 0 : memory_number(&p->state,
	    CONTRACTION_FILE, CONTRACTION_SHARE, &v, e)) < 0)
		return r;
	if (r > 0 && v > 0)
		share = v;
	r = policy_dynacomm_decide(&p->o.cuts, p->sh.schema, rate, share, kv,
	    words, e);
	if (r >= 0)
		policy_say(&p->o, "%s: %s", reader_where(p->sh.in, where), words);
	return r < 0 ? r : 0;
}

/* Writes what was decided, as an annotation. */
static int
policy_put(struct stage_policy *p, const struct text_kv *kv, struct err *e)
{
	int r;

	p->note.n = 0;
	r = text_put_lines(kv, &p->note, e);
	return r < 0 ? r : stage_make(p->s.next, FRAME_POLI, p->note.p,
	    p->note.n, e);
}

/* Before the data, and if cuts are to be decided behind what stands there. */
static int
policy_decide(struct stage_policy *p, struct err *e)
{
	struct text_kv kv = TEXT_KV_INIT;
	char where[160], words[256];
	double rate = -1;
	int r, decided = 0;

	p->waits = 0;
	if ((r = policy_rate(p, &rate, e)) < 0)
		return r;
	if (p->o.stale.on) {
		r = decided = policy_deco_decide(&p->o.stale, p->sh.shard,
		    p->sh.schema->total, rate,
		    p->o.dir != NULL ? &p->state : NULL, &kv, words, e);
		if (r >= 0)
			policy_say(&p->o, "%s: %s", reader_where(p->sh.in, where),
			    words);
	}
	if (r >= 0 && (decided || (r = policy_ratio_decide(&p->o,
	    &p->sh, rate, &kv, e)) == 0) &&
	    (!p->o.cuts.on || (r = policy_cuts(p, rate, &kv, e)) == 0))
		r = policy_put(p, &kv, e);
	text_release(&kv);
	return r;
}

static int
stage_policy_begin(struct stage *st, const struct stage_shard *sh,
    struct err *e)
{
	struct stage_policy *p = (struct stage_policy *)st;
	int r;

	p->sh = *sh;
	if ((r = stage_begin(st->next, sh, e)) < 0)
		return r;
	if (p->replay.from != NULL)
		return policy_replay_shard(&p->replay, sh->shard, st->next, e);
	p->waits = p->o.cuts.on;
	return p->waits ? 0 : policy_decide(p, e);
}

static int
stage_policy_data(struct stage *st, const struct stage_data *d, struct err *e)
{
	struct stage_policy *p = (struct stage_policy *)st;
	int r = p->waits ? policy_decide(p, e) : 0;

	return r < 0 ? r : stage_data(st->next, d, e);
}

static int
policy_interval(struct stage_policy *p, const struct shard_sums *sums,
    struct err *e)
{
	struct text_kv kv = TEXT_KV_INIT;
	int r = policy_interval_decide(&p->o, p->sh.shard, sums, &p->asked, &kv,
	    e);

	if (r == 0)
		r = policy_put(p, &kv, e);
	text_release(&kv);
	return r;
}

static int
stage_policy_end(struct stage *st, const struct shard_sums *sums,
    struct err *e)
{
	struct stage_policy *p = (struct stage_policy *)st;
	int r = 0;

	if (p->replay.from != NULL) {
		r = policy_replay_end(&p->replay, st->next, e);
		return r < 0 ? r : stage_end(st->next, sums, e);
	}
	if (p->waits && (r = policy_decide(p, e)) < 0)
		return r;
	if (p->o.interval.target > 0)
		r = policy_interval(p, sums, e);
	if (r < 0 || (r = policy_save(p, e)) < 0)
		return r;
	return stage_end(st->next, sums, e);
}

/* When a device diverges, the interval that it asked for counts, whatever the
 * mean over all devices would give. */
static int
policy_asked(struct stage_policy *p, const struct text_kv *kv, struct err *e)
{
	uint64_t force = 0, steps = 0;
	int r;

	if ((r = keys_whole(kv, KEYS_FORCE, &force, "the policy", e)) < 0 ||
	    (r = keys_whole(kv, KEYS_INTERVAL, &steps, "the policy", e)) < 0)
		return r;
	p->asked = force ? steps : 0;
	return 0;
}

/* Removes from an older policy the keys that are decided anew. */
static int
policy_older(struct stage_policy *p, const struct stage_note *n, struct err *e)
{
	static const struct {
		const char *key;
		enum { ALWAYS, INTERVAL, STALE, CUTS } when;
	} ours[] = {
		{ KEYS_RATIO, ALWAYS }, { KEYS_BUDGET, ALWAYS },
		{ KEYS_BANDWIDTH, ALWAYS }, { KEYS_DIVERGENCE, INTERVAL },
		{ KEYS_INTERVAL, INTERVAL }, { KEYS_FORCE, INTERVAL },
		{ KEYS_DELAY, STALE }, { KEYS_LATENCY, STALE },
		{ KEYS_COMPUTE, STALE }, { KEYS_KC, STALE },
		{ KEYS_CUTS, CUTS }, { KEYS_CUTS_SECONDS, CUTS }
	};
	const int on[] = { 1, p->o.interval.target > 0, p->o.stale.on,
	    p->o.cuts.on };
	struct text_kv kv = TEXT_KV_INIT;
	size_t i;
	int r = keys_read(&kv, n->p, n->n, e);

	if (r < 0)
		r = reader_place(p->sh.in, r, e);
	if (r == 0 && on[INTERVAL])
		r = policy_asked(p, &kv, e);
	for (i = 0; i < sizeof(ours) / sizeof(*ours) && r == 0; i++)
		if (on[ours[i].when])
			r = text_set(&kv, ours[i].key, NULL, e);
	if (r == 0 && kv.n > 0)
		r = policy_put(p, &kv, e);
	text_release(&kv);
	return r;
}

static int
stage_policy_note(struct stage *st, const struct stage_note *n, struct err *e)
{
	struct stage_policy *p = (struct stage_policy *)st;
	int r = 0;

	if (p->o.cuts.on && n->type == FRAME_TIME)
		r = policy_dynacomm_hear(&p->o.cuts, n->p, n->n,
		    p->sh.schema->n, e);
	if (r < 0)
		return reader_place(p->sh.in, r, e);
	if (n->type != FRAME_POLI)
		return stage_note(st->next, n, e);
	return p->replay.from != NULL ? 0 : policy_older(p, n, e);
}

static void
stage_policy_free(struct stage *st)
{
	struct stage_policy *p = (struct stage_policy *)st;

	policy_dynacomm_release(&p->o.cuts);
	reader_free(p->replay.from);
	state_close(&p->state);
	buf_release(&p->note);
	alloc_free(p);
}

static int
stage_policy_open(struct stage_policy *p, struct err *e)
{
	struct io *io;
	int r;

	if (p->o.dir != NULL && ((r = state_open(&p->state, p->o.dir,
	    e)) < 0 || (r = policy_load(p, e)) < 0))
		return r;
	if (p->o.replay == NULL)
		return 0;
	r = io_open(&io, p->o.replay, e);
	return r < 0 ? r : reader_open(&p->replay.from, io, &p->o.f->in, e);
}

static int
stage_policy_new(struct stage **out, void *opts, const struct filter *f,
    struct err *e)
{
	struct stage_policy_opts *o = opts;
	struct stage_policy *p;
	int r = policy_check(o, e);

	*out = NULL;
	if (r < 0)
		return r;
	if ((p = alloc_get(1, sizeof(*p), e)) == NULL)
		return -ERR_SYS;
	p->o = *o;
	p->o.f = f;
	p->state = (struct state)STATE_INIT;
	p->s.begin = stage_policy_begin;
	p->s.data = stage_policy_data;
	p->s.note = stage_policy_note;
	p->s.end = stage_policy_end;
	p->s.free = stage_policy_free;
	if ((r = stage_policy_open(p, e)) < 0)
		stage_policy_free(&p->s);
	else
		*out = &p->s;
	return r;
}

const struct stage_kind stage_policy = {
	stage_policy_new, STAGE_IGNORES
};
