#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/err.h"
#include "base/io.h"
#include "base/num.h"
#include "device/contraction.h"
#include "device/memory.h"
#include "format/keys.h"
#include "stage/policy_replay.h"
#include "stage/stage_policy.h"
#include "sync/ratio.h"

#define POLICY_FILE "policy"		/* in the state directory */
#define POLICY_PACE "pace"		/* key in it */

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

static int
policy_set_half(double *half, const char *val, struct err *e)
{
	int r = num_rate(half, val, "--half", e);

	return r < 0 || *half > 0 ? r : err_set(e, ERR_USAGE,
	    "--half must not be 0");
}

/* Above KEYS_RATE_MOST it would not be a value of its key. */
static int
policy_set_bandwidth(double *v, const char *val, struct err *e)
{
	int r = num_rate(v, val, "--bandwidth", e);

	if (r == 0 && *v > KEYS_RATE_MOST)
		r = err_set(e, ERR_USAGE, "--bandwidth '%s' is too large", val);
	return r;
}

/* "8", or "8,4,16" with the least and the largest. */
static int
policy_set_interval(struct stage_policy_opts *o, const char *val,
    struct err *e)
{
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

int
stage_policy_set(struct stage_policy_opts *o, int key, const char *val,
    struct err *e)
{
	int r = 0;

	switch (key) {
	case 'S':
		o->dir = val;
		break;
	case STAGE_POLICY_CMIN:
		r = num_f64(&o->cmin, val, 1, 1e9, "--cmin", e);
		break;
	case STAGE_POLICY_CMAX:
		r = num_f64(&o->cmax, val, 1, 1e9, "--cmax", e);
		break;
	case STAGE_POLICY_HALF:
		r = policy_set_half(&o->half, val, e);
		break;
	case STAGE_POLICY_BANDWIDTH:
		r = policy_set_bandwidth(&o->bandwidth, val, e);
		break;
	case STAGE_POLICY_WARMUP:
		r = num_u64(&o->pace.warmup, val, 0, UINT64_MAX, "--warmup",
		    e);
		break;
	case STAGE_POLICY_ACCORDION:
		r = num_u64(&o->pace.window, val, 1, 1000000, "--accordion",
		    e);
		break;
	case STAGE_POLICY_CUTS:
		o->cuts.on = 1;
		r = num_time(&o->cuts.dt, val, "--cuts", e);
		break;
	case STAGE_POLICY_DECO:
		o->stale.on = 1;
		break;
	case STAGE_POLICY_COMPUTE:
		r = num_time(&o->stale.compute, val, "--compute", e);
		break;
	case STAGE_POLICY_LATENCY:
		r = num_time(&o->stale.latency, val, "--latency", e);
		break;
	case STAGE_POLICY_TARGET:
		r = num_f64(&o->interval.target, val, 1e-300,
		    POLICY_BIG, "--target-divergence", e);
		break;
	case STAGE_POLICY_NORM:
		r = num_f64(&o->norm, val, 1e-300, POLICY_BIG,
		    "--model-norm", e);
		break;
	case STAGE_POLICY_INTERVAL:
		r = policy_set_interval(o, val, e);
		break;
	case STAGE_POLICY_DEADLINE:
		r = num_time(&o->deadline, val, "--deadline", e);
		break;
	case STAGE_POLICY_REPLAY:
		o->replay = val;
		break;
	default:
		return 0;
	}
	return r < 0 ? r : 1;
}

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
	if (o->stale.on && (o->pace.warmup > 0 ||
	    o->pace.window > 0 || o->deadline >= 0))
		return err_set(e, ERR_USAGE, "--deco has neither --warmup nor "
		    "--accordion nor --deadline");
	return 0;
}

/* ---- decisions ---- */

static void __attribute__((format(printf, 2, 3)))
policy_say(const struct stage_policy *p, const char *fmt, ...)
{
	char line[512];
	va_list ap;

	va_start(ap, fmt);
	(void)vsnprintf(line, sizeof(line), fmt, ap);
	va_end(ap);
	cli_say(p->o.cli, 1, "%s", line);
}

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
	if (r >= 0 && (r = memory_list(&h, POLICY_PACE,
	    (double *)&p->o.pace.seen, PACE_NUMBERS, e)) > 0 &&
	    pace_check(&p->o.pace) < 0)
		r = err_set(e, ERR_DATA, "corrupt: " POLICY_PACE " in "
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

	if (p->o.dir == NULL || (p->o.pace.seen.rate < 0 && p->o.pace.window == 0 &&
	    !(p->o.interval.target > 0) && !p->o.stale.on))
		return 0;		/* nothing to remember */
	(void)snprintf(v, sizeof(v), "%llu", (unsigned long long)p->o.steps);
	if ((r = text_set(&h.kv, KEYS_INTERVAL, v, e)) == 0 &&
	    (!p->o.stale.on || (r = policy_deco_save(&p->o.stale, &h, e)) == 0) &&
	    (r = memory_put_list(&h, POLICY_PACE,
	    (const double *)&p->o.pace.seen, PACE_NUMBERS, e)) == 0 &&
	    (r = memory_put(&h, KEYS_INTERVAL, &row, 1, e)) == 0)
		r = memory_save(&h, &p->state, POLICY_FILE,
		    p->sh.shard, "ace-policy", e);
	memory_release(&h);
	return r;
}

/* What the link was last measured at: 1 known, 0 not.  Read for every shard,
 * since ace-meter is at work in the same pipe. */
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

/* From which numbers the factor and the budget come. */
static void
policy_why_ratio(struct stage_policy *p, double rate, double acted, double base,
    double c, uint64_t budget)
{
	const struct pace *q = &p->o.pace;
	uint64_t step = p->sh.shard->step;

	if (rate < 0)
		policy_say(p, "  link: never measured, so taken as %.4g bit/s",
		    fmax(acted, 0));
	else
		policy_say(p, "  link: %.4g bit/s, %s; taken as %.4g: a fall "
		    "counts at once, a rise by %.3g of it, less than %.3g is "
		    "no change", rate, p->o.bandwidth >= 0 ? "as the option says" :
		    "as ace-meter measured", acted, q->rise, q->still);
	policy_say(p, "  factor: %.4g + (%.4g - %.4g) exp(-%.4g * %.4g) = %.4g, "
	    "equation (5)", p->o.cmin, p->o.cmax, p->o.cmin, ratio_beta(p->o.half), fmax(acted, 0),
	    base);
	if (q->window > 0)
		policy_say(p, "  accordion: %s the last windows of %llu shards "
		    "%s; factor divided by %.3g", q->seen.critical > 0 ?
		    "critical," : "not critical,",
		    (unsigned long long)q->window, q->seen.critical > 0 ?
		    "differ, or are not two yet" : "are alike",
		    q->seen.critical > 0 ? q->ease : 1);
	if (step < q->warmup)
		policy_say(p, "  warm-up: step %llu of %llu, so the power "
		    "%.4g of it", (unsigned long long)step,
		    (unsigned long long)q->warmup, ((double)step + 1) /
		    (double)q->warmup);
	policy_say(p, "  budget: 4 bytes * %llu values / %.4g = %llu bytes",
	    (unsigned long long)p->sh.schema->total, c,
	    (unsigned long long)budget);
}

/* No more than the link carries in time; the factor follows. */
static int
policy_late(const struct stage_policy *p, double rate, double acted,
    uint64_t *budget, double *c)
{
	double most = acted / 8 * p->o.deadline;

	if (p->o.deadline < 0 || rate < 0 || most >= (double)*budget)
		return 0;
	*budget = (uint64_t)most;
	*c = 4 * (double)p->sh.schema->total /
	    fmax((double)*budget, 1);
	return 1;
}

/* Equation (5). */
static int
policy_ratio(struct stage_policy *p, double rate, struct text_kv *kv, struct err *e)
{
	double acted = pace_rate(&p->o.pace, rate);
	double base = ratio_factor(p->o.cmin, p->o.cmax, ratio_beta(p->o.half), fmax(acted, 0));
	double c = pace_factor(&p->o.pace, base, p->sh.shard->step);
	uint64_t budget = ratio_budget(p->sh.schema->total, c);
	char where[160];
	int r, late = policy_late(p, rate, acted, &budget, &c);

	policy_say(p, "%s: %s %.4g bit/s, factor %.4g, %llu bytes",
	    reader_where(p->sh.in, where), rate >= 0 ? "link" : "link unknown,",
	    fmax(acted, 0), c, (unsigned long long)budget);
	if (p->o.cli->verbose)
		policy_why_ratio(p, rate, acted, base, c, budget);
	if (p->o.cli->verbose && late)
		policy_say(p, "  the link carries no more in the %.4g s that a "
		    "shard may take", p->o.deadline);
	if (p->o.pace.window > 0 && (r = policy_whole(kv, KEYS_CRITICAL,
	    p->o.pace.seen.critical, e)) < 0)
		return r;
	if ((r = policy_real(kv, KEYS_RATIO, c, e)) < 0 || (r = policy_whole(kv,
	    KEYS_BUDGET, (double)budget, e)) < 0)
		return r;
	return rate >= 0 ? policy_whole(kv, KEYS_BANDWIDTH, rate, e) : 0;
}

/* DynaComm, once it is known how many bytes there will be: as many as were coded
 * of the last shard, if a state says that, or as were just decided. */
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
		policy_say(p, "%s: %s", reader_where(p->sh.in, where), words);
	return r < 0 ? r : 0;
}

/* What was decided, as an annotation. */
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
			policy_say(p, "%s: %s", reader_where(p->sh.in, where),
			    words);
	}
	if (r >= 0 && (decided || (r = policy_ratio(p, rate, &kv, e)) == 0) &&
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

/* || theta ||, as the option or the shard says. */
static int
policy_norm(const struct stage_policy *p, double *norm, struct err *e)
{
	const struct shard *s = p->sh.shard;
	int r;

	*norm = p->o.norm;
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

/* From which numbers the interval comes. */
static void
policy_why_interval(struct stage_policy *p, double norm, double drift, uint64_t was,
    int force)
{
	const struct interval *o = &p->o.interval;

	policy_say(p, "  drift: || shard || / || model || = %.4g / %.4g = "
	    "%.4g, equation (9); aimed at %.4g", drift * norm, norm, drift,
	    o->target);
	if (force)
		policy_say(p, "  interval: %s%s", interval_force(o, drift) ?
		    "above four times that, so the least" : "a device diverges "
		    "and asks for it", ", at once");
	else
		policy_say(p, "  interval: %llu * sqrt(%.4g / %.4g), at most "
		    "halved or doubled, within %llu to %llu",
		    (unsigned long long)was, o->target, drift,
		    (unsigned long long)o->min, (unsigned long long)o->max);
}

/* Equation (9), when the shard's energy is known. */
static int
policy_interval(struct stage_policy *p, const struct shard_sums *sums,
    struct err *e)
{
	const struct shard *s = p->sh.shard;
	const struct interval *o = &p->o.interval;
	struct text_kv kv = TEXT_KV_INIT;
	double norm, drift;
	uint64_t was;
	int force, r;

	if ((r = policy_norm(p, &norm, e)) < 0)
		return r;
	drift = interval_drift(sums->sumsq / norm / norm, 1);
	if (s->kind == SHARD_SUM)
		drift /= s->weight;
	was = p->o.steps;
	p->o.steps = interval_next(o, was, drift);
	force = interval_force(o, drift);
	if (p->asked != 0 && p->asked < p->o.steps) {
		p->o.steps = p->asked < o->min ? o->min : p->asked;
		force = 1;
	}
	p->asked = 0;
	policy_say(p, "'%s/%llu': relative drift %.4g, interval %llu",
	    shard_device(s), (unsigned long long)s->step, drift,
	    (unsigned long long)p->o.steps);
	if (p->o.cli->verbose)
		policy_why_interval(p, norm, drift, was, force);
	/* what is no number is no key; it forces */
	if (drift <= POLICY_BIG)
		r = policy_real(&kv, KEYS_DIVERGENCE, drift, e);
	if (r == 0 && (r = policy_whole(&kv, KEYS_INTERVAL,
	    (double)p->o.steps, e)) == 0 &&
	    (r = policy_whole(&kv, KEYS_FORCE, force, e)) == 0)
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
	pace_see(&p->o.pace, sums->sumsq);
	if (p->o.interval.target > 0)
		r = policy_interval(p, sums, e);
	if (r < 0 || (r = policy_save(p, e)) < 0)
		return r;
	return stage_end(st->next, sums, e);
}

/* A device that diverges is heard, whatever the mean of all says. */
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

/* An older policy loses the keys that are said anew. */
static int
policy_older(struct stage_policy *p, const struct stage_note *n, struct err *e)
{
	static const struct {
		const char *key;
		enum { ALWAYS, INTERVAL, STALE, CUTS } when;
	} ours[] = {
		{ KEYS_RATIO, ALWAYS }, { KEYS_BUDGET, ALWAYS },
		{ KEYS_CRITICAL, ALWAYS },
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
	return r < 0 ? r : reader_open(&p->replay.from, io, p->o.in, e);
}

int
stage_policy_new(struct stage **out, const struct stage_policy_opts *o,
    struct err *e)
{
	struct stage_policy *p;
	int r = policy_check(o, e);

	*out = NULL;
	if (r < 0)
		return r;
	if ((p = alloc_get(1, sizeof(*p), e)) == NULL)
		return -ERR_SYS;
	p->o = *o;
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
