#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/err.h"
#include "base/num.h"
#include "device/contraction.h"
#include "device/link.h"
#include "format/keys.h"
#include "format/shard.h"
#include "stage/policy_deco.h"

#define POLICY_DECO_STATE "deco"		/* key in the policy's file */

/* ---- what is known ---- */

/* Reads a number of the state; < 0 when the state does not have it. */
static int
policy_deco_number(const struct state *s, const char *file, const char *key,
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
    const struct state *state, struct replan_sample *m, struct err *e)
{
	int r = 0;

	m->compute = s->compute;
	if (m->compute < 0)
		r = keys_real(&sh->kv, SHARD_KEY_COMPUTE, &m->compute,
		    shard_device(sh), e);
	if (r < 0 || (r = policy_deco_number(state, MEMORY_LINK, LINK_RTT, &m->latency,
	    e)) < 0 ||
	    (r = policy_deco_number(state, CONTRACTION_FILE, CONTRACTION_ALPHA, &m->alpha,
	    e)) < 0 ||
	    (r = policy_deco_number(state, CONTRACTION_FILE, CONTRACTION_SHARE, &m->share,
	    e)) < 0)
		return r;
	if (s->latency >= 0)
		m->latency = s->latency;
	return 0;
}

/* ---- what is decided ---- */

static int
policy_deco_real(struct text_kv *kv, const char *key, double v, struct err *e)
{
	char s[40];

	(void)snprintf(s, sizeof(s), "%.9g", v);
	return text_set(kv, key, s, e);
}

static int
policy_deco_put(const struct policy_deco *s, const struct deco *d, uint64_t values,
    struct text_kv *kv, struct err *e)
{
	char bytes[40];
	int r;

	(void)snprintf(bytes, sizeof(bytes), "%.0f",
	    fmax(1, floor(s->plan.delta * 4 * (double)values)));
	if ((r = policy_deco_real(kv, KEYS_RATIO, 1 / s->plan.delta, e)) < 0 ||
	    (r = text_set(kv, KEYS_BUDGET, bytes, e)) < 0 ||
	    (r = policy_deco_real(kv, KEYS_DELAY, s->plan.tau, e)) < 0 ||
	    (r = policy_deco_real(kv, KEYS_BANDWIDTH, d->bandwidth, e)) < 0 ||
	    (r = policy_deco_real(kv, KEYS_LATENCY, d->latency, e)) < 0 ||
	    (r = policy_deco_real(kv, KEYS_COMPUTE, d->compute, e)) < 0)
		return r;
	return policy_deco_real(kv, KEYS_KC, d->kc, e);
}

int
policy_deco_decide(struct policy_deco *s, const struct shard *sh, uint64_t values,
    double bandwidth, const struct state *state, struct text_kv *kv,
    char words[256], struct err *e)
{
	struct replan_sample m = { bandwidth, -1, -1, -1, -1 };
	struct replan *t = &s->plan;
	struct deco d = DECO_INIT;
	char rate[NUM_RATE_TEXT];
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
	num_rate_text(d.bandwidth, rate);
	(void)snprintf(words, 256, "deco: %s delay %.0f, %.4g of the "
	    "bits; computation %.4g s, %s, latency %.4g s, price of "
	    "compression %.3g%s", changed ? "now" : "still",
	    t->tau, t->delta, d.compute, rate, d.latency, d.kc,
	    t->kc.v > 0 ? ", measured" : "");
	r = policy_deco_put(s, &d, values, kv, e);
	return r < 0 ? r : 1;
}

/* ---- between runs ---- */

int
policy_deco_load(struct policy_deco *s, const struct memory *h, struct err *e)
{
	int r = memory_list(h, POLICY_DECO_STATE, (double *)&s->plan,
	    REPLAN_NUMBERS, e);

	if (r > 0 && replan_check(&s->plan) < 0)
		r = err_set(e, ERR_DATA, "corrupt: " POLICY_DECO_STATE);
	return r < 0 ? r : 0;
}

int
policy_deco_save(const struct policy_deco *s, struct memory *h, struct err *e)
{
	return memory_put_list(h, POLICY_DECO_STATE, (const double *)&s->plan,
	    REPLAN_NUMBERS, e);
}
