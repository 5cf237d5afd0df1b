#include <stdlib.h>

#include "base/alloc.h"
#include "base/err.h"
#include "mean/contrib.h"
#include "mean/gather.h"

/* ---- weights ---- */

void
contrib_release(struct contrib *c)
{
	robust_release(&c->step);
	center_release(&c->center);
	sketch_release(&c->like);
	gather_part_release(&c->part);
}

double
contrib_weight(const struct contrib *c, size_t i)
{
	return c->g->in[i].s->head.weight * c->step.one[i].share;
}

double
contrib_factor(const struct contrib *c, size_t i)
{
	return c->g->in[i].s->head.kind == SHARD_SUM ? 1 :
	    contrib_weight(c, i) * c->step.one[i].scale;
}

double
contrib_pull(const struct contrib *c)
{
	double sum = 0;
	size_t i;

	if (!robust_centered(&c->o->rule))
		return 0;
	for (i = 0; i < c->g->n; i++)
		if (!c->g->in[i].left)
			sum += contrib_weight(c, i) * (1 - c->step.one[i].scale);
	return sum;
}

int
contrib_finite(struct contrib *c, size_t i, const struct schema_span *span,
    const float *v, struct err *e)
{
	size_t at;

	if (c->kern->max_bits(v, span->n) < 0x7f800000)
		return 0;
	if (c->o->rule.finite) {
		c->step.one[i].nonfinite = 1;
		return 0;
	}
	at = kern_first_nonfinite(v, span->n);
	return gather_blame(c->g, i, err_set(e, ERR_REFUSED, "non-finite value in tensor "
	    "'%s' at index %llu from '%s': %g%s", c->g->schema.t[span->tensor].name,
	    (unsigned long long)(span->offset + at), shard_device(&c->g->in[i].s->head),
	    (double)v[at], c->g->in[i].s->head.kind == SHARD_SUM ? ": leave it out" :
	    " (to leave such shards out, use --rule mean,finite, or add ',finite' to "
	    "another rule; sum takes no filter)"));
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

/* Add group g of each contribution to its norm, distance from the center and sketch. */
static int
contrib_group(void *arg, uint32_t g, const struct schema_span *span, struct err *e)
{
	struct contrib *c = arg;
	const int centered = robust_centered(&c->o->rule);
	const int clustered = c->o->theta >= 0;
	/* integers and other types without a mean have no distance */
	const int exact = schema_exact(c->g->schema.t[span->tensor].dtype);
	const float *center = centered ? center_of(&c->center, span->first) : NULL;
	struct kern_stat st;
	const float *v;
	size_t i;
	int r;

	if (clustered && (r = sketch_group(&c->like, g, span->n, e)) < 0)
		return r;
	if (centered && (r = center_group(&c->center, g, span->n, e)) < 0)
		return r;
	if (center != NULL)
		center_add(&c->center, c->g->n, center);
	for (i = 0; i < c->g->n; i++) {
		struct robust_one *one = &c->step.one[i];

		if ((r = gather_group(c->g, i, g, 0, &c->part, e)) < 0)
			return gather_blame(c->g, i, r);
		v = c->part.x;
		if (v != NULL && (r = contrib_finite(c, i, span, v, e)) < 0)
			return r;
		if (exact)
			continue;
		one->values += span->n;
		if (centered)
			one->far2 += contrib_far(v, center, span->n);
		if (v == NULL)
			continue;
		c->kern->stat(v, span->n, &st);
		one->norm2 += st.sumsq;
		one->nonzero += st.nonzero;
		if (clustered)
			sketch_add(&c->like, i, v);
		if (centered)
			center_add(&c->center, i, v);
	}
	return 0;
}

/* ---- keys of the aggregate ---- */

/* Append a word to the list b, after sep unless it is the first. */
static int
contrib_word(struct buf *b, const char *sep, const char *word, struct err *e)
{
	int r = b->n != 0 ? buf_puts(b, sep, e) : 0;

	return r < 0 ? r : buf_puts(b, word, e);
}

/* Set the list b as a key of out, unless it is empty or too long. */
static int
contrib_list(struct shard *out, const char *key, struct buf *b, struct err *e)
{
	int r = 0;

	if (b->n != 0 && b->n < TEXT_MAX_KV / 4 &&
	    (r = buf_put(b, "", 1, e)) == 0)
		r = text_set(&out->kv, key, (const char *)b->p, e);
	return r;
}

/* Set a key of out to the devices whose fate is from lo to hi, as in "a:reason,b:reason". */
static int
contrib_fates(struct contrib *c, enum robust_fate lo, enum robust_fate hi,
    const char *key, struct shard *out, struct err *e)
{
	struct buf b = BUF_INIT;
	size_t i;
	int r = 0;

	for (i = 0; i < c->g->n && r == 0; i++) {
		const struct robust_one *one = &c->step.one[i];

		if (one->fate < lo || one->fate > hi)
			continue;
		if ((r = contrib_word(&b, ",",
		    shard_device(&c->g->in[i].s->head), e)) == 0)
			r = contrib_word(&b, ":", robust_why(one->fate), e);
	}
	if (r == 0)
		r = contrib_list(out, key, &b, e);
	buf_release(&b);
	return r;
}

/* Form the clusters, and set the key `clusters' of out to their devices, as in "a,b;c". */
static int
contrib_clusters(struct contrib *c, struct shard *out, struct err *e)
{
	struct buf b = BUF_INIT;
	size_t i, k, n = c->g->n;
	const char *sep;
	int r = 0;

	for (i = 0; i < n; i++)
		if (c->g->in[i].left)
			c->like.of[i] = SKETCH_NONE;
	if ((r = sketch_judge(&c->like, c->o->theta, e)) < 0)
		return r;
	for (k = 0; k < c->like.clusters && r == 0; k++)
		for (i = 0, sep = ";"; i < n && r == 0; i++) {
			if (c->like.of[i] != k)
				continue;
			r = contrib_word(&b, sep,
			    shard_device(&c->g->in[i].s->head), e);
			sep = ",";
		}
	if (r == 0)
		r = contrib_list(out, "clusters", &b, e);
	buf_release(&b);
	return r;
}

void
contrib_cluster(struct contrib *c, size_t k)
{
	size_t i;

	for (i = 0; i < c->g->n; i++)
		c->g->in[i].left = !robust_counts(&c->step.one[i]) ||
		    (k != SKETCH_NONE && c->like.of[i] != k);
}

static int
contrib_judge(struct contrib *c, struct err *e)
{
	const struct robust_rule *q = &c->o->rule;
	const int centered = robust_centered(q);
	size_t i;
	int r;

	for (i = 0; i < c->g->n; i++) {
		c->step.one[i].weight = c->g->in[i].s->head.weight;
		if (centered)
			center_device(&c->center, i, &c->g->in[i].s->head);
	}
	r = robust_judge(q, &c->step, e);
	return r == 0 && centered ? center_judge(&c->center, &c->step, e) : r;
}

int
contrib_look(struct contrib *c, struct shard *out, struct err *e)
{
	size_t i, n = c->g->n;
	int r = robust_step(&c->step, n, e);

	if (r < 0 || !(robust_active(&c->o->rule) || c->o->theta >= 0))
		return r;
	if (c->o->theta >= 0)
		r = sketch_begin(&c->like, n, e);
	for (i = 0; i < n && r == 0; i++) {
		const struct shard *s = &c->g->in[i].s->head;

		if (s->kind == SHARD_SUM)
			r = gather_blame(c->g, i, err_set(e, ERR_REFUSED,
			    "the shard of '%s' has kind sum, expected "
			    "gradient, delta or mean for %s%s", shard_device(s),
			    c->o->theta >= 0 ? "--cluster" : "rule ",
			    c->o->theta >= 0 ? "" : c->o->rule_text));
	}
	if (r == 0 && robust_centered(&c->o->rule))
		r = center_begin(&c->center, &c->g->in[0].s->head, &c->g->schema, n, e);
	if (r < 0 || (r = gather_read(c->g, contrib_group, c, e)) < 0 ||
	    (r = contrib_judge(c, e)) < 0 ||
	    (r = contrib_fates(c, ROBUST_BY_RATIO, ROBUST_NONFINITE, "left-out",
	    out, e)) < 0 ||
	    (r = contrib_fates(c, ROBUST_CLIPPED, ROBUST_CLIPPED, "clipped",
	    out, e)) < 0 ||
	    (r = text_set(&out->kv, "rule", c->o->rule_text, e)) < 0)
		return r;
	contrib_cluster(c, SKETCH_NONE);
	return c->o->theta >= 0 ? contrib_clusters(c, out, e) : 0;
}
