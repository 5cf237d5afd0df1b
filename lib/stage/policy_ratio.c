#include <math.h>

#include "base/err.h"
#include "base/num.h"
#include "format/keys.h"
#include "stage/policy_ratio.h"
#include "stage/policy_text.h"
#include "sync/ratio.h"

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
		policy_text_say(o, "  link: never measured, so taken as %s",
		    taken);
	else
		policy_text_say(o, "  link: %s, %s; taken as %s: a "
		    "fall counts at once, a rise by %.3g of it, less than %.3g is "
		    "no change", is, o->bandwidth >= 0 ?
		    "as the option says" : "as ace-meter measured", taken,
		    q->rise, q->still);
	policy_text_say(o, "  factor: %.4g + (%.4g - %.4g) exp(-%.4g * %.4g) = "
	    "%.4g, equation (5)", o->cmin, o->cmax, o->cmin, ratio_beta(o->half),
	    fmax(acted, 0), base);
	if (step < q->warmup)
		policy_text_say(o, "  warm-up: step %llu of %llu, so the power "
		    "%.4g of it", (unsigned long long)step,
		    (unsigned long long)q->warmup, ((double)step + 1) /
		    (double)q->warmup);
	policy_text_say(o, "  budget: 4 bytes * %llu values / %.4g = %llu bytes",
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

int
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
	policy_text_say(o, "%s: %s %s, factor %.4g, %llu bytes",
	    reader_where(sh->in, where), rate >= 0 ? "link" : "link unknown,",
	    taken, c, (unsigned long long)budget);
	policy_ratio_why(o, sh, rate, acted, base, c, budget);
	if (late)
		policy_text_say(o, "  the link carries no more in the %.4g s "
		    "that a shard may take", o->deadline);
	if ((r = policy_text_real(kv, KEYS_RATIO, c, e)) < 0 ||
	    (r = policy_text_whole(kv, KEYS_BUDGET, (double)budget, e)) < 0)
		return r;
	return rate >= 0 ? policy_text_whole(kv, KEYS_BANDWIDTH, rate, e) : 0;
}
