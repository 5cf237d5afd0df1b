#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/err.h"
#include "mean/contrib.h"
#include "mean/gather.h"

/* ---- weights ---- */

const char *const contrib_bys[] = { "weight", "samples", "equal", NULL };

void
contrib_init(struct contrib *c, const struct contrib_opts *o,
    const struct kern *kern)
{
	memset(c, 0, sizeof(*c));
	c->o = o;
	c->kern = kern;
	c->center = (struct center)CENTER_INIT;
}

void
contrib_release(struct contrib *c)
{
	robust_release(&c->step);
	center_release(&c->center);
	sketch_release(&c->like);
}

int
contrib_active(const struct contrib_opts *o)
{
	return robust_active(&o->rule) || o->theta >= 0;
}

/* Return the weight that shard s states, by --weight-by. */
static double
contrib_weight_of(const struct contrib *c, const struct shard *s)
{
	switch (c->o->by) {
	case CONTRIB_SAMPLES:
		return (double)s->samples;
	case CONTRIB_EQUAL:
		return (double)s->contributors;
	default:
		return s->weight;
	}
}

double
contrib_share(const struct contrib *c, size_t i)
{
	return contrib_active(c->o) ? c->step.one[i].share : 1;
}

double
contrib_weight(const struct contrib *c, size_t i)
{
	return contrib_weight_of(c, gather_shard(c->g, i)) *
	    contrib_share(c, i);
}

double
contrib_factor(const struct contrib *c, size_t i)
{
	if (contrib_active(c->o))
		return contrib_weight(c, i) * c->step.one[i].scale;
	return gather_shard(c->g, i)->kind == SHARD_SUM ? 1 :
	    contrib_weight(c, i);
}

double
contrib_pull(const struct contrib *c)
{
	double sum = 0;
	size_t i;

	if (!robust_centered(&c->o->rule))
		return 0;
	for (i = 0; i < gather_count(c->g); i++)
		if (!gather_left(c->g, i))
			sum += contrib_weight(c, i) * (1 - c->step.one[i].scale);
	return sum;
}

int
contrib_finite(struct contrib *c, size_t i, uint32_t g, const float *v,
    size_t n, struct err *e)
{
	const struct schema *sc = gather_schema(c->g);
	struct schema_span span;
	size_t at = c->kern->first_nonfinite(v, n);

	if (at == n)
		return 0;
	if (c->o->rule.finite) {
		c->step.one[i].nonfinite = 1;
		return 0;
	}
	schema_span(sc, g, &span);
	return gather_blame(c->g, i, err_set(e, ERR_REFUSED, "non-finite "
	    "value in tensor '%s' at index %llu from '%s'",
	    sc->t[span.tensor].name, (unsigned long long)(span.offset + at),
	    shard_device(gather_shard(c->g, i))));
}

/* ---- the first look ---- */

/* Return ||v - c||^2 over f32[n]; v or c NULL stands for zeros. */
static double
contrib_far(const float *v, const float *c, size_t n)
{
	double d, s = 0;
	size_t i;

	for (i = 0; i < n && (v != NULL || c != NULL); i++) {
		d = (v != NULL ? (double)v[i] : 0) - (c != NULL ? (double)c[i] : 0);
		s += d * d;
	}
	return s;
}

/* Return 1 if clusters, or the rule `center', need the directions of the shards. */
static int
contrib_sketched(const struct contrib *c)
{
	return c->o->theta >= 0 || robust_centered(&c->o->rule);
}

static int
contrib_group(struct contrib *c, uint32_t g, struct err *e)
{
	const struct schema *sc = gather_schema(c->g);
	const int centered = robust_centered(&c->o->rule);
	const float *center = NULL;
	struct schema_span span;
	struct kern_stat st;
	const float *v;
	size_t i, n;
	int r, alone;

	schema_span(sc, g, &span);
	/* skip integers and other types without a mean: they have no distance */
	alone = schema_exact(sc->t[span.tensor].dtype);
	if (centered)
		center = center_of(&c->center, sc->t[span.tensor].base +
		    span.offset);
	if (contrib_sketched(c) && (r = sketch_group(&c->like, g, span.n, e)) < 0)
		return r;
	if (centered && (r = center_group(&c->center, g, span.n, e)) < 0)
		return r;
	gather_window_range(c->g, &i, &n);
	if (centered && i == 0 && center != NULL)
		center_add(&c->center, gather_count(c->g), center);
	for (; i < n; i++) {
		struct robust_one *one = &c->step.one[i];

		if ((r = gather_group(c->g, i, g, &v, NULL, e)) < 0)
			return gather_blame(c->g, i, r);
		c->step.x[i] = v;
		one->values += alone ? 0 : span.n;
		if (centered && !alone)
			one->far2 += contrib_far(v, center, span.n);
		if (v == NULL || alone)
			continue;
		if ((r = contrib_finite(c, i, g, v, span.n, e)) < 0)
			return r;
		c->kern->stat(v, span.n, &st);
		one->norm2 += st.sumsq;
		one->nonzero += st.nonzero;
		if (contrib_sketched(c))
			sketch_add(&c->like, i, v);
		if (centered)
			center_add(&c->center, i, v);
	}
	return 0;
}

/* ---- keys of the aggregate ---- */

/* Append a word to a list. */
static int
contrib_word(struct buf *b, const char *sep, const char *word, struct err *e)
{
	int r = b->n != 0 ? buf_puts(b, sep, e) : 0;

	return r < 0 ? r : buf_puts(b, word, e);
}

/* Set the list as a key of out, unless it is too long. */
static int
contrib_list(struct shard *out, const char *key, struct buf *b, struct err *e)
{
	int r = 0;

	if (b->n != 0 && b->n < TEXT_MAX_KV / 4 &&
	    (r = buf_put(b, "", 1, e)) == 0)
		r = text_set(&out->kv, key, (const char *)b->p, e);
	return r;
}

/* List the contributions whose fate is from lo to hi, each with the reason. */
static int
contrib_fates(struct contrib *c, enum robust_fate lo, enum robust_fate hi,
    const char *key, struct shard *out, struct err *e)
{
	struct buf b = BUF_INIT;
	size_t i;
	int r = 0;

	for (i = 0; i < gather_count(c->g) && r == 0; i++) {
		const struct robust_one *one = &c->step.one[i];

		if (one->fate < lo || one->fate > hi)
			continue;
		if ((r = contrib_word(&b, ",",
		    shard_device(gather_shard(c->g, i)), e)) == 0)
			r = contrib_word(&b, ":", robust_why(one->fate), e);
	}
	if (r == 0)
		r = contrib_list(out, key, &b, e);
	buf_release(&b);
	return r;
}

/* List the members of each cluster, in the form a,b;c. */
static int
contrib_clusters(struct contrib *c, struct shard *out, struct err *e)
{
	struct buf b = BUF_INIT;
	size_t i, k, n = gather_count(c->g);
	const char *sep;
	int r = 0;

	for (i = 0; i < n; i++)
		if (gather_left(c->g, i))
			sketch_drop(&c->like, i);
	if ((r = sketch_judge(&c->like, c->o->theta, e)) < 0)
		return r;
	for (k = 0; k < c->like.clusters && r == 0; k++)
		for (i = 0, sep = ";"; i < n && r == 0; i++) {
			if (c->like.of[i] != k)
				continue;
			r = contrib_word(&b, sep,
			    shard_device(gather_shard(c->g, i)), e);
			sep = ",";
		}
	if (r == 0)
		r = contrib_list(out, "clusters", &b, e);
	buf_release(&b);
	return r;
}

/* Leave out the contributions that do not count: unless k is SKETCH_NONE, also those
 * outside cluster k. */
static void
contrib_leave(struct contrib *c, size_t k)
{
	size_t i;

	for (i = 0; i < gather_count(c->g); i++)
		gather_leave(c->g, i, !robust_counts(&c->step.one[i]) ||
		    (k != SKETCH_NONE && c->like.of[i] != k));
}

static int
contrib_judge(struct contrib *c, struct err *e)
{
	const struct robust_rule *q = &c->o->rule;
	const int centered = robust_centered(q);
	size_t i;
	int r = centered ? center_repeats(&c->center, &c->like, &c->step, e) : 0;

	for (i = 0; i < gather_count(c->g); i++)
		c->step.one[i].weight = contrib_weight_of(c, gather_shard(c->g, i));
	if (r == 0)
		r = robust_judge(q, &c->step, e);
	return r == 0 && centered ? center_judge(&c->center, &c->step, e) : r;
}

/* Read all values once, one window of contributions after another. */
static int
contrib_read(struct contrib *c, struct err *e)
{
	const uint32_t ngroups = gather_schema(c->g)->ngroups;
	size_t w;
	uint32_t g;
	int r = 0;

	for (w = 0; w < gather_windows(c->g) && r == 0; w++) {
		if (w != 0)
			r = gather_window(c->g, w, e);
		for (g = 0; g < ngroups && r == 0; g++)
			r = contrib_group(c, g, e);
		if (r == 0)
			r = gather_finish(c->g, e);
	}
	return r;
}

/* Begin the step in the memory of the rule `center'. */
static int
contrib_before(struct contrib *c, struct err *e)
{
	size_t i, n = gather_count(c->g);
	int r = center_begin(&c->center, gather_shard(c->g, 0), gather_schema(c->g), n,
	    e);

	for (i = 0; i < n && r == 0; i++)
		center_device(&c->center, i, gather_shard(c->g, i));
	return r;
}

int
contrib_look(struct contrib *c, struct shard *out, struct err *e)
{
	size_t i, n = gather_count(c->g);
	int r = robust_step(&c->step, n, e);

	if (r == 0 && contrib_sketched(c))
		r = sketch_begin(&c->like, n, e);
	for (i = 0; i < n && r == 0; i++) {
		const struct shard *s = gather_shard(c->g, i);

		if (s->kind == SHARD_SUM)
			r = gather_blame(c->g, i, err_set(e, ERR_REFUSED,
			    "shard of '%s' is a sum: expected a mean or a "
			    "gradient", shard_device(s)));
	}
	if (r == 0 && robust_centered(&c->o->rule))
		r = contrib_before(c, e);
	if (r < 0 || (r = contrib_read(c, e)) < 0 ||
	    (r = contrib_judge(c, e)) < 0 ||
	    (r = contrib_fates(c, ROBUST_BY_RATIO, ROBUST_REPEATS, "left-out",
	    out, e)) < 0 ||
	    (r = contrib_fates(c, ROBUST_CLIPPED, ROBUST_CLIPPED, "clipped",
	    out, e)) < 0 ||
	    (r = text_set(&out->kv, "rule", c->o->rule_text, e)) < 0)
		return r;
	contrib_leave(c, SKETCH_NONE);
	if (c->o->theta >= 0 && (r = contrib_clusters(c, out, e)) < 0)
		return r;
	return gather_window(c->g, 0, e);
}

int
contrib_cluster(struct contrib *c, size_t k, struct err *e)
{
	contrib_leave(c, k);
	return gather_window(c->g, 0, e);
}
