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
#include "device/link.h"
#include "device/memory.h"
#include "format/frame.h"
#include "format/keys.h"
#include "format/shard.h"
#include "format/text.h"
#include "format/values.h"
#include "kern/kern.h"
#include "stage/stage.h"
#include "stage/stage_policy.h"
#include "sync/deco.h"
#include "sync/interval.h"
#include "sync/ratio.h"
#include "sync/replan.h"

#define POLICY_FILE "policy"		/* a memory of the state */
#define POLICY_RATE "rate"		/* key in it: the one acted on */
#define POLICY_NONZERO "nonzero"	/* and the share of the values that were not 0 */
#define POLICY_DECO_STATE "deco"	/* and what DeCo-SGD has learnt */

struct policy_replay {
	struct reader *from;	/* the recording; NULL: there is none */
	int end;		/* it stands at the end of the shard */
};

struct stage_policy {
	struct stage s;
	struct stage_policy_opts o;	/* and what was found since */
	struct stage_shard sh;		/* at hand */
	struct statedir state;
	struct policy_replay replay;	/* instead of deciding */
	int waits;			/* the shard's times may still come */
	uint64_t asked;			/* interval of a device that diverges */
	float *x;			/* f32[cap]: a group, where they are read */
	size_t cap;
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

	for (i = 0; i < 3; i++, val += n + 1) {
		n = strcspn(val, ",");
		if (n >= sizeof(word))
			break;
		memcpy(word, val, n);
		word[n] = '\0';
		if ((r = num_u64(to[i], word, 1, 1000000, "--interval", e)) < 0)
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
	{ 0, "sparsity", NULL, "compress harder where many values are zero",
	    OPT_FLAG(struct stage_policy_opts, pace.sparse) },
	{ 0, "deadline", "TIME", "no more than the link carries in TIME",
	    OPT_TIME(struct stage_policy_opts, deadline) },
	{ 0, "cuts", "TIME",
	    "at which layers to send; TIME: each sending costs more",
	    OPT_TIME(struct stage_policy_opts, cuts.dt),
	    .set = policy_set_cuts },
	{ 0, "deco", NULL, "the budget and the delay after DeCo-SGD",
	    OPT_FLAG(struct stage_policy_opts, stale.on) },
	{ 0, "compute", "TIME", "deco: of a step, if the shards do not say it",
	    OPT_TIME(struct stage_policy_opts, stale.compute),
	    .lo.f = DECO_LEAST, .with = "deco" },
	{ 0, "latency", "TIME", "deco: of the link, if not measured",
	    OPT_TIME(struct stage_policy_opts, stale.latency), .with = "deco" },
	{ 0, "target-divergence", "X",
	    "relative drift to aim at; gives the interval",
	    OPT_F64(struct stage_policy_opts, interval.target, 1e-300,
	    POLICY_BIG) },
	{ 0, "model-norm", "X", "the norm of the model",
	    OPT_F64(struct stage_policy_opts, norm, 1e-300, POLICY_BIG),
	    .with = "target-divergence" },
	{ 0, "interval", "FIRST[,MIN,MAX]",
	    "the first interval, and its limits",
	    OPT_CALL(policy_set_steps), .def = "1,1,1000",
	    .with = "target-divergence" },
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
	    o->interval.target > 0 || o->cuts.on || o->pace.warmup > 0 ||
	    o->pace.sparse || o->deadline >= 0 || o->bandwidth >= 0 ||
	    o->cmin != 2 || o->cmax != 300 || o->half != 1e7))
		return err_set(e, ERR_USAGE, "--replay decides nothing: it goes "
		    "with no other option that decides");
	if (o->stale.on && (o->pace.warmup > 0 || o->pace.sparse ||
	    o->deadline >= 0))
		return err_set(e, ERR_USAGE, "--deco has neither --warmup, "
		    "--sparsity nor --deadline");
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

/* ---- how hard to compress a shard, by equation (5) ---- */

/* Notes which numbers the factor and the budget were calculated from. */
static void
policy_ratio_why(const struct stage_policy_opts *o,
    const struct stage_shard *sh, double rate, double acted, double base,
    double c, uint64_t budget)
{
	const struct ratio_pace *q = &o->pace;
	uint64_t step = sh->shard->step;
	char is[NUM_TEXT], taken[NUM_TEXT];

	(void)num_text(rate, "bit/s", is);
	(void)num_text(fmax(acted, 0), "bit/s", taken);
	if (rate < 0)
		policy_say(o, "  link: never measured, so taken as %s", taken);
	else
		policy_say(o, "  link: %s, %s; taken as %s: a "
		    "fall counts at once, a rise by %.3g of it, less than %.3g is "
		    "no change", is, o->bandwidth >= 0 ?
		    "as the option says" : "as ace-meter measured", taken,
		    q->rise, q->still);
	policy_say(o, "  factor: %.4g + (%.4g - %.4g) exp(-%.4g * %.4g) = "
	    "%.4g, equation (5)", o->cmin, o->cmax, o->cmin, ratio_beta(o->half),
	    fmax(acted, 0), base);
	if (q->sparse && q->nonzero >= 0)
		policy_say(o, "  sparsity: %.4g of the last shard's values were "
		    "not zero, so %.4g", q->nonzero, ratio_sparse(q, base,
		    o->cmax));
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
	double acted = ratio_acted(&o->pace, rate);
	double base = ratio_factor(o->cmin, o->cmax, ratio_beta(o->half),
	    fmax(acted, 0));
	double c = ratio_paced(&o->pace, ratio_sparse(&o->pace, base, o->cmax),
	    sh->shard->step);
	uint64_t budget = ratio_budget(sh->schema->total, c);
	char where[160], taken[NUM_TEXT];
	int r, late = policy_ratio_late(o, sh, rate, acted, &budget, &c);

	(void)num_text(fmax(acted, 0), "bit/s", taken);
	policy_say(o, "%s: %s %s, factor %.4g, %llu bytes",
	    reader_where(sh->in, where), rate >= 0 ? "link" : "link unknown,",
	    taken, c, (unsigned long long)budget);
	policy_ratio_why(o, sh, rate, acted, base, c, budget);
	if (late)
		policy_say(o, "  the link carries no more in the %.4g s "
		    "that a shard may take", o->deadline);
	if ((r = text_setf(kv, KEYS_RATIO, e, "%.9g", c)) < 0 ||
	    (r = text_setf(kv, KEYS_BUDGET, e, "%.0f", (double)budget)) < 0)
		return r;
	return rate >= 0 ? text_setf(kv, KEYS_BANDWIDTH, e, "%.0f", rate) : 0;
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
		r = text_setf(kv, KEYS_DIVERGENCE, e, "%.9g", drift);
	if (r == 0 && (r = text_setf(kv, KEYS_INTERVAL, e, "%.0f", (double)o->steps)) == 0)
		r = text_setf(kv, KEYS_FORCE, e, "%d", force);
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
	return shard_is_of(a, b->run, b->device) && a->step == b->step;
}

/* Goes forward to shard s; shards before it are skipped. */
static int
policy_replay_find(struct policy_replay *p, const struct shard *s, struct err *e)
{
	int k;

	p->end = 0;
	while ((k = reader_to_shard(p->from, e)) > 0)
		if (policy_replay_same(reader_shard(p->from), s))
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

/* ---- DeCo-SGD: how many bytes, and after how many steps its average is applied,
 * from the times in the shards and what ace-meter and ace-compress wrote ---- */

/* Reads a number of the state; < 0 when the state does not have it. */
static int
policy_deco_number(const struct statedir *s, const char *file, const char *key,
    double *v, struct err *e)
{
	int r;

	*v = -1;
	if (s == NULL)
		return 0;
	r = memory_number(s, file, key, v, e);
	return r < 0 ? r : 0;
}

static int
policy_deco_sample(const struct policy_deco *s, const struct shard *sh,
    const struct statedir *state, struct replan_sample *m, struct err *e)
{
	int r = 0;

	m->compute = s->compute;
	if (m->compute < 0)
		r = keys_real(&sh->kv, SHARD_KEY_COMPUTE, &m->compute,
		    shard_device(sh), e);
	/* no step takes less: nobody measured it */
	if (m->compute < DECO_LEAST)
		m->compute = -1;
	if (r < 0 || (r = policy_deco_number(state, MEMORY_LINK, LINK_RTT, &m->latency,
	    e)) < 0 ||
	    (r = policy_deco_number(state, CONTRACTION_FILE, CONTRACTION_ALPHA, &m->alpha,
	    e)) < 0 ||
	    (r = policy_deco_number(state, CONTRACTION_FILE, CONTRACTION_SHARE, &m->share,
	    e)) < 0)
		return r;
	if (s->latency >= 0)
		m->latency = s->latency;
	m->given |= (s->latency >= 0 ? REPLAN_LATENCY : 0) |
	    (s->compute >= 0 ? REPLAN_COMPUTE : 0);
	return 0;
}

static int
policy_deco_put(const struct policy_deco *s, const struct deco *d, uint64_t values,
    struct text_kv *kv, struct err *e)
{
	int r;

	if ((r = text_setf(kv, KEYS_RATIO, e, "%.9g", 1 / s->plan.delta)) < 0 ||
	    (r = text_setf(kv, KEYS_BUDGET, e, "%.0f",
	    fmax(1, floor(s->plan.delta * 4 * (double)values)))) < 0 ||
	    (r = text_setf(kv, KEYS_DELAY, e, "%.9g", s->plan.tau)) < 0 ||
	    (r = text_setf(kv, KEYS_BANDWIDTH, e, "%.9g", d->bandwidth)) < 0 ||
	    (r = text_setf(kv, KEYS_LATENCY, e, "%.9g", d->latency)) < 0 ||
	    (r = text_setf(kv, KEYS_COMPUTE, e, "%.9g", d->compute)) < 0)
		return r;
	return text_setf(kv, KEYS_KC, e, "%.9g", d->kc);
}

/* For shard sh of a model of so many values.  bandwidth in bit/s, < 0 unknown;
 * given: the user said it.
 * 1: kv has the keys ratio, budget_bytes and delay and the numbers they are from;
 * words says why.  0: bandwidth, computation or latency is not known yet; words
 * says which. */
static int
policy_deco_decide(struct policy_deco *s, const struct shard *sh, uint64_t values,
    double bandwidth, int given, const struct statedir *state,
    struct text_kv *kv, char words[256], struct err *e)
{
	struct replan_sample m = { bandwidth, -1, -1, -1, -1,
	    given ? REPLAN_BANDWIDTH : 0 };
	struct replan *t = &s->plan;
	struct deco d = DECO_INIT;
	char rate[NUM_TEXT];
	int r, changed;

	if ((r = policy_deco_sample(s, sh, state, &m, e)) < 0)
		return r;
	replan_see(t, &m);
	if (!(t->bandwidth.v > 0) || !(t->compute.v > 0) || t->nlatency == 0) {
		(void)snprintf(words, 256, "deco: %s not known yet",
		    !(t->bandwidth.v > 0) ? "bandwidth" :
		    !(t->compute.v > 0) ? "computation" : "latency");
		return 0;
	}
	d.size = fmax(32 * (double)values, 1);
	changed = replan_plan(t, &d, e);
	if (changed < 0)
		return changed;
	(void)num_text(d.bandwidth, "bit/s", rate);
	(void)snprintf(words, 256, "deco: %s delay %.0f, %.4g of the "
	    "bits; computation %.4g s, %s, latency %.4g s, price of "
	    "compression %.3g%s", changed ? "now" : "still",
	    t->tau, t->delta, d.compute, rate, d.latency, d.kc,
	    t->kc.v > 0 ? ", measured" : "");
	r = policy_deco_put(s, &d, values, kv, e);
	return r < 0 ? r : 1;
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
		r = memory_list(&h, POLICY_DECO_STATE,
		    (double *)&p->o.stale.plan, REPLAN_NUMBERS, e);
	if (r > 0 && p->o.stale.on && replan_check(&p->o.stale.plan) < 0)
		r = err_set(e, ERR_DATA, "corrupt: " POLICY_DECO_STATE);
	if (r >= 0 && (r = memory_list(&h, POLICY_RATE, &p->o.pace.rate, 1,
	    e)) > 0 && !isfinite(p->o.pace.rate))
		r = err_set(e, ERR_DATA, "corrupt: " POLICY_RATE " in "
		    "'%s/%s'", p->o.dir, h.file);
	if (r >= 0 && (r = memory_list(&h, POLICY_NONZERO, &p->o.pace.nonzero, 1,
	    e)) > 0 && !(p->o.pace.nonzero >= 0 && p->o.pace.nonzero <= 1))
		r = err_set(e, ERR_DATA, "corrupt: " POLICY_NONZERO " in "
		    "'%s/%s'", p->o.dir, h.file);
	memory_release(&h);
	return r < 0 ? r : 0;
}

static int
policy_save(struct stage_policy *p, struct err *e)
{
	struct memory h = MEMORY_INIT;
	int r;

	if (p->o.dir == NULL || (p->o.pace.rate < 0 && !p->o.pace.sparse &&
	    !(p->o.interval.target > 0) && !p->o.stale.on))
		return 0;		/* nothing to remember */
	if ((r = text_setf(&h.kv, KEYS_INTERVAL, e, "%llu",
	    (unsigned long long)p->o.steps)) == 0 &&
	    (!p->o.stale.on || (r = memory_put_list(&h, POLICY_DECO_STATE,
	    (const double *)&p->o.stale.plan, REPLAN_NUMBERS, e)) == 0) &&
	    (r = memory_put_list(&h, POLICY_RATE, &p->o.pace.rate, 1,
	    e)) == 0 && (!p->o.pace.sparse || (r = memory_put_list(&h,
	    POLICY_NONZERO, &p->o.pace.nonzero, 1, e)) == 0))
		r = memory_save(&h, &p->state, POLICY_FILE, p->sh.shard,
		    e);
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
	return memory_number(&p->state, MEMORY_LINK, MEMORY_BANDWIDTH, v, e);
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
		    p->sh.schema->total, rate, p->o.bandwidth >= 0,
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
		return (r = policy_replay_find(&p->replay, sh->shard, e)) < 0 ?
		    r : policy_replay_until(&p->replay, READER_DATA, st->next, e);
	p->waits = p->o.cuts.on;
	return p->waits ? 0 : policy_decide(p, e);
}

/* The sums in a shard's end leave out what is not finite, so that it would look
 * like a shard that hardly moves. */
static int
policy_finite(struct stage_policy *p, const struct stage_data *d, struct err *e)
{
	struct stage_seen v;
	size_t i;
	int r = alloc_grow(&p->x, &p->cap, p->sh.schema->group_size,
	    sizeof(*p->x), e);

	for (i = 0; i < d->n && r == 0; i++)
		if ((r = stage_read(d, i, p->sh.in, p->x, p->cap, &v, e)) == 0 &&
		    v.stat.nonfinite != 0)
			r = values_refuse(p->sh.in, d->rec[i].group,
			    kern_get(e)->first_nonfinite(v.x, v.n), e);
	return r;
}

static int
stage_policy_data(struct stage *st, const struct stage_data *d, struct err *e)
{
	struct stage_policy *p = (struct stage_policy *)st;
	int r = p->waits ? policy_decide(p, e) : 0;

	if (r == 0 && st->kind->values != STAGE_IGNORES)
		r = policy_finite(p, d, e);
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
stage_policy_end(struct stage *st, const struct shard_sums *sums, struct err *e)
{
	struct stage_policy *p = (struct stage_policy *)st;
	int r = 0;

	if (p->replay.from != NULL) {
		r = policy_replay_until(&p->replay, READER_SEND, st->next, e);
		return r < 0 ? r : stage_end(st->next, sums, e);
	}
	if (p->waits && (r = policy_decide(p, e)) < 0)
		return r;
	if (p->sh.schema->total > 0)
		p->o.pace.nonzero = (double)sums->nonzero /
		    (double)p->sh.schema->total;
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
	for (i = kv.n; i-- > 0 && on[INTERVAL] && r == 0; )	/* and each device's */
		if (strncmp(kv.p[i].key, KEYS_INTERVAL_OF,
		    strlen(KEYS_INTERVAL_OF)) == 0)
			r = text_set(&kv, kv.p[i].key, NULL, e);
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
	if (n->type == FRAME_SIGN)
		return 0;	/* of a shard without what is added here */
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
	statedir_close(&p->state);
	buf_release(&p->note);
	alloc_free(p->x);
}

static const struct stage_kind policy_reads;

static int
stage_policy_make(struct stage *s, void *opts, const struct filter *f,
    struct err *e)
{
	struct stage_policy *p = (struct stage_policy *)s;
	int r;

	p->state = (struct statedir)STATE_INIT;
	if ((r = policy_check(opts, e)) < 0)
		return r;
	p->o = *(struct stage_policy_opts *)opts;
	p->o.f = f;
	if (p->o.interval.target > 0 || p->o.pace.sparse)
		s->kind = &policy_reads;
	p->state.later = f->later;
	if (p->o.dir != NULL && ((r = statedir_open(&p->state, p->o.dir,
	    e)) < 0 || (r = policy_load(p, e)) < 0))
		return r;
	return p->o.replay == NULL ? 0 :
	    reader_file(&p->replay.from, p->o.replay, &f->in, e);
}

#define POLICY_KIND(v) { \
	.size = sizeof(struct stage_policy), \
	.values = (v), \
	.make = stage_policy_make, \
	.begin = stage_policy_begin, \
	.data = stage_policy_data, \
	.note = stage_policy_note, \
	.end = stage_policy_end, \
	.free = stage_policy_free \
}
const struct stage_kind stage_policy = POLICY_KIND(STAGE_IGNORES);
/* The same where the drift or the zeros count. */
static const struct stage_kind policy_reads = POLICY_KIND(STAGE_READS);
