#include "base/err.h"
#include "base/num.h"
#include "device/memory.h"
#include "format/reader.h"
#include "pipe/survey.h"
#include "stage/budget.h"
#include "sync/ratio.h"

/* Bits a second, as the stream says. */
static int
budget_rate(const struct survey *s, double *v, struct err *e)
{
	const char *text = text_get(&s->policy, MEMORY_BANDWIDTH);

	if (text == NULL)
		return err_set(e, ERR_USAGE, "--seconds: no bandwidth in the "
		    "stream: put ace-policy before, with --bandwidth or the "
		    "state of ace-meter");
	return num_f64(v, text, 0, 1e300, "the policy's bandwidth", e);
}

static uint64_t
budget_whole(double v)
{
	return v < 9e18 ? (uint64_t)v : (uint64_t)9e18;
}

static int
budget_policy(const struct survey *s, uint64_t *bytes, struct err *e)
{
	const char *text = text_get(&s->policy, "budget_bytes");
	char where[160];
	double v;

	if (text != NULL)
		return num_u64(bytes, text, 0, UINT64_MAX,
		    "the policy's budget_bytes", e);
	if ((text = text_get(&s->policy, "ratio")) == NULL)
		return err_set(e, ERR_USAGE, "no policy in the stream: put "
		    "ace-policy before; %s", reader_where(s->in, where));
	if (num_f64(&v, text, 1e-6, 1e12, "the policy's ratio", e) < 0)
		return -ERR_USAGE;
	*bytes = ratio_budget(s->schema->total, v);
	return 0;
}

int
budget_find(const struct budget *b, const struct survey *s,
    uint64_t *bytes, struct err *e)
{
	double v;
	int k;

	switch (b->by) {
	case BUDGET_BYTES:
		*bytes = b->bytes;
		return 0;
	case BUDGET_BITS:
		*bytes = budget_whole(b->bits *
		    (double)s->schema->total / 8);
		return 0;
	case BUDGET_SECONDS:
		if ((k = budget_rate(s, &v, e)) < 0)
			return k;
		*bytes = budget_whole(v / 8 * b->seconds);
		return 0;
	default:
		return budget_policy(s, bytes, e);
	}
}
