#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "base/cli.h"
#include "base/err.h"
#include "base/num.h"
#include "device/contraction.h"
#include "device/learned.h"
#include "device/link.h"
#include "format/frame.h"
#include "format/keys.h"
#include "format/shard.h"
#include "format/text.h"
#include "format/values.h"
#include "stage/stage.h"
#include "stage/stage_policy.h"
#include "sync/deco.h"
#include "sync/ratio.h"
#include "sync/replan.h"

#define POLICY_FILE "policy"		/* name of the file in the state (learned.h); its keys: */
#define POLICY_RATE "rate"		/* the link rate of the last decision */
#define POLICY_DECO_STATE "deco"	/* the estimates for DeCo-SGD */

/* The keys that are written, each with the decision that it belongs to.  If a decision is
 * made here, its keys are removed from an older policy, also those that continue with a
 * point, such as KEYS_CUTS_SECONDS (written, too) or KEYS_INTERVAL_OF and a device's name. */
enum policy_when { ALWAYS, INTERVAL, DECO, CUTS };
enum { RATIO, BUDGET, BANDWIDTH, DELAY, LATENCY, COMPUTE, KC, DIVERGENCE, STEPS,
	FORCE, LAYERS, KEYS };
static const struct policy_key {
	const char *name;
	enum policy_when when;
	int whole;		/* 1: a whole number */
} policy_key[] = {
	[RATIO] = { KEYS_RATIO, ALWAYS, 0 },
	[BUDGET] = { KEYS_BUDGET, ALWAYS, 1 },
	[BANDWIDTH] = { KEYS_BANDWIDTH, ALWAYS, 1 },
	[DELAY] = { KEYS_DELAY, DECO, 0 },
	[LATENCY] = { KEYS_LATENCY, DECO, 0 },
	[COMPUTE] = { KEYS_COMPUTE, DECO, 0 },
	[KC] = { KEYS_KC, DECO, 0 },
	[DIVERGENCE] = { KEYS_DIVERGENCE, INTERVAL, 0 },
	[STEPS] = { KEYS_INTERVAL, INTERVAL, 1 },
	[FORCE] = { KEYS_FORCE, INTERVAL, 1 },
	[LAYERS] = { KEYS_CUTS, CUTS, 0 }
};

struct stage_policy {
	struct stage s;
	struct stage_policy_opts o;	/* options, and numbers found later */
	struct stage_shard sh;		/* the current shard */
	struct statedir state;
	int waits;			/* 1: the shard's times may still come */
	int untimed;			/* 1: a shard without times was reported */
	int loaded;			/* 1: POLICY_FILE was read from the state */
	/* the devices' interval, and 1 if one of them diverges and asks for it */
	uint64_t asked, force;
	float *x;			/* f32[cap]: scratch for one group */
	size_t cap;
	double sumsq;			/* of the shard's values, but exact types */
	double key[KEYS];		/* the decided numbers; NAN: undecided, or a list */
	struct buf note;
};

/* With -v, print a line on standard error. */
#define SAY(p, ...) cli_say((p)->o.f->cli, 1, __VA_ARGS__)

static const struct opt policy_steps[] = {
	{ 0, "FIRST", OPT_U64(struct stage_policy_opts, steps, 1, 1000000) },
	{ 0, "MIN", OPT_U64(struct stage_policy_opts, interval.min, 1, 1000000) },
	{ 0, "MAX", OPT_U64(struct stage_policy_opts, interval.max, 1, 1000000) },
	OPT_END
};

static int
policy_set_steps(void *arg, const struct opt *row, const char *val, struct err *e)
{
	struct interval *const q = &((struct stage_policy_opts *)arg)->interval;
	int n;

	q->min = 1;		/* keep nothing of an earlier option */
	q->max = 1000;
	n = opt_items(policy_steps, arg, val, "--interval", e);
	return n < 0 ? n : n != 2 && q->min <= q->max ? 0 :
	    err_set(e, ERR_USAGE, "--interval '%s': expected FIRST or "
	    "FIRST,MIN,MAX, with MIN at most MAX", val);
}

static const struct opt policy_ratios[] = {
	{ 0, "MIN", OPT_F64(struct stage_policy_ratio, least, 1, 1e9) },
	{ 0, "MAX", OPT_F64(struct stage_policy_ratio, most, 1, 1e9) },
	{ 0, "HALF", OPT_RATE(struct stage_policy_ratio, half), .lo.f = 1e-300 },
	{ 0, "WARMUP", OPT_U64(struct stage_policy_ratio, warmup, 0, UINT64_MAX) },
	OPT_END
};

static int
policy_set_ratio(void *arg, const struct opt *row, const char *val, struct err *e)
{
	struct stage_policy_ratio *const f = arg;
	int n;

	*f = (struct stage_policy_ratio){ .least = 2, .most = 300, .half = 10e6 };
	n = opt_items(policy_ratios, arg, val, "--ratio", e);
	return n < 0 ? n : f->least <= f->most ? 0 : err_set(e, ERR_USAGE,
	    "--ratio: MIN %.9g is above MAX %.9g%s", f->least, f->most,
	    n < 2 ? ", the default: give both numbers" : "");
}

/* Set a time; "auto" means that it is measured. */
static int
policy_set_time(void *arg, const struct opt *row, const char *val, struct err *e)
{
	const struct opt time = { .type = OPT_IS_TIME, .at = row->at, .lo = row->lo };
	const struct opt_place to = { &time, arg };

	return strcmp(val, "auto") == 0 ? 0 : opt_set_to(&to, val, "--deco", e);
}

static const struct opt policy_times[] = {
	{ 0, "COMPUTE", .at = offsetof(struct policy_deco, compute),
	    OPT_CALL(policy_set_time), .lo.f = DECO_LEAST },
	{ 0, "LATENCY", .at = offsetof(struct policy_deco, latency),
	    OPT_CALL(policy_set_time) },
	OPT_END
};

static int
policy_set_deco(void *arg, const struct opt *row, const char *val, struct err *e)
{
	struct policy_deco *d = &((struct stage_policy_opts *)arg)->stale;
	int n;

	*d = (struct policy_deco)POLICY_DECO_INIT;
	d->on = 1;
	n = opt_items(policy_times, d, val, "--deco", e);
	return n < 0 ? n : n > 1 || d->compute < 0 ? 0 : err_set(e, ERR_USAGE, "--deco '%s': "
	    "expected auto or COMPUTE,LATENCY, such as 0.5s,20ms", val);
}

const struct opt stage_policy_ratio_rows[] = {
	{ 0, "ratio", "LIST",
	    "MIN,MAX,HALF,WARMUP: compression ratio on a fast link and on a "
	    "slow one, the rate half way between, and steps to get there",
	    OPT_CALL(policy_set_ratio), .def = "2,300,10Mbit" },
	OPT_END
};

double
stage_policy_ratio(const struct stage_policy_ratio *f, double bandwidth)
{
	return ratio_factor(f->least, f->most, ratio_beta(f->half), bandwidth);
}

/* --bandwidth is at most KEYS_RATE_MOST, the largest valid value of its key. */
const struct opt stage_policy_rows[] = {
	{ 'S', "state", "DIR",
	    "take the link's rate from DIR, keep the interval there",
	    OPT_PATH(struct stage_policy_opts, dir, OPT_DIR) },
	OPT_PART(stage_policy_ratio_rows, struct stage_policy_opts, factor),
	{ 0, "bandwidth", "RATE", "bandwidth of the link, instead of the "
	    "measured one", OPT_RATE(struct stage_policy_opts, bandwidth),
	    .hi.f = KEYS_RATE_MOST },
	{ 0, "deadline", "TIME", "limit a shard to what the link carries in "
	    "TIME", OPT_TIME(struct stage_policy_opts, deadline) },
	{ 0, "cuts", "TIME",
	    "choose at which layers to send, where each transmission costs "
	    "TIME besides its bytes", OPT_TIME(struct stage_policy_opts, cuts.dt) },
	{ 0, "deco", "COMPUTE,LATENCY",
	    "choose budget and delay as DeCo-SGD does; the times of a step and "
	    "of the link, or auto where they are measured",
	    OPT_CALL(policy_set_deco) },
	{ 0, "target-divergence", "X",
	    "relative drift to aim at, from which the interval follows",
	    OPT_F64(struct stage_policy_opts, interval.target, 1e-300, POLICY_BIG) },
	{ 0, "model-norm", "X", "the norm of the model",
	    OPT_F64(struct stage_policy_opts, norm, 1e-300, POLICY_BIG),
	    .with = "target-divergence" },
	{ 0, "interval", "FIRST[,MIN,MAX]",
	    "the first interval, and its limits",
	    OPT_CALL(policy_set_steps), .def = "1,1,1000",
	    .with = "target-divergence" },
	OPT_END
};

/* Unless *v is given (>= 0), set it to a number from the state, if the number is there. */
static int
policy_learned(const struct stage_policy *p, const char *file, const char *key, double *v,
    struct err *e)
{
	const int r = p->o.dir == NULL || *v >= 0 ? 0 :
	    learned_number(&p->state, file, key, v, e);

	return r < 0 ? r : 0;
}

/* ---- how much to compress a shard, by equation (5) ---- */

/* Decide the ratio and the budget, and update o.rate.  A deadline limits the budget to
 * what the link can carry in time.  rate in bit/s, < 0 unknown. */
static void
policy_ratio(struct stage_policy *p, double rate)
{
	struct stage_policy_opts *o = &p->o;
	const double known = ratio_acted(o->rate, rate), acted = fmax(known, 0);
	const double base = stage_policy_ratio(&o->factor, acted);
	const double most = known / 8 * o->deadline;
	char where[160], is[NUM_TEXT] = "unknown", taken[NUM_TEXT];
	int late;

	o->rate = known;
	p->key[RATIO] = ratio_paced(o->factor.warmup, base, p->sh.shard->step);
	p->key[BUDGET] = (double)ratio_budget(p->sh.schema->total, p->key[RATIO]);
	if (known >= 0)
		p->key[BANDWIDTH] = known;
	late = o->deadline >= 0 && known >= 0 && most < p->key[BUDGET];
	if (late) {
		p->key[BUDGET] = floor(most);
		p->key[RATIO] = fmin(4 * (double)p->sh.schema->total / fmax(p->key[BUDGET], 1),
		    1e12);
	}
	if (rate >= 0)
		(void)num_text(rate, "bit/s", is);
	SAY(p, "%s: link %s, taken as %s, ratio %.4g, budget %.0f byte%s%s",
	    reader_where(p->sh.in, where), is, num_text(acted, "bit/s", taken), p->key[RATIO],
	    p->key[BUDGET], p->key[BUDGET] == 1 ? "" : "s", late ?
	    ", as many as the deadline permits" : "");
}

/* ---- how many local steps before the next shard, by equation (9) ---- */

/* Set *norm to || theta ||, from the option or else from the shard. */
static int
policy_norm(const struct stage_policy *p, double *norm, struct err *e)
{
	int r = 1;

	*norm = p->o.norm;
	if (*norm == 0 && (r = keys_real(&p->sh.shard->kv, SHARD_KEY_NORM, norm,
	    STAGE_NAME(&p->sh), e)) < 0)
		return r;
	if (r == 0)
		return err_set(e, ERR_USAGE, "--target-divergence needs --model-norm, or the key "
		    SHARD_KEY_NORM " in %s (ace-import --model-norm)", STAGE_NAME(&p->sh));
	return *norm > 0 ? 0 : err_set(e, ERR_DATA, "mismatch: key " SHARD_KEY_NORM " of %s is "
	    "%g, expected a norm above 0: give --model-norm", STAGE_NAME(&p->sh), *norm);
}

/* Decide the interval at the end of the shard, and set o.steps to it. */
static int
policy_interval(struct stage_policy *p, struct err *e)
{
	const struct interval *q = &p->o.interval;
	const struct shard *s = p->sh.shard;
	const char *why = NULL;
	double norm, drift;
	int r;

	if ((r = policy_norm(p, &norm, e)) < 0)
		return r;
	drift = sqrt(p->sumsq / norm / norm);
	if (s->kind == SHARD_SUM)
		drift /= s->weight;
	p->o.steps = interval_next(q, p->o.steps, drift);
	if (interval_force(q, drift)) {
		why = ", at once: the drift is above 4 times the target";
	} else if (p->force && p->asked != 0 && p->asked < p->o.steps) {
		p->o.steps = p->asked < q->min ? q->min : p->asked;
		why = ", at once: a device diverges and asks for it";
	}
	p->asked = p->force = 0;
	SAY(p, "%s: relative drift %.4g, interval %llu%s", STAGE_NAME(&p->sh), drift,
	    (unsigned long long)p->o.steps, why != NULL ? why : "");
	/* a drift that is too large or not finite is not written, but it forces a
	 * synchronisation */
	if (drift <= POLICY_BIG)
		p->key[DIVERGENCE] = drift;
	p->key[STEPS] = (double)p->o.steps;
	p->key[FORCE] = why != NULL;
	return 0;
}

/* ---- DeCo-SGD: the budget and the delay, from the times in the shards and the
 * measurements of ace-meter and ace-compress ---- */

/* Set the unknown (< 0) members of m except bandwidth, as far as they are known: `compute' from
 * the shard, the others from the state. */
static int
policy_deco_sample(const struct stage_policy *p, struct replan_sample *m,
    struct err *e)
{
	int r = 0;

	if (m->compute < 0)
		r = keys_real(&p->sh.shard->kv, SHARD_KEY_COMPUTE, &m->compute,
		    STAGE_NAME(&p->sh), e);
	/* no step is this short: the time was not measured */
	if (m->compute < DECO_LEAST)
		m->compute = -1;
	if (r < 0 || (r = policy_learned(p, LEARNED_LINK, LINK_RTT, &m->latency, e)) < 0 ||
	    (r = policy_learned(p, CONTRACTION_FILE, CONTRACTION_ALPHA, &m->alpha, e)) < 0)
		return r;
	return policy_learned(p, CONTRACTION_FILE, CONTRACTION_SHARE, &m->share, e);
}

/* Decide the budget and the delay.  rate in bit/s, < 0 unknown.  Return 1, or 0 if
 * bandwidth, computation or latency is not known yet. */
static int
policy_deco(struct stage_policy *p, double rate, struct err *e)
{
	const struct policy_deco *s = &p->o.stale;
	struct replan_sample m = { rate, s->latency, s->compute, -1, -1,
	    (p->o.bandwidth >= 0 ? REPLAN_BANDWIDTH : 0) |
	    (s->latency >= 0 ? REPLAN_LATENCY : 0) |
	    (s->compute >= 0 ? REPLAN_COMPUTE : 0) };
	struct replan *t = &p->o.stale.plan;
	const double values = (double)p->sh.schema->total;
	struct deco d = DECO_INIT;
	const char *lacks;
	char where[160], is[NUM_TEXT];
	int r, changed;

	if ((r = policy_deco_sample(p, &m, e)) < 0)
		return r;
	replan_see(t, &m);
	(void)reader_where(p->sh.in, where);
	lacks = !(t->bandwidth.v > 0) ? "bandwidth" : !(t->compute.v > 0) ? "computation" :
	    t->nlatency == 0 ? "latency" : NULL;
	if (lacks != NULL) {
		SAY(p, "%s: deco: %s not known yet", where, lacks);
		return 0;
	}
	d.size = fmax(32 * values, 1);
	if ((changed = replan_plan(t, &d, e)) < 0)
		return changed;
	SAY(p, "%s: deco: %s delay %.0f, %.4g of the "
	    "bits; computation %.4g s, %s, latency %.4g s, price of "
	    "compression %.3g%s", where, changed ? "now" : "still",
	    t->tau, t->delta, d.compute, num_text(d.bandwidth, "bit/s", is),
	    d.latency, d.kc, t->kc.v > 0 ? ", measured" : "");
	p->key[RATIO] = 1 / t->delta;
	p->key[BUDGET] = fmax(1, floor(t->delta * 4 * values));
	p->key[DELAY] = t->tau;
	p->key[BANDWIDTH] = d.bandwidth;
	p->key[LATENCY] = d.latency;
	p->key[COMPUTE] = d.compute;
	p->key[KC] = d.kc;
	return 1;
}

/* ---- decisions ---- */

/* At the first shard, read the decisions that were stored before its step. */
static int
policy_load(struct stage_policy *p, struct err *e)
{
	struct learned h = LEARNED_INIT;
	struct replan *t = &p->o.stale.plan;
	int r;

	if (p->o.dir == NULL || p->loaded)
		return 0;
	p->loaded = 1;
	if ((r = learned_before(&h, &p->state, POLICY_FILE, p->sh.shard->step, e)) >= 0 &&
	    ((r = keys_whole(&h.kv, KEYS_INTERVAL, &p->o.steps, "file 'policy' of the state",
	    e)) >= 0 || err_after(e, r, ": remove that file") >= 0) &&
	    (r = learned_list(&h, POLICY_RATE, &p->o.rate, 1, e)) >= 0 && p->o.stale.on)
		r = learned_list(&h, POLICY_DECO_STATE, (double *)t, REPLAN_NUMBERS, e);
	if (r >= 0 && replan_check(t) < 0)
		r = err_set(e, ERR_DATA, "corrupt: key " POLICY_DECO_STATE " in '%s/%s' is out "
		    "of range: remove that file", p->o.dir, h.file);
	learned_release(&h);
	return r;
}

static int
policy_save(struct stage_policy *p, struct err *e)
{
	struct learned h = LEARNED_INIT;
	int r;

	if (p->o.dir == NULL ||
	    (p->o.rate < 0 && !(p->o.interval.target > 0) && !p->o.stale.on))
		return 0;		/* no decision has to be stored */
	if ((r = text_setf(&h.kv, KEYS_INTERVAL, e, "%llu",
	    (unsigned long long)p->o.steps)) == 0 &&
	    (!p->o.stale.on || (r = learned_put_list(&h, POLICY_DECO_STATE,
	    (const double *)&p->o.stale.plan, REPLAN_NUMBERS, e)) == 0) &&
	    (r = learned_put_list(&h, POLICY_RATE, &p->o.rate, 1, e)) == 0)
		r = learned_save_again(&h, &p->state, POLICY_FILE, p->sh.shard, e);
	learned_release(&h);
	return r;
}

/* Decide the cuts (DynaComm). The shard is expected to be as large, relative to its dense
 * size, as the last coded shard in the state, or else to have the decided ratio. */
static int
policy_cuts(struct stage_policy *p, double rate, struct text_kv *kv, struct err *e)
{
	const int timed = p->o.cuts.heard != NULL;
	char where[160], words[256];
	double share = -1;
	int r = policy_learned(p, CONTRACTION_FILE, CONTRACTION_SHARE, &share, e);

	if (r < 0 || (r = policy_dynacomm_decide(&p->o.cuts, p->sh.schema, rate,
	    share > 0 ? share : 1 / fmax(p->key[RATIO], 1), kv, words, e)) < 0)
		return r;
	cli_say(p->o.f->cli, timed || p->untimed, "%s: %s",
	    reader_where(p->sh.in, where), words);
	p->untimed |= !timed;
	return 0;
}

/* Write the keys of kv as an annotation. */
static int
policy_put(struct stage_policy *p, const struct text_kv *kv, struct err *e)
{
	int r;

	p->note.n = 0;
	r = text_put_lines(kv, &p->note, e);
	return r < 0 ? r : stage_make(p->s.next, FRAME_POLI, p->note.p, p->note.n, e);
}

/* Write and forget the decided numbers.  Unless rate is NULL, decide and write cuts, too. */
static int
policy_said(struct stage_policy *p, const double *rate, struct err *e)
{
	struct text_kv kv = TEXT_KV_INIT;
	int i, r = rate != NULL ? policy_cuts(p, *rate, &kv, e) : 0;

	for (i = 0; i < KEYS && r == 0; i++) {
		if (!isnan(p->key[i]))
			r = text_setf(&kv, policy_key[i].name, e,
			    policy_key[i].whole ? "%.0f" : "%.9g", p->key[i]);
		p->key[i] = NAN;
	}
	if (r == 0)
		r = policy_put(p, &kv, e);
	text_release(&kv);
	return r;
}

/* Decide before the data; with --cuts, after the annotations that precede the data. */
static int
policy_decide(struct stage_policy *p, struct err *e)
{
	double rate = p->o.bandwidth;
	/* read the rate for every shard, since ace-meter may be measuring in the same pipe */
	int r = policy_learned(p, LEARNED_LINK, LEARNED_BANDWIDTH, &rate, e);

	p->waits = 0;
	if (r < 0 || (r = p->o.stale.on ? policy_deco(p, rate, e) : 0) < 0)
		return r;
	if (r == 0)
		policy_ratio(p, rate);
	return policy_said(p, p->o.cuts.dt >= 0 ? &rate : NULL, e);
}

static int
stage_policy_begin(struct stage *st, const struct stage_shard *sh, struct err *e)
{
	struct stage_policy *p = (struct stage_policy *)st;
	int r;

	p->sh = *sh;
	p->sumsq = 0;
	policy_dynacomm_begin(&p->o.cuts);
	/* the sums of a difference are not those of the shard */
	if (p->o.interval.target > 0 && (r = values_whole(sh->shard, e)) < 0)
		return r;
	if ((r = policy_load(p, e)) < 0 || (r = stage_begin(st->next, sh, e)) < 0)
		return r;
	p->waits = p->o.cuts.dt >= 0;
	return p->waits ? 0 : policy_decide(p, e);
}

/* For the interval, add up the squares of the shard's values, and refuse values that are not
 * finite. */
static int
stage_policy_data(struct stage *st, const struct stage_data *d, struct err *e)
{
	struct stage_policy *p = (struct stage_policy *)st;
	const size_t n = st->values != STAGE_IGNORES ? d->n : 0;
	struct stage_seen v;
	size_t i;
	int r = p->waits ? policy_decide(p, e) : 0;

	if (r == 0 && n > 0)
		r = alloc_grow(&p->x, &p->cap, p->sh.schema->group_size, sizeof(*p->x), e);
	for (i = 0; i < n && r == 0; i++)
		if ((r = stage_finite(d, i, p->sh.in, p->x, p->cap, &v, e)) == 0 &&
		    !schema_exact_group(p->sh.schema, d->rec[i].group))
			p->sumsq += v.stat.sumsq;
	return r < 0 ? r : stage_data(st->next, d, e);
}

static int
stage_policy_end(struct stage *st, const struct shard_sums *sums, struct err *e)
{
	struct stage_policy *p = (struct stage_policy *)st;
	int r = p->waits ? policy_decide(p, e) : 0;

	if (r == 0 && p->o.interval.target > 0 && (r = policy_interval(p, e)) == 0)
		r = policy_said(p, NULL, e);
	/* save after the commit of the step, so that a step that fails is not counted */
	if (r < 0 || (r = stage_end(st->next, sums, e)) < 0)
		return r;
	return policy_save(p, e);
}

/* Return 1 if the key is decided here. */
static int
policy_decides(const struct stage_policy *p, const char *key)
{
	const int on[] = { 1, p->o.interval.target > 0, p->o.stale.on,
	    p->o.cuts.dt >= 0 };
	const size_t n = strcspn(key, ".");
	int i, yes = 0;

	for (i = 0; i < KEYS; i++)
		yes |= on[policy_key[i].when] && strlen(policy_key[i].name) == n &&
		    strncmp(key, policy_key[i].name, n) == 0;
	return yes;
}

/* Pass on an older policy without the keys that are decided here.  The interval for which a
 * diverging device asks overrides a longer one computed from the mean over all devices. */
static int
policy_older(struct stage_policy *p, const struct stage_note *n, struct err *e)
{
	struct text_kv kv = TEXT_KV_INIT;
	size_t i;
	int r = keys_read(&kv, n->p, n->n, e);

	if (r < 0)
		r = reader_place(p->sh.in, r, e);
	/* keys_read has checked the values */
	if (r == 0 && keys_whole(&kv, KEYS_FORCE, &p->force, NULL, e) >= 0)
		(void)keys_whole(&kv, KEYS_INTERVAL, &p->asked, NULL, e);
	for (i = kv.n; i-- > 0 && r == 0; )
		if (policy_decides(p, kv.p[i].key))
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
	int r;

	if (p->o.cuts.dt >= 0 && n->type == FRAME_TIME &&
	    (r = policy_dynacomm_hear(&p->o.cuts, n->p, n->n, p->sh.schema->n, e)) < 0)
		return reader_place(p->sh.in, r, e);
	if (n->type == FRAME_SIGN)
		return 0;	/* drop the signature: it does not cover our annotation */
	if (n->type != FRAME_POLI)
		return stage_note(st->next, n, e);
	return policy_older(p, n, e);
}

static void
stage_policy_free(struct stage *st)
{
	struct stage_policy *p = (struct stage_policy *)st;

	policy_dynacomm_release(&p->o.cuts);
	statedir_close(&p->state);
	buf_release(&p->note);
	alloc_free(p->x);
}

static int
stage_policy_check(const void *opts, struct err *e)
{
	const struct stage_policy_opts *o = opts;

	return o->stale.on && (o->factor.warmup > 0 || o->deadline >= 0) ? err_set(e, ERR_USAGE,
	    "--deco excludes --deadline and a WARMUP of --ratio: leave out --deco or the rest") : 0;
}

static int
stage_policy_make(struct stage *s, void *opts, const struct filter *f, struct err *e)
{
	struct stage_policy *p = (struct stage_policy *)s;
	int i;

	for (i = 0; i < KEYS; i++)
		p->key[i] = NAN;
	p->state = (struct statedir)STATE_INIT;
	p->o = *(struct stage_policy_opts *)opts;
	p->o.f = f;
	if (p->o.interval.target > 0)
		s->values = STAGE_READS;	/* for the drift; non-finite values are refused */
	return p->o.dir != NULL ? statedir_open(&p->state, p->o.dir, e) : 0;
}

const struct stage_kind stage_policy = {
	.size = sizeof(struct stage_policy),
	.values = STAGE_IGNORES,
	.check = stage_policy_check,
	.make = stage_policy_make,
	.begin = stage_policy_begin,
	.data = stage_policy_data,
	.note = stage_policy_note,
	.end = stage_policy_end,
	.free = stage_policy_free
};
