#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/num.h"
#include "device/contraction.h"
#include "device/memory.h"
#include "format/keys.h"
#include "pipe/filter.h"
#include "stage/policy.h"
#include "sync/ratio.h"

#define POLICY_FILE "policy"		/* in the state directory */
#define POLICY_PACE "pace"		/* key in it */

/* One more line of what there is to say; words are not worth an error. */
static void __attribute__((format(printf, 2, 3)))
policy_say(struct policy *p, const char *fmt, ...)
{
	char line[512];
	va_list ap;
	int n;

	va_start(ap, fmt);
	n = vsnprintf(line, sizeof(line), fmt, ap);
	va_end(ap);
	n = n < (int)sizeof(line) ? n : (int)sizeof(line) - 1;
	if (n >= 0)
		(void)buf_put(&p->said, line, (size_t)n + 1, NULL);
}

int
policy_load(struct policy *p, struct err *e)
{
	struct memory h = MEMORY_INIT;
	const char *v;
	int r;

	if (p->state == NULL)
		return 0;
	if ((r = memory_load(&h, p->state, POLICY_FILE, e)) < 0)
		return r;
	v = text_get(&h.kv, "interval");
	if (v != NULL && num_u64(&p->steps, v, 1, KEYS_INTERVAL_MOST,
	    KEYS_INTERVAL, NULL) < 0)
		r = err_set(e, ERR_DATA, "corrupt: interval in '%s/policy'",
		    p->state->dir);
	if (r >= 0 && p->stale.on)
		r = policy_deco_load(&p->stale, &h, e);
	if (r >= 0 && (r = memory_list(&h, POLICY_PACE,
	    (double *)&p->pace.seen, PACE_NUMBERS, e)) > 0 &&
	    pace_check(&p->pace) < 0)
		r = err_set(e, ERR_DATA, "corrupt: " POLICY_PACE " in "
		    "'%s/policy'", p->state->dir);
	memory_release(&h);
	return r < 0 ? r : 0;
}

static int
policy_save(struct policy *p, struct err *e)
{
	struct memory h = MEMORY_INIT;
	float row = (float)p->steps;
	char v[32];
	int r;

	if (p->state == NULL || (p->pace.seen.rate < 0 && p->pace.window == 0 &&
	    !(p->interval.target > 0) && !p->stale.on))
		return 0;		/* nothing to remember */
	(void)snprintf(v, sizeof(v), "%llu", (unsigned long long)p->steps);
	if ((r = text_set(&h.kv, "interval", v, e)) == 0 &&
	    (!p->stale.on || (r = policy_deco_save(&p->stale, &h, e)) == 0) &&
	    (r = memory_put_list(&h, POLICY_PACE,
	    (const double *)&p->pace.seen, PACE_NUMBERS, e)) == 0 &&
	    (r = memory_put(&h, "interval", &row, 1, e)) == 0)
		r = memory_save(&h, p->state, POLICY_FILE,
		    reader_shard(p->in), p->tool, e);
	memory_release(&h);
	return r;
}

/* What the link was last measured at: 1 known, 0 not.  Read for every shard,
 * since ace-meter is at work in the same pipe. */
static int
policy_rate(struct policy *p, double *v, struct err *e)
{
	if (p->bandwidth >= 0) {
		*v = p->bandwidth;
		return 1;
	}
	if (p->state == NULL)
		return 0;
	return memory_number(p->state, MEMORY_LINK, MEMORY_BANDWIDTH, v,
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
policy_why_ratio(struct policy *p, double rate, double acted, double base,
    double c, uint64_t budget)
{
	const struct pace *q = &p->pace;
	uint64_t step = reader_shard(p->in)->step;

	if (rate < 0)
		policy_say(p, "  link: never measured, so taken as %.4g bit/s",
		    fmax(acted, 0));
	else
		policy_say(p, "  link: %.4g bit/s, %s; taken as %.4g: a fall "
		    "counts at once, a rise by %.3g of it, less than %.3g is "
		    "no change", rate, p->bandwidth >= 0 ? "as the option says" :
		    "as ace-meter measured", acted, q->rise, q->still);
	policy_say(p, "  factor: %.4g + (%.4g - %.4g) exp(-%.4g * %.4g) = %.4g, "
	    "equation (5)", p->cmin, p->cmax, p->cmin, p->beta, fmax(acted, 0),
	    base);
	if (q->window > 0)
		policy_say(p, "  accordion: %s the last windows of %llu shards "
		    "%s%s", q->seen.critical > 0 ? "critical," :
		    "not critical,", (unsigned long long)q->window,
		    q->seen.critical > 0 ? "differ, or are not two yet; factor "
		    "divided" : "are alike", q->seen.critical > 0 ?
		    " by --ease" : "");
	if (step < q->warmup)
		policy_say(p, "  warm-up: step %llu of %llu, so the power "
		    "%.4g of it", (unsigned long long)step,
		    (unsigned long long)q->warmup, ((double)step + 1) /
		    (double)q->warmup);
	policy_say(p, "  budget: 4 bytes * %llu values / %.4g = %llu bytes",
	    (unsigned long long)reader_schema(p->in)->total, c,
	    (unsigned long long)budget);
}

/* No more than the link carries in time; the factor follows. */
static int
policy_late(const struct policy *p, double rate, double acted,
    uint64_t *budget, double *c)
{
	double most = acted / 8 * p->deadline;

	if (p->deadline < 0 || rate < 0 || most >= (double)*budget)
		return 0;
	*budget = (uint64_t)most;
	*c = 4 * (double)reader_schema(p->in)->total /
	    fmax((double)*budget, 1);
	return 1;
}

/* Equation (5). */
static int
policy_ratio(struct policy *p, double rate, struct text_kv *kv, struct err *e)
{
	double acted = pace_rate(&p->pace, rate);
	double base = ratio_factor(p->cmin, p->cmax, p->beta, fmax(acted, 0));
	double c = pace_factor(&p->pace, base, reader_shard(p->in)->step);
	uint64_t budget = ratio_budget(reader_schema(p->in)->total, c);
	char where[160];
	int r, late = policy_late(p, rate, acted, &budget, &c);

	policy_say(p, "%s: %s %.4g bit/s, factor %.4g, %llu bytes",
	    reader_where(p->in, where), rate >= 0 ? "link" : "link unknown,",
	    fmax(acted, 0), c, (unsigned long long)budget);
	if (p->explain)
		policy_why_ratio(p, rate, acted, base, c, budget);
	if (p->explain && late)
		policy_say(p, "  the link carries no more in the %.4g s that a "
		    "shard may take", p->deadline);
	if (p->pace.window > 0 && (r = policy_whole(kv, "critical",
	    p->pace.seen.critical, e)) < 0)
		return r;
	if ((r = policy_real(kv, "ratio", c, e)) < 0 || (r = policy_whole(kv,
	    "budget_bytes", (double)budget, e)) < 0)
		return r;
	return rate >= 0 ? policy_whole(kv, MEMORY_BANDWIDTH, rate, e) : 0;
}

/* DynaComm, once it is known how many bytes there will be: as many as were coded
 * of the last shard, if a state says that, or as were just decided. */
static int
policy_cuts(struct policy *p, double rate, struct text_kv *kv, struct err *e)
{
	const char *ratio = text_get(kv, "ratio");
	double share = ratio != NULL ? 1 / fmax(strtod(ratio, NULL), 1) : 1;
	char where[160], words[256];
	double v;
	int r = p->state == NULL ? 0 : memory_number(p->state, CONTRACTION_FILE,
	    CONTRACTION_SHARE, &v, e);

	if (r < 0)
		return r;
	if (r > 0 && v > 0)
		share = v;
	r = policy_dynacomm_decide(&p->cuts, reader_schema(p->in), rate, share,
	    kv, words, e);
	if (r >= 0)
		policy_say(p, "%s: %s", reader_where(p->in, where), words);
	return r < 0 ? r : 0;
}

/* Before the data, and if cuts are to be decided after what stands before it. */
static int
policy_decide(struct policy *p, struct err *e)
{
	struct text_kv kv = TEXT_KV_INIT;
	char where[160], words[256];
	double rate = -1;
	int r, decided = 0;

	p->waits = 0;
	if ((r = policy_rate(p, &rate, e)) < 0)
		return r;
	if (p->stale.on) {
		r = decided = policy_deco_decide(&p->stale, reader_shard(p->in),
		    reader_schema(p->in)->total, rate, p->state, &kv, words, e);
		if (r >= 0)
			policy_say(p, "%s: %s", reader_where(p->in, where),
			    words);
	}
	if (r >= 0 && (decided || (r = policy_ratio(p, rate, &kv, e)) == 0) &&
	    (!p->cuts.on || (r = policy_cuts(p, rate, &kv, e)) == 0))
		r = keys_put(p->out, &kv, e);
	text_release(&kv);
	return r;
}

static int
policy_on_shard(struct policy *p, struct err *e)
{
	int r = filter_shard(p->in, p->out, NULL, e);

	p->waits = p->cuts.on;
	return r < 0 || p->waits ? r : policy_decide(p, e);
}

static int
policy_on_data(struct policy *p, struct err *e)
{
	int r = p->waits ? policy_decide(p, e) : 0;

	if (r < 0 || (r = writer_pass(p->out, p->in, e)) < 0)
		return r;
	return filter_cut(p->in, p->out, e);
}

/* || theta ||, as the option or the shard says. */
static int
policy_norm(const struct policy *p, double *norm, struct err *e)
{
	const char *s = text_get(&reader_shard(p->in)->kv, SHARD_KEY_NORM);

	*norm = p->norm;
	if (*norm > 0)
		return 0;
	if (s == NULL)
		return err_set(e, ERR_USAGE, "--target-divergence needs "
		    "--model-norm, or the key " SHARD_KEY_NORM " in the shards");
	if (num_f64(norm, s, 1e-300, POLICY_BIG, SHARD_KEY_NORM, NULL) < 0)
		return err_set(e, ERR_DATA, "corrupt: key " SHARD_KEY_NORM);
	return 0;
}

/* From which numbers the interval comes. */
static void
policy_why_interval(struct policy *p, double norm, double drift, uint64_t was,
    int force)
{
	const struct interval *o = &p->interval;

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
policy_on_send(struct policy *p, struct err *e)
{
	const struct shard_sums *sums = &reader_end_of_shard(p->in)->sums;
	const struct shard *s = reader_shard(p->in);
	const struct interval *o = &p->interval;
	struct text_kv kv = TEXT_KV_INIT;
	double norm, drift;
	uint64_t was;
	int force, r;

	pace_see(&p->pace, sums->sumsq);
	if (!(o->target > 0))
		return (r = policy_save(p, e)) < 0 ? r :
		    writer_send(p->out, sums, e);
	if ((r = policy_norm(p, &norm, e)) < 0)
		return r;
	drift = interval_drift(sums->sumsq / norm / norm, 1);
	if (s->kind == SHARD_SUM)
		drift /= s->weight;
	was = p->steps;
	p->steps = interval_next(o, was, drift);
	force = interval_force(o, drift);
	if (p->asked != 0 && p->asked < p->steps) {
		p->steps = p->asked < o->min ? o->min : p->asked;
		force = 1;
	}
	p->asked = 0;
	policy_say(p, "'%s/%llu': relative drift %.4g, interval %llu",
	    shard_device(s), (unsigned long long)s->step, drift,
	    (unsigned long long)p->steps);
	if (p->explain)
		policy_why_interval(p, norm, drift, was, force);
	/* what is no number is no key; it forces */
	if (drift <= POLICY_BIG)
		r = policy_real(&kv, "divergence", drift, e);
	if (r == 0 && (r = policy_whole(&kv, KEYS_INTERVAL,
	    (double)p->steps, e)) == 0 &&
	    (r = policy_whole(&kv, KEYS_FORCE, force, e)) == 0 &&
	    (r = keys_put(p->out, &kv, e)) == 0)
		r = policy_save(p, e);
	text_release(&kv);
	return r < 0 ? r : writer_send(p->out, sums, e);
}

/* A device that diverges is heard, whatever the mean of all says. */
static void
policy_asked(struct policy *p, const struct text_kv *kv)
{
	const char *force = text_get(kv, KEYS_FORCE);
	const char *steps = text_get(kv, KEYS_INTERVAL);

	if (force == NULL || strcmp(force, "1") != 0 || steps == NULL ||
	    num_u64(&p->asked, steps, 1, KEYS_INTERVAL_MOST, KEYS_INTERVAL,
	    NULL) < 0)
		p->asked = 0;
}

/* An older policy loses the keys that are said anew. */
static int
policy_on_policy(struct policy *p, struct err *e)
{
	static const struct {
		const char *key;
		enum { ALWAYS, INTERVAL, STALE, CUTS } when;
	} ours[] = {
		{ "ratio", ALWAYS }, { "budget_bytes", ALWAYS },
		{ "critical", ALWAYS },
		{ MEMORY_BANDWIDTH, ALWAYS }, { "divergence", INTERVAL },
		{ KEYS_INTERVAL, INTERVAL }, { KEYS_FORCE, INTERVAL },
		{ KEYS_DELAY, STALE }, { "latency", STALE },
		{ "compute", STALE }, { "kc", STALE },
		{ KEYS_CUTS, CUTS }, { KEYS_CUTS_SECONDS, CUTS }
	};
	const int on[] = { 1, p->interval.target > 0, p->stale.on,
	    p->cuts.on };
	struct text_kv kv = TEXT_KV_INIT;
	size_t i;
	int r = keys_add(&kv, p->in, e);

	if (r == 0 && on[INTERVAL])
		policy_asked(p, &kv);
	for (i = 0; i < sizeof(ours) / sizeof(*ours) && r == 0; i++)
		if (on[ours[i].when])
			r = text_set(&kv, ours[i].key, NULL, e);
	if (r == 0 && kv.n > 0)
		r = keys_put(p->out, &kv, e);
	text_release(&kv);
	return r;
}

static int
policy_on_note(struct policy *p, struct err *e)
{
	int r = p->cuts.on ? policy_dynacomm_hear(&p->cuts, p->in,
	    reader_schema(p->in)->n, e) : 0;

	if (r < 0)
		return r;
	return reader_frame(p->in)->type == FRAME_POLI ?
	    policy_on_policy(p, e) : filter_pass(p->in, p->out, 0, e);
}

int
policy_event(struct policy *p, int event, struct err *e)
{
	int r;

	if (p->replay.from != NULL)
		return policy_replay_event(&p->replay, event, p->in, p->out, e);
	switch (event) {
	case READER_SHARD:
		return policy_on_shard(p, e);
	case READER_DATA:
		return policy_on_data(p, e);
	case READER_SEND:
		r = p->waits ? policy_decide(p, e) : 0;
		return r < 0 ? r : policy_on_send(p, e);
	case READER_NOTE:
		return policy_on_note(p, e);
	default:
		return 0;
	}
}

void
policy_release(struct policy *p)
{
	buf_release(&p->said);
	policy_dynacomm_release(&p->cuts);
	reader_free(p->replay.from);
	p->replay.from = NULL;
}
