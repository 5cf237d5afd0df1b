#include "base/err.h"
#include "format/keys.h"
#include "stage/policy_interval.h"
#include "stage/policy_text.h"
#include "sync/interval.h"

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

	policy_text_say(o, "  drift: || shard || / || model || = %.4g / %.4g = "
	    "%.4g, equation (9); aimed at %.4g", drift * norm, norm, drift,
	    q->target);
	if (force)
		policy_text_say(o, "  interval: %s%s", interval_force(q, drift) ?
		    "above four times that, so the least" : "a device diverges "
		    "and asks for it", ", at once");
	else
		policy_text_say(o, "  interval: %llu * sqrt(%.4g / %.4g), at most "
		    "halved or doubled, within %llu to %llu",
		    (unsigned long long)was, q->target, drift,
		    (unsigned long long)q->min, (unsigned long long)q->max);
}

int
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
	policy_text_say(o, "'%s/%llu': relative drift %.4g, interval %llu",
	    shard_device(s), (unsigned long long)s->step, drift,
	    (unsigned long long)o->steps);
	policy_interval_why(o, norm, drift, was, force);
	/* a drift that is not finite is not written, but it forces a
	 * synchronisation */
	if (drift <= POLICY_BIG)
		r = policy_text_real(kv, KEYS_DIVERGENCE, drift, e);
	if (r == 0 && (r = policy_text_whole(kv, KEYS_INTERVAL,
	    (double)o->steps, e)) == 0)
		r = policy_text_whole(kv, KEYS_FORCE, force, e);
	return r;
}
