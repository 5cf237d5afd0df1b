#include "base/err.h"
#include "format/keys.h"
#include "format/reader.h"
#include "pipe/survey.h"
#include "stage/budget.h"
#include "sync/ratio.h"

static uint64_t
budget_whole(double v)
{
	return v < 9e18 ? (uint64_t)v : (uint64_t)9e18;
}

static int
budget_policy(const struct survey *s, uint64_t *bytes, struct err *e)
{
	double v;
	int k = keys_whole(&s->policy, KEYS_BUDGET, bytes, "the policy", e);

	if (k != 0)
		return k < 0 ? k : 0;
	if ((k = keys_real(&s->policy, KEYS_RATIO, &v, "the policy", e)) < 0)
		return k;
	if (k == 0)
		return reader_place(s->in, err_set(e, ERR_USAGE, "no policy in "
		    "the stream: put ace-policy before"), e);
	*bytes = ratio_budget(s->schema->total, v);
	return 0;
}

int
budget_find(const struct budget *b, const struct survey *s,
    uint64_t *bytes, struct err *e)
{
	switch (b->by) {
	case BUDGET_BYTES:
		*bytes = b->bytes;
		return 0;
	case BUDGET_BITS:
		*bytes = budget_whole(b->bits *
		    (double)s->schema->total / 8);
		return 0;
	default:
		return budget_policy(s, bytes, e);
	}
}
